"""The columns of an answer, and the receipt of each that has an interval.

Either a part's relation is the answer as it is, or outer SQL computes it, which then gives the ends
of intervals behind the columns that were asked for.
"""

from collections.abc import Sequence
from typing import TypeAlias

import pyarrow as pa

from planner.workload import Outer, Workload
from proxy.api.requests import ColumnReceipt
from proxy.engine.relations import column_receipt, relation, relation_schema
from proxy.engine.results import AnsweredPart
from proxy.engine.whole_counts import schema_with_whole_counts, with_whole_counts

AnswerColumns: TypeAlias = tuple[pa.Table, tuple[ColumnReceipt, ...]]


def answer_columns(
    workload: Workload, computed: pa.Table | None, answered: Sequence[AnsweredPart]
) -> AnswerColumns:
    """The result of a statement, with its counts as it wants them.

    Parameters
    ----------
    workload : Workload
    computed : pyarrow.Table, optional
        The result of its outer SQL, if it has any.
    answered : sequence of AnsweredPart
    """
    if workload.outer is None or computed is None:
        data, receipts = _of_relation(answered[0])
    else:
        data, receipts = _of_outer(workload.outer, computed, answered)
    return with_whole_counts(data, workload.whole), receipts


def promised_columns(workload: Workload, computed: pa.Table | None) -> pa.Schema:
    """The columns of that result, from outer SQL on relations without answers."""
    if workload.outer is None or computed is None:
        schema = relation_schema(workload.parts[0])
    else:
        schema = computed.select(range(_n_columns(workload.outer, computed))).schema
    return schema_with_whole_counts(schema, workload.whole)


def _of_relation(answered: AnsweredPart) -> AnswerColumns:
    """A part's relation, which is the answer."""
    receipts = []
    for place, item in enumerate(answered.answers):
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
