"""What a caller may be shown of an answer, where a table's history is private.

Who that is, and what they are shown of budgets, is decided in `tables/disclosure.py`. They are
shown what they would be if they were the only one who ever asked: the price of a fresh measurement
(`tables/empty_history.py`), and the accuracy that was asked for (`AskedLaw`, `boxes.py`). What is
charged, and what an answer is estimated from, is the same for all.

Decides nothing about privacy budgets; docs/threat_model.md says what still shows.
"""

from collections.abc import Sequence
from dataclasses import replace
from fractions import Fraction

from accountant.gate.gate import Budget
from accountant.ledger.limits import Payer
from cube.refusals import CostAboveCap, NotCovered
from cube.shortfall import Shortfall
from inference.marginals.error_law import UnknownLaw
from inference.noise_law.asked_law import AskedLaw
from inference.posterior import Posterior, RowEstimate
from planner.measuring.choose import meets
from planner.workload import Wanted
from proxy.api.requests import (
    SOURCE_HISTORY,
    SOURCE_MEASURED,
    SOURCE_PUBLIC,
    Caller,
)
from proxy.engine.alternatives import advised
from proxy.engine.consistency import consistent
from proxy.engine.results import AnsweredAggregate, AnsweredPart
from proxy.engine.system_views import TableRecord
from proxy.tables.disclosure import alone_for, shown_spent
from proxy.tables.empty_history import EmptyHistory
from proxy.tables.private_table import ServedTable


def shown_record(table: ServedTable, caller: Caller) -> TableRecord:
    """What the views of `data_privacy` say of a table to a caller."""
    record = TableRecord.of(table.info, table.gate, caller)
    if alone_for(table, caller) is None:
        return record
    limit = record.budget.limit
    budget = Budget(limit, shown_spent(limit, record.budget.spent), 0)
    return TableRecord(table.info, budget, (), ())


def shown_parts(alone: EmptyHistory, answered: Sequence[AnsweredPart]) -> list[AnsweredPart]:
    """Answered parts of one table, at the accuracy and the price of asking alone."""
    asked = [one for part in answered for item in part.aggregates for one in item.asked]
    plan = alone.bought(asked)
    known = alone.estimates(asked)
    costs = [plan.epsilon(place) for place in range(len(asked))]
    shown, place = [], 0
    for part in answered:
        aggregates = []
        for item in part.aggregates:
            own = slice(place, place + len(item.asked))
            place = own.stop
            aggregates.append(_shown_aggregate(part, item, known[own], costs[own]))
        shown.append(replace(part, aggregates=tuple(aggregates), is_boxed=True))
    return shown


def disclosed(alone: EmptyHistory | None, answered: Sequence[AnsweredPart]) -> list[AnsweredPart]:
    """The parts of one table as they may be shown, with counts that agree if that was asked."""
    agreed = [consistent(one) for one in answered]
    return agreed if alone is None else [_without_intervals(p) for p in shown_parts(alone, agreed)]


def disclosed_rows(
    alone: EmptyHistory | None, wanted: Wanted, rows: Sequence[RowEstimate]
) -> tuple[RowEstimate, ...]:
    """The estimates of one block as they may be shown."""
    return tuple(rows) if alone is None else _shown_rows(wanted, alone.estimates([wanted])[0], rows)


def _shown_rows(
    wanted: Wanted, public: Sequence[RowEstimate], rows: Sequence[RowEstimate]
) -> tuple[RowEstimate, ...]:
    """Estimates at the accuracy that was asked for; what is `public` without any history stays."""
    target = wanted.target
    law = AskedLaw(target.half_width, target.confidence)
    return tuple(
        Posterior(row.value, law, low=row.low, high=row.high)
        if isinstance(row, Posterior) and not isinstance(free, Posterior)
        else row
        for row, free in zip(rows, public, strict=True)
    )


def _without_intervals(part: AnsweredPart) -> AnsweredPart:
    """A part whose counts were made to agree: how accurate they are follows from the history."""
    if part.part.consistency is None:
        return part
    (counts,) = part.aggregates
    rows = tuple(
        Posterior(one.value, UnknownLaw(), low=one.low, high=one.high) for one in counts.posteriors
    )
    return replace(part, aggregates=(replace(counts, posteriors=rows),))


def shown_refusal(
    refusal: NotCovered,
    alone: EmptyHistory,
    wanted: Sequence[Wanted],
    payer: Payer,
    cap: Fraction | None,
) -> NotCovered:
    """A refusal for want of budget, with the price of asking alone, and no word of what is left."""
    if isinstance(refusal, CostAboveCap):
        return advised(refusal, alone.snapshot(), wanted, payer, cap)
    return unaffordable(refusal, alone, alone.price(wanted))


def unaffordable(refusal: NotCovered, alone: EmptyHistory, epsilon: Fraction) -> NotCovered:
    """The refusal with the price of asking alone, and without what is left, or of whose limit."""
    table = alone.info.schema.table
    return type(refusal)(Shortfall(table=table, epsilon_needed=epsilon, epsilon_left=None))


def _shown_aggregate(
    part: AnsweredPart,
    item: AnsweredAggregate,
    public: Sequence[Sequence[RowEstimate]],
    costs: Sequence[Fraction],
) -> AnsweredAggregate:
    is_public = all(meets(rows, one.target) for one, rows in zip(item.asked, public, strict=True))
    source = SOURCE_HISTORY if is_public else SOURCE_MEASURED
    return replace(
        item,
        posteriors=item.posteriors if part.part.question else _widened(item, public),
        source=SOURCE_PUBLIC if item.aggregate.is_constant else source,
        epsilon_spent=sum(costs, Fraction(0)),
    )


def _widened(
    item: AnsweredAggregate, public: Sequence[Sequence[RowEstimate]]
) -> tuple[Posterior, ...]:
    found: list[RowEstimate] = []
    for one, free in zip(item.asked, public, strict=True):
        rows = item.posteriors[len(found) : len(found) + one.block.n_rows]
        found += _shown_rows(one, free, rows)
    return tuple(row for row in found if isinstance(row, Posterior))
