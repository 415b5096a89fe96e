"""How narrow a statement's blocks must be known for targets that depend on answers.

How widely the parts of a formula are asked for while nothing tells what it divides by.

A formula that divides has no value as long as a divisor cannot be told from 0, and its interval
then says nothing of the widths that its target needs. The size of the divisor does. If errors of
its parts are at most a half-width ``w``, in records of the largest value, then a mean of ``n``
records errs by about half of its public range times ``w / n``. So for a target ``t`` no half-width
above ``2 t n / range`` is of use, whatever the records are. A search begins there for the largest
``n`` that is possible, which is public or known from noisy counts, and goes on with the largest
that each round leaves plausible. Raises cost the difference: a look that was wide costs nothing in
the end. Nothing here asks for less than the half-widths at which a part begins without a target.

The half-widths that a relative target asks for, one round after the other.

An answer ``v`` known to within ``w`` meets a target of ``r`` times itself if ``w <= r (|v| - w)``:
then ``w`` is at most ``r`` times the true value, unless the interval errs. If the truth is ``T``,
the widest half-width that may end so is ``r T / (1 + r)``.

While ``w`` is more than half of ``|v|``, little is known of the truth but that it is plausibly no
larger than ``|v| + w``. Then the next round asks for ``r (|v| + w) / (1 + r)``: a target that the
truth is likely to make narrower still, so that a round that turns out to be needless has never been
dear. An unknown answer has ``|v| = 0`` and the public bound for ``w``. Once ``w`` is at most half
of ``|v|``, the next round asks for ``r (|v| - w / 2) / (1 + r)``, which is likely to be the last.

A round narrows by a stated share at least, so that rounds are few: each is a charge, and one more
look at noise (`planner.decision`). So the half-width that is reached is rarely far
below the one that would have been enough: by 4 to 20 per cent on average for targets up to 0.3, by
a third for targets near 1.

Everything here follows from noisy values that were paid for, or from public bounds.

The half-widths that the parts of a formula with a target are asked for: at first, and next.

A formula's width decreases about as the widths of its parts do. These are compared in records of
the largest value, as the widths of sums are by their largest coefficients. The parts that are
widest are narrowed by the share that the formula is too wide by; a part that another answer has
made as narrow as that is left alone. Rows of one block are measured together, and a block is
narrowed for all of its rows; blocks whose own rows are known well enough are left alone.

A search begins wide, and is narrowed until rows have values. A row that still
divides by what cannot be told from 0, when the parts are as narrow as without a target, has no
value and asks for nothing: what is bought is decided by the other rows. If there is no other row,
what is divided by is narrowed a few times, in case it is merely small.

A relative target of a linear answer has rules of its own, and so has the
target of a formula (`formula_widths.py`).

Everything is decided from what is shown to the caller: noisy values that were paid for.
"""

import math
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Final, TypeAlias

import numpy as np
from numpy.typing import NDArray

from inference import Posterior, RowEstimates, widest
from planner.workload import Answer, Part
from proxy.engine.answers.decisions import ask_until_decided, is_decided
from proxy.engine.answers.results import AnsweredItem, AnsweredPart
from proxy.engine.answers.wanted_blocks import Asked, Step

Floats: TypeAlias = NDArray[np.float64]

TELLING: Final = 1 / 8  # of a divisor: the widest half-width with which a quotient is worth a look
TOLD_WIDTHS: Final = 2  # half-widths of a divisor that is told from 0
ROUGHLY: Final = 1 / 2  # of the widest useful half-width: errors of two parts add up
SUREST_OF_A_MEAN: Final = (
    1 / 4
)  # of the widest useful half-width: the narrowest that a mean may need
SLOWEST: Final = 1 / 2  # of its half-width, to which a round narrows a divisor at least


def useful_widths(answer: Answer, sizes: Floats) -> Floats:
    """The widest half-widths of divisors of these sizes with which a target may be met.

    >>> mean = Answer("a", "AVG(x)", uses=(0, 1), low=0.0, high=100.0, half_width=5.0)
    >>> useful_widths(mean, np.array([1000.0])).tolist()
    [100.0]
    """
    span = answer.high - answer.low
    if not math.isfinite(span) or span <= 0:
        return TELLING * sizes
    wanted = answer.half_width
    if answer.relative is not None:
        wanted = answer.relative * max(abs(answer.low), abs(answer.high))
    share = TELLING if wanted is None else min(TELLING, 2 * wanted / span)
    return share * sizes


def first_width(answer: Answer, largest: Floats, least: float) -> float:
    """The half-width of a divisor to begin with.

    Parameters
    ----------
    largest : (n_rows,) ndarray of float64
        How large the divisor can be in each row, of at least one. The smallest row decides.
    least : float
        The half-width that it has without a target.
    """
    return max(least, float(useful_widths(answer, largest).min()))


def foreseen_width(answer: Answer, largest: Floats, least: float) -> float:
    """About the half-width of a divisor that a search will end with.

    The parameters are those of `first_width`. Rows without any known answer have equal bounds;
    their records are taken to be spread evenly. Rows that will not be told from 0 are left out.
    """
    sizes = largest / largest.size if np.ptp(largest) == 0 else largest
    told = sizes[sizes > TOLD_WIDTHS * least]
    return ROUGHLY * float(useful_widths(answer, told).min()) if told.size else least


def surest_width(answer: Answer, values: Floats, half_widths: Floats) -> float:
    """The narrowest half-width of a divisor that a search may end with; 0 if nothing bounds it.

    Parameters
    ----------
    values, half_widths : (n_rows,) ndarray of float64
        What is known of the divisor.
    """
    if answer.relative is not None or not math.isfinite(answer.high - answer.low):
        return 0.0
    smallest = np.maximum(np.abs(values) - half_widths, 0.0)
    return SUREST_OF_A_MEAN * float(useful_widths(answer, smallest).min(initial=math.inf))


def next_share(answer: Answer, values: Floats, half_widths: Floats) -> float:
    """The share of its half-width to which a divisor is narrowed for rows that have no value.

    1 if there is no such row. A row is followed until it has a value or its half-width is that of
    a part without a target, whichever is first: so the smallest row decides.
    """
    useful = useful_widths(answer, np.abs(values) + half_widths)
    return float(np.minimum(useful / half_widths, SLOWEST).min(initial=1.0))


TOLD: Final = 0.5  # of the value: a half-width below this says how large the truth is
COARSE_SHARE: Final = 0.6  # of its half-width, at most, before that
FINE_SHARE: Final = 0.9  # of its half-width, at most, after that
BACK: Final = 0.5  # half-widths towards zero that the truth may lie, for a round to be the last


@dataclass(frozen=True, slots=True)
class RelativeTarget:
    """A half-width that is a fraction of the answer.

    Parameters
    ----------
    floor : float
        The half-width that is narrow enough for any answer.

    Examples
    --------
    >>> target = RelativeTarget(0.05, floor=10.0)
    >>> values, half_widths = np.array([1000.0, 1000.0, 3.0]), np.array([40.0, 60.0, 10.0])
    >>> target.is_met(values, half_widths)
    array([ True, False,  True])
    >>> target.next_widths(values, half_widths).round(2)
    array([40.  , 46.19, 10.  ])
    """

    relative: float
    floor: float

    def __post_init__(self) -> None:
        if not 0 < self.relative < 1:
            raise ValueError(f"a relative target lies between 0 and 1, not {self.relative}")
        if not self.floor >= 0:
            raise ValueError(f"a half-width is not negative, as {self.floor} is")

    def is_met(self, values: Floats, half_widths: Floats) -> NDArray[np.bool_]:
        """Whether each answer is known well enough."""
        enough = np.maximum(self.relative * (np.abs(values) - half_widths), self.floor)
        return np.asarray(half_widths <= enough)

    def next_widths(self, values: Floats, half_widths: Floats) -> Floats:
        """What to ask for next; the half-width itself where it is narrow enough."""
        sizes = np.abs(values)
        coarse = np.minimum(self._enough_for(sizes + half_widths), COARSE_SHARE * half_widths)
        fine = np.minimum(self._enough_for(sizes - BACK * half_widths), FINE_SHARE * half_widths)
        return self._unless_met(
            values, half_widths, np.where(self._is_told(values, half_widths), fine, coarse)
        )

    def likely_widths(self, values: Floats, half_widths: Floats) -> Floats:
        """What will probably be asked for in the end; never wider than what is asked for next.

        A search that cannot be paid down to here is better refused before it begins.
        """
        likely = self._enough_for(np.maximum(np.abs(values), half_widths))
        return np.minimum(
            self._unless_met(values, half_widths, likely), self.next_widths(values, half_widths)
        )

    def surest_widths(self, values: Floats, half_widths: Floats) -> Floats:
        """The narrowest that may be asked for in the end; 0 where the answer may be 0."""
        surest = self._enough_for(np.maximum(np.abs(values) - half_widths, 0.0))
        return np.where(
            self.is_met(values, half_widths), half_widths, np.maximum(surest, self.floor)
        )

    def _enough_for(self, sizes: Floats) -> Floats:
        """The widest half-width that may be enough if the truth has such a size."""
        return np.asarray(self.relative / (1 + self.relative) * sizes)

    @staticmethod
    def _is_told(values: Floats, half_widths: Floats) -> NDArray[np.bool_]:
        return np.asarray(half_widths <= TOLD * np.abs(values))

    def _unless_met(self, values: Floats, half_widths: Floats, narrower: Floats) -> Floats:
        return np.where(
            self.is_met(values, half_widths), half_widths, np.maximum(narrower, self.floor)
        )


OVERSHOOT: Final = 0.9  # a formula's width decreases about as its parts' do
SHARE_MIN: Final = 1 / 8  # of the width so far, in one round: refinement costs only the difference
SHARE_LEAST: Final = (
    2.0**-60
)  # for an unbounded interval: no price is high enough, and it is refused
SUREST: Final = 1 / 2  # of its likely width: the narrowest that a part of a told formula may need
TELLING_SHARE: Final = 1 / 2  # of its width, by which a divisor is narrowed to tell it from 0
TELLING_LEAST: Final = 1 / 8  # of its first width; what cannot be told from 0 then is taken for 0


def has_target(answer: Answer) -> bool:
    """Whether an answer has a target of its own, beside the targets of the answers that it uses."""
    return answer.half_width is not None or answer.relative is not None


def small_groups(answer: Answer, found: AnsweredPart) -> NDArray[np.bool_]:
    """The rows of a formula that set no price beside others, since few records are in them.

    There what it divides by is known to be within the half-width that it has without a target:
    a few people are not bought at the price at which all others could be answered many times.

    Parameters
    ----------
    found : AnsweredPart
        Its part.
    """
    is_small = np.zeros(found.part.n_rows, dtype=np.bool_)
    confidence = found.part.cut_at(found.part.confidence)
    for place in answer.divisors:
        rows, enough = found.aggregates[place].posteriors, found.part.aggregates[place].target
        farthest = [abs(row.value) + row.half_width(confidence) for row in rows]
        is_exact = [row.half_width(confidence) == 0 for row in rows]
        is_small |= (np.array(farthest) <= enough.half_width) & ~np.array(is_exact, np.bool_)
    return is_small & (not is_small.all())


@dataclass(frozen=True, slots=True)
class PartsOfFormula:
    """The blocks that one formula uses.

    Parameters
    ----------
    answer : Answer
        With a formula and a target.
    blocks : tuple of (int, Asked)
        With their places among all that the statement asks for.
    """

    part: Part
    answer: Answer
    blocks: tuple[tuple[int, Asked], ...]

    def open(
        self,
        step: Step,
        item: AnsweredItem | None,
        found: AnsweredPart | None,
        largest: Sequence[Floats],
    ) -> None:
        """Ask for the blocks at first: for what the history knows of them, or a share of that.

        Parameters
        ----------
        item, found : AnsweredItem and AnsweredPart, optional
            The formula and its part as the history answers them, if it does.
        largest : sequence of (n_rows,) ndarray of float64
            For every block of the statement, bounds on the sizes of its rows' answers.
        """
        start, end = self._first_width(largest), self._foreseen_width(largest)
        if item is None or found is None:
            for place, one in self.blocks:
                step.ask(place, start * _unit(one), foreseen=end * _unit(one), surest=0.0)
            return
        telling, least = _telling_share(item, found), self._least
        widths = {place: _known_width(one, found) / _unit(one) for place, one in self.blocks}
        shares = _shares(item, found, is_coarse=max(widths.values()) > least)
        for place, one in self.blocks:
            known = _known_width(one, found)
            level, share = self._level(one, widths), _share_of_block(one, shares)
            wanted = max(share, SHARE_MIN) * level
            if share < SHARE_MIN:
                wanted = min(wanted, start)
            if telling < 1 and level > least:
                wanted = min(wanted, max(telling * level, least))
            is_wide = wanted < widths[place]  # in one unit: a product would round
            asked_for = wanted * _unit(one) if is_wide else known
            likely = min(share * level * _unit(one), asked_for)
            foreseen = min(likely, end * _unit(one)) if telling < 1 else likely
            first = asked_for or one.wanted.target.half_width
            surest = self._surest(item, found, likely, one, is_near=share >= SHARE_MIN)
            step.ask(place, first, likely or None, foreseen or None, surest)

    def narrow(self, step: Step, item: AnsweredItem, found: AnsweredPart) -> None:
        """Ask for narrower blocks after a round, if the formula does not meet its target."""
        telling, least = _telling_share(item, found), self._least
        widths = {
            place: min(_known_width(one, found), one.wanted.target.half_width) / _unit(one)
            for place, one in self.blocks
        }
        shares = _shares(item, found, is_coarse=max(widths.values()) > least)
        for place, one in self.blocks:
            width, share = widths[place], _share_of_block(one, shares)
            level = self._level(one, widths)
            if telling < 1 and level > least:
                share = min(share, max(telling, least / level))
            elif not item.has_target.any() and one.aggregate in self.answer.divisors:
                level, share = width, TELLING_SHARE if width > TELLING_LEAST * least else 1.0
            wanted = max(share, SHARE_MIN) * level
            if share < 1 and wanted < width:  # what is known exactly cannot be narrowed
                likely = share * level * _unit(one)
                surest = self._surest(item, found, likely, one, is_near=share >= SHARE_MIN)
                step.ask(place, wanted * _unit(one), likely, surest=surest)

    def _surest(
        self, item: AnsweredItem, found: AnsweredPart, likely: float, one: Asked, *, is_near: bool
    ) -> float:
        """The narrowest half-width that a block may end with; 0 if that is not known yet."""
        if item.has_target.all():
            return SUREST * likely if is_near and _is_told(item, found) else 0.0
        widths = [surest_width(self.answer, *rows) for rows in _open_divisors(item, found)]
        return min(min(widths, default=0.0) * _unit(one), likely)

    @property
    def _least(self) -> float:
        """The half-width of the parts without a target, in records.

        A part that is an answer by itself may have a narrower one, which says nothing of others.
        """
        return max(
            self.part.aggregates[one.aggregate].target.half_width / _unit(one)
            for _, one in self.blocks
        )

    def _first_width(self, largest: Sequence[Floats]) -> float:
        """The half-width to begin with if nothing is known, in records."""
        widths = [first_width(self.answer, sizes, self._least) for sizes in self._divisors(largest)]
        return min(widths, default=self._least)

    def _foreseen_width(self, largest: Sequence[Floats]) -> float:
        """About the half-width that the search will end with, in records."""
        widths = [
            foreseen_width(self.answer, sizes, self._least) for sizes in self._divisors(largest)
        ]
        return min(widths, default=self._least)

    def _divisors(self, largest: Sequence[Floats]) -> Iterator[Floats]:
        """How large the rows of each divisor can be, in records."""
        for place, one in self.blocks:
            if one.aggregate in self.answer.divisors and largest[place].size:
                yield largest[place] / _unit(one)

    def _level(self, one: Asked, widths: Mapping[int, float]) -> float:
        """The half-width of the widest block beside which the formula reads one, in records."""
        return max(
            widths[place]
            for place, other in self.blocks
            if other is one
            or (one.is_row_by_row and not other.is_row_by_row)
            or (one.is_row_by_row and other.first_row == one.first_row)
        )


def _unit(one: Asked) -> float:
    """What one record adds to a block's rows at most."""
    return float(one.wanted.block.query.bound) or 1.0


def _known_width(one: Asked, found: AnsweredPart) -> float:
    """The widest half-width of the rows of a block's aggregate."""
    return widest(found.aggregates[one.aggregate].posteriors, one.wanted.target.confidence)


def _telling_share(item: AnsweredItem, found: AnsweredPart) -> float:
    """The share of their half-widths at which a formula's rows without a value may have one."""
    rows = _open_divisors(item, found)
    return min((next_share(item.answer, *known) for known in rows), default=1.0)


def _open_divisors(item: AnsweredItem, found: AnsweredPart) -> Iterator[tuple[Floats, Floats]]:
    """The values and half-widths of each divisor in the rows of a formula without a value."""
    is_open = ~item.has_target
    confidence = found.part.cut_at(found.part.confidence)
    for place in item.answer.divisors:
        rows = found.aggregates[place].posteriors
        known = np.array([(row.value, row.half_width(confidence)) for row in rows]).reshape(-1, 2)
        values, half_widths = np.broadcast_to(known, (is_open.size, 2))[is_open].T
        is_noisy = half_widths > 0
        yield values[is_noisy], half_widths[is_noisy]


def _is_told(item: AnsweredItem, found: AnsweredPart) -> bool:
    """Whether the target of each row is known to a factor of 2, since its value is."""
    if item.answer.relative is None:
        return True
    widths = item.half_widths(item.part.confidence)
    sizes = np.maximum(TOLD * np.abs(item.values), item.answer.width_floor)
    return bool((widths <= sizes)[~small_groups(item.answer, found)].all())


def _share_of_block(one: Asked, shares: Floats) -> float:
    """The smallest share that any row asks for which a block is shown in."""
    own = shares[one.rows] if one.is_row_by_row else shares
    return float(own.min(initial=1.0))


def _shares(item: AnsweredItem, found: AnsweredPart, *, is_coarse: bool) -> Floats:
    """The share of its half-width that each row of a formula should have; 1 if it has enough.

    Of coarse parts, an interval that is narrow because it was cut to the public range is no end of
    a search: each round could end one so, by its noise.
    """
    answer, part = item.answer, item.part
    widths = item.half_widths(part.confidence)
    if is_coarse and item.law is not None:
        widths = np.maximum(widths, item.law.spreads(part.cut_at(part.confidence)))
    sets_price = item.has_target & ~small_groups(answer, found)
    widths = np.where(sets_price, widths, 0.0)
    if answer.relative is None:
        enough = wanted = np.full(widths.shape, answer.half_width)
    else:
        size = np.abs(np.nan_to_num(item.values))
        enough = np.maximum(answer.relative * (size - widths), answer.width_floor)
        wanted = np.maximum(_relative_widths(item, answer.relative, widths), answer.width_floor)
    is_wide = widths > enough
    shares = np.clip(wanted / np.where(is_wide, widths, 1.0), SHARE_LEAST, 1.0)
    return np.where(is_wide, OVERSHOOT * shares, 1.0)


def _relative_widths(item: AnsweredItem, relative: float, widths: Floats) -> Floats:
    """The half-widths that a relative target will probably ask for in the end.

    What is little known may seem to be next to 0, and then its target would be next to nothing. So
    until it is told from 0 it is taken to be as large as it may be, as for a linear answer.
    """
    size = np.abs(np.nan_to_num(item.values))
    # An interval that was cut to next to nothing is narrower than what is known.
    farthest = np.maximum(widths, np.maximum(*map(np.abs, item.intervals(item.part.confidence))))
    is_open = (widths > TOLD * size) & np.isfinite(farthest)
    # The width w with w = relative * (size - w).
    in_the_end = relative / (1 + relative) * np.where(is_open, farthest, size)
    return np.where(is_open, np.minimum(in_the_end, COARSE_SHARE * widths), in_the_end)


def opening(
    asked: Sequence[Asked],
    parts: Sequence[Part],
    known: Sequence[RowEstimates],
    answered: Sequence[AnsweredPart | None],
    largest: Sequence[Floats],
) -> Step:
    """What to ask for first, given what the history knows.

    Parameters
    ----------
    asked : sequence of Asked
        With the half-widths that are asked for if nothing is known.
    known : sequence of (sequence of RowEstimate)
        What is known of the rows of each block.
    answered : sequence of (AnsweredPart or None)
        Each part as the history answers it; None if it does not.
    largest : sequence of (n_rows,) ndarray of float64
        For each block, bounds on the sizes of its rows' answers.
    """
    step = Step()
    for number, part in enumerate(parts):
        own = [(place, one) for place, one in enumerate(asked) if one.part == number]
        found = answered[number]
        used = {place for answer in part.answers for place in answer.uses}
        for place, one in own:
            if part.aggregates[one.aggregate].decision is not None:
                ask_until_decided(step, place, one, part, known[place])
            elif one.aggregate not in used:
                step.ask(place, one.wanted.target.half_width)
        for index, answer in enumerate(part.answers):
            blocks = [
                (place, one)
                for place, one in own
                if one.aggregate in answer.uses and not _is_decided(answer, part)
            ]
            if answer.formula is None and answer.relative is not None:
                for place, one in blocks:
                    rows = _known_rows(one, known[place], largest[place])
                    _ask_relative(step, place, one, answer, *rows, is_first=found is None)
            elif has_target(answer) and blocks:  # none if no group is possible
                formula = PartsOfFormula(part, answer, tuple(blocks))
                formula.open(step, found.answers[index] if found else None, found, largest)
            else:
                for place, one in blocks:
                    step.ask(place, one.wanted.target.half_width)
    return step


def narrowed(asked: Sequence[Asked], answered: Sequence[AnsweredPart]) -> Step:
    """What to ask for next; nothing if every answer meets its target."""
    step = Step()
    for number, part in enumerate(answered):
        for place, one in enumerate(asked):
            if one.part == number and part.part.aggregates[one.aggregate].decision is not None:
                rows = part.aggregates[one.aggregate].posteriors[one.rows]
                if not is_decided(one, part.part, rows):
                    ask_until_decided(step, place, one, part.part, rows)
        for item in part.answers:
            answer = item.answer
            blocks = [
                (place, one)
                for place, one in enumerate(asked)
                if one.part == number and one.aggregate in answer.uses
            ]
            if answer.formula is None and answer.relative is not None:
                for place, one in blocks:
                    rows = part.aggregates[one.aggregate].posteriors[one.rows]
                    found = _values_and_widths(one, rows)
                    if not _relative(answer).is_met(*found).all():
                        _ask_relative(step, place, one, answer, *found)
            elif has_target(answer) and blocks:
                PartsOfFormula(part.part, answer, tuple(blocks)).narrow(step, item, part)
    return step


def _is_decided(answer: Answer, part: Part) -> bool:
    """Whether an answer is linear, and a decision says how well it is to be known."""
    return answer.formula is None and part.aggregates[answer.uses[0]].decision is not None


def _relative(answer: Answer) -> RelativeTarget:
    if answer.relative is None:
        raise TypeError("the answer has no relative target")
    return RelativeTarget(answer.relative, answer.width_floor)


def _ask_relative(  # noqa: PLR0913, PLR0917 - a block, its answer, and what is known of it
    step: Step,
    place: int,
    one: Asked,
    answer: Answer,
    values: Floats,
    half_widths: Floats,
    *,
    is_first: bool = False,
) -> None:
    """Ask for a block of a linear answer with a relative target: what it has, if that is enough."""
    target = _relative(answer)
    is_open = ~target.is_met(values, half_widths)
    if is_open.any():
        next_widths = target.next_widths(values, half_widths)[is_open]
        likely = target.likely_widths(values, half_widths)[is_open]
        # At first, rows are as large as all together may be: the records are spread over them.
        evenly = likely.min() / (likely.size if is_first else 1)
        foreseen = max(float(evenly), min(target.floor, float(likely.min())))
        surest = float(target.surest_widths(values, half_widths)[is_open].min())
        step.ask(place, float(next_widths.min()), float(likely.min()), foreseen, surest)
    else:
        # Bounds that are narrow enough without a measurement do not ask for a narrower one.
        enough = max(float(half_widths.max(initial=0.0)), target.floor)
        step.ask(place, enough or one.wanted.target.half_width)


def _known_rows(one: Asked, rows: RowEstimates, largest: Floats) -> tuple[Floats, Floats]:
    """What is known of rows; of others, that they are 0 to within the largest they can be."""
    values, half_widths = np.zeros(len(rows)), largest.copy()
    for number, row in enumerate(rows):
        if isinstance(row, Posterior):
            half_width = row.half_width(one.wanted.target.confidence)
            if half_width < largest[number]:
                values[number], half_widths[number] = row.value, half_width
    return values, half_widths


def _values_and_widths(one: Asked, rows: Sequence[Posterior]) -> tuple[Floats, Floats]:
    confidence = one.wanted.target.confidence
    values = np.array([row.value for row in rows], dtype=np.float64)
    return values, np.array([row.half_width(confidence) for row in rows], dtype=np.float64)
