"""One JSON file per policy: versioned, checked field by field on the way in, nothing executed."""

from __future__ import annotations

import os
from typing import Any

import numpy as np
from sklearn.utils.validation import check_is_fitted

from prudent.ambiguity import Slack
from prudent.arrays import finite_array
from prudent.errors import FileFormatError, InputError
from prudent.files import document_text, read_document, write_document
from prudent.guarantees.base import guarantee_from_dict
from prudent.policies.base import Policy, require_salt
from prudent.policies.reference import PlugInPolicy, SafetyPolicy
from prudent.policies.robust import PureRobustPolicy, RobustPolicy
from prudent.problem import DecisionProblem
from prudent.solvers import Certificate, Game, Status, local_game

__all__ = ["load", "policy_from_dict", "policy_text", "policy_to_dict", "save"]

_FORMAT = "prudent-policy"
_VERSION = 1
_TILTED: dict[str, type[RobustPolicy | PureRobustPolicy]] = {
    "RobustPolicy": RobustPolicy,
    "PureRobustPolicy": PureRobustPolicy,
}


def save(policy: Policy, path: str | os.PathLike[str]) -> None:
    """Write a policy to one JSON file, whole or not at all."""
    write_document(path, _FORMAT, _VERSION, policy_to_dict(policy))


def policy_text(policy: Policy) -> str:
    """Return what a policy's file holds."""
    return document_text(_FORMAT, _VERSION, policy_to_dict(policy))


def load(path: str | os.PathLike[str]) -> Policy:
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
    content = read_document(path, _FORMAT, _VERSION)
    try:
        return policy_from_dict(content)
    except FileFormatError as error:
        raise FileFormatError(f"{str(path)!r}: {error}") from error
    except (ValueError, TypeError, KeyError, AttributeError, OverflowError) as error:
        raise FileFormatError(f"{str(path)!r} has a field with a wrong value: {error}") from error


def policy_to_dict(policy: Policy) -> dict[str, Any]:
    """Describe a policy for a file."""
    kind = type(policy).__name__
    check_is_fitted(policy)
    content: dict[str, Any] = {"policy": kind, "problem": policy._problem.to_dict()}
    if isinstance(policy, PlugInPolicy):
        return content
    content |= {"salt": require_salt(policy.salt), "random_state": _seed(policy.random_state)}
    if isinstance(policy, SafetyPolicy):
        return content | {"pure": policy._deterministic}
    if not isinstance(policy, (RobustPolicy, PureRobustPolicy)):
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


def policy_from_dict(content: dict[str, Any]) -> Policy:
    """Rebuild a policy from its description."""
    kind = content.get("policy")
    if not isinstance(kind, str) or kind not in {"PlugInPolicy", "SafetyPolicy", *_TILTED}:
        raise FileFormatError(f"policy must be one of PlugInPolicy, SafetyPolicy, {', '.join(_TILTED)}; got {kind!r}.")
    expected = {"policy", "problem"}
    if kind != "PlugInPolicy":
        expected |= {"salt", "random_state"}
    if kind == "SafetyPolicy":
        expected |= {"pure"}
    if kind in _TILTED:
        expected |= {"guarantee", "resolved_guarantee", "slack", "slack_penalty", "example", "confidence"}
        expected |= {"multipliers", "moment_names", "certificate", "n_snapped", "feature_names"}
    if set(content) != expected:
        odd = sorted(expected.symmetric_difference(content))
        raise FileFormatError(f"a {kind} file must have exactly the fields {sorted(expected)}; check {odd}.")
    problem = DecisionProblem.from_dict(content["problem"])
    if kind == "PlugInPolicy":
        return PlugInPolicy(problem)
    salt = _typed(content, "salt", str)
    seed = None if content["random_state"] is None else _count(content, "random_state")
    if kind == "SafetyPolicy":
        return SafetyPolicy(problem, _typed(content, "pure", bool), salt=salt, random_state=seed)
    return _rebuild_tilted(kind, content, problem, salt, seed)


def _rebuild_tilted(
    kind: str, content: dict[str, Any], problem: DecisionProblem, salt: str, seed: int | None
) -> Policy:
    slack = _typed(content, "slack", dict)
    if set(slack) != {"radius", "norm", "center", "confidence"}:
        raise FileFormatError("slack must have exactly the fields radius, norm, center, confidence.")
    confidence = _probability(content, "confidence")
    policy = _TILTED[kind](
        problem,
        guarantee_from_dict(content["guarantee"]),
        slack=Slack(slack["radius"], slack["norm"], slack["center"], slack["confidence"]),
        confidence=confidence,
        salt=salt,
        random_state=seed,
    )
    policy.guarantee_ = guarantee_from_dict(content["resolved_guarantee"])
    policy.fitted_rows_, _ = problem.space.place([content["example"]], "example")
    policy.moment_names_ = tuple(str(name) for name in _typed(content, "moment_names", list))
    if content["multipliers"] is None:
        if not policy.guarantee_.full:
            raise FileFormatError("multipliers are missing.")
        policy.multipliers_ = None
    else:
        policy.multipliers_ = _multipliers(content["multipliers"], policy, problem)
    policy.certificate_ = _certificate(_typed(content, "certificate", dict))
    policy.n_snapped_ = _count(content, "n_snapped")
    policy.problem_, policy.slack_, policy.specified_ = problem, policy.slack, policy.guarantee
    policy.slack_penalty_ = float(finite_array(content["slack_penalty"], "slack_penalty"))
    policy.n_features_in_ = problem.dimension
    if content["feature_names"] is not None:
        names = _typed(content, "feature_names", list)
        if len(names) != problem.dimension or not all(isinstance(name, str) for name in names):
            raise FileFormatError(f"feature_names must be {problem.dimension} names, one per coordinate.")
        policy.feature_names_in_ = np.array(names, dtype=object)
    policy._local = local_game(Game.of_problem(problem))
    return policy


def _multipliers(value: Any, policy: Any, problem: DecisionProblem) -> Any:
    tests = policy.guarantee_.evaluate(policy.fitted_rows_, problem.space)
    policy.tests_ = tests.without_rows()
    if tests.names != policy.moment_names_:
        raise FileFormatError("moment_names must be those of the guarantee, in its order.")
    multipliers = finite_array(value, "multipliers")
    if tests.n_moments == 0 and multipliers.size == 0:
        multipliers = multipliers.reshape(tests.multiplier_shape)  # an empty list has lost its shape on the way
    if multipliers.shape != tests.multiplier_shape:
        raise FileFormatError(
            f"multipliers must have shape {tests.multiplier_shape}, one per moment of the guarantee; "
            f"got {multipliers.shape}."
        )
    return multipliers


def _certificate(document: dict[str, Any]) -> Certificate:
    if set(document) != {"lower", "upper", "status", "message"}:
        raise FileFormatError("certificate must have exactly the fields lower, upper, status, message.")
    lower = float(finite_array(document["lower"], "certificate.lower"))
    upper = float(finite_array(document["upper"], "certificate.upper"))
    known = [status.value for status in Status]
    if lower > upper or document["status"] not in known or not isinstance(document["message"], str):
        raise FileFormatError(f"certificate must have lower <= upper and a status among {known}.")
    return Certificate(lower, upper, Status(document["status"]), document["message"])


def _typed(content: dict[str, Any], name: str, kind: type) -> Any:
    value = content[name]
    if not isinstance(value, kind) or (kind is int and isinstance(value, bool)):
        raise FileFormatError(f"{name} must be of type {kind.__name__}; got {type(value).__name__}.")
    return value


def _probability(content: dict[str, Any], name: str) -> float:
    value = float(finite_array(content[name], name))
    if not 0 < value < 1:
        raise FileFormatError(f"{name} must lie strictly between 0 and 1; got {value}.")
    return value


def _count(content: dict[str, Any], name: str) -> int:
    value: int = _typed(content, name, int)
    if value < 0:
        raise FileFormatError(f"{name} must not be negative; got {value}.")
    return value


def _seed(random_state: Any) -> int | None:
    if random_state is None:
        return None
    if isinstance(random_state, (int, np.integer)) and not isinstance(random_state, bool) and random_state >= 0:
        return int(random_state)
    raise InputError(
        f"random_state must be None or a whole number to be saved; got {type(random_state).__name__}. "
        f"Draw with keys to be reproducible without it."
    )
