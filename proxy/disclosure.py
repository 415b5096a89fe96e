"""What a caller may be shown of a table: the one place that knows what a private history hides.

Owners and auditors are shown everything, and so is everybody where the history is shared. Analysts
of a table whose history is private are shown what they would be if they were the only one who ever
asked: the price of a fresh measurement (`alone.py`), the accuracy that was asked for (`AskedLaw`,
`boxes.py`), and what is left of budgets in tenths. What is charged, and what an answer is estimated
from, is the same for all.

Decides nothing about privacy budgets; docs/threat_model.md says what still shows.
"""

from collections.abc import Sequence
from dataclasses import replace
from fractions import Fraction
from typing import Final

from accountant.access import Role
from accountant.gate import Budget
from accountant.limits import Payer
from cube.refusals import CostAboveCap, NotAllowed, Refused
from inference.asked_law import AskedLaw
from inference.marginals.error_law import UnknownLaw
from inference.posterior import Posterior, RowEstimate
from planner.measuring import meets
from planner.workload import Wanted
from proxy.advice import advised, rounded_up
from proxy.alone import Alone
from proxy.answered import (
    SOURCE_HISTORY,
    SOURCE_MEASURED,
    SOURCE_PUBLIC,
    AnsweredAggregate,
    AnsweredPart,
)
from proxy.answers import BudgetStatus, Caller, LimitStatus
from proxy.consistent import consistent
from proxy.privacy_views import TableRecord
from proxy.served_table import ServedTable

N_SHOWN_STEPS: Final = 10  # of a budget


def alone_for(table: ServedTable, caller: Caller) -> Alone | None:
    """What a caller is shown a table's prices by; None if they may be shown its own."""
    return table.alone if caller.role is Role.ANALYST else None


def shown_budget(table: ServedTable, caller: Caller) -> BudgetStatus:
    """A table's budget, and the limits that bind a caller."""
    status = table.budget(caller.payer)
    if alone_for(table, caller) is None:
        return status
    return replace(
        status,
        spent=shown_spent(status.limit, status.spent),
        n_measurements=0,
        limits=tuple(_shown_limit(limit) for limit in status.limits),
    )


def shown_record(table: ServedTable, caller: Caller) -> TableRecord:
    """What the views of `data_privacy` say of a table to a caller."""
    record = TableRecord.of(table.info, table.gate, caller)
    if alone_for(table, caller) is None:
        return record
    limit = record.budget.limit
    budget = Budget(limit, shown_spent(limit, record.budget.spent), 0)
    return TableRecord(table.info, budget, (), ())


def shown_spent(limit: Fraction, spent: Fraction) -> Fraction:
    """What was spent, up to the next tenth: never less than it is, and never nothing.

    >>> shown_spent(Fraction(1), Fraction(0)), shown_spent(Fraction(1), Fraction(1, 3))
    (Fraction(1, 10), Fraction(2, 5))
    """
    if not limit:
        return Fraction(0)
    steps = min(int(spent / limit * N_SHOWN_STEPS) + 1, N_SHOWN_STEPS)
    return limit * steps / N_SHOWN_STEPS


def shown_parts(alone: Alone, answered: Sequence[AnsweredPart]) -> list[AnsweredPart]:
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


def disclosed(alone: Alone | None, answered: Sequence[AnsweredPart]) -> list[AnsweredPart]:
    """The parts of one table as they may be shown, with counts that agree if that was asked."""
    agreed = [consistent(one) for one in answered]
    return agreed if alone is None else [_without_intervals(p) for p in shown_parts(alone, agreed)]


def disclosed_rows(
    alone: Alone | None, wanted: Wanted, rows: Sequence[RowEstimate]
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
    refusal: Refused, alone: Alone, wanted: Sequence[Wanted], payer: Payer, cap: Fraction | None
) -> Refused:
    """A refusal for want of budget, with the price of asking alone, and no word of what is left."""
    if isinstance(refusal, CostAboveCap):
        return advised(refusal, alone.snapshot(), wanted, payer, cap)
    return unaffordable(refusal, alone, alone.price(wanted))


def unaffordable(refusal: Refused, alone: Alone, epsilon: Fraction) -> Refused:
    """The refusal of what costs who asks alone so much, and is not covered by what is left."""
    table = alone.info.schema.table
    return type(refusal)(
        f"This costs epsilon {rounded_up(float(epsilon))}, and what is left of {table}'s budget, "
        "or of a limit, does not cover it.",
        hint="Ask for a wider half_width or a lower confidence.",
    )


def check_may_see_history(table: ServedTable, caller: Caller) -> None:
    """Refuse who may not be shown what is made of a history as such.

    Raises
    ------
    NotAllowed
    """
    if alone_for(table, caller) is not None:
        name = table.info.schema.table
        raise NotAllowed(
            f"The history of {name} is private, and this is made of it.",
            hint="Ask SQL, or an owner; synthetic tables that are there are open to you.",
        )


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


def _shown_limit(status: LimitStatus) -> LimitStatus:
    limit = status.limit
    return replace(status, spent=Fraction(0) if limit is None else shown_spent(limit, status.spent))
