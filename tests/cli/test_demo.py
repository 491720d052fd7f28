"""The command line, run as a person would."""

from __future__ import annotations

import json
import re
import subprocess
import sys
from pathlib import Path

import pytest

import prudent.cli
from prudent.experiments import run_demonstration

COMMAND = [str(Path(sys.executable).parent / "prudent")]


def test_demo_prints_certificate_and_stress_test() -> None:
    done = subprocess.run([*COMMAND, "demo"], capture_output=True, text=True, check=True)
    assert done.stderr == ""
    assert "Certificate: in every world with that guarantee the robust policy earns at least 4" in done.stdout
    rows = re.findall(r"^(plug-in|robust|safety)\s+(-?[\d.]+)", done.stdout, flags=re.MULTILINE)
    assert [name for name, _ in rows] == ["plug-in", "robust", "safety"]


def test_demo_prints_json_alone() -> None:
    done = subprocess.run([*COMMAND, "demo", "--json"], capture_output=True, text=True, check=True)
    document = json.loads(done.stdout)
    assert document["certificate"]["lower"] == pytest.approx(run_demonstration().certificate.lower)
    assert [row["policy"] for row in document["stress"]] == ["plug-in", "robust", "safety"]


def test_help_names_the_commands() -> None:
    done = subprocess.run([*COMMAND, "--help"], capture_output=True, text=True, check=True)
    assert "demo" in done.stdout


def test_without_its_extra_the_command_says_what_to_install(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setitem(sys.modules, "typer", None)
    with pytest.raises(SystemExit) as caught:
        prudent.cli.main()
    assert caught.value.code == 2
    assert "pip install 'prudent[cli]'" in capsys.readouterr().err


def test_the_numbers_of_the_demonstration_hold_together() -> None:
    found = run_demonstration()
    assert max(abs(value) for value in found.moments.values()) < 1e-10
    worst = dict(zip(found.stress.names, found.stress.worst, strict=True))
    assert worst["robust"] == pytest.approx(found.certificate.lower, abs=1e-6)
    assert worst["robust"] > worst["plug-in"]
    assert worst["robust"] > worst["safety"]
