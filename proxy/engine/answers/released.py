"""The result of a statement with its receipt, and notes on its columns and on noisy choices.

What is said about rows that were picked by noisy answers, and of answers that say little.

The first rows in the order of an answer are those that the noise favoured. How probably they are
the first is simulated: the joint law of the true values is in hand. An answer whose half-width is
above itself does not tell its size, nor a relative target that ended at its floor the share that
was asked for.

Counts of a result in whole numbers, as clients of other databases expect them.

Rounding is post-processing: it changes what is shown, and nothing that was computed, bought or
promised. The interval is still the interval of the unrounded count, and is wider only where it
would not contain the whole number (`AnsweredItem.intervals`).

The columns of an answer, and the receipt of each that has an interval.

Either a part's relation is the answer as it is, or outer SQL computes it, which then gives the ends
of intervals behind the columns that were asked for.
"""

import math
from collections.abc import Iterator, Sequence
from fractions import Fraction
from typing import Final, TypeAlias

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from cube.encoding import fingerprint
from cube.target import PosteriorMethod
from inference import draw_errors, values
from planner.workload import PICKED, ColumnKind, Outer, Pick, Workload
from proxy.api import BudgetStatus, ColumnReceipt, QueryResult, Receipt, with_receipt
from proxy.engine.answers.decisions import comparison_caveats
from proxy.engine.answers.formula_widths import has_target
from proxy.engine.answers.relations import column_receipt, missing_notes, relation, relation_schema
from proxy.engine.answers.results import AnsweredPart
from proxy.engine.answers.simulation import SimulatedLaw

Floats: TypeAlias = NDArray[np.float64]

N_DRAWS: Final = 1000
N_DRAWS_LEAST: Final = 300  # of so many, none says below .01 (with a confidence of .95)
N_DRAWN_MAX: Final = 2_000_000  # rows times draws, and noises times draws
CERTAIN_ORDER: Final = "dp_certain_order"  # a column that OPTIONS(certainty => true) adds
NULLS: Final = (
    "Groups whose value is not known (NULL) are among the first here, as in PostgreSQL; NULLS LAST "
    "after ORDER BY puts them last."
)
N_ROWS_NAMED: Final = 3  # the rows that a note names
N_CHARACTERS_NAMED: Final = 40  # of the keys of one of them
SURE: Final = 0.99  # nothing is said about an order that is so probably right


def choice_caveats(pick: Pick | None, answered: Sequence[AnsweredPart]) -> Iterator[str]:
    """How probably the rows that a statement shows are those that it means."""
    if pick is None or not answered:
        return
    if _n_null_shown(pick, answered[0]):
        yield NULLS
    found = _of_pick(pick, answered[0])
    if found is None:
        yield PICKED
        return
    of_set, of_order, n = found
    if of_order >= SURE:
        return
    which, tend = ("largest", "large") if pick.is_descending else ("smallest", "small")
    are, rows, they = ("are", f"The {n} rows", "they") if n > 1 else ("is", "The row", "it")
    what = f"the {n} {which}" if n > 1 else f"the {which}"
    if pick.n_before:
        what = f"those from place {pick.n_before + 1} on"
    in_order = f", and in this order with {_shown(of_order)}" if n > 1 else ""
    yield (
        f"{rows} {are} picked by noisy answers: {they} {are} {what} with a probability of "
        f"{_shown(of_set)}{in_order}. Values picked for being {tend} tend to be too {tend}; with "
        f"simultaneous => {answered[0].part.n_rows}, intervals hold whichever rows are picked."
    )


def _shown(probability: float) -> str:
    """A probability as text, as exact as the draws allow."""
    least = 3 / N_DRAWS_LEAST
    return f"{probability:.2g}" if probability >= least else f"below {least:g}"


def wide_caveats(columns: Sequence[ColumnReceipt], data: pa.Table) -> Iterator[str]:
    """In which of the shown rows a half-width is above the answer, or not even its sign known."""
    for column in columns:
        name, place = column.name, data.column_names.index(column.name)
        shown = data.column(place).to_numpy(zero_copy_only=False).astype(np.float64)
        low, high = np.array(column.low, np.float64), np.array(column.high, np.float64)
        is_wide = (high - low) / 2 > np.abs(shown)  # never of a NULL
        if is_wide.any():
            where = _where(is_wide, columns, data)
            yield (
                f"The half-width of {name} is above {name} itself{where}: use the "
                f"interval{' there' if where else ''}, not the value."
            )
        is_of_any_sign = ~is_wide & (low < 0) & (high > 0) & ~np.isnan(shown)
        if is_of_any_sign.any():
            where = _where(is_of_any_sign, columns, data)
            yield f"The interval of {name} contains 0{where}: the sign of {name} is not known."


def _where(is_meant: NDArray[np.bool_], columns: Sequence[ColumnReceipt], data: pa.Table) -> str:
    """How many rows are meant, and the keys of the first ones; nothing, if there is one row."""
    if is_meant.size == 1:
        return ""
    found = f" in {int(is_meant.sum())} of {is_meant.size} rows"
    answers = {column.name for column in columns}
    keys = [one for one in data.column_names if one not in answers]
    if not keys or len(set(data.column_names)) < len(data.column_names):
        return found
    first = np.flatnonzero(is_meant)[:N_ROWS_NAMED]
    rows = data.select(keys).take(first).to_pylist()
    named = [" ".join("NULL" if one is None else str(one) for one in row.values()) for row in rows]
    more = ", .." if is_meant.sum() > N_ROWS_NAMED else ""
    if max(map(len, named)) > N_CHARACTERS_NAMED:
        return found
    return f"{found} ({', '.join(named)}{more})"


def floor_notes(answered: Sequence[AnsweredPart]) -> Iterator[str]:
    """Which relative targets ended at the half-width that is narrow enough for any answer."""
    for part in answered:
        confidence = part.part.confidence
        if part.part.is_default or part.is_boxed:  # a table that answers by itself has no floor
            continue
        for item in part.answers:
            relative, floor = item.answer.relative, item.answer.width_floor
            if relative is None or not floor or not has_target(item.answer):
                continue
            widths = item.half_widths(confidence)
            missed = (widths > relative * np.abs(item.values)) & (widths <= floor)
            if missed.any():
                yield (
                    f"{item.answer.name} is not known to {relative:g} of itself in "
                    f"{int(missed.sum())} of its {missed.size} rows: by default a half-width of "
                    f"{floor:g} is narrow enough. Set at_least, or half_width, for narrower ones."
                )


def posterior_notes(answered: Sequence[AnsweredPart]) -> Iterator[str]:
    """How posteriors were computed, if not exactly, and to within what."""
    for part in answered:
        if part.part.posterior is PosteriorMethod.EXACT or not part.has_laws:
            continue
        errors = [one.law.tail_error for item in part.answers for one in item.posteriors]
        if errors:
            yield (
                f"Probabilities and intervals of linear answers are computed by "
                f"{part.part.posterior.value}: each tail to within {max(errors):.2g}."
            )


def _n_null_shown(pick: Pick, part: AnsweredPart) -> int:
    """How many of the shown rows are there because they have no value."""
    if pick.by.kind is not ColumnKind.ANSWER or not pick.is_null_first:
        return 0
    n_null = int(np.isnan(part.answers[pick.by.index].values).sum())
    n_others = part.part.n_rows - n_null
    return max(0, min(n_null, pick.n_before + pick.n_rows) - pick.n_before) if n_others else 0


def _of_pick(pick: Pick, part: AnsweredPart) -> tuple[float, float, int] | None:
    """The probabilities that rows are the first, and that they are in order; and their number.

    None if that is not known. Where all rows are shown, none was picked.
    """
    drawn = _drawn(pick, part)
    if drawn is None:
        return None
    shown, truths = drawn
    first, last = pick.n_before, min(pick.n_before + pick.n_rows, shown.size)
    if first >= last or last - first == shown.size:
        return 1.0, 1.0, last - first
    sign = -1.0 if pick.is_descending else 1.0
    order = np.argsort(sign * shown, kind="stable")[first:last]
    of_truths = np.argsort(sign * truths, axis=0, kind="stable")[first:last]
    is_ordered = (of_truths == order[:, None]).all(axis=0)
    is_same = (np.sort(of_truths, axis=0) == np.sort(order)[:, None]).all(axis=0)
    return float(is_same.mean()), float(is_ordered.mean()), last - first


def order_certainty(pick: Pick, part: AnsweredPart, n_shown: int) -> Floats:
    """How probably each shown row truly comes before the next one, (n_shown,).

    After the last one comes the first that is not shown. NaN where that is not known, or no row
    comes after.
    """
    found = np.full(n_shown, np.nan)
    drawn = _drawn(pick, part)
    if drawn is None:
        return found
    shown, truths = drawn
    sign = -1.0 if pick.is_descending else 1.0
    order = np.argsort(sign * shown, kind="stable")[pick.n_before : pick.n_before + n_shown + 1]
    ordered = sign * truths[order]
    is_before = (ordered[:-1] <= ordered[1:]).mean(axis=1)[:n_shown]
    found[: is_before.size] = is_before
    return found


def _drawn(pick: Pick, part: AnsweredPart) -> tuple[Floats, Floats] | None:
    """What rows are ordered by, (n_rows,), and draws of its true values, (n_rows, n_draws).

    A row without a value is at the end where NULL is.
    """
    if part.is_boxed or not part.part.n_rows:
        return None
    if pick.by.kind is ColumnKind.ANSWER:
        item = part.answers[pick.by.index]
        if isinstance(item.law, SimulatedLaw):
            end = math.inf if pick.is_null_first == pick.is_descending else -math.inf
            shown = np.where(np.isnan(item.values), end, item.values)
            draws = np.where(np.isnan(item.law.draws), shown[:, None], item.law.draws)
            return (shown, draws) if draws.shape[1] >= N_DRAWS_LEAST else None
        if item.law is not None:
            return None
        (place,) = item.answer.uses
    else:
        place = pick.by.index
    used = part.aggregates[place]
    if used.aggregate.is_total or part.unknown_rows(place).any():
        return None
    posteriors = used.posteriors
    n_terms = sum(one.terms.place.size for one in posteriors)
    n_draws = min(N_DRAWS, N_DRAWN_MAX // max(len(posteriors), n_terms, 1))
    if n_draws < N_DRAWS_LEAST:
        return None
    names = "".join(map(fingerprint, used.aggregate.blocks))
    rng = np.random.default_rng([len(part.history), *names.encode()])
    shown = values(posteriors)
    return shown, shown[:, None] - draw_errors(posteriors, part.history, n_draws, rng)


LARGEST: Final = float(2**62)  # beyond which a noisy count does not fit into 64 bits


def with_whole_counts(data: pa.Table, places: Sequence[int]) -> pa.Table:
    """A result with the columns at some places rounded; NULL stays NULL."""
    for place in places:
        field = data.schema.field(place)
        values = np.array(data.column(place).to_numpy(zero_copy_only=False), dtype=np.float64)
        is_null = np.isnan(values)
        whole = np.rint(np.clip(np.where(is_null, 0.0, values), -LARGEST, LARGEST))
        column = pa.array(whole.astype(np.int64), mask=is_null)
        data = data.set_column(place, field.with_type(pa.int64()), column)
    return data


def schema_with_whole_counts(schema: pa.Schema, places: Sequence[int]) -> pa.Schema:
    """The columns of such a result."""
    for place in places:
        schema = schema.set(place, schema.field(place).with_type(pa.int64()))
    return schema


AnswerColumns: TypeAlias = tuple[pa.Table, tuple[ColumnReceipt, ...]]


def answer_columns(
    workload: Workload, computed: pa.Table | None, answered: Sequence[AnsweredPart]
) -> AnswerColumns:
    """The result of a statement, with its counts as it wants them.

    Parameters
    ----------
    computed : pyarrow.Table, optional
        The result of its outer SQL, if it has any.
    """
    if workload.outer is None or computed is None:
        data, receipts = _of_relation(answered[0])
    else:
        data, receipts = _of_outer(workload.outer, computed, answered)
    data = with_whole_counts(data, workload.whole)
    if workload.pick is not None and workload.pick.shows_certainty:
        found = order_certainty(workload.pick, answered[0], data.num_rows)
        data = data.append_column(CERTAIN_ORDER, pa.array(found, pa.float64(), from_pandas=True))
    return data, receipts


def promised_columns(workload: Workload, computed: pa.Table | None) -> pa.Schema:
    """The columns of that result, from outer SQL on relations without answers."""
    if workload.outer is None or computed is None:
        schema = relation_schema(workload.parts[0])
    else:
        schema = computed.select(range(_n_columns(workload.outer, computed))).schema
    schema = schema_with_whole_counts(schema, workload.whole)
    if workload.pick is not None and workload.pick.shows_certainty:
        schema = schema.append(pa.field(CERTAIN_ORDER, pa.float64()))
    return schema


def _of_relation(answered: AnsweredPart) -> AnswerColumns:
    """A part's relation, which is the answer."""
    receipts = []
    names = {column.name for column in answered.part.columns}
    for place, item in enumerate(answered.answers):
        if item.answer.name not in names:
            continue  # a claim is about it, and it is not shown
        low, high = item.intervals(answered.part.confidence)
        ends = (low.tolist(), high.tolist())
        receipts.append(column_receipt(item.answer.name, answered, place, ends))
    return relation(answered), tuple(receipts)


def _of_outer(outer: Outer, computed: pa.Table, answered: Sequence[AnsweredPart]) -> AnswerColumns:
    """The result of outer SQL without the ends of the intervals, which go into the receipts."""
    n_columns = _n_columns(outer, computed)
    receipts = []
    for number, (place, part, answer) in enumerate(outer.intervals):
        first = n_columns + 2 * number
        # A NULL end, of a clipped count, is NaN in a receipt.
        ends = tuple(computed.column(first + k).to_numpy().tolist() for k in (0, 1))
        name = computed.column_names[place]
        receipts.append(column_receipt(name, answered[part], answer, ends))
    return computed.select(range(n_columns)), tuple(receipts)


def _n_columns(outer: Outer, computed: pa.Table) -> int:
    return int(computed.num_columns) - 2 * len(outer.intervals)


def released(
    workload: Workload,
    answered: Sequence[AnsweredPart],
    computed: pa.Table | None,
    budgets: Sequence[BudgetStatus],
) -> QueryResult:
    """The result; without a receipt if nothing but public tables was read.

    Parameters
    ----------
    answered : sequence of AnsweredPart
        Its parts, in order.
    computed : pyarrow.Table, optional
        What its outer SQL made of them, if it has any.
    budgets : sequence of BudgetStatus
        Of the private tables that were read, in order; none of tables that answer by themselves.
    """
    data, columns = answer_columns(workload, computed, answered)
    if not workload.tables:
        return QueryResult(data, None)
    compared = [one for one in answered if one.part.comparisons]
    caveats = (
        *missing_notes(answered),
        *choice_caveats(workload.pick, answered),
        *(comparison_caveats(compared) if compared else ()),
        *wide_caveats(columns, data),
    )
    more = (*floor_notes(answered), *posterior_notes(answered), *caveats)
    receipt = Receipt(
        table=budgets[0].table if budgets else workload.tables[0],
        epsilon_spent=sum((one.epsilon_spent for one in answered), Fraction(0)),
        columns=columns,
        budget=budgets[0] if budgets else None,
        notes=(*workload.notes, *dict.fromkeys(more)),
        warnings=workload.warnings,
        caveats=(*workload.caveats, *caveats),
    )
    return QueryResult(with_receipt(data, receipt), receipt)
