"""The messages of `Marginals`: the request as a value, the result as replies."""

from collections.abc import Iterator
from dataclasses import replace

from planner.consistent_sets import Consistency
from planner.sql.options import consistency_named
from planner.workload import RequestedTarget
from proxy.api.epsilon import exact_epsilon
from proxy.api.marginals import MadeMarginals, MarginalSet, MarginalsRequest
from proxy.api.requests import BudgetStatus
from proxy.protocol import tacit_pb2
from proxy.wire.arrow_ipc import stream_chunks
from proxy.wire.tacit.receipts import budget_message


def marginals_request(
    message: tacit_pb2.MarginalsRequest,
    named: RequestedTarget,
    settings: RequestedTarget,
) -> MarginalsRequest:
    """The request in a message.

    Parameters
    ----------
    message : MarginalsRequest
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
