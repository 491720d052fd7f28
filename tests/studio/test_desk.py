"""Equal questions are computed once; who leaves and who fails do not disturb the others."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from threading import Event

import pytest
from pydantic import BaseModel

from prudent.studio import desk as module
from prudent.studio.desk import Desk


class Told(BaseModel):
    text: str


def test_equal_questions_in_flight_are_computed_once() -> None:
    made, go = [], Event()

    def make() -> Told:
        assert go.wait(60)
        made.append(1)
        return Told(text="a")

    async def ask() -> list[bytes]:
        desk = Desk()
        tasks = [asyncio.create_task(desk.answer("a", make)) for _ in range(50)]
        await asyncio.sleep(0)
        tasks[0].cancel()
        go.set()
        answers = await asyncio.gather(*tasks[1:])
        return [*answers, await desk.answer("a", make)]

    assert asyncio.run(ask()) == [b'{"text":"a"}'] * 50
    assert made == [1]


def test_light_work_does_not_queue_behind_heavy_work() -> None:
    go = Event()

    def heavy() -> Told:
        assert go.wait(60)
        return Told(text="heavy")

    async def ask() -> bytes:
        desk = Desk()
        waiting = [asyncio.create_task(desk.answer(f"heavy {k}", heavy)) for k in range(100)]
        await asyncio.sleep(0)
        answer = await desk.answer("light", lambda: Told(text="light"), light=True)
        go.set()
        await asyncio.gather(*waiting)
        return answer

    assert asyncio.run(ask()) == b'{"text":"light"}'


def test_parts_of_one_answer_stand_in_line() -> None:
    """In one line nothing starts before the one before it has ended; another line does not wait."""
    went, go = [], Event()

    def make(text: str) -> Callable[[], Told]:
        def made() -> Told:
            went.append(f"{text} starts")
            assert go.wait(60)
            went.append(f"{text} ends")
            return Told(text=text)

        return made

    async def ask() -> None:
        desk = Desk()
        parts = [asyncio.create_task(desk.answer(text, make(text), line="one")) for text in "abc"]
        other = asyncio.create_task(desk.answer("d", make("d"), line="two"))
        while len(went) < 2:  # threads start in any order
            await asyncio.sleep(0.01)
        assert sorted(went) == ["a starts", "d starts"]
        go.set()
        await asyncio.gather(*parts, other)

    asyncio.run(ask())
    in_line = [step for step in went if not step.startswith("d")]
    assert in_line == [f"{text} {step}" for text in "abc" for step in ("starts", "ends")]


def test_mistakes_are_told_to_all_and_not_kept() -> None:
    async def ask() -> None:
        desk = Desk()

        def fail() -> Told:
            raise LookupError("no")

        failures = await asyncio.gather(*(desk.answer("a", fail) for _ in range(3)), return_exceptions=True)
        assert [str(failure) for failure in failures] == ["no"] * 3
        assert await desk.answer("a", lambda: Told(text="b")) == b'{"text":"b"}'

    asyncio.run(ask())


def test_what_is_kept_is_bounded(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(module, "_MOST_BYTES", 30)
    made = []

    async def ask() -> None:
        desk = Desk()
        for text in ("a", "b", "c", "c", "a"):
            await desk.answer(text, lambda text=text: made.append(text) or Told(text=text))

    asyncio.run(ask())
    assert made == ["a", "b", "c", "a"]
