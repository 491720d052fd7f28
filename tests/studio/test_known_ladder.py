"""A ladder that was climbed to find the best rung is there with the policy."""

from __future__ import annotations

from prudent.studio.data_sets import DataSets
from prudent.studio.example_files import make_example
from prudent.studio.questions import Question
from prudent.studio.remembering import Memory
from prudent.studio.workshop import Workshop


def test_the_best_rung_leaves_a_ladder() -> None:
    data_sets = DataSets()
    content, start = make_example("staffing")
    held = data_sets.add(content, "staffing.csv")
    assert start.columns is not None
    assert start.problem is not None
    best = Question(data=held.id, columns=start.columns, problem=start.problem)
    picked = best.model_copy(update={"guarantee": ["self-orthogonal"]})
    surer = best.model_copy(update={"confidence": 0.99})
    workshop = Workshop(data_sets)
    workshop.policy(picked)
    assert not workshop.knows_ladder(picked)
    workshop.policy(best)
    assert workshop.knows_ladder(best)
    assert workshop.knows_ladder(picked)  # it does not depend on what was picked
    assert not workshop.knows_ladder(surer)


def test_what_is_being_made_or_failed_is_not_held() -> None:
    memory: Memory[int] = Memory(4)
    seen = []

    def make() -> int:
        seen.append(memory.holds("a"))
        return 1

    def fail() -> int:
        raise ValueError("no")

    assert memory.get("a", make) == 1
    assert seen == [False]
    assert memory.holds("a")
    try:
        memory.get("b", fail)
    except ValueError:
        assert not memory.holds("b")
    else:
        raise AssertionError("a mistake is told")
