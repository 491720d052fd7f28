"""Decide for all rows of a table, a chunk at a time, however long it is."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Sequence
from contextlib import ExitStack
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray
from sklearn.utils.validation import check_is_fitted

from prudent.arrays import FloatArray, IntArray
from prudent.errors import InputError, OutsideSpaceError
from prudent.policies.base import Policy, action_labels, require_salt
from prudent.policies.draws import digests_of_keys, draw, uniforms_from_digests
from prudent.spaces import Label
from prudent.tables import Chunk, DuplicateFinder, OutputColumn, Table, TableOutput, open_output, place_forecasts
from prudent.tables.sample import outside_error, require_forecast_columns

__all__ = ["Decisions", "decide_rows", "mixtures_of_chunk", "output_labels", "require_decidable"]


@dataclass(frozen=True)
class Decisions:
    """What was decided.

    Attributes
    ----------
    n_rows : int
    counts : dict of label to int
        How many rows got each action, in declared order.
    n_snapped : int
        Rows moved onto the space by at most 1e-6 of its width.
    """

    n_rows: int
    counts: dict[Label, int]
    n_snapped: int


def decide_rows(
    policy: Policy,
    table: Table,
    forecasts: Sequence[str],
    output: str,
    *,
    id_column: str | None = None,
    seed: int | None = None,
    probabilities: bool = False,
    not_over: Sequence[str] = (),
    progress: Callable[[int, int | None], None] | None = None,
) -> Decisions:
    """Write one action per row of a table, in its order.

    Draws come from the ids, exactly as in ``policy.predict(X, keys=ids)``, or from a seed and the row's place, as in
    ``predict`` with ``random_state=seed``; in neither case do they depend on how rows are cut into chunks.

    Parameters
    ----------
    policy : Policy
        Fitted.
    table : Table
    forecasts : sequence of str
        Columns, one per coordinate or class.
    output : str
        A file that ends in .csv or .parquet, written whole or not at all; ``-`` is standard output.
    id_column : str, optional
        Text or whole numbers, distinct; written to the output as they are.
    seed : int, optional
        For a policy that mixes actions, where there are no ids.
    probabilities : bool
        Write the mixture of each row, too.
    not_over : sequence of str
        Files that the output must not replace.
    progress : callable, optional
        Called after each chunk with what is read and what there is, in rows or bytes; None if nobody knows.
    """
    columns = require_decidable(policy, forecasts, id_column, seed)
    folder = None if output == "-" else str(Path(output).parent)
    with ExitStack() as stack:
        written = stack.enter_context(open_output(output, not_over=not_over))
        finder = stack.enter_context(DuplicateFinder(folder)) if id_column is not None else None
        work = _Work(policy, table, columns, id_column, seed, probabilities, written, finder)
        for chunk in table.chunks(columns, () if id_column is None else (id_column,)):
            work.decide(chunk)
            if progress is not None:
                progress(table.done, table.size)
        if finder is not None and id_column is not None:
            same = finder.find()
            if same is not None:
                earlier, later = same
                raise InputError(
                    f"{table.at(later, id_column)}: the id is that of row {earlier + 1:,}; ids must differ, or two "
                    f"rows share one draw."
                )
        return Decisions(work.n_rows, {label: work.counts[j] for j, label in enumerate(work.actions)}, work.n_snapped)


def require_decidable(
    policy: Policy, forecasts: Sequence[str], id_column: str | None, seed: int | None
) -> tuple[str, ...]:
    """Check a policy and columns before any row is read; return the columns of forecasts."""
    check_is_fitted(policy)
    columns = require_forecast_columns(forecasts, policy._problem.space)
    fitted = list(getattr(policy, "feature_names_in_", ()))
    if set(fitted) == set(columns) and fitted != list(columns):
        raise InputError(f"forecast columns must be in the order of the fit, {fitted}; got {list(columns)}.")
    if id_column is None and seed is None and not policy.deterministic:
        raise InputError(
            "this policy mixes actions, so its draws need a key for each row: give --id COL, or --seed N to draw by "
            "the order of rows, or fit with --pure for a policy without draws."
        )
    if id_column == "action":
        raise InputError("the column of ids must not be named 'action': the output has a column of that name.")
    return columns


def mixtures_of_chunk(policy: Policy, table: Table, columns: Sequence[str], chunk: Chunk) -> tuple[FloatArray, int]:
    """Return the mixture of each row and how many forecasts were snapped; errors name the first bad row."""
    space = policy._problem.space
    forecasts, snapped = place_forecasts(table, columns, space, chunk)
    try:
        return policy._mixtures(forecasts), snapped
    except OutsideSpaceError as error:
        raise outside_error(table, columns, space, forecasts, error, chunk.first) from error


class _Work:
    """One run over the rows."""

    def __init__(
        self,
        policy: Policy,
        table: Table,
        columns: Sequence[str],
        id_column: str | None,
        seed: int | None,
        probabilities: bool,
        output: TableOutput,
        finder: DuplicateFinder | None,
    ) -> None:
        self.policy, self.table, self.columns, self.id_column = policy, table, columns, id_column
        self.probabilities, self.output, self.finder = probabilities, output, finder
        self.salt = require_salt(getattr(policy, "salt", ""))
        # One stream of numbers for all chunks: where they are cut makes no difference.
        self.stream = None if seed is None else np.random.RandomState(seed)
        self.actions = policy._problem.actions
        self.labels = output_labels(policy)
        self.counts: Counter[int] = Counter()
        self.n_rows = self.n_snapped = 0

    def decide(self, chunk: Chunk) -> None:
        """Decide for the rows of one chunk and write them."""
        mixtures, snapped = mixtures_of_chunk(self.policy, self.table, self.columns, chunk)
        ids = chunk.values[0] if self.id_column is not None else None
        drawn = self._draw(mixtures, ids)
        written = [] if ids is None else [OutputColumn(str(self.id_column), ids)]
        written.append(OutputColumn("action", self.labels[drawn]))
        if self.probabilities:
            for j, label in enumerate(self.actions):
                written.append(OutputColumn(f"p[{label}]", mixtures[:, j]))
        self.output.write(written)
        self.n_rows += len(chunk)
        self.n_snapped += snapped
        self.counts.update(dict(enumerate(np.bincount(drawn, minlength=len(self.actions)).tolist())))

    def _draw(self, mixtures: FloatArray, ids: NDArray[Any] | None) -> IntArray:
        if ids is not None:
            if ids.dtype.kind not in "iu" and not (ids.dtype == object and isinstance(ids[0], str)):
                raise InputError(
                    f"{self.table.name}, column {self.id_column!r}: ids must be text or whole numbers; cast them first."
                )
            digests = digests_of_keys(ids, self.salt, len(ids))
            if self.finder is not None:
                self.finder.add(digests)
            return draw(mixtures, uniforms_from_digests(digests))
        if self.stream is not None:
            return draw(mixtures, self.stream.random_sample(len(mixtures)))
        return mixtures.argmax(axis=1).astype(np.int64)


def output_labels(policy: Policy) -> NDArray[Any]:
    """Labels as one type that a file has; labels of different types become text."""
    labels = action_labels(policy._problem)
    if labels.dtype.kind in "iufb":
        return labels
    texts = [str(label) for label in policy._problem.actions]
    if len(set(texts)) < len(texts):
        raise InputError(
            f"actions must differ as text to be written to a file; they are {list(policy._problem.actions)}."
        )
    return np.array(texts, dtype=object)
