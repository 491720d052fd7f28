"""The report's results are the library's, its page says them, and its file stands alone."""

from __future__ import annotations

import html
import re
import subprocess
import sys
from pathlib import Path

import numpy as np
import polars as pl
import pytest

import prudent
from browser import open_browser
from prudent import guarantees
from prudent.demo import demonstration_sample

STAFFING = prudent.DecisionProblem([0.72, 0.90, 1.08], [0.02, 0.05, 0.10], actions=["0.8x", "1.0x", "1.2x"])


def sample(n: int = 800) -> tuple[np.ndarray, np.ndarray]:
    rng = np.random.default_rng(0)
    forecasts = rng.beta(2, 2, n)
    return forecasts, np.clip(0.8 * forecasts + rng.normal(0, 0.1, n), 0, 1)


def test_a_guarantee_can_be_named() -> None:
    forecasts, outcomes = sample()
    report = prudent.Report(STAFFING, forecasts, outcomes, guarantee=guarantees.SelfOrthogonal(), slack=0.1)
    expected = prudent.RobustPolicy(STAFFING, guarantees.SelfOrthogonal(), slack=0.1).fit(forecasts).certificate_.lower
    assert report.policy.certificate_.lower == pytest.approx(expected, abs=1e-9)
    assert report.guarantee_name.startswith("SelfOrthogonal")
    with pytest.raises(prudent.errors.InputError, match="slack must be 'audit' with guarantee='auto'"):
        prudent.Report(STAFFING, forecasts, outcomes, slack=0.1)
    with pytest.raises(prudent.errors.InputError, match="guarantee"):
        prudent.Report(STAFFING, forecasts, outcomes, guarantee="nonsense")


def test_a_guarantee_that_the_outcomes_contradict_is_named() -> None:
    forecasts, outcomes = sample()
    report = prudent.Report(STAFFING, forecasts, outcomes, guarantee="self-orthogonal", slack=0.01)
    assert report.contradiction.startswith("The outcomes contradict the guarantee with this slack")
    assert report.contradiction in text_of(report.to_html())
    for options in ({"slack": "audit"}, {"slack": 0.5}, {"guarantee": "nothing", "slack": 0.0}):
        assert prudent.Report(STAFFING, forecasts, outcomes, **{"guarantee": "unbiased", **options}).contradiction == ""


@pytest.mark.parametrize("guarantee", ["auto", "self-orthogonal"])
def test_the_advice_is_that_of_the_library(guarantee: str) -> None:
    """Whatever guarantee is explored; the rule of the page is the advised one, or the robust one for the guarantee."""
    forecasts, outcomes = sample()
    report, advice = (
        prudent.Report(STAFFING, forecasts, outcomes, guarantee=guarantee, confidence=0.9, tolerance=0.002),
        prudent.advise(STAFFING, forecasts, outcomes, confidence=0.9, tolerance=0.002),
    )
    assert report.advice.to_dict() == advice.to_dict()
    expected = advice.policy if guarantee == "auto" else report.robust
    np.testing.assert_array_equal(report.policy.predict_proba(forecasts), expected.predict_proba(forecasts))
    assert report.stress.names == (
        ("plug-in", "advised", "robust", "safety") if guarantee == "auto" else ("plug-in", "robust", "safety")
    )


def test_advice_writes_its_own_report(tmp_path: Path) -> None:
    forecasts, outcomes = sample()
    prudent.advise(STAFFING, forecasts, outcomes).report(tmp_path / "advice.html")
    page = (tmp_path / "advice.html").read_text(encoding="utf-8")
    assert page == prudent.Report(STAFFING, forecasts, outcomes).to_html()


def test_the_fingerprint_is_that_of_the_numbers() -> None:
    forecasts, outcomes = sample(100)
    report = prudent.Report(STAFFING, forecasts, outcomes)
    assert prudent.Report(STAFFING, forecasts.tolist(), outcomes.tolist()).fingerprint == report.fingerprint
    moved = forecasts.copy()
    moved[0] += 1e-9
    assert prudent.Report(STAFFING, moved, outcomes).fingerprint != report.fingerprint


def test_a_failed_write_leaves_nothing(tmp_path: Path) -> None:
    with pytest.raises(prudent.errors.InputError, match="existing directory"):
        prudent.Report(STAFFING, *sample(100)).save(tmp_path / "nowhere" / "report.html")
    assert list(tmp_path.iterdir()) == []


def text_of(page: str) -> str:
    return html.unescape(re.sub(r"<[^>]+>", " ", page[page.index("<body>") :]))


def test_the_page_says_what_the_library_says(tmp_path: Path) -> None:
    forecasts, outcomes = sample()
    report = prudent.Report(STAFFING, forecasts, outcomes, title="Staff & demand", source="logs")
    report.save(tmp_path / "report.html")
    page = (tmp_path / "report.html").read_text(encoding="utf-8")
    text = text_of(page)
    verdict = str(report.advice.verdict).partition(": ")[2]
    assert verdict[1:] in text
    for number in (report.advice.certificate.lower, report.advice.gain.estimate, report.advice.promise.realised):
        assert f"{number:.4g}" in text
    for name in report.advice.menu.names:
        assert name in text
    assert "Staff & demand" in text
    assert f"{report.robust.certificate_.lower:.4g}" in text
    for value in (*report.stress.worst, *report.stress.nominal):
        assert f"{value:.4g}" in text
    for rung in report.ladder.rungs:
        assert rung.name in text
    for band in report.bands:
        assert f"{band.first:.6g}" in text
    assert report.fingerprint in text
    assert f"numpy {np.__version__}" in text
    assert "prudent.Report(problem, forecasts, outcomes" in text
    assert len(page.encode()) < 150_000


def test_rows_of_a_table_are_read() -> None:
    forecasts, outcomes = sample(100)
    table = pl.LazyFrame({"f": forecasts, "y": outcomes})
    report = prudent.Report(STAFFING, prudent.scan(table, "f", "y"))
    assert report.fingerprint == prudent.Report(STAFFING, forecasts, outcomes).fingerprint
    assert str(report.advice) == str(prudent.advise(STAFFING, forecasts, outcomes))


@pytest.mark.parametrize("guarantee", ["unbiased+bins:4", "decision-calibrated"])
def test_the_lines_that_make_the_page_again_run(
    guarantee: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    forecasts, outcomes = sample()
    report = prudent.Report(STAFFING, forecasts, outcomes, guarantee=guarantee)
    lines = html.unescape(re.search(r"import prudent\n.*?save\([^)]*\)", report.to_html(), re.DOTALL)[0])
    exec(lines, {"forecasts": forecasts, "outcomes": outcomes})
    assert report.fingerprint in (tmp_path / "report.html").read_text(encoding="utf-8")


def test_the_file_stands_alone() -> None:
    page = prudent.Report(STAFFING, *sample()).to_html()
    assert not re.search(r"""(?:src|href)\s*=\s*["'](?!data:)""", page)
    assert "@import" not in page
    assert "url(" not in page
    assert "<script" not in page


def test_names_cannot_break_the_page() -> None:
    rng = np.random.default_rng(1)
    nasty = "</svg><img src=x onerror=alert(1)>"
    problem = prudent.DecisionProblem.from_payoffs(np.eye(3), actions=["a", nasty, "c"], classes=["x", nasty, "z"])
    forecasts = rng.dirichlet(np.ones(3), 300)
    page = prudent.Report(problem, forecasts, rng.integers(0, 3, 300).tolist(), title=nasty).to_html()
    assert nasty not in page
    assert "<img src=x" not in page
    assert nasty in text_of(page)


def test_the_same_input_gives_the_same_page() -> None:
    one, other = (prudent.Report(STAFFING, *sample()) for _ in range(2))
    assert one.to_html() == other.to_html()


def test_without_its_extra_it_says_what_to_install(monkeypatch: pytest.MonkeyPatch) -> None:
    report = prudent.Report(STAFFING, *sample(100))
    monkeypatch.setitem(sys.modules, "jinja2", None)
    with pytest.raises(prudent.errors.MissingExtraError, match=r"pip install 'prudent\[report\]'"):
        report.to_html()


@pytest.mark.slow
def test_the_report_of_the_demonstration_opens_without_complaint(tmp_path: Path) -> None:
    command = Path(sys.executable).parent / "prudent"
    page_file = tmp_path / "report.html"
    done = subprocess.run([command, "demo", "--report", page_file], capture_output=True, text=True, check=True)
    assert str(page_file) in done.stdout
    complaints: list[str] = []
    requests: list[str] = []
    papers: list[str] = []
    with open_browser() as browser:
        page = browser.new_page(viewport={"width": 1024, "height": 900})
        page.on("console", lambda message: complaints.append(f"{message.type}: {message.text}"))
        page.on("pageerror", lambda error: complaints.append(str(error)))
        page.on("request", lambda request: requests.append(request.url))
        page.goto(page_file.as_uri())
        text = page.inner_text("main")
        assert page.locator("svg[role=img]").count() == 4
        assert all(size["width"] > 600 for size in (one.bounding_box() for one in page.locator("svg[role=img]").all()))
        for width in (360, 1920):
            page.set_viewport_size({"width": width, "height": 800})
            assert page.evaluate("document.documentElement.scrollWidth") <= width
        for media in ({"color_scheme": "light"}, {"color_scheme": "dark"}, {"media": "print"}):
            page.emulate_media(**media)
            papers.append(page.evaluate("getComputedStyle(document.body).backgroundColor"))
    assert complaints == []
    assert all(url.startswith(("file:", "data:")) for url in requests)
    assert papers[0] == papers[2] != papers[1]
    verdict = str(prudent.advise(*demonstration_sample()).verdict).partition(": ")[2]
    assert verdict[1:] in text


def test_segments_are_on_the_page() -> None:
    """A rule that looks at context has no thresholds in the forecast alone."""
    rng = np.random.default_rng(0)
    region, forecasts = rng.choice(["north & east", "south", "west"], 9_000), rng.uniform(0.2, 0.8, 9_000)
    off = {"north & east": 0.12, "south": -0.12, "west": 0.0}
    outcomes = (rng.random(9_000) < forecasts + np.array([off[name] for name in region])).astype(float)
    problem = prudent.DecisionProblem([0, 100], [0, 50], actions=["wait", "act"], unit="EUR")
    report = prudent.Report(problem, prudent.Cases(forecasts, outcomes, context={"region": region}))
    text = text_of(report.to_html())
    assert report.bands == ()
    assert "Segment by segment" in text
    assert text.index("region=north & east") < text.index("region=west")
    for row in report.advice.segments().rows:
        assert row[0] in text
    assert "Segment by segment" not in text_of(prudent.Report(problem, forecasts, outcomes).to_html())
