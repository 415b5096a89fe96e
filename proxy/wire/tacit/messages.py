"""Messages of `tacit.v1` as the engine's values, and its values as messages.

Receipts, budgets and limits; values of parameters; the request and the replies of `Marginals`; the
prior and the loss of a request for the best report of a count; and `TestIndependence` as SQL. That
call is a typed way to write one SELECT: its meaning, cost and refusals are that SELECT's.
"""

import datetime as dt
import math
from collections.abc import Iterator
from contextlib import suppress
from dataclasses import replace
from decimal import Decimal, InvalidOperation
from typing import Final

import numpy as np
import pyarrow as pa

from accountant.ledger import Window
from accountant.ledger.history import Renewal
from cube.refusals import InvalidRequest, InvalidSql, InvalidTarget, TooLarge
from inference import N_COUNTS_MAX, N_POINTS_MAX, CountPrior, Loss, LossTable
from planner.belief import Belief, PriorSelect, loss_named
from planner.lowering import FUNCTION, GIVEN
from planner.sql import Parameter, consistency_named, parameter_of
from planner.workload import Consistency, RequestedTarget
from proxy.api import (
    BudgetStatus,
    LimitStatus,
    MadeMarginals,
    MarginalSet,
    MarginalsRequest,
    QueryResult,
    Receipt,
    ReportedCount,
    exact_epsilon,
)
from proxy.engine.answers import TESTED_SCHEMA
from proxy.protocol import tacit_pb2
from proxy.wire.arrow_ipc import stream_chunks

WINDOW_NOTE: Final = (
    "The window spreads the budget over time; it does not bound the loss over a lifetime."
)


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


def independence_sql(request: tacit_pb2.TestIndependenceRequest) -> str:
    """The SELECT that a request stands for.

    >>> request = tacit_pb2.TestIndependenceRequest(table="t", x="a", y="b", given=["c"])
    >>> print(independence_sql(request))
    SELECT WITH DIFFERENTIAL_PRIVACY OPTIONS() DP_CHI2_TEST(a, b, GIVEN => (c)) FROM "t"

    Raises
    ------
    InvalidRequest, InvalidTarget
        If a required part is empty, or the level is not a number.
    """
    for name in ("table", "x", "y"):
        if not getattr(request, name).strip():
            raise InvalidRequest(
                f"The request names no {name}.", hint="A test needs x, y and a table."
            )
    options = []
    if request.HasField("level"):
        if not math.isfinite(request.level):
            raise InvalidTarget("level must be between 0 and 1.", hint="The usual value is 0.05.")
        options.append(f"level => {request.level:.17g}")
    if request.HasField("replicates"):
        options.append(f"replicates => {request.replicates}")
    if request.HasField("statistic"):
        options.append("statistic => '" + request.statistic.replace("'", "''") + "'")
    given = f", {GIVEN} => ({', '.join(request.given)})" if request.given else ""
    tested = ", ".join((request.x, request.y, *request.others))
    table = '"' + request.table.replace('"', '""') + '"'
    # On lines of its own, so that a comment at its end does not swallow the rest.
    where = f" WHERE (\n{request.where}\n)" if request.where.strip() else ""
    clause = f"WITH DIFFERENTIAL_PRIVACY OPTIONS({', '.join(options)})"
    return f"SELECT {clause} {FUNCTION}({tested}{given}) FROM {table}{where}"  # noqa: S608 - the caller's own SQL, planned like any


def check_is_test(schema: pa.Schema) -> None:
    """Refuse, before it is charged, a request whose texts make it a SELECT other than a test."""
    if schema.names != TESTED_SCHEMA.names:
        raise InvalidRequest(
            "Each of x, y, others, given and where must be a single expression.",
            hint="Send other statements as SQL with Query.",
        )


def independence_reply(
    release: QueryResult, receipt: tacit_pb2.Receipt
) -> tacit_pb2.TestIndependenceReply:
    """The outcome as a message."""
    (row,) = release.data.to_pylist()
    return tacit_pb2.TestIndependenceReply(**row, receipt=receipt)


N_LOSSES_MAX: Final = 1000  # rows of a table of losses
TABLE: Final = "table"


def belief_of(message: tacit_pb2.BestReportRequest) -> Belief:
    """The prior and the loss of a message.

    Raises
    ------
    InvalidRequest, TooLarge
    """
    if bool(message.prior) == bool(message.prior_sql):
        raise InvalidRequest(
            "The request needs one prior.",
            hint="Give the probability of each count, or a SELECT that gives the prior.",
        )
    counts = [point.value for point in message.prior]
    if counts and (min(counts) < 0 or len(set(counts)) < len(counts)):
        raise InvalidRequest(
            "A prior may name each count only once, and none below 0.", hint="Add up duplicates."
        )
    if len(counts) > N_POINTS_MAX or max(counts, default=0) > N_COUNTS_MAX:
        raise TooLarge(
            f"A prior has at most {N_POINTS_MAX} points, none above {N_COUNTS_MAX}.",
            hint="Name fewer counts.",
        )
    points = sorted((point.value, point.probability) for point in message.prior)
    try:
        prior = (
            CountPrior(tuple(one for one, _ in points), tuple(one for _, one in points))
            if points
            else PriorSelect(message.prior_sql)
        )
        return Belief(prior, _loss(message))
    except ValueError as error:
        raise InvalidRequest(
            f"The prior or the loss is not valid: {error}.",
            hint="Probabilities must sum to 1; a table of losses must be square, with one row "
            "per count.",
        ) from None


def _loss(message: tacit_pb2.BestReportRequest) -> Loss:
    if message.loss != TABLE:
        return loss_named(message.loss, message.power if message.HasField("power") else None)
    if len(message.loss_table) > N_LOSSES_MAX:
        raise TooLarge(
            f"A table of losses has at most {N_LOSSES_MAX} rows.", hint="Name a loss instead."
        )
    rows = [list(row.losses) for row in message.loss_table]
    if not rows or {len(row) for row in rows} != {len(rows)}:
        raise ValueError("a table of losses has a loss for each truth and report")
    return LossTable(np.array(rows))


def report_reply(reported: ReportedCount, release: QueryResult) -> tacit_pb2.BestReportReply:
    """The best report as a message."""
    return tacit_pb2.BestReportReply(
        report=reported.value,
        expected_loss=reported.expected_loss,
        answer=reported.answer,
        receipt=None if release.receipt is None else receipt_message(release.receipt),
        interval=tacit_pb2.PosteriorInterval(
            low=reported.low,
            high=reported.high,
            confidence=reported.confidence,
            probability=reported.probability,
        ),
    )


_KINDS: Final = ("boolean", "integer", "number", "decimal", "text", "date", "timestamp")


def parameter_in(message: tacit_pb2.Parameter) -> Parameter:
    """The parameter that a message has.

    Raises
    ------
    InvalidSql
        If its text is no number, date or time, or its number is not finite.
    """
    sent = [kind for kind in _KINDS if message.HasField(kind)]
    if len(sent) > 1:
        raise InvalidSql("A parameter has several values.", hint="Send one of them.")
    if not sent:
        return parameter_of(None, message.name)
    (kind,) = sent
    value = getattr(message, kind)
    with suppress(ValueError, InvalidOperation):
        match kind:
            case "decimal":
                value = Decimal(value)
            case "date":
                value = dt.date.fromisoformat(value)
            case "timestamp":
                value = dt.datetime.fromisoformat(value)
        return parameter_of(value, message.name)
    raise InvalidSql(
        f"The value of a parameter is not a valid {kind}.",
        hint="Write decimals as 12.50, dates as 2026-01-31, timestamps as 2026-01-31 12:30:00.",
    )


def marginals_request(
    message: tacit_pb2.MarginalsRequest,
    named: RequestedTarget,
    settings: RequestedTarget,
) -> MarginalsRequest:
    """The request in a message.

    Parameters
    ----------
    named : RequestedTarget
        The message's own target.
    settings : RequestedTarget
        The session's settings, for what the message leaves out.

    Raises
    ------
    InvalidTarget
        If the budget is not a number, or there is no such consistency.
    """
    budget = exact_epsilon("budget", message.budget) if message.HasField("budget") else None
    if budget is not None:
        settings = replace(settings, half_width=None)
    return MarginalsRequest(
        table=message.table,
        sets=tuple(
            MarginalSet(tuple(one.columns), one.importance if one.HasField("importance") else 1.0)
            for one in message.sets
        ),
        target=named.over(settings),
        budget=budget,
        consistency=consistency_named(message.consistency or Consistency.EXACT),
        public_total=message.public_total if message.HasField("public_total") else None,
    )


def marginals_replies(
    made: MadeMarginals, budget: BudgetStatus
) -> Iterator[tacit_pb2.MarginalsReply]:
    """The tables in pieces, then facts about them."""
    for chunk in stream_chunks(made.data):
        yield tacit_pb2.MarginalsReply(ipc=chunk)
    yield tacit_pb2.MarginalsReply(
        summary=tacit_pb2.MarginalsSummary(
            consistency=made.consistency.value,
            epsilon_spent=float(made.epsilon_spent),
            confidence=made.confidence,
            misfit=made.misfit,
            residual=made.residual,
            notes=made.notes,
            budget=budget_message(budget),
        )
    )
