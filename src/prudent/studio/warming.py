"""A question that nobody asked, so that the first one that somebody asks is not the slowest."""

from __future__ import annotations

import gc

from prudent.chunks import one_blas_thread
from prudent.studio import answering
from prudent.studio.data_sets import DataSets
from prudent.studio.example_files import make_example
from prudent.studio.questions import Question
from prudent.studio.workshop import Workshop

__all__ = ["settle_down", "warm_up"]


def warm_up() -> None:
    """Answer the staffing example once, and forget it."""
    data_sets = DataSets()
    content, start = make_example("staffing")
    held = data_sets.add(content, "staffing.csv")
    if start.columns is None or start.problem is None:
        raise AssertionError("an example knows its columns and its decision")
    question = Question(data=held.id, columns=start.columns, problem=start.problem)
    workshop = Workshop(data_sets)
    answering.answer_policy(workshop, question, "")
    answering.answer_verdict(workshop, question, "")


def settle_down() -> None:
    """Prepare a process that does nothing but answer questions from now on."""
    # Matrices are long and narrow here, and two threads of a product would wait for each other: there is a thread
    # for every core that computes a question already.
    one_blas_thread().__enter__()
    # What is loaded by now stays; looking through half a million objects for garbage takes as long as an answer.
    gc.collect()
    gc.freeze()
