"""What is left of a budget, as the command line says it: one line, and fields of a JSON object.

A budget that renews says until when, and what was spent beyond its window; one that does not is
told as ever. Nothing here asks a server.
"""

from typing import Any

from proxy.api.renewal_text import renewal_words, this_window
from proxy.protocol import tacit_pb2


def left_text(budget: tacit_pb2.Budget) -> str:
    """What is left for a table, on one line."""
    left = f"{budget.epsilon_left:.6g} of {budget.epsilon_limit:.6g} left"
    if not budget.HasField("renewal"):
        return f"{left} for {budget.table}"
    renewal = budget.renewal
    return f"{left} for {budget.table} {this_window(renewal.window)}; {renewal_text(renewal)}"


def after_cost(
    told: tacit_pb2.Receipt | tacit_pb2.ExplainReply | tacit_pb2.PreviewSyntheticReply,
) -> str:
    """What is left, after what is spent; nothing for a table without a budget."""
    return f"; {left_text(told.budget)}" if told.HasField("budget") else ""


def renewal_text(renewal: tacit_pb2.Renewal) -> str:
    """When a budget renews, and what was spent in a year and in all."""
    return renewal_words(renewal.renews_on, *_sums(renewal))


def left_fields(budget: tacit_pb2.Budget) -> dict[str, Any]:
    """What is left for a table, for a program."""
    told: dict[str, Any] = {"epsilon_left": budget.epsilon_left}
    if budget.HasField("renewal"):
        in_year, in_all = _sums(budget.renewal)
        told["renewal"] = {
            "window": budget.renewal.window,
            "renews_on": budget.renewal.renews_on,
            "epsilon_limit": budget.epsilon_limit,
            "epsilon_spent_in_year": in_year,
            "epsilon_spent_in_all": in_all,
        }
    return told


def _sums(renewal: tacit_pb2.Renewal) -> tuple[float | None, float | None]:
    """What was spent in the last twelve months, and in all; None for what may not be learnt."""
    return (
        renewal.epsilon_spent_in_year if renewal.HasField("epsilon_spent_in_year") else None,
        renewal.epsilon_spent_in_all if renewal.HasField("epsilon_spent_in_all") else None,
    )
