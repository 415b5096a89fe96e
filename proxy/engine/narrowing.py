"""How much narrower a statement's blocks must be known, so that its answers meet their targets.

A relative target of a linear answer has rules of its own (`relative_widths.py`), and so has the
target of a formula (`formula_widths.py`).

Everything is decided from what is shown to the caller: noisy values that were paid for.
"""

from collections.abc import Sequence
from typing import TypeAlias

import numpy as np
from numpy.typing import NDArray

from inference.block_estimates import RowEstimates
from inference.posterior import Posterior
from planner.workload import Answer, Part
from proxy.engine.asked import Asked, Step
from proxy.engine.formula_widths import PartsOfFormula, has_target
from proxy.engine.relative_widths import RelativeTarget
from proxy.engine.results import AnsweredPart

Floats: TypeAlias = NDArray[np.float64]


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
