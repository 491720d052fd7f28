"""The few kinds of error a caller may want to catch on their own.

Every message names the argument, the rule, what came, and what to do. A
numerical outcome that is not misuse (an open gap, an unproven optimum) is
never an exception: it is a status on the certificate.
"""

from collections.abc import Sequence


class InputError(ValueError):
    """An argument breaks a rule: wrong shape, NaN, unknown label, bad slack."""


class OutsideSpaceError(InputError):
    """Forecasts, beliefs or outcomes lie outside the outcome space.

    Attributes
    ----------
    rows : tuple of int
        Positions of the offending rows (all of them, not only those shown).
    """

    def __init__(self, message: str, rows: Sequence[int]) -> None:
        super().__init__(message)
        self.rows = tuple(int(row) for row in rows)


class InfeasibleError(ValueError):
    """No world satisfies the guarantee: the ambiguity set is empty."""


class FileFormatError(ValueError):
    """A file is not what it should be: foreign, truncated, altered or too new."""


class EngineError(RuntimeError):
    """A query on a lazy table failed or was cancelled; the message holds the engine's own words."""


def stopped_by_signal(error: Exception) -> bool:
    """True for what DuckDB makes of a signal, such as Ctrl-C, that comes while it works."""
    return isinstance(error, RuntimeError) and str(error) == "Query interrupted"


class MissingExtraError(ImportError):
    """An optional dependency is not installed."""

    def __init__(self, package: str, extra: str, purpose: str) -> None:
        super().__init__(
            f"{purpose} needs {package}, which is not installed. Install it with: pip install 'prudent[{extra}]'"
        )
