"""The columns of an answer, and the receipt of each that has an interval.

Either a part's relation is the answer as it is, or outer SQL computes it, which then gives the ends
of intervals behind the columns that were asked for.
"""

from collections.abc import Sequence
from typing import TypeAlias

import pyarrow as pa

from planner.workload import Outer
from proxy.api.requests import ColumnReceipt
from proxy.engine.relations import column_receipt, relation
from proxy.engine.results import AnsweredPart

AnswerColumns: TypeAlias = tuple[pa.Table, tuple[ColumnReceipt, ...]]


def of_relation(answered: AnsweredPart) -> AnswerColumns:
    """A part's relation, which is the answer."""
    receipts = []
    for place, item in enumerate(answered.answers):
        low, high = item.intervals(answered.part.confidence)
        ends = (low.tolist(), high.tolist())
        receipts.append(column_receipt(item.answer.name, answered, place, ends))
    return relation(answered), tuple(receipts)


def of_outer(outer: Outer, computed: pa.Table, answered: Sequence[AnsweredPart]) -> AnswerColumns:
    """The result of outer SQL without the ends of the intervals, which go into the receipts."""
    n_columns = computed.num_columns - 2 * len(outer.intervals)
    receipts = []
    for number, (place, part, answer) in enumerate(outer.intervals):
        first = n_columns + 2 * number
        # A NULL end, of a clipped count, is NaN in a receipt.
        ends = tuple(computed.column(first + k).to_numpy().tolist() for k in (0, 1))
        name = computed.column_names[place]
        receipts.append(column_receipt(name, answered[part], answer, ends))
    return computed.select(range(n_columns)), tuple(receipts)
