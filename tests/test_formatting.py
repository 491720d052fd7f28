"""Numbers in sentences: as many digits as asked for, and no exponent where a person would write none."""

from __future__ import annotations

import html
import importlib
import json
import math
import pkgutil
import re
from functools import cache

import numpy as np
import pytest

import prudent
from prudent.advice import Gain, Promise, UtilityBound
from prudent.evidence.audits import GuaranteeLadder
from prudent.formatting import Printable, Table, format_number
from prudent.policies import Decisions


@pytest.mark.parametrize(
    ("value", "digits", "sign", "text"),
    [
        (0.0, 4, "", "0"),
        (1e-7, 3, "", "1e-07"),
        (9999.0, 4, "", "9999"),
        (9999.6, 4, "", "10,000"),
        (64023.4, 4, "", "64,020"),
        (64023.4, 6, "", "64,023.4"),
        (-64023.4, 2, "", "-64,000"),
        (640.4, 2, "", "640"),
        (128.0, 2, "+", "+130"),
        (123456.7, 3, "+", "+123,000"),
        (999_999_999.0, 9, "", "999,999,999"),
        (999_999_999.0, 4, "", "1e+09"),
        (math.inf, 4, "", "inf"),
        (math.nan, 4, "", "nan"),
    ],
)
def test_numbers_as_people_write_them(value: float, digits: int, sign: str, text: str) -> None:
    assert format_number(value, digits, sign) == text


def test_every_number_reads_back_with_its_digits() -> None:
    rng = np.random.default_rng(0)
    for value in rng.normal(size=2_000) * 10.0 ** rng.integers(-12, 13, 2_000):
        for digits in (2, 3, 4, 6):
            assert float(format_number(value, digits).replace(",", "")) == float(f"{value:.{digits}g}")


def test_sentences_about_large_amounts_have_no_exponent() -> None:
    rng = np.random.default_rng(1)
    problem = prudent.DecisionProblem([0.0, 250_000.0], [0.0, 80_000.0], actions=["wait", "act"])
    forecasts = rng.random(3_000)
    outcomes = (rng.random(3_000) < forecasts).astype(float)
    guarantee = prudent.guarantees.SelfOrthogonal()
    policy = prudent.RobustPolicy(problem, guarantee).fit(forecasts)
    advice = prudent.advise(problem, forecasts, outcomes)
    ladder = prudent.guarantee_ladder(problem, forecasts, outcomes)
    for told in (advice, ladder, policy.explain(0.4), policy.certificate_):
        assert re.search(r"\d\d,\d\d\d", str(told)), told
        assert "e+" not in str(told)


def subclasses(kind: type) -> set[type]:
    return {found for child in kind.__subclasses__() for found in (child, *subclasses(child))}


def result_classes() -> list[type[Printable]]:
    """Every class of the library that is a result."""
    for module in pkgutil.walk_packages(prudent.__path__, "prudent."):
        importlib.import_module(module.name)
    found = subclasses(Printable) - {Table}
    return sorted((kind for kind in found if kind.__module__.startswith("prudent.")), key=lambda kind: kind.__name__)


@cache
def specimens() -> dict[type, Printable]:
    problem = prudent.DecisionProblem([1.0, -1.0], [0.0, -1.0], actions=["<wait>", "act"])
    forecasts, outcomes = np.linspace(0.01, 0.99, 200), np.tile([0.0, 1.0], 100)
    policy = prudent.RobustPolicy(problem, "self-orthogonal").fit(forecasts)
    ladder = prudent.guarantee_ladder(problem, forecasts, outcomes)
    audit = prudent.audit(problem, forecasts, outcomes, guarantee=ladder.best.guarantee)
    advice = prudent.advise(problem, forecasts, outcomes)
    within, context = prudent.RobustPolicy(problem, "within:<a>:unbiased"), {"<a>": np.arange(200) % 2}
    monitor = prudent.PolicyMonitor(policy, tolerance=0.01).update(np.tile(forecasts, 20), np.zeros(4_000))
    results = [
        policy.certificate_,
        policy.fitted_,
        within.fit(forecasts, context=context).groups_,
        policy.explain(0.3),
        policy.explain(0.3).next_actions[0],
        policy.bands()[0],
        Decisions(2, {"wait": 2}, 0, 0, 0),
        ladder,
        ladder.best,
        audit,
        audit.measured,
        advice,
        advice.verdict,
        advice.gain,
        advice.certificate,
        advice.promise,
        advice.menu,
        prudent.advise(problem, forecasts, outcomes, context={"<a>": np.arange(200) // 100}).segments(),
        prudent.backtest(problem, forecasts, outcomes, periods=np.arange(200) // 25),
        prudent.worst_case(policy, forecasts, guarantee="unbiased"),
        prudent.stress_test({"<robust>": policy}, forecasts, guarantee="unbiased"),
        prudent.confidence_certificate(policy, forecasts + 0.001),
        monitor,
        monitor.alarms[0],
        prudent.recalibration.OnlineDecisionCalibrator(problem),
    ]
    return {type(result): result for result in results}


#: A few numbers with their names: the line says it all.
SHORT = {Gain, Promise, UtilityBound}


@pytest.mark.parametrize("kind", result_classes(), ids=lambda kind: kind.__name__)
def test_every_result_has_a_line_a_text_and_a_dictionary(kind: type[Printable]) -> None:
    result = specimens()[kind]
    line, text = repr(result), str(result)
    assert line.startswith(f"{kind.__name__}(")
    assert line.endswith(")")
    assert "\n" not in line
    assert len(line) <= 250
    assert text != line or kind in SHORT
    assert result._repr_html_() == f"<pre>{html.escape(text)}</pre>"
    described = result.to_dict()
    assert described
    assert json.loads(json.dumps(described, allow_nan=False)) == described
    if isinstance(result, Table):
        assert result.to_frame("pyarrow").column_names == list(result.columns)


def test_what_json_does_not_have_is_left_out_or_named() -> None:
    ladder = specimens()[GuaranteeLadder]
    best = ladder.to_dict()["rungs"][0]
    assert best["guarantee"] == "Nothing()"
    assert "policy" not in best
    audit = prudent.audit(None, [0.1, 0.9] * 20, [0.0, 1.0] * 20, guarantee="log-odds").to_dict()
    assert audit["rejected"] == []
    assert audit["guarantee"] == "LogOdds(intercept=True)"
