"""A forecaster, a decision, and two answers: what can be said without outcomes, and what with them.

Patients' disease progression one year ahead is forecast by linear regression, each patient by a model that was fitted
on others; a clinic decides how much care to offer.
"""

from sklearn.datasets import load_diabetes
from sklearn.linear_model import LinearRegression

from prudent.advice import Advice, advise
from prudent.arrays import FloatArray, frozen
from prudent.cases.cases import Cases
from prudent.problem import DecisionProblem
from prudent.spaces import Box

_PROMISE = "self-orthogonal"


@frozen
class Demonstration:
    """Advice from a promise about the forecaster alone, and from outcomes."""

    before: Advice
    after: Advice

    def __str__(self) -> str:
        problem = self.before.problem
        low, high = problem.space.interval
        table = zip(problem.actions, problem.rewards[:, 0], problem.costs, strict=True)
        described = "; ".join(f"{action} ({reward:g} per point, costs {cost:g})" for action, reward, cost in table)
        return f"""Data: {self.after.n_rows} diabetes patients; the outcome is disease progression,
{low:g} to {high:g}.
Forecaster: linear regression on ten measurements, which promises that its errors do not follow its
forecasts.
Decision: {described}.

1. WITHOUT OUTCOMES, relying on that promise alone

{self.before}

2. WITH OUTCOMES

{self.after}"""


def run_demonstration() -> Demonstration:
    """Take advice twice; a second or two, without a network."""
    problem, forecasts, outcomes = demonstration_sample()
    return Demonstration(
        advise(problem, forecasts, guarantee=_PROMISE), advise(problem, Cases(forecasts, outcomes), guarantee=_PROMISE)
    )


def demonstration_sample() -> tuple[DecisionProblem, FloatArray, FloatArray]:
    """Return the problem, cross-fitted forecasts and outcomes: rows that the forecaster was not fitted on."""
    from sklearn.model_selection import cross_val_predict  # late: it takes long to import

    features, outcomes = load_diabetes(return_X_y=True)
    problem = DecisionProblem(
        rewards=[0.0, 1.0, 2.0],
        costs=[0.0, 130.0, 310.0],
        actions=["letter", "coaching", "clinic"],
        space=Box(float(outcomes.min()), float(outcomes.max())),
        unit="points",
    )
    return problem, cross_val_predict(LinearRegression(), features, outcomes, cv=10), outcomes
