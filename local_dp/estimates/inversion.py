"""Shares of one combination from all its answers: inversion, pooled over blocks, with variances.

A block is the answers that went through one channel; a later block may have another. Each gives
unbiased shares, and their mean is weighted by numbers that depend on channels and sizes alone, so
that the mean is unbiased even if later channels were chosen after looking at earlier answers.

The variance is that of answers drawn from a population with these shares. Of the respondents
themselves, who are not drawn, it is an upper bound.

The argument is in `proofs/estimates.md`.
"""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import TypeAlias

import numpy as np

from cube.cached import cached_property
from local_dp.channels.channel import Channel, Floats
from local_dp.estimates.simplex import project_simplex
from local_dp.estimates.tally import Tally, merged

Moment: TypeAlias = Callable[[Channel, Floats, Floats], Floats]
N_ENTRIES_AT_ONCE = 2**22  # of an array of contributions: 32 MB


@dataclass(frozen=True, eq=False)
class TableEstimate:
    """The shares of a combination's cells.

    Parameters
    ----------
    blocks : tuple of Tally
        With different channels for the same number of cells, each with at least one answer. Made
        by `estimated`.
    """

    blocks: tuple[Tally, ...]

    def __post_init__(self) -> None:
        if not self.blocks or any(block.n_answers == 0 for block in self.blocks):
            raise ValueError("shares are estimated from at least one answer")
        if len({block.channel.n_cells for block in self.blocks}) != 1:
            raise ValueError("the blocks are of combinations of different size")
        if len({block.channel for block in self.blocks}) != len(self.blocks):
            raise ValueError("two blocks of one channel are one block")

    @property
    def n_cells(self) -> int:
        """The number of cells."""
        return self.blocks[0].channel.n_cells

    @property
    def n_answers(self) -> int:
        """The number of answers, of all blocks."""
        return sum(block.n_answers for block in self.blocks)

    @property
    def typical_variance(self) -> float:
        """Of a share, the mean where shares are equal: what channels and sizes alone say."""
        return 1 / sum(block.n_answers / block.channel.typical_variance for block in self.blocks)

    @cached_property
    def weights(self) -> Floats:
        """The part of each block in the pooled shares; they add up to 1."""
        precisions = [block.n_answers / block.channel.typical_variance for block in self.blocks]
        return np.asarray(np.array(precisions) / sum(precisions))

    @cached_property
    def shares(self) -> Floats:
        """Unbiased; they add up to 1, and some may be negative."""
        parts = np.array([block.channel.inverted(block.rates) for block in self.blocks])
        return np.asarray(self.weights @ parts)

    @cached_property
    def likely_shares(self) -> Floats:
        """The nearest shares that are nowhere negative: those that variances are computed at."""
        return project_simplex(self.shares)

    def variances(self, coefficients: Floats) -> Floats:
        """Of the estimates of linear queries of the shares.

        Parameters
        ----------
        coefficients : (n_cells, n_queries) ndarray

        Returns
        -------
        (n_queries,) ndarray
        """
        return self._sum_over_blocks(
            coefficients,
            lambda channel, some, rates: channel.variances(some, rates),
            power=2,
        )

    def third_moments(self, coefficients: Floats) -> Floats:
        """The sum of absolute third moments over all answers and their independent parts."""
        return self._sum_over_blocks(
            coefficients,
            lambda channel, some, rates: channel.third_moments(some, rates),
            power=3,
        )

    def _sum_over_blocks(self, coefficients: Floats, moment: Moment, *, power: int) -> Floats:
        """Sum the moments of all answers, each with its weight to this power."""
        found = np.zeros(coefficients.shape[1])
        for weight, block in zip(self.weights, self.blocks, strict=True):
            channel = block.channel
            rates = channel.rates(self.likely_shares)
            each = (weight / block.n_answers) ** power * block.n_answers
            at_once = max(1, N_ENTRIES_AT_ONCE // max(channel.n_tallies, channel.n_cells))
            for first in range(0, found.size, at_once):
                some = slice(first, first + at_once)
                found[some] += each * moment(channel, coefficients[:, some], rates)
        return found


def estimated(tallies: Sequence[Tally]) -> TableEstimate:
    """The shares of a combination, from the tallies of any number of its blocks."""
    return TableEstimate(merged(tallies))
