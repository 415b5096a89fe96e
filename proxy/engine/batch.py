"""A declared batch of statements: planned together, shown with its price, and bought if asked.

The plan is made on a snapshot, since it takes seconds; if something was bought meanwhile, it is
made again. Nothing is charged before everything that may refuse has passed.
"""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from fractions import Fraction
from typing import Any, Final

import pyarrow as pa

from accountant.ledger.table_history import StalePlan
from cube.measurement import Measurement
from cube.refusals import BudgetExhausted, CannotStart, InvalidRequest, LimitReached
from cube.schema import Schema
from inference.posterior import Posterior, RowEstimate
from planner.batch.plan import BatchPlan, plan_batch
from planner.batch.promise import with_kept_promises
from planner.sql.statements import Explain, Query, Statement, not_answered, read_file
from planner.workload import Aggregate, RequestedTarget, Wanted, Workload
from proxy.api.requests import BatchReport, BatchRequest, BudgetStatus
from proxy.engine.disclosure import unaffordable
from proxy.tables.empty_history import EmptyHistory
from proxy.tables.private_table import ServedTable
from proxy.tables.snapshot import TableSnapshot

BATCH_SCHEMA = pa.schema(
    [
        pa.field("statement", pa.int64(), nullable=False),  # from 1, in the order of the file
        pa.field("aggregate", pa.string(), nullable=False),
        pa.field("expression", pa.string(), nullable=False),
        pa.field("n_rows", pa.int64(), nullable=False),
        pa.field("half_width_wanted", pa.float64(), nullable=False),
        pa.field("confidence", pa.float64(), nullable=False),
        pa.field("half_width_known", pa.float64()),  # null: the history does not determine it
        pa.field("half_width_promised", pa.float64(), nullable=False),
    ]
)


N_OVERTAKEN_MAX: Final = 6  # plans of a batch that others' purchases made stale


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
    alone_named: Callable[[str], EmptyHistory | None] = lambda _table: None,
) -> BatchReport:
    """Plan every statement of a request together, and buy the plan if the request says so.

    Who may be told of a table only what asking alone would cost is shown the plan for that, and a
    cap is compared with its price; what is bought is what is missing.

    Raises
    ------
    Refused
        If a statement is refused, if they are of several tables, or if the budget or a cap does
        not cover the plan. Nothing is charged then.
    """
    beside = RequestedTarget(
        half_width=request.target.half_width, confidence=request.target.confidence
    )
    workloads = [plan_statement(_text(one), beside) for one in read_file(request.sql)]
    tables = _check_together(workloads)
    table, alone = table_named(tables[0]), alone_named(tables[0])
    cap = _cap(request.target.epsilon_cap, workloads)
    if alone is None:
        return _planned_and_bought(request, workloads, table, cap)
    report = _of_asking_alone(request, workloads, alone, cap, table.budget(request.caller.payer))
    if request.buy:
        try:
            _planned_and_bought(request, workloads, table, None)
        except (BudgetExhausted, LimitReached) as refusal:
            raise unaffordable(refusal, alone, report.epsilon) from None
    return report


def _of_asking_alone(
    request: BatchRequest,
    workloads: Sequence[Workload],
    alone: EmptyHistory,
    cap: Fraction | None,
    budget: BudgetStatus,
) -> BatchReport:
    """What the statements cost who asks alone; refused if that is more than they may cost."""
    snapshot = alone.snapshot()
    items = _items(snapshot, workloads)
    plan = _planned(items, alone.info.schema, ())
    plan = with_kept_promises(plan, _queries(items), snapshot.prospect)
    epsilon = snapshot.price(plan.measurements).epsilon
    if request.buy:
        try:
            snapshot.check(plan.measurements, request.caller.payer, epsilon_cap=cap)
        except BudgetExhausted as refusal:
            raise unaffordable(refusal, alone, epsilon) from None
    n_measurements = len(plan.measurements)
    return BatchReport(_table(items, plan), epsilon, n_measurements, request.buy, budget)


def _planned_and_bought(
    request: BatchRequest,
    workloads: Sequence[Workload],
    table: ServedTable,
    cap: Fraction | None,
) -> BatchReport:
    """The plan for the history as it is, bought if the request says so."""
    for _ in range(N_OVERTAKEN_MAX):
        snapshot = table.snapshot()
        items = _items(snapshot, workloads)
        history = snapshot.charges.measurements
        plan = _planned(items, table.info.schema, history)
        try:
            plan = with_kept_promises(plan, _queries(items), snapshot.prospect)
            epsilon = snapshot.price(plan.measurements).epsilon
            if request.buy and plan.measurements:
                payer = request.caller.payer
                epsilon = table.buy_plan(plan.measurements, len(history), payer, epsilon_cap=cap)
        except StalePlan:
            continue  # something was bought meanwhile: the plan is for another history
        return BatchReport(
            data=_table(items, plan),
            epsilon=epsilon,
            n_measurements=len(plan.measurements),
            is_bought=request.buy,
            budget=table.budget(request.caller.payer),
        )
    raise InvalidRequest(
        "While the batch was planned, others bought something, time and again.",
        hint="Nothing was charged. Ask it when less is going on, or in smaller parts.",
    )


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
    """The one private table that the statements ask."""
    tables = sorted({table for workload in workloads for table in workload.tables})
    if not tables:
        raise InvalidRequest("The statements ask nothing of a private table.")
    if len(tables) > 1:
        raise InvalidRequest(
            f"The statements are of several tables: {', '.join(tables)}.",
            hint="Plan the statements of one table at a time.",
        )
    return tables


def _cap(of_batch: Fraction | None, workloads: Sequence[Workload]) -> Fraction | None:
    """The batch's own cap, and what its statements' caps add up to if each has one."""
    caps = [part.epsilon_cap for workload in workloads for part in workload.parts]
    of_statements = [cap for cap in caps if cap is not None]
    if len(of_statements) < len(caps):
        return of_batch
    together = sum(of_statements, Fraction(0))
    return together if of_batch is None else min(of_batch, together)


def _items(table: TableSnapshot, workloads: Sequence[Workload]) -> list[_Item]:
    """Every linear query that has rows, and what is known of it."""
    wanted = [
        (number, aggregate, Wanted(block, aggregate.target))
        for number, workload in enumerate(workloads, start=1)
        for part in workload.parts
        for aggregate in part.aggregates
        for block in aggregate.blocks
    ]
    known = table.estimates([one for _, _, one in wanted])
    return [
        _Item(number, aggregate, one, _widest(rows, one.target.confidence))
        for (number, aggregate, one), rows in zip(wanted, known, strict=True)
    ]


def _planned(items: Sequence[_Item], schema: Schema, history: Sequence[Measurement]) -> BatchPlan:
    try:
        return plan_batch(_queries(items), schema, history)
    except CannotStart as missing:  # the server lacks an optional part; it goes on serving
        raise InvalidRequest(missing.message, hint=missing.hint) from None


def _queries(items: Sequence[_Item]) -> list[Wanted]:
    return [item.wanted for item in items]


def _widest(rows: Sequence[RowEstimate], confidence: float) -> float | None:
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
