"""Errors at the door: what becomes of a programming error."""

from __future__ import annotations

import pytest
import typer

from prudent.cli.boundary import run


def test_a_mistake_of_ours_keeps_its_traceback(capsys: pytest.CaptureFixture[str]) -> None:
    """A programming error is no bad input: it must not look like one."""
    broken = typer.Typer()

    @broken.command()
    def fail(word: str) -> None:
        raise TypeError(word)

    with pytest.raises(TypeError, match="here") as caught:
        run(broken, ["here"])
    assert "mistake in prudent" in caught.value.__notes__[0]
    assert capsys.readouterr().err == ""
