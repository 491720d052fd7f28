"""The decision problem: finitely many actions, utility linear in the outcome.

``u(a, p) = r_a . p + c_a`` with ``c_a = -costs[a]`` (docs/theory.md, section 1).
The tie-break is one and the same everywhere in the library: among equally
good actions the one declared first.
"""

from collections.abc import Callable, Sequence
from dataclasses import asdict, dataclass
from typing import Any

import numpy as np

from prudent.arrays import FloatArray, IntArray, finite_array, labels
from prudent.arrays.chunks import one_blas_thread
from prudent.errors import InputError
from prudent.files import Document, Record
from prudent.problem.discretization import PARTS, Discretization, amounts_error, between, grid_errors
from prudent.spaces import Box, Grid, Label, Simplex, Space, require_space, space_from_dict


@dataclass(frozen=True, eq=False, repr=False, slots=True)
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
    unit : str, optional
        Of utility, such as "EUR"; for sentences.

    Attributes
    ----------
    rewards : array of shape (m, d), read-only
    costs : array of shape (m,), read-only
    actions : tuple of labels, in declaration order
    space : Box or Simplex
    discretization : Discretization or None
        What the grids behind :meth:`from_utility` can cost.

    Examples
    --------
    >>> import prudent
    >>> problem = prudent.DecisionProblem([0.72, 0.90, 1.08], [0.02, 0.05, 0.10])
    >>> problem.best_response([0.1, 0.2, 0.9]).tolist()
    [0, 1, 2]
    >>> problem.value([0.5])
    array([0.44])
    """

    rewards: FloatArray
    costs: FloatArray
    actions: tuple[Label, ...]
    space: Space
    discretization: Discretization | None
    unit: str | None

    def __init__(
        self,
        rewards: Any,
        costs: Any = None,
        *,
        actions: Sequence[Label] | None = None,
        space: Space | None = None,
        unit: str | None = None,
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
        space = Box(0.0, 1.0) if space is None else require_space(space)
        if unit is not None and not isinstance(unit, str):
            raise InputError(f"unit must be text; got {unit!r}.")
        fields = (_frozen(table), _frozen(charges), tuple(names), space.with_dimension(d), None, unit)
        for name, value in zip(self.__slots__, fields, strict=True):
            object.__setattr__(self, name, value)
        with np.errstate(over="ignore", invalid="ignore"):
            bounded = np.isfinite(self.utility_range)
        if not bounded:
            raise InputError("rewards and costs are too large: the utility range overflows a float.")

    @classmethod
    def from_payoffs(
        cls,
        table: Any,
        *,
        actions: Sequence[Label] | None = None,
        classes: Sequence[Label] | None = None,
        unit: str | None = None,
    ) -> "DecisionProblem":
        """Build a problem on the simplex from a payoff per (action, class).

        ``table`` is an array of shape ``(m, n_classes)``, or a pandas or polars
        frame with one row per action and one column per class. A pandas index
        names the actions, and columns name the classes.

        Examples
        --------
        >>> import prudent
        >>> problem = prudent.DecisionProblem.from_payoffs(
        ...     [[0, -10], [-1, -1]], actions=["wait", "treat"], classes=["healthy", "ill"])
        >>> problem.best_response([[0.95, 0.05], [0.5, 0.5]]).tolist()
        [0, 1]
        """
        table, actions, classes = _read_frame(table, actions, classes)
        payoffs = finite_array(table, "table")
        if payoffs.ndim != 2 or payoffs.shape[0] == 0 or payoffs.shape[1] < 2:
            raise InputError(
                f"table must have shape (actions, classes) with at least two classes; got {payoffs.shape}."
            )
        return cls(payoffs, actions=actions, space=Simplex(payoffs.shape[1], classes=classes), unit=unit)

    @classmethod
    def from_utility(
        cls,
        u: Callable[[Any, float], float],
        actions: Sequence[Label],
        outcome_grid: Any,
        *,
        amounts: bool = False,
        unit: str | None = None,
    ) -> "DecisionProblem":
        """Build a problem for any nonlinear ``u(action, outcome)`` of a number.

        Outcomes are numbers in their own units between the first and the last point of ``outcome_grid``; forecasts are
        probabilities of its points, see :func:`prudent.forecasts_from`. Utilities are taken to be linear between
        points, less what that may be too high by: ``problem.discretization`` says how much is lost. With ``amounts``
        actions are numbers in increasing order, and stand for all between them.

        Examples
        --------
        >>> import prudent
        >>> newsvendor = prudent.DecisionProblem.from_utility(
        ...     lambda stock, demand: 5 * min(stock, demand) - 3 * stock, [0, 10, 20], outcome_grid=[0, 10, 20, 30])
        >>> newsvendor.utility([4, 17.5]).tolist()
        [[0.0, -10.0, -40.0], [0.0, 20.0, 27.5]]
        """
        if not callable(u):
            raise InputError(f"u must be a function of an action and an outcome; got {type(u).__name__}.")
        grid, names = Grid(outcome_grid), labels(actions, "actions")
        if not names:
            raise InputError("actions must name at least one action; got none.")
        tried: Any = between(Grid(names).points, 2).tolist() if amounts else names
        looked = between(grid.points, PARTS).tolist()
        utilities = finite_array([[u(a, y) for y in looked] for a in tried], "u(action, outcome)")
        lost = amounts_error(np.array(tried), utilities) if amounts else None
        utilities = utilities[:: 1 + amounts]
        below, above = grid_errors(utilities, grid.points)
        problem = cls(utilities[:, ::PARTS], np.full(len(names), below), actions=names, space=grid, unit=unit)
        object.__setattr__(problem, "discretization", Discretization(below + above, lost))
        return problem

    @property
    def n_actions(self) -> int:
        """Number of actions."""
        return len(self.actions)

    @property
    def dimension(self) -> int:
        """Number of outcome coordinates or classes."""
        return int(self.rewards.shape[1])

    @property
    def utility_bounds(self) -> tuple[FloatArray, FloatArray]:
        """Smallest and largest utility of every action over the outcome space, each ``(m,)``."""
        support = self.space.support_minimum
        return support(self.rewards) - self.costs, -support(-self.rewards) - self.costs

    @property
    def utility_range(self) -> float:
        """Largest minus smallest utility over actions and outcome space."""
        lowest, highest = self.utility_bounds
        return float(highest.max() - lowest.min())

    def utility(self, outcomes: Any) -> FloatArray:
        """Compute the utility of every action for every outcome (class labels, too) or belief, shape ``(n, m)``."""
        return self.linear_utility(self.space.place_outcomes(outcomes))

    def value(self, beliefs: Any) -> FloatArray:
        """Compute ``val(p) = max_a u(a, p)`` for every belief, shape ``(n,)``."""
        return self.linear_utility(self.space.place(beliefs, "beliefs")[0]).max(axis=1)

    def best_response(self, beliefs: Any) -> IntArray:
        """Return the index of the best action for every belief; ties go to the first declared."""
        return self.best_actions(self.space.place(beliefs, "beliefs")[0])

    def linear_utility(self, points: FloatArray) -> FloatArray:
        """Compute utilities at validated points ``(n, d)``; column by column, so a row never depends on others."""
        utilities = np.broadcast_to(-self.costs, (points.shape[0], self.n_actions)).copy()
        for j in range(self.dimension):
            utilities += points[:, j, None] * self.rewards[:, j]
        return utilities

    def best_actions(self, points: FloatArray) -> IntArray:
        """Return the index of the best action at validated points ``(n, d)``; ties go to the first declared.

        The same numbers as :meth:`linear_utility`, action by action on long columns.
        """
        columns = np.ascontiguousarray(points.T)
        best, highest = np.zeros(len(points), dtype=np.int64), np.full(len(points), -np.inf)
        for action, rewards in enumerate(self.rewards):
            utility = np.full(len(points), -self.costs[action])
            for column, reward in zip(columns, rewards, strict=True):
                utility += column * reward
            np.copyto(best, action, where=utility > highest)
            np.maximum(highest, utility, out=highest)
        return best

    def best_mixtures(self, points: FloatArray) -> FloatArray:
        """Write best responding at validated points as mixtures ``(n, m)``."""
        return np.eye(self.n_actions).take(self.best_actions(points), axis=0)

    def of_rows(self, n: int, rewards: Any = None, costs: Any = None) -> tuple[FloatArray, FloatArray]:
        """Read rewards ``(n, m, d)`` and costs ``(n, m)`` of every row, from frames by name; the others are its own."""
        m, d = self.rewards.shape
        own_rewards = self.rewards if rewards is None else self._per_row(rewards, "rewards", (n, m, d))
        own_costs = self.costs if costs is None else self._per_row(costs, "costs", (n, m))
        return np.broadcast_to(own_rewards, (n, m, d)), np.broadcast_to(own_costs, (n, m))

    def utilities_of_rows(self, points: FloatArray, rewards: Any = None, costs: Any = None) -> FloatArray:
        """Compute utilities ``(n, m)`` at validated points, with rewards and costs of rows where they are given."""
        if rewards is None and costs is None:
            return self.linear_utility(points)
        own_rewards, own_costs = self.of_rows(len(points), rewards, costs)
        return np.einsum("nmd,nd->nm", own_rewards, points) - own_costs

    def _per_row(self, values: Any, name: str, shape: tuple[int, ...]) -> FloatArray:
        """Read one entry per row, action and (for rewards) coordinate; a single coordinate may be left out."""
        if hasattr(values, "columns"):
            known = {str(column): column for column in values.columns}
            if set(known) != {str(action) for action in self.actions}:
                raise InputError(f"{name} must have one column per action, {list(self.actions)}; got {list(known)}.")
            values = np.column_stack([np.asarray(values[known[str(action)]]) for action in self.actions])
        array = finite_array(values, name)
        if len(shape) == 3 and (*array.shape, 1) == shape:
            return array[..., None]
        if array.shape != shape:
            entries = "action and coordinate" if len(shape) == 3 else "action"
            raise InputError(f"{name} must have shape {shape}: one entry per row, {entries}; got {array.shape}.")
        return array

    def expected_utilities(
        self, mixtures: Sequence[FloatArray], worlds: Sequence[FloatArray], weights: FloatArray
    ) -> FloatArray:
        """Compute ``sum_i w_i sum_a mixture_i(a) u(a, p_i)`` of policies in worlds, shape ``(policies, worlds)``."""
        results = np.empty((len(mixtures), len(worlds)))
        with one_blas_thread():  # products with few columns take longer on several
            for result, mixture in zip(results, mixtures, strict=True):
                stakes, cost = (mixture @ self.rewards) * weights[:, None], weights @ mixture @ self.costs
                result[:] = [np.vdot(stakes, world) - cost for world in worlds]
        return results

    def to_dict(self) -> Document:
        """Describe the problem for a file."""
        grid = self.discretization
        return {
            "rewards": self.rewards.tolist(),
            "costs": self.costs.tolist(),
            "actions": list(self.actions),
            "space": self.space.to_dict(),
            "discretization": None if grid is None else asdict(grid),
            "unit": self.unit,
        }

    @classmethod
    def from_dict(cls, document: Document) -> "DecisionProblem":
        """Rebuild a problem from :meth:`to_dict`, checking every field."""
        record = Record(document, "problem", "rewards", "costs", "actions", "space", "discretization", "unit")
        problem = cls(
            record.typed("rewards", list),
            record.typed("costs", list),
            actions=record.typed("actions", list),
            space=space_from_dict(record["space"]),
            unit=record["unit"],
        )
        if record["discretization"] is not None:
            known = Discretization.from_dict(record["discretization"])
            object.__setattr__(problem, "discretization", known)
        return problem

    def __eq__(self, other: object) -> bool:
        if not isinstance(other, DecisionProblem):
            return NotImplemented
        return self._key() == other._key()

    def __hash__(self) -> int:
        return hash(self._key())

    def __repr__(self) -> str:
        costs = f", costs={self.costs.tolist()}" if self.costs.any() else ""
        rewards = self.rewards[:, 0] if self.dimension == 1 else self.rewards
        unit = f", unit={self.unit!r}" if self.unit else ""
        return f"DecisionProblem({rewards.tolist()}{costs}, actions={list(self.actions)}, space={self.space!r}{unit})"

    def __reduce__(self) -> tuple[Any, ...]:
        return DecisionProblem.from_dict, (self.to_dict(),)

    def __deepcopy__(self, memo: dict[int, Any]) -> "DecisionProblem":
        return self  # immutable, so every copy may be the same object

    def _key(self) -> tuple[Any, ...]:
        numbers = self.rewards.shape, self.rewards.tobytes(), self.costs.tobytes()
        return *numbers, repr(self.actions), self.space, self.discretization  # 1, 1.0 and True are other actions


def _frozen(array: FloatArray) -> FloatArray:
    copy = np.array(array, dtype=np.float64) + 0.0  # turns -0.0 into 0.0, so that equal problems have equal bytes
    copy.setflags(write=False)
    return copy


def _read_frame(table: Any, actions: Any, classes: Any) -> tuple[Any, Any, Any]:
    """Name classes by the columns and actions by the index of a data frame; refuse other names beside them."""
    columns = getattr(table, "column_names", getattr(table, "columns", None))  # Arrow; pandas and polars
    if columns is None:
        return table, actions, classes
    named, index = labels(columns, "the columns of table"), labels(getattr(table, "index", ()), "the index of table")
    plain = index == list(range(len(index)))  # 0, 1, 2, ... names nothing
    for name, given, own in (("classes", classes, named), ("actions", None if plain else actions, index)):
        if given is not None and labels(given, name) != own:
            raise InputError(f"{name} must be those of table in their order, {own}, or be left out; got {given}.")
    return table, actions if plain else index, named
