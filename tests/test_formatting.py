"""Numbers in sentences: as many digits as asked for, and no exponent where a person would write none."""

from __future__ import annotations

import html
import math
import re

import numpy as np
import pytest

import prudent
from prudent.formatting import format_number


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
    audited = prudent.audit(problem, forecasts, outcomes, guarantee=guarantee)
    ladder = prudent.guarantee_ladder(problem, forecasts, outcomes)
    for told in (audited.verdict, ladder, policy.explain(0.4), policy.certificate_):
        assert re.search(r"\d\d,\d\d\d", str(told)), told
        assert "e+" not in str(told)


def test_notebooks_show_results_as_print_does() -> None:
    problem = prudent.DecisionProblem([0.0, 1.0], [0.0, 0.5])
    forecasts, outcomes = np.linspace(0.01, 0.99, 200), np.tile([0.0, 1.0], 100)
    policy = prudent.RobustPolicy(problem, "unbiased").fit(forecasts)
    audit = prudent.audit(problem, forecasts, outcomes, guarantee="unbiased")
    results = [
        policy.certificate_,
        policy.explain(0.3),
        audit,
        audit.verdict,
        prudent.guarantee_ladder(problem, forecasts, outcomes),
        prudent.worst_case(policy, forecasts, guarantee="unbiased"),
        prudent.stress_test({"<robust>": policy}, forecasts, guarantee="unbiased"),
        prudent.confidence_certificate(policy, forecasts + 0.001),
        prudent.PolicyMonitor(policy),
    ]
    for result in results:
        shown = result._repr_html_()
        assert shown == f"<pre>{html.escape(str(result))}</pre>"
        assert "<robust>" not in shown
