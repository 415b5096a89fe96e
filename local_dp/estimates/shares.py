"""Counts the answers of one combination, and estimates its shares by inversion.

Counts of the answers that went through one channel: all that a server keeps of them.

The nearest shares to any numbers: the projection onto the simplex.

Shares of one combination from all its answers: inversion, pooled over blocks, with variances.

A block is the answers that went through one channel; a later block may have another. Each gives
unbiased shares, and their mean is weighted by numbers that depend on channels and sizes alone, so
that the mean is unbiased even if later channels were chosen after looking at earlier answers.

The variance is that of answers drawn from a population with these shares. Of the respondents
themselves, who are not drawn, it is an upper bound.

The argument is in `proofs/estimates.md`.
"""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from cube.pace import checkpoint
from cube.runtime import cached_property
from local_dp.channels import AnyChannel, Floats, LocalHashing


@dataclass(frozen=True, eq=False)
class Tally:
    """How many of some answers count at each place of their channel.

    Parameters
    ----------
    channel : RandomisedResponse, UnaryEncoding or LocalHashing
    n_answers : int
    counts : (n_tallies,) ndarray of int64
    """

    channel: AnyChannel
    n_answers: int
    counts: NDArray[np.int64]

    def __post_init__(self) -> None:
        counts = np.array(self.counts, dtype=np.int64, copy=True)
        if counts.shape != (self.channel.n_tallies,):
            raise ValueError(
                f"counts must have {self.channel.n_tallies} values, not the shape {counts.shape}"
            )
        if counts.min() < 0 or counts.max() > self.n_answers:
            raise ValueError("every count must be from 0 to the number of answers")
        if self.channel.is_categorical and int(counts.sum()) != self.n_answers:
            raise ValueError("the counts must add up to the number of answers")
        counts.flags.writeable = False
        object.__setattr__(self, "counts", counts)

    @classmethod
    def of_answers(cls, channel: AnyChannel, answers: Iterable[int]) -> "Tally":
        """The counts of some answers."""
        counts, n_answers = np.zeros(channel.n_tallies, dtype=np.int64), 0
        for answer in answers:
            n_answers += 1
            counts[list(channel.tallies_of(answer))] += 1
        return cls(channel, n_answers, counts)

    @property
    def rates(self) -> Floats:
        """The part of the answers that counts at each place."""
        if self.n_answers == 0:
            raise ValueError("there are no answers")
        return np.asarray(self.counts / self.n_answers)

    @cached_property
    def supports(self) -> Floats:
        """Of local hashing: for each cell, how many answers have it in their bucket."""
        if not isinstance(self.channel, LocalHashing):
            raise TypeError("only answers by local hashing have supports")
        return self.channel.supports(self.counts)


def merged(tallies: Sequence[Tally]) -> tuple[Tally, ...]:
    """One tally for each channel, of all its answers; those without answers are left out."""
    found: dict[AnyChannel, Tally] = {}
    for tally in tallies:
        if tally.n_answers:
            known = found.get(tally.channel)
            found[tally.channel] = (
                tally
                if known is None
                else Tally(
                    tally.channel, known.n_answers + tally.n_answers, known.counts + tally.counts
                )
            )
    return tuple(found.values())


def project_simplex(values: Floats, total: float = 1.0) -> Floats:
    """The nearest point, in Euclidean distance, that is nowhere negative and adds up to `total`.

    Exact, by sorting: all values are lowered by one threshold, and those below it become 0. Biased
    where it clips, so sums and intervals come from the values themselves.

    Examples
    --------
    >>> project_simplex(np.array([0.75, 0.5, -0.25])).tolist()
    [0.625, 0.375, 0.0]
    """
    if not total > 0:
        raise ValueError("total must be positive")
    if values.ndim != 1 or values.size == 0 or not np.isfinite(values).all():
        raise ValueError("values must be finite, and an array of one dimension")
    falling = np.sort(values)[::-1]
    thresholds = (np.cumsum(falling) - total) / np.arange(1, values.size + 1)
    n_kept = int(np.flatnonzero(falling > thresholds)[-1]) + 1
    return np.asarray(np.maximum(values - thresholds[n_kept - 1], 0.0))


N_ENTRIES_AT_ONCE = 2**19  # of an array of contributions: 4 MB, a few times over


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
            raise ValueError("every block needs at least one answer")
        if len({block.channel.n_cells for block in self.blocks}) != 1:
            raise ValueError("the blocks have different numbers of cells")
        if len({block.channel for block in self.blocks}) != len(self.blocks):
            raise ValueError("two blocks have the same channel; merge them")

    @property
    def n_cells(self) -> int:
        """The number of cells."""
        return self.blocks[0].channel.n_cells

    @property
    def n_places(self) -> int:
        """The number of cells, or of places at which answers are counted: the larger one."""
        return max(self.n_cells, *(block.channel.n_tallies for block in self.blocks))

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

    @cached_property
    def _likely_rates(self) -> tuple[Floats, ...]:
        """The rates of each block's places at the likely shares."""
        return tuple(block.channel.rates(self.likely_shares) for block in self.blocks)

    def variances(self, coefficients: Floats) -> Floats:
        """Of the estimates of linear queries of the shares; see `moments`."""
        return self.moments(coefficients)[0]

    def moments(self, coefficients: Floats) -> tuple[Floats, Floats]:
        """Of the estimates of linear queries of the shares, some of them at a time.

        Parameters
        ----------
        coefficients : (n_cells, n_queries) ndarray

        Returns
        -------
        variances : (n_queries,) ndarray
        thirds : (n_queries,) ndarray
            The sum of absolute third moments over all answers and their independent parts.
        """
        variances = np.zeros(coefficients.shape[1])
        thirds = np.zeros_like(variances)
        at_once = max(1, N_ENTRIES_AT_ONCE // self.n_places)
        blocks = zip(self.weights, self.blocks, self._likely_rates, strict=True)
        for weight, block, rates in blocks:
            each, n = weight / block.n_answers, block.n_answers
            for first in range(0, variances.size, at_once):
                checkpoint()
                some = slice(first, first + at_once)
                of_one = block.channel.moments(coefficients[:, some], rates)
                variances[some] += each**2 * n * of_one[0]
                thirds[some] += each**3 * n * of_one[1]
        return variances, thirds


def estimated(tallies: Sequence[Tally]) -> TableEstimate:
    """The shares of a combination, from the tallies of any number of its blocks."""
    return TableEstimate(merged(tallies))
