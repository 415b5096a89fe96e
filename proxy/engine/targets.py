"""Brings the parts of one table to their targets: estimate, buy what is missing, estimate again.

A linear answer's target is met by one purchase. A target of a formula, and a target that is a
fraction of the answer, depend on the answers: they are searched for. A search begins with what the
history knows of the answers (`search.py`); where that meets every target, nothing is bought. After
each round the targets of the linear parts are narrowed by as much as the answers require
(`answers/formula_widths.py`), until all are met. Those answers are public by then: what is bought
next is decided from noisy values that were paid for, never from the data. An interval whose
stopping depended on noise gets a higher confidence for that (`planner.decision`).

Before each round, the first included, it is priced what the search will probably ask for in the
end; a search that cannot be paid so far ends before the round. And until a search is known to end,
whatever the truth is within the noisy intervals, it spends at most a tenth of the budget left.
What a search paid for is given, with the intervals that it bought, also when it ends short of its
targets.

A target of a formula may move away from what is known: that of an average narrows with its count,
and later measurements may say that fewer rows are counted. Where history does not meet a target
any more, the answer that met it is given once more: nobody pays for it again.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from fractions import Fraction
from typing import Final

from accountant.ledger import Payer
from cube.pace import checkpoint
from cube.refusals import FreeWidth, InvalidTarget, NotCovered, Refused, TargetNotReached, TooSlow
from inference import RowEstimates, all_known
from planner.measuring import meets
from planner.workload import Part, Wanted
from proxy.engine.answers import (
    AnsweredPart,
    Asked,
    Step,
    asked_of,
    at_widths,
    narrowed,
    smallest_cap,
    take_step,
    undecided,
)
from proxy.engine.disclosure import shown_parts, shown_refusal
from proxy.engine.search import advised, answered_parts, by_column, opened
from proxy.monitoring import Stage
from proxy.outer_sql.postprocessing import OuterSql
from proxy.tables import ANSWER_SECONDS, EmptyHistory, ServedTable, note_if_large

N_ROUNDS_MAX: Final = 256  # budgets and deadlines end a search before
UNSURE_SHARE: Final = Fraction(
    1, 10
)  # a search that may not end spends at most this share of the rest
WORTH_A_LOOK: Final = 4  # times that share: up to there another round is tried
UNSURE: Final = (
    "It will probably cost epsilon {:.3g} and may cost more than the {:.3g} that was left: "
    "until the price is sure, a search spends at most a tenth of the remaining budget."
)
TO_DECIDE: Final = "A larger epsilon, or a narrower half_width, may decide it."
N_WIDENED_MAX: Final = 3
WIDENED: Final = 1.03  # times what is lacking: prices are about in inverse proportion to widths
FORESEEN_SLACK: Final = 4  # how far the price may rise above the forecast; a wide look errs by 2


@dataclass(frozen=True, slots=True, eq=False)
class Settled:
    """The parts of one table, as accurate as they were paid for.

    Parameters
    ----------
    missed : TargetNotReached, optional
        Why some answer does not meet its target; None if all do.
    """

    parts: list[AnsweredPart]
    missed: TargetNotReached | None = None


def settle(  # noqa: PLR0913 - the request, the payer, and what they may see
    table: ServedTable,
    parts: Sequence[Part],
    *,
    payer: Payer,
    outer: OuterSql,
    elsewhere: Fraction = Fraction(0),
    empty_history: EmptyHistory | None = None,
) -> Settled:
    """The parts, answered to their targets, or as well as the search for them was paid. May charge.

    What the statement has spent on other tables, `elsewhere`, counts towards its cap. With
    `empty_history`, everything that is decided for the caller and shown to them follows from what
    the statement would cost on an empty history.

    Raises
    ------
    BudgetExhausted, LimitReached, CostAboveCap
        Before anything is charged; with alternatives that would work.
    LedgerUnavailable, SourceUnavailable
        What was charged is kept, and completed at the next request.
    TargetNotReached
        Before anything is charged, if a look at the answers would cost too large a share of the
        remaining budget.
    """
    cap = _cap(table, parts, payer, elsewhere)
    search = _Search(table, parts, payer, outer, cap, empty_history)
    try:
        return _settled(search)
    finally:  # a search that ends short of its target has paid, too
        note_if_large(table, payer, search.epsilon_spent)


def _settled(search: "_Search") -> Settled:
    """The parts, once a search has met its targets or has to end; raises as `settle` does."""
    again = search.given_again()
    if again is not None:
        return again
    for _ in range(N_ROUNDS_MAX):
        try:
            _check_time(search.answered)
            if not search.may_go_on():
                break
            search.buy()
        except (InvalidTarget, TooSlow) as refusal:
            if not search.answered:
                raise
            return search.ended(refusal)
        except NotCovered as refusal:
            said = search.said_of(refusal)
            if not search.answered:
                raise said from None
            return search.ended(said)
        if search.is_met:
            return search.kept()
    return search.ended(None)


class _Search:
    """The parts of one table on the way to their targets.

    Parameters are those of `settle`, and the most that the statement may cost on the table.
    """

    def __init__(  # noqa: PLR0913, PLR0917 - as `settle`
        self,
        table: ServedTable,
        parts: Sequence[Part],
        payer: Payer,
        outer: OuterSql,
        cap: Fraction | None,
        empty_history: EmptyHistory | None,
    ) -> None:
        self._table, self._parts, self._payer, self._outer = table, parts, payer, outer
        self._cap, self._empty_history = cap, empty_history
        self._asked = asked_of(parts, cap)
        self._default_widths = [one.wanted.target.half_width for one in self._asked]
        self._step = opened(empty_history or table, table.info.schema, parts, self._asked, outer)
        take_step(self._asked, self._step)
        self._spent = Fraction(0)
        left = table.left(payer) if empty_history is None else table.gate.budget().limit
        self._why = ""
        self._left_at_first = left if cap is None else min(left, cap)
        self._foreseen: Fraction | None = None
        self._was_far = False  # whether more than one round was left when that was foreseen
        self._was_rough = False  # whether that was foreseen from a look wider than the defaults
        self._is_rough = False  # whether the latest look was
        self._n_with_targets = 0
        self._rows: list[RowEstimates] = []
        self.answered: list[AnsweredPart] = []
        """The parts as they are known; empty before the first round."""
        self.shown: Sequence[AnsweredPart] = []
        """The same, as the caller may see them."""

    @property
    def left(self) -> Fraction | None:
        """What of the cap is left."""
        return None if self._cap is None else self._cap - self._spent

    @property
    def likely(self) -> list[Wanted]:
        """What will probably be asked for in the end."""
        return at_widths(self._asked, self._step.likely, self.left)

    @property
    def epsilon_spent(self) -> Fraction:
        """What was charged so far, whatever the caller may see of it."""
        return sum((one.epsilon for one in self._asked), Fraction(0))

    @property
    def is_met(self) -> bool:
        """Whether, after a round, every target is met."""
        return not self._step.half_widths

    def said_of(self, refusal: NotCovered) -> NotCovered:
        """A refusal for lack of budget, with what would work if nothing was answered yet."""
        if self.answered and self._empty_history is None:
            return refusal
        said = _said(refusal, self._table, self._empty_history, self.likely, self._payer, self.left)
        # What names no target is asked again for less, as long as anything is left.
        is_retried = said.shortfall.epsilon_left and any(part.is_default for part in self._parts)
        is_alone = sum(len(part.answers) for part in self._parts) == 1  # the whole is its price
        if self._empty_history is not None or is_retried or is_alone:
            return said
        return by_column(said, self._table, self._parts, self._asked, self.likely, self._outer)

    def ended(self, because: Refused | None) -> Settled:
        """What was paid for, with the reason why it is less than what was asked for."""
        known = self.answered
        if not known and self._empty_history is None:
            rows = self._table.look(at_widths(self._asked, {}, self.left))
            if all_known(rows) is not None:
                known = answered_parts(self._table, self._parts, self._asked, rows, self._outer)
        missed = _not_reached(self.shown or known, because, self._why)
        if not known:
            raise missed
        return Settled(known, missed)

    def kept(self) -> Settled:
        """What met every target, kept for a statement that asks for the same again."""
        if self._empty_history is None and any(part.is_searched for part in self._parts):
            self._table.met_before.keep(self._parts, self._rows)
        return Settled(self.answered, self.undecided())

    def given_again(self) -> Settled | None:
        """What met every target before, if the history as it is now does not."""
        if self._empty_history is not None:
            return None
        rows = _met_before(self._table, self._parts, self._asked, self._cap)
        if rows is None:
            return None
        self.answered = answered_parts(self._table, self._parts, self._asked, rows, self._outer)
        self.shown = self.answered
        return Settled(self.answered, self.undecided())

    def undecided(self) -> TargetNotReached | None:
        """Which claims that the statement wants decided are not, at the last of their widths."""
        decisions = [one.decision for part in self._parts for one in part.aggregates]
        said = " ".join(undecided(self._asked, self.shown)) if any(decisions) else ""
        if not said:
            return None
        spent = sum((part.epsilon_spent for part in self.shown), Fraction(0))
        return TargetNotReached(epsilon_spent=spent, free=(), why=said, way_out=TO_DECIDE)

    def may_go_on(self) -> bool:
        """Whether the next round may be paid: the search is known to end, or the round is cheap.

        Raises
        ------
        BudgetExhausted, LimitReached, CostAboveCap
            If what the search will probably cost is not covered.

        Notes
        -----
        The price is not foreseen for an answer that does not narrow as its parts do. The forecast
        of the first round that may be the last one is kept; until then, each is compared with the
        one before. A look that was wider than the table's defaults is little but noise, and
        foretells nothing: an average of a skewed column may be a hundredth of the first estimate.
        """
        is_searched = any(part.is_searched for part in self._parts)
        guide = self._empty_history or self._table
        if guide is self._table and not is_searched:
            return True  # the purchase itself is checked before it is charged
        needed = self._spent + _checked_price(guide, self.likely, self._payer, self.left)
        if not is_searched:
            return True
        if self._is_as_foreseen(needed) and self._is_known_to_end(guide):
            return True
        self._why = UNSURE.format(float(needed), float(self._left_at_first))
        return self._looks_within(UNSURE_SHARE * self._left_at_first - self._spent, guide)

    def _looks_within(self, allowed: Fraction, guide: ServedTable | EmptyHistory) -> bool:
        """Whether the next round costs no more than is allowed, perhaps after it was widened."""
        for _ in range(N_WIDENED_MAX):
            price = guide.price(at_widths(self._asked, {}, self.left))
            if price <= allowed:
                return True
            if allowed < self._left_at_first * UNSURE_SHARE / WORTH_A_LOOK:
                return False
            factor = float(price / allowed) * WIDENED
            wider = {
                place: one.wanted.target.half_width * factor
                for place, one in enumerate(self._asked)
            }
            take_step(self._asked, Step(wider))
        return False

    def _is_as_foreseen(self, needed: Fraction) -> bool:
        """Whether the price of the search stays about the same."""
        if self._n_with_targets == 0 or _may_cost_more(self._parts):
            return True
        # What was free tells nothing of prices.
        is_foreseen = (
            not self._foreseen or self._was_rough or needed <= FORESEEN_SLACK * self._foreseen
        )
        if not self._foreseen or self._was_far or self._was_rough:
            self._foreseen, self._was_far = needed, self._step.looks_ahead
            self._was_rough = self._is_rough
        return is_foreseen

    def _is_known_to_end(self, guide: ServedTable | EmptyHistory) -> bool:
        """Whether the search is paid wherever the truth lies within the noisy intervals."""
        if not all(self._step.surest.values()):
            return False
        narrowest = at_widths(self._asked, self._step.surest, self.left)
        return self._spent + guide.price(narrowest) <= self._left_at_first

    def buy(self) -> None:
        """Buy what is asked for, look at the answers, and decide what to ask for next."""
        empty_history = self._empty_history
        self._is_rough = any(
            one.wanted.target.half_width > default
            for one, default in zip(self._asked, self._default_widths, strict=True)
        )
        rows, epsilon = _bought(
            self._table, self._asked, self._payer, self.left, is_binding=empty_history is None
        )
        self._rows = rows
        self._spent += epsilon if empty_history is None else 0
        with self._table.watcher.stage(Stage.OUTER):
            self.answered = answered_parts(self._table, self._parts, self._asked, rows, self._outer)
            self.shown = (
                self.answered
                if empty_history is None
                else shown_parts(empty_history, self.answered)
            )
            self._step = narrowed(self._asked, self.shown)
        n_with_targets = _n_with_targets(self.shown)
        if n_with_targets != self._n_with_targets:  # other rows set the price from now on
            self._n_with_targets, self._foreseen = n_with_targets, None
        take_step(self._asked, self._step)


def _check_time(answered: Sequence[AnsweredPart]) -> None:
    """Refuse to begin a round that could not be answered in time; the first is still free."""
    if answered:
        checkpoint(ANSWER_SECONDS)


def _may_cost_more(parts: Sequence[Part]) -> bool:
    """Whether a price may rise as an answer becomes known: of linear answers.

    They do for relative targets and for decisions: a decision's likely price is the next look's.
    """
    return any(
        answer.relative is not None and answer.formula is None
        for part in parts
        for answer in part.answers
    ) or any(one.decision is not None for part in parts for one in part.aggregates)


def _n_with_targets(answered: Sequence[AnsweredPart]) -> int:
    """The number of rows, of all formulas, that have a target and set a price."""
    return sum(
        int(item.has_target.sum())
        for part in answered
        for item in part.answers
        if item.answer.formula is not None
    )


def rehearse(  # noqa: PLR0913, PLR0917 - as `settle`
    table: ServedTable,
    parts: Sequence[Part],
    payer: Payer,
    outer: OuterSql,
    elsewhere: Fraction,
    empty_history: EmptyHistory | None = None,
) -> Fraction:
    """Refuse what `settle` would refuse at once; the price. Charges nothing.

    For a statement on several tables, so that none is charged when another refuses.
    """
    cap = _cap(table, parts, payer, elsewhere)
    asked = asked_of(parts, cap)
    step = opened(empty_history or table, table.info.schema, parts, asked, outer)
    take_step(asked, step)
    if empty_history is None and _met_before(table, parts, asked, cap) is not None:
        return Fraction(0)
    wanted = at_widths(asked, step.likely, cap)
    try:
        price = None if empty_history is None else _checked_price(empty_history, wanted, payer, cap)
        own = _checked_price(table, wanted, payer, cap if price is None else None)
    except NotCovered as refusal:
        raise _said(refusal, table, empty_history, wanted, payer, cap) from None
    return own if price is None else price


def _met_before(
    table: ServedTable, parts: Sequence[Part], asked: Sequence[Asked], cap: Fraction | None
) -> Sequence[RowEstimates] | None:
    """The estimates that met the targets of some parts, if those of today do not; None if they do.

    None too if the targets were not met before, or not in this process.
    """
    kept = table.met_before.find(parts)
    if kept is None:
        return None
    wanted = at_widths(asked, {}, cap)
    now = zip(table.look(wanted), wanted, strict=True)
    return None if all(meets(rows, one.target) for rows, one in now) else kept


def _said(  # noqa: PLR0913, PLR0917 - everything that a refusal may mention
    refusal: NotCovered,
    table: ServedTable,
    empty_history: EmptyHistory | None,
    wanted: Sequence[Wanted],
    payer: Payer,
    cap: Fraction | None,
) -> NotCovered:
    """A refusal for lack of budget, with the alternatives that the caller may see."""
    if empty_history is None:
        return advised(refusal, table.snapshot(), wanted, payer, cap)
    return shown_refusal(refusal, empty_history, wanted, payer, cap)


def _cap(
    table: ServedTable, parts: Sequence[Part], payer: Payer, elsewhere: Fraction
) -> Fraction | None:
    """The most that a statement may cost on a table, by its own cap and by per-query limits."""
    own = smallest_cap(parts)
    left = None if own is None else max(Fraction(0), own - elsewhere)
    of_payer = [allowance.limit.per_query for allowance in table.gate.allowances(payer)]
    caps = [cap for cap in (left, *of_payer) if cap is not None]
    return min(caps, default=None)


def _bought(
    table: ServedTable,
    asked: Sequence[Asked],
    payer: Payer,
    cap: Fraction | None,
    *,
    is_binding: bool = True,
) -> tuple[list[RowEstimates], Fraction]:
    """The estimates of every block once they meet their targets, and what that cost now.

    A cap that is not binding has already been compared with another price, and is not checked
    again.
    """
    wanted = at_widths(asked, {}, cap)
    acquired = table.acquire(wanted, payer, cap if is_binding else None)
    for one, epsilon, was_known in zip(asked, acquired.epsilons, acquired.was_known, strict=True):
        one.epsilon += epsilon
        one.was_known = one.was_known and was_known
    return list(acquired.known), acquired.epsilon


def _checked_price(
    table: ServedTable | EmptyHistory, wanted: Sequence[Wanted], payer: Payer, cap: Fraction | None
) -> Fraction:
    snapshot = table.snapshot()
    plan = snapshot.plan(wanted, snapshot.estimates(wanted))
    snapshot.check(plan.planned, payer, epsilon_cap=cap, counts=plan.counts)
    return snapshot.price(plan.planned, plan.counts).epsilon


def _not_reached(
    answered: Sequence[AnsweredPart], refusal: Refused | None, why: str
) -> TargetNotReached:
    """The refusal that the target was not reached, with the half-widths that are free now."""
    free = [
        FreeWidth(item.answer.name, float(half_widths.max()))
        for part in answered
        for item in part.answers
        if item.answer.relative is not None or item.answer.half_width is not None
        if (half_widths := item.half_widths(part.part.confidence)[item.has_target]).size
    ]
    spent = sum((part.epsilon_spent for part in answered), Fraction(0))
    return TargetNotReached(epsilon_spent=spent, free=free, because=refusal, why=why)
