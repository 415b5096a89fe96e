"""What is new: on a table that grows, the part of a query that the history does not say yet.

A dashboard asks for a total every day. The table cut at today's horizon has one day more, and what
is known of the days before is as good as it was: so the new day is measured alone, and added. A
total is then a sum of stretches, each with a noise of its own. N stretches, each at a weight of
``w(N)``, are as precise as one measurement at the weight ``w(1)``, with ``w(N)`` about ``sqrt(N)
w(1)``. A cell is in one stretch, and costs about ``sqrt(N)`` plain answers, where measuring
everything anew every day costs N of them.

    stretches   every stretch raised to ``w(N)``, with N the next power of two (Laplace noise)
    new         of groups by time, the rows that are not known well enough

Headroom. With N a power of two, most days buy the newest stretch alone, which costs what cells cost
that nobody has paid for yet: nothing, until they cost as much as the others. On the day after N is
reached, all are raised to ``w(2 N)``, a price that is divided by the days that it serves: ``N`` of
them, as many as were seen before. This is ski rental once more: what was asked for N days is taken
to be asked for N more.

Proved, for one shape that is asked every day at one target, where ``w(N) <= sqrt(N) w(1)`` and
nothing else is bought: after T days at most ``sqrt(2 T) w(1)`` is paid, since N is below ``2 T``.
Who knew T would pay ``w(T)`` with stretches, so headroom costs a factor of ``sqrt(2)`` at most.
And whatever else is bought: a raise is chosen if its price for each day that it serves is at most
that of buying anew today. So stretches never cost more than as many plain answers at the prices of
the days on which they were chosen; at most the last raise was in vain, and that one serves no more
days than were asked before it, so that at most twice the rent is paid, as with skis.

The chain of stretches is the reader's, and so is the noise of the sum: half-widths are exact. What
is measured depends on weights and targets alone. Gaussian noise gains nothing: its cost is linear
in the precision, and N stretches at N times the precision cost what N answers cost.
"""

import math
from collections.abc import Iterator
from functools import cached_property, lru_cache

import numpy as np

from cube.measurement import UNITS_PER_EPSILON, WEIGHT_UNITS_MAX, PlannedMeasurement, Weight
from cube.query import QueryBlock
from inference.block_estimates import widest
from inference.blue.stretches import Stretch, StretchesReader, on_stretch
from inference.noise_law.law import law_of_noise
from planner.measuring.candidates import Candidate
from planner.measuring.noise_kinds import LAPLACE
from planner.measuring.weighing import Weighing
from planner.measuring.weights import LATTICE_SHARE, ROUNDING_MARGIN

N_STRETCHES_MAX = 2**8  # in a sum: a year of days; a longer chain is measured anew


class WhatIsNew:
    """What could be bought of one aggregate beside what is known of it.

    Parameters
    ----------
    weighing : Weighing
    known : StretchesReader
        What is known along the axis of time.
    """

    def __init__(self, weighing: Weighing, known: StretchesReader) -> None:
        self._weighing = weighing
        self._known = known
        self._row = weighing.block.primitive[0]

    @cached_property
    def rows(self) -> Candidate | None:
        """Of groups by time, those that are not known well enough; None if these are all."""
        partition, target = self._row.partition, self._weighing.target
        if partition is None or self._known.axis not in partition.axes:
            return None
        estimator = self._weighing.now.estimator
        found = estimator.estimate(self._weighing.block, target.confidence, target.half_width)
        is_missing = np.array(
            [widest([one], target.confidence) > target.half_width for one in found]
        )
        if is_missing.all() or not is_missing.any():
            return None
        numbers = np.where(is_missing, np.cumsum(is_missing) - 1, -1)
        left = partition.renumbered(np.append(numbers, -1))
        block = QueryBlock(self._row.query, left).primitive[0]
        return Candidate("new", (block,), self._row.scope)

    @cached_property
    def candidate(self) -> Candidate:
        """The stretches that add up to the rows, the newest last; none where nothing is known."""
        asked = self._row if self.rows is None else self.rows.blocks[0]
        return Candidate("stretches", tuple(self._stretches(asked)), asked.scope)

    def plans(self) -> Iterator[tuple[tuple[PlannedMeasurement, ...], int]]:
        """Stretches at the weight of the next power of two of them, and of as many as there are.

        Each with the number of days that it serves.
        """
        n_now = len(self.candidate.blocks)
        if n_now < 2 or n_now > N_STRETCHES_MAX:  # noqa: PLR2004 - one is the query itself
            return
        n_then = 1 << (n_now - 1).bit_length()
        for n_stretches in sorted({n_then, n_now}, reverse=True):
            units = self._units(n_stretches)
            if units is not None:
                plan = self._weighing.raised(self.candidate, LAPLACE, units)
                yield plan, n_stretches - n_now + 1

    def _units(self, n_stretches: int) -> int | None:
        """The weight at which so many stretches meet the target; None if it is too large."""
        _, multiplier = self._weighing.block.primitive
        target = self._weighing.target
        # What is raised keeps its lattice, of a weight that was less by the root of their number.
        on_lattice = n_stretches * math.sqrt(n_stretches) * LATTICE_SHARE
        nats = _quantile(n_stretches, target.confidence) + on_lattice
        rate = nats * (1 + ROUNDING_MARGIN) * abs(float(multiplier)) / target.half_width
        is_possible = rate * UNITS_PER_EPSILON < WEIGHT_UNITS_MAX
        return Weight.at_least(rate).units if is_possible else None

    def _stretches(self, asked: QueryBlock) -> list[QueryBlock]:
        """The known stretches, and the rest of a block's one stretch; empty if nothing is known."""
        whole = self._one_stretch(asked)
        chain = () if whole is None else self._known.known_part(whole)
        if whole is None or not chain:
            return []
        axis, size = self._known.axis, self._known.size
        blocks = []
        for link in chain:
            block, stretch = link.measured.measurement.block, link.measured.stretch
            if any(
                one.start < whole.start or one.end > whole.end
                for one in self._known.stretches_of(block)
            ):  # it is about other days, too, which a raise would pay for
                block = on_stretch(asked, axis, size, stretch.start, stretch.end)
            blocks.append(block)
        end = max(link.measured.stretch.end for link in chain)
        if end < whole.end:
            blocks.append(on_stretch(asked, axis, size, end, whole.end))
        return blocks

    def _one_stretch(self, asked: QueryBlock) -> Stretch | None:
        """The stretch that all rows are about, if there is one."""
        stretches = self._known.stretches_of(asked)
        is_one = len(stretches) == 1 and stretches[0].rows.size == asked.n_rows
        return stretches[0] if is_one else None


@lru_cache(maxsize=N_STRETCHES_MAX)
def _quantile(n_stretches: int, confidence: float) -> float:
    """The half-width of a sum of so many Laplace variables of scale 1."""
    return law_of_noise(np.ones(n_stretches)).half_width(confidence)
