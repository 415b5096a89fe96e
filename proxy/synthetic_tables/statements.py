"""Executes statements about synthetic tables; each returns a table with a known schema.

`planner.sql.synthetic_statements` parses them; the service decides what is allowed.
"""

from collections.abc import Sequence
from fractions import Fraction
from typing import Final

import pyarrow as pa

from cube.refusals import CostAboveCap, UnsupportedSql
from cube.shortfall import Shortfall
from planner.sql.synthetic_statements import CreateSynthetic, SyntheticStatement
from proxy.api.receipts import with_receipt
from proxy.api.requests import BudgetStatus, Caller, Explanation, QueryRequest, QueryResult, Receipt
from proxy.synthetic_tables.record import SyntheticRecord
from proxy.synthetic_tables.request import PlannedStep, Progress
from proxy.synthetic_tables.service import SyntheticTableService


def _columns(**types: pa.DataType) -> pa.Schema:
    return pa.schema([pa.field(name, kind, nullable=False) for name, kind in types.items()])


CREATED_SCHEMA: Final = _columns(
    name=pa.string(),
    source=pa.string(),
    method=pa.string(),
    n_rows=pa.int64(),
    epsilon_spent=pa.float64(),
    unknown=pa.string(),
    incomplete=pa.string(),
    n_charges=pa.int64(),
    evaluated=pa.string(),
)
PREVIEW_SCHEMA: Final = _columns(step=pa.string(), epsilon=pa.float64(), n_tables=pa.int64())
DROPPED_SCHEMA: Final = _columns(name=pa.string(), dropped=pa.bool_())


def statement_schema(statement: SyntheticStatement) -> pa.Schema:
    """The columns of a statement's result."""
    return CREATED_SCHEMA if isinstance(statement, CreateSynthetic) else DROPPED_SCHEMA


def run_statement(
    service: SyntheticTableService, statement: SyntheticStatement, request: QueryRequest
) -> QueryResult:
    """Execute a statement; its result. May charge.

    Raises
    ------
    Refused
    """
    caller = request.caller
    if not isinstance(statement, CreateSynthetic):
        dropped = service.drop(caller, statement.written, if_exists=statement.if_exists)
        row = {"name": statement.name, "dropped": dropped is not None}
        return QueryResult(pa.Table.from_pylist([row], schema=DROPPED_SCHEMA), None)
    check_cap(statement, request.target.epsilon_cap)
    record = service.create(caller, statement, unwatched)
    receipt = receipt_of(record, service.budget(caller, record.table))
    data = pa.Table.from_pylist([_created_row(record)], schema=CREATED_SCHEMA)
    return QueryResult(with_receipt(data, receipt), receipt)


def explain_statement(
    service: SyntheticTableService, statement: SyntheticStatement, caller: Caller
) -> Explanation:
    """The most that a statement would cost. Charges nothing.

    Raises
    ------
    Refused
    """
    if not isinstance(statement, CreateSynthetic):
        raise UnsupportedSql(
            "Dropping a synthetic table costs nothing and restores no budget.",
            hint="Explain a CREATE SYNTHETIC TABLE, or a SELECT.",
        )
    steps = service.preview(caller, statement)
    epsilon = sum((step.epsilon for step in steps), Fraction(0))
    return Explanation(preview_table(steps), epsilon, service.budget(caller, statement.table))


def preview_table(steps: Sequence[PlannedStep]) -> pa.Table:
    """The steps of a preview as a table."""
    rows = [
        {"step": step.name, "epsilon": float(step.epsilon), "n_tables": step.n_tables}
        for step in steps
    ]
    return pa.Table.from_pylist(rows, schema=PREVIEW_SCHEMA)


def check_cap(order: CreateSynthetic, cap: Fraction | None) -> None:
    """Raise CostAboveCap if a table may cost more than its session or call allows."""
    epsilon = order.epsilon + order.evaluate
    if cap is not None and epsilon > cap:
        raise CostAboveCap(
            Shortfall(
                table=order.table,
                epsilon_needed=epsilon,
                epsilon_left=cap,
                is_synthetic=True,
            )
        )


def receipt_of(record: SyntheticRecord, budget: BudgetStatus | None) -> Receipt:
    """The receipt for making a table; its rows have no intervals."""
    return Receipt(record.table, record.epsilon_spent, (), budget)


def unwatched(_step: Progress) -> None:
    """Ignore progress."""


def _created_row(record: SyntheticRecord) -> dict[str, object]:
    return {
        "name": record.name,
        "source": record.table,
        "method": str(record.method),
        "n_rows": record.n_rows,
        "epsilon_spent": float(record.epsilon_spent),
        "unknown": ", ".join(record.unknown),
        "incomplete": record.incomplete,
        "n_charges": record.n_charges,
        "evaluated": record.evaluated,
    }
