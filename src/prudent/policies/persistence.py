"""One JSON file per policy: versioned, checked field by field on the way in, nothing executed."""

from collections.abc import Callable
from dataclasses import replace
from typing import Any

import numpy as np
from sklearn.utils.validation import check_is_fitted

from prudent.arrays import probability
from prudent.cases.mean_bounds import PastErrors
from prudent.errors import FileFormatError, InputError
from prudent.files import Document, PathLike, Record, document_text, read_document, write_text
from prudent.guarantees import Nothing, Within
from prudent.guarantees.base import count_moments, guarantee_from_dict, symbolic_tests
from prudent.policies.base import Policy, require_salt
from prudent.policies.capacity import Rationing, Resources
from prudent.policies.fitted import CERTIFICATE_FIELDS, FittedPolicy
from prudent.policies.reference import FixedRule, PlugInPolicy, RecalibratedPolicy, SafetyPolicy
from prudent.policies.robust import RobustPolicy
from prudent.problem import DecisionProblem
from prudent.recalibration.base import Recalibrator
from prudent.slack import Slack
from prudent.solvers import Certificate, Status

_FORMAT = "prudent-policy"
_VERSION = 4
_LARGEST_SEED = 2**32 - 1
_DRAWN = ("salt", "random_state")
_FIELDS: dict[str, tuple[str, ...]] = {
    "PlugInPolicy": (),
    "SafetyPolicy": (*_DRAWN, "randomize"),
    "FixedRule": ("thresholds", "steps"),
    "RecalibratedPolicy": ("recalibrator", "inner"),
    "RobustPolicy": (
        *_DRAWN,
        *("guarantee", "resolved_guarantee", "slack", "slack_cost", "example", "confidence", "randomize", "per_row"),
        *("multipliers", "moment_names", "certificate", "n_snapped", "feature_names", "against", "unseen", "rationing"),
    ),
}
_RATIONING = ("names", "uses", "limits", "prices", "weights", "charged", "multipliers")


def save(policy: Policy, path: PathLike) -> None:
    """Write a policy to one JSON file, whole or not at all."""
    write_text(path, policy_text(policy))


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
    if kind not in _FIELDS:
        raise InputError(f"a {kind} cannot be saved.")
    past = policy.past_
    content: Document = {"policy": kind, "problem": policy._problem.to_dict()}
    content["past"] = _optional(past, PastErrors.to_dict)
    if isinstance(policy, FixedRule):
        if policy.thresholds is None:
            raise InputError("a FixedRule of a function or of labels cannot be saved; thresholds can.")
        thresholds, steps = policy.steps()
        return content | {"thresholds": thresholds.tolist(), "steps": steps.tolist()}
    if isinstance(policy, RecalibratedPolicy):
        return content | {"recalibrator": policy.recalibrator.to_dict(), "inner": policy_to_dict(policy.policy)}
    if _FIELDS[kind]:
        content |= {"salt": require_salt(policy.salt), "random_state": _seed(policy.random_state)}
    if isinstance(policy, SafetyPolicy):
        content["randomize"] = not policy.deterministic
    if isinstance(policy, RobustPolicy):
        names = getattr(policy, "feature_names_in_", None)
        content |= _described(policy.fitted_)
        content |= {"confidence": float(policy.confidence), "feature_names": _optional(names, np.ndarray.tolist)}
    return content


def _described(fitted: FittedPolicy) -> Document:
    """Describe the record of a fit."""
    if not fitted.guarantee.savable:
        raise InputError(
            "this policy's guarantee contains Python functions, which a file cannot hold. "
            "Use built-in guarantees to save it, or keep the code and fit again."
        )
    return {
        "guarantee": fitted.specified.to_dict(),
        "resolved_guarantee": fitted.guarantee.to_dict(),
        "slack": fitted.slack.to_dict(),
        "slack_cost": fitted.slack_cost,
        "example": fitted.examples[0].tolist(),
        "randomize": fitted.randomize,
        "per_row": list(fitted.per_row),
        "moment_names": list(fitted.tests.names),
        "certificate": {name: getattr(fitted.certificate, name) for name in CERTIFICATE_FIELDS},
        "n_snapped": fitted.n_snapped,
        "multipliers": _optional(fitted.multipliers, np.ndarray.tolist),
        "unseen": _optional(fitted.unseen, np.ndarray.tolist),
        "against": _optional(fitted.against, policy_to_dict),
        "rationing": _optional(fitted.rationing, _described_rationing),
    }


def _described_rationing(rationing: Rationing) -> Document:
    resources = rationing.resources
    known = {"uses": resources.uses, "limits": resources.limits, "prices": rationing.prices}
    return {
        "names": list(resources.names),
        **{name: numbers.tolist() for name, numbers in (known | {"charged": rationing.charged}).items()},
        "weights": [weight for weight, _ in rationing.parts],
        "multipliers": [_optional(part.multipliers, np.ndarray.tolist) for _, part in rationing.parts],
    }


def policy_from_dict(content: Document) -> Policy:
    """Rebuild a policy from its description."""
    kind = content.get("policy") if isinstance(content, dict) else None
    if not isinstance(kind, str) or kind not in _FIELDS:
        raise FileFormatError(f"policy must be one of {', '.join(_FIELDS)}; got {kind!r}.")
    record = Record(content, kind, "policy", "problem", "past", *_FIELDS[kind])
    policy = _rebuilt(kind, record, DecisionProblem.from_dict(record["problem"]))
    if kind != "RobustPolicy" and record["past"] is not None:
        policy.past_ = PastErrors.from_dict(record["past"], 1)
    return policy


def _rebuilt(kind: str, record: Record, problem: DecisionProblem) -> Policy:
    if kind == "PlugInPolicy":
        return PlugInPolicy(problem)
    if kind == "FixedRule":
        thresholds = record.array("thresholds", None)
        steps = record.array("steps", thresholds.size + 1)
        if not np.isin(steps, np.arange(problem.n_actions)).all():
            raise FileFormatError("steps must be numbers of actions.")
        rule = FixedRule(problem, thresholds.tolist(), actions=[problem.actions[int(step)] for step in steps])
        rule.steps()
        return rule
    if kind == "RecalibratedPolicy":
        recalibrator, inner = Recalibrator._rebuild(record["recalibrator"]), policy_from_dict(record["inner"])
        if isinstance(inner, RecalibratedPolicy) or inner._problem != problem:
            raise FileFormatError("inner must be a policy for the same problem that recalibrates nothing.")
        if not recalibrator.space_.same_as(problem.space):
            raise FileFormatError("the recalibrator must be for the problem's space.")
        return RecalibratedPolicy(recalibrator, inner)
    salt = record.typed("salt", str)
    seed = _optional(record["random_state"], lambda _: record.count("random_state", _LARGEST_SEED))
    if kind == "SafetyPolicy":
        return SafetyPolicy(problem, record.typed("randomize", bool), salt=salt, random_state=seed)
    fitted = _fitted(problem, record)
    policy = RobustPolicy(
        problem,
        fitted.specified,
        criterion="utility" if fitted.against is None else "improvement",
        against=fitted.against,
        randomize=fitted.randomize,
        slack=fitted.slack,
        unseen="refuse" if fitted.unseen is None else "pooled",
        confidence=probability(record["confidence"], "confidence"),
        salt=salt,
        random_state=seed,
        capacity=None if fitted.rationing is None else fitted.rationing.resources.as_given(),
    )
    policy.fitted_, policy.n_features_in_ = fitted, problem.dimension
    if record["feature_names"] is not None:
        names = record.typed("feature_names", list)
        if len(names) != problem.dimension or not all(isinstance(name, str) for name in names):
            raise FileFormatError(f"feature_names must be {problem.dimension} names, one per coordinate.")
        policy.feature_names_in_ = np.array(names, dtype=object)
    return policy


def _fitted(problem: DecisionProblem, record: Record) -> FittedPolicy:
    """Compare guarantee, names, multipliers and slack with each other; tests are counted before they are evaluated."""
    guarantee, space = guarantee_from_dict(record["resolved_guarantee"]), problem.space
    examples, _ = space.place(record.array("example", problem.dimension)[None], "example")
    names = tuple(record.typed("moment_names", list))
    held = Record(record["slack"], "slack", "radius", "norm", "center", "confidence")
    slack = Slack(held["radius"], held.typed("norm", str), held["center"], held["confidence"])
    if slack.needs_outcomes:
        raise FileFormatError("slack must be written in numbers.")
    count = 0 if guarantee.full else count_moments(guarantee, space)
    tests = symbolic_tests(Nothing() if guarantee.full or len(names) != count else guarantee, space).layout
    if len(names) != count or tests.names != names:
        raise FileFormatError(f"moment_names must be those of the guarantee, {count} in its order.")
    if guarantee.full:
        record.typed("multipliers", type(None))
    slack.resolve(tests, None)
    per_row = record.typed("per_row", list)
    if per_row not in ([], ["rewards"], ["costs"], ["rewards", "costs"]):
        raise FileFormatError(f"per_row must list rewards, costs, both or none; got {per_row}.")
    unseen: tuple[int, ...] = ()
    if isinstance(guarantee, Within):
        unseen = guarantee.blocks(np.zeros(tests.multiplier_shape))[0].shape
    elif record["unseen"] is not None:
        raise FileFormatError("unseen belongs to a guarantee within groups.")
    rule = _optional(record["against"], policy_from_dict)
    if rule and ((isinstance(rule, RobustPolicy) and not rule.guarantee_.full) or rule._problem != problem):
        raise FileFormatError("against must be a rule in use for the same problem.")
    stated, known = Record(record["certificate"], "certificate", *CERTIFICATE_FIELDS), [each.value for each in Status]
    if stated["status"] not in known:
        raise FileFormatError(f"certificate.status must be one of {known}; got {stated['status']!r}.")
    lower = stated.number("lower")
    ends = lower, stated.number("upper", least=lower)
    none = guarantee.full or (rule is not None and record["multipliers"] is None)
    fitted = FittedPolicy(
        problem,
        guarantee_from_dict(record["guarantee"]),
        guarantee,
        slack,
        record.typed("randomize", bool),
        tuple(per_row),
        None if none else record.array("multipliers", *tests.multiplier_shape),
        tests,
        record.number("slack_cost"),
        Certificate(*ends, Status(stated["status"]), stated.typed("message", str)),
        examples,
        record.count("n_snapped"),
        rule,
        _optional(record["past"], lambda content: PastErrors.from_dict(content, count)),
        None,
        _optional(record["unseen"], lambda _: record.array("unseen", *unseen)),
    )
    return replace(fitted, rationing=_optional(record["rationing"], lambda content: _rationing(content, fitted)))


def _rationing(content: Any, fitted: FittedPolicy) -> Rationing:
    """Rebuild how a capacity is met; ``fitted`` is all else that was found."""
    record, problem = Record(content, "rationing", *_RATIONING), fitted.problem
    names = tuple(record.typed("names", list))
    j = len(names)
    uses = record.array("uses", j, problem.n_actions)
    resources = Resources(names, problem.actions, uses, record.array("limits", j))
    weights = record.array("weights", None).tolist()
    charged = record.array("charged", len(weights), j)
    parts = []
    for weight, prices, each in zip(weights, charged, record.typed("multipliers", list), strict=True):
        own, known = Record({"multipliers": each}, "rationing", "multipliers"), each and not fitted.guarantee.full
        multipliers = own.array("multipliers", *fitted.tests.multiplier_shape) if known else None
        parts.append((weight, replace(fitted, problem=resources.priced(problem, prices), multipliers=multipliers)))
    return Rationing(resources, record.array("prices", j), tuple(parts), charged)


def _optional(value: Any, written: Callable[[Any], Any]) -> Any:
    """Write or read what may be missing."""
    return None if value is None else written(value)


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
