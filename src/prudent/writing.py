"""How sentences and tables write numbers: with a few digits, and large ones in full."""

from __future__ import annotations

__all__ = ["written"]

_IN_GROUPS = 1e4
_IN_FULL = 1e9


def written(value: float, digits: int, sign: str = "") -> str:
    """Write a number with so many digits that mean something; in full up to a billion, in groups from 10,000 on.

    Examples
    --------
    >>> from prudent.writing import written
    >>> [written(value, 4) for value in (0.00012346, 0.5, 1234.0, 64023.4, -2500000.0, 7.5e12)]
    ['0.0001235', '0.5', '1234', '64,020', '-2,500,000', '7.5e+12']
    >>> written(64023.4, 6), written(640.0, 2), written(128.0, 2, "+")
    ('64,023.4', '640', '+130')
    """
    text = f"{value:{sign}.{digits}g}"
    size = abs(float(text))
    if not size < _IN_FULL or ("e" not in text and size < _IN_GROUPS) or "e-" in text:
        return text
    group = "," if size >= _IN_GROUPS else ""
    return f"{float(text):{sign}{group}.0f}" if "e" in text else f"{float(text):{sign}{group}.{digits}g}"
