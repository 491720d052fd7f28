"""One module per method: ``NAME``, ``ORDER`` in tables and ``decide(past, now, problem)``.

``past`` and ``now`` are rows; what has not happened yet when a row of ``now`` is decided must not be looked at. None
instead of a decision says that a method does not apply. ``NEEDS`` names a package without which a method is left out.
"""
