"""What all policies share: forecasts in, mixtures and reproducible actions out."""

from __future__ import annotations

import os
from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Any, Literal

import numpy as np
from sklearn.base import BaseEstimator
from sklearn.utils import check_random_state
from sklearn.utils.validation import check_is_fitted, validate_data

from prudent.arrays import (
    AnyArray,
    Context,
    FloatArray,
    IntArray,
    context_rows,
    read_context,
    require_context,
)
from prudent.arrays.chunks import over_rows
from prudent.cases.cases import Cases, read_cases
from prudent.cases.mean_bounds import PastErrors
from prudent.errors import InputError
from prudent.policies.draws import draw, draw_exact, uniforms_from_keys
from prudent.problem import DecisionProblem
from prudent.spaces import Label

if TYPE_CHECKING:
    from prudent.policies.explanation import Band, Explanation

_ROWS_AT_ONCE = 1 << 15


class Policy(BaseEstimator):  # type: ignore[misc]  # scikit-learn ships no types
    """A map from forecasts to distributions over actions.

    Subclasses say which mixture they play at validated forecasts.
    """

    problem: DecisionProblem
    past_: PastErrors | None = None
    blind = False  # True if what is played does not depend on rewards and costs, so that it is not told those of rows
    _draws: dict[str, Any]

    @property
    def columns(self) -> tuple[str, ...]:
        """Names of the columns of context that the rule looks at."""
        return ()

    def predict_proba(self, X: Any, *, context: Any = None) -> FloatArray:
        """Return the mixture played at each forecast, shape ``(n, m)``; rows lie on the simplex."""
        return self._mixtures(*self._rows(X, context))

    def predict(
        self, X: Any, keys: Any = None, *, output: str = "action", context: Any = None, exact: bool = False, **own: Any
    ) -> Any:
        """Draw one action label per forecast.

        Parameters
        ----------
        X : array of shape (n,) or (n, d), or Cases
            Forecasts. For those of a table (:func:`prudent.scan`) the result is a lazy table with one more column;
            nothing is computed yet.
        keys : sequence of length n, optional
            Record ids: the same key and ``salt`` give the same draw on any machine and in any engine; the ids of cases
            are keys. Without keys draws come from ``random_state``, one after another since the last fit.
        output : str
            Name of the new column of a table.
        context : frame or mapping of columns, optional
            Where the rule looks at more than forecasts; cases bring their own.
        exact : bool
            For a policy with a capacity of one action: exactly as many rows get it as their probabilities add up to,
            rounded up or down, and every row with its own probability. The same ids then give the same draws in any
            order of rows, but not beside other ids.
        **own : arrays
            ``rewards`` and ``costs`` of every row, for a robust policy that was fitted with such.

        Examples
        --------
        >>> import duckdb, prudent
        >>> table = duckdb.sql("SELECT * FROM (VALUES (1, 0.2::DOUBLE), (2, 0.7)) t(id, risk)")
        >>> problem = prudent.DecisionProblem([0.0, 1.0], [0.0, 0.5], actions=["wait", "act"])
        >>> prudent.PlugInPolicy(problem).predict(prudent.scan(table, "risk", ids="id")).order("id").fetchall()
        [(1, 0.2, 'wait'), (2, 0.7, 'act')]
        """
        if isinstance(X, Cases):
            if hasattr(X, "table") and context is None and not own:
                if exact:
                    raise InputError("exact=True needs all rows at once, in memory; a table decides row by row.")
                from prudent.policies.play import decide_table

                return decide_table(self, X, output)
            keys = X.ids if keys is None else keys
        mixtures = self.predict_proba(X, context=context, **own)
        return action_labels(self._problem)[self._draw(mixtures, keys, exact=exact)]

    def worst_case_belief(self, X: Any, *, context: Any = None) -> FloatArray:
        """Return, for each forecast, the belief that the policy guards against, or acts on.

        For robust policies a pointwise minimiser of ``val(p) + s(v).p``; a worst world of a sample, whose moments are
        right, is that of :func:`prudent.worst_case`.
        """
        return self._beliefs(*self._rows(X, context))

    def certify(
        self,
        X: Any,
        *,
        context: Any = None,
        horizon: str = "average",
        realised: bool = False,
        sample_weight: Any = None,
        **own: Any,
    ) -> Any:
        """Bound what the rule earns on these cases from below, without their outcomes, by past outcomes of others.

        For rules that :func:`prudent.advise` returns; robust policies have certificates of their own.

        Parameters
        ----------
        X : array of shape (n,) or (n, d), or Cases
            Forecasts of the cases.
        context : frame or mapping of columns, optional
            Where the rule looks at more than forecasts.
        horizon : {"average", "next period"}
            Whether the bound is for the mean over many periods, or for the one that comes next.
        realised : bool
            Whether it is for the mean that will be realised, which varies by chance, or for the expected one.
        sample_weight : array of shape (n,), optional
        **own : arrays
            ``rewards`` and ``costs`` of every row, where each case has its own.
        """
        from prudent.policies.horizons import utility_bound

        columns = {"weights": sample_weight, "context": context}
        return utility_bound(self, self.past_, X, horizon=horizon, realised=realised, own=own, **columns)

    def acts_on(self, forecasts: FloatArray, context: Context | None = None) -> FloatArray:
        """Return the forecasts that utilities are promised at: those given, or recalibrated ones."""
        return forecasts

    @property
    def deterministic(self) -> bool:
        """True if the kind of policy never mixes actions, so that nothing is drawn."""
        return False

    def save(self, path: str | os.PathLike[str]) -> None:
        """Write the policy to one JSON file, whole or not at all; read it with :func:`prudent.load`."""
        from prudent.policies.persistence import save

        save(self, path)

    def turning_points(self) -> FloatArray:
        """Where the rule may turn, on forecasts of one coordinate, besides the ends, as far as that is known."""
        from prudent.policies.explanation import turning_points

        return turning_points(self)

    def at_row(self) -> Policy:
        """Return the policy of one case: itself, but for robust policies with rewards or costs of every row."""
        return self

    def predict_amounts(self, X: Any, **own: Any) -> FloatArray:
        """Return the mean amount of what is played at each forecast, without draws.

        For problems from ``from_utility(amounts=True)`` with a utility that is concave in the amount: it earns at least
        as much as the mixture at every outcome.
        """
        grid = self._problem.discretization
        if getattr(grid, "amounts_error", None) is None:
            raise InputError("amounts need a problem from from_utility(amounts=True), with a utility concave in them.")
        return self.predict_proba(X, **own) @ np.array(self._problem.actions, dtype=np.float64)

    def _case(self, context: Any) -> Context:
        """Read the context of one case."""
        known = {name: np.atleast_1d(column) for name, column in read_context(context).items()}
        return require_context(known, self.columns, 1)

    def explain(self, forecast: Any, *, context: Any = None, **own: Any) -> Explanation:
        """Explain what is played at one forecast: the belief behind it, the test that binds, the next action.

        For a policy that looks at context give that of this case, ``context={"region": "north"}``; for one that was
        fitted with rewards or costs per row ``own`` are those of this case.

        Examples
        --------
        >>> import prudent
        >>> problem = prudent.DecisionProblem([0.0, 1.0], [0.0, 0.5], actions=["wait", "act"])
        >>> print(prudent.PlugInPolicy(problem).explain(0.45))
        At the forecast 0.45 the action is wait. It believes the forecast and expects a utility of 0. It changes to act
        0.05 away, up to 0.5.
        """
        from prudent.policies.explanation import explain

        return explain(self.at_row(**own), forecast, self._case(context))

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
        dialect : "duckdb" or "spark"
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

        return policy_to_sql(self, dialect, forecast, output, key, table, invalid)

    def bands(self, *, context: Any = None, **own: Any) -> tuple[Band, ...]:
        """Return the thresholds of a policy for forecasts of one coordinate: which actions are played where.

        For a policy that looks at context give that of one case, ``context={"region": "north"}``; for one that was
        fitted with rewards or costs per row ``own`` are those of one case.

        All of them, found by bisection over doubles, where tests are linear or constant in each bin and region. For
        polynomials, logarithms and functions bands that fit between two of 4,097 evenly spaced forecasts, because the
        tilt turns there, are not seen.

        Examples
        --------
        >>> import prudent
        >>> policy = prudent.PlugInPolicy(prudent.DecisionProblem([0.0, 1.0], [0.0, 0.25], actions=["wait", "act"]))
        >>> [(band.first, str(band)) for band in policy.bands()]
        [(0.0, 'wait'), (0.25000000000000006, 'act')]
        """
        from prudent.policies.explanation import action_bands

        return action_bands(self.at_row(**own), self._case(context))

    @property
    def _problem(self) -> DecisionProblem:
        """The problem that was fitted; a parameter changed since then waits for the next fit."""
        fitted = getattr(self, "fitted_", None)
        return require_problem(self.problem if fitted is None else fitted.problem)

    def _in_chunks(
        self, mixtures: Callable[..., FloatArray], forecasts: FloatArray, *given: Context | None
    ) -> FloatArray:
        """Apply a rule that looks at each forecast alone to many, a part at a time."""
        result = np.empty((len(forecasts), self._problem.n_actions))

        def fill(part: slice) -> None:
            result[part] = mixtures(forecasts[part], *(context_rows(each, part) for each in given))

        try:
            over_rows(fill, len(forecasts), rows=_ROWS_AT_ONCE, threads_from=4 * _ROWS_AT_ONCE)
        except InputError:
            # All rows at once, so that the error names the caller's rows.
            mixtures(forecasts, *given)
            raise
        return result

    def _mixtures(self, forecasts: FloatArray, context: Context | None = None) -> FloatArray:
        raise AssertionError("every policy defines its mixtures")

    def on_rows(self, rows: Any) -> FloatArray:
        """Return the mixture played at each row in memory that takes part."""
        return self._mixtures(rows.forecasts, rows.context)

    def _beliefs(self, forecasts: FloatArray, context: Context | None = None) -> FloatArray:
        return forecasts.copy()

    def _draw(self, mixtures: FloatArray, keys: Any, *, exact: bool = False) -> IntArray:
        """Draw an action per row: by keys and the policy's salt, or from its ``random_state``."""
        n, counted = len(mixtures), None
        if exact:
            rationing: Any = getattr(getattr(self, "fitted_", None), "rationing", None)
            if rationing is None:
                raise InputError("exact=True needs a policy with a capacity: RobustPolicy(..., capacity=...).")
            counted = rationing.resources.counted
        if keys is not None:
            salt = require_salt(getattr(self, "salt", ""))
            uniforms = uniforms_from_keys(keys, salt, n)
            start = uniforms_from_keys([np.sort(uniforms).tobytes()], salt, 1) if exact else uniforms[:0]
        else:
            given = getattr(self, "random_state", None)
            draws = self.__dict__.setdefault("_draws", {})  # changed in place: predict sets no attribute
            if "stream" not in draws or draws["given"] is not given:
                try:
                    draws |= {"given": given, "stream": check_random_state(given)}
                except (ValueError, TypeError) as error:
                    raise InputError(
                        f"random_state must be None, a whole number from 0 or a RandomState; got {given!r}."
                    ) from error
            uniforms, start = draws["stream"].random_sample(n), draws["stream"].random_sample(int(exact))
        return draw(mixtures, uniforms) if counted is None else draw_exact(mixtures, counted, uniforms, float(start[0]))

    def _rows(self, X: Any, context: Any) -> tuple[FloatArray, Context]:
        """Validate forecasts, and the columns of context that the rule looks at."""
        forecasts = self._place(X)
        return forecasts, require_context(read_cases(X, context=context).context, self.columns, len(forecasts))

    def _place(self, X: Any) -> FloatArray:
        """Validate forecasts against what was fitted."""
        check_is_fitted(self)
        problem = self._problem
        given = X.forecasts if isinstance(X, Cases) and not hasattr(X, "table") else X
        shape: tuple[int, ...] = getattr(given, "shape", ())
        if len(shape) == 2 and 0 < shape[1] != problem.dimension:
            raise InputError(
                f"X has {shape[1]} features, but {type(self).__name__} is expecting {problem.dimension} features as "
                f"input: forecasts must have one column per coordinate of the outcome space."
            )
        forecasts, _ = problem.space.place(given, "forecasts")
        named = _named_columns(given)
        if hasattr(self, "n_features_in_") and (named or hasattr(self, "feature_names_in_")):
            validate_data(self, given if named else forecasts, reset=False, skip_check_array=True)
        return forecasts

    def _remember(self, X: Any) -> None:
        """Note width and column names of the forecasts; called last, so that a failed fit leaves no trace."""
        given = getattr(X, "forecasts", X)
        if _named_columns(given):
            validate_data(self, given, reset=True, skip_check_array=True)
        elif hasattr(self, "feature_names_in_"):
            del self.feature_names_in_
        self.n_features_in_ = self.problem.dimension
        self._draws = {}  # predict draws on; a fit begins anew


def action_labels(problem: DecisionProblem) -> AnyArray:
    """Return the labels as an array of one dtype, or of objects where types differ."""
    one_type = len({type(action) for action in problem.actions}) == 1
    return np.array(problem.actions, dtype=None if one_type else object)


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
