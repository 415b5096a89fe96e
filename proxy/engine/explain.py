"""EXPLAIN PRIVACY: for each aggregate, what is known and what could be bought."""

from collections.abc import Sequence
from dataclasses import dataclass, replace
from fractions import Fraction
from typing import Any

import pyarrow as pa

from cube.schema import Schema
from inference.block_estimates import RowEstimates
from inference.posterior import Posterior
from planner.measuring.offers import Offer
from planner.workload import Part, Wanted
from proxy.api.requests import (
    SOURCE_HISTORY,
    SOURCE_MEASURED,
    SOURCE_PUBLIC,
    BudgetStatus,
    Explanation,
)
from proxy.engine.alternatives import free_widths
from proxy.engine.asked import asked_of, at_widths, smallest_cap, take_step
from proxy.engine.clipping import advice
from proxy.engine.postprocessing import OuterSql
from proxy.engine.search import opened
from proxy.engine.units_beside import counted_as_rows
from proxy.tables.self_answering import AS_IT_IS
from proxy.tables.snapshot import TableSnapshot

EXPLANATION_SCHEMA = pa.schema(
    [
        pa.field("aggregate", pa.string(), nullable=False),
        pa.field("expression", pa.string(), nullable=False),
        pa.field("answer", pa.string(), nullable=False),  # the column that rests on it, or several
        pa.field("answer_known", pa.float64()),  # the half-width at which that is free now
        pa.field("n_rows", pa.int64(), nullable=False),
        pa.field("source", pa.string(), nullable=False),
        pa.field("half_width_wanted", pa.float64(), nullable=False),
        pa.field("confidence", pa.float64(), nullable=False),
        pa.field("half_width_known", pa.float64()),  # null: not determined by the history
        pa.field("half_width_promised", pa.float64()),  # null: seen once it is asked
        pa.field("candidate", pa.string()),  # null: nothing needs to be measured
        pa.field("noise", pa.string()),  # "laplace" or "gaussian", of what the candidate measures
        pa.field("columns", pa.string()),  # the columns whose queries the candidate answers
        pa.field("chosen", pa.bool_(), nullable=False),
        pa.field("epsilon", pa.float64(), nullable=False),
        pa.field("rent", pa.float64()),  # paid earlier for narrower measurements on these columns
        pa.field("epsilon_left_after", pa.float64()),  # null: the table has no budget
        pa.field("fits_budget", pa.bool_(), nullable=False),
        pa.field("is_at_least", pa.bool_(), nullable=False),  # noisy values decide about more
        pa.field(
            "epsilon_foreseen", pa.float64()
        ),  # of the whole search; null: nothing is searched
        pa.field(
            "advice", pa.string()
        ),  # what would cost less, or tell more; null: nothing is known
    ]
)


@dataclass(frozen=True, slots=True)
class ExplainedBlock:
    """One block before anything is bought.

    Parameters
    ----------
    aggregate : int
        The place of its aggregate in the part.
    wanted : Wanted
    known : tuple of (Posterior or NotEstimable)
        What the history says of its rows.
    offers : tuple of Offer
        What could be bought for it.
    advice : str, optional
        What would cost less, or tell more.
    own_width : float, optional
        Of a table that answers by itself, the half-width that it will have, if that can be said.
    """

    aggregate: int
    wanted: Wanted
    known: RowEstimates
    offers: tuple[Offer, ...]
    advice: str | None = None
    own_width: float | None = None

    @property
    def epsilon(self) -> Fraction:
        """The price of what would be bought."""
        return sum((offer.epsilon for offer in self.offers if offer.is_chosen), Fraction(0))


@dataclass(frozen=True, slots=True)
class ExplainedPart:
    """One part before anything is bought.

    `foreseen` is about what all searches of the statement on this table will have cost in the end;
    None if there is none. `own_source` is the source of a table that answers by itself. `free` are
    the half-widths at which its answers are free now, where they are known.
    """

    part: Part
    blocks: tuple[ExplainedBlock, ...]
    foreseen: Fraction | None = None
    own_source: str | None = None
    free: tuple[float | None, ...] = ()

    def resting_on(self, aggregate: int) -> tuple[str, float | None]:
        """The names of the answers that use an aggregate, and the widest that they are known."""
        used = [place for place, one in enumerate(self.part.answers) if aggregate in one.uses]
        names = ", ".join(self.part.answers[place].name for place in used)
        known = [self.free[place] for place in used] if self.free else [None]
        found = [one for one in known if one is not None]
        return names, max(found) if found and len(found) == len(known) else None


def explained(
    table: TableSnapshot,
    schema: Schema,
    parts: Sequence[Part],
    outer: OuterSql,
    units: Schema | None = None,
) -> list[ExplainedPart]:
    """What is known of every block of the parts, and what could be bought for it.

    Parameters
    ----------
    table : TableSnapshot
    schema : Schema
    parts : sequence of Part
        All that the statement asks of the table.
    outer : OuterSql
    units : Schema, optional
        Of the table with one row for each unit of this one, if the caller may know of it.
    """
    asked = asked_of(parts, smallest_cap(parts))
    step = opened(table, schema, parts, asked, outer)
    take_step(asked, step)
    wanted = [one.wanted for one in asked]
    known = table.estimates(wanted)
    plan = table.plan(wanted, known, every_offer=True)
    in_the_end, foreseen = wanted, None
    if any(part.is_searched for part in parts):
        in_the_end = at_widths(asked, step.foreseen, smallest_cap(parts))
        in_all = table.plan(in_the_end, known)
        foreseen = table.price(in_all.planned, in_all.counts).epsilon
    blocks: dict[int, list[ExplainedBlock]] = {place: [] for place in range(len(parts))}
    for place, one in enumerate(asked):
        better = counted_as_rows(units, one.wanted) or advice(table, schema, in_the_end[place])
        found = ExplainedBlock(one.aggregate, one.wanted, known[place], plan.offers[place], better)
        blocks[one.part].append(found)
    free = free_widths(table, parts, asked, known, outer)
    return [
        ExplainedPart(
            part,
            tuple(blocks[place]),
            foreseen if part.is_searched else None,
            free=tuple(free.get((place, number)) for number in range(len(part.answers))),
        )
        for place, part in enumerate(parts)
    ]


def advised_to(part: ExplainedPart, said: str) -> ExplainedPart:
    """The same part, with a sentence about each of its blocks."""
    blocks = (
        replace(one, advice=said if one.advice is None else f"{said} {one.advice}")
        for one in part.blocks
    )
    return replace(part, blocks=tuple(blocks))


def build_explanation(
    explained: Sequence[ExplainedPart], budgets: Sequence[BudgetStatus]
) -> Explanation:
    """The explanation as a table: one row per candidate of an aggregate; at least one row.

    Its epsilon is that of the first round, or what is foreseen of a search, whichever is more.
    """
    left = {budget.table: budget.left for budget in budgets}
    rows: list[dict[str, Any]] = []
    totals = dict.fromkeys(left, Fraction(0))
    foreseen = dict.fromkeys(left, Fraction(0))
    for one in explained:
        table = one.part.table
        if one.own_source is not None:
            rows += [_own(one, one.own_source, block) for block in one.blocks]
            continue
        foreseen[table] = max(foreseen[table], one.foreseen or Fraction(0))
        for block in one.blocks:
            public = _public(one, block)
            public |= {
                "is_at_least": one.part.is_searched and bool(block.offers),
                "epsilon_foreseen": None if one.foreseen is None else float(one.foreseen),
            }
            rows += [
                public | _offered(offer) | _remaining(left[table] - offer.epsilon)
                for offer in block.offers
            ]
            if not block.offers:
                rows.append(public | _not_needed() | _remaining(left[table]))
            left[table] -= block.epsilon
            totals[table] += block.epsilon
    data = pa.Table.from_pylist(rows, schema=EXPLANATION_SCHEMA)
    total = sum((max(totals[name], foreseen[name]) for name in left), Fraction(0))
    return Explanation(data=data, epsilon=total, budget=budgets[0] if budgets else None)


def _public(one: ExplainedPart, block: ExplainedBlock) -> dict[str, Any]:
    aggregate, target = one.part.aggregates[block.aggregate], block.wanted.target
    answer, answer_known = one.resting_on(block.aggregate)
    known = _widest(block.known, target.confidence)
    source = SOURCE_MEASURED
    if aggregate.is_constant:
        source = SOURCE_PUBLIC
    elif known is not None and known <= target.half_width:
        source = SOURCE_HISTORY
    return {
        "aggregate": aggregate.name,
        "expression": aggregate.sql,
        "answer": answer,
        "answer_known": answer_known,
        "n_rows": block.wanted.block.n_rows,
        "source": source,
        "half_width_wanted": target.half_width,
        "confidence": target.confidence,
        "half_width_known": known,
        "half_width_promised": target.half_width
        if known is None
        else min(known, target.half_width),
        "advice": block.advice,
    }


def _own(one: ExplainedPart, source: str, block: ExplainedBlock) -> dict[str, Any]:
    """A block of a table that answers by itself: free, and as narrow as it is."""
    aggregate, width = one.part.aggregates[block.aggregate], block.own_width
    answer, _ = one.resting_on(block.aggregate)
    wanted = block.wanted.target.half_width
    return {
        "aggregate": aggregate.name,
        "expression": aggregate.sql,
        "answer": answer,
        "answer_known": None,
        "n_rows": block.wanted.block.n_rows,
        "source": SOURCE_PUBLIC if aggregate.is_constant else source,
        "half_width_wanted": width
        if width is not None and wanted >= AS_IT_IS.half_width
        else wanted,
        "confidence": block.wanted.target.confidence,
        "half_width_known": width,
        "half_width_promised": width,
        "is_at_least": False,
        "fits_budget": True,
        **_not_needed(),
    }


def _offered(offer: Offer) -> dict[str, Any]:
    return {
        "candidate": offer.name,
        "noise": "gaussian" if offer.is_gaussian else "laplace",
        "columns": ", ".join(offer.scope),
        "chosen": offer.is_chosen,
        "epsilon": float(offer.epsilon),
        "rent": float(offer.rent),
    }


def _not_needed() -> dict[str, Any]:
    return {
        "candidate": None,
        "noise": None,
        "columns": None,
        "chosen": True,
        "epsilon": 0.0,
        "rent": None,
    }


def _remaining(left: Fraction) -> dict[str, Any]:
    return {"epsilon_left_after": float(max(left, Fraction(0))), "fits_budget": left >= 0}


def _widest(rows: RowEstimates, confidence: float) -> float | None:
    """The widest half-width among the rows; None if any is not determined."""
    known = [row for row in rows if isinstance(row, Posterior)]
    if len(known) < len(rows):
        return None
    return max((row.half_width(confidence) for row in known), default=0.0)
