"""What to ask instead: the way out that comes with a refusal for want of budget.

Two things are said of the answers that were asked for: how well history knows them now, for
nothing, and what accuracy what is left would pay for. Both follow from weights, targets and
budgets, never from data. Where either takes long to find, it goes unsaid.
"""

import math
from collections.abc import Sequence
from contextlib import suppress
from dataclasses import replace
from fractions import Fraction
from typing import Final

from accountant.ledger.limits import Payer
from cube.pace import within
from cube.refusals import InvalidTarget, NotCovered, TooLarge, TooSlow
from cube.shortfall import OfferedWidth
from inference.posterior import RowEstimate, widest
from planner.workload import Wanted
from proxy.tables.snapshot import TableSnapshot

FACTOR_MAX: Final = 2.0**20  # of the width asked for; beyond it nobody is helped
SECONDS_MAX: Final = 1.0  # of a refusal's time: it comes without advice rather than late
N_STEPS: Final = 7  # of the search, each of which halves the factor's logarithm


def advised(
    refusal: NotCovered,
    snapshot: TableSnapshot,
    wanted: Sequence[Wanted],
    payer: Payer,
    cap: Fraction | None,
) -> NotCovered:
    """The refusal, with what is free on a snapshot and what would fit."""
    free = fits = math.inf
    with suppress(TooSlow), within(SECONDS_MAX):
        free = _free_factor(wanted, snapshot.estimates(wanted))
        fits = _fitting_factor(snapshot, wanted, payer, cap, min(free, FACTOR_MAX))
    fitting = _offered(fits, wanted) if fits < free else None
    return type(refusal)(replace(refusal.shortfall, free=_offered(free, wanted), fitting=fitting))


def _free_factor(wanted: Sequence[Wanted], known: Sequence[Sequence[RowEstimate]]) -> float:
    """How many times wider than asked for all of it is known; infinite if it is not."""
    factors = (
        widest(rows, one.target.confidence) / one.target.half_width
        for rows, one in zip(known, wanted, strict=True)
    )
    return float(max(factors))


def _fitting_factor(
    table: TableSnapshot,
    wanted: Sequence[Wanted],
    payer: Payer,
    cap: Fraction | None,
    too_wide: float,
) -> float:
    """The smallest factor found on the widths asked for that may be paid; infinite if none is."""
    low, high = 0.0, math.log2(max(too_wide, 1.0))
    if not _may_be_paid(table, _widened(wanted, 2.0**high), payer, cap):
        return math.inf
    for _ in range(N_STEPS):
        middle = (low + high) / 2
        if _may_be_paid(table, _widened(wanted, 2.0**middle), payer, cap):
            high = middle
        else:
            low = middle
    return float(2.0**high)


def _widened(wanted: Sequence[Wanted], factor: float) -> list[Wanted]:
    return [
        replace(one, target=replace(one.target, half_width=one.target.half_width * factor))
        for one in wanted
    ]


def _may_be_paid(
    table: TableSnapshot, wanted: Sequence[Wanted], payer: Payer, cap: Fraction | None
) -> bool:
    with suppress(NotCovered, InvalidTarget, TooLarge):
        plan = table.plan(wanted, table.estimates(wanted))
        table.check(plan.planned, payer, epsilon_cap=cap)
        return True
    return False


def _offered(factor: float, wanted: Sequence[Wanted]) -> OfferedWidth | None:
    if not factor <= FACTOR_MAX:
        return None
    return OfferedWidth.widened(factor, {one.target.half_width for one in wanted})
