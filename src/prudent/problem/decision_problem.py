"""The decision problem: finitely many actions, utility linear in the outcome.

``u(a, p) = r_a . p + c_a`` with ``c_a = -costs[a]`` (docs/theory.md, section 1).
The tie-break is one and the same everywhere in the library: among equally
good actions the one declared first.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from prudent.arrays import FloatArray, IntArray, finite_array, labels, listed
from prudent.errors import FileFormatError, InputError
from prudent.problem.discretization import Discretization
from prudent.problem.payoff_frames import column_names, select_rows
from prudent.spaces import Box, Label, Simplex, Space, space_from_dict

__all__ = ["DecisionProblem"]

_ROWS_AT_ONCE = 1 << 15


class DecisionProblem:
    """Finitely many actions with utilities linear in the outcome.

    Parameters
    ----------
    rewards : array of shape (m,) or (m, d)
        ``rewards[a]`` multiplies the outcome.
    costs : array of shape (m,), optional
        Subtracted from the utility of each action; zero by default.
    actions : sequence of str, int, float or bool, optional
        Labels, distinct; ``0 .. m-1`` by default.
    space : Box or Simplex
        Where outcomes live; ``Box(0, 1)`` in every coordinate by default.

    Examples
    --------
    >>> import prudent
    >>> problem = prudent.DecisionProblem([0.72, 0.90, 1.08], [0.02, 0.05, 0.10])
    >>> problem.best_response([0.1, 0.2, 0.9]).tolist()
    [0, 1, 2]
    >>> problem.value([0.5])
    array([0.44])
    """

    __slots__ = ("_actions", "_costs", "_discretization", "_rewards", "_space")

    def __init__(
        self,
        rewards: Any,
        costs: Any = None,
        *,
        actions: Sequence[Label] | None = None,
        space: Space | None = None,
    ) -> None:
        table = finite_array(rewards, "rewards")
        if table.ndim == 1:
            table = table[:, None]
        if table.ndim != 2 or 0 in table.shape:
            raise InputError(
                f"rewards must have shape (m,) or (m, d) with at least one action; got {np.shape(rewards)}."
            )
        m, d = table.shape
        charges = np.zeros(m) if costs is None else finite_array(costs, "costs")
        if charges.shape != (m,):
            raise InputError(f"costs must have shape ({m},), one per action; got {charges.shape}.")
        names = list(range(m)) if actions is None else labels(actions, "actions")
        if len(names) != m:
            raise InputError(f"actions must name {m} actions, as many as rewards; got {len(names)}.")
        space = Box(0.0, 1.0) if space is None else space
        if not isinstance(space, (Box, Simplex)):
            raise InputError(f"space must be a Box or a Simplex; got {type(space).__name__}.")
        self._space: Space = space.with_dimension(d)
        self._rewards = _frozen(table)
        self._costs = _frozen(charges)
        self._actions = tuple(names)
        self._discretization: Discretization | None = None
        with np.errstate(over="ignore", invalid="ignore"):
            bounded = np.isfinite(self.utility_range)
        if not bounded:
            raise InputError("rewards and costs are too large: the utility range overflows a float.")

    @classmethod
    def from_payoffs(
        cls, table: Any, *, actions: Sequence[Label] | None = None, classes: Sequence[Label] | None = None
    ) -> DecisionProblem:
        """Build a problem on the simplex from a payoff per (action, class).

        ``table`` is an array of shape ``(m, n_classes)``, or a pandas or polars
        frame with one row per action and one column per class. A pandas index
        names the actions and columns name the classes; ``actions`` and
        ``classes``, if given, put them in order by name.

        Examples
        --------
        >>> import prudent
        >>> problem = prudent.DecisionProblem.from_payoffs(
        ...     [[0, -10], [-1, -1]], actions=["wait", "treat"], classes=["healthy", "ill"])
        >>> problem.best_response([[0.95, 0.05], [0.5, 0.5]]).tolist()
        [0, 1]
        """
        columns = column_names(table)
        if columns is not None:
            named = labels(columns, "the columns of table")
            if classes is not None:
                wanted = labels(classes, "classes")
                if set(wanted) != set(named):
                    raise InputError(
                        f"classes must name the columns of table {named}; got {wanted}: "
                        f"missing {sorted(set(named) - set(wanted), key=str)}, "
                        f"unknown {sorted(set(wanted) - set(named), key=str)}."
                    )
                table = table[wanted] if hasattr(table, "iloc") else table.select(wanted)
            else:
                classes = named
            if hasattr(table, "index"):
                table, actions = select_rows(table, actions)
        payoffs = finite_array(table, "table")
        if payoffs.ndim != 2 or payoffs.shape[0] == 0 or payoffs.shape[1] < 2:
            raise InputError(
                f"table must have shape (actions, classes) with at least two classes; got {payoffs.shape}."
            )
        if classes is not None and len(labels(classes, "classes")) != payoffs.shape[1]:
            raise InputError(
                f"classes must name the {payoffs.shape[1]} columns of table; got {len(list(classes))} names."
            )
        space = Simplex(payoffs.shape[1], classes=classes)
        return cls(payoffs, actions=actions, space=space)

    @classmethod
    def from_utility(
        cls,
        u: Callable[[Any, float], float],
        actions: Sequence[Label],
        outcome_grid: Any,
        *,
        lipschitz: float | None = None,
    ) -> DecisionProblem:
        """Build a problem for any nonlinear ``u(action, outcome)`` over binned outcomes.

        A forecast is then a distribution over the points of ``outcome_grid``;
        every outcome is represented by its nearest grid point, see
        ``problem.discretization`` for what that can cost in utility.

        Examples
        --------
        >>> import prudent
        >>> newsvendor = prudent.DecisionProblem.from_utility(
        ...     lambda stock, demand: 5 * min(stock, demand) - 3 * stock, [0, 10, 20],
        ...     outcome_grid=range(0, 31), lipschitz=5)
        >>> print(newsvendor.discretization)
        31 outcome bins, utility error at most 2.5
        """
        grid = finite_array(listed(outcome_grid, "outcome_grid"), "outcome_grid")
        if not callable(u):
            raise InputError(f"u must be a function of an action and an outcome; got {type(u).__name__}.")
        if grid.ndim != 1 or grid.size < 2 or not (np.diff(grid) > 0).all():
            raise InputError("outcome_grid must be at least two outcomes in increasing order.")
        names = labels(actions, "actions")
        if not names:
            raise InputError("actions must name at least one action; got none.")
        payoffs = finite_array([[u(a, float(y)) for y in grid] for a in names], "u(action, outcome)")
        spacing = np.diff(grid)
        if lipschitz is None:
            slope = float(np.abs(np.diff(payoffs, axis=1) / spacing).max())
        else:
            given = finite_array(lipschitz, "lipschitz")
            if given.ndim or given < 0:
                raise InputError(f"lipschitz must be one number, not negative; got {lipschitz!r}.")
            slope = float(given)
        problem = cls(payoffs, actions=names, space=Simplex(grid.size))
        problem._discretization = Discretization(
            tuple(grid.tolist()), slope * float(spacing.max()) / 2, lipschitz is not None
        )
        return problem

    @classmethod
    def from_basis(
        cls,
        coefficients: Any,
        basis: Sequence[Callable[[float], float]],
        outcome_grid: Any,
        *,
        costs: Any = None,
        actions: Sequence[Label] | None = None,
    ) -> DecisionProblem:
        """Build a problem with ``u(a, y) = coefficients[a] . basis(y) - costs[a]``.

        Forecasts and outcomes are values of the basis functions. The space is
        the bounding box of the basis on the grid, which contains more than the
        attainable points: guarantees are conservative, never optimistic.

        Examples
        --------
        >>> import prudent
        >>> problem = prudent.DecisionProblem.from_basis(
        ...     [[1, 0], [2, -1]], [lambda y: y, lambda y: y * y], [0, 0.5, 1])
        >>> problem.space
        Box([0.0, 0.0], [1.0, 1.0])
        """
        grid = finite_array(listed(outcome_grid, "outcome_grid"), "outcome_grid")
        if grid.ndim != 1 or grid.size < 2:
            raise InputError("outcome_grid must be at least two outcomes.")
        functions = listed(basis, "basis")
        if not functions or not all(callable(phi) for phi in functions):
            raise InputError("basis must be a non-empty list of functions of the outcome.")
        values = finite_array([[phi(float(y)) for phi in functions] for y in grid], "basis(outcome)")
        low, high = values.min(axis=0), values.max(axis=0)
        constant = np.flatnonzero(low == high)
        if constant.size:
            raise InputError(
                f"basis function {int(constant[0])} is constant on the grid; put its share into costs instead."
            )
        return cls(coefficients, costs, actions=actions, space=Box(low.tolist(), high.tolist()))

    @property
    def rewards(self) -> FloatArray:
        """Rewards per action and coordinate, shape ``(m, d)``, read-only."""
        return self._rewards

    @property
    def costs(self) -> FloatArray:
        """Costs per action, shape ``(m,)``, read-only."""
        return self._costs

    @property
    def actions(self) -> tuple[Label, ...]:
        """Action labels in declaration order."""
        return self._actions

    @property
    def n_actions(self) -> int:
        """Number of actions."""
        return len(self._actions)

    @property
    def dimension(self) -> int:
        """Number of outcome coordinates or classes."""
        return int(self._rewards.shape[1])

    @property
    def space(self) -> Space:
        """The outcome space."""
        return self._space

    @property
    def discretization(self) -> Discretization | None:
        """The grid behind ``from_utility``, or None."""
        return self._discretization

    @property
    def utility_range(self) -> float:
        """Largest minus smallest utility over actions and outcome space."""
        lowest = self._space.support_minimum(self._rewards) - self._costs
        highest = -self._space.support_minimum(-self._rewards) - self._costs
        return float(highest.max() - lowest.min())

    def utility(self, outcomes: Any) -> FloatArray:
        """Compute the utility of every action for every outcome (class labels, too) or belief, shape ``(n, m)``."""
        return self.linear_utility(self._space.place_outcomes(outcomes))

    def value(self, beliefs: Any) -> FloatArray:
        """Compute ``val(p) = max_a u(a, p)`` for every belief, shape ``(n,)``."""
        best: FloatArray = self.linear_utility(self._space.place(beliefs, "beliefs")[0]).max(axis=1)
        return best

    def best_response(self, beliefs: Any) -> IntArray:
        """Return the index of the best action for every belief; ties go to the first declared."""
        return self.best_actions(self._space.place(beliefs, "beliefs")[0])

    def linear_utility(self, points: FloatArray) -> FloatArray:
        """Compute utilities at validated points ``(n, d)``; column by column, so a row never depends on others."""
        utilities = np.broadcast_to(-self._costs, (points.shape[0], self.n_actions)).copy()
        for j in range(self.dimension):
            utilities += points[:, j, None] * self._rewards[:, j]
        return utilities

    def best_actions(self, points: FloatArray) -> IntArray:
        """Return the index of the best action at validated points ``(n, d)``; ties go to the first declared.

        The same numbers as :meth:`linear_utility`, action by action on long columns.
        """
        columns = np.ascontiguousarray(points.T)
        best = np.zeros(points.shape[0], dtype=np.int64)
        highest = self._utility_of(0, columns)
        for action in range(1, self.n_actions):
            utility = self._utility_of(action, columns)
            np.copyto(best, action, where=utility > highest)
            np.maximum(highest, utility, out=highest)
        return best

    def best_mixtures(self, points: FloatArray) -> FloatArray:
        """Write best responding at validated points as mixtures ``(n, m)``."""
        return np.eye(self.n_actions).take(self.best_actions(points), axis=0)

    def expected_utility(self, mixtures: FloatArray, points: FloatArray, weights: FloatArray) -> float:
        """Compute ``sum_i w_i sum_a mixture_i(a) u(a, p_i)`` at validated points."""
        return float(self.expected_utilities([mixtures], [points], weights)[0, 0])

    def expected_utilities(
        self, mixtures: Sequence[FloatArray], worlds: Sequence[FloatArray], weights: FloatArray
    ) -> FloatArray:
        """Compute the expected utility of several policies in several worlds, shape ``(policies, worlds)``.

        What a policy expects of each outcome comes first, and each world is then one product with it. Rows are taken
        in parts that fit the cache; equal weights are multiplied with in the end.
        """
        equal = bool((weights == weights[0]).all())
        results = np.zeros((len(mixtures), len(worlds)))
        for first in range(0, len(weights), _ROWS_AT_ONCE):
            part = slice(first, first + _ROWS_AT_ONCE)
            seen = [np.ascontiguousarray(world[part]).reshape(-1) for world in worlds]
            for result, mixture in zip(results, mixtures, strict=True):
                played = mixture[part] if equal else mixture[part] * weights[part, None]
                stakes = (played @ self._rewards).reshape(-1)
                result += [stakes @ world for world in seen]
                result -= (np.ones(len(played)) @ played) @ self._costs
        return results * weights[0] if equal else results

    def _utility_of(self, action: int, columns: FloatArray) -> FloatArray:
        utility = np.full(columns.shape[1], -self._costs[action])
        for column, reward in zip(columns, self._rewards[action], strict=True):
            utility += column * reward
        return utility

    def to_dict(self) -> dict[str, Any]:
        """Describe the problem for a file."""
        grid = self._discretization
        return {
            "rewards": self._rewards.tolist(),
            "costs": self._costs.tolist(),
            "actions": list(self._actions),
            "space": self._space.to_dict(),
            "discretization": None if grid is None else grid.to_dict(),
        }

    @classmethod
    def from_dict(cls, document: dict[str, Any]) -> DecisionProblem:
        """Rebuild a problem from :meth:`to_dict`, checking every field."""
        expected = {"rewards", "costs", "actions", "space", "discretization"}
        if not isinstance(document, dict) or set(document) != expected:
            raise FileFormatError(f"problem must have exactly the fields {sorted(expected)}.")
        for name in ("rewards", "costs", "actions"):
            if not isinstance(document[name], list):
                raise FileFormatError(f"problem.{name} must be a list; got {type(document[name]).__name__}.")
        problem = cls(
            document["rewards"],
            document["costs"],
            actions=document["actions"],
            space=space_from_dict(document["space"]),
        )
        grid = document["discretization"]
        if grid is not None:
            problem._discretization = Discretization.from_dict(grid, problem.dimension)
        return problem

    def __eq__(self, other: object) -> bool:
        if not isinstance(other, DecisionProblem):
            return NotImplemented
        return self._key() == other._key()

    def __hash__(self) -> int:
        return hash(self._key())

    def __repr__(self) -> str:
        costs = f", costs={self._costs.tolist()}" if self._costs.any() else ""
        rewards = self._rewards[:, 0] if self.dimension == 1 else self._rewards
        return f"DecisionProblem({rewards.tolist()}{costs}, actions={list(self._actions)}, space={self._space!r})"

    def __getstate__(self) -> dict[str, Any]:
        return self.to_dict()

    def __setstate__(self, state: dict[str, Any]) -> None:
        twin = DecisionProblem.from_dict(state)
        for name in DecisionProblem.__slots__:
            object.__setattr__(self, name, getattr(twin, name))

    def __copy__(self) -> DecisionProblem:
        return self

    def __deepcopy__(self, memo: dict[int, Any]) -> DecisionProblem:
        return self  # immutable, so every copy may be the same object

    def _key(self) -> tuple[Any, ...]:
        shape = self._rewards.shape
        typed = tuple((type(label).__name__, label) for label in self._actions)
        return (shape, self._rewards.tobytes(), self._costs.tobytes(), typed, self._space, self._discretization)


def _frozen(array: FloatArray) -> FloatArray:
    copy = np.array(array, dtype=np.float64) + 0.0  # turns -0.0 into 0.0, so that equal problems have equal bytes
    copy.setflags(write=False)
    return copy
