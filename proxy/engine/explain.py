"""EXPLAIN: what is known and could be bought, in our form and PostgreSQL's, and advice beside it.

Advice to clip a heavy tail: what a sum with a cap would cost, and how few rows that concerns.

A sum costs in proportion to the largest value that one person may have. Where the history already
says that few rows are near it, EXPLAIN names a cap and the price of the sum with it. It reads noisy
answers that were released, charges nothing, and decides about no purchase.

How much a capped sum is too low is not said here: the analyst asks for it, or accepts it.

Advice to count units in the table with one row for each, where that counts them better.

It is no other way to the same number: a unit all of whose rows are left out of a table, for want of
a level, is in the table of its units. So a statement is never answered by the other table.

EXPLAIN PRIVACY: for each aggregate, what is known and what could be bought.

An explanation in the forms in which PostgreSQL shows plans: a column "QUERY PLAN".

Clients that ask for these forms read them as they read PostgreSQL's: lines of text, or one text of
JSON with a list of one plan. Our own table has more room, and is what EXPLAIN alone gives.
"""

import json
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, replace
from fractions import Fraction
from typing import Any, Final

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from cube.axis import Axis, IntegerAxis, MeasureAxis
from cube.query import Factor, LinearQuery, QueryBlock, Term, counting
from cube.refusals import InvalidTarget, TooLarge
from cube.schema import Schema
from cube.statistic import UNIT_COUNT
from cube.target import AccuracyTarget
from inference import Posterior, RowEstimates
from planner.measuring import Offer
from planner.sql import ExplainForm, PlanFormat
from planner.workload import Aggregate, Part, Wanted
from proxy.api import SOURCE_HISTORY, SOURCE_MEASURED, SOURCE_PUBLIC, BudgetStatus, Explanation
from proxy.engine.answers import asked_of, at_widths, smallest_cap, take_step
from proxy.engine.search import free_widths, opened
from proxy.outer_sql.postprocessing import OuterSql
from proxy.tables import AS_IT_IS, TableSnapshot

N_HALVINGS: Final = 8  # of the largest value: a cap saves about a factor of 2 with each
FEW: Final = 0.01  # of the rows of the table
SAVED_AT_LEAST: Final = Fraction(1, 2)  # of the price; less is not worth a bias
N_LEVELS_MAX: Final = 2**20  # of a column: beyond it a cap takes longer to find than EXPLAIN may


@dataclass(frozen=True, slots=True)
class Cap:
    """A largest value of a column.

    Parameters
    ----------
    level : int
        The last level that is not capped.
    value : float
        The value of that level.
    """

    axis: Axis
    level: int
    value: float

    def __str__(self) -> str:
        return f"LEAST({self.axis.name}, {self.value:.15g})"  # every level exactly

    @property
    def rows_above(self) -> QueryBlock:
        """The number of rows of the table that it would change."""
        places = np.arange(self.axis.size)
        is_above = (places > self.level) & (places < self.axis.n_regular)
        return QueryBlock(counting([Factor((self.axis.name,), is_above.astype(np.int64))]))

    def applied(self, block: QueryBlock) -> QueryBlock:
        """The same sum of capped values; distances from the middle are those from their middle."""
        terms = tuple(
            Term(term.scale, tuple(self._capped(factor) for factor in term.factors))
            for term in block.query.terms
        )
        return QueryBlock(LinearQuery(terms, block.query.constant), block.partition)

    def _capped(self, factor: Factor) -> Factor:
        if factor.axes != (self.axis.name,):
            return factor
        least, largest = factor.ends
        regular = slice(self.axis.n_regular)
        capped = factor.values.copy()
        capped[regular][self.level + 1 :] = capped[self.level]
        if abs(least + largest) <= 1:  # a middle is rounded to a whole number
            capped[regular] -= (capped[regular].min() + capped[regular].max()) // 2
        return Factor(factor.axes, capped)


def advice(table: TableSnapshot, schema: Schema, wanted: Wanted) -> str | None:
    """A cap that would save at least half of a price and concern few rows; None if none is known.

    Parameters
    ----------
    wanted : Wanted
        Sums, and how accurately they are asked for in the end.
    """
    for cap in _caps(schema, wanted.block):
        share = _share_above(table, cap, wanted.target)
        if share is not None and share <= FEW:
            epsilon = _price(table, wanted)
            capped = _price(table, replace(wanted, block=cap.applied(wanted.block)))
            if not epsilon or capped is None or capped > SAVED_AT_LEAST * epsilon:
                return None
            return (
                f"{cap} costs about {float(capped):.3g} instead of {float(epsilon):.3g}. By the "
                f"history, at most {share:.1%} of the table's rows are above."
            )
    return None


def _caps(schema: Schema, block: QueryBlock) -> Iterator[Cap]:
    """Caps of the one column that is summed, the smallest first."""
    summed = {
        factor.axes for term in block.query.terms for factor in term.factors if factor.bound > 1
    }
    if len(summed) != 1 or len(axes := summed.pop()) != 1:
        return
    axis = schema.by_name[axes[0]]
    if not isinstance(axis, MeasureAxis | IntegerAxis) or axis.n_regular > N_LEVELS_MAX:
        return
    factors = [one for term in block.query.terms for one in term.factors if one.axes == axes]
    if not all(_is_monotone(factor, axis) for factor in factors):
        return
    values = np.array(axis.regular, dtype=np.float64)
    for halvings in range(N_HALVINGS, 0, -1):
        level = int(np.searchsorted(values, values[-1] / 2**halvings, side="right")) - 1
        if level >= 0 and values[level] > max(0.0, -values[0]):
            yield Cap(axis, level, float(values[level]))


def _is_monotone(factor: Factor, axis: Axis) -> bool:
    """Whether coefficients rise or fall with the column, so that a cap is one for them, too."""
    steps: NDArray[np.int64] = np.diff(factor.values[: axis.n_regular])
    return bool(np.all(steps >= 0) or np.all(steps <= 0))


def _share_above(table: TableSnapshot, cap: Cap, target: AccuracyTarget) -> float | None:
    """At most what share of the rows is above, at the target's confidence; None if unknown."""
    asked = [Wanted(block, target) for block in (cap.rows_above, QueryBlock(counting()))]
    above, every = (rows[0] for rows in table.estimates(asked))
    if not isinstance(above, Posterior) or not isinstance(every, Posterior):
        return None
    confidence = target.confidence
    least = every.value - every.half_width(confidence)
    most = above.value + above.half_width(confidence)
    return max(0.0, most) / least if least > 0 else None


def _price(table: TableSnapshot, wanted: Wanted) -> Fraction | None:
    asked: Sequence[Wanted] = [wanted]
    try:
        return table.price(table.plan(asked, table.estimates(asked)).planned).epsilon
    except (InvalidTarget, TooLarge):
        return None


def counted_as_rows(units: Schema | None, wanted: Wanted) -> str | None:
    """What to ask instead of a count of units; None if it depends on more than their attributes.

    Parameters
    ----------
    units : Schema, optional
        Of the table with one row for each unit, if there is one that the caller may know of.
    wanted : Wanted
        Counts of rows or of units.
    """
    if units is None or wanted.rule is None or wanted.rule[::2] != (UNIT_COUNT, False):
        return None
    if not units.by_name.keys() >= set(wanted.block.scope):
        return None
    return (
        f"COUNT(*) FROM {units.table} counts every {units.unit}, whatever rows are kept, costs no "
        "more, and shares its history."
    )


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
        pa.field(
            "noise", pa.string()
        ),  # "laplace" or "gaussian": the noise that the candidate measures with
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
        pa.field("posterior", pa.string()),  # how laws are computed; null: not by a history
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
    known : tuple of (Posterior or NotEstimable)
        What the history knows about its rows.
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
        """The price of the chosen offers."""
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
    parts : sequence of Part
        All that the statement asks of the table.
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


def advised_by(part: ExplainedPart, advice_on: Callable[[Aggregate], str | None]) -> ExplainedPart:
    """The same part, with advice on what is to be bought, where there is none yet."""
    blocks = (
        replace(one, advice=advice_on(part.part.aggregates[one.aggregate]))
        if one.advice is None and one.offers
        else one
        for one in part.blocks
    )
    return replace(part, blocks=tuple(blocks))


def build_explanation(
    explained: Sequence[ExplainedPart], budgets: Sequence[BudgetStatus]
) -> Explanation:
    """The explanation as a table: one row per candidate of an aggregate; at least one row.

    Its epsilon is the price of the first round or the foreseen price of a search, whichever is
    more.
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
                "posterior": one.part.posterior.value,
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
        "posterior": None,
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


PLAN_SCHEMA: Final = pa.schema([pa.field("QUERY PLAN", pa.string(), nullable=False)])
_NOT_RUN: Final = "EXPLAIN ANALYZE does not run the statement, and charges nothing."


def plan_columns(form: ExplainForm) -> pa.Schema:
    """The columns of an explanation in a form."""
    return EXPLANATION_SCHEMA if form.shown_as is PlanFormat.TABLE else PLAN_SCHEMA


def shown_plan(explanation: Explanation, form: ExplainForm) -> pa.Table:
    """An explanation in a form."""
    if form.shown_as is PlanFormat.TABLE:
        return explanation.data
    if form.shown_as is PlanFormat.JSON:
        lines = [json.dumps([_plan(explanation, form)], indent=2)]
    else:
        lines = list(_lines(explanation, form))
    return pa.Table.from_arrays([pa.array(lines, pa.string())], schema=PLAN_SCHEMA)


def _lines(explanation: Explanation, form: ExplainForm) -> Iterator[str]:
    """A line for the whole statement, and one for what answers each aggregate."""
    budget = explanation.budget
    left = "" if budget is None else f" of {float(budget.left):.6g} left for {budget.table}"
    if budget is not None and budget.renewal is not None:
        left += f"; {budget.left_text}"
    yield f"Answer  (epsilon={float(explanation.epsilon):.6g}{left})"
    for row in _chosen(explanation):
        measured = f", epsilon={row['epsilon']:.6g}, {row['candidate']}" if row["candidate"] else ""
        yield (
            f"  ->  {row['aggregate']}  (rows={row['n_rows']}, source={row['source']}, "
            f"half_width={row['half_width_promised']:.6g}{measured})"
        )
    if form.is_analyzed:
        yield _NOT_RUN


def _plan(explanation: Explanation, form: ExplainForm) -> dict[str, Any]:
    """As PostgreSQL nests plans; costs are epsilons, and the other keys those of our table."""
    inner = [
        {
            "Node Type": "Aggregate",
            "Startup Cost": 0.0,
            "Total Cost": row["epsilon"],
            "Plan Rows": row["n_rows"],
            "Plan Width": 0,
            **row,
        }
        for row in _chosen(explanation)
    ]
    plan = {
        "Node Type": "Result",
        "Startup Cost": 0.0,
        "Total Cost": float(explanation.epsilon),
        "Plan Rows": max((row["Plan Rows"] for row in inner), default=0),
        "Plan Width": 0,
        "Plans": inner,
    }
    budget = explanation.budget
    renewing = {} if budget is None or budget.renewal is None else {"Budget": budget.left_text}
    return {"Plan": plan, **renewing, **({"Note": _NOT_RUN} if form.is_analyzed else {})}


def _chosen(explanation: Explanation) -> list[dict[str, Any]]:
    return [row for row in explanation.data.to_pylist() if row["chosen"]]
