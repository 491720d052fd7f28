"""The recalibrations that are tried unless told otherwise."""

import numpy as np

from prudent.cases.memory_rows import MemoryRows
from prudent.recalibration.base import Recalibrator, split_coordinates, squared_error
from prudent.recalibration.isotonic import IsotonicCalibrator
from prudent.recalibration.scaling import ScalingCalibrator
from prudent.recalibration.segmented import SegmentedCalibrator


def usual_recalibrators(rows: MemoryRows) -> dict[str, Recalibrator]:
    """Three recalibrations that suit the outcomes seen: two values, classes, or numbers; with context one within it."""
    space = rows.space
    if space.one_map:
        values = split_coordinates(space, rows.known_outcomes)
        shares = space.free_dimension > 1 or np.unique(values).size <= 2  # of a grid they are cumulative probabilities
        methods = ("bias", "platt") if shares else ("shift", "affine")
    else:
        methods = ("temperature", "vector") if space.is_simplex else ("shift", "affine")
    scalings: dict[str, Recalibrator] = {method: ScalingCalibrator(method, space=space) for method in methods}
    found = scalings | {"isotonic": IsotonicCalibrator(space=space)}
    if columns := rows.segment_columns:
        base = scalings[methods[1]]
        found[f"shifts within {' and '.join(columns)}"] = SegmentedCalibrator(columns, base, space=space)
    return found


def best_recalibrator(fitting: MemoryRows, held_out: MemoryRows) -> Recalibrator | None:
    """Fit the usual ones, and return that with the least squared error on other rows; None if no one lowers it."""
    best, least = None, squared_error(held_out, held_out.forecasts)
    for recalibrator in usual_recalibrators(fitting).values():
        error = squared_error(held_out, recalibrator.fit_map(fitting).transform(held_out.forecasts))
        if error < least:
            best, least = recalibrator, error
    return best
