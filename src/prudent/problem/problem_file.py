"""Decision problems in a short TOML file."""

from collections.abc import Iterable, Sequence
from typing import Any

from prudent.errors import InputError
from prudent.files import PathLike, read_toml
from prudent.formatting import did_you_mean
from prudent.problem.decision_problem import DecisionProblem
from prudent.spaces import Box

#: A problem on one column of numbers between 0 and 1, with every choice explained.
EXAMPLE_PROBLEM = """\
# A decision problem for prudent: what you can do, and what it is worth.
#
# The utility of an action is   reward * outcome - cost.
# Here the outcome is demand as a share of capacity, and the actions are staffing levels.

actions = ["0.8x", "1.0x", "1.2x"]  # your names; of equally good actions the first is taken
rewards = [0.72, 0.90, 1.08]        # gained per unit of outcome, one for each action
costs = [0.02, 0.05, 0.10]          # paid in any case, one for each action; may be left out
# unit = "EUR"                      # of rewards and costs, for sentences

# The outcome lies between these bounds, in your own units. Forecasts must, too.
[space]
lower = 0.0
upper = 1.0

# With several outcome columns, a reward per column:  rewards = [[1.0, 0.2], [0.8, 0.5]]
# and bounds per column:                              lower = [0, 0], upper = [1, 40]
#
# Where the outcome is a class, replace everything above by a payoff for each action and class.
# Forecasts are then one column of probabilities per class, in the order of classes.
#
# classes = ["healthy", "ill"]
#
# [payoffs]
# wait = [0, -10]
# treat = [-1, -1]
"""


def read_problem(path: PathLike) -> DecisionProblem:
    """Read a problem; errors name the file, the key and the rule.

    Examples
    --------
    >>> import os, tempfile
    >>> from prudent.problem import EXAMPLE_PROBLEM, read_problem
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     path = os.path.join(folder, "problem.toml")
    ...     with open(path, "w") as stream:
    ...         _ = stream.write(EXAMPLE_PROBLEM)
    ...     read_problem(path).actions
    ('0.8x', '1.0x', '1.2x')
    """
    try:
        return problem_from_table(read_toml(path))
    except InputError as error:
        raise InputError(f"{path}: {error}") from error


def problem_from_table(table: dict[str, Any]) -> DecisionProblem:
    """Build a problem from the keys of a TOML file."""
    if "payoffs" in table:
        _refuse_unknown(table, ("actions", "classes", "payoffs", "unit"))
        return _from_payoffs(**table)
    _refuse_unknown(table, ("actions", "rewards", "costs", "space", "unit"))
    if "rewards" not in table:
        raise InputError("a problem needs the key 'rewards' (one per action) or 'payoffs' (one per action and class).")
    return DecisionProblem(**{**table, "space": _space(table.get("space", {}))})


def _from_payoffs(payoffs: Any, actions: Any = None, **others: Any) -> DecisionProblem:
    if isinstance(payoffs, dict):
        if actions is not None:
            raise InputError("'actions' must be left out where the keys of 'payoffs' name the actions.")
        actions, payoffs = list(payoffs), list(payoffs.values())
    try:
        return DecisionProblem.from_payoffs(payoffs, actions=actions, **others)
    except InputError as error:
        raise InputError(f"'payoffs': {error}") from error


def _space(space: Any) -> Box:
    if not isinstance(space, dict):
        raise InputError("'space' must be a table with 'lower' and 'upper'.")
    _refuse_unknown([f"space.{key}" for key in space], ("space.lower", "space.upper"))
    try:
        return Box(**space)
    except InputError as error:
        raise InputError(f"'space': {error}") from error


def _refuse_unknown(keys: Iterable[str], known: Sequence[str]) -> None:
    for key in keys:
        if key not in known:
            raise InputError(
                f"the key {key!r} is not known; {did_you_mean(key, known)}known here are {', '.join(map(repr, known))}."
            )
