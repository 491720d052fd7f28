"""Recalibration within segments: shifts for the values of context columns; the recalibrations that are usual."""

from dataclasses import replace
from operator import itemgetter
from typing import Any, Self

import numpy as np
from sklearn.base import clone

from prudent.arrays import Context, FloatArray, listed
from prudent.cases.memory_rows import MemoryRows
from prudent.errors import FileFormatError
from prudent.files import Record
from prudent.guarantees import Nothing, Unbiased
from prudent.recalibration.base import CONFIDENCE, Recalibrator, squared_error
from prudent.recalibration.usual import IsotonicCalibrator, ScalingCalibrator
from prudent.spaces import Space


class SegmentedCalibrator(Recalibrator):
    """Recalibrate all rows alike, then shift the result by a number for each value of some columns.

    What is shifted are forecasts or, of two outcome values and of classes, their log-odds. The shifts of a column are
    drawn towards zero: the less they vary beyond chance, and the fewer rows have a value (empirical Bayes). Rows whose
    value is missing, or was not seen in fitting, or in fewer than 30 rows or four periods, are not shifted.

    Parameters
    ----------
    by : sequence of str
        Columns of the context; shifts of several columns come one after the other.
    base : Recalibrator
        Of all rows.
    space : Box or Simplex, optional
        [0, 1] for every column by default.

    Attributes
    ----------
    base_ : Recalibrator
        Fitted.
    steps_ : list of tuples
        A column, a value and a :class:`ScalingCalibrator` for it, in the order in which they are applied: first those
        of the column that matters most.

    Examples
    --------
    >>> import numpy as np, prudent
    >>> rng = np.random.default_rng(0)
    >>> forecasts, region = rng.uniform(0.2, 0.8, 3000), np.repeat(["north", "south"], 1500)
    >>> outcomes = (rng.random(3000) < forecasts + np.where(region == "north", 0.1, -0.1)).astype(float)
    >>> calibrator = prudent.recalibration.SegmentedCalibrator(
    ...     ["region"], prudent.recalibration.ScalingCalibrator("bias")
    ... )
    >>> calibrator = calibrator.fit(prudent.Cases(forecasts, outcomes, context={"region": region}))
    >>> calibrator.transform([0.5, 0.5, 0.5], context={"region": ["north", "south", "east"]}).round(1).ravel().tolist()
    [0.6, 0.4, 0.5]
    """

    _kind = "segmented"
    _fields = ("base", "steps")

    def __init__(self, by: Any, base: Any, *, space: Space | None = None) -> None:
        self.by = by
        self.base = base
        self.space = space

    def _fit(self, rows: MemoryRows) -> None:
        self.base_, self.guarantee_, left = clone(self.base).fit_map(rows), Nothing(), listed(self.by, "by")
        self.steps_: list[tuple[str, Any, ScalingCalibrator]] = []
        while left:
            moved = replace(rows, forecasts=self._moved(rows.forecasts, rows.context))
            spread, name, values, parts, noise = max((_differences(moved, name) for name in left), key=itemgetter(0))
            left.remove(name)
            for value, part, kept in zip(values, parts, spread / (spread + noise), strict=True) if spread > 0 else ():
                aims = part.forecasts + kept * (part.known_outcomes - part.forecasts)
                shift = ScalingCalibrator(_method(rows), space=rows.space)
                self.steps_.append((name, value, shift.fit_between(replace(part, outcomes=aims), rows)))

    @property
    def columns(self) -> tuple[str, ...]:
        """Those by which forecasts are shifted."""
        return tuple(dict.fromkeys(name for name, _, _ in self.steps_))

    def _moved(self, forecasts: FloatArray, context: Context | None = None) -> FloatArray:
        moved = self.base_.transform(forecasts)
        for name, value, shift in self.steps_:
            here = (context or {})[name] == value
            moved[here] = shift._moved(moved[here])
        return moved

    @classmethod
    def _restored(cls, record: Record, space: Space) -> Self:
        steps = record.typed("steps", list)
        if not all(isinstance(step, list) and len(step) == 3 and type(step[0]) is str for step in steps):
            raise FileFormatError("steps must be triples of a column, a value and a shift.")
        base, *shifts = (Recalibrator._rebuild(each) for each in (record["base"], *(shift for _, _, shift in steps)))
        if any(each.space_ != space for each in (base, *shifts)):
            raise FileFormatError("every shift must have the space of the base.")
        calibrator = cls([name for name, _, _ in steps], base, space=space)
        calibrator.space_, calibrator.base_, calibrator.guarantee_ = space, base, Nothing()
        calibrator.steps_ = [(name, value, shift) for (name, value, _), shift in zip(steps, shifts, strict=True)]
        return calibrator


def _differences(rows: MemoryRows, name: str) -> tuple[float, str, list[Any], list[MemoryRows], FloatArray]:
    """How much mean errors of segments differ beyond chance; their values and rows, and what chance adds in each."""
    found, places, large = rows.values(name)
    parts = [rows.take(places == place) for place in np.flatnonzero(large)]
    squared = rows.weights @ (rows.known_outcomes - rows.forecasts) ** 2 + 1e-300
    sizes, differs, noise = np.zeros((3, len(parts)))
    for k, part in enumerate(parts):
        means = part.measure(Unbiased(), CONFIDENCE).estimates.means
        # No less than chance in errors of the usual size: outcomes of few rows may happen to be all alike.
        chance = np.maximum(means.deviations**2, squared * (part.weights @ part.weights))
        sizes[k], differs[k], noise[k] = len(part.forecasts), (means.means**2 / squared).sum(), (chance / squared).sum()
    spread = float(sizes @ (differs - noise)) / max(sizes.sum(), 1.0)
    return spread, name, [value for value, alone in zip(found, large, strict=True) if alone], parts, noise


def _method(rows: MemoryRows) -> str:
    """Log-odds of classes and of two outcome values are shifted, and other outcomes in their units."""
    numbers = rows.space.free_dimension > 1 or np.unique(rows.known_outcomes).size > 2
    return "shift" if numbers and not rows.space.is_simplex else "bias"


def usual_recalibrators(rows: MemoryRows) -> dict[str, Recalibrator]:
    """Three recalibrations that suit the outcomes seen: two values, classes, or numbers; with context one within it."""
    space, methods = rows.space, ("shift", "affine")
    if _method(rows) == "bias":
        methods = ("bias", "platt") if space.one_map else ("temperature", "vector")
    scalings: dict[str, Recalibrator] = {method: ScalingCalibrator(method, space=space) for method in methods}
    found = scalings | {"isotonic": IsotonicCalibrator(space=space)}
    if columns := rows.segment_columns:
        base = scalings[methods[1]]
        found[f"shifts within {' and '.join(columns)}"] = SegmentedCalibrator(columns, base, space=space)
    return found


def best_recalibrator(fitting: MemoryRows, held_out: MemoryRows) -> Recalibrator | None:
    """Fit the usual ones that need no context, and return that with the least squared error on other rows, if lower."""
    fitting = replace(fitting, context={})
    best, least = None, squared_error(held_out, held_out.forecasts)
    for recalibrator in usual_recalibrators(fitting).values():
        error = squared_error(held_out, recalibrator.fit_map(fitting).transform(held_out.forecasts))
        if error < least:
            best, least = recalibrator, error
    return best
