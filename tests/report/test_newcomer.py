"""A newcomer's path: the demonstration's report, opened in a real browser."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

from browser import open_browser
from prudent import Report
from prudent.experiments import demonstration_sample

pytestmark = pytest.mark.slow


def test_the_report_of_the_demonstration_opens_without_complaint(tmp_path: Path) -> None:
    command = Path(sys.executable).parent / "prudent"
    page_file = tmp_path / "report.html"
    done = subprocess.run([command, "demo", "--report", page_file], capture_output=True, text=True, check=True)
    assert str(page_file) in done.stdout
    complaints: list[str] = []
    requests: list[str] = []
    with open_browser() as browser:
        page = browser.new_page(viewport={"width": 1024, "height": 900})
        page.on("console", lambda message: complaints.append(f"{message.type}: {message.text}"))
        page.on("pageerror", lambda error: complaints.append(str(error)))
        page.on("request", lambda request: requests.append(request.url))
        page.goto(page_file.as_uri())
        page.wait_for_selector("#chart-stress[data-drawn=true] svg")
        page.wait_for_selector("#chart-policy[data-drawn=true] svg")
        text = page.inner_text("main")
        page.screenshot(path=tmp_path / "report.png", full_page=True)
        for width in (360, 1920):
            page.set_viewport_size({"width": width, "height": 800})
            assert page.evaluate("document.documentElement.scrollWidth") <= width
    assert complaints == []
    assert all(url.startswith(("file:", "data:")) for url in requests)
    verdict = str(Report(*demonstration_sample()).audit.verdict).partition(": ")[2]
    assert verdict[1:] in text
    assert (tmp_path / "report.png").stat().st_size > 50_000
