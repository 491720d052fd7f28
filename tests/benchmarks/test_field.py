"""The field benchmark on made-up sources; and, where they are, the real ones are read."""

from __future__ import annotations

import json
import re
from dataclasses import replace
from pathlib import Path
from types import ModuleType

import numpy as np
import pandas as pd
import pytest
from benchmarks.field import __main__ as command
from benchmarks.field import defaults, protocol
from benchmarks.field.forecaster import Array, Forecaster, Rows, protection
from benchmarks.field.levels import level_settings
from benchmarks.field.methods import hindsight, tuned_threshold
from benchmarks.field.pictures import draw
from benchmarks.field.report import full_report, signed
from benchmarks.field.summary import era_means, least_kept, summarise, weighted, weighted_median

METHODS = [method for method in protocol.all_methods() if protocol.installed(method)]
NAMES = [method.NAME for method in METHODS]
FAST = ["follow the forecast", "isotonic", "advice, by eras"]


def event(n_eras: int = 6, n: int = 60, seed: int = 0, name: str = "made up") -> Forecaster:
    """Forecasts of an event that are too high, day by day; outcomes are known two days later."""
    rng = np.random.default_rng(seed)
    forecasts = rng.beta(1, 2, n_eras * n)
    outcomes = (rng.random(n_eras * n) < forecasts**2).astype(float)
    day = np.datetime64("2020-01-01") + np.arange(n_eras * n)
    eras = np.repeat(np.arange(n_eras), n)
    context = {"site": rng.choice(["a", "b"], n_eras * n)}
    rows = Rows(forecasts, outcomes, eras, context, decided=day, known=day + 2)
    return Forecaster(name, "one", rows, protection((0.2, 0.4), actions=("wait", "act")))


def classes(seed: int = 0) -> Forecaster:
    rng = np.random.default_rng(seed)
    names = np.array(["low", "middle", "high"])
    forecasts = rng.dirichlet([1, 2, 1], 240)
    outcomes = names[[rng.choice(3, p=0.5 * row + np.array([0.3, 0.1, 0.1])) for row in forecasts]]
    settings = level_settings([0, 1, 2], ["little", "more", "most"], list(names))
    return Forecaster("classes", "one", Rows(forecasts, outcomes, np.repeat(np.arange(6), 40)), settings)


def test_past_is_what_was_known_before_the_first_decision_of_an_era() -> None:
    found = list(protocol.rounds(event()))
    assert [era for era, _, _ in found] == [1, 2, 3, 4, 5]
    for era, past, now in found:
        assert past.known is not None
        assert now.decided is not None
        assert (past.known <= now.decided.min()).all()
        assert len(past.forecasts) == 60 * era - 1  # the outcome of the last day comes too late
        assert (now.eras == era).all()


def test_tasks_are_left_out_one_by_one() -> None:
    one = classes()
    found = list(protocol.rounds(replace(one, ordered=False)))
    assert len(found) == 6
    for era, past, now in found:
        assert set(past.eras) == set(range(6)) - {era}
        assert len(now.forecasts) == 40


def test_an_era_after_too_few_rows_is_not_decided() -> None:
    assert not list(protocol.rounds(event(n_eras=2, n=protocol.FEWEST_ROWS - 1)))


@pytest.mark.parametrize("make", [event, classes])
@pytest.mark.filterwarnings("ignore::FutureWarning")
def test_gains_are_those_of_plain_arithmetic_and_nobody_beats_hindsight(make: object) -> None:
    one = event() if make is event else classes()
    found = protocol.play(one, METHODS, latest=1)
    era, past, now = list(protocol.rounds(one))[-1]
    best = {result["setting"]: result["utility"] for result in found[hindsight.NAME]}
    for method in METHODS:
        for result in found[method.NAME]:
            setting = one.settings[result["setting"]]
            assert result["era"] == str(era)
            mixtures = method.decide(past, now, setting.problem).mixtures
            np.testing.assert_allclose(mixtures.sum(axis=1), 1)
            total = follow_total = 0.0
            for row, outcome in enumerate(now.outcomes):
                place = float(outcome) if make is event else np.eye(3)[["low", "middle", "high"].index(outcome)]
                earned = [float(np.sum(r * place)) - c for r, c in zip(*parts(setting.problem), strict=True)]
                hoped = [
                    float(np.sum(r * now.forecasts[row])) - c for r, c in zip(*parts(setting.problem), strict=True)
                ]
                total += float(np.dot(mixtures[row], earned))
                follow_total += earned[int(np.argmax(hoped))]
            n = len(now.outcomes) * setting.cost
            assert result["utility"] == pytest.approx(total / n, abs=1e-9)
            assert result["gain"] == pytest.approx((total - follow_total) / n, abs=1e-9)
            assert result["utility"] <= best[result["setting"]] + 1e-9
    assert all(result["gain"] == 0 for result in found["follow the forecast"])
    assert {result["promise"] is None for result in found["advice, by eras"]} == {False}


def parts(problem: object) -> tuple[Array, Array]:
    return problem.rewards, problem.costs  # type: ignore[attr-defined]


@pytest.mark.parametrize("method", [method for method in METHODS if method is not hindsight], ids=lambda m: m.NAME)
def test_methods_do_not_see_what_has_not_happened(method: ModuleType) -> None:
    one = event()
    _, past, now = list(protocol.rounds(one))[-1]
    assert now.known is not None
    assert now.decided is not None
    within = getattr(method, "WITHIN", False)
    hidden = now.known >= now.decided[len(now.decided) // 2] if within else np.ones(len(now.outcomes), dtype=bool)
    changed = replace(now, outcomes=np.where(hidden, 1 - now.outcomes, now.outcomes))
    problem = one.settings["price 0.2"].problem
    early = now.decided <= now.decided[len(now.decided) // 2] if within else hidden
    before, after = (method.decide(past, rows, problem) for rows in (now, changed))
    np.testing.assert_array_equal(before.mixtures[early], after.mixtures[early])
    assert before.promise == after.promise


def test_methods_that_learn_within_an_era_do() -> None:
    one = event(n=200)
    _, past, now = list(protocol.rounds(one))[-1]
    changed = replace(now, outcomes=np.ones_like(now.outcomes))
    learning = [method for method in METHODS if getattr(method, "WITHIN", False)]
    assert len(learning) == 2
    for method in learning:
        problem = one.settings["price 0.2"].problem
        before, after = (method.decide(past, rows, problem).mixtures for rows in (now, changed))
        assert (before != after).any()


def test_the_tuned_threshold_is_the_best_of_all() -> None:
    rng = np.random.default_rng(1)
    for seed in range(20):
        one = event(n_eras=1, n=40, seed=seed)
        forecasts = rng.choice(np.round(one.rows.forecasts, 1), 40)  # with ties
        rows, problem = replace(one.rows, forecasts=forecasts), one.settings["price 0.2"].problem
        played = tuned_threshold.decide(rows, rows, problem).mixtures
        utilities = np.column_stack([-rows.outcomes, np.full(40, -0.2)])
        every = [np.where(forecasts >= cut, utilities[:, 1], utilities[:, 0]).sum() for cut in [*forecasts, 2.0]]
        assert (utilities * played).sum() == pytest.approx(max(every))


def test_handicaps_never_lower_past_utility() -> None:
    for seed in range(5):
        one = classes(seed)
        for setting in one.settings.values():
            utilities = one.rows.utilities(setting.problem)
            tuned, followed = (
                (utilities * module.decide(one.rows, one.rows, setting.problem).mixtures).sum()
                for module in (tuned_threshold, METHODS[0])
            )
            assert tuned >= followed - 1e-9


def test_a_run_continues_and_repeats_itself(tmp_path: Path) -> None:
    one = event()
    first = protocol.measure(one, FAST, tmp_path / "cache")
    files = sorted((tmp_path / "cache").iterdir())
    assert len(files) == len(FAST)
    poisoned = files[0]
    kept = json.loads(poisoned.read_text())
    poisoned.write_text(json.dumps([{**result, "gain": 7.0} for result in kept]))
    assert sum(result["gain"] == 7.0 for result in protocol.measure(one, FAST, tmp_path / "cache")) == len(kept)
    again = protocol.measure(one, FAST, tmp_path / "other")
    assert [{**result, "seconds": 0} for result in again] == [{**result, "seconds": 0} for result in first]
    other = replace(one, rows=replace(one.rows, outcomes=1 - one.rows.outcomes))
    protocol.measure(other, FAST[:1], tmp_path / "cache")
    assert len(list((tmp_path / "cache").iterdir())) == len(FAST) + 1  # other data, another file


def results() -> pd.DataFrame:
    """Source a has eras with gains 1 (twice) and 3, source b one era with -1."""
    known = {"forecaster": "f", "method": "m", "verdict": "", "seconds": 1.0, "past_eras": 4}
    rows = [("a", "1", "s", 1.0, 0.4, 0.5), ("a", "1", "t", 1.0, None, 0.0), ("a", "2", "s", 3.0, 0.0, 1.0)]
    rows += [("b", "1", "s", -1.0, 0.2, 0.1)]
    columns = ["source", "era", "setting", "gain", "promise", "utility"]
    return pd.DataFrame([{**known, **dict(zip(columns, row, strict=True))} for row in rows])


def test_sources_count_alike_and_eras_within_them() -> None:
    found = summarise(results())
    gain = weighted(era_means(results(), "gain"), "gain")
    assert gain.mean == pytest.approx((2 + -1) / 2)
    # Two eras of weight 1/4 and squared deviations 1, scaled by 2; one of weight 1/2 around the mean of all.
    assert gain.error == pytest.approx(np.sqrt(2 * 2 / 16 + 1.5**2 / 4))
    assert found["gain"] == gain
    assert found["harmed"] == pytest.approx(0.5)
    assert found["worst"] == -1.0
    assert (found["promised"], found["kept"]) == (3, pytest.approx(0.5))
    assert found["least"] == pytest.approx(0.95 - 1.645 * np.sqrt(0.0475 * (2 / 16 + 1 / 4)))
    promised = results().dropna(subset=["promise"])
    assert least_kept(promised) == found["least"]
    assert weighted_median(promised, pd.Series([1.0, 2.0, 9.0])) == 2.0


def test_gains_are_written_with_a_sign_unless_they_are_zero() -> None:
    assert [signed(value) for value in (0.0123, -0.0123, 0.0001, -0.0001)] == ["+0.012", "-0.012", "0.000", "0.000"]


def test_reports_and_pictures_show_all_methods(tmp_path: Path) -> None:
    found = [each for one in (event(), classes()) for each in protocol.measure(one, NAMES, tmp_path, latest=2)]
    text = full_report(pd.DataFrame(found), ["one that is missing."], ["# Title"])
    for name in NAMES:
        assert f"| {name} |" in text
    assert "- one that is missing." in text
    draw(pd.DataFrame(found), tmp_path / "images")
    assert (tmp_path / "images" / "field.png").stat().st_size > 0
    assert (tmp_path / "images" / "field-promises.png").stat().st_size > 0


def test_other_defaults_are_compared_with_the_present_ones() -> None:
    chosen = ("chosen at 95%", "isotonic alone", "three folds")
    every = dict(defaults.VARIANTS)
    one, other = event(), event(seed=1, name="other")
    for name in every.keys() - {defaults.DEFAULT, *chosen}:
        del defaults.VARIANTS[name]
    try:
        lines = list(defaults.table(pd.DataFrame([*defaults.measure(one), *defaults.measure(other)])))
    finally:
        defaults.VARIANTS.clear()
        defaults.VARIANTS.update(every)
    assert len(lines) == 5 + len(chosen) + 1
    assert defaults.advising.CHOICE == 0.9
    assert defaults.past_cases.FOLDS == 5


def test_missing_files_are_named(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    with pytest.raises(SystemExit, match=r"Nothing was decided.*nba_games.*csv\.gz is not there"):
        command.main(["--data-dir", str(tmp_path), "--jobs", "1"])


def test_real_sources_can_be_read_and_decided(data_directory: Path, tmp_path: Path) -> None:
    if not (data_directory / "field").is_dir():
        pytest.skip("the real forecasts are not here")
    found, missing = command.read_sources(data_directory / "field")
    assert all(line.partition(":")[0] in ("crowd_markets", "mlb_games", "rain_niamey") for line in missing)
    by_source: dict[str, list[Forecaster]] = {}
    for one in found:
        by_source.setdefault(one.source, []).append(one)
        assert len(one.settings) >= 3
        assert np.isfinite(one.rows.forecasts).all()
    assert {name: len(each) for name, each in by_source.items() if len(each) > 1} == {
        "electricity_price_de": 2,
        "electricity_price_np": 2,
        "flusight_admissions": 6,
        "flusight_rate_change": 8,
        "llm_confidence": 2,
        "rain_niamey": 4,
        "solar_flares_m1": 18,
        "spf_recession": 5,
    }
    assert not list(protocol.rounds(by_source["rain_niamey"][0]))
    crowd = by_source["crowd_markets"][0].rows
    assert 0.2 < crowd.outcomes[crowd.eras == crowd.eras.max()].mean() < 0.5  # those kept for their outcome are out
    decided = protocol.measure(by_source["world_cup_men"][0], FAST, tmp_path)
    assert len(decided) == 2 * 3 * len(FAST)


ROOT = Path(__file__).parents[2]


def table_rows(page: Path) -> list[str]:
    return [line for line in page.read_text().splitlines() if line.startswith("| ")]


def test_pages_show_what_the_benchmark_wrote() -> None:
    written = {
        row for name in ("field", "field-defaults") for row in table_rows(ROOT / f"benchmarks/results/{name}.md")
    }
    page = [
        row for row in table_rows(ROOT / "docs/explanation/field.md") if not row.startswith(("| `", "| source | fo"))
    ]
    assert len(page) > 30
    assert set(page) <= written
    pattern = re.compile(r"[+-]?\d\.\d{3} ± \d\.\d{3} \| \d+\.\d% \|")  # gain and harm
    shown, known = (
        {found[0] for row in rows if (found := pattern.search(row))}
        for rows in (table_rows(ROOT / "README.md"), written)
    )
    assert len(shown) == 6
    assert shown <= known


def test_the_page_cites_all_sources() -> None:
    page = (ROOT / "docs/explanation/field.md").read_text()
    for source in protocol.all_sources():
        line = next(line for line in page.splitlines() if line.startswith(f"| `{source.FILES[0]}`"))
        for text in (source.CITATION, source.LICENCE, *source.FILES):
            assert text in line
