"""One JSON file per policy: versioned, checked field by field on the way in, nothing executed."""

from typing import Any

import numpy as np
from sklearn.utils.validation import check_is_fitted

from prudent.arrays import probability
from prudent.errors import FileFormatError, InputError
from prudent.files import PathLike, document_text, read_document, write_document
from prudent.files.records import Document, Record
from prudent.guarantees.base import count_moments, guarantee_from_dict
from prudent.policies.base import Policy, require_salt
from prudent.policies.reference import PlugInPolicy, SafetyPolicy
from prudent.policies.robust import PureRobustPolicy, RobustPolicy, TiltedPolicy
from prudent.problem import DecisionProblem
from prudent.slack import Slack
from prudent.solvers import Certificate, Game, Status, local_game

_FORMAT = "prudent-policy"
_VERSION = 1
_LARGEST_SEED = 2**32 - 1
_TILTED: dict[str, type[TiltedPolicy]] = {kind.__name__: kind for kind in (RobustPolicy, PureRobustPolicy)}
_DRAWN = ("salt", "random_state")
_FIELDS = {
    "PlugInPolicy": (),
    "SafetyPolicy": (*_DRAWN, "pure"),
    **dict.fromkeys(
        _TILTED,
        (
            *_DRAWN,
            *("guarantee", "resolved_guarantee", "slack", "slack_penalty", "example", "confidence"),
            *("multipliers", "moment_names", "certificate", "n_snapped", "feature_names"),
        ),
    ),
}


def save(policy: Policy, path: PathLike) -> None:
    """Write a policy to one JSON file, whole or not at all."""
    write_document(path, _FORMAT, _VERSION, policy_to_dict(policy))


def policy_text(policy: Policy) -> str:
    """Return what a policy's file holds."""
    return document_text(_FORMAT, _VERSION, policy_to_dict(policy))


def load(path: PathLike) -> Policy:
    """Read a policy that was saved; its decisions are bit for bit those of the original.

    Examples
    --------
    >>> import os, tempfile, prudent
    >>> problem = prudent.DecisionProblem([0.0, 1.0], [0.0, 0.5])
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     path = os.path.join(folder, "policy.json")
    ...     prudent.PlugInPolicy(problem).save(path)
    ...     prudent.load(path)
    PlugInPolicy(problem=DecisionProblem([0.0, 1.0], costs=[0.0, 0.5], actions=[0, 1], space=Box(0.0, 1.0)))
    """
    return read_document(path, _FORMAT, _VERSION, policy_from_dict)


def policy_to_dict(policy: Policy) -> Document:
    """Describe a policy for a file."""
    kind = type(policy).__name__
    check_is_fitted(policy)
    content: Document = {"policy": kind, "problem": policy._problem.to_dict()}
    if isinstance(policy, PlugInPolicy):
        return content
    content |= {"salt": require_salt(policy.salt), "random_state": _seed(policy.random_state)}
    if isinstance(policy, SafetyPolicy):
        return content | {"pure": policy.deterministic}
    if not isinstance(policy, TiltedPolicy):
        raise InputError(f"a {kind} cannot be saved.")
    if not policy.guarantee_.savable:
        raise InputError(
            "this policy's guarantee contains Python functions, which a file cannot hold. "
            "Use built-in guarantees to save it, or keep the code and fit again."
        )
    certificate = policy.certificate_
    return content | {
        "guarantee": policy.specified_.to_dict(),
        "resolved_guarantee": policy.guarantee_.to_dict(),
        "slack": policy.slack_.to_dict(),
        "slack_penalty": policy.slack_penalty_,
        "example": policy.fitted_rows_[0].tolist(),
        "confidence": float(policy.confidence),
        "multipliers": None if policy.multipliers_ is None else policy.multipliers_.tolist(),
        "moment_names": list(policy.moment_names_),
        "certificate": {
            "lower": certificate.lower,
            "upper": certificate.upper,
            "status": certificate.status.value,
            "message": certificate.message,
        },
        "n_snapped": policy.n_snapped_,
        "feature_names": policy.feature_names_in_.tolist() if hasattr(policy, "feature_names_in_") else None,
    }


def policy_from_dict(content: Document) -> Policy:
    """Rebuild a policy from its description."""
    kind = content.get("policy") if isinstance(content, dict) else None
    if not isinstance(kind, str) or kind not in _FIELDS:
        raise FileFormatError(f"policy must be one of {', '.join(_FIELDS)}; got {kind!r}.")
    record = Record(content, kind, "policy", "problem", *_FIELDS[kind])
    problem = DecisionProblem.from_dict(record["problem"])
    if kind == "PlugInPolicy":
        return PlugInPolicy(problem)
    salt = record.typed("salt", str)
    seed = None if record["random_state"] is None else record.count("random_state", _LARGEST_SEED)
    if kind == "SafetyPolicy":
        return SafetyPolicy(problem, record.typed("pure", bool), salt=salt, random_state=seed)
    policy = _TILTED[kind](
        problem,
        guarantee_from_dict(record["guarantee"]),
        slack=_slack(record["slack"]),
        confidence=probability(record["confidence"], "confidence"),
        salt=salt,
        random_state=seed,
    )
    policy.problem_, policy.slack_, policy.specified_ = problem, policy.slack, policy.guarantee
    policy.guarantee_ = guarantee_from_dict(record["resolved_guarantee"])
    policy.fitted_rows_, _ = problem.space.place(record.array("example", problem.dimension)[None], "example")
    policy.moment_names_ = tuple(record.typed("moment_names", list))
    policy.slack_penalty_ = record.number("slack_penalty")
    policy.certificate_ = _certificate(record["certificate"])
    policy.n_snapped_ = record.count("n_snapped")
    policy.n_features_in_ = problem.dimension
    policy.multipliers_ = None
    if not policy.guarantee_.full:
        _read_tests(policy, record)
    elif record["multipliers"] is not None or policy.moment_names_:
        raise FileFormatError("multipliers and moment_names must be empty for full calibration, which has no tests.")
    if record["feature_names"] is not None:
        names = record.typed("feature_names", list)
        if len(names) != problem.dimension or not all(isinstance(name, str) for name in names):
            raise FileFormatError(f"feature_names must be {problem.dimension} names, one per coordinate.")
        policy.feature_names_in_ = np.array(names, dtype=object)
    policy._local = local_game(Game.of_problem(problem))
    return policy


def _read_tests(policy: TiltedPolicy, record: Record) -> None:
    """Compare guarantee, names, multipliers and slack with each other; tests are counted before they are evaluated."""
    space = policy.problem_.space
    count = count_moments(policy.guarantee_, space)
    if len(policy.moment_names_) == count:
        tests = policy.guarantee_.evaluate(policy.fitted_rows_, space)
    if len(policy.moment_names_) != count or tests.names != policy.moment_names_:
        raise FileFormatError(f"moment_names must be those of the guarantee, {count} in its order.")
    policy.tests_ = tests.without_rows()
    policy.multipliers_ = record.array("multipliers", *tests.multiplier_shape)
    policy.slack_.resolve(tests, None)


def _slack(content: Any) -> Slack:
    record = Record(content, "slack", "radius", "norm", "center", "confidence")
    slack = Slack(record["radius"], record.typed("norm", str), record["center"], record["confidence"])
    if slack.needs_outcomes:
        raise FileFormatError("slack must be written in numbers.")
    return slack


def _certificate(content: Any) -> Certificate:
    record = Record(content, "certificate", "lower", "upper", "status", "message")
    lower = record.number("lower")
    upper = record.number("upper", least=lower)
    known = {status.value: status for status in Status}
    if record.typed("status", str) not in known:
        raise FileFormatError(f"certificate.status must be one of {list(known)}; got {record['status']!r}.")
    return Certificate(lower, upper, known[record["status"]], record.typed("message", str))


def _seed(random_state: Any) -> int | None:
    if random_state is None:
        return None
    whole = isinstance(random_state, (int, np.integer)) and not isinstance(random_state, bool)
    if whole and 0 <= random_state <= _LARGEST_SEED:
        return int(random_state)
    raise InputError(
        f"random_state must be None or a whole number below 2**32 to be saved; got {type(random_state).__name__}. "
        f"Draw with keys to be reproducible without it."
    )
