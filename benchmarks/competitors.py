"""Who races: each pair of a formulation and a solver that can take it."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from functools import partial

from benchmarks import as_written, expert
from benchmarks.arrays import Arrays

__all__ = ["AS_WRITTEN", "COMPETITORS", "EXPERT", "Competitor", "competitors_for"]

AS_WRITTEN = "as written"
EXPERT = "expert"

#: A vertex formulation larger than this is far behind already and mostly fills the memory.
_MOST_VERTICES = 1_000
_MOST_ENTRIES = 1_000_000


@dataclass(frozen=True)
class Competitor:
    """A solver with a formulation.

    Attributes
    ----------
    name : str
    kind : str
        "as written" or "expert".
    solve : callable
        From arrays to an answer; building the model is part of it.
    dimensions : str
        "any", "one" or "many" coordinates.
    cones : bool
        True if it can take round slack.
    """

    name: str
    kind: str
    solve: Callable[[Arrays], as_written.Answer]
    dimensions: str = "any"
    cones: bool = False

    def obstacle(self, arrays: Arrays) -> str | None:
        """Say why this competitor cannot start, if so."""
        if arrays.norm == "l2" and not self.cones:
            return "round slack is not a linear program"
        if self.solve is _over_vertices:
            count = len(expert.epigraph_vertices(arrays.first_rows(1))[1])
            entries = count * arrays.forecasts.size * arrays.tests.shape[1]
            if count > _MOST_VERTICES or entries > _MOST_ENTRIES:
                return f"{count:,} vertices per row make {entries:.0e} matrix entries"
        return None


_INTERIOR_POINT = {"solver": "ipm", "run_crossover": "off"}
_over_vertices = partial(expert.vertices_linprog, method="highs-ipm")

COMPETITORS = {
    competitor.name: competitor
    for competitor in (
        Competitor("CVXPY + Clarabel", AS_WRITTEN, partial(as_written.with_cvxpy, solver="CLARABEL"), cones=True),
        Competitor("CVXPY + HiGHS", AS_WRITTEN, partial(as_written.with_cvxpy, solver="HIGHS")),
        Competitor("SciPy HiGHS", AS_WRITTEN, partial(as_written.with_linprog, method="highs")),
        Competitor("SciPy HiGHS interior point", AS_WRITTEN, partial(as_written.with_linprog, method="highs-ipm")),
        Competitor(
            "segments, SciPy HiGHS simplex",
            EXPERT,
            partial(expert.segments_linprog, method="highs-ds", presolve=True),
            "one",
        ),
        Competitor(
            "segments, SciPy HiGHS simplex, no presolve",
            EXPERT,
            partial(expert.segments_linprog, method="highs-ds", presolve=False),
            "one",
        ),
        Competitor(
            "segments, SciPy HiGHS interior point, no presolve",
            EXPERT,
            partial(expert.segments_linprog, method="highs-ipm", presolve=False),
            "one",
        ),
        Competitor("segments, HiGHS directly", EXPERT, expert.segments_highspy, "one"),
        Competitor("segments, CVXPY + Clarabel", EXPERT, partial(expert.segments_cvxpy, solver="CLARABEL"), "one"),
        Competitor(
            "multipliers, CVXPY + Clarabel", EXPERT, partial(expert.multipliers_cvxpy, solver="CLARABEL"), "one"
        ),
        Competitor(
            "reduced, CVXPY + Clarabel", EXPERT, partial(expert.reduced_cvxpy, solver="CLARABEL"), "many", cones=True
        ),
        Competitor(
            "reduced, CVXPY + HiGHS interior point, no crossover",
            EXPERT,
            partial(expert.reduced_cvxpy, solver="HIGHS", highs_options=_INTERIOR_POINT),
            "many",
        ),
        Competitor(
            "policy side, CVXPY + Clarabel",
            EXPERT,
            partial(expert.policy_side_cvxpy, solver="CLARABEL"),
            "many",
            cones=True,
        ),
        Competitor("vertices, SciPy HiGHS interior point", EXPERT, _over_vertices, "many"),
    )
}


def competitors_for(dimension: int) -> list[Competitor]:
    """List those made for one coordinate, or for several."""
    fitting = ("any", "one" if dimension == 1 else "many")
    return [competitor for competitor in COMPETITORS.values() if competitor.dimensions in fitting]
