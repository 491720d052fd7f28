"""Draw actions from mixtures, reproducibly, from a seed that knows nothing of the forecast.

A deterministic function of the forecast would be visible to the adversary
(docs/theory.md, section 3.2), so a draw depends on a key of the record or on a
random state, never on the forecast.
"""

from __future__ import annotations

from hashlib import sha256
from typing import Any

import numpy as np
from numpy.typing import NDArray

from prudent.arrays import FloatArray, IntArray, listed
from prudent.errors import InputError

__all__ = ["digests_of_keys", "draw", "uniforms_from_digests", "uniforms_from_keys"]

_BITS = 52  # 13 hex digits, what a float holds exactly
_DIGEST_BYTES = 16


def uniforms_from_keys(keys: Any, salt: str, n: int) -> FloatArray:
    """Map each key to ``[0, 1)``: the first 13 hex digits of SHA-256(salt + NUL + str(key)) over 16^13."""
    return uniforms_from_digests(digests_of_keys(keys, salt, n))


def digests_of_keys(keys: Any, salt: str, n: int) -> NDArray[np.uint64]:
    """Return the first sixteen bytes of SHA-256(salt + NUL + str(key)) as two numbers per key, ``(n, 2)``."""
    items = listed(keys, "keys")
    if len(items) != n:
        raise InputError(f"keys must have one entry per row, {n}; got {len(items)}.")
    if not set(map(type, items)) <= {str, int}:
        for position, key in enumerate(items):
            if key is None or type(key).__name__ in ("NAType", "NaTType") or (isinstance(key, float) and key != key):
                raise InputError(f"keys must not be missing; the key of row {position} is.")
    prefix = f"{salt}\0"
    try:
        digests = [sha256(f"{prefix}{key}".encode()).digest()[:_DIGEST_BYTES] for key in items]
    except UnicodeEncodeError as error:
        raise InputError("keys and salt must be text that UTF-8 can write; one has a lone surrogate.") from error
    return np.frombuffer(b"".join(digests), dtype=">u8").astype(np.uint64).reshape(-1, 2)


def uniforms_from_digests(digests: NDArray[np.uint64]) -> FloatArray:
    """Read the first 52 bits of each digest as a number in ``[0, 1)``."""
    return (digests[:, 0] >> np.uint64(64 - _BITS)).astype(np.float64) / 2.0**_BITS


def draw(mixtures: FloatArray, uniforms: FloatArray) -> IntArray:
    """Return the first action whose cumulative probability exceeds the uniform number."""
    cumulative = np.cumsum(mixtures, axis=1)
    m = mixtures.shape[1]
    last = m - 1 - (mixtures[:, ::-1] > 0).argmax(axis=1)
    # Rounding may leave the total below the number; the last possible action takes what is left.
    cumulative[np.arange(m) >= last[:, None]] = np.inf
    return (cumulative > uniforms[:, None]).argmax(axis=1).astype(np.int64)
