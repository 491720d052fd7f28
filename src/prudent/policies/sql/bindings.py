"""Local names inside one SQL expression, so that nothing is written or computed twice."""

from __future__ import annotations

from dataclasses import dataclass, field

from prudent.policies.sql.dialects import Dialect

__all__ = ["Bindings", "case"]


@dataclass
class Bindings:
    """Layers of named expressions; each layer may use the names of those before it."""

    dialect: Dialect
    layers: list[dict[str, str]] = field(default_factory=list)
    depth: int = 0

    def bind(self, prefix: str, expressions: list[str]) -> list[str]:
        """Name expressions, and return what stands for them from now on."""
        bound = {f"{prefix}{number}": expression for number, expression in enumerate(expressions, start=1)}
        self.layers.append(bound)
        return [f"{self._name(len(self.layers))}.{name}" for name in bound]

    def close(self, body: str) -> str:
        """Wrap a body into all layers."""
        for number in range(len(self.layers), 0, -1):
            body = self.dialect.let(self._name(number), self.layers[number - 1], body)
        return body

    def inner(self) -> Bindings:
        """Start layers that live inside a body of these."""
        return Bindings(self.dialect, depth=self.depth + len(self.layers))

    def _name(self, number: int) -> str:
        return f"x{self.depth + number}"


def case(conditions: list[str], outcomes: list[str]) -> str:
    """Write the first outcome whose condition holds; the last needs none."""
    if not conditions or len(set(outcomes)) == 1:
        return outcomes[-1]
    branches = " ".join(
        f"WHEN {condition} THEN {outcome}" for condition, outcome in zip(conditions, outcomes, strict=False)
    )
    return f"CASE {branches} ELSE {outcomes[-1]} END"
