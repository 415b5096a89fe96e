"""The result of a statement with its receipt: what was answered, from what, and what it cost."""

from collections.abc import Sequence
from fractions import Fraction

import pyarrow as pa

from planner.workload import Workload
from proxy.api.receipts import with_receipt
from proxy.api.requests import BudgetStatus, QueryResult, Receipt
from proxy.engine.answer_columns import answer_columns
from proxy.engine.choices import choice_caveats, floor_notes, wide_caveats
from proxy.engine.relations import missing_notes
from proxy.engine.results import AnsweredPart


def released(
    workload: Workload,
    answered: Sequence[AnsweredPart],
    computed: pa.Table | None,
    budgets: Sequence[BudgetStatus],
) -> QueryResult:
    """The result; without a receipt if nothing but public tables was read.

    Parameters
    ----------
    workload : Workload
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
    caveats = (
        *missing_notes(answered),
        *choice_caveats(workload.pick, answered),
        *wide_caveats(columns, data),
    )
    more = (*floor_notes(answered), *caveats)
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
