"""Ways to decide with a model: advice, the model as it is, what scikit-learn has, and one action for all."""

from __future__ import annotations

import time
from collections.abc import Callable
from dataclasses import dataclass
from hashlib import blake2b
from typing import Any, ClassVar, Self

import numpy as np
from numpy.typing import NDArray
from sklearn.base import BaseEstimator, ClassifierMixin, clone
from sklearn.calibration import CalibratedClassifierCV
from sklearn.metrics import make_scorer
from sklearn.model_selection import TunedThresholdClassifierCV, cross_val_predict
from sklearn.utils.metaestimators import available_if

import prudent
from benchmarks.decision_cases import Case, Split

__all__ = ["ADVICE", "METHODS", "SAME_MODEL", "Played", "play"]

Array = NDArray[Any]

FOLDS = 5
ADVICE = "advice"


@dataclass(frozen=True)
class Played:
    """What a method earned per fresh row, in how many seconds; advice also says what it claimed and what came of it."""

    utility: float
    seconds: float
    verdict: str = ""
    certain: float = np.nan
    gain: float = np.nan
    certain_gain: float = np.nan


class Remembered(ClassifierMixin, BaseEstimator):
    """A classifier that is fitted once to the same rows, whichever method asks.

    All methods fit the same folds. The seconds of a fit that is not repeated are added to the time of who asks again.
    """

    fits: ClassVar[dict[bytes, tuple[Any, float]]] = {}
    saved: ClassVar[float] = 0.0

    def __init__(self, model: Any) -> None:
        self.model = model

    def fit(self, X: Any, y: Any) -> Self:
        """Fit, or find the fit to these rows."""
        key = blake2b(np.ascontiguousarray(X).tobytes() + np.asarray(y).tobytes(), digest_size=16).digest()
        if key in self.fits:
            Remembered.saved += self.fits[key][1]
        else:
            start = time.perf_counter()
            fitted = clone(self.model).fit(X, y)
            self.fits[key] = fitted, time.perf_counter() - start
        self.fitted_ = self.fits[key][0]
        self.classes_ = self.fitted_.classes_
        return self

    def predict(self, X: Any) -> Array:
        """Return classes."""
        return self.fitted_.predict(X)

    def predict_proba(self, X: Any) -> Array:
        """Return probabilities."""
        return self.fitted_.predict_proba(X)

    @available_if(lambda self: hasattr(getattr(self, "fitted_", self.model), "decision_function"))
    def decision_function(self, X: Any) -> Array:
        """Return scores, where the model has them."""
        return self.fitted_.decision_function(X)


def play(case: Case, split: Split, method: str) -> Played:
    """Learn from the rows of a split, decide on the fresh ones, and see what that earns."""
    before, start = Remembered.saved, time.perf_counter()
    mixtures, advice = METHODS[method](case, split)
    seconds = time.perf_counter() - start + Remembered.saved - before
    utilities = _utilities(case, split.later, split.fresh_own)
    earned = float((utilities * mixtures).sum(axis=1).mean())
    if advice is None:
        return Played(earned, seconds)
    followed = prudent.PlugInPolicy(case.problem).predict_proba(_forecasts(case, split), **split.fresh_own)
    gain = earned - float((utilities * followed).sum(axis=1).mean())
    return Played(earned, seconds, advice.verdict.kind.value, advice.certificate.lower, gain, advice.gain.lower)


def _utilities(case: Case, outcomes: Array, own: dict[str, Array]) -> Array:
    placed = case.problem.space.place_outcomes(outcomes.astype(float) if case.problem.dimension == 1 else outcomes)
    return case.problem.utilities_of_rows(placed, **own)


def _model(case: Case) -> Any:
    return Remembered(case.model) if case.classifies else clone(case.model)


def _read(case: Case, found: Array) -> Array:
    """Forecasts as the problem has them: one coordinate takes the probability of the second class."""
    if case.classifies:
        found = np.asarray(found, dtype=np.float64)
        return found[:, 1] if case.problem.dimension == 1 else found
    return np.clip(found, 0.0, 1.0)


def _forecasts(case: Case, split: Split, model: Any = None) -> Array:
    """What a model, by default the one as it is, says about the fresh rows."""
    fitted = (_model(case) if model is None else model).fit(split.features, split.target)
    return _read(case, fitted.predict_proba(split.fresh) if case.classifies else fitted.predict(split.fresh))


Decided = tuple[Array, prudent.Advice | None]


def _advice(case: Case, split: Split) -> Decided:
    """Advice on forecasts for rows that the model did not see, played on those of the model fitted to all rows."""
    asked = "predict_proba" if case.classifies else "predict"
    past = _read(case, cross_val_predict(_model(case), split.features, split.target, cv=FOLDS, method=asked))
    advice = prudent.advise(case.problem, past, split.target, **split.own)
    return advice.policy.predict_proba(_forecasts(case, split), **split.fresh_own), advice


def _as_it_is(case: Case, split: Split) -> Decided:
    return prudent.PlugInPolicy(case.problem).predict_proba(_forecasts(case, split), **split.fresh_own), None


def _calibrated(method: str, ensemble: bool) -> Callable[[Case, Split], Decided]:
    def decide(case: Case, split: Split) -> Decided:
        model = CalibratedClassifierCV(_model(case), method=method, cv=FOLDS, ensemble=ensemble)
        forecasts = case.problem.space.project(_forecasts(case, split, model).reshape(len(split.fresh), -1))
        return prudent.PlugInPolicy(case.problem).predict_proba(forecasts, **split.fresh_own), None

    return decide


def _tuned_threshold(case: Case, split: Split) -> Decided:
    table = case.problem.rewards - case.problem.costs[:, None]
    scoring = make_scorer(lambda truth, decided: float(table[decided, truth].mean()))  # class 1 decided: action 1
    model = TunedThresholdClassifierCV(_model(case), scoring=scoring, cv=FOLDS, random_state=0)
    return np.eye(2)[model.fit(split.features, split.target).predict(split.fresh)], None


def _one_action(case: Case, split: Split) -> Decided:
    best = _utilities(case, split.target, split.own).mean(axis=0).argmax()
    return np.eye(case.problem.n_actions)[np.full(len(split.fresh), best)], None


#: In the order of the tables.
METHODS: dict[str, Callable[[Case, Split], Decided]] = {
    ADVICE: _advice,
    "as it is": _as_it_is,
    "sigmoid": _calibrated("sigmoid", ensemble=False),
    "isotonic": _calibrated("isotonic", ensemble=False),
    "temperature": _calibrated("temperature", ensemble=False),
    "tuned threshold": _tuned_threshold,
    "sigmoid, ensemble": _calibrated("sigmoid", ensemble=True),
    "isotonic, ensemble": _calibrated("isotonic", ensemble=True),
    "temperature, ensemble": _calibrated("temperature", ensemble=True),
    "best single action": _one_action,
}

#: Those that decide with one model fitted to all rows, as advice does: the ones to be measured by.
SAME_MODEL = ("as it is", "sigmoid", "isotonic", "temperature", "tuned threshold", "best single action")
