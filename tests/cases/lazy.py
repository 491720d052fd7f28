"""Samples that tests of lazy tables share: the same rows in memory and in an engine."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
import polars as pl

import prudent
from prudent import Box, DecisionProblem, RobustPolicy, guarantees
from prudent.guarantees import Guarantee

FORECASTS = {1: ["v"], 3: ["b0", "b1", "b2"], "simplex": ["p0", "p1", "p2"]}
OUTCOMES: dict[Any, Any] = {1: "y", 3: ["z0", "z1", "z2"], "simplex": "label"}


@dataclass(frozen=True)
class Rows:
    """Rows as columns by name."""

    data: dict[str, np.ndarray]

    def forecasts(self, kind: Any) -> np.ndarray:
        return np.stack([self.data[name] for name in FORECASTS[kind]], axis=1)

    def outcomes(self, kind: Any) -> np.ndarray:
        if isinstance(OUTCOMES[kind], str):
            return self.data[OUTCOMES[kind]]
        return np.stack([self.data[name] for name in OUTCOMES[kind]], axis=1)

    def columns(self, table: Any, kind: Any, **options: Any) -> prudent.Cases:
        names = {"weight": "weights", "group": "periods", "id": "ids"}
        given = {names.get(name, name): value for name, value in options.items()}
        return prudent.scan(table, FORECASTS[kind], OUTCOMES[kind], **given)


def make_rows(n: int, seed: int = 0) -> Rows:
    """Forecasts that are about right, in one coordinate, in a box and on the simplex."""
    rng = np.random.default_rng(seed)
    v = rng.beta(2, 3, n)
    box = rng.random((n, 3))
    simplex = rng.dirichlet([1, 2, 3], n)
    label = (rng.random((n, 1)) > np.cumsum(simplex, axis=1)[:, :2]).sum(axis=1)
    data = {
        "v": v,
        "y": (rng.random(n) < v).astype(float),
        "w": rng.integers(0, 4, n).astype(float),
        "g": rng.integers(0, n // 20, n),
        "id": np.arange(n),
        "label": label,
    }
    data |= {f"b{j}": box[:, j] for j in range(3)}
    data |= {f"z{j}": np.clip(box[:, j] + rng.normal(0, 0.1, n), 0, 1) for j in range(3)}
    data |= {f"p{j}": simplex[:, j] for j in range(3)}
    return Rows(data)


def as_table(rows: Rows, engine: str) -> Any:
    """Put rows into an engine."""
    if engine == "polars":
        return pl.LazyFrame(rows.data)
    if engine == "duckdb":
        import duckdb

        frame = pl.DataFrame(rows.data)
        connection = duckdb.connect()
        connection.register("frame", frame.to_arrow())
        return connection.sql("SELECT * FROM frame")
    from pyspark.sql import SparkSession

    return SparkSession.getActiveSession().createDataFrame(pl.DataFrame(rows.data).to_pandas())


SCALAR = DecisionProblem([0.72, 0.90, 1.08], [0.02, 0.05, 0.10], actions=["low", "mid", "high"])
BOX = DecisionProblem(np.random.default_rng(1).normal(size=(3, 3)), space=Box([0, 0, 0], [1, 1, 1]))
CLASSES = DecisionProblem.from_payoffs(np.random.default_rng(2).normal(size=(4, 3)))

CASES: list[tuple[Any, DecisionProblem, Guarantee]] = [
    (1, SCALAR, guarantees.Nothing()),
    (1, SCALAR, guarantees.Unbiased()),
    (1, SCALAR, guarantees.SelfOrthogonal()),
    (1, SCALAR, guarantees.SelfOrthogonal(intercept=True)),
    (1, SCALAR, guarantees.Polynomial(3)),
    (1, SCALAR, guarantees.LogOdds()),
    (1, SCALAR, guarantees.Temperature()),
    (1, SCALAR, guarantees.Bins([0, 0.3, 0.55, 1])),
    (1, SCALAR, guarantees.Bins(20)),
    (1, SCALAR, guarantees.Bins(7, "quantile")),
    (1, SCALAR, guarantees.Classwise(5)),
    (1, SCALAR, guarantees.DecisionCalibrated(SCALAR)),
    (1, SCALAR, guarantees.UtilityCalibrated(SCALAR)),
    (1, SCALAR, guarantees.SelfOrthogonal(intercept=True) & guarantees.Bins(6)),
    (1, SCALAR, guarantees.FullyCalibrated()),
    (3, BOX, guarantees.SelfOrthogonal(intercept=True)),
    (3, BOX, guarantees.DecisionCalibrated(BOX)),
    (3, BOX, guarantees.Classwise(2)),
    ("simplex", CLASSES, guarantees.SelfOrthogonal()),
    ("simplex", CLASSES, guarantees.Cumulative()),
    ("simplex", CLASSES, guarantees.Cumulative(orthogonal=True)),
    ("simplex", CLASSES, guarantees.Temperature()),
    ("simplex", CLASSES, guarantees.TopLabel(3)),
    ("simplex", CLASSES, guarantees.TopLabelPooled(4)),
]

ROWS = make_rows(6_000)

#: What can be measured, and is the same whoever resolves it.
AUDITED = [
    case for case in CASES if not case[2].full and case[2] not in (guarantees.Nothing(), guarantees.Bins(7, "quantile"))
]


def check_fit(
    engine: str, kind: Any, problem: DecisionProblem, guarantee: Guarantee, weight: str | None, table: Any = None
) -> None:
    """Certificates overlap, and the table's multipliers are worth in memory what its certificate says."""
    weights = None if weight is None else ROWS.data[weight]
    memory = RobustPolicy(problem, guarantee).fit(ROWS.forecasts(kind), sample_weight=weights)
    columns = ROWS.columns(as_table(ROWS, engine) if table is None else table, kind, weights=weight)
    table = RobustPolicy(problem, guarantee).fit(columns)
    scale = problem.utility_range
    ours, theirs = table.certificate_, memory.certificate_
    assert ours.status == theirs.status == "optimal"
    assert ours.lower <= theirs.upper + 1e-12 * scale
    assert theirs.lower <= ours.upper + 1e-12 * scale
    assert abs(ours.lower - theirs.lower) <= 1.01e-6 * scale
    assert table.fitted_.tests.names == memory.fitted_.tests.names
    if table.multipliers_ is not None:
        # Independent arithmetic: the worst case, in memory, of what the table's policy plays.
        worst = prudent.worst_case(table, ROWS.forecasts(kind), guarantee=table.guarantee_, weights=weights)
        assert worst.certificate.upper >= ours.lower - 1e-12 * scale
        assert worst.value >= ours.lower - 2e-6 * scale


def check_audit(
    engine: str, kind: Any, problem: DecisionProblem, guarantee: Guarantee, rows: Rows = ROWS, **options: Any
) -> prudent.Audit:
    """The audit is that of memory up to rounding, but for moments that few rows carry.

    Bounds of those need every row in memory; a table has their sums only, which make longer intervals.
    """
    weight, group, given = options.get("weight"), options.get("group"), options.get("table")
    memory = prudent.audit(
        problem.space,
        rows.forecasts(kind),
        rows.outcomes(kind),
        guarantee=guarantee,
        weights=None if weight is None else rows.data[weight],
        periods=None if group is None else rows.data[group],
    )
    columns = rows.columns(as_table(rows, engine) if given is None else given, kind, weights=weight, periods=group)
    table = prudent.audit(problem.space, columns, guarantee=guarantee)
    assert (table.n_rows, table.n_dropped) == (memory.n_rows, memory.n_dropped)
    assert table.moment_names == memory.moment_names
    ours, theirs = table.measured, memory.measured
    assert ours.methods.tolist() == theirs.methods.tolist()
    np.testing.assert_allclose(ours.estimates, theirs.estimates, atol=1e-12)
    many = ours.methods == "t"
    for name in ("below", "above"):
        found, expected = getattr(ours, name), getattr(theirs, name)
        np.testing.assert_allclose(found[many], expected[many], rtol=1e-6, atol=1e-14)
        assert (found >= expected * (1 - 1e-6) - 1e-12).all()
    np.testing.assert_allclose(ours.p_values[many], theirs.p_values[many], rtol=1e-5, atol=1e-9)
    assert (ours.p_values >= theirs.p_values * (1 - 1e-5) - 1e-9).all()
    if many.all():
        assert table.rejected == memory.rejected
        assert table.sentence == memory.sentence
    return table


def reference_policies(kind: Any, problem: DecisionProblem) -> dict[str, Any]:
    """The two habits, a rule that mixes and, where it is quick, one that does not."""
    robust = RobustPolicy(problem, guarantees.SelfOrthogonal()).fit(ROWS.forecasts(kind))
    policies = {"plug-in": prudent.PlugInPolicy(problem), "safety": prudent.SafetyPolicy(problem), "robust": robust}
    if kind == 1:
        pure = prudent.RobustPolicy(problem, guarantees.SelfOrthogonal(), randomize=False).fit(ROWS.forecasts(kind))
        policies["pure"] = pure
    return policies


def check_worst_case(engine: str, kind: Any, problem: DecisionProblem, guarantee: Guarantee, **options: Any) -> None:
    """Intervals that hold for the same number overlap, and both are short."""
    weight, slack = options.get("weight"), options.get("slack", 0.0)
    weights = None if weight is None else ROWS.data[weight]
    outcomes = ROWS.outcomes(kind) if "slack" in options else None
    columns = ROWS.columns(as_table(ROWS, engine), kind, weights=weight)
    scale = problem.utility_range
    for name, policy in reference_policies(kind, problem).items():
        memory = prudent.worst_case(
            policy, ROWS.forecasts(kind), guarantee=guarantee, slack=slack, outcomes=outcomes, weights=weights
        )
        table = prudent.worst_case(policy, columns, guarantee=guarantee, slack=slack)
        ours, theirs = table.certificate, memory.certificate
        assert ours.status == theirs.status == "optimal", name
        assert table.value == ours.lower
        assert ours.lower <= theirs.upper + 1e-12 * scale, name
        assert theirs.lower <= ours.upper + 1e-12 * scale, name
        assert ours.gap <= 1.01e-6 * scale, name
        assert problem.space.place(table.beliefs, "a world")[1] == 0


def check_stress(engine: str, kind: Any, problem: DecisionProblem, guarantee: Guarantee, weight: str | None) -> None:
    """Every policy gets on the table what it gets in memory."""
    policies = reference_policies(kind, problem)
    memory = prudent.stress_test(
        policies,
        ROWS.forecasts(kind),
        ROWS.outcomes(kind),
        guarantee=guarantee,
        weights=None if weight is None else ROWS.data[weight],
    )
    columns = ROWS.columns(as_table(ROWS, engine), kind, weights=weight)
    table = prudent.stress_test(policies, columns, guarantee=guarantee)
    scale = problem.utility_range
    assert table.names == memory.names
    np.testing.assert_allclose(table.nominal, memory.nominal, atol=1e-12 * scale)
    np.testing.assert_allclose(table.realised, memory.realised, atol=1e-12 * scale)
    np.testing.assert_allclose(table.worst, memory.worst, atol=2e-6 * scale)
    assert abs(table.optimum.lower - memory.optimum.lower) <= 2e-6 * scale
    # What is true of any worst worlds, unique or not: nobody does worse than in the own one, and there one does as bad.
    assert (table.under >= table.worst[:, None] - 1e-9 * scale).all()
    assert (table.saddle >= table.worst - 1e-9 * scale).all()
    np.testing.assert_allclose(np.diag(table.under), table.worst, atol=2e-6 * scale)
    assert table.saddle.max() <= table.optimum.upper + 1e-9 * scale
    if kind == 1:  # there the worst worlds are unique, but for what gaps allow
        np.testing.assert_allclose(table.under, memory.under, atol=1e-3 * scale)
        np.testing.assert_allclose(table.saddle, memory.saddle, atol=1e-3 * scale)


def check_pure(
    engine: str, rows: Any, kind: Any, problem: Any, guarantee: Any, weight: str | None, **options: Any
) -> str:
    """Compare with memory, and with the worst case of the rule on all rows, which does not know where it comes from."""
    weights = None if weight is None else rows.data[weight]
    columns = rows.columns(as_table(rows, engine), kind, weights=weight)
    memory = prudent.RobustPolicy(problem, guarantee, **options, randomize=False).fit(
        rows.forecasts(kind), sample_weight=weights
    )
    table = prudent.RobustPolicy(problem, guarantee, **options, randomize=False).fit(columns)
    ours, theirs, scale = table.certificate_, memory.certificate_, problem.utility_range
    assert abs(ours.lower - theirs.lower) <= 1.01e-6 * scale
    assert abs(ours.upper - theirs.upper) <= 1.01e-6 * scale
    assert table.fitted_.tests.names == memory.fitted_.tests.names
    worst = prudent.worst_case(
        table, rows.forecasts(kind), guarantee=table.guarantee_, weights=weights, slack=options.get("slack", 0.0)
    )
    assert worst.certificate.upper >= ours.lower - 1e-12 * scale
    assert worst.value >= ours.lower - 1.01e-6 * scale
    return str(ours.status)


def check_actions(engine: str, table: Any) -> None:
    """Draws by key are those of Python, row by row, after any reshuffling that an engine may do."""
    policy = RobustPolicy(SCALAR, guarantees.SelfOrthogonal(), salt="s").fit(ROWS.forecasts(1))
    assert ((policy.predict_proba(ROWS.forecasts(1)) > 0).sum(axis=1) > 1).any(), "no row is drawn"
    decided = policy.predict(prudent.scan(table, "v", ids="id"), output="chosen")
    if engine == "duckdb":
        found = decided.project("id, chosen").fetchall()
    elif engine == "polars":
        assert isinstance(decided, pl.LazyFrame)
        found = decided.select("id", "chosen").collect().rows()
    else:
        found = [tuple(row) for row in decided.select("id", "chosen").collect()]
    expected = policy.predict(ROWS.forecasts(1), keys=ROWS.data["id"].tolist())
    assert [action for _, action in sorted(found)] == expected.tolist()
