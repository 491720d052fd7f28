"""What is asked of the command line, the studio, saved objects and SQL; each answer is one JSON document."""

from __future__ import annotations

import io
import json
import shlex
import tempfile
from collections.abc import Callable, Iterable
from contextlib import chdir, redirect_stdout
from functools import cache
from pathlib import Path
from typing import Any

import numpy as np
from fastapi.testclient import TestClient

import prudent
from golden import data
from prudent import guarantees
from prudent.cli.application import application
from prudent.cli.boundary import run
from prudent.problem import problem_from_table
from prudent.studio.application import create_application

EXPECTED = Path(__file__).parent / "expected"

_LINE = "line.csv --problem line.toml --forecast f"
_CLASSES = "classes.csv --problem classes.toml --forecast p_mild --forecast p_moderate --forecast p_severe"
_PARTS = "part-1.csv part-2.csv --problem line.toml --forecast f"
COMMANDS = {
    "demo": "demo",
    "advise": f"advise {_LINE} --outcome y",
    "advise-periods": f"advise {_LINE} --outcome y --weight w --period g --confidence 0.9 --tolerance 0.01",
    "advise-parts": f"advise {_PARTS} --outcome y",
    "advise-classes": f"advise {_CLASSES} --outcome y -o out.json",
    "advise-promise": f"advise {_LINE} --guarantee self-orthogonal -o out.json",
    "repair": f"repair {_LINE} --outcome y -o out.json",
    "audit": f"audit {_LINE} --outcome y --guarantee self-orthogonal",
    "audit-default": f"audit {_LINE} --outcome y",
    "audit-weights-periods": f"audit {_LINE} --outcome y --guarantee bins:4 --weight w --period g --confidence 0.9",
    "audit-parts": f"audit {_PARTS} --outcome y --guarantee self-orthogonal",
    "audit-classes": f"audit {_CLASSES} --outcome y --guarantee utility-calibrated",
    "audit-classes-default": f"audit {_CLASSES} --outcome y",
    "fit-advised": f"fit {_LINE} --outcome y -o out.json",
    "fit": f"fit {_LINE} -o out.json",
    "fit-audited": f"fit {_LINE} --outcome y --guarantee unbiased+bins:3 --slack audit --weight w -o out.json",
    "fit-polynomial": f"fit {_LINE} --guarantee polynomial:3 --slack 0.01 -o out.json",
    "fit-pure": f"fit {_LINE} --pure -o out.json",
    "fit-parts": f"fit {_PARTS} -o out.json",
    "fit-classes": f"fit {_CLASSES} --guarantee classwise:2 -o out.json",
    "fit-classes-audited": f"fit {_CLASSES} --outcome y --guarantee self-orthogonal --slack audit -o out.json",
    "ladder": f"ladder {_LINE} --outcome y",
    "ladder-classes": f"ladder {_CLASSES} --outcome y --guarantee unbiased --guarantee top-label:2",
    "stress": f"stress {_LINE} --outcome y",
    "stress-audited": f"stress {_LINE} --outcome y --slack audit --guarantee bins:5",
    "stress-classes": f"stress {_CLASSES} --guarantee unbiased",
    "report": f"report {_LINE} --outcome y --guarantee self-orthogonal -o out.html",
    "report-classes": f"report {_CLASSES} --outcome y -o out.html",
}
#: Commands about a golden policy file, with the file of actions that they write.
DECISIONS = {
    "decide": "decide line.csv --policy {policies}/robust.json --forecast f --id id -o out.csv",
    "decide-probabilities": "decide line.csv --policy {policies}/robust.json --forecast f --seed 5 --probabilities "
    "-o out.csv",
    "decide-parts": "decide part-1.csv part-2.csv --policy {policies}/robust.json --forecast f --id id -o out.csv",
    "decide-classes": "decide classes.csv --policy {policies}/robust-classes.json --forecast p_mild "
    "--forecast p_moderate --forecast p_severe --id id -o out.csv",
}


def _line_problem() -> prudent.DecisionProblem:
    return problem_from_table({"actions": ["low", "mid", "high"], "rewards": [0.2, 0.9, 1.4], "costs": [0, 0.3, 0.7]})


def _class_problem() -> prudent.DecisionProblem:
    return prudent.DecisionProblem.from_payoffs(
        [[1.0, 0.2, -1.0], [0.5, 0.8, 0.0], [-0.2, 0.4, 1.0]], actions=["send home", "observe", "admit"]
    )


def _fitted(policy: Any, *, outcomes: bool = False) -> Callable[[], Any]:
    def fit() -> Any:
        forecasts, known = data.line() if policy.problem.dimension == 1 else data.classes()
        return policy.fit(forecasts, known if outcomes else None)

    return fit


_ONE, _THREE = _line_problem(), _class_problem()
POLICIES: dict[str, Callable[[], Any]] = {
    "plug-in": _fitted(prudent.PlugInPolicy(_ONE)),
    "safety": _fitted(prudent.SafetyPolicy(_ONE, salt="s", random_state=1)),
    "safety-pure": _fitted(prudent.SafetyPolicy(_THREE, randomize=False)),
    "robust": _fitted(prudent.RobustPolicy(_ONE, guarantees.SelfOrthogonal(intercept=True), slack=0.01, salt="s")),
    "robust-audited": _fitted(
        prudent.RobustPolicy(_ONE, guarantees.Bins(3, "quantile"), slack="audit", random_state=7), outcomes=True
    ),
    "robust-polynomial": _fitted(prudent.RobustPolicy(_ONE, guarantees.Polynomial(2))),
    "robust-decision-calibrated": _fitted(prudent.RobustPolicy(_ONE, guarantees.DecisionCalibrated(_ONE))),
    "robust-nothing": _fitted(prudent.RobustPolicy(_ONE, guarantees.Nothing())),
    "robust-fully-calibrated": _fitted(prudent.RobustPolicy(_ONE, guarantees.FullyCalibrated())),
    "pure": _fitted(prudent.RobustPolicy(_ONE, guarantees.SelfOrthogonal(), randomize=False)),
    "recalibrated": lambda: prudent.RecalibratedPolicy(
        prudent.recalibration.ScalingCalibrator("affine").fit(*data.line()), prudent.PlugInPolicy(_ONE)
    ),
    "recalibrated-isotonic": lambda: prudent.RecalibratedPolicy(
        prudent.recalibration.IsotonicCalibrator(space=_THREE.space).fit(*data.classes()), prudent.PlugInPolicy(_THREE)
    ),
    "recalibrated-robust": lambda: prudent.RecalibratedPolicy(
        prudent.recalibration.ScalingCalibrator("shift").fit(*data.line()),
        prudent.RobustPolicy(_ONE, guarantees.SelfOrthogonal(), salt="s").fit(data.line()[0]),
    ),
    "fixed-rule": lambda: prudent.FixedRule(_ONE, [0.3, 0.8], actions=["low", "high", "mid"]),
    "robust-classes": _fitted(prudent.RobustPolicy(_THREE, guarantees.SelfOrthogonal(), slack=0.02)),
    "robust-utility": _fitted(
        prudent.RobustPolicy(_THREE, guarantees.UtilityCalibrated(_THREE) & guarantees.Unbiased())
    ),
    "robust-top-label": _fitted(prudent.RobustPolicy(_THREE, guarantees.TopLabel(2), slack=0.02)),
}


def _monitor() -> prudent.PolicyMonitor:
    forecasts, outcomes = data.line()
    monitor = prudent.PolicyMonitor(_loaded("robust"), tolerance=0.05)
    monitor.update(forecasts[:100], outcomes[:100], ids=range(100))
    return monitor.update(forecasts[100:110], ids=range(100, 110))


def _online() -> prudent.recalibration.OnlineDecisionCalibrator:
    calibrator = prudent.recalibration.OnlineDecisionCalibrator([_ONE], random_state=0)
    forecasts, outcomes = data.line()
    calibrator.predict(range(20), forecasts[:20])
    calibrator.update(range(17), outcomes[:17])
    calibrator.predict(["next"])
    return calibrator


OTHERS: dict[str, Callable[[], Any]] = {
    "isotonic": lambda: prudent.recalibration.IsotonicCalibrator().fit(*data.line()),
    "scaling": lambda: prudent.recalibration.ScalingCalibrator("affine").fit(*data.line()),
    "scaling-classes": lambda: prudent.recalibration.ScalingCalibrator("vector", space=prudent.Simplex(3)).fit(
        *data.classes()
    ),
    "guarantee": lambda: prudent.recalibration.GuaranteeCalibrator(guarantees.Polynomial(2)).fit(*data.line()),
    "guarantee-classes": lambda: prudent.recalibration.GuaranteeCalibrator(
        guarantees.Classwise(3) & guarantees.Unbiased(), space=prudent.Simplex(3)
    ).fit(*data.classes()),
    "decision": lambda: prudent.recalibration.DecisionCalibrator(_ONE, random_state=0).fit(*data.line()),
    "monitor": _monitor,
    "online": _online,
}


def _saved(made: Any) -> Any:
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "saved.json"
        made.save(path)
        return json.loads(path.read_text(encoding="utf-8"))


def _command(name: str) -> Any:
    line = COMMANDS.get(name) or DECISIONS[name].format(policies=shlex.quote(str(EXPECTED / "policies")))
    with tempfile.TemporaryDirectory() as folder, chdir(folder), redirect_stdout(io.StringIO()) as printed:
        data.write_folder(Path(folder))
        code = run(application, [*shlex.split(line), "--json"])
        answered = {
            "command": line if name in COMMANDS else name,
            "code": code,
            "printed": json.loads(printed.getvalue()),
        }
        if name in DECISIONS:
            answered["written"] = Path("out.csv").read_text(encoding="utf-8").splitlines()[::5]
        return answered


_LINE_QUESTION = {
    "columns": {"forecast": ["f"], "outcome": ["y"], "weight": None, "key": "id"},
    "problem": {
        "kind": "linear",
        "actions": ["low", "mid", "high"],
        "rewards": [[0.2], [0.9], [1.4]],
        "costs": [0.0, 0.3, 0.7],
        "lower": [0.0],
        "upper": [1.0],
    },
}
_NO_OUTCOMES = _LINE_QUESTION | {
    "columns": {"forecast": ["f"], "outcome": [], "weight": "w", "key": None},
    "guarantee": ["self-orthogonal", "unbiased"],
    "slack": 0.02,
}
_CLASS_QUESTION = {
    "columns": {"forecast": [f"p_{name}" for name in data.CLASSES], "outcome": ["y"], "weight": None, "key": "id"},
    "problem": {
        "kind": "payoffs",
        "actions": ["send home", "observe", "admit"],
        "classes": data.CLASSES,
        "payoffs": [[1.0, 0.2, -1.0], [0.5, 0.8, 0.0], [-0.2, 0.4, 1.0]],
    },
}
_PARTS_OF_PAGE = ("policy", "verdict", "stress", "ladder")
#: Which file a question is about, the question, a forecast to be explained, and the parts of the page to ask for.
QUESTIONS: dict[str, tuple[str, dict[str, Any], list[float], Iterable[str]]] = {
    "line": ("line", _LINE_QUESTION, [0.6], _PARTS_OF_PAGE),
    "line-bins": ("line", _LINE_QUESTION | {"guarantee": ["bins"], "slack": 0.01}, [0.3], _PARTS_OF_PAGE),
    "line-without-outcomes": ("line", _NO_OUTCOMES, [0.4], ("policy", "verdict", "stress", "ladder")),
    "classes": ("classes", _CLASS_QUESTION, [0.5, 0.3, 0.2], _PARTS_OF_PAGE),
    "classes-fixed": (
        "classes",
        _CLASS_QUESTION | {"guarantee": ["utility-calibrated"], "slack": 0.03},
        [0.2, 0.2, 0.6],
        ("policy", "verdict", "stress"),
    ),
}
#: Questions with more than one optimal policy.
DEGENERATE = {"line", "line-bins"}


def _question(name: str) -> Any:
    file, question, forecast, parts = QUESTIONS[name]
    content = data.line_csv() if file == "line" else data.class_csv()
    with TestClient(create_application(), base_url="http://127.0.0.1:8765") as client:
        summary = client.post("/api/data", params={"name": f"{file}.csv"}, content=content.encode()).json()
        asked = {"data": summary["id"], **question}
        answers = {part: client.post(f"/api/{part}", json=asked).json() for part in parts}
        answers["explain"] = client.post("/api/explain", json={"question": asked, "forecast": forecast}).json()
        wanted = {"question": asked, "name": f"{file}.csv"}
        taken = {kind: client.post(f"/api/files/{kind}", json=wanted).text for kind in ("sql", "python")}
    return _thinned({"data": summary, **answers, "files": taken})


def _thinned(value: Any) -> Any:
    """Keep some twenty items of long lists (curves and maps), so that files stay small."""
    if isinstance(value, dict):
        return {name: _thinned(item) for name, item in value.items()}
    if isinstance(value, list):
        return [_thinned(item) for item in (value if len(value) <= 40 else value[:: len(value) // 20])]
    return value


@cache
def _loaded(name: str) -> Any:
    return prudent.load(EXPECTED / "policies" / f"{name}.json")


def _points(policy: Any) -> np.ndarray:
    dimension = policy.problem.dimension
    rng = np.random.default_rng(11)
    return np.linspace(0, 1, 21)[:, None] if dimension == 1 else rng.dirichlet(np.ones(dimension), 20)


def _sql(name: str) -> Any:
    """A golden policy file, played in Python and written as SQL: here no digit may change."""
    policy = _loaded(name)
    columns = ["f"] if policy.problem.dimension == 1 else ["p", "q", "r"]
    return {
        "probabilities": policy.predict_proba(_points(policy)).tolist(),
        "drawn": [str(action) for action in policy.predict(_points(policy), keys=range(len(_points(policy))))],
        "sql": {
            dialect: policy.to_sql(dialect, columns, key="id", table="t").splitlines()
            for dialect in ("duckdb", "spark")
        },
    }


_FAMILIES: dict[str, tuple[Iterable[str], Callable[[str], Any]]] = {
    "policies": (POLICIES, lambda name: _saved(POLICIES[name]())),
    "others": (OTHERS, lambda name: _saved(OTHERS[name]())),
    "commands": ([*COMMANDS, *DECISIONS], _command),
    "studio": (QUESTIONS, _question),
    "sql": (POLICIES, _sql),
}
#: Names of cases by family, in the order in which they are written: SQL and decisions need policies.
CASES = {family: tuple(names) for family, (names, _) in _FAMILIES.items()}


def answer(family: str, name: str) -> Any:
    """Ask Prudent as it is now."""
    return _FAMILIES[family][1](name)
