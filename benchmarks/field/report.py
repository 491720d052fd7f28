"""Tables of the field benchmark, as markdown."""

from __future__ import annotations

from collections.abc import Iterator

import pandas as pd

from benchmarks.field.methods import advice, advice_by_rows, bias, follow, isotonic, platt
from benchmarks.field.summary import HARM, Mean, difference, kept, summarise, weighted_median

RECALIBRATIONS = (bias.NAME, platt.NAME, isotonic.NAME)
ADVICE = (advice.NAME, advice_by_rows.NAME)
_FEWEST = 4  # eras before, from which on eras can be units


def ordered(results: pd.DataFrame) -> list[str]:
    """Methods as they come."""
    return list(dict.fromkeys(results["method"]))


def best_recalibration(results: pd.DataFrame) -> str:
    """Name the one that gained most, in hindsight."""
    gains = {name: _gain(results[results["method"] == name]).mean for name in RECALIBRATIONS}
    return max(gains, key=lambda name: gains[name])


def _gain(results: pd.DataFrame) -> Mean:
    found = summarise(results)["gain"]
    assert isinstance(found, Mean)  # noqa: S101  # for the type
    return found


_COLUMNS = ("method", "sources", "gain over following", "eras harmed", "worst era", "promises", "kept", "at least")


def method_table(results: pd.DataFrame) -> Iterator[str]:
    """One line per method."""
    yield f"| {' | '.join([*_COLUMNS, 'distance', 'seconds'])} |"
    yield "|---|" + "---:|" * (len(_COLUMNS) + 1)
    for name in ordered(results):
        found = summarise(results[results["method"] == name])
        gain, promise = found["gain"], ["", "", "", ""]
        if found["promised"]:
            shares = [f"{found['kept']:.1%}", f"{found['least']:.1%}"]
            promise = [f"{found['promised']:,}", *shares, f"{found['distance']:.2f}"]
        own = [f"{signed(gain.mean)} ± {gain.radius:.3f}", f"{found['harmed']:.1%}", signed(found["worst"], 2)]
        seconds = f"{found['seconds']:.3f}"
        yield f"| {' | '.join([name, str(found['sources']), *own, *promise, seconds])} |"


def signed(value: float, digits: int = 3) -> str:
    """Write a gain; zero has no sign."""
    text = f"{value:+.{digits}f}"
    return text[1:] if not text.strip("+-0.") else text


def source_table(results: pd.DataFrame, names: list[str]) -> Iterator[str]:
    """Gains, one line per source."""
    yield f"| source | eras | cells | {' | '.join(names)} |"
    yield "|---|---:|---:|" + "---:|" * len(names)
    for source, part in results.groupby("source"):
        cells = len(part.groupby(["forecaster", "setting"]))
        eras, columns = part["era"].nunique(), []
        for name in names:
            own = part[part["method"] == name]
            gain = _gain(own) if len(own) else None
            spread = "" if gain is None or eras == 1 else f" ± {gain.radius:.3f}"
            columns.append("" if gain is None else f"{signed(gain.mean)}{spread}")
        yield f"| {source} | {eras} | {cells} | {' | '.join(columns)} |"


def harm_table(results: pd.DataFrame, names: list[str]) -> Iterator[str]:
    """Shares of eras harmed and the worst one, one line per source."""
    yield f"| source | {' | '.join(names)} |"
    yield "|---|" + "---:|" * len(names)
    for source, part in results.groupby("source"):
        columns = []
        for name in names:
            gains = part[part["method"] == name]["gain"]
            columns.append(f"{(gains < -HARM).mean():.0%}, {signed(gains.min(), 2)}" if len(gains) else "")
        yield f"| {source} | {' | '.join(columns)} |"


def promise_table(results: pd.DataFrame) -> Iterator[str]:
    """Promises of advice by source, with eras and with rows as units."""
    yield "| source | promises | kept | nominal less sampling error | distance | by rows: kept | distance |"
    yield "|---|---:|---:|---:|---:|---:|---:|"
    promised = results[results["promise"].notna()]
    for source, part in promised.groupby("source"):
        found = [part[part["method"] == name] for name in ADVICE]
        if not len(found[0]):
            continue
        same = found[1].merge(found[0][["forecaster", "setting", "era"]], on=["forecaster", "setting", "era"])
        own = summarise(found[0])
        rows = f"{kept(same).mean():.1%} | {weighted_median(same, (same['utility'] - same['promise']).abs()):.2f}"
        shares = f"{own['kept']:.1%} | {own['least']:.1%}"
        yield f"| {source} | {own['promised']} | {shares} | {own['distance']:.2f} | {rows} |"


def verdict_table(results: pd.DataFrame, *, sources: bool = False) -> Iterator[str]:
    """What came after each verdict, beside what recalibrations did in the same eras; of every source, or of all."""
    first = "source" if sources else "advice"
    yield f"| {first} | verdict | decisions | gain | eras harmed | recalibrations there: mean gain | best |"
    yield "|---|---|---:|---:|---:|---:|---:|"
    keys = ["source", "forecaster", "setting", "era"]
    wide = results[results["method"].isin(RECALIBRATIONS)].pivot(index=keys, columns="method", values="gain")
    own = results[results["method"].isin(ADVICE[:1] if sources else ADVICE)].set_index(keys)
    for (name, verdict), part in own.groupby(["source" if sources else "method", "verdict"]):
        there = wide.loc[part.index]
        columns = [part["gain"], (part["gain"] < -HARM).astype(float), there.mean(axis=1), there.max(axis=1)]
        gain, harmed, mean, best = (float(each.groupby(level="source").mean().mean()) for each in columns)
        numbers = f"{signed(gain)} | {harmed:.1%} | {signed(mean)} | {signed(best)}"
        yield f"| {name} | {verdict.replace('_', ' ')} | {len(part)} | {numbers} |"


def without_table(results: pd.DataFrame) -> Iterator[str]:
    """What is left without one of the sources."""
    names = [*RECALIBRATIONS, *ADVICE]
    yield f"| without | {' | '.join(names)} |"
    yield "|---|" + "---:|" * len(names)
    for source in sorted(results["source"].unique()):
        others = results[results["source"] != source]
        gains = [_gain(others[others["method"] == name]) for name in names] if len(others) else []
        yield f"| {source} | {' | '.join(f'{signed(gain.mean)} ± {gain.radius:.3f}' for gain in gains)} |"


def goals(results: pd.DataFrame) -> Iterator[str]:
    """What the benchmark must show, with numbers."""
    best = best_recalibration(results)
    theirs = summarise(results[results["method"] == best])
    for name in ADVICE:
        own, apart = summarise(results[results["method"] == name]), difference(results, name, best)
        held = apart.mean >= -apart.error
        yield (
            f"- *{name}* gains {signed(apart.mean)} ({apart.error:.3f} standard error) over *{best}*, the best single "
            f"recalibration: {'at least' if held else 'LESS THAN'} it less one standard error."
        )
        fewer = own["harmed"] <= theirs["harmed"] / 3
        yield (
            f"- *{name}* harms {own['harmed']:.1%} of eras, *{best}* {theirs['harmed']:.1%}: "
            f"{'at most' if fewer else 'MORE THAN'} a third."
        )
        right = "at least" if own["kept"] >= own["least"] else "LESS THAN"
        near = "at most" if own["distance"] <= 0.6 else "MORE THAN"
        yield (
            f"- *{name}* kept {own['kept']:.1%} of its promises, {right} {own['least']:.1%}; median distance "
            f"{own['distance']:.2f}, {near} 0.6 of the cost."
        )


def full_report(results: pd.DataFrame, left_out: list[str], head: list[str]) -> str:
    """Everything."""
    late = results[results["past_eras"] >= _FEWEST]
    first = [*RECALIBRATIONS, *ADVICE]
    others = [name for name in ordered(results) if name not in (follow.NAME, *first)]
    parts = [
        [*head],
        ["## All sources", "", *method_table(results)],
        ["## Eras with at least four before them", "", *method_table(late)],
        ["## What it must show", "", *goals(results)],
        ["With at least four eras before:", "", *goals(late)],
        ["## Gain by source", "", *source_table(results, first)],
        ["The other methods:", "", *source_table(results, others)],
        ["## Eras harmed and the worst one by source", "", *harm_table(results, first)],
        ["## Promises by source", "", "In the same eras, those with four eras before.", "", *promise_table(results)],
        ["## Verdicts and what came after them", "", *verdict_table(results)],
        ["Of advice by eras, by source:", "", *verdict_table(results, sources=True)],
        ["## Gain without one of the sources", "", *without_table(results)],
        ["## Left out", "", *(f"- {line}" for line in left_out)],
    ]
    return "\n\n".join("\n".join(part) for part in parts if part) + "\n"
