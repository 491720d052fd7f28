"""Choose an algorithm, run it, certify what it proposes.

The order is from exact and cheap to general; the certificate's message says
which one was taken and why. Whatever an algorithm returns, the bounds come
from :mod:`prudent.solvers.bounds`.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import nullcontext
from dataclasses import replace
from operator import attrgetter
from typing import TYPE_CHECKING

from prudent.arrays import EPSILON, FloatArray
from prudent.arrays.chunks import one_blas_thread
from prudent.cases.memory_rows import Ambiguity, first_rows
from prudent.guarantees.evaluated import equal_rows
from prudent.solvers.bounds import certified_lower, certified_upper, certified_value
from prudent.solvers.closed_forms import no_tests, plug_in_regions, scalar_dual, separated_rows
from prudent.solvers.game import Game, LocalGame, local_game
from prudent.solvers.solution import Certificate, Found, Solution, SolverOptions, Status

if TYPE_CHECKING:
    from prudent.cases.table_rows import TableAmbiguity
    from prudent.problem import DecisionProblem

#: A solution is called optimal if its gap is at most this share of the utility range.
TOLERANCE = 1e-6
_ROWS_FOR_THREADS = 1_000

METHODS = (
    "no tests",
    "plug-in regions",
    "separated rows",
    "scalar",
    "smoothed dual",
    "row clusters",
    "interior point",
)

REASONS = {
    "full": "full calibration leaves one world, the forecasts themselves",
    "no tests": "there are no tests, so every world is allowed",
    "plug-in regions": "the tests contain this decision's own regions, so best responding is optimal",
    "separated rows": "the tests tell all distinct rows apart, so each has its mean forecast as belief",
    "scalar": "one coordinate and one test, so the dual is one-dimensional and its optimum a weighted quantile",
    "saddle": "the policy is optimal, so the multipliers and the worst world of the best policy are its own",
    "smoothed dual": "many rows and vertices, so the dual is nearly smooth and Newton's method maximises it",
    "row clusters": "many rows: solved on clusters of rows, refined until the bounds computed on all rows meet",
    "interior point": "general tests, dimensions and slack",
}


def solve(
    game: Game, ambiguity: Ambiguity, local: LocalGame | None = None, options: SolverOptions | None = None
) -> Solution:
    """Find multipliers and a worst world for a game on an ambiguity set, with certified bounds.

    Parameters
    ----------
    game : Game
    ambiguity : Ambiguity
    local : LocalGame, optional
        The local game that a policy will play, if it was made before.
    options : SolverOptions, optional
        Which algorithm to take, or when.
    """
    # Products with few columns stay on one thread; for few rows even asking for it takes too long.
    with one_blas_thread() if ambiguity.n_rows >= _ROWS_FOR_THREADS else nullcontext():
        return _solve(game, ambiguity, local_game(game) if local is None else local, options or SolverOptions())


def _solve(game: Game, ambiguity: Ambiguity, local: LocalGame, options: SolverOptions) -> Solution:
    if ambiguity.full:
        certificate = Certificate(*certified_value(game, ambiguity), Status.OPTIMAL, _reason("full"))
        return Solution(None, ambiguity.forecasts.copy(), certificate, "full")
    # Rows with equal tests, and equal rewards where they have their own, are merged; not if hardly any are equal.
    tests = ambiguity.tests
    equal = tests.cells if game.shared else equal_rows(tests.table, game.rewards, game.offsets)
    if equal is None:
        return _propose(game, ambiguity, local, options)
    count, index = equal
    if not game.shared:
        game = game.take(first_rows(index, count))
        local = local_game(game)
    solution = _propose(game, ambiguity.merge(index, count), local, options)
    return replace(solution, beliefs=solution.beliefs.take(index, axis=0))


def best_policy(problem: DecisionProblem, worlds: Ambiguity | TableAmbiguity, *, randomize: bool = True) -> Solution:
    """Find multipliers of the best policy, or of the best deterministic rule; solutions are cached with the rows."""
    if not isinstance(worlds, Ambiguity):
        # Late, so that the first fit in memory stays fast.
        from prudent.solvers.table_solver import BestPolicy, solve_table

        return solve_table(BestPolicy(problem), worlds).solution
    game = Game.of_problem(problem)
    if worlds.cache is None or worlds.key is None:
        mixed = solve(game, worlds)
    else:
        mixed = worlds.cache.get(("optimum", worlds.key), lambda: solve(game, worlds))
    if randomize:
        return mixed
    from prudent.solvers.pure import solve_pure  # late: it builds on this file

    return solve_pure(game, worlds, mixed)


def worst_world(
    problem: DecisionProblem, worlds: Ambiguity, mixtures: FloatArray, optimum: Solution | None = None
) -> Solution:
    """Find the worst world for mixtures ``(n, m)``.

    An optimal policy has the same worst world as the best one, where that is given, and the same multipliers prove it.
    """
    game = Game.of_problem(problem).against(mixtures)
    if optimum is not None and optimum.multipliers is not None:
        reached = worlds.weights @ game.best_utilities(optimum.beliefs)
        if reached >= optimum.lower - TOLERANCE * game.scale:
            found = optimum.multipliers, optimum.beliefs
            solution = _certified(game, worlds, local_game(game), "saddle", found)
            if solution.status is Status.OPTIMAL:
                return solution
    return solve(game, worlds)


def certificate_of(lower: float, upper: float, scale: float, message: str) -> Certificate:
    """Say whether two bounds prove optimality, with utilities of this range."""
    upper = max(upper, lower)
    relative = (upper - lower) / scale
    last_digits = 16 * EPSILON * max(abs(lower), abs(upper))
    if relative <= TOLERANCE or upper - lower <= last_digits:
        return Certificate(lower, upper, Status.OPTIMAL, message)
    message += f" The gap is {relative:.1e} of the utility range; both bounds hold, optimality is not proven."
    return Certificate(lower, upper, Status.NOT_PROVEN, message)


def _certified(game: Game, rows: Ambiguity, local: LocalGame, method: str, found: Found) -> Solution:
    """Compute the bounds that a proposal comes to."""
    multipliers, beliefs = found
    lower = certified_lower(game, rows, multipliers, local)
    upper, world = certified_upper(game, rows, beliefs)
    certificate = certificate_of(lower, upper, game.scale, _reason(method))
    return Solution(multipliers, world, certificate, method)


def _reason(method: str) -> str:
    return f"Method: {method}, because {REASONS[method]}."


def _propose(game: Game, rows: Ambiguity, local: LocalGame, options: SolverOptions) -> Solution:
    """Run the first algorithm that applies and closes the gap, or the one asked for."""
    best: Solution | None = None
    for method, algorithm in _algorithms(game, rows, local, options):
        found = algorithm() if options.method in (None, method) else None
        if found is None:
            continue
        latest = _certified(game, rows, local, method, found)
        if best is not None:  # where a gap was left, keep the better multipliers and the better world
            lower, upper = max(best, latest, key=attrgetter("lower")), min(best, latest, key=attrgetter("upper"))
            certificate = certificate_of(lower.lower, upper.upper, game.scale, _reason(method))
            latest = Solution(lower.multipliers, upper.beliefs, certificate, method)
        best = latest
        if best.status is Status.OPTIMAL:
            return best
    if best is None:
        raise ValueError(f"method {options.method!r} does not apply here; choose from {METHODS} or leave it out.")
    return best


def _algorithms(
    game: Game, rows: Ambiguity, local: LocalGame, options: SolverOptions
) -> Iterator[tuple[str, Callable[[], Found | None]]]:
    """Name what may apply, from exact and cheap to general."""
    if rows.tests.n_moments == 0:
        yield "no tests", lambda: no_tests(rows, local)
    if game.shared:
        yield "plug-in regions", lambda: plug_in_regions(rows)
    yield "separated rows", lambda: separated_rows(game, rows, local)
    if rows.tests.n_moments == 1 and game.dimension == 1 and (game.shared or game.n_actions == 1):
        yield "scalar", lambda: scalar_dual(game, rows, local, options.sample)
    from prudent.solvers import reduced_solvers as general  # late: keeps `import prudent` and its first fit fast

    yield "smoothed dual", lambda: general.by_smoothing(game, rows, local, options)
    yield "row clusters", lambda: general.by_clusters(game, rows, local, options)
    yield "interior point", lambda: general.by_interior_point(game, rows)
    yield "interior point", lambda: general.by_simpler_program(game, rows)
    yield "interior point", lambda: general.by_linear_program(game, rows)
