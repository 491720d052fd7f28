"""Photograph the studio: ``make screenshots``.

Three widths, light and dark, into the folder ``screenshots``; ``--documentation`` makes the pictures of the guide.
"""

from __future__ import annotations

import argparse
from pathlib import Path
from typing import Any

from benchmarks.studio import running_studio

from browser import open_browser

ROOT = Path(__file__).parent.parent
SCHEMES = ("light", "dark")
WIDTHS = (360, 1024, 1920)


def main() -> None:
    """Take the pictures."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--documentation", action="store_true", help="the pictures of docs/how-to/studio.md")
    options = parser.parse_args()
    with running_studio() as (address, _), open_browser() as browser:
        if options.documentation:
            folder = ROOT / "docs" / "images"
            _photograph(browser, address, "staffing", 1280, "light", folder / "studio.png", whole=False)
            _photograph(browser, address, "triage", 1280, "dark", folder / "studio-dark.png", whole=False)
            return
        folder = ROOT / "screenshots"
        folder.mkdir(exist_ok=True)
        for scheme in SCHEMES:
            for width in WIDTHS:
                for example in (None, "staffing", "triage"):
                    path = folder / f"{example or 'empty'}-{width}-{scheme}.png"
                    _photograph(browser, address, example, width, scheme, path)
    print(f"The pictures are in {folder}.")


def _photograph(
    browser: Any, address: str, example: str | None, width: int, scheme: str, path: Path, whole: bool = True
) -> None:
    page = browser.new_page(viewport={"width": width, "height": 900 if whole else 1400}, color_scheme=scheme)
    page.set_default_timeout(60_000)
    page.goto(address)
    if example is not None:
        page.click(f"[data-example={example}]")
        for panel in ("policy", "verdict", "stress"):
            page.wait_for_selector(f"#{panel}[data-current=true] :first-child")
        page.wait_for_selector("#ladder tr.best")
        page.wait_for_selector("#explain:not(.stale)")
        page.wait_for_timeout(300)
    page.evaluate("scrollTo(0, 0)")
    page.screenshot(path=path, full_page=whole)
    page.close()


if __name__ == "__main__":
    main()
