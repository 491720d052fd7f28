"""A real browser for pages: Debian's Chromium, driven by Playwright."""

from __future__ import annotations

import shutil
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import pytest

__all__ = ["open_browser"]


@contextmanager
def open_browser() -> Iterator[Any]:
    """Start a headless browser, or skip the test and say what is missing."""
    playwright = pytest.importorskip("playwright.sync_api", reason="playwright is not installed")
    executable = shutil.which("chromium") or shutil.which("chromium-browser") or shutil.which("google-chrome")
    if executable is None:
        pytest.skip("no Chromium on this machine; on Debian: apt-get install chromium")
    with playwright.sync_playwright() as driver:
        browser = driver.chromium.launch(executable_path=executable, args=["--no-sandbox"])
        try:
            yield browser
        finally:
            browser.close()
