"""Tabs of a real browser on the studio, and how to wait for what they show."""

from __future__ import annotations

import json
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from typing import Any

from browser import open_browser

__all__ = ["Watched", "answered", "settled", "watching"]


@dataclass
class Watched:
    """Tabs of a browser; what they complain about and whom they ask."""

    context: Any
    address: str
    complaints: list[str] = field(default_factory=list)
    requests: list[str] = field(default_factory=list)

    def open(self, fragment: str = "") -> Any:
        page = self.context.new_page()
        page.set_default_timeout(60_000)
        page.on("console", lambda message: self.complaints.append(f"{message.type}: {message.text}"))
        page.on("pageerror", lambda error: self.complaints.append(str(error)))
        page.on("request", lambda request: self.requests.append(request.url))
        page.goto(self.address + fragment)
        return page

    def elsewhere(self) -> Watched:
        """A browser of somebody else, who shares nothing but the link."""
        return Watched(self.context.browser.new_context(), self.address, self.complaints, self.requests)


@contextmanager
def watching(address: str, **options: Any) -> Iterator[Watched]:
    with open_browser() as browser:
        yield Watched(browser.new_context(viewport={"width": 1280, "height": 900}, **options), address)


def answered(page: Any) -> None:
    for panel in ("policy", "verdict", "stress"):
        page.wait_for_selector(f"#{panel}[data-current=true] :first-child")
    page.wait_for_selector("#ladder tr.best")


def settled(page: Any, example: str | None = None) -> dict[str, Any]:
    """Wait until the address holds what is visible, and return it; for an example, until it is that one."""
    state: dict[str, Any] = {}
    for _ in range(200):
        before = state
        page.wait_for_timeout(300)
        state = json.loads(page.evaluate("decodeURIComponent(location.hash.slice(1))") or "{}")
        if state and state == before and (example is None or state.get("data", {}).get("example") == example):
            return state
    raise AssertionError(f"the address never named {example}: {state}")
