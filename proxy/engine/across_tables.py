"""A statement's parts on each of its tables: targets, what is known instead, what is left out.

What answers say about rows that are left out, and of rows whose values count as others.

The bound is declared, so every answer about rows says it. Of how many units rows are left out is
private: it is said once somebody has bought it, as

    SELECT COUNT(DISTINCT customer) FILTER (WHERE WAS_CUT(customer)), COUNT(DISTINCT customer) ..

does. It is then history, and costs nothing to say again. How many rows these units have beyond the
bound is not known: one unit may have any number of them. How many rows have a value that is clamped
or counts as OTHER is said likewise, once it was bought.

The best that is known, where a statement cannot be paid and says that it will do.

Every answer is estimated from the history as it is, with the interval that it really has, which is
wider than the target; rows without any known answer are NULL. Nothing is charged. Only callers who
may see a table's history get such answers: the widths show what was asked before.

Brings a statement's parts on each of its private tables to their targets.

Before the first of several tables is charged, the others are rehearsed, so that none is charged
when another refuses. A statement that falls back on history is not refused for want of budget: what
cannot be paid is answered with the best that is known. Tables that answer by themselves are free.

With `holders => 'any'`, a federated table that not all of its holders can answer is answered from
the rows of those that can: the same questions, with 0 at every cell of the others.
"""

import math
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from fractions import Fraction
from functools import partial
from typing import Final

import numpy as np
from numpy.typing import NDArray

from cube.query import QueryBlock, counting, restricted
from cube.refusals import NotCovered, Refused, SourceUnavailable, TargetNotReached
from cube.runtime import cached_property
from cube.statistic import UNIT_COUNT, Rule
from inference import Posterior, RowEstimate
from inference.marginals import UnknownLaw
from inference.noise_law import law_of_noise
from planner.level_summary import LevelSummary
from planner.workload import (
    Aggregate,
    Answer,
    ChangedValues,
    Fallback,
    Part,
    QuantileFormula,
    Wanted,
    Workload,
)
from proxy.api import LEFT_OUT, SOURCE_HISTORY, SOURCE_MEASURED, SOURCE_PUBLIC, Caller, rows_kept
from proxy.engine.answers import AnsweredAggregate, AnsweredItem, AnsweredPart
from proxy.engine.asked_before import (
    fitted,
    fitted_by_history,
    said_of_bounds,
    say_what_bounds_cost,
)
from proxy.engine.default_cost import at_default_cost, within_cost
from proxy.engine.disclosure import disclosed
from proxy.engine.own_tables import own_answers, wanted_of
from proxy.engine.targets import rehearse, settle
from proxy.outer_sql.postprocessing import OuterSql
from proxy.tables import SelfAnswering, ServedTable, shown_instead

_EVERYBODY: Final = QueryBlock(counting())
OVERLAP: Final = (
    "{}: a person may be at several holders; epsilon is the sum over them, and each row counts."
)
_WIDTH_MAX: Final = 0.2  # of the interval of a share that is worth telling


def counts_kept_rows(parts: Sequence[Part]) -> bool:
    """Whether answers would be others if no row were left out.

    Not where units of the whole table are counted: each has a row that is kept.
    """
    return any(
        not aggregate.counts_units or block.scope
        for part in parts
        for aggregate in part.aggregates
        for block in aggregate.blocks
        if not block.query.is_constant
    )


def left_out(table: ServedTable, caller: Caller) -> tuple[str, ...]:
    """What is said about the rows of a table that are left out; nothing if none are.

    Of a federated table none are; but persons at several holders are counted by each of them.
    """
    schema = table.info.schema
    if table.extent.holders is not None:
        overlap = table.extent.schema.people_overlap
        return (OVERLAP.format(schema.table),) if overlap else ()
    kept = rows_kept(schema)
    if kept is None:
        return ()
    note = f"{schema.table}: {kept}. {LEFT_OUT}"
    known = None if shown_instead(table, caller) is not None else _units_cut(table)
    return (note if known is None else f"{note} {known}",)


def _units_cut(table: ServedTable) -> str | None:
    """Of how many units rows are left out, as far as the history says; None if it does not."""
    confidence = table.info.default.confidence
    cut, every = _counted(table, only_cut=True), _counted(table, only_cut=False)
    if cut is None:
        return None
    share = None if every is None else _share_text(cut, every, "units", confidence)
    if share is None:
        low, high = cut.interval(confidence)
        ends = f"{math.floor(max(low, 0.0))} to {math.ceil(max(high, 0.0))}"
        share = f"{max(cut.value, 0.0):.0f} units ({ends} at confidence {confidence:g})"
    return f"Of about {share}, rows are left out."


def rows_changed(
    table: ServedTable, changed: Sequence[ChangedValues], caller: Caller
) -> tuple[str, ...]:
    """Which shares of a table's rows have values that count as others, if the history says."""
    target, name = table.info.default, table.info.schema.table
    asked = [one for one in changed if one.table == name]
    if not asked or shown_instead(table, caller) is not None:
        return ()
    blocks = (_EVERYBODY, *(one.rows for one in asked))
    every, *counts = (rows[0] for rows in table.look([Wanted(one, target) for one in blocks]))
    if not isinstance(every, Posterior):
        return ()
    shares = (
        _share_text(count, every, f"rows of {name}", target.confidence)
        if isinstance(count, Posterior)
        else None
        for count in counts
    )
    told = zip(asked, shares, strict=True)
    return tuple(f"About {share} {one.rows_said}." for one, share in told if share is not None)


def _share_text(some: Posterior, every: Posterior, what: str, confidence: float) -> str | None:
    """A share with its interval; None if the ends of this are far apart."""
    low, value, high = share_of(some, every, confidence)
    if high - low > _WIDTH_MAX:
        return None
    ends = f"{math.floor(1e4 * low) / 100:g} % to {math.ceil(1e4 * high) / 100:g} %"
    return f"{100 * value:.2g} % of the {what} ({ends} at confidence {confidence:g})"


def share_of(some: Posterior, every: Posterior, confidence: float) -> tuple[float, float, float]:
    """The low end, the value and the high end of the share that some are of all.

    Both counts are between their ends with the confidence, as they share the error probability;
    where they are, the share is between these ends.
    """
    surer = (1 + confidence) / 2
    (some_low, some_high), (low, high) = some.interval(surer), every.interval(surer)
    least = min(max(some_low, 0.0) / high, 1.0) if high > 0 else 0.0
    most = min(max(some_high, 0.0) / low, 1.0) if low > 0 else 1.0
    value = some.value / every.value if every.value > 0 else least
    return least, min(max(value, least), most), most


def _counted(table: ServedTable, *, only_cut: bool) -> Posterior | None:
    """The history's count of the units of the whole table; None if they were never counted."""
    schema = table.info.schema
    rule = Rule(UNIT_COUNT, schema.groups_per_unit, int(only_cut))
    wanted = Wanted(_EVERYBODY, table.info.default, rule=rule)
    ((found,),) = table.look([wanted])
    return found if isinstance(found, Posterior) else None


NOTE: Final = "{} could not be paid to its target: these are the best estimates of the history."

Flags = NDArray[np.bool_]

_UNKNOWN: Final = Posterior(0.0, UnknownLaw())
_STAND_IN: Final = Posterior(0.0, law_of_noise(np.zeros(0)))  # for what nothing is computed from


@dataclass(frozen=True, eq=False)
class BestKnownPart(AnsweredPart):
    """A part with some rows known, the others unknown.

    Parameters
    ----------
    unknown : tuple of ndarray of bool
        For each aggregate, its rows without any known answer.
    """

    unknown: tuple[Flags, ...] = ()

    @cached_property
    def answers(self) -> tuple[AnsweredItem, ...]:
        """Every answer of the part, without a value where something that it needs is unknown."""
        known = AnsweredPart(self.part, self.aggregates, self.history, self.outer)
        return tuple(_hidden(item, self._lost(item.answer)) for item in known.answers)

    def values(self, aggregate: int) -> NDArray[np.float64]:
        """An aggregate's estimate in every row of the part; NaN where nothing is known."""
        return np.where(self.unknown[aggregate], np.nan, super().values(aggregate))

    def unknown_rows(self, aggregate: int) -> Flags:
        """The rows of an aggregate's blocks without any known answer."""
        return self.unknown[aggregate]

    def _lost(self, answer: Answer) -> Flags:
        """The rows of the part in which an answer needs something unknown."""
        lost = np.zeros(self.part.n_rows, dtype=np.bool_)
        for place in answer.uses:
            flags = self.unknown[place]
            if isinstance(answer.formula, QuantileFormula):
                groups = np.array(answer.formula.cells, dtype=np.int64)[flags]
                lost[groups // len(answer.formula.levels)] = True
            elif isinstance(answer.formula, LevelSummary):
                lost |= answer.formula.rows_of(flags, self.part.n_rows)
            else:
                lost |= flags  # a total has one row, which every row shows
        return lost


def may_fall_back(part: Part) -> bool:
    """Whether a part can be shown in part: not a test, nor counts that are to agree."""
    return part.question is None and part.consistency is None


def best_known(
    table: ServedTable, parts: Sequence[Part], outer: OuterSql, spent: Fraction
) -> list[AnsweredPart]:
    """The parts of one table as well as they are known. Charges nothing.

    Parameters
    ----------
    spent : Fraction
        What the statement has spent on the table before it could not be paid further.
    """
    found: list[AnsweredPart] = []
    for part in parts:
        aggregates, unknown = [], []
        for aggregate in part.aggregates:
            wanted = tuple(map(aggregate.wanted, aggregate.blocks))
            rows = [row for block in table.look(wanted) for row in block]
            unknown.append(np.array([not isinstance(row, Posterior) for row in rows], np.bool_))
            source = SOURCE_PUBLIC if aggregate.is_constant else SOURCE_HISTORY
            known = tuple(_known(row) for row in rows)
            aggregates.append(AnsweredAggregate(aggregate, known, source, spent, wanted))
            spent = Fraction(0)  # it counts once
        found.append(
            BestKnownPart(part, tuple(aggregates), table.noises, outer, unknown=tuple(unknown))
        )
    return found


def _known(row: RowEstimate) -> Posterior:
    return row if isinstance(row, Posterior) else _STAND_IN


def _hidden(item: AnsweredItem, lost: Flags) -> AnsweredItem:
    """An answer without values and intervals in some rows."""
    if not lost.any():
        return item
    if item.law is not None:
        law = item.law.hidden(lost)
        return replace(item, values=law.values, law=law)
    values = np.where(lost, np.nan, item.values)
    posteriors = tuple(
        _UNKNOWN if is_lost else one for one, is_lost in zip(item.posteriors, lost, strict=True)
    )
    return replace(item, values=values, posteriors=posteriors)


MISSED: Final = "target_not_reached: {} The intervals are those that were paid for."


@dataclass(frozen=True, slots=True, eq=False)
class AnsweredTable:
    """A statement's parts on one table, as the caller may see them.

    Parameters
    ----------
    settled : tuple of AnsweredPart
        Those that were brought to their targets, as they are; none if the table fell back on its
        history, or answers by itself.
    notes : tuple of str
        Notes on how the answers were made.
    caveats : tuple of str
        On rows that are left out, and on those whose values count as others.
    warnings : tuple of str
        On targets that they do not meet.
    """

    table: ServedTable | SelfAnswering
    parts: tuple[AnsweredPart, ...]
    settled: tuple[AnsweredPart, ...]
    notes: tuple[str, ...]
    caveats: tuple[str, ...] = ()
    warnings: tuple[str, ...] = ()

    def with_cost(self, epsilon: Fraction) -> "AnsweredTable":
        """The same with what its bounds cost, which counts for the first answer."""
        if not epsilon or not self.parts:
            return self
        first, *others = self.parts
        one, *rest = first.aggregates
        paid = replace(one, epsilon_spent=one.epsilon_spent + epsilon, source=SOURCE_MEASURED)
        parts = (replace(first, aggregates=(paid, *rest)), *others)
        said = f"{self.table.info.schema.table}: epsilon {float(epsilon):.3g} of it found a bound."
        settled = parts if self.settled else ()
        return replace(self, parts=parts, settled=settled, notes=(*self.notes, said))


def answered_tables(
    workload: Workload,
    tables: Mapping[str, ServedTable | SelfAnswering],
    caller: Caller,
    outer: OuterSql,
    rounds: int = 1,
) -> Iterator[AnsweredTable]:
    """The answers of a statement, one private table after the other. May charge.

    It is one of `rounds` statements that share a default cost.

    Raises as `settle` does, before the first table is charged if that can be foreseen.
    """
    opened = [tables[name] for name in workload.tables]
    workload, of_bounds = _fitted(workload, opened, caller, outer)
    try:
        yield from _answered(workload, opened, caller, outer, rounds, of_bounds)
    except Refused as refusal:
        say_what_bounds_cost(refusal, sum(of_bounds.values(), Fraction(0)))
        raise


def _answered(  # noqa: PLR0913, PLR0917 - as `answered_tables`, and what was spent before
    workload: Workload,
    opened: Sequence[ServedTable | SelfAnswering],
    caller: Caller,
    outer: OuterSql,
    rounds: int,
    of_bounds: Mapping[str, Fraction],
) -> Iterator[AnsweredTable]:
    """The same once bounds on units are found, at the epsilons of `of_bounds` for each table."""
    is_covered = len(opened) == 1 or _is_covered(workload, opened, caller, outer)
    spent = sum(of_bounds.values(), Fraction(0))
    for table in opened:
        name = table.info.schema.table
        parts = workload.of_table(name)
        if not isinstance(table, ServedTable):
            free, said = own_answers(table, parts, caller.payer, workload.fallback, outer)
            yield AnsweredTable(table, tuple(free), (), said)
            continue
        of_table = _OnTable(table, workload, caller, outer, rounds, is_covered=is_covered)
        try:
            found = of_table.answered(parts, spent)
        except (SourceUnavailable, NotCovered) as refusal:
            some = some_holders(table, parts) if workload.any_holders else None
            if some is None:
                raise
            parts, said_of_holders = some
            try:
                found = of_table.answered(parts, spent)
            except NotCovered:
                raise refusal from None
            found = replace(found, warnings=(*found.warnings, said_of_holders))
        spent += sum((one.epsilon_spent for one in found.parts), Fraction(0))
        yield found.with_cost(of_bounds.get(name, Fraction(0)))


def _fitted(
    workload: Workload,
    opened: Sequence[ServedTable | SelfAnswering],
    caller: Caller,
    outer: OuterSql,
) -> tuple[Workload, dict[str, Fraction]]:
    """The workload with bounds on units that fit it, and what they cost on each table.

    Nothing is bought if it can be foreseen that no bound would make the statement payable.
    """
    asked = {one.table for one in workload.parts if any(a.fits_units for a in one.aggregates)}
    found: dict[str, Fraction] = {}
    if asked:
        _is_covered(workload, opened, caller, outer)
    for table in opened:
        name = table.info.schema.table
        if name not in asked or not isinstance(table, ServedTable):
            continue
        parts = workload.of_table(name)
        some = some_holders(table, parts) if workload.any_holders else None
        spent = sum(found.values(), Fraction(0))
        of_able, found[name] = fitted(table, some[0] if some else parts, caller.payer, spent)
        ruled = {
            one.name: replace(one, aggregates=_with_rules_of(one.aggregates, other.aggregates))
            for one, other in zip(parts, of_able, strict=True)
        }
        workload = replace(
            workload, parts=tuple(ruled.get(one.name, one) for one in workload.parts)
        )
    return workload, found


def _with_rules_of(
    aggregates: Sequence[Aggregate], ruled: Sequence[Aggregate]
) -> tuple[Aggregate, ...]:
    return tuple(
        replace(one, rule=other.rule, fits_units=other.fits_units)
        for one, other in zip(aggregates, ruled, strict=True)
    )


@dataclass(frozen=True, slots=True, eq=False)
class _OnTable:
    """How one statement is answered on one table."""

    table: ServedTable
    workload: Workload
    caller: Caller
    outer: OuterSql
    rounds: int
    is_covered: bool

    def answered(self, asked: tuple[Part, ...], spent: Fraction) -> AnsweredTable:
        """The answers to some parts, after so much was spent on other tables."""
        table, workload, caller, outer = self.table, self.workload, self.caller, self.outer
        name = table.info.schema.table
        hidden = shown_instead(table, caller)
        parts, said_of_cost = at_default_cost(table, asked, caller.payer, spent, self.rounds)
        paid = Fraction(0)
        missed: TargetNotReached | None = None
        settled: list[AnsweredPart] = []
        try:
            if self.is_covered:
                attempt = partial(
                    settle,
                    table,
                    payer=caller.payer,
                    outer=outer,
                    elsewhere=spent,
                    empty_history=hidden,
                )
                found, said_of_cost = within_cost(
                    attempt, table, asked, parts, caller.payer, spent, said_of_cost
                )
                settled, missed = found.parts, found.missed
                if missed is not None and not workload.fallback.gives_what_was_bought:
                    raise missed
        except (NotCovered, TargetNotReached) as refusal:
            if not falls_back(workload, table, caller):
                raise
            if isinstance(refusal, TargetNotReached):
                paid = refusal.epsilon_spent
        shown = disclosed(hidden, settled) if settled else best_known(table, parts, outer, paid)
        of_this = sum((one.epsilon_spent for one in shown), Fraction(0))
        if not settled:
            said_of_cost = NOTE.format(name)
        elif not of_this:  # half of a width that cost nothing is another question
            said_of_cost = None
        of_table = (said_of_cost, table.extent.note)
        notes = tuple(one for one in of_table if one)
        is_told = table.extent.holders is not None or counts_kept_rows(parts)
        caveats = left_out(table, caller) if is_told else ()
        caveats += rows_changed(table, workload.changed, caller)
        of_bounds: tuple[str, ...] = ()
        if any(one.rule is not None for part in parts for one in part.aggregates):
            said, of_bounds = said_of_bounds(table, parts, caller)
            caveats += said
        warnings = of_bounds
        if missed is not None and settled:
            warnings = (*of_bounds, MISSED.format(missed.message))
        return AnsweredTable(table, tuple(shown), tuple(settled), notes, caveats, warnings)


def some_holders(
    table: ServedTable, parts: tuple[Part, ...]
) -> tuple[tuple[Part, ...], str] | None:
    """The same parts over the rows of those holders that can answer, and a sentence about it.

    None if the table has no holders, or if all of them can, or none.
    """
    able, holders = table.able_holders(), table.extent.holders
    if holders is None or all(able) or not any(able):
        return None
    levels = np.array(able, dtype=np.int64)
    kept = tuple(
        replace(
            part,
            aggregates=tuple(
                replace(
                    one,
                    blocks=tuple(restricted(block, holders.axis, levels) for block in one.blocks),
                )
                for one in part.aggregates
            ),
        )
        for part in parts
    )
    who = table.named_holders([level for level, is_able in enumerate(able) if not is_able])
    name = table.info.schema.table
    return kept, f"{name}: without the rows of holders that cannot answer now: {who}."


def joined(workloads: Sequence[Workload]) -> Workload:
    """Several workloads of one statement as one, to price them together."""
    parts = tuple(part for workload in workloads for part in workload.parts)
    return replace(workloads[-1], parts=parts)


def check_covered(
    workloads: Sequence[Workload],
    tables: Mapping[str, ServedTable | SelfAnswering],
    caller: Caller,
    outer: OuterSql,
) -> None:
    """Refuse workloads of one statement that are not covered together, before any is begun.

    Raises
    ------
    BudgetExhausted, LimitReached, CostAboveCap
    """
    together = joined(workloads)
    _is_covered(together, [tables[name] for name in together.tables], caller, outer)


def falls_back(workload: Workload, table: ServedTable, caller: Caller) -> bool:
    """Whether what a table knows already may answer a statement that cannot be paid."""
    parts = workload.of_table(table.info.schema.table)
    is_open = shown_instead(table, caller) is None
    return workload.fallback is Fallback.HISTORY and is_open and all(map(may_fall_back, parts))


def _is_covered(
    workload: Workload,
    opened: Sequence[ServedTable | SelfAnswering],
    caller: Caller,
    outer: OuterSql,
) -> bool:
    """Whether all tables can be paid; False if one cannot and all may fall back on history.

    Raises
    ------
    BudgetExhausted, LimitReached, CostAboveCap
    """
    foreseen = Fraction(0)
    gated = [table for table in opened if isinstance(table, ServedTable)]
    for one in opened:
        if not isinstance(one, ServedTable):
            asked = workload.of_table(one.info.schema.table)
            one.foreseen(wanted_of(one, asked), workload.fallback)
    for table in gated:
        parts = workload.of_table(table.info.schema.table)
        hidden = shown_instead(table, caller)
        asked = parts = fitted_by_history(table, parts, caller, least=True)
        parts, said = at_default_cost(table, asked, caller.payer, foreseen)
        attempt = partial(
            rehearse,
            table,
            payer=caller.payer,
            outer=outer,
            elsewhere=foreseen,
            empty_history=hidden,
        )
        try:
            found, _ = within_cost(attempt, table, asked, parts, caller.payer, foreseen, said)
            foreseen += found
        except NotCovered:
            if all(falls_back(workload, one, caller) for one in gated):
                return False
            raise
    return True
