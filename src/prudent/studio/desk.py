"""Where questions are handed in: the same one is computed once, and the event loop stays free.

Threads that compute share one interpreter, so there are no more of them than cores; others, which only look something
up, do not queue behind them. Parts of an answer that make use of each other stand in line: two of them at once would
take as long together, and both would be late. Answers are kept as bytes, since the next tab may ask the same.
"""

from __future__ import annotations

import asyncio
import os
from collections import OrderedDict
from collections.abc import Callable
from contextlib import AbstractAsyncContextManager, nullcontext
from functools import cached_property
from typing import TypeVar
from weakref import WeakValueDictionary

import anyio.to_thread
from pydantic import BaseModel

__all__ = ["Desk"]

Made = TypeVar("Made")

_MOST_BYTES = 4 << 20
_LOOKING_UP = 8


class Desk:
    """Computes answers in threads; keeps 4 MB of them, those asked for last."""

    def __init__(self) -> None:
        self._running: dict[str, asyncio.Task[bytes]] = {}
        self._kept: OrderedDict[str, bytes] = OrderedDict()
        self._bytes = 0
        self._lines: WeakValueDictionary[str, asyncio.Lock] = WeakValueDictionary()

    @cached_property
    def _computing(self) -> anyio.CapacityLimiter:
        return anyio.CapacityLimiter(max(2, os.cpu_count() or 1))

    @cached_property
    def _looking_up(self) -> anyio.CapacityLimiter:
        return anyio.CapacityLimiter(_LOOKING_UP)

    async def answer(
        self, name: str, make: Callable[[], BaseModel | bytes], *, light: bool = False, line: str | None = None
    ) -> bytes:
        """Return the answer of this name as JSON: kept, on its way, or made now, one after the other in each line."""
        if name in self._kept:
            self._kept.move_to_end(name)
            return self._kept[name]
        task = self._running.get(name)
        if task is None:
            task = self._running[name] = asyncio.create_task(self._make(name, make, light, line))
            task.add_done_callback(_look_at)
        return await asyncio.shield(task)  # who leaves does not take the answer away from the others

    async def run(self, make: Callable[[], Made], *, light: bool = False) -> Made:
        """Call a function in a thread."""
        return await anyio.to_thread.run_sync(make, limiter=self._looking_up if light else self._computing)

    async def _make(self, name: str, make: Callable[[], BaseModel | bytes], light: bool, line: str | None) -> bytes:
        turn: AbstractAsyncContextManager[None] = nullcontext()
        if line is not None:
            turn = self._lines.setdefault(line, asyncio.Lock())
        try:
            async with turn:
                made = await self.run(lambda: _written(make()), light=light)
        finally:
            del self._running[name]
        self._kept[name] = made
        self._bytes += len(made)
        while self._bytes > _MOST_BYTES:
            self._bytes -= len(self._kept.popitem(last=False)[1])
        return made


def _written(answer: BaseModel | bytes) -> bytes:
    return answer if isinstance(answer, bytes) else answer.model_dump_json().encode()


def _look_at(task: asyncio.Task[bytes]) -> None:
    """A mistake is told to those who wait; if they have all left, it is nobody's."""
    if not task.cancelled():
        task.exception()
