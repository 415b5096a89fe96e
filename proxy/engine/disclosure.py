"""What a caller may see of an answer if the table's history is private.

`tables/disclosure.py` decides for which callers it is private, and what they see of budgets. They
see what the first query ever on the table would show: the price of a fresh measurement
(`tables/empty_history.py`) and the accuracy that was requested (`AskedLaw`, `boxes.py`). What is
charged, and what an answer is estimated from, is the same for all callers.

Nothing here decides about privacy budgets; docs/threat_model.md lists what remains visible.
"""

from collections.abc import Sequence
from dataclasses import replace
from fractions import Fraction

from accountant.ledger import Payer
from cube.refusals import CostAboveCap, NotCovered, Shortfall
from inference import Posterior, RowEstimate, RowEstimates
from inference.marginals import UnknownLaw
from inference.noise_law import AskedLaw
from planner.measuring import meets
from planner.workload import Wanted
from proxy.api import SOURCE_HISTORY, SOURCE_MEASURED, SOURCE_PUBLIC, Caller
from proxy.engine.answers import AnsweredAggregate, AnsweredPart, consistent
from proxy.engine.search import advised
from proxy.engine.system_views import TableRecord
from proxy.tables import EmptyHistory, ServedTable, shown_entries, shown_whole_budget


def shown_record(table: ServedTable, caller: Caller) -> TableRecord:
    """The content of the `data_privacy` views on one table, for a caller."""
    history = table.gate.history_now()  # once: budget and entries are those of one moment
    return TableRecord(
        table.info,
        shown_whole_budget(table, history, caller),
        table.gate.schema,
        shown_entries(table, history, caller),
    )


def shown_parts(
    empty_history: EmptyHistory, answered: Sequence[AnsweredPart]
) -> list[AnsweredPart]:
    """Answered parts of one table, with the accuracy and the price on an empty history."""
    asked = [one for part in answered for item in part.aggregates for one in item.asked]
    plan = empty_history.bought(asked)
    known = empty_history.estimates(asked)
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


def disclosed(
    empty_history: EmptyHistory | None, answered: Sequence[AnsweredPart]
) -> list[AnsweredPart]:
    """The parts of one table as they may be shown, with counts that agree if requested."""
    agreed = [consistent(one) for one in answered]
    return (
        agreed
        if empty_history is None
        else [_without_intervals(p) for p in shown_parts(empty_history, agreed)]
    )


def disclosed_rows(
    empty_history: EmptyHistory | None, wanted: Wanted, rows: RowEstimates
) -> RowEstimates:
    """The estimates of one block as they may be shown."""
    return (
        rows
        if empty_history is None
        else _shown_rows(wanted, empty_history.estimates([wanted])[0], rows)
    )


def _shown_rows(wanted: Wanted, public: RowEstimates, rows: RowEstimates) -> RowEstimates:
    """Estimates at the requested accuracy; rows that are public without any history stay exact."""
    target = wanted.target
    law = AskedLaw(target.half_width, target.confidence)
    return tuple(
        Posterior(row.value, law, low=row.low, high=row.high)
        if isinstance(row, Posterior) and not isinstance(free, Posterior)
        else row
        for row, free in zip(rows, public, strict=True)
    )


def _without_intervals(part: AnsweredPart) -> AnsweredPart:
    """A part without intervals if its counts were made to agree: their accuracy reveals history."""
    if part.part.consistency is None:
        return part
    (counts,) = part.aggregates
    rows = tuple(
        Posterior(one.value, UnknownLaw(), low=one.low, high=one.high) for one in counts.posteriors
    )
    return replace(part, aggregates=(replace(counts, posteriors=rows),))


def shown_refusal(
    refusal: NotCovered,
    empty_history: EmptyHistory,
    wanted: Sequence[Wanted],
    payer: Payer,
    cap: Fraction | None,
) -> NotCovered:
    """A refusal for lack of budget, with the price on an empty history, without what is left."""
    if isinstance(refusal, CostAboveCap):
        return advised(refusal, empty_history.snapshot(), wanted, payer, cap)
    return unaffordable(refusal, empty_history, empty_history.price(wanted))


def unaffordable(refusal: NotCovered, empty_history: EmptyHistory, epsilon: Fraction) -> NotCovered:
    """The refusal with the price on an empty history, without what is left, or of whose limit."""
    table = empty_history.info.schema.table
    return type(refusal)(Shortfall(table=table, epsilon_needed=epsilon, epsilon_left=None))


def _shown_aggregate(
    part: AnsweredPart,
    item: AnsweredAggregate,
    public: Sequence[RowEstimates],
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


def _widened(item: AnsweredAggregate, public: Sequence[RowEstimates]) -> tuple[Posterior, ...]:
    found: list[RowEstimate] = []
    for one, free in zip(item.asked, public, strict=True):
        rows = item.posteriors[len(found) : len(found) + one.block.n_rows]
        found += _shown_rows(one, free, rows)
    return tuple(row for row in found if isinstance(row, Posterior))
