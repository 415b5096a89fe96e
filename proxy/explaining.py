"""What EXPLAIN PRIVACY shows: for each aggregate its source, what is known, and its price."""

from collections.abc import Sequence
from dataclasses import dataclass
from fractions import Fraction

import pyarrow as pa

from inference.estimator import RowEstimate
from inference.posterior import Posterior
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
        pa.field("epsilon", pa.float64(), nullable=False),
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


def build_explanation(
    workload: Workload, explained: Sequence[ExplainedAggregate], budget: BudgetStatus
) -> Explanation:
    """The explanation as a table, one row for each aggregate."""
    target = workload.target
    rows = []
    left = budget.left
    for aggregate in explained:
        left -= aggregate.epsilon
        known = _widest(aggregate.known, target.confidence)
        promised = target.half_width if known is None else min(known, target.half_width)
        rows.append(
            {
                "aggregate": aggregate.name,
                "expression": aggregate.sql,
                "n_rows": workload.n_rows,
                "source": aggregate.source,
                "half_width_wanted": target.half_width,
                "confidence": target.confidence,
                "half_width_known": known,
                "half_width_promised": promised,
                "epsilon": float(aggregate.epsilon),
                "epsilon_left_after": float(max(left, Fraction(0))),
                "fits_budget": left >= 0,
            }
        )
    total = sum((aggregate.epsilon for aggregate in explained), Fraction(0))
    table = pa.Table.from_pylist(rows, schema=EXPLANATION_SCHEMA)
    return Explanation(data=table, epsilon=total, budget=budget)


def _widest(rows: Sequence[RowEstimate], confidence: float) -> float | None:
    """The widest half-width among the rows; None if any is not determined."""
    known = [row for row in rows if isinstance(row, Posterior)]
    if len(known) < len(rows):
        return None
    return max((row.half_width(confidence) for row in known), default=0.0)
