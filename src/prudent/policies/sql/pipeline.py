"""Steps inside one SQL expression: names for values, and demands that rows must meet.

Steps follow each other and are not nested in each other: engines evaluate
nested steps in time exponential in their number.
"""

from __future__ import annotations

import re
from dataclasses import dataclass, field

from prudent.policies.sql.dialects import ROW, Dialect

__all__ = ["Pipeline", "case"]


@dataclass
class Pipeline:
    """Named values of one row, each step using the names of those before it.

    Attributes
    ----------
    source : dict
        The only expressions that see the caller's columns; nothing later can be mistaken for one of them.
    strict : bool
        Whether a demand that is not met stops the query or gives NULL.
    """

    dialect: Dialect
    source: dict[str, str]
    strict: bool
    steps: list[dict[str, str] | str] = field(default_factory=list)
    count: int = 0

    def bind(self, prefix: str, expressions: list[str]) -> list[str]:
        """Name expressions, and return what stands for them from now on."""
        names = [f"{prefix}{self.count + number}" for number in range(1, len(expressions) + 1)]
        self.count += len(expressions)
        self.steps.append(dict(zip(names, expressions, strict=True)))
        return [f"{ROW}.{name}" for name in names]

    def demand(self, condition: str, message: str, shown: str) -> None:
        """Go on only with rows that meet a condition; NULL does not."""
        otherwise = self.dialect.failure(message, shown) if self.strict else "FALSE"
        self.steps.append(f"CASE WHEN {condition} THEN TRUE ELSE {otherwise} END")

    def close(self, body: str) -> str:
        """Write all steps that a body depends on, and the body."""
        needed = _names(body)
        kept: list[tuple[dict[str, str], set[str]] | str] = []
        for step in reversed(self.steps):
            if isinstance(step, str):
                needed |= _names(step)
                kept.append(step)
                continue
            used = {name: expression for name, expression in step.items() if name in needed}
            if used:
                carried = needed - set(used)
                kept.append((used, carried))
                needed = carried.union(*(_names(expression) for expression in used.values()))
        text = self.dialect.start({name: text for name, text in self.source.items() if name in needed})
        for written in reversed(kept):
            if isinstance(written, str):
                text = self.dialect.keep(text, written)
            else:
                used, carried = written
                text = self.dialect.extend(text, {**{name: f"{ROW}.{name}" for name in sorted(carried)}, **used})
        return self.dialect.finish(text, body)


def case(conditions: list[str], outcomes: list[str]) -> str:
    """Write the first outcome whose condition holds; the last needs none."""
    if not conditions or len(set(outcomes)) == 1:
        return outcomes[-1]
    branches = " ".join(
        f"WHEN {condition} THEN {outcome}" for condition, outcome in zip(conditions, outcomes, strict=False)
    )
    return f"CASE {branches} ELSE {outcomes[-1]} END"


def _names(text: str) -> set[str]:
    """Find the names that an expression uses; literals are cut out first, so that no label looks like a name."""
    return set(re.findall(rf"\b{ROW}\.([a-z]+[0-9]*)\b", re.sub(r"'(?:[^']|'')*'", "", text)))
