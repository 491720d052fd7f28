"""The report: its numbers are the library's, and its file stands alone."""

from __future__ import annotations

import html
import re
from pathlib import Path

import numpy as np
import pytest

import prudent
from prudent import guarantees
from prudent.experiments import demonstration_sample

STAFFING = prudent.DecisionProblem([0.72, 0.90, 1.08], [0.02, 0.05, 0.10], actions=["0.8x", "1.0x", "1.2x"])


def sample(n: int = 800) -> tuple[np.ndarray, np.ndarray]:
    rng = np.random.default_rng(0)
    forecasts = rng.beta(2, 2, n)
    return forecasts, np.clip(0.8 * forecasts + rng.normal(0, 0.1, n), 0, 1)


def text_of(page: str) -> str:
    body = page[page.index("<body>") : page.index("<script>")]
    return html.unescape(re.sub(r"<[^>]+>", " ", body))


def test_the_page_says_what_the_library_says(tmp_path: Path) -> None:
    forecasts, outcomes = sample()
    report = prudent.Report(STAFFING, forecasts, outcomes, title="Staff & demand", source="logs")
    report.save(tmp_path / "report.html")
    page = (tmp_path / "report.html").read_text(encoding="utf-8")
    text = text_of(page)
    verdict = str(report.audit.verdict).partition(": ")[2]
    assert verdict[1:] in text
    assert "Staff & demand" in text
    assert f"{report.policy.certificate_.lower:.4g}" in text
    for value in (*report.stress.worst, *report.stress.nominal):
        assert f"{value:.4g}" in text
    for rung in report.ladder.rungs:
        assert rung.name in text
    for band in report.bands:
        assert f"{band.first:.6g}" in text
    assert report.fingerprint in text
    assert f"numpy {np.__version__}" in text
    assert "prudent.Report(problem, forecasts, outcomes" in text
    assert len(page.encode()) < 2_000_000


def test_the_file_stands_alone() -> None:
    page = prudent.Report(STAFFING, *sample()).to_html()
    before_scripts = page[: page.index("<script>")]
    assert not re.search(r"""(?:src|href)\s*=\s*["'](?!data:)""", before_scripts)
    assert "@import" not in before_scripts
    assert "url(" not in before_scripts


def test_names_cannot_break_the_page() -> None:
    rng = np.random.default_rng(1)
    nasty = "</script><img src=x onerror=alert(1)>"
    problem = prudent.DecisionProblem.from_payoffs(np.eye(3), actions=["a", nasty, "c"], classes=["x", nasty, "z"])
    forecasts = rng.dirichlet(np.ones(3), 300)
    page = prudent.Report(problem, forecasts, rng.integers(0, 3, 300).tolist(), title=nasty).to_html()
    assert nasty not in page
    assert "<img src=x" not in page
    assert nasty in text_of(page)


def test_the_same_input_gives_the_same_page() -> None:
    one, other = (prudent.Report(STAFFING, *sample()) for _ in range(2))
    assert one.to_html() == other.to_html()
    moved = sample()[0].copy()
    moved[0] += 1e-9
    assert prudent.Report(STAFFING, moved, sample()[1]).fingerprint != one.fingerprint


def test_a_guarantee_can_be_named() -> None:
    forecasts, outcomes = sample()
    report = prudent.Report(STAFFING, forecasts, outcomes, guarantee=guarantees.SelfOrthogonal(), slack=0.01, pure=True)
    assert isinstance(report.policy, prudent.PureRobustPolicy)
    expected = prudent.PureRobustPolicy(STAFFING, guarantees.SelfOrthogonal(), slack=0.01).fit(forecasts).value_
    assert report.policy.value_ == pytest.approx(expected, abs=1e-9)
    assert "SelfOrthogonal" in text_of(report.to_html())
    with pytest.raises(prudent.InputError, match="slack must be 'audit' with guarantee='auto'"):
        prudent.Report(STAFFING, forecasts, outcomes, slack=0.1)
    with pytest.raises(prudent.InputError, match="guarantee must be 'auto'"):
        prudent.Report(STAFFING, forecasts, outcomes, guarantee="bins")


def test_the_verdict_and_the_guarantee_speak_with_one_confidence() -> None:
    """Best responding is optimal on the demonstration's data: both sentences name the same number."""
    report = prudent.Report(*demonstration_sample())
    assert report.guarantee_name == "utility-calibrated"
    assert f"guarantees {report.policy.value_:.4g}" in str(report.audit.verdict)


def test_without_its_extra_it_says_what_to_install(monkeypatch: pytest.MonkeyPatch) -> None:
    import sys

    report = prudent.Report(STAFFING, *sample(100))
    for package in ("jinja2", "altair", "vl_convert"):
        with monkeypatch.context() as patch:
            patch.setitem(sys.modules, package, None)
            with pytest.raises(prudent.MissingExtraError, match=r"pip install 'prudent\[report\]'"):
                report.to_html()


def test_a_failed_write_leaves_nothing(tmp_path: Path) -> None:
    with pytest.raises(prudent.InputError, match="existing directory"):
        prudent.Report(STAFFING, *sample(100)).save(tmp_path / "nowhere" / "report.html")
    assert list(tmp_path.iterdir()) == []
