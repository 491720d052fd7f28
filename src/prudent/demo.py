"""A forecaster, its guarantee, the robust policy and its stress test, on data inside scikit-learn.

Patients' disease progression one year ahead is forecast by linear regression;
a clinic decides how much care to offer. Least squares with an intercept makes
the errors orthogonal to 1 and to the forecast on the rows it was fitted to,
which is the guarantee used here.
"""

import numpy as np
from sklearn.datasets import load_diabetes
from sklearn.linear_model import LinearRegression

from prudent.adversary.stress_test import StressTest, stress_test
from prudent.arrays import FloatArray, frozen
from prudent.evidence.audits import audit
from prudent.guarantees import SelfOrthogonal
from prudent.policies import PlugInPolicy, RobustPolicy, SafetyPolicy
from prudent.problem import DecisionProblem
from prudent.solvers import Certificate
from prudent.spaces import Box


@frozen
class Demonstration:
    """What the demonstration found.

    Attributes
    ----------
    problem : DecisionProblem
    moments : dict of str to float
        ``E[h(f)(Y - f)]`` for each test, on the rows of the fit, scaled to outcome units.
    n_rows : int
    certificate : Certificate
    stress : StressTest
    examples : list of (forecast, mixture)
    """

    problem: DecisionProblem
    moments: dict[str, float]
    n_rows: int
    certificate: Certificate
    stress: StressTest
    examples: list[tuple[float, list[float]]]

    def __str__(self) -> str:
        low, high = self.problem.space.interval
        measured = ", ".join(f"E[{name} (Y - f)] = {value:.1e}" for name, value in self.moments.items())
        proof = self.certificate
        gap = f"{proof.gap:.0e}"
        lost, kept, _ = self.stress.worst
        price = self.stress.nominal[0] - self.stress.nominal[1]
        described = (
            f"{action} ({reward:g} per point, costs {cost:g})"
            for action, reward, cost in zip(
                self.problem.actions, self.problem.rewards[:, 0], self.problem.costs, strict=True
            )
        )
        lines = [
            f"Data: {self.n_rows} diabetes patients; the outcome is disease progression, {low:g} to {high:g}.",
            "Forecaster: linear regression on ten measurements.",
            f"Decision: {'; '.join(described)}.",
            "",
            "Guarantee: least squares with an intercept makes its errors orthogonal to 1 and to the forecast.",
            f"  Measured on these rows: {measured}.",
            "  Nothing more is promised: within any range of forecasts the errors can be anything.",
            "",
            f"Certificate: in every world with that guarantee the robust policy earns at least {proof.lower:.2f}",
            f"  per patient, and no policy can promise more than {proof.upper:.2f} ({proof.status}, gap {gap}).",
            "",
            "What it does:",
        ]
        for forecast, mixture in self.examples:
            played = [
                f"{action} {share:.0%}"
                for action, share in zip(self.problem.actions, mixture, strict=True)
                if share > 0
            ]
            lines.append(f"  forecast {forecast:4.0f}: {', '.join(played)}")
        lines += [
            "",
            "Stress test (utility per patient):",
            str(self.stress),
            "",
            f"In words: following the forecasts can fall to {lost:.2f}; the robust policy never falls below",
            f"{kept:.2f}, and gives up {price:.2f} if the forecasts are right.",
        ]
        return "\n".join(lines)


def run_demonstration() -> Demonstration:
    """Train, fit, certify and stress-test; a second or two, without a network."""
    features, outcomes = load_diabetes(return_X_y=True)
    forecasts = LinearRegression().fit(features, outcomes).predict(features)
    problem = _problem(outcomes)
    guarantee = SelfOrthogonal(intercept=True)
    policy = RobustPolicy(problem, guarantee, random_state=0).fit(forecasts)
    policies = {"plug-in": PlugInPolicy(problem), "robust": policy, "safety": SafetyPolicy(problem)}
    measured = audit(problem.space, forecasts, outcomes, guarantee=guarantee).measured
    moments = measured.estimates / measured.tests.scales
    shown = np.array([80.0, 120.0, 150.0, 180.0, 220.0, 280.0])
    return Demonstration(
        problem,
        dict(zip(["1", "f"], moments.tolist(), strict=True)),
        len(outcomes),
        policy.certificate_,
        stress_test(policies, forecasts, outcomes, guarantee=guarantee),
        list(zip(shown.tolist(), policy.predict_proba(shown).tolist(), strict=True)),
    )


def demonstration_sample() -> tuple[DecisionProblem, FloatArray, FloatArray]:
    """Return the problem, cross-fitted forecasts and outcomes: rows that the forecaster was not fitted on."""
    from sklearn.model_selection import cross_val_predict

    features, outcomes = load_diabetes(return_X_y=True)
    return _problem(outcomes), cross_val_predict(LinearRegression(), features, outcomes, cv=10), outcomes


def _problem(outcomes: FloatArray) -> DecisionProblem:
    return DecisionProblem(
        rewards=[0.0, 1.0, 2.0],
        costs=[0.0, 130.0, 310.0],
        actions=["letter", "coaching", "clinic"],
        space=Box(float(outcomes.min()), float(outcomes.max())),
    )
