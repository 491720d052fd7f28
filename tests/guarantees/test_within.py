"""Guarantees within groups: what groups are, what is refused, and that groups are solved as if they were alone."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import duckdb
import numpy as np
import pandas as pd
import polars as pl
import pytest

import prudent
from prudent import guarantees
from prudent.errors import FileFormatError, InputError
from prudent.guarantees.base import guarantee_from_dict
from prudent.guarantees.names import read_guarantee

THREE = prudent.DecisionProblem([0.2, 0.9, 1.4], [0.0, 0.3, 0.7], actions=["low", "mid", "high"])
N = 240
RNG = np.random.default_rng(3)
FORECASTS = RNG.random(N).round(3)
REGION = RNG.choice(["north", "south", "west"], size=N)
OUTCOMES = (RNG.random(N) < np.clip(FORECASTS + np.where(REGION == "north", 0.12, -0.06), 0, 1)).astype(float)
CONTEXT = {"region": REGION, "age": RNG.integers(0, 90, size=N).astype(float), "night": RNG.random(N) < 0.5}


def fitted(guarantee: Any, **options: Any) -> prudent.RobustPolicy:
    return prudent.RobustPolicy(THREE, guarantee, **options).fit(FORECASTS, OUTCOMES, context=CONTEXT)


def test_columns_are_names_or_names_with_cuts() -> None:
    shown = {
        "Within('a', Unbiased())": guarantees.Within("a", "unbiased"),
        "Within(['a', 'b'], Unbiased())": guarantees.Within(["a", "b"], guarantees.Unbiased()),
        "Within({'a': None, 'b': [1.0, 2.0]}, Unbiased())": guarantees.Within({"a": None, "b": [1, 2]}, "unbiased"),
    }
    for text, guarantee in shown.items():
        assert repr(guarantee) == text
        assert guarantee_from_dict(guarantee.to_dict()) == guarantee
        assert guarantee.context_columns in (("a",), ("a", "b"))


@pytest.mark.parametrize("count", [1, 40, 5_000])
def test_text_has_the_same_groups_as_objects(count: int) -> None:
    text = np.array([f"région {number}" for number in range(count)])[RNG.integers(0, count, size=8_000)]
    rows, weights, space = np.full((text.size, 1), 0.5), np.full(text.size, 1 / text.size), THREE.space
    within: Any = guarantees.Within("a", "unbiased")
    found = [within.resolve(rows, weights, space, {"a": column}) for column in (text, text.astype(object))]
    assert found[0] == found[1]
    assert [found[0].known[number] for number in found[0].numbers({"a": text}, text.size)] == [(own,) for own in text]


@pytest.mark.parametrize("columns", [[], "", ["a", "a"], {"a": [2, 1]}, {"a": [[1]]}])
def test_other_columns_are_refused(columns: Any) -> None:
    with pytest.raises(InputError, match="columns must be"):
        guarantees.Within(columns, "unbiased")


def test_names() -> None:
    assert read_guarantee("within:region:bins:3") == guarantees.Within("region", guarantees.Bins(3))
    two = guarantees.Unbiased() & guarantees.Within(["a", "b"], guarantees.SelfOrthogonal())
    assert read_guarantee("unbiased+within:a,b:self-orthogonal") == two
    for text in ("within", "within:region", "within:region:"):
        with pytest.raises(InputError, match="within needs columns and a name, such as within:region:unbiased"):
            read_guarantee(text)


def test_groups_are_the_combinations_that_occur() -> None:
    policy = fitted(guarantees.Within({"age": [30, 60], "night": None}, "unbiased"))
    ages = np.searchsorted([30, 60], CONTEXT["age"], side="right")
    assert policy.guarantee_.groups == tuple(sorted(set(zip(ages.tolist(), CONTEXT["night"].tolist(), strict=True))))
    assert policy.guarantee_.names[0] == "age < 30, night=False"
    assert "30 <= age < 60, night=True" in policy.guarantee_.names
    assert "60 <= age, night=True" in policy.groups_.columns["group"]


@pytest.mark.parametrize("options", [{}, {"slack": 0.01}, {"randomize": False}, {"criterion": "improvement"}])
@pytest.mark.parametrize("inner", ["self-orthogonal", "bins:3", "polynomial:2"])
def test_groups_are_solved_as_if_they_were_alone(inner: str, options: dict[str, Any]) -> None:
    policy = fitted(guarantees.Within("region", inner), **options)
    table = policy.groups_.columns
    for place, name in enumerate(("north", "south", "west")):
        own = name == REGION
        share = {"slack": options["slack"] / own.mean()} if "slack" in options else {}
        alone = prudent.RobustPolicy(THREE, inner, **(options | share)).fit(FORECASTS[own])
        assert (table["group"][place], table["rows"][place]) == (f"region={name}", own.sum())
        assert table["share"][place] == pytest.approx(own.mean())
        assert table["lower"][place] == pytest.approx(alone.certificate_.lower, abs=1e-9)
        played = policy.predict_proba(FORECASTS[own], context={"region": REGION[own]})
        np.testing.assert_allclose(played, alone.predict_proba(FORECASTS[own]), atol=1e-6)
    assert np.dot(table["share"], table["lower"]) == pytest.approx(policy.certificate_.lower, abs=1e-12)
    assert np.dot(table["share"], table["upper"]) == pytest.approx(policy.certificate_.upper, abs=1e-12)
    assert list(policy.groups_.to_frame().columns) == ["group", "rows", "share", "lower", "upper", "status"]


@pytest.mark.parametrize("slack", [0.02, "audit", prudent.Slack(0.01, "linf", "measured"), [0.0, 0.01, 0.02]])
def test_solving_by_group_is_exact(slack: Any) -> None:
    """Beside a guarantee without tests the general algorithms take all groups at once."""
    within = guarantees.Within("region", "self-orthogonal")
    one, other = fitted(within, slack=slack), fitted(within & guarantees.Nothing(), slack=slack)
    assert other.groups_ is None
    assert one.certificate_.lower == pytest.approx(other.certificate_.lower, abs=1e-6)
    assert one.certificate_.upper == pytest.approx(other.certificate_.upper, abs=1e-6)
    given = {"guarantee": within, "slack": slack, "context": CONTEXT}
    worst = prudent.worst_case(one, FORECASTS, OUTCOMES, **given)
    assert worst.value == pytest.approx(one.certificate_.lower, abs=1e-6)


def test_pooled_forecasts_may_look_right_where_groups_are_not() -> None:
    off = np.where(REGION == "north", 0.3, np.where(REGION == "south", -0.3, 0.0))
    outcomes = (np.random.default_rng(0).random(N) < np.clip(FORECASTS + off, 0, 1)).astype(float)
    assert not prudent.audit(THREE, FORECASTS, outcomes, guarantee="unbiased").rejected
    within = prudent.audit(THREE, FORECASTS, outcomes, guarantee="within:region:unbiased", context=CONTEXT)
    assert within.rejected == ("1, region=north", "1, region=south")


def test_a_frame_is_a_context() -> None:
    policy = fitted("within:region:unbiased")
    expected = policy.predict_proba(FORECASTS, context=CONTEXT)
    np.testing.assert_array_equal(policy.predict_proba(FORECASTS, context=pd.DataFrame(CONTEXT)), expected)
    cases = prudent.Cases(FORECASTS, context=pl.DataFrame(CONTEXT))
    np.testing.assert_array_equal(policy.predict_proba(cases), expected)
    plain = prudent.PlugInPolicy(THREE)  # does not look at context, and does not mind it
    np.testing.assert_array_equal(plain.predict(FORECASTS, context=CONTEXT), plain.predict(FORECASTS))


@pytest.mark.parametrize(
    ("column", "message"),
    [
        (["north", "east"], r"did not have: row 1 \(region=east\); they had region=north; region=south; region=west"),
        (["north", None], "context column 'region' must have no missing values; row 1 have one"),
        (["north", np.nan], "context column 'region' must have no missing values; row 1 have one"),
        (["north", 3], "must hold text, whole numbers or truth values, all of one kind"),
        ([0.5, 0.25], r"all of one kind; got 0.* For other numbers give cuts"),
        (["north"], r"must have one value per forecast, 2; got shape \(1,\)"),
    ],
)
def test_values_that_are_not_known_are_refused(column: list[Any], message: str) -> None:
    policy = fitted("within:region:unbiased")
    with pytest.raises(InputError, match=message):
        policy.predict([0.2, 0.3], context={"region": np.array(column, dtype=object)})


def test_missing_numbers_are_refused() -> None:
    policy = fitted(guarantees.Within({"age": [30]}, "unbiased"))
    with pytest.raises(InputError, match=r"context column 'age' must be finite; got NaN"):
        policy.predict([0.2, 0.3], context={"age": [20.0, np.nan]})


def test_unseen_groups_may_be_played_as_all_rows_together() -> None:
    guarantee = guarantees.Within("region", "self-orthogonal")
    policy, pooled = fitted(guarantee, unseen="pooled"), fitted("self-orthogonal")
    here, elsewhere = {"region": REGION}, {"region": np.full(N, "east")}
    np.testing.assert_array_equal(
        policy.predict_proba(FORECASTS, context=here), fitted(guarantee).predict_proba(FORECASTS, context=here)
    )
    np.testing.assert_array_equal(policy.predict_proba(FORECASTS, context=elsewhere), pooled.predict_proba(FORECASTS))
    with pytest.raises(InputError, match="did not have: 240 rows"):
        policy.certify(FORECASTS, context=elsewhere)
    for promise in ("unbiased", guarantee & guarantees.Unbiased()):
        with pytest.raises(InputError, match=r"unseen='pooled' needs a guarantee Within\(\.\.\.\), nothing beside it"):
            fitted(promise, unseen="pooled")
    with pytest.raises(InputError, match="unseen must be 'refuse' or 'pooled'"):
        fitted(guarantee, unseen="ignore")


def test_a_column_that_says_when_is_no_context() -> None:
    months = np.arange(N) // 40
    cases = prudent.Cases(FORECASTS, OUTCOMES, periods=months, context={"month": months, "region": REGION})
    with pytest.raises(InputError, match="'month' is no context: each of its values occurs in one period only"):
        prudent.audit(THREE, cases, guarantee="within:month:unbiased")
    assert prudent.audit(THREE, cases, guarantee="within:region:unbiased").measured.tests.n_moments == 3


@pytest.mark.parametrize("unseen", ["refuse", "pooled"])
@pytest.mark.parametrize("inner", ["self-orthogonal", "bins:3", "unbiased+polynomial:2"])
def test_files_and_sql_play_the_same(inner: str, unseen: str, tmp_path: Path) -> None:
    columns = {"the region": np.char.add("d'", REGION), "age": CONTEXT["age"]}
    within = guarantees.Within({"the region": None, "age": [30, 60]}, inner)
    policy = prudent.RobustPolicy(THREE, within, unseen=unseen).fit(FORECASTS, context=columns)
    policy.save(tmp_path / "policy.json")
    again = prudent.load(tmp_path / "policy.json")
    played = policy.predict_proba(FORECASTS, context=columns)
    np.testing.assert_array_equal(again.predict_proba(FORECASTS, context=columns), played)
    new = {"the region": np.where(np.arange(N) % 5 == 0, "east", columns["the region"]), "age": columns["age"]}
    written = again.to_sql("duckdb", "f", output="probabilities")
    listed = ", ".join(f"{text} AS {action}" for action, text in written.items())
    for shown, allowed in ((columns, True), (new, unseen == "pooled")):
        frame = pd.DataFrame({"f": FORECASTS, "i": np.arange(N), **shown})  # noqa: F841  # DuckDB finds it by name
        query = f"SELECT {listed} FROM frame ORDER BY i"
        if not allowed:
            with pytest.raises(duckdb.Error, match="context must be of a group that was fitted on; got east, "):
                duckdb.sql(query).fetchall()
            continue
        found = np.array(duckdb.sql(query).fetchall(), dtype=float)
        np.testing.assert_allclose(found, again.predict_proba(FORECASTS, context=shown), rtol=0, atol=1e-12)


@pytest.mark.parametrize("engine", ["duckdb", "polars"])
@pytest.mark.parametrize("criterion", ["utility", "improvement"])
def test_tables_give_the_same(engine: str, criterion: str) -> None:
    frame = pl.DataFrame({"i": np.arange(N), "f": FORECASTS, "y": OUTCOMES, **CONTEXT})
    table = frame.lazy() if engine == "polars" else duckdb.sql("SELECT * FROM frame")
    cases = prudent.scan(table, "f", context=["region", "age"], ids="i")
    within = guarantees.Within({"region": None, "age": [50]}, "self-orthogonal")
    ours = prudent.RobustPolicy(THREE, within, criterion=criterion, slack=0.01).fit(cases)
    theirs = prudent.RobustPolicy(THREE, within, criterion=criterion, slack=0.01).fit(FORECASTS, context=CONTEXT)
    assert ours.guarantee_ == theirs.guarantee_
    assert ours.groups_.columns["rows"] == theirs.groups_.columns["rows"]
    np.testing.assert_allclose(ours.groups_.columns["lower"], theirs.groups_.columns["lower"], atol=1e-6)
    decided = ours.predict(cases)
    actions = (decided.collect() if engine == "polars" else decided.pl()).sort("i")["action"].to_list()
    assert actions == ours.predict(FORECASTS, keys=np.arange(N), context=CONTEXT).tolist()
    assert ours.certify(cases).lower == pytest.approx(ours.certificate_.lower, abs=1e-6)
    if criterion == "utility":  # a rule that found no gain does not look at context
        with pytest.raises(InputError, match="context must name the column 'region'"):
            ours.predict(prudent.scan(table, "f", ids="i"))
    with pytest.raises(InputError, match="context must have the column 'region'"):
        prudent.RobustPolicy(THREE, within).fit(prudent.scan(table, "f"))
    other = prudent.scan(frame.with_columns(region=pl.lit("east")).lazy(), "f", context=["region", "age"], ids="i")
    with pytest.raises(InputError, match="context has groups that the rows fitted on did not have: 240 rows"):
        ours.certify(other)
    missing = prudent.scan(frame.with_columns(region=pl.lit(None, pl.String)).lazy(), "f", context=["region", "age"])
    with pytest.raises(InputError, match="'region' must have no missing values"):
        prudent.RobustPolicy(THREE, within).fit(missing)


def test_explanations_and_bands_are_those_of_a_group() -> None:
    policy = fitted("within:region:polynomial:2")
    for name in ("north", "west"):
        own = name == REGION
        alone = prudent.RobustPolicy(THREE, "polynomial:2").fit(FORECASTS[own])
        bands, expected = policy.bands(context={"region": name}), alone.bands()
        assert [band.actions for band in bands] == [band.actions for band in expected]
        np.testing.assert_allclose([band.first for band in bands], [band.first for band in expected], atol=1e-6)
        explained = policy.explain(0.4, context={"region": name})
        np.testing.assert_allclose(explained.probabilities, alone.explain(0.4).probabilities, atol=1e-6)
        assert explained.binding is None or explained.binding.endswith(f"region={name}")
    with pytest.raises(InputError, match="context must have the column 'region'"):
        policy.bands()


def test_recalibration_within_groups_makes_their_moments_vanish() -> None:
    calibrator = prudent.recalibration.GuaranteeCalibrator("within:region:unbiased")
    calibrator.fit(FORECASTS, OUTCOMES, context=CONTEXT)
    assert calibrator.columns == ("region",)
    moved = calibrator.transform(FORECASTS, CONTEXT)
    for name in np.unique(REGION):
        assert (OUTCOMES - moved[:, 0])[name == REGION].mean() == pytest.approx(0.0, abs=1e-9)
    policy = prudent.RecalibratedPolicy(calibrator, prudent.PlugInPolicy(THREE))
    np.testing.assert_array_equal(
        policy.predict(FORECASTS, context=CONTEXT), prudent.PlugInPolicy(THREE).predict(moved)
    )
    with pytest.raises(InputError, match="context must have the column 'region'"):
        policy.predict(FORECASTS)


@pytest.mark.parametrize("groups", [[["north"], ["north"]], [["north", 1]], [["north"], [2]], [[1.5]], []])
def test_groups_of_a_file_are_checked(groups: list[Any]) -> None:
    document = guarantees.Within("region", "unbiased").to_dict() | {"groups": groups}
    with pytest.raises(FileFormatError, match="groups must"):
        guarantee_from_dict(document)
