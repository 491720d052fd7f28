"""Recalibration within segments: shifts for the values of context columns, shrunk towards the pooled map."""

from dataclasses import replace
from typing import Any, Self

import numpy as np
from sklearn.base import clone

from prudent.arrays import Context, FloatArray, listed
from prudent.cases.memory_rows import MemoryRows
from prudent.cases.segments import known_values, large_groups
from prudent.errors import FileFormatError, InputError
from prudent.files.records import Record
from prudent.guarantees import Nothing, Unbiased
from prudent.recalibration.base import CONFIDENCE, Recalibrator, some_rows, split_coordinates
from prudent.recalibration.scaling import ScalingCalibrator
from prudent.spaces import Space


class SegmentedCalibrator(Recalibrator):
    """Recalibrate all rows alike, then shift the result by a number for each value of some columns.

    What is shifted are forecasts or, of two outcome values and of classes, their log-odds. The shifts of a column are
    drawn towards zero: the less they vary beyond chance, and the fewer rows have a value (empirical Bayes). Values that
    were not seen in fitting, or in fewer than 30 rows or four periods, are not shifted.

    Parameters
    ----------
    columns : sequence of str
        Of the context; shifts of several columns come one after the other.
    base : Recalibrator
        Of all rows.
    space : Box or Simplex, optional
        [0, 1] for every column by default.

    Attributes
    ----------
    base_ : Recalibrator
        Fitted.
    columns_ : list of str
        In the order in which they are applied: first the one that matters most.
    values_ : list of lists
        The values of each column that have maps.
    maps_ : list of lists of ScalingCalibrator
        Their shifts.

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

    columns: Any = ()

    _kind = "segmented"
    _fields = ("base", "columns", "values", "maps")

    def __init__(self, columns: Any, base: Any, *, space: Space | None = None) -> None:
        self.columns = columns
        self.base = base
        self.space = space

    def _fit(self, rows: MemoryRows) -> None:
        self.base_, self.guarantee_ = clone(self.base).fit_map(rows), Nothing()
        self.columns_, self.values_, self.maps_ = [], [], []
        left = listed(self.columns, "columns")
        while left:
            moved = replace(rows, forecasts=self._moved(rows.forecasts, rows.context))
            found = [self._maps(moved, name) for name in left]
            best = int(np.argmax([matters for matters, _, _ in found]))
            self.columns_.append(left.pop(best))
            self.values_.append(found[best][1])
            self.maps_.append(found[best][2])

    def _maps(self, rows: MemoryRows, name: str) -> tuple[float, list[Any], list[ScalingCalibrator]]:
        """Return how much a column matters, its values and their maps."""
        values, numbers, *_ = large_groups(rows, (name,))
        parts = [some_rows(rows, numbers == number) for number in range(len(values))]
        shares = np.bincount(numbers, rows.weights, len(values))[: len(values)]
        variances = rows.weights @ (rows.known_outcomes - rows.forecasts) ** 2 + 1e-300
        squares, noise = np.zeros((2, len(values)))
        for k, part in enumerate(parts):
            found = part.measure(Unbiased(), CONFIDENCE).estimates.means
            # No less than chance in errors as large as usual: outcomes of few rows may happen to be all alike.
            chance = np.maximum(found.deviations**2, variances * (part.weights @ part.weights))
            squares[k], noise[k] = (found.means**2 / variances).sum(), (chance / variances).sum()
        spread = max(float(shares @ (squares - noise)), 0.0) / max(shares.sum(), 1e-300)
        outcomes, classes = split_coordinates(rows.space, rows.known_outcomes), rows.space.is_simplex
        method = "bias" if classes or (outcomes.shape[1] == 1 and np.unique(outcomes).size <= 2) else "shift"
        ends, maps = (outcomes.min(axis=0), outcomes.max(axis=0)), []
        for part, kept in zip(parts, spread / (spread + noise), strict=True):
            outcomes = part.forecasts + kept * (part.known_outcomes - part.forecasts)
            maps.append(
                ScalingCalibrator(method, space=rows.space).fit_between(replace(part, outcomes=outcomes), *ends)
            )
        return spread, [value for (value,) in values], maps

    def _moved(self, forecasts: FloatArray, context: Context | None = None) -> FloatArray:
        moved = np.clip(self.base_._moved(forecasts), *self.space_.bounds)
        for name, values, maps in zip(self.columns_, self.values_, self.maps_, strict=True):
            places = {value: place for place, value in enumerate(values)}
            numbers = np.array([places.get(value, -1) for value in known_values(context or {}, name)])
            for number, each in enumerate(maps):
                moved[numbers == number] = each._moved(moved[numbers == number])
        return moved

    @classmethod
    def _restored(cls, record: Record, space: Space) -> Self:
        columns, values, maps = (record.typed(name, list) for name in cls._fields[1:])
        calibrator = cls(columns, Recalibrator._rebuild(record["base"]), space=space)
        calibrator.space_, calibrator.base_, calibrator.guarantee_ = space, calibrator.base, Nothing()
        calibrator.columns_, calibrator.values_ = columns, values
        calibrator.maps_ = [[Recalibrator._rebuild(each) for each in own] for own in maps]
        if [len(own) for own in values] != [len(own) for own in maps] or len(columns) != len(maps):
            raise FileFormatError("every column must have values, and every value a map.")
        if any(each.space_ != space for own in [[calibrator.base_], *calibrator.maps_] for each in own):
            raise FileFormatError("base and maps must be for the same space.")
        return calibrator
