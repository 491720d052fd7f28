"""Narwhals under its usual name ``nw``, imported on first use: what works on arrays must not wait for it."""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING, Any

__all__ = ["Expr", "Exprs", "Frame", "nw", "where"]

if TYPE_CHECKING:
    import narwhals.stable.v2 as nw

    Expr = nw.Expr
    Exprs = list[Expr]
    Frame = nw.LazyFrame[Any]
else:

    class _OnFirstUse:
        def __getattr__(self, name: str) -> Any:
            narwhals = import_module("narwhals.stable.v2")
            vars(self).update(vars(narwhals))
            return getattr(narwhals, name)

    nw, Expr, Exprs, Frame = _OnFirstUse(), Any, Any, Any


def where(condition: Expr, chosen: Any, otherwise: Any) -> Expr:
    """Write one of two numbers or expressions, by a condition; NULL meets none."""
    return nw.when(condition).then(chosen).otherwise(otherwise)
