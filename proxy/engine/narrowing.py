"""How much narrower a statement's blocks must be known, so that its answers meet their targets.

A relative target of a linear answer has rules of its own (`relative_widths.py`). A formula's width
decreases about as the widths of its parts do, so all of them are narrowed by the same share. Rows
of one block are measured together, and a block is narrowed for all of its rows; blocks whose own
rows are known well enough are left alone.

A row in which a formula divides by what cannot be told from 0 has no value, and asks for nothing:
what is bought is decided by the other rows. If there is no other row, what is divided by is
narrowed a few times, in case it is merely small.

Everything is decided from what is shown to the caller: noisy values that were paid for.
"""

from collections.abc import Sequence
from typing import Final, TypeAlias

import numpy as np
from numpy.typing import NDArray

from inference.posterior import Posterior, RowEstimate, widest
from planner.workload import Answer, Part
from proxy.engine.asked import Asked, Step
from proxy.engine.relative_widths import RelativeTarget
from proxy.engine.results import AnsweredItem, AnsweredPart

Floats: TypeAlias = NDArray[np.float64]

OVERSHOOT: Final = 0.9  # a formula's width decreases about as its parts' do
SHARE_MIN: Final = 1 / 8  # of the width so far, in one round: refinement costs only the difference
SHARE_LEAST: Final = (
    2.0**-60
)  # for an unbounded interval: no price is high enough, and it is refused
TELLING_SHARE: Final = 1 / 2  # of its width, by which a divisor is narrowed to tell it from 0
TELLING_LEAST: Final = 1 / 8  # of its first width; what cannot be told from 0 then is taken for 0


def opening(
    asked: Sequence[Asked],
    parts: Sequence[Part],
    known: Sequence[Sequence[RowEstimate]],
    answered: Sequence[AnsweredPart | None],
    largest: Sequence[Floats],
) -> Step:
    """What to ask for first, given what the history knows.

    Parameters
    ----------
    asked : sequence of Asked
        With the half-widths that are asked for if nothing is known.
    parts : sequence of Part
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
            if one.aggregate not in used:
                step.ask(place, one.wanted.target.half_width)
        for index, answer in enumerate(part.answers):
            blocks = [(place, one) for place, one in own if one.aggregate in answer.uses]
            if answer.formula is None and answer.relative is not None:
                for place, one in blocks:
                    rows = _known_rows(one, known[place], largest[place])
                    _ask_relative(step, place, one, answer, *rows)
            elif found is None or not _has_target(answer):
                for place, one in blocks:
                    step.ask(place, one.wanted.target.half_width)
            else:
                _open_formula(step, blocks, found.answers[index], known)
    return step


def narrowed(asked: Sequence[Asked], answered: Sequence[AnsweredPart]) -> Step:
    """What to ask for next; nothing if every answer meets its target."""
    step = Step()
    for number, part in enumerate(answered):
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
            elif _has_target(answer):
                _narrow_formula(step, blocks, item, part)
    return step


def _has_target(answer: Answer) -> bool:
    return answer.half_width is not None or answer.relative is not None


def _relative(answer: Answer) -> RelativeTarget:
    if answer.relative is None:
        raise TypeError("the answer has no relative target")
    return RelativeTarget(answer.relative, answer.width_floor)


def _ask_relative(  # noqa: PLR0913, PLR0917 - a block, its answer, and what is known of it
    step: Step, place: int, one: Asked, answer: Answer, values: Floats, half_widths: Floats
) -> None:
    """Ask for a block of a linear answer with a relative target: what it has, if that is enough."""
    target = _relative(answer)
    is_open = ~target.is_met(values, half_widths)
    if is_open.any():
        next_widths = target.next_widths(values, half_widths)[is_open]
        likely = target.likely_widths(values, half_widths)[is_open]
        step.ask(place, float(next_widths.min()), float(likely.min()))
    else:
        step.ask(place, float(half_widths.max(initial=0.0)) or one.wanted.target.half_width)


def _known_rows(one: Asked, rows: Sequence[RowEstimate], largest: Floats) -> tuple[Floats, Floats]:
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


def _open_formula(
    step: Step,
    blocks: Sequence[tuple[int, Asked]],
    item: AnsweredItem,
    known: Sequence[Sequence[RowEstimate]],
) -> None:
    """Ask for the blocks of a formula that the history answers: what is known, or a share of it."""
    shares = _shares(item)
    for place, one in blocks:
        first = one.wanted.target.half_width
        share = _share_of_block(one, shares)
        width = widest(known[place], one.wanted.target.confidence)
        asked_for = max(share, SHARE_MIN) * width or first
        is_unsure = bool(item.is_undivided.any())
        if share < SHARE_MIN or (is_unsure and one.aggregate in item.answer.divisors):
            asked_for = min(asked_for, first)
        step.ask(place, asked_for, share * width or first)


def _narrow_formula(
    step: Step, blocks: Sequence[tuple[int, Asked]], item: AnsweredItem, part: AnsweredPart
) -> None:
    """Ask for narrower blocks of a formula, if it does not meet its target."""
    shares = _shares(item)
    for place, one in blocks:
        target = one.wanted.target
        rows = part.aggregates[one.aggregate].posteriors
        width = min(widest(rows, target.confidence), target.half_width)
        share = _share_of_block(one, shares)
        if not item.has_target.any() and one.aggregate in item.answer.divisors:
            first = part.part.aggregates[one.aggregate].target.half_width
            share = TELLING_SHARE if width > TELLING_LEAST * first else 1.0
        if share < 1 and width > 0:  # what is known exactly cannot be narrowed
            step.ask(place, max(share, SHARE_MIN) * width, share * width)


def _share_of_block(one: Asked, shares: Floats) -> float:
    """The smallest share that any row asks for which a block is shown in."""
    own = shares[one.rows] if one.is_row_by_row else shares
    return float(own.min(initial=1.0))


def _shares(item: AnsweredItem) -> Floats:
    """The share of its half-width that each row of a formula should have; 1 if it has enough."""
    answer = item.answer
    has_target = item.has_target
    widths = np.where(has_target, item.half_widths(item.part.confidence), 0.0)
    if answer.relative is None:
        enough = wanted = np.full(widths.shape, answer.half_width)
    else:
        size = np.abs(np.nan_to_num(item.values))
        enough = np.maximum(answer.relative * (size - widths), answer.width_floor)
        # In the end, the width w with w = relative * (size - w).
        in_the_end = answer.relative / (1 + answer.relative) * size
        wanted = np.maximum(in_the_end, answer.width_floor)
    is_wide = widths > enough
    shares = wanted / np.where(is_wide, widths, 1.0)
    return np.where(is_wide, OVERSHOOT * np.clip(shares, SHARE_LEAST, 1.0), 1.0)
