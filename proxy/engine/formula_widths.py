"""The half-widths that the parts of a formula with a target are asked for: at first, and next.

A formula's width decreases about as the widths of its parts do. These are compared in records of
the largest value, as the widths of sums are by their largest coefficients. The parts that are
widest are narrowed by the share that the formula is too wide by; a part that another answer has
made as narrow as that is left alone. Rows of one block are measured together, and a block is
narrowed for all of its rows; blocks whose own rows are known well enough are left alone.

A search begins wide, and is narrowed until rows have values (`wide_start.py`). A row that still
divides by what cannot be told from 0, when the parts are as narrow as without a target, has no
value and asks for nothing: what is bought is decided by the other rows. If there is no other row,
what is divided by is narrowed a few times, in case it is merely small.
"""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Final, TypeAlias

import numpy as np
from numpy.typing import NDArray

from inference.block_estimates import widest
from planner.workload import Answer, Part
from proxy.engine.asked import Asked, Step
from proxy.engine.relative_widths import COARSE_SHARE, TOLD
from proxy.engine.results import AnsweredItem, AnsweredPart
from proxy.engine.wide_start import first_width, foreseen_width, next_share, surest_width

Floats: TypeAlias = NDArray[np.float64]

OVERSHOOT: Final = 0.9  # a formula's width decreases about as its parts' do
SHARE_MIN: Final = 1 / 8  # of the width so far, in one round: refinement costs only the difference
SHARE_LEAST: Final = (
    2.0**-60
)  # for an unbounded interval: no price is high enough, and it is refused
SUREST: Final = 1 / 2  # of its likely width: the narrowest that a part of a told formula may need
TELLING_SHARE: Final = 1 / 2  # of its width, by which a divisor is narrowed to tell it from 0
TELLING_LEAST: Final = 1 / 8  # of its first width; what cannot be told from 0 then is taken for 0


def has_target(answer: Answer) -> bool:
    """Whether an answer has a target of its own, beside those of what it uses."""
    return answer.half_width is not None or answer.relative is not None


def small_groups(answer: Answer, found: AnsweredPart) -> NDArray[np.bool_]:
    """The rows of a formula that set no price beside others, since few records are in them.

    There what it divides by is known to be within the half-width that it has without a target:
    a few people are not bought at the price at which all others could be answered many times.

    Parameters
    ----------
    answer : Answer
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
    part : Part
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
        step : Step
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
