"""Draw actions from mixtures, reproducibly, from a seed that knows nothing of the forecast.

A deterministic function of the forecast would be visible to the adversary
(docs/theory.md, section 3.2), so a draw depends on a key of the record or on a
random state, never on the forecast.
"""

from hashlib import sha256
from typing import Any

import numpy as np

from prudent.arrays import BoolArray, FloatArray, IntArray, describe_rows, listed, missing_rows
from prudent.errors import InputError

_BITS = 52  # 13 hex digits, what a float holds exactly
_SURE = 1e-12  # probabilities this close to zero or one are rounded


def uniforms_from_keys(keys: Any, salt: str, n: int) -> FloatArray:
    """Map each key to ``[0, 1)``: the first 13 hex digits of SHA-256(salt + NUL + str(key)) over 16^13."""
    items = listed(keys, "keys")
    if len(items) != n:
        raise InputError(f"keys must have one entry per row, {n}; got {len(items)}.")
    if not set(map(type, items)) <= {str, int}:
        missing = np.flatnonzero(missing_rows(items, "keys"))
        if missing.size:
            raise InputError(f"keys must not be missing; the key of {describe_rows(missing)} is.")
    prefix = f"{salt}\0"
    try:
        digests = [sha256(f"{prefix}{key}".encode()).digest()[:8] for key in items]
    except UnicodeEncodeError as error:
        raise InputError("keys and salt must be text that UTF-8 can write; one has a lone surrogate.") from error
    return (np.frombuffer(b"".join(digests), dtype=">u8") >> np.uint64(64 - _BITS)).astype(np.float64) / 2.0**_BITS


def draw(mixtures: FloatArray, uniforms: FloatArray) -> IntArray:
    """Return the first action whose cumulative probability exceeds the uniform number."""
    cumulative = np.cumsum(mixtures, axis=1)
    m = mixtures.shape[1]
    last = m - 1 - (mixtures[:, ::-1] > 0).argmax(axis=1)
    # Rounding may leave the total below the number; the last possible action takes what is left.
    cumulative[np.arange(m) >= last[:, None]] = np.inf
    return (cumulative > uniforms[:, None]).argmax(axis=1).astype(np.int64)


def draw_exact(mixtures: FloatArray, counted: BoolArray, order: FloatArray, start: float) -> IntArray:
    """Draw so that as many rows get ``counted`` actions as their probabilities add up to, rounded up or down.

    Systematic sampling: rows, in a random order, have parts of a line as long as their probabilities, and those with a
    point ``j + start`` on theirs get such an action. That does not depend on the place of a row in the order, so the
    numbers that order rows choose among its actions.
    """
    share = mixtures[:, counted].sum(axis=1)
    taken, rows = share > 0.5, np.argsort(order, kind="stable")
    rows = rows[(share[rows] > _SURE) & (share[rows] < 1 - _SURE)]
    ends = np.cumsum(share[rows])
    whole = np.rint(ends[-1:])
    ends[-1:] = np.where(np.abs(ends[-1:] - whole) <= _SURE * rows.size, whole, ends[-1:])
    taken[rows] = np.diff(np.floor(ends + start), prepend=0.0) > 0
    kept = np.where(counted == taken[:, None], mixtures, 0.0)
    return draw(kept / kept.sum(axis=1, keepdims=True), order)
