"""What EXPLAIN PRIVACY shows: for each aggregate what is known, and what could be bought."""

from collections.abc import Sequence
from dataclasses import dataclass
from fractions import Fraction
from typing import Any

import pyarrow as pa

from inference.posterior import Posterior, RowEstimate
from planner.offers import Offer
from planner.workload import Workload
from proxy.answers import BudgetStatus, Explanation

EXPLANATION_SCHEMA = pa.schema(
    [
        pa.field("aggregate", pa.string(), nullable=False),
        pa.field("expression", pa.string(), nullable=False),
        pa.field("n_rows", pa.int64(), nullable=False),
        pa.field("source", pa.string(), nullable=False),
        pa.field("half_width_wanted", pa.float64(), nullable=False),
        pa.field("confidence", pa.float64(), nullable=False),
        pa.field("half_width_known", pa.float64()),  # null: the history does not determine it
        pa.field("half_width_promised", pa.float64(), nullable=False),
        pa.field("candidate", pa.string()),  # null: nothing needs to be measured
        pa.field("columns", pa.string()),  # that the candidate answers queries on
        pa.field("chosen", pa.bool_(), nullable=False),
        pa.field("epsilon", pa.float64(), nullable=False),
        pa.field("rent", pa.float64()),  # paid before on these columns for narrower measurements
        pa.field("epsilon_left_after", pa.float64(), nullable=False),
        pa.field("fits_budget", pa.bool_(), nullable=False),
    ]
)


@dataclass(frozen=True, slots=True)
class ExplainedAggregate:
    """One aggregate before anything is bought."""

    name: str
    sql: str
    source: str
    known: tuple[RowEstimate, ...]
    epsilon: Fraction
    offers: tuple[Offer, ...]


def build_explanation(
    workload: Workload, explained: Sequence[ExplainedAggregate], budget: BudgetStatus
) -> Explanation:
    """The explanation as a table: a row for each candidate of each aggregate, or one without."""
    rows: list[dict[str, Any]] = []
    spent = Fraction(0)
    for aggregate in explained:
        public = _public(workload, aggregate)
        for offer in aggregate.offers:
            left = budget.left - spent - offer.epsilon
            rows.append(public | _offered(offer) | _remaining(left))
        if not aggregate.offers:
            rows.append(public | _not_needed() | _remaining(budget.left - spent))
        spent += aggregate.epsilon
    table = pa.Table.from_pylist(rows, schema=EXPLANATION_SCHEMA)
    return Explanation(data=table, epsilon=spent, budget=budget)


def _public(workload: Workload, aggregate: ExplainedAggregate) -> dict[str, Any]:
    target = workload.target
    known = _widest(aggregate.known, target.confidence)
    return {
        "aggregate": aggregate.name,
        "expression": aggregate.sql,
        "n_rows": workload.n_rows,
        "source": aggregate.source,
        "half_width_wanted": target.half_width,
        "confidence": target.confidence,
        "half_width_known": known,
        "half_width_promised": target.half_width
        if known is None
        else min(known, target.half_width),
    }


def _offered(offer: Offer) -> dict[str, Any]:
    return {
        "candidate": offer.name,
        "columns": ", ".join(offer.scope),
        "chosen": offer.is_chosen,
        "epsilon": float(offer.epsilon),
        "rent": float(offer.rent),
    }


def _not_needed() -> dict[str, Any]:
    return {"candidate": None, "columns": None, "chosen": True, "epsilon": 0.0, "rent": None}


def _remaining(left: Fraction) -> dict[str, Any]:
    return {"epsilon_left_after": float(max(left, Fraction(0))), "fits_budget": left >= 0}


def _widest(rows: Sequence[RowEstimate], confidence: float) -> float | None:
    """The widest half-width among the rows; None if any is not determined."""
    known = [row for row in rows if isinstance(row, Posterior)]
    if len(known) < len(rows):
        return None
    return max((row.half_width(confidence) for row in known), default=0.0)
