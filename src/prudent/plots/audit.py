"""Every moment of an audited guarantee with its simultaneous interval, as a forest plot."""

from __future__ import annotations

from typing import Any, Self

import numpy as np

from prudent.auditing import Audit, audit
from prudent.errors import InputError
from prudent.plots.style import COLORS, axes, tidy, title, wrapped

__all__ = ["AuditDisplay"]

_SHOWN = 30


class AuditDisplay:
    """Estimates, simultaneous intervals and the slack they lead to.

    Parameters
    ----------
    result : Audit

    Examples
    --------
    >>> import numpy as np, prudent
    >>> from prudent.plots import AuditDisplay
    >>> rng = np.random.default_rng(0)
    >>> forecasts = rng.random(2000)
    >>> outcomes = (rng.random(2000) < forecasts).astype(float)
    >>> guarantee = prudent.guarantees.Binned.uniform(5)
    >>> AuditDisplay.from_predictions(forecasts, outcomes, guarantee).ax_.get_xlabel()
    'E[h(v) (Y - v)], in units of test times outcome'
    """

    def __init__(self, result: Audit) -> None:
        if not isinstance(result, Audit):
            raise InputError(f"result must come from audit; got {type(result).__name__}.")
        self.result = result

    @classmethod
    def from_predictions(cls, forecasts: Any, outcomes: Any, guarantee: Any, *, ax: Any = None, **options: Any) -> Self:
        """Audit and draw; options go to :func:`prudent.audit`."""
        return cls(audit(forecasts, outcomes, guarantee, **options)).plot(ax=ax)

    def plot(self, ax: Any = None) -> Self:
        """Draw a row per moment; of more than thirty those with the smallest p-values."""
        result = self.result
        names, rejected = result.moment_names, set(result.rejected)
        order = np.sort(np.argsort(result.p_values, kind="stable")[:_SHOWN])
        labels = wrapped([names[k] for k in order], 34)
        ax = axes(ax, (7.5, 1.8 + 0.34 * max(len(order), 2) + 0.1 * sum(label.count("\n") for label in labels)))
        # Slack is in scaled units; the picture shows it in those of the moments.
        reach = result.slack.reshape(-1) * result.measured.tests.scales
        for place, k in enumerate(order):
            low, high = result.intervals[k]
            bad = names[k] in rejected
            color = COLORS[5] if bad else COLORS[0]
            ax.barh(place, 2 * reach[k], left=-reach[k], height=0.62, color="0.9")
            ax.plot([low, high], [place, place], color=color, linewidth=2, linestyle="--" if bad else "-")
            ax.plot(result.estimates[k], place, marker="X" if bad else "o", color=color, markersize=7)
        ax.axvline(0, color="black", linewidth=1)
        ax.use_sticky_edges = False
        ax.margins(x=0.05)
        ax.set_yticks(range(len(order)), labels)
        ax.set_ylim(len(order) - 0.4, -0.6)
        ax.set_xlabel("E[h(v) (Y - v)], in units of test times outcome")
        count = len(names)
        if rejected:
            finding = (
                f"{len(rejected)} of {count} moments {'is' if len(rejected) == 1 else 'are'} violated (crosses, dashed)"
            )
        else:
            finding = f"None of {count} moment{'s is' if count != 1 else ' is'} shown to be violated"
        hidden = f"; {count - len(order)} with larger p-values not shown" if count > len(order) else ""
        title(
            ax,
            finding,
            f"intervals hold for all at once with {100 * result.confidence:g}% confidence, {result.n_rows:,} rows; "
            f"grey: slack around zero{hidden}",
            width=56,
        )
        tidy(ax)
        self.ax_, self.figure_ = ax, ax.figure
        return self
