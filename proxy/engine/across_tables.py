"""Brings a statement's parts on each of its private tables to their targets.

Before the first of several tables is charged, the others are rehearsed, so that none is charged
when another refuses. A statement that falls back on history is not refused for want of budget: what
cannot be paid is answered with the best that is known. Tables that answer by themselves are free.
"""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from fractions import Fraction
from functools import partial
from typing import Final

from cube.refusals import NotCovered, TargetNotReached
from planner.workload import Fallback, Workload
from proxy.api.requests import Caller
from proxy.engine.default_cost import at_default_cost, within_cost
from proxy.engine.disclosure import disclosed
from proxy.engine.history_fallback import NOTE, best_known, may_fall_back
from proxy.engine.left_out import counts_kept_rows, left_out, rows_changed
from proxy.engine.own_answers import own_answers, wanted_of
from proxy.engine.postprocessing import OuterSql
from proxy.engine.results import AnsweredPart
from proxy.engine.targets import rehearse, settle
from proxy.tables.disclosure import shown_instead
from proxy.tables.private_table import ServedTable
from proxy.tables.self_answering import SelfAnswering

MISSED: Final = "target_not_reached: {} The intervals are those that were paid for."


@dataclass(frozen=True, slots=True, eq=False)
class AnsweredTable:
    """A statement's parts on one table, as the caller may see them.

    Parameters
    ----------
    table : ServedTable or SelfAnswering
    parts : tuple of AnsweredPart
    settled : tuple of AnsweredPart
        Those that were brought to their targets, as they are; none if the table fell back on its
        history, or answers by itself.
    notes : tuple of str
        On how they were made.
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
    is_covered = len(opened) == 1 or _is_covered(workload, opened, caller, outer)
    spent = Fraction(0)
    for table in opened:
        name = table.info.schema.table
        parts = workload.of_table(name)
        if not isinstance(table, ServedTable):
            free, said = own_answers(table, parts, caller.payer, workload.fallback, outer)
            yield AnsweredTable(table, tuple(free), (), said)
            continue
        hidden = shown_instead(table, caller)
        parts, said_of_cost = at_default_cost(table, parts, caller.payer, spent, rounds)
        paid = Fraction(0)
        missed: TargetNotReached | None = None
        settled: list[AnsweredPart] = []
        try:
            if is_covered:
                attempt = partial(
                    settle,
                    table,
                    payer=caller.payer,
                    outer=outer,
                    elsewhere=spent,
                    empty_history=hidden,
                )
                found = attempt(parts) if said_of_cost is None else within_cost(attempt, parts)
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
        spent += of_this
        if not settled:
            said_of_cost = NOTE.format(name)
        elif not of_this:  # half of a width that cost nothing is another question
            said_of_cost = None
        of_table = (said_of_cost, table.extent.note)
        notes = tuple(one for one in of_table if one)
        caveats = left_out(table, caller) if counts_kept_rows(parts) else ()
        caveats += rows_changed(table, workload.changed, caller)
        warnings = () if missed is None or not settled else (MISSED.format(missed.message),)
        yield AnsweredTable(table, tuple(shown), tuple(settled), notes, caveats, warnings)


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
    workload: Workload, opened: list[ServedTable | SelfAnswering], caller: Caller, outer: OuterSql
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
        parts, said = at_default_cost(table, parts, caller.payer, foreseen)
        attempt = partial(
            rehearse,
            table,
            payer=caller.payer,
            outer=outer,
            elsewhere=foreseen,
            empty_history=hidden,
        )
        try:
            foreseen += attempt(parts) if said is None else within_cost(attempt, parts)
        except NotCovered:
            if all(falls_back(workload, one, caller) for one in gated):
                return False
            raise
    return True
