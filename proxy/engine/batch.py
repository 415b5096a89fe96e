"""A declared batch of statements: planned together, shown with its price, and bought on request.

The plan is made on a snapshot, since it takes seconds; if something is bought meanwhile, it is made
again. Nothing is charged before every check has passed.
"""

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from fractions import Fraction
from itertools import groupby
from typing import Any, Final

import pyarrow as pa

from accountant.ledger.history import StalePlan
from cube.refusals import BudgetExhausted, CannotStart, InvalidRequest, LimitReached
from cube.target import AccuracyTarget
from inference import Posterior, RowEstimates
from planner.batch import BatchPlan
from planner.sql import Explain, Query, Statement, not_answered, read_file
from planner.workload import Aggregate, Part, RequestedTarget, Wanted, Workload
from proxy.api import BatchReport, BatchRequest, BudgetStatus
from proxy.engine.disclosure import unaffordable
from proxy.tables import EmptyHistory, ServedTable, TableSnapshot, note_if_large

BATCH_SCHEMA = pa.schema(
    [
        pa.field("statement", pa.int64(), nullable=False),  # from 1, in the order of the file
        pa.field("aggregate", pa.string(), nullable=False),
        pa.field("expression", pa.string(), nullable=False),
        pa.field("n_rows", pa.int64(), nullable=False),
        pa.field("half_width_wanted", pa.float64(), nullable=False),
        pa.field("confidence", pa.float64(), nullable=False),
        pa.field("half_width_known", pa.float64()),  # null: not determined by the history
        pa.field("half_width_promised", pa.float64(), nullable=False),
    ]
)


N_OVERTAKEN_MAX: Final = 6  # plans of a batch that became stale through others' purchases
SOLVED_BY: Final = (
    "Solver: weights that serve all statements were sought with Clarabel (cvxpy); the cheapest "
    "plan that was found is shown."
)
LAPLACE_ONLY: Final = (
    "A batch is bought with Laplace noise only; statements asked one by one may be cheaper with "
    "the Gaussian noise that the delta of this table allows."
)


@dataclass(frozen=True, slots=True)
class _Item:
    """One linear query of one statement."""

    statement: int
    aggregate: Aggregate
    wanted: Wanted
    known: float | None


def run_batch(
    request: BatchRequest,
    plan_statement: Callable[[str, RequestedTarget], Workload],
    table_named: Callable[[str], ServedTable],
    empty_history_named: Callable[[str], EmptyHistory | None] = lambda _table: None,
) -> BatchReport:
    """Plan every statement of a request together, and buy the plan if the request says so.

    Callers who may not see the table's history are shown the plan and the price on an empty
    history, and a cap is compared with that price; only what is missing is bought.

    Raises
    ------
    Refused
        If a statement is refused, if the statements read several tables, or if the budget or a cap
        does not cover the plan. Then nothing is charged.
    """
    beside = RequestedTarget(
        half_width=request.target.half_width, confidence=request.target.confidence
    )
    workloads = [plan_statement(_text(one), beside) for one in read_file(request.sql)]
    tables = _check_together(workloads)
    _check_rows(workloads)
    table, empty_history = table_named(tables[0]), empty_history_named(tables[0])
    if table.extent.ended_on:
        raise InvalidRequest(
            f"Nothing is measured for {tables[0]}: its data was replaced.",
            hint="Leave AS OF out, or ask the statements one by one.",
        )
    cap = _cap(request.target.epsilon_cap, workloads)
    if empty_history is None:
        report = _planned_and_bought(request, workloads, table, cap)
        return replace(report, notes=_notes(table, report.n_measurements))
    report = _by_empty_history(
        request, workloads, empty_history, cap, table.budget(request.caller.payer)
    )
    if request.buy:
        try:
            _planned_and_bought(request, workloads, table, None)
        except (BudgetExhausted, LimitReached) as refusal:
            raise unaffordable(refusal, empty_history, report.epsilon) from None
    return report


def _by_empty_history(
    request: BatchRequest,
    workloads: Sequence[Workload],
    empty_history: EmptyHistory,
    cap: Fraction | None,
    budget: BudgetStatus,
) -> BatchReport:
    """The plan on an empty history; refused if its price is above the cap or what is left."""
    snapshot = empty_history.snapshot()
    items = _items(snapshot, workloads)
    plan = _planned(snapshot, items)
    epsilon = snapshot.price(plan.measurements).epsilon
    if request.buy:
        try:
            snapshot.check(plan.measurements, request.caller.payer, epsilon_cap=cap)
        except BudgetExhausted as refusal:
            raise unaffordable(refusal, empty_history, epsilon) from None
    n_measurements = len(plan.measurements)
    return BatchReport(_table(items, plan), epsilon, n_measurements, request.buy, budget)


def _planned_and_bought(
    request: BatchRequest,
    workloads: Sequence[Workload],
    table: ServedTable,
    cap: Fraction | None,
) -> BatchReport:
    """The plan for the actual history, bought if the request says so."""
    for _ in range(N_OVERTAKEN_MAX):
        snapshot = table.snapshot()
        items = _items(snapshot, workloads)
        history = snapshot.charges.measurements
        try:
            plan = _planned(snapshot, items)
            epsilon = snapshot.price(plan.measurements).epsilon
            if request.buy and plan.measurements:
                payer = request.caller.payer
                epsilon = table.buy_plan(plan.measurements, len(history), payer, epsilon_cap=cap)
                note_if_large(table, payer, epsilon)
        except StalePlan:
            continue  # something was bought meanwhile, so the plan is stale
        return BatchReport(
            data=_table(items, plan),
            epsilon=epsilon,
            n_measurements=len(plan.measurements),
            is_bought=request.buy,
            budget=table.budget(request.caller.payer),
        )
    raise InvalidRequest(
        "While the batch was planned, others kept buying measurements.",
        hint="Nothing was charged. Try again when the table is less busy, or with smaller batches.",
    )


def _notes(table: ServedTable, n_measurements: int) -> tuple[str, ...]:
    """What readers of a plan are told: single statements may have Gaussian noise, a batch has not.

    Where analysts do not see each other's history, single statements have Laplace noise as well.
    """
    has_gaussian = table.delta is not None and table.empty_history is None
    if not n_measurements:
        return ()
    return (SOLVED_BY, LAPLACE_ONLY) if has_gaussian else (SOLVED_BY,)


def _text(statement: Statement) -> str:
    """The query that a statement of a batch is."""
    match statement:
        case Query(text=text):
            return text
        case Explain():
            raise InvalidRequest(
                "A batch has no EXPLAIN PRIVACY statement.",
                hint="Leave it out: a plan is shown, and bought only when asked for.",
            )
        case other:
            raise not_answered(other.verb)


def _check_together(workloads: Sequence[Workload]) -> list[str]:
    """The one private table that the statements read."""
    tables = sorted({table for workload in workloads for table in workload.tables})
    if not tables:
        raise InvalidRequest("The statements read no private table.")
    if len(tables) > 1:
        raise InvalidRequest(
            f"The statements read several private tables: {', '.join(tables)}.",
            hint="Plan the statements on one table at a time.",
        )
    return tables


def _check_rows(workloads: Sequence[Workload]) -> None:
    """Refuse counts of units: what is planned together are rows, which share a history."""
    parts = (part for workload in workloads for part in workload.parts)
    for aggregate in (one for part in parts for one in part.aggregates):
        if aggregate.rule is not None or aggregate.fits_units:
            raise InvalidRequest(
                f"A batch does not plan {aggregate.sql}, because it shares no measurement with "
                "other answers.",
                hint="Ask it by itself, and plan the other statements together.",
            )


def _cap(of_batch: Fraction | None, workloads: Sequence[Workload]) -> Fraction | None:
    """The smaller of the batch's cap and the sum of its statements' caps, if each has one."""
    caps = [part.epsilon_cap for workload in workloads for part in workload.parts]
    of_statements = [cap for cap in caps if cap is not None]
    if len(of_statements) < len(caps):
        return of_batch
    together = sum(of_statements, Fraction(0))
    return together if of_batch is None else min(of_batch, together)


def _items(table: TableSnapshot, workloads: Sequence[Workload]) -> list[_Item]:
    """Every linear query that has rows, with what is known of it."""
    wanted = [
        (number, aggregate, Wanted(block, _sure_target(part, place)))
        for number, workload in enumerate(workloads, start=1)
        for part in workload.parts
        for place, aggregate in enumerate(part.aggregates)
        for block in aggregate.blocks
    ]
    known = table.estimates([one for _, _, one in wanted])
    return [
        _Item(number, aggregate, one, _widest(rows, one.target.confidence))
        for (number, aggregate, one), rows in zip(wanted, known, strict=True)
    ]


def _sure_target(part: Part, aggregate: int) -> AccuracyTarget:
    """An aggregate's target that is met whatever its answer: the floor, if it is relative."""
    target = part.aggregates[aggregate].target
    floors = [
        answer.width_floor
        for answer in part.answers
        if answer.uses == (aggregate,) and answer.formula is None and answer.width_floor > 0
    ]
    return replace(target, half_width=min([target.half_width, *floors]))


def _planned(snapshot: TableSnapshot, items: Sequence[_Item]) -> BatchPlan:
    by_statement = groupby(items, key=lambda item: item.statement)
    statements = [[item.wanted for item in some] for _, some in by_statement]
    try:
        return snapshot.plan_together(statements)
    except CannotStart as missing:  # an optional dependency is missing; the server keeps serving
        raise InvalidRequest(missing.message, hint=missing.hint) from None


def _widest(rows: RowEstimates, confidence: float) -> float | None:
    known = [row.half_width(confidence) for row in rows if isinstance(row, Posterior)]
    return max(known, default=0.0) if len(known) == len(rows) else None


def _table(items: Sequence[_Item], plan: BatchPlan) -> pa.Table:
    rows: list[dict[str, Any]] = []
    for item, half_widths in zip(items, plan.half_widths, strict=True):
        target = item.wanted.target
        promised = max(half_widths)
        rows.append(
            {
                "statement": item.statement,
                "aggregate": item.aggregate.name,
                "expression": item.aggregate.sql,
                "n_rows": item.wanted.block.n_rows,
                "half_width_wanted": target.half_width,
                "confidence": target.confidence,
                "half_width_known": item.known,
                "half_width_promised": promised
                if item.known is None
                else min(promised, item.known),
            }
        )
    return pa.Table.from_pylist(rows, schema=BATCH_SCHEMA)
