"""Receipts, budgets and limits as messages of `tacit.v1`."""

from typing import Final

from accountant.ledger.budget import Renewal
from accountant.ledger.limits import Window
from proxy.api.requests import BudgetStatus, LimitStatus, Receipt
from proxy.protocol import tacit_pb2

WINDOW_NOTE: Final = "The window spreads the budget over time; it is no guarantee over a lifetime."


def receipt_message(receipt: Receipt) -> tacit_pb2.Receipt:
    """A receipt as a message."""
    return tacit_pb2.Receipt(
        table=receipt.table,
        epsilon_spent=float(receipt.epsilon_spent),
        columns=[
            tacit_pb2.ColumnReceipt(
                name=column.name,
                confidence=column.confidence,
                epsilon_spent=float(column.epsilon_spent),
                source=column.source,
                low=column.low,
                high=column.high,
            )
            for column in receipt.columns
        ],
        budget=None if receipt.budget is None else budget_message(receipt.budget),
        notes=receipt.notes,
    )


def budget_message(budget: BudgetStatus) -> tacit_pb2.Budget:
    """A budget, with the limits that bind the caller."""
    return tacit_pb2.Budget(
        table=budget.table,
        epsilon_limit=float(budget.limit),
        epsilon_spent=float(budget.spent),
        epsilon_left=float(budget.left),
        n_measurements=budget.n_measurements,
        limits=[limit_message(status) for status in budget.limits],
        renewal=None if budget.renewal is None else _renewal_message(budget.renewal),
    )


def _renewal_message(renewal: Renewal) -> tacit_pb2.Renewal:
    in_year, in_all = renewal.spent_in_year, renewal.spent_in_all
    return tacit_pb2.Renewal(
        window=renewal.window,
        renews_on=renewal.next_day,
        epsilon_spent_in_year=None if in_year is None else float(in_year),
        epsilon_spent_in_all=None if in_all is None else float(in_all),
    )


def limit_message(status: LimitStatus) -> tacit_pb2.LimitStatus:
    """A limit, and what currently counts towards it."""
    return tacit_pb2.LimitStatus(
        subject=status.subject,
        window=status.window,
        epsilon_limit=None if status.limit is None else float(status.limit),
        epsilon_spent=float(status.spent),
        epsilon_left=None if status.left is None else float(status.left),
        per_query=None if status.per_query is None else float(status.per_query),
        note="" if status.window == Window.NEVER else WINDOW_NOTE,
    )
