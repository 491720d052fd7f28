"""Pictures of results: an audit as a forest plot, the ladder of guarantees, and a stress test as bars."""

from typing import Any, Self

import numpy as np

from prudent.adversary.stress_test import StressTest, stress_test
from prudent.evidence.audits import Audit, audit
from prudent.evidence.ladder import GuaranteeLadder, guarantee_ladder
from prudent.formatting import format_number
from prudent.plots.style import COLORS, ResultDisplay, axes, filling, wrapped


class AuditDisplay(ResultDisplay):
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
    >>> guarantee = prudent.guarantees.Bins(5)
    >>> AuditDisplay.from_predictions(forecasts, outcomes, guarantee).ax_.get_xlabel()
    'E[h(v) (Y - v)], in units of test times outcome'
    """

    result: Audit
    _type, _function = Audit, "audit"

    @classmethod
    def from_predictions(cls, forecasts: Any, outcomes: Any, guarantee: Any, *, ax: Any = None, **options: Any) -> Self:
        """Audit and draw; options go to :func:`prudent.audit`."""
        return cls(audit(None, forecasts, outcomes, guarantee=guarantee, **options)).plot(ax=ax)

    def plot(self, ax: Any = None) -> Self:
        """Draw a row per moment; of more than thirty those with the smallest p-values."""
        result = self.result
        names, rejected = result.moment_names, set(result.rejected)
        order = np.sort(np.argsort(result.p_values, kind="stable")[:30])
        labels = wrapped([names[k] for k in order], 34)
        ax = axes(ax, (7.5, 1.8 + 0.34 * max(len(order), 2) + 0.1 * "".join(labels).count("\n")))
        # Slack is in scaled units; the picture shows it in those of the moments.
        reach = (result.slack.reshape(-1) * result.measured.tests.scales)[order]
        ax.barh(range(len(order)), 2 * reach, left=-reach, height=0.62, color="0.9")
        for place, k in enumerate(order):
            color, marker, style = (COLORS[5], "X", "--") if names[k] in rejected else (COLORS[0], "o", "-")
            ax.plot(result.intervals[k], [place, place], color=color, linewidth=2, linestyle=style)
            ax.plot(result.estimates[k], place, marker=marker, color=color, markersize=7)
        ax.axvline(0, color="black", linewidth=1)
        ax.use_sticky_edges = False
        ax.margins(x=0.05)
        ax.set_yticks(range(len(order)), labels)
        ax.set_ylim(len(order) - 0.4, -0.6)
        ax.set_xlabel("E[h(v) (Y - v)], in units of test times outcome")
        count, wrong = len(names), len(rejected)
        finding = f"None of {count} moment{'s' * (count != 1)} is shown to be violated"
        if wrong:
            finding = f"{wrong} of {count} moments {'is' if wrong == 1 else 'are'} violated (crosses, dashed)"
        hidden = f"; {count - len(order)} with larger p-values not shown" if count > len(order) else ""
        return self._finished(
            ax,
            finding,
            f"intervals hold for all at once with {100 * result.confidence:g}% confidence, {result.n_rows:,} rows; "
            f"grey: slack around zero{hidden}",
            width=56,
        )


class LadderDisplay(ResultDisplay):
    """What every guarantee on a ladder is worth.

    Parameters
    ----------
    result : GuaranteeLadder

    Examples
    --------
    >>> import numpy as np, prudent
    >>> from prudent.plots import LadderDisplay
    >>> rng = np.random.default_rng(0)
    >>> problem = prudent.DecisionProblem([0.72, 0.90, 1.08], [0.02, 0.05, 0.10])
    >>> forecasts = rng.random(2000)
    >>> outcomes = (rng.random(2000) < forecasts).astype(float)
    >>> display = LadderDisplay.from_predictions(forecasts, outcomes, problem)
    >>> display.ax_.get_xlabel()
    'expected utility'
    """

    result: GuaranteeLadder
    _type, _function = GuaranteeLadder, "guarantee_ladder"

    @classmethod
    def from_predictions(cls, forecasts: Any, outcomes: Any, problem: Any, *, ax: Any = None, **options: Any) -> Self:
        """Make the ladder and draw it; options go to :func:`prudent.guarantee_ladder`."""
        return cls(guarantee_ladder(problem, forecasts, outcomes, **options)).plot(ax=ax)

    def plot(self, ax: Any = None) -> Self:
        """Draw bars of guaranteed utility, dots of what the same policy gets if forecasts are right."""
        result, rungs, best = self.result, self.result.rungs, self.result.best
        ax = axes(ax, (8.5, 0.55 * len(rungs) + 1.6))
        plug_in, nominal = best.nominal + best.given_up, [rung.nominal for rung in rungs]
        values = [plug_in, *nominal, *(rung.guaranteed for rung in rungs)]
        # Bars start at zero where that leaves differences visible, else a little below the least.
        least, most = min(values), max(values)
        room = max(most - least, 1e-12)
        start = 0.0 if 0 <= least <= 3 * room else least - 0.25 * room
        for place, rung in enumerate(rungs):
            bar, text = (COLORS[0], "white") if rung is best else (COLORS[4], "black")
            ax.barh(place, rung.guaranteed - start, left=start, color=bar, height=0.6)
            number = f"{format_number(rung.guaranteed, 3)} "
            ax.text(rung.guaranteed, place, number, ha="right", va="center", color=text, fontsize=9)
        places = range(len(rungs))
        ax.plot(nominal, places, "o", color=COLORS[5], label="if the forecasts are right")
        ax.axvline(plug_in, color=COLORS[5], linestyle=":", linewidth=1, label="best responding,\nif they are right")
        ax.set_yticks(places, [rung.name if rung.holds else f"{rung.name} (violated)" for rung in rungs])
        ax.get_yticklabels()[rungs.index(best)].set_fontweight("bold")
        ax.set(xlim=(start, most + 0.08 * room), xlabel="expected utility")
        return self._finished(
            ax,
            f"What each guarantee is worth; best: {best.name!r}",
            f"bars: guaranteed with {100 * result.confidence:g}% confidence, {result.n_rows:,} rows",
        )


class StressTestDisplay(ResultDisplay):
    """Expected utility of policies, world by world.

    Parameters
    ----------
    result : StressTest

    Examples
    --------
    >>> import numpy as np, prudent
    >>> from prudent.plots import StressTestDisplay
    >>> problem = prudent.DecisionProblem([1.0, -1.0], [0.0, -1.0])
    >>> forecasts, guarantee = np.random.default_rng(0).random(300), prudent.guarantees.SelfOrthogonal()
    >>> policies = {"plug-in": prudent.PlugInPolicy(problem), "safety": prudent.SafetyPolicy(problem)}
    >>> StressTestDisplay.from_policies(policies, forecasts, guarantee=guarantee).ax_.get_xlabel()
    'expected utility'
    """

    result: StressTest
    _type, _function = StressTest, "stress_test"

    @classmethod
    def from_policies(
        cls, policies: Any, forecasts: Any, outcomes: Any = None, *, ax: Any = None, **options: Any
    ) -> Self:
        """Compute and draw; options go to :func:`prudent.stress_test`."""
        return cls(stress_test(policies, forecasts, outcomes, **options)).plot(ax=ax)

    def plot(self, ax: Any = None) -> Self:
        """Draw one group of bars per world."""
        result = self.result
        columns, policies = dict(result.columns), result.names
        del columns["policy"]
        labels = wrapped(list(columns), 26)
        lines = sum(max(1.4, label.count("\n") + 1.0, 0.62 * len(policies)) for label in labels)
        ax = axes(ax, (8.0, 1.5 + 0.32 * lines))
        height = 0.82 / len(policies)
        behind = {"facecolor": "white", "edgecolor": "none", "pad": 0.5, "alpha": 0.8}
        for i, name in enumerate(wrapped(policies)):
            places = np.arange(len(columns)) + (i - (len(policies) - 1) / 2) * height
            values = [float(values[i]) for values in columns.values()]
            bars = ax.barh(places, values, height=0.94 * height, label=name, **filling(i, len(policies)))
            if len(policies) <= 6:
                ax.bar_label(bars, [format_number(value, 3) for value in values], padding=3, fontsize=8, bbox=behind)
        ax.axvline(result.optimum.lower, color="black", linestyle=":", linewidth=1.2, label="best possible guarantee")
        ax.axvline(0, color="0.5", linewidth=0.8)
        ax.set_yticks(range(len(columns)), labels)
        ax.invert_yaxis()
        ax.margins(x=0.1)
        ax.set_xlabel("expected utility")
        best, worst = result.worst.argmax(), result.worst.argmin()
        finding = f"In its own worst world {policies[best]} still gets {format_number(result.worst[best], 3)}"
        if np.ptp(result.worst) >= 1e-9:
            finding += f", {policies[worst]} {format_number(result.worst[worst], 3)}"
        return self._finished(ax, finding)
