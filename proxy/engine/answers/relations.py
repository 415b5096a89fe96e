"""From answered parts to Arrow, and what SQL on them may multiply.

From answered parts to Arrow: a part's noisy relation, and the receipt of a result column.

SQL on answers that would multiply relations, tried before anything is paid for them.

Only SQL whose relations have too many rows, if they were joined without a condition, or that makes
long texts of them, is tried: all other SQL takes time in proportion to what it reads.
"""

import math
from collections.abc import Callable, Sequence
from typing import Final, TypeAlias

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from planner.workload import ColumnKind, OutputColumn, Part, Workload
from proxy.api import ColumnReceipt, arrow_type
from proxy.engine.answers.best_values import best_values
from proxy.engine.answers.count_statistics import TESTED_SCHEMA, shortfall_notes, summarised, tested
from proxy.engine.answers.formula_widths import has_target, small_groups
from proxy.engine.answers.results import AnsweredItem, AnsweredPart
from proxy.engine.answers.simulation import DIVISOR_WIDTHS
from proxy.marginals import solver_note
from proxy.outer_sql.postprocessing import OuterSql

Floats: TypeAlias = NDArray[np.float64]

N_ROWS_TRIED: Final = 100  # of each relation, to check that the types can be computed with

_KIND_TYPES: Final = {
    ColumnKind.GROUPING: pa.int32(),
    ColumnKind.ESTIMATE: pa.float64(),
    ColumnKind.ANSWER: pa.float64(),
    ColumnKind.LOW: pa.float64(),
    ColumnKind.HIGH: pa.float64(),
    ColumnKind.STDERR: pa.float64(),
    ColumnKind.COST: pa.float64(),
    ColumnKind.SOURCE: pa.string(),
    ColumnKind.PROBABILITY: pa.float64(),
    ColumnKind.REPORT: pa.int64(),
}


def relation_schema(part: Part) -> pa.Schema:
    """The columns of a part's relation; known before anything is answered."""
    if part.question is not None:
        return TESTED_SCHEMA
    return pa.schema(
        [
            pa.field(column.name, _type_of(part, column), nullable=_may_be_null(part, column))
            for column in part.columns
        ]
    )


def relation(answered: AnsweredPart) -> pa.Table:
    """A part's noisy relation."""
    if answered.part.question is not None:
        return tested(answered, answered.part.question)
    schema = relation_schema(answered.part)
    arrays = [
        pa.array(_values(answered, column), type=field.type, from_pandas=True)
        for column, field in zip(answered.part.columns, schema, strict=True)
    ]
    fields = [
        field.with_nullable(field.nullable or array.null_count > 0)
        for field, array in zip(schema, arrays, strict=True)
    ]
    return pa.Table.from_arrays(arrays, schema=pa.schema(fields))


def unanswered(part: Part) -> pa.Table:
    """The first rows of a part's relation with only what is public: keys, and no answers.

    The SQL on the relation can be tried on it before anything is answered.
    """
    return _public_rows(part, min(part.n_rows, N_ROWS_TRIED), None)


def stand_in(part: Part, *, differ: bool) -> pa.Table:
    """A relation of the same size as a part's, with 1 for every answer, or with 1, 2, 3, ..

    The time that the SQL takes on this many rows can be tried on it before anything is paid.
    """
    return _public_rows(part, part.n_rows, 1.0, differ=differ)


def _public_rows(
    part: Part, n_rows: int, answer: float | None, *, differ: bool = False
) -> pa.Table:
    schema = relation_schema(part)
    if part.question is not None:
        return pa.Table.from_pylist([{}], schema=schema)
    arrays = []
    for column, field in zip(part.columns, schema, strict=True):
        values: Sequence[object] = [None if column.kind is ColumnKind.SOURCE else answer] * n_rows
        if differ and column.kind is not ColumnKind.SOURCE:
            values = [float(place + 1) for place in range(n_rows)]
        if column.kind in (ColumnKind.KEY, ColumnKind.GROUPING):
            values = _keyed(part, column)[:n_rows]
        if column.kind is ColumnKind.SUMMARY:
            values = [part.summaries[column.index].stand_in if answer else None] * n_rows
        arrays.append(pa.array(values, type=field.type, from_pandas=True))
    return pa.Table.from_arrays(arrays, schema=schema)


def column_receipt(
    name: str, answered: AnsweredPart, answer: int, ends: tuple[Sequence[float], Sequence[float]]
) -> ColumnReceipt:
    """The receipt of one column of the result."""
    item = answered.answers[answer]
    low, high = ends
    return ColumnReceipt(
        name=name,
        confidence=answered.part.confidence,
        epsilon_spent=item.epsilon_spent,
        source=item.source,
        low=tuple(low),
        high=tuple(high),
    )


def missing_notes(answered: Sequence[AnsweredPart]) -> tuple[str, ...]:
    """Why answers have no value in some rows, or miss levels, and what made counts agree.

    For a receipt; each is said once.
    """
    notes = (
        f"{item.answer.name} is NULL in {int(item.is_undivided.sum())} of its "
        f"{item.is_undivided.size} rows. That does not mean that no records are there: the "
        f"divisor is not above {DIVISOR_WIDTHS} half-widths of its noise, and may be 0. A "
        "narrower half_width may give a value."
        for part in answered
        for item in part.answers
        if item.law is not None and item.is_undivided.any()
    )
    small = (
        f"{item.answer.name} is left wide in {n_small} of its groups: they have fewer records "
        "than the half_width of the table's counts, and no measurement is bought for such "
        "groups alone."
        for part in answered
        for item in part.answers
        if item.law is not None and has_target(item.answer)
        if (n_small := int((item.has_target & small_groups(item.answer, part)).sum()))
    )
    solved = (solver_note(part.solver) for part in answered if part.solver is not None)
    return tuple(dict.fromkeys((*notes, *small, *shortfall_notes(answered), *solved)))


def _type_of(part: Part, column: OutputColumn) -> pa.DataType:
    if column.kind is ColumnKind.KEY:
        return arrow_type(part.keys[column.index].sql_type)
    if column.kind is ColumnKind.SUMMARY:
        return arrow_type(part.summaries[column.index].sql_type)
    return _KIND_TYPES[column.kind]


def _may_be_null(part: Part, column: OutputColumn) -> bool:
    """Whether it may be NULL: keys, formulas that divide by zero, intervals of clipped counts."""
    of_law = (ColumnKind.LOW, ColumnKind.HIGH, ColumnKind.STDERR, ColumnKind.PROBABILITY)
    if column.kind is ColumnKind.REPORT:
        return True  # also where a table's answers only have bounds on their errors
    if column.kind in of_law and part.consistency:
        return True
    if column.kind in (ColumnKind.ANSWER, ColumnKind.STDERR, ColumnKind.PROBABILITY):
        return part.answers[column.index].formula is not None
    return column.kind in (ColumnKind.KEY, ColumnKind.SUMMARY)


def _values(answered: AnsweredPart, column: OutputColumn) -> Sequence[object] | Floats:
    part = answered.part
    if column.kind in (ColumnKind.KEY, ColumnKind.GROUPING):
        return _keyed(part, column)
    if column.kind is ColumnKind.SUMMARY:
        return summarised(answered, part.summaries[column.index])
    if column.kind is ColumnKind.ESTIMATE:
        return answered.values(column.index)
    if column.belief is not None:
        return best_values(answered, column.index, column.belief)
    if column.span is not None:
        found = answered.answers[column.index]
        return found.probabilities(*column.span) if answered.has_laws else [None] * part.n_rows
    confidence = part.confidence if column.confidence is None else column.confidence
    return _of_item(answered.answers[column.index], column.kind, confidence, part.n_rows)


def _keyed(part: Part, column: OutputColumn) -> Sequence[object]:
    key = part.keys[column.index]
    if column.kind is ColumnKind.KEY:
        return key.values
    return [int(is_summed_over) for is_summed_over in key.is_summed_over]


def _of_item(
    item: AnsweredItem, kind: ColumnKind, confidence: float, n_rows: int
) -> Sequence[object] | Floats:
    """The values that a column shows of one answer."""
    match kind:
        case ColumnKind.ANSWER:
            return item.values
        case ColumnKind.LOW | ColumnKind.HIGH:
            return item.intervals(confidence)[int(kind is ColumnKind.HIGH)]
        case ColumnKind.STDERR:
            return item.standard_errors()
        case ColumnKind.COST:
            return [float(item.epsilon_spent)] * n_rows
        case _:
            return [item.source] * n_rows


N_CHARACTERS_MAX: Final = 2**26  # of texts on as many rows
N_MULTIPLIED_MAX: Final = 2**20  # rows, if all relations read were joined without a condition


def check_multiplied(
    workload: Workload,
    database: OuterSql,
    public_relations: Callable[[Sequence[str]], dict[str, pa.Table]],
) -> None:
    """Refuse SQL on the answers of private tables that would take too long.

    Parameters
    ----------
    database : OuterSql
        Tries the outer SQL.
    public_relations : callable
        What is read beside answers, by its names.

    Raises
    ------
    TooSlow, TooLarge
    """
    outer = workload.outer
    if outer is None or not workload.tables:
        return
    sizes = {part.name: part.n_rows for part in workload.parts}
    public = public_relations(outer.public)
    sizes |= {name: table.num_rows for name, table in public.items()}
    n_joined = outer.n_made * math.prod(max(sizes.get(name, 1), 1) for name in outer.reads)
    if n_joined > N_MULTIPLIED_MAX or n_joined * outer.n_characters > N_CHARACTERS_MAX:
        # What is equal meets most rows where all answers are one, what differs where none are.
        for differ in (False, True):
            relations = {part.name: stand_in(part, differ=differ) for part in workload.parts}
            database.run(outer.sql, relations | public)
