"""Which forecasts a monitor has seen, by id: outcomes come late, early, or twice."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

from prudent.arrays import BoolArray, FloatArray
from prudent.errors import FileFormatError, InputError
from prudent.files.records import Document, Record
from prudent.spaces import Space

_ById = dict[Any, tuple[Any, Any]]
_DONE = True, True  # forecast and outcome are known and no longer needed


@dataclass
class News:
    """What a batch changes, worked out before anything is changed.

    Attributes
    ----------
    fresh : sequence of rows
        Forecasts that are new.
    forecasts, outcomes : sequences of rows
        Those that are now known together.
    rows : dict
        Rows of the ledger that are new or changed.
    duplicates : int
    """

    fresh: Any = field(default_factory=list)
    forecasts: Any = field(default_factory=list)
    outcomes: Any = field(default_factory=list)
    rows: _ById = field(default_factory=dict)
    duplicates: int = 0


@dataclass
class Ledger:
    """By id, the forecast and the outcome seen so far; None for the one that is awaited."""

    rows: _ById = field(default_factory=dict)
    n_duplicates: int = 0

    def sort(self, names: list[Any], forecasts: Any, known: FloatArray, present: BoolArray) -> News:
        """Tell new rows from old ones, and find those whose outcome is now known; nothing is changed.

        Outcomes that come by themselves have no ``forecasts``. Of two forecasts or outcomes the first counts.
        """
        news, outcomes = News(), iter(known.tolist())
        for row, name in enumerate(names):
            forecast, outcome = news.rows.get(name, self.rows.get(name, (None, None)))
            given = next(outcomes) if present[row] else None
            fresh = forecast is None and forecasts is not None
            if fresh:
                forecast = forecasts[row].tolist()
                news.fresh.append(forecast)
            if given is None or outcome is not None:
                news.duplicates += not fresh or given is not None
            else:
                outcome = given
            complete = None not in (forecast, outcome)
            if complete and forecast is not True:
                news.forecasts.append(forecast)
                news.outcomes.append(outcome)
            news.rows[name] = _DONE if complete else (forecast, outcome)
        return news

    def remember(self, news: News) -> None:
        """Take in what a batch changes."""
        self.rows |= news.rows
        self.n_duplicates += news.duplicates

    def awaiting(self, place: int) -> list[list[Any]]:
        """Ids and points of rows whose forecast (0) or outcome (1) is awaited."""
        return [[name, row[1 - place]] for name, row in self.rows.items() if row[place] is None]

    def to_dict(self) -> Document:
        """Describe the ledger for a file."""
        return {
            "seen": [name for name, (forecast, _) in self.rows.items() if forecast is not None],
            "pending": self.awaiting(1),
            "early": self.awaiting(0),
            "n_duplicates": self.n_duplicates,
        }

    @classmethod
    def from_record(cls, record: Record, space: Space) -> Ledger:
        """Read a ledger from the fields of a file."""
        seen = set(require_ids(record.typed("seen", list)))
        pending, early = (_rows_by_id(record, name, space) for name in ("pending", "early"))
        if not pending.keys() <= seen or not early.keys().isdisjoint(seen):
            raise FileFormatError("pending forecasts must have ids that were seen, and early outcomes must not.")
        rows: _ById = dict.fromkeys(seen, _DONE)
        rows |= {name: (forecast, None) for name, forecast in pending.items()}
        rows |= {name: (None, outcome) for name, outcome in early.items()}
        return cls(rows, record.count("n_duplicates"))


def require_ids(names: list[Any]) -> list[Any]:
    """Refuse ids that are not text or whole numbers."""
    for position, name in enumerate(names):
        if not isinstance(name, (str, int)) or isinstance(name, bool):
            raise InputError(f"ids must be strings or whole numbers; got {name!r} at position {position}.")
    return names


def _rows_by_id(record: Record, name: str, space: Space) -> dict[Any, Any]:
    pairs = record.typed(name, list)
    if not all(isinstance(pair, list) and len(pair) == 2 for pair in pairs):
        raise FileFormatError(f"{name} must be pairs of an id and a point.")
    points = space.place([point for _, point in pairs], name)[0].tolist() if pairs else []
    return dict(zip(require_ids([name for name, _ in pairs]), points, strict=True))
