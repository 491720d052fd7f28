"""Which forecasts and outcomes were seen, by id: outcomes come late, in parts, early or twice."""

import warnings
from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any

from prudent.arrays import describe_rows, listed
from prudent.errors import FileFormatError, InputError
from prudent.files import Document, Record
from prudent.spaces import Space

Point = list[float]
#: Points that belong to the forecast, and the outcome; None for what is awaited.
Row = tuple[list[Point] | None, Point | None]

FIELDS = ("rows", "n_repeated", "n_conflicting", "n_unknown")
_SHOWN = 5


@dataclass
class Batch:
    """What some rows add to a ledger, which has not changed yet."""

    rows: dict[Any, Row] = field(default_factory=dict)
    fresh: list[Point] = field(default_factory=list)  # forecasts that are new
    pairs: list[tuple[list[Point], Point]] = field(default_factory=list)  # now known together
    learned: dict[Any, Point] = field(default_factory=dict)  # outcomes of these pairs, by id
    n_repeated: int = 0
    conflicting: list[Any] = field(default_factory=list)
    unknown: list[Any] = field(default_factory=list)


@dataclass
class Ledger:
    """By id, forecast and outcome; of two forecasts or outcomes the first counts, and the others are counted.

    Attributes
    ----------
    early : bool
        True if outcomes may come before their forecast, and wait for it. Else their ids are unknown.
    rows : dict
    n_repeated, n_conflicting, n_unknown : int
        Rows that brought nothing new, outcomes that differ from the first one, outcomes of unknown ids.
    """

    early: bool
    rows: dict[Any, Row] = field(default_factory=dict)
    n_repeated: int = 0
    n_conflicting: int = 0
    n_unknown: int = 0

    def match(self, names: list[Any], forecasts: Sequence[Point] | None, outcomes: Sequence[Point | None]) -> Batch:
        """Find what is new in a batch, and which forecasts and outcomes are now known together.

        Outcomes that come by themselves have no ``forecasts``; a missing outcome is None.
        """
        batch = Batch()
        for number, (name, given) in enumerate(zip(names, outcomes, strict=True)):
            forecast, outcome = batch.rows.get(name) or self.rows.get(name, (None, None))
            new = forecast is None and forecasts is not None
            if new and forecasts is not None:
                forecast = [forecasts[number]]
                batch.fresh.append(forecasts[number])
            if given is None or given == outcome:
                batch.n_repeated += given is not None or not new
            elif outcome is not None:
                batch.conflicting.append(name)
            elif forecast is None and not self.early:
                batch.unknown.append(name)
                continue
            else:
                outcome, new = given, True
            if new and forecast is not None and outcome is not None:
                batch.pairs.append((forecast, outcome))
                batch.learned[name] = outcome
            batch.rows[name] = forecast, outcome
        return batch

    def note(self, batch: Batch) -> None:
        """Take over a batch, and warn of what was left out of it: the last thing that a call does."""
        self.rows |= batch.rows
        self.n_repeated += batch.n_repeated
        self.n_conflicting += len(batch.conflicting)
        self.n_unknown += len(batch.unknown)
        for names, rule in (
            (batch.conflicting, "came with a second, different outcome; the first one counts"),
            (batch.unknown, "came with an outcome, but were never predicted; these outcomes are left out"),
        ):
            if names:
                shown = ", ".join(map(repr, names[:_SHOWN])) + (", ..." if len(names) > _SHOWN else "")
                warnings.warn(f"{len(names):,} ids {rule}: {shown}. Check where they come from.", stacklevel=4)

    def awaiting(self, place: int) -> list[Any]:
        """Ids of rows whose forecast (0) or outcome (1) is awaited."""
        return [name for name, row in self.rows.items() if row[place] is None]

    def to_dict(self) -> Document:
        """Describe the ledger for a file."""
        rows = [[name, *row] for name, row in self.rows.items()]
        return {name: getattr(self, name) for name in FIELDS} | {"rows": rows}

    @classmethod
    def from_record(cls, record: Record, space: Space, early: bool) -> "Ledger":
        """Read a ledger from the fields of a file."""
        rows = record.typed("rows", list)
        if not all(isinstance(row, list) and len(row) == 3 and isinstance(row[1] or [], list) for row in rows):
            raise FileFormatError("rows must be triples of an id, the points of a forecast and an outcome.")
        names = read_ids([name for name, _, _ in rows])
        held = [point for _, *both in rows for point in [*(both[0] or []), *([] if both[1] is None else both[1:])]]
        points = Record({"points": held}, "rows", "points").array("points", None, space.dimension)
        placed = iter(space.place(points, "rows")[0].tolist() if len(points) else [])
        found: dict[Any, Row] = {}
        for name, (_, forecast, outcome) in zip(names, rows, strict=True):
            own, alone = [next(placed) for _ in forecast or []], early and forecast is None and outcome is not None
            if not (alone or 1 <= len(own) <= 2):
                raise FileFormatError(f"rows must have a forecast of one or two points; {name!r} has none.")
            found[name] = own or None, None if outcome is None else next(placed)
        if len(found) < len(rows):
            raise FileFormatError("rows must have different ids.")
        return cls(early, found, *(record.count(name) for name in FIELDS[1:]))


def read_ids(values: Any) -> list[Any]:
    """Read ids; refuse those that are not text or whole numbers."""
    names = listed(values, "ids")
    for position, name in enumerate(names):
        if not isinstance(name, (str, int)) or isinstance(name, bool):
            raise InputError(f"ids must be strings or whole numbers; got {name!r} at position {position}.")
    return names


def read_outcomes(space: Space, outcomes: Any, n: int, advice: str | None = None) -> list[Point | None]:
    """Read one outcome per row, None where it is missing; with an advice none may be."""
    if outcomes is None and advice:
        raise InputError(f"outcomes must be one per id, {n}; got None.")
    if outcomes is None:
        return [None] * n
    known, present = space.place_known_outcomes(outcomes)
    if len(present) != n:
        raise InputError(f"outcomes must have one row per forecast or id, {n}; got {len(present)}.")
    if advice and not present.all():
        raise InputError(f"outcomes are missing in {describe_rows((~present).nonzero()[0])}; {advice}.")
    points = iter(known.tolist())
    return [next(points) if there else None for there in present]
