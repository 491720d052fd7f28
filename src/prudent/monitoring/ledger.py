"""Which forecasts a monitor has seen, by id: outcomes come late, early, or twice."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

from prudent.arrays import BoolArray, FloatArray, listed
from prudent.errors import FileFormatError, InputError
from prudent.files.records import Document, Record
from prudent.spaces import Space

_ById = dict[Any, tuple[Any, Any]]
_DONE = True, True  # forecast and outcome are known and no longer needed


@dataclass
class Ledger:
    """By id, the forecast and the outcome seen so far; None for the one that is awaited."""

    rows: _ById = field(default_factory=dict)
    n_duplicates: int = 0

    def add(self, names: list[Any], forecasts: Any, known: FloatArray, present: BoolArray) -> tuple[Any, Any, Any]:
        """Take in a batch; return the forecasts that are new, and forecasts and outcomes now known together.

        Outcomes that come by themselves have no ``forecasts``. Of two forecasts or outcomes the first counts.
        """
        fresh, pairs, outcomes = [], [], iter(known.tolist())
        for row, name in enumerate(names):
            forecast, outcome = self.rows.get(name, (None, None))
            given = next(outcomes) if present[row] else None
            new = forecast is None and forecasts is not None
            if new:
                forecast = forecasts[row].tolist()
                fresh.append(forecast)
            if given is None or outcome is not None:
                self.n_duplicates += not new or given is not None
            else:
                outcome = given
            complete = None not in (forecast, outcome)
            if complete and forecast is not True:
                pairs.append((forecast, outcome))
            self.rows[name] = _DONE if complete else (forecast, outcome)
        return fresh, [forecast for forecast, _ in pairs], [outcome for _, outcome in pairs]

    def awaiting(self, place: int) -> list[list[Any]]:
        """Ids and points of rows whose forecast (0) or outcome (1) is awaited."""
        return [[name, row[1 - place]] for name, row in self.rows.items() if row[place] is None]

    def to_dict(self) -> Document:
        """Describe the ledger for a file."""
        done = [name for name, row in self.rows.items() if row == _DONE]
        return {
            "done": done,
            "pending": self.awaiting(1),
            "early": self.awaiting(0),
            "n_duplicates": self.n_duplicates,
        }

    @classmethod
    def from_record(cls, record: Record, space: Space) -> Ledger:
        """Read a ledger from the fields of a file."""
        rows: _ById = dict.fromkeys(read_ids(record.typed("done", list)), _DONE)
        rows |= {name: (forecast, None) for name, forecast in _rows_by_id(record, "pending", space)}
        rows |= {name: (None, outcome) for name, outcome in _rows_by_id(record, "early", space)}
        return cls(rows, record.count("n_duplicates"))


def read_ids(values: Any) -> list[Any]:
    """Read ids; refuse those that are not text or whole numbers."""
    names = listed(values, "ids")
    for position, name in enumerate(names):
        if not isinstance(name, (str, int)) or isinstance(name, bool):
            raise InputError(f"ids must be strings or whole numbers; got {name!r} at position {position}.")
    return names


def _rows_by_id(record: Record, name: str, space: Space) -> list[tuple[Any, Any]]:
    pairs = record.typed(name, list)
    if not all(isinstance(pair, list) and len(pair) == 2 for pair in pairs):
        raise FileFormatError(f"{name} must be pairs of an id and a point.")
    points = space.place([point for _, point in pairs], name)[0].tolist() if pairs else []
    return list(zip(read_ids([name for name, _ in pairs]), points, strict=True))
