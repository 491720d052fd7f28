"""Outcome spaces: a finite box or the probability simplex (docs/theory.md, section 1)."""

from typing import Any

from prudent.errors import FileFormatError, InputError
from prudent.spaces.base import ROUNDING, SNAP_TOLERANCE, Label
from prudent.spaces.box import Box
from prudent.spaces.simplex import Grid, Simplex

__all__ = ["ROUNDING", "SNAP_TOLERANCE", "Box", "Grid", "Label", "Simplex", "Space", "require_space", "space_from_dict"]

Space = Box | Simplex


def require_space(space: Any) -> Space:
    """Check that an argument is an outcome space."""
    if not isinstance(space, (Box, Simplex)):
        raise InputError(f"space must be a Box, a Simplex or a Grid; got {type(space).__name__}.")
    return space


def space_from_dict(document: Any) -> Space:
    """Rebuild an outcome space from its description."""
    match document:
        case {"kind": "box", "lower": lower, "upper": upper, **others} if not others:
            return Box(lower, upper)
        case {"kind": "simplex", "n_classes": count, "classes": classes, **others} if not others:
            return Simplex(count, classes=classes)
        case {"kind": "grid", "points": points, **others} if not others:
            return Grid(points)
    raise FileFormatError(
        f"space must be a box (lower, upper), a simplex (n_classes, classes) or a grid (points); got {document!r}."
    )
