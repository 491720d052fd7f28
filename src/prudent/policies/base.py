"""What all policies share: forecasts in, mixtures and reproducible actions out."""

from __future__ import annotations

import os
from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Any, Literal

import numpy as np
from sklearn.base import BaseEstimator
from sklearn.utils import check_random_state
from sklearn.utils.validation import check_is_fitted, validate_data

from prudent.arrays import AnyArray, FloatArray
from prudent.arrays.chunks import over_rows
from prudent.errors import InputError
from prudent.policies.draws import draw, uniforms_from_keys
from prudent.problem import DecisionProblem
from prudent.spaces import Label

if TYPE_CHECKING:
    from prudent.policies.explanation import Explanation

_ROWS_AT_ONCE = 1 << 15


class Policy(BaseEstimator):  # type: ignore[misc]  # scikit-learn ships no types
    """A map from forecasts to distributions over actions.

    Subclasses say which mixture they play at validated forecasts.
    """

    problem: DecisionProblem

    def predict_proba(self, X: Any) -> FloatArray:
        """Return the mixture played at each forecast, shape ``(n, m)``; rows lie on the simplex."""
        return self._mixtures(self._place(X))

    def predict(self, X: Any, keys: Any = None) -> AnyArray:
        """Draw one action label per forecast.

        Parameters
        ----------
        X : array of shape (n,) or (n, d)
            Forecasts.
        keys : sequence of length n, optional
            Record ids: the same key and ``salt`` give the same draw on any
            machine. Without keys draws come from ``random_state``.
        """
        return drawn_labels(self, self._problem, self.predict_proba(X), keys)

    def worst_case_belief(self, X: Any) -> FloatArray:
        """Return, for each forecast, the belief that the policy guards against, or acts on.

        For robust policies a pointwise minimiser of ``val(p) + s(v).p``; the worst world of the fitting sample, whose
        moments are right, is ``solution_.beliefs``.
        """
        return self._beliefs(self._place(X))

    @property
    def deterministic(self) -> bool:
        """True if the kind of policy never mixes actions, so that nothing is drawn."""
        return False

    def save(self, path: str | os.PathLike[str]) -> None:
        """Write the policy to one JSON file, whole or not at all; read it with :func:`prudent.load`."""
        from prudent.policies.persistence import save

        save(self, path)

    def explain(self, forecast: Any) -> Explanation:
        """Explain what is played at one forecast: the belief behind it, the test that binds, the next action.

        Examples
        --------
        >>> import prudent
        >>> problem = prudent.DecisionProblem([0.0, 1.0], [0.0, 0.5], actions=["wait", "act"])
        >>> print(prudent.PlugInPolicy(problem).explain(0.45))
        At the forecast 0.45 the action is wait. It believes the forecast and expects a utility of 0. It changes to act
        0.05 away, up to 0.5.
        """
        from prudent.policies.explanation import explain

        return explain(self, forecast)

    def to_sql(
        self,
        dialect: str = "duckdb",
        forecast: str | Sequence[str] | None = None,
        *,
        output: Literal["action", "probabilities"] = "action",
        key: str | None = None,
        table: str | None = None,
        invalid: Literal["error", "null"] = "error",
    ) -> str | dict[Label, str]:
        """Write the policy as a plain SQL expression that decides row by row as :meth:`predict` does.

        Parameters
        ----------
        dialect : "duckdb", "postgres" or "spark"
        forecast : str or sequence of str
            Column of forecasts, or one per coordinate; by default the names the policy was fitted with.
        output : "action" or "probabilities"
            One expression for the action's label, or a dictionary with one per action for its probability.
        key : str, optional
            Column of record ids (text or whole numbers): the same draws as ``predict(X, keys=...)``. Needed for
            actions of policies that mix; not used by those that do not.
        table : str, optional
            Table or alias to which the columns belong.
        invalid : "error" or "null"
            What a forecast that Python refuses (NULL, NaN, outside the space) or a missing key gives.

        Notes
        -----
        All arithmetic is that of Python, in the same order on doubles, so results agree bit for bit. Exceptions:
        guarantees with logarithms agree as far as the engine's ``ln`` agrees with NumPy's; rows on a simplex that
        are off the sum 1 by more than 1e-12 agree up to rounding from 8 classes on.

        Examples
        --------
        >>> import prudent
        >>> problem = prudent.DecisionProblem([0.0, 1.0], [0.0, 0.5], actions=["wait", "act"])
        >>> policy = prudent.RobustPolicy(problem, prudent.guarantees.Bins([0, 0.3, 1])).fit([0.1, 0.2, 0.7, 0.8])
        >>> "THEN 'wait' ELSE 'act' END" in policy.to_sql("duckdb", "risk")
        True
        """
        from prudent.policies.sql import policy_to_sql

        return policy_to_sql(self, dialect, forecast, output=output, key=key, table=table, invalid=invalid)

    def decide_table(self, columns: Any, output: str = "action") -> Any:
        """Return a lazy table with one more column, the action of every row; nothing is computed yet.

        Parameters
        ----------
        columns : Columns
            From :func:`prudent.columns`, with ``id`` where the policy mixes: draws are those of
            ``predict(X, keys=ids)``, whatever the engine (DuckDB, Spark, Polars).
        output : str
            Name of the new column.

        Examples
        --------
        >>> import duckdb, prudent
        >>> table = duckdb.sql("SELECT * FROM (VALUES (1, 0.2::DOUBLE), (2, 0.7)) t(id, risk)")
        >>> problem = prudent.DecisionProblem([0.0, 1.0], [0.0, 0.5], actions=["wait", "act"])
        >>> columns = prudent.columns(table, forecasts="risk", id="id")
        >>> prudent.PlugInPolicy(problem).decide_table(columns).order("id").fetchall()
        [(1, 0.2, 'wait'), (2, 0.7, 'act')]
        """
        from prudent.policies.played_columns import decide_table

        return decide_table(self, columns, output)

    @property
    def _problem(self) -> DecisionProblem:
        """The problem that was fitted; a parameter changed since then waits for the next fit."""
        return require_problem(getattr(self, "problem_", self.problem))

    def _in_chunks(self, mixtures: Callable[[FloatArray], FloatArray], forecasts: FloatArray) -> FloatArray:
        """Apply a rule that looks at each forecast alone to many, a part at a time."""
        result = np.empty((len(forecasts), self._problem.n_actions))

        def fill(part: slice) -> None:
            result[part] = mixtures(forecasts[part])

        try:
            over_rows(fill, len(forecasts), rows=_ROWS_AT_ONCE, threads_from=4 * _ROWS_AT_ONCE)
        except InputError:
            # All rows at once, so that the error names the caller's rows.
            mixtures(forecasts)
            raise
        return result

    def _mixtures(self, forecasts: FloatArray) -> FloatArray:
        raise AssertionError("every policy defines its mixtures")

    def _beliefs(self, forecasts: FloatArray) -> FloatArray:
        raise AssertionError("every policy defines its beliefs")

    def _place(self, X: Any) -> FloatArray:
        """Validate forecasts against what was fitted."""
        check_is_fitted(self)
        problem = self._problem
        shape: tuple[int, ...] = getattr(X, "shape", ())
        if len(shape) == 2 and 0 < shape[1] != problem.dimension:
            raise InputError(
                f"X has {shape[1]} features, but {type(self).__name__} is expecting {problem.dimension} features as "
                f"input: forecasts must have one column per coordinate of the outcome space."
            )
        forecasts, _ = problem.space.place(X, "forecasts")
        fitted_on_sample = hasattr(self, "n_features_in_")
        if fitted_on_sample and (_named_columns(X) or hasattr(self, "feature_names_in_")):
            validate_data(self, X if _named_columns(X) else forecasts, reset=False, skip_check_array=True)
        return forecasts

    def _remember(self, X: Any, snapped: int) -> None:
        """Note width and column names of the forecasts; called last, so that a failed fit leaves no trace."""
        if _named_columns(X):
            validate_data(self, X, reset=True, skip_check_array=True)
        elif hasattr(self, "feature_names_in_"):
            del self.feature_names_in_
        self.n_features_in_ = self.problem.dimension
        self.n_snapped_ = snapped


def action_labels(problem: DecisionProblem) -> AnyArray:
    """Return the labels as an array of one dtype, or of objects where types differ."""
    actions: tuple[Label, ...] = problem.actions
    if len({type(action) for action in actions}) == 1:
        return np.array(actions)
    mixed = np.empty(len(actions), dtype=object)
    mixed[:] = actions
    return mixed


def require_problem(problem: Any) -> DecisionProblem:
    """Check that a parameter is a problem."""
    if not isinstance(problem, DecisionProblem):
        raise InputError(f"problem must be a DecisionProblem; got {type(problem).__name__}.")
    return problem


def require_salt(salt: Any) -> str:
    """Check that a parameter is text."""
    if not isinstance(salt, str):
        raise InputError(f"salt must be a string; got {type(salt).__name__}.")
    return salt


def _named_columns(X: Any) -> bool:
    """True for frames whose columns all have text names: others have none to remember."""
    return hasattr(X, "columns") and all(isinstance(name, str) for name in X.columns)


def drawn_labels(policy: Any, problem: DecisionProblem, mixtures: FloatArray, keys: Any) -> AnyArray:
    """Draw an action label per row: by keys and the policy's salt, or from its ``random_state``."""
    n = len(mixtures)
    if keys is not None:
        uniforms = uniforms_from_keys(keys, require_salt(getattr(policy, "salt", "")), n)
    else:
        random_state = getattr(policy, "random_state", None)
        try:
            uniforms = check_random_state(random_state).random_sample(n)
        except (ValueError, TypeError) as error:
            raise InputError(
                f"random_state must be None, a whole number from 0 or a RandomState; got {random_state!r}."
            ) from error
    return action_labels(problem)[draw(mixtures, uniforms)]
