"""Draw actions from mixtures, reproducibly, from a seed that knows nothing of the forecast.

A deterministic function of the forecast would be visible to the adversary
(docs/theory.md, section 3.2), so a draw depends on a key of the record or on a
random state, never on the forecast.
"""

from __future__ import annotations

from hashlib import sha256
from typing import Any

import numpy as np

from prudent.arrays import FloatArray, IntArray, listed
from prudent.errors import InputError

__all__ = ["draw", "uniforms_from_keys"]

_HEX_DIGITS = 13


def uniforms_from_keys(keys: Any, salt: str, n: int) -> FloatArray:
    """Map each key to ``[0, 1)``: the first 13 hex digits of SHA-256(salt + NUL + str(key)) over 16^13."""
    items = listed(keys, "keys")
    if len(items) != n:
        raise InputError(f"keys must have one entry per row, {n}; got {len(items)}.")
    for position, key in enumerate(items):
        if key is None or type(key).__name__ in ("NAType", "NaTType") or (isinstance(key, float) and key != key):
            raise InputError(f"keys must not be missing; the key of row {position} is.")
    prefix = f"{salt}\0"
    try:
        digits = [sha256(f"{prefix}{key}".encode()).hexdigest()[:_HEX_DIGITS] for key in items]
    except UnicodeEncodeError as error:
        raise InputError("keys and salt must be text that UTF-8 can write; one has a lone surrogate.") from error
    return np.array([int(text, 16) for text in digits], dtype=np.float64) / 16.0**_HEX_DIGITS


def draw(mixtures: FloatArray, uniforms: FloatArray) -> IntArray:
    """Return the first action whose cumulative probability exceeds the uniform number."""
    cumulative = np.cumsum(mixtures, axis=1)
    m = mixtures.shape[1]
    last = m - 1 - (mixtures[:, ::-1] > 0).argmax(axis=1)
    # Rounding may leave the total below the number; the last possible action takes what is left.
    cumulative[np.arange(m) >= last[:, None]] = np.inf
    return (cumulative > uniforms[:, None]).argmax(axis=1).astype(np.int64)
