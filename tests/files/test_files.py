"""Files appear whole or not at all, whenever a signal ends the work."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from prudent.files import whole_file, write_text


def test_a_signal_right_after_the_file_was_made(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    made = Path.open

    def open_and_stop(path: Path, mode: str) -> None:
        made(path, mode).close()
        assert len(list(tmp_path.iterdir())) == 1  # it is there
        raise SystemExit(143)

    monkeypatch.setattr(Path, "open", open_and_stop)
    with pytest.raises(SystemExit):
        write_text(tmp_path / "out.txt", "all")
    assert list(tmp_path.iterdir()) == []


def test_a_second_signal_while_the_file_goes(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    unlink, calls = Path.unlink, []

    def stopped_once(path: Path, *arguments: Any, **options: Any) -> None:
        calls.append(path)
        if len(calls) == 1:
            raise KeyboardInterrupt
        unlink(path, *arguments, **options)

    monkeypatch.setattr(Path, "unlink", stopped_once)
    with pytest.raises(KeyboardInterrupt), whole_file(tmp_path / "out.txt"):
        raise SystemExit(143)
    assert list(tmp_path.iterdir()) == []


@pytest.mark.parametrize("error", [SystemExit(143), KeyboardInterrupt(), ValueError("no")], ids=repr)
def test_the_old_file_stays(tmp_path: Path, error: BaseException) -> None:
    target = tmp_path / "out.txt"
    write_text(target, "old")

    def fill() -> None:
        with whole_file(target) as stream:
            stream.write(b"half")
            raise error

    with pytest.raises(type(error)):
        fill()
    assert [(path.name, path.read_text()) for path in tmp_path.iterdir()] == [("out.txt", "old")]
