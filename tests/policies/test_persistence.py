"""Files: whole or not at all, checked field by field, nothing executed."""

from __future__ import annotations

import json
import os
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from sklearn.exceptions import NotFittedError

import prudent
from prudent import guarantees
from prudent.errors import FileFormatError, InputError
from prudent.files import document_text

PROBLEM = prudent.DecisionProblem([0.2, 0.9, 1.4], [0.0, 0.3, 0.7], actions=["low", "mid", "high"])
FORECASTS = np.random.default_rng(0).random(100)


@pytest.fixture
def saved(tmp_path: Path) -> Path:
    policy = prudent.RobustPolicy(
        PROBLEM, guarantees.SelfOrthogonal(intercept=True), slack=0.01, salt="x", random_state=3
    )
    policy.fit(FORECASTS).save(tmp_path / "policy.json")
    return tmp_path / "policy.json"


@pytest.mark.parametrize(
    "policy",
    [
        prudent.RobustPolicy(PROBLEM, guarantees.SelfOrthogonal(intercept=True), slack=[0.01, 0.02]),
        prudent.RobustPolicy(PROBLEM, guarantees.Bins(4, "quantile"), slack=prudent.Slack(0.01, "linf")),
        prudent.RobustPolicy(PROBLEM, guarantees.Nothing()),
        prudent.RobustPolicy(PROBLEM, guarantees.FullyCalibrated()),
        prudent.RobustPolicy(PROBLEM, guarantees.SelfOrthogonal(), salt="é", randomize=False),
        prudent.PlugInPolicy(PROBLEM),
        prudent.SafetyPolicy(PROBLEM, randomize=False),
        prudent.SafetyPolicy(PROBLEM, salt="s", random_state=1),
    ],
    ids=repr,
)
def test_decisions_are_bit_identical_after_a_round_trip(policy: Any, tmp_path: Path) -> None:
    policy.fit(FORECASTS)
    policy.save(tmp_path / "p.json")
    again = prudent.load(tmp_path / "p.json")
    assert type(again) is type(policy)
    fresh = np.random.default_rng(1).random(5000)
    assert again.predict_proba(fresh).tobytes() == policy.predict_proba(fresh).tobytes()
    assert again.predict(fresh, keys=range(5000)).tolist() == policy.predict(fresh, keys=range(5000)).tolist()
    assert again.worst_case_belief(fresh).tobytes() == policy.worst_case_belief(fresh).tobytes()
    again.save(tmp_path / "q.json")
    assert (tmp_path / "p.json").read_bytes() == (tmp_path / "q.json").read_bytes()


def test_fitted_attributes_survive(saved: Path) -> None:
    policy = prudent.load(saved)
    assert policy.multipliers_.shape == (2, 1)
    assert policy.fitted_.tests.names == ("1", "v")
    assert policy.fitted_.n_snapped == 0
    assert policy.get_params()["salt"] == "x"


def test_the_document_is_readable_json_with_a_version(saved: Path) -> None:
    document = json.loads(saved.read_text())
    assert document["format"] == "prudent-policy"
    assert document["version"] == 4
    assert document["content"]["policy"] == "RobustPolicy"


def test_unfitted_policies_are_not_saved(tmp_path: Path) -> None:
    with pytest.raises(NotFittedError):
        prudent.RobustPolicy(PROBLEM, guarantees.Unbiased()).save(tmp_path / "p.json")
    assert list(tmp_path.iterdir()) == []


def test_random_states_that_a_file_cannot_hold_are_refused(tmp_path: Path) -> None:
    policy = prudent.SafetyPolicy(PROBLEM, random_state=np.random.RandomState(0))
    with pytest.raises(InputError, match="random_state must be None or a whole number"):
        policy.save(tmp_path / "p.json")
    assert list(tmp_path.iterdir()) == []


def test_a_failed_write_leaves_the_old_file_and_no_rest(saved: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    before = saved.read_bytes()

    def full_disk(descriptor: int) -> None:
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(os, "fsync", full_disk)
    with pytest.raises(OSError, match="No space left"):
        prudent.PlugInPolicy(PROBLEM).save(saved)
    assert saved.read_bytes() == before
    assert list(saved.parent.iterdir()) == [saved]


def test_a_missing_directory_is_named(tmp_path: Path) -> None:
    with pytest.raises(InputError, match=r"existing directory.*nowhere"):
        prudent.PlugInPolicy(PROBLEM).save(tmp_path / "nowhere" / "p.json")


def test_missing_files_are_missing(tmp_path: Path) -> None:
    with pytest.raises(FileNotFoundError):
        prudent.load(tmp_path / "nothing.json")


@pytest.mark.parametrize("share", [0.0, 0.1, 0.5, 0.9, 0.999])
def test_truncated_files_are_refused(saved: Path, share: float) -> None:
    data = saved.read_bytes()
    saved.write_bytes(data[: int(share * len(data))])
    with pytest.raises(FileFormatError, match="not readable JSON"):
        prudent.load(saved)


@pytest.mark.parametrize(
    ("content", "message"),
    [
        (b"\xff\xfe\x00", "not readable JSON"),
        (b"[1, 2]", "not a prudent-policy file; its format is 'list'"),
        (b'{"a": 1}', "its format is None"),
        (b'{"format": "other", "version": 1}', "its format is 'other'"),
        (b'{"format": "prudent-policy"}', "has version None"),
        (
            b'{"format": "prudent-policy", "version": 5, "checksum": "", "content": {}}',
            "has version 5; this library reads version 4. Upgrade prudent",
        ),
        (
            b'{"format": "prudent-policy", "version": 1, "checksum": "", "content": {}}',
            "has version 1; this library reads version 4.",
        ),
        (b'{"format": "prudent-policy", "version": 4, "content": {}}', "does not have the fields"),
        (
            b'{"format": "prudent-policy", "version": 4, "checksum": "", "content": {"a": NaN}}',
            "NaN, which is not a number",
        ),
        (b"[" * 100_000, "not readable JSON"),
    ],
)
def test_foreign_and_newer_files_are_refused(tmp_path: Path, content: bytes, message: str) -> None:
    path = tmp_path / "p.json"
    path.write_bytes(content)
    with pytest.raises(FileFormatError, match=message):
        prudent.load(path)


def test_altered_files_are_refused(saved: Path) -> None:
    text = saved.read_text()
    saved.write_text(text.replace('"salt": "x"', '"salt": "y"'))
    with pytest.raises(FileFormatError, match="altered after it was written"):
        prudent.load(saved)


def rewrite(path: Path, change: Callable[[dict], object]) -> None:
    document = json.loads(path.read_text())
    change(document["content"])
    path.write_text(document_text(document["format"], document["version"], document["content"]))


@pytest.mark.parametrize(
    "change",
    [
        lambda c: c.update(policy="os.system"),
        lambda c: c.update(policy=["RobustPolicy"]),
        lambda c: c.update(extra=1),
        lambda c: c.pop("salt"),
        lambda c: c.update(salt=5),
        lambda c: c.update(random_state="seed"),
        lambda c: c.update(random_state=True),
        lambda c: c.update(confidence="high"),
        lambda c: c.update(multipliers=None),
        lambda c: c.update(multipliers=[1.0]),
        lambda c: c.update(multipliers=[["a"], ["b"]]),
        lambda c: c.update(multipliers=[[1.0], [2.0], [3.0]]),
        lambda c: c.update(moment_names=["v", "1"]),
        lambda c: c.update(moment_names=3),
        lambda c: c["certificate"].update(lower=10.0),
        lambda c: c["certificate"].update(status="splendid"),
        lambda c: c["certificate"].pop("message"),
        lambda c: c["slack"].update(radius=-1),
        lambda c: c["slack"].update(norm="l3"),
        lambda c: c["slack"].pop("norm"),
        lambda c: c["guarantee"].update(kind="eval"),
        lambda c: c["guarantee"].update(intercept="yes"),
        lambda c: c["resolved_guarantee"].update(more=1),
        lambda c: c.update(guarantee="self-orthogonal"),
        lambda c: c["problem"].update(rewards=[[1.0]]),
        lambda c: c["problem"].update(rewards="many"),
        lambda c: c["problem"].update(costs=None, actions=None),
        lambda c: c["problem"].update(actions=["low", "low", "high"]),
        lambda c: c["problem"]["space"].update(kind="ball"),
        lambda c: c["problem"]["space"].update(lower=[2.0]),
        lambda c: c.update(n_snapped="none"),
        lambda c: c.update(feature_names="demand"),
    ],
)
def test_every_field_is_checked(saved: Path, change: Callable[[dict], object]) -> None:
    rewrite(saved, change)
    with pytest.raises(FileFormatError):
        prudent.load(saved)


def test_loaded_policies_are_like_fitted_ones(tmp_path: Path) -> None:
    coin = prudent.DecisionProblem([1.0, -1.0], [0.0, -1.0])
    path = tmp_path / "policy.json"
    prudent.RobustPolicy(coin, guarantees.FullyCalibrated()).fit([0.1, 0.9]).save(path)
    with pytest.raises(InputError, match="FullyCalibrated"):
        prudent.PolicyMonitor(prudent.load(path))
    narrow = prudent.RobustPolicy(coin, guarantees.Bins([0.0, 0.2, 1.3])).fit([0.1, 0.25])
    narrow.save(path)
    np.testing.assert_array_equal(prudent.load(path).predict_proba([0.15]), narrow.predict_proba([0.15]))
