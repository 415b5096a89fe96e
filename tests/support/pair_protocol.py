"""The published protocol for overlapping tables, with a coin for each, for tests that convict it.

Each stage answers the attributes of one table that no earlier stage answered: with the truth, or
with a draw from a table of fakes given what was answered before. Never to be served.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from fractions import Fraction
from itertools import product

import numpy as np

from local_dp.channels.channel import Floats, Matrix


@dataclass(frozen=True)
class Stage:
    """One coin.

    Parameters
    ----------
    new : tuple of int
        The axes that it answers.
    fakes : ndarray of float64 or of Fraction
        With all axes, of length 1 where a fake does not depend on one: the probability of a fake of
        the new axes, given what was answered before.
    """

    new: tuple[int, ...]
    fakes: np.ndarray

    def faked(self, shares: Floats) -> Floats:
        """What becomes of shares where every coin shows tails."""
        return np.asarray(shares.sum(axis=self.new, keepdims=True) * self.fakes)

    @property
    def least(self) -> float:
        """The least probability of a fake."""
        return float(self.fakes.min())


def uniform_stages(
    names: Sequence[str], sizes: Sequence[int], tables: Sequence[str]
) -> tuple[Stage, ...]:
    """Stages that answer tables in turn, with equal fakes."""
    stages, answered = [], set[int]()
    for table in tables:
        new = tuple(names.index(one) for one in table if names.index(one) not in answered)
        answered.update(new)
        n_cells = int(np.prod([sizes[axis] for axis in new]))
        stages.append(Stage(new, np.full((1,) * len(sizes), 1 / n_cells)))
    return tuple(stages)


def emitted(shares: Floats, stages: Sequence[Stage], keep: float) -> Floats:
    """The law of the rows that respondents send."""
    for stage in stages:
        shares = keep * shares + (1 - keep) * stage.faked(shares)
    return shares


def recovered(rows: Floats, stages: Sequence[Stage], keep: float) -> Floats:
    """The shares whose rows these are: exactly, since to fake twice is to fake once."""
    for stage in reversed(stages):
        rows = (rows - (1 - keep) * stage.faked(rows)) / keep
    return rows


def channel_of(stages: Sequence[Stage], keep: Fraction, sizes: Sequence[int]) -> Matrix:
    """The probability of each row that is sent, for each true one: exactly, for few attributes."""
    rows = list(product(*(range(size) for size in sizes)))

    def probability(true: tuple[int, ...], sent: tuple[int, ...]) -> Fraction:
        found = Fraction(1)
        for stage in stages:
            place = tuple(
                level if length > 1 else 0
                for level, length in zip(sent, stage.fakes.shape, strict=True)
            )
            is_true = all(true[axis] == sent[axis] for axis in stage.new)
            found *= keep * is_true + (1 - keep) * Fraction(stage.fakes[place])
        return found

    return [[probability(true, sent) for sent in rows] for true in rows]
