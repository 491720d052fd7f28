"""What every guarantee is: a frozen specification of tests that holds no data."""

from __future__ import annotations

from abc import ABC, abstractmethod
from dataclasses import dataclass, fields
from typing import Any, ClassVar

import numpy as np

from prudent.arrays import FloatArray
from prudent.errors import FileFormatError, InputError
from prudent.guarantees.evaluated import EvaluatedTests
from prudent.guarantees.joining import join
from prudent.guarantees.written import WrittenTests
from prudent.problem import DecisionProblem
from prudent.spaces import Space

__all__ = ["And", "Guarantee", "guarantee_from_dict", "parts_of", "positive_integer"]

_KINDS: dict[str, type[Guarantee]] = {}


@dataclass(frozen=True)
class Guarantee(ABC):
    """A set of tests H; the forecaster promises ``E[h(f)(Y - f)] = 0`` for each.

    Combine with ``&``. A subclass says how its tests are evaluated; where a
    specification depends on the sample (quantile bins, observed cells) it
    resolves itself into one that does not.
    """

    kind: ClassVar[str] = ""

    def __init_subclass__(cls) -> None:
        if cls.kind:
            _KINDS[cls.kind] = cls

    @abstractmethod
    def evaluate(self, forecasts: FloatArray, space: Space) -> EvaluatedTests:
        """Evaluate the tests at validated forecasts ``(n, d)``."""

    def evaluate_apart(self, forecasts: FloatArray, space: Space) -> list[EvaluatedTests]:
        """Evaluate the tests in tables of their own, so that whoever joins them copies each of them once."""
        return [self.evaluate(forecasts, space)]

    def resolve(self, forecasts: FloatArray, weights: FloatArray, space: Space) -> Guarantee:
        """Return the specification with everything fixed that depends on the sample."""
        return self

    @property
    def full(self) -> bool:
        """True if this is full calibration: the only world is the forecast itself."""
        return False

    @property
    def savable(self) -> bool:
        """False if the tests are Python functions, which a file cannot hold."""
        return True

    def write(self, space: Space) -> WrittenTests:
        """Write the tests as expressions of the columns ``v0, v1, ...``, for tables that stay in their engine."""
        raise InputError(
            f"{type(self).__name__} cannot be evaluated inside an engine: its tests are Python functions. "
            f"Collect the forecasts into memory, or use a built-in guarantee."
        )

    def plug_in_multipliers(self, problem: DecisionProblem, forecasts: FloatArray) -> FloatArray | None:
        """Return flat multipliers whose tilt is ``-r_BR(v)``, if these tests contain them.

        With such multipliers best responding is minimax optimal (docs/theory.md,
        section 4: decision and utility calibration).
        """
        return None

    def __and__(self, other: object) -> Guarantee:
        if not isinstance(other, Guarantee):
            return NotImplemented
        return And(_parts(self) + _parts(other))

    def to_dict(self) -> dict[str, Any]:
        """Describe the guarantee for a file."""
        return {"kind": self.kind, **{item.name: _plain(getattr(self, item.name)) for item in fields(self)}}

    @classmethod
    def from_fields(cls, document: dict[str, Any]) -> Guarantee:
        """Rebuild a guarantee from the fields of :meth:`to_dict`."""
        return cls(**document)


def parts_of(guarantee: Guarantee) -> list[Guarantee]:
    """The guarantees that hold together, in order."""
    return [part for each in guarantee.parts for part in parts_of(each)] if isinstance(guarantee, And) else [guarantee]


@dataclass(frozen=True)
class And(Guarantee):
    """Several guarantees at once; written ``a & b``."""

    parts: tuple[Guarantee, ...]

    kind: ClassVar[str] = "and"

    def __post_init__(self) -> None:
        parts = tuple(self.parts)
        if not parts or not all(isinstance(part, Guarantee) for part in parts):
            raise InputError("parts must be a non-empty tuple of guarantees.")
        object.__setattr__(self, "parts", parts)

    def __repr__(self) -> str:
        return " & ".join(repr(part) for part in self.parts)

    def evaluate(self, forecasts: FloatArray, space: Space) -> EvaluatedTests:
        return join(self.evaluate_apart(forecasts, space))

    def evaluate_apart(self, forecasts: FloatArray, space: Space) -> list[EvaluatedTests]:
        return [tests for part in self.parts for tests in part.evaluate_apart(forecasts, space)]

    def write(self, space: Space) -> WrittenTests:
        return WrittenTests(tuple(block for part in self.parts for block in part.write(space).blocks))

    def resolve(self, forecasts: FloatArray, weights: FloatArray, space: Space) -> Guarantee:
        return And(tuple(part.resolve(forecasts, weights, space) for part in self.parts))

    @property
    def full(self) -> bool:
        return any(part.full for part in self.parts)

    @property
    def savable(self) -> bool:
        return all(part.savable for part in self.parts)

    def plug_in_multipliers(self, problem: DecisionProblem, forecasts: FloatArray) -> FloatArray | None:
        found: FloatArray | None = None
        pieces = []
        for part in self.parts:
            piece = part.plug_in_multipliers(problem, forecasts) if found is None else None
            found = piece if found is None else found
            size = part.evaluate(forecasts[:1], problem.space).n_moments
            pieces.append(np.zeros(size) if piece is None else piece)
        return None if found is None else np.concatenate(pieces)

    def to_dict(self) -> dict[str, Any]:
        return {"kind": self.kind, "parts": [part.to_dict() for part in self.parts]}

    @classmethod
    def from_fields(cls, document: dict[str, Any]) -> Guarantee:
        return cls(tuple(guarantee_from_dict(part) for part in document["parts"]))


def guarantee_from_dict(document: Any) -> Guarantee:
    """Rebuild any built-in guarantee from its description; nothing in it is executed."""
    if not isinstance(document, dict) or document.get("kind") not in _KINDS:
        kind = document.get("kind") if isinstance(document, dict) else document
        raise FileFormatError(f"guarantee kind must be one of {sorted(_KINDS)}; got {kind!r}.")
    family = _KINDS[document["kind"]]
    expected = {"kind", *(item.name for item in fields(family))}
    if set(document) != expected:
        raise FileFormatError(
            f"guarantee {document['kind']!r} must have exactly the fields {sorted(expected)}; got {sorted(document)}."
        )
    try:
        return family.from_fields({name: value for name, value in document.items() if name != "kind"})
    except (TypeError, InputError) as error:
        raise FileFormatError(f"guarantee {document['kind']!r}: {error}") from error


def positive_integer(value: Any, name: str, least: int = 1) -> int:
    """Check a whole number of at least ``least``, and not absurdly large."""
    if isinstance(value, bool) or not isinstance(value, (int, np.integer)) or value < least:
        raise InputError(f"{name} must be a whole number of at least {least}; got {value!r}.")
    if value > 1_000_000:
        raise InputError(f"{name} must be at most a million; got {value}.")
    return int(value)


def _parts(guarantee: Guarantee) -> tuple[Guarantee, ...]:
    return guarantee.parts if isinstance(guarantee, And) else (guarantee,)


def _plain(value: Any) -> Any:
    return list(value) if isinstance(value, tuple) else value
