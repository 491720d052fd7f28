"""Different regions, one model: advice and recalibration where pooled numbers hide segments (theory, section 12)."""

from __future__ import annotations

from typing import Any

import duckdb
import numpy as np
import pandas as pd
import pytest

import prudent

PROBLEM = prudent.DecisionProblem([0, 100], [0, 50], actions=["wait", "act"], unit="EUR")
REGIONS = {"A": 0.12, "B": -0.12, "C": 0.0}
SAMPLES = [pytest.param(3, id="few"), pytest.param(20, id="many", marks=pytest.mark.slow)]


def regions(
    seed: int, n: int, off: dict[str, float] = REGIONS, digits: int = 12
) -> tuple[np.ndarray, np.ndarray, dict[str, np.ndarray]]:
    """Forecasts that are off by so much in each of some regions of about the same size."""
    rng = np.random.default_rng(seed)
    region = np.array(list(off))[rng.integers(0, len(off), n)]
    forecasts = rng.uniform(0.2, 0.8, n).round(digits)
    chances = forecasts + np.array([off[name] for name in region])
    return forecasts, (rng.random(n) < chances).astype(float), {"region": region}


def earned(policy: Any, forecasts: np.ndarray, outcomes: np.ndarray, context: Any) -> float:
    shown = {"context": context} if policy.columns else {}
    return float(
        (PROBLEM.utilities_of_rows(outcomes[:, None]) * policy.predict_proba(forecasts, **shown)).sum(axis=1).mean()
    )


@pytest.mark.parametrize("samples", SAMPLES)
def test_regions_that_are_off_are_named_and_repaired_where_the_pooled_answer_is_to_follow(samples: int) -> None:
    for seed in range(samples):
        forecasts, outcomes, context = regions(seed, 9_000)
        pooled = prudent.advise(PROBLEM, forecasts, outcomes)
        advice = prudent.advise(PROBLEM, forecasts, outcomes, context=context)
        assert pooled.verdict.kind.value == "follow", seed  # the dangerous answer
        assert advice.verdict.kind.value == "repair", seed
        assert "region=A" in str(advice.verdict)
        assert "region=B" in str(advice.verdict)
        assert "region=C" not in str(advice.verdict)
        fresh = regions(1_000 + seed, 50_000)
        assert earned(advice.policy, *fresh) >= earned(pooled.policy, *fresh)
        assert set(advice.segments().columns["segment"][:2]) == {"region=A", "region=B"}


def test_too_few_rows_are_no_reason_to_follow() -> None:
    """With what a segment could be worth above the tolerance it is not enough data, and not follow."""
    forecasts, outcomes, context = regions(0, 1_000)
    assert prudent.advise(PROBLEM, forecasts, outcomes).verdict.kind.value != "repair"
    advice = prudent.advise(PROBLEM, forecasts, outcomes, context=context)
    assert advice.verdict.kind.value == "not_enough_data"
    assert "shifts within region could be worth" in str(advice.verdict)


def test_one_region_is_an_exception() -> None:
    forecasts, outcomes, context = regions(0, 9_000, {"A": 0.0, "B": 0.2, "C": 0.0, "D": 0.0})
    advice = prudent.advise(PROBLEM, forecasts, outcomes, context=context)
    assert str(advice.verdict).startswith("Follow the forecast, except in region=B: recalibrated by shifts within")
    plain = prudent.PlugInPolicy(PROBLEM).predict(forecasts)
    changed = pd.Series(advice.policy.predict(forecasts, context=context) != plain).groupby(context["region"]).mean()
    assert changed.idxmax() == "B"
    assert changed["B"] > 5 * changed.drop("B").max()


@pytest.mark.parametrize("samples", [pytest.param(20, id="few"), pytest.param(200, id="many", marks=pytest.mark.slow)])
def test_a_calibrated_forecaster_is_seldom_repaired(samples: int) -> None:
    repaired = 0
    for seed in range(samples):
        forecasts, outcomes, context = regions(seed, 2_000, dict.fromkeys("ABCDE", 0.0))
        repaired += prudent.advise(PROBLEM, forecasts, outcomes, context=context).verdict.kind.value == "repair"
    assert repaired <= 0.1 * samples


@pytest.mark.parametrize("digits", [12, 1])
def test_order_and_names_change_nothing_but_names(digits: int) -> None:
    """Also where forecasts are so coarse that rows of different regions are equal in everything else."""
    forecasts, outcomes, context = regions(5, 6_000, digits=digits)
    context["size"] = np.where(forecasts * 7 % 1 < 0.4, "small", "large")
    renamed = {"A": "z", "B": "Ä", "C": "a"}
    other = {"size": context["size"], "region": np.array([renamed[name] for name in context["region"]])}
    order = np.random.default_rng(0).permutation(len(forecasts))
    first = prudent.advise(PROBLEM, forecasts, outcomes, context=context)
    frame = pd.DataFrame(other).iloc[order].reset_index(drop=True)
    second = prudent.advise(PROBLEM, forecasts[order], outcomes[order], context=frame)
    assert first.verdict.kind is second.verdict.kind
    np.testing.assert_allclose(first.menu.estimates, second.menu.estimates, rtol=0, atol=1e-9)
    np.testing.assert_allclose(first.menu.upper, second.menu.upper, rtol=0, atol=1e-9)
    mine, yours = first.segments().to_frame(), second.segments().to_frame()
    back = {f"region={new}": f"region={old}" for old, new in renamed.items()}
    joined = mine.set_index("segment").sort_index(), yours.replace({"segment": back}).set_index("segment").sort_index()
    pd.testing.assert_frame_equal(*(each.drop(columns="best") for each in joined), rtol=1e-9, atol=1e-9)


def test_segments_are_those_of_plain_arithmetic() -> None:
    forecasts, outcomes, context = regions(1, 9_000)
    advice = prudent.advise(PROBLEM, forecasts, outcomes, context=context)
    table = advice.segments().to_frame().set_index("segment")
    best = (forecasts > 0.5).astype(float)
    for name in REGIONS:
        inside = context["region"] == name
        row = table.loc[f"region={name}"]
        assert row["cases"] == inside.sum()
        assert row["promised"] == pytest.approx((best * (100 * forecasts - 50))[inside].mean())
        assert row["earned"] == pytest.approx((best * (100 * outcomes - 50))[inside].mean())
        assert row["earned from"] < row["earned"] < row["to"]
        assert row["gain at least"] < row["gain"]
    costs = table["best gain"] * table["cases"]
    assert (np.diff(costs) <= 0).all()


@pytest.mark.parametrize(
    ("context", "said"),
    [
        ({"region": ["A"] * 39 + [None]}, ".region. must have no missing values; row 39"),
        ({"region": ["A"] * 40}, "all have the same region"),
        ({"region": ["A", "B"] * 19}, "region must have one row per forecast, 40; got 38"),
        (["A", "B"] * 20, "context must be a frame or a mapping"),
        ({"month": np.repeat(np.arange(8), 5)}, ".month. is no context: each of its values occurs in one period only"),
    ],
)
def test_bad_context_is_refused_in_one_line(context: Any, said: str) -> None:
    forecasts, outcomes, _ = regions(0, 40)
    with pytest.raises(prudent.errors.InputError, match=said) as caught:
        prudent.advise(PROBLEM, forecasts, outcomes, context=context, periods=np.repeat(np.arange(8), 5))
    assert "\n" not in str(caught.value)


def test_numbers_that_are_not_whole_are_no_segments_and_serve_a_guarantee_with_cuts() -> None:
    forecasts, outcomes, context = regions(0, 3_000)
    income = np.random.default_rng(1).gamma(2, 1_000, 3_000)
    hedge = prudent.RobustPolicy(
        PROBLEM, prudent.guarantees.Within({"income": [1_000, 3_000]}, "bins:4"), slack="audit"
    )
    plain = prudent.advise(PROBLEM, forecasts, outcomes, context=context)
    wider = {**context, "income": income}
    advice = prudent.advise(PROBLEM, forecasts, outcomes, context=wider, menu={"by income": hedge})
    assert advice.segments().columns["segment"] == plain.segments().columns["segment"]
    assert advice.menu.names == ("bias", "platt", "isotonic", "shifts within region", "by income")
    alone = prudent.advise(PROBLEM, forecasts, outcomes, context={"income": income}, menu={"by income": hedge})
    assert alone.menu.names == ("bias", "platt", "isotonic", "by income")


def test_without_context_there_are_no_segments() -> None:
    forecasts, outcomes, _ = regions(0, 200)
    with pytest.raises(prudent.errors.InputError, match="segments need outcomes and columns"):
        prudent.advise(PROBLEM, forecasts, outcomes).segments()


def test_small_segments_are_looked_at_together() -> None:
    forecasts, outcomes, context = regions(0, 400)
    context["region"] = np.where(np.arange(400) < 40, [f"town {k}" for k in range(400)], context["region"])
    found = prudent.advise(PROBLEM, forecasts, outcomes, context=context).segments().to_frame().set_index("segment")
    assert found.loc["region=other", "cases"] == 40
    assert len(found) == 4


def test_rules_within_segments_know_the_cases_at_hand_and_survive_a_file(tmp_path: Any) -> None:
    forecasts, outcomes, context = regions(2, 9_000)
    advice = prudent.advise(PROBLEM, forecasts, outcomes, context=context)
    advice.policy.save(tmp_path / "rule.json")
    again = prudent.load(tmp_path / "rule.json")
    new, _, where = regions(3, 500)
    np.testing.assert_array_equal(again.predict(new, context=where), advice.policy.predict(new, context=where))
    bounds = [advice.for_cases(new, context=where), advice.for_cases(prudent.Cases(new, context=where))]
    assert bounds[0].lower == bounds[1].lower
    with pytest.raises(prudent.errors.InputError, match="context must have the column 'region'"):
        advice.policy.predict(new)


@pytest.mark.parametrize("which", ["box", "classes"])
def test_the_same_rule_in_a_database(which: str) -> None:
    forecasts, outcomes, context = regions(4, 9_000)
    problem: Any = PROBLEM
    points, seen, columns = forecasts[:, None], outcomes, ["f0"]
    if which == "classes":
        problem = prudent.DecisionProblem.from_payoffs([[0, 0], [-50, 50]], actions=["wait", "act"], unit="EUR")
        points, seen, columns = np.stack([1 - forecasts, forecasts], axis=1), outcomes.astype(int), ["f0", "f1"]
    floor = np.arange(9_000) % 3
    rows = prudent.Cases(points, seen, context={**context, "floor": floor}).on(problem.space)
    base = prudent.recalibration.ScalingCalibrator("platt", space=problem.space)
    calibrator = prudent.recalibration.SegmentedCalibrator(["region", "floor"], base, space=problem.space).fit_map(rows)
    rule = prudent.RecalibratedPolicy(calibrator, prudent.PlugInPolicy(problem))
    where = np.where(np.arange(9_000) % 7 == 0, None, context["region"].astype(object))
    where[::11] = "new"
    frame = pd.DataFrame(points, columns=columns).assign(id=np.arange(9_000), region=where, floor=floor)
    assert len(frame)  # DuckDB finds it by name
    text = rule.to_sql("duckdb", columns)
    found = [action for (action,) in duckdb.sql(f"SELECT {text} FROM frame ORDER BY id").fetchall()]
    assert found == rule.predict(points, context={"region": where, "floor": floor}).tolist()


def test_one_case_is_explained_with_its_context() -> None:
    forecasts, outcomes, context = regions(2, 9_000)
    policy = prudent.advise(PROBLEM, forecasts, outcomes, context=context).policy
    grid = np.linspace(0.2, 0.8, 201)
    for name in REGIONS:
        bands = policy.bands(context={"region": name})
        played = policy.predict(grid, context={"region": np.full(201, name)})
        for forecast, action in zip(grid, played, strict=True):
            (band,) = (each for each in bands if each.first <= forecast <= each.last)
            assert str(band) == action
        explained = policy.explain(grid[90], context={"region": name})
        assert explained.probabilities[PROBLEM.actions.index(played[90])] == 1
    with pytest.raises(prudent.errors.InputError, match="context must have the column 'region'"):
        policy.explain(0.4)
