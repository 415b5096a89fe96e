"""Draws a randomised answer on a respondent's device, for three channels, in whole numbers.

A part of the respondent's side, which shares no code with `local_dp.channels`: see `respondent.py`.
The argument is in `proofs/channels.md`.
"""

from collections.abc import Callable
from dataclasses import dataclass
from fractions import Fraction
from typing import TypeAlias

Below: TypeAlias = Callable[[int], int]  # a whole number from 0 up to, but not including, another

COIN = 2**32


@dataclass(frozen=True)
class Response:
    """The true cell with some probability, otherwise one by weight."""

    keep: Fraction
    weights: tuple[int, ...]

    @property
    def ratio(self) -> Fraction:
        """The largest ratio of an answer's probabilities under two cells."""
        return 1 + self.keep * sum(self.weights) / ((1 - self.keep) * min(self.weights))

    def draw(self, cell: int, below: Below) -> int:
        """The randomised answer of a respondent in this cell."""
        true, total = self.keep.numerator * sum(self.weights), sum(self.weights)
        drawn = below(self.keep.denominator * total)
        if drawn < true:
            return cell
        place = (drawn - true) // (self.keep.denominator - self.keep.numerator)
        for fake, weight in enumerate(self.weights):
            place -= weight
            if place < 0:
                return fake
        raise AssertionError("the place must be below the sum of all weights")


@dataclass(frozen=True)
class Unary:
    """A bit for each cell, the first cell's the lowest."""

    noise: Fraction
    n_cells: int

    @property
    def ratio(self) -> Fraction:
        """The largest ratio of an answer's probabilities under two cells."""
        return (1 - self.noise) / self.noise

    def draw(self, cell: int, below: Below) -> int:
        """The randomised answer of a respondent in this cell."""
        noise = int(self.noise * COIN)
        ends = (COIN // 2 if place == cell else noise for place in range(self.n_cells))
        bits = "".join("1" if below(COIN) < end else "0" for end in ends)
        return int(bits[::-1], 2)


@dataclass(frozen=True)
class Hashing:
    """A seed, and by randomised response the bucket in which it puts the cell."""

    response: Response
    n_digits: int

    @property
    def ratio(self) -> Fraction:
        """The largest ratio of an answer's probabilities under two cells."""
        return self.response.ratio

    def draw(self, cell: int, below: Below) -> int:
        """The randomised answer of a respondent in this cell."""
        n_buckets = len(self.response.weights)
        seed = below(n_buckets**self.n_digits)
        place, rest, bucket = 1, seed, 0
        while rest:
            bucket += rest % n_buckets * (cell // place % n_buckets)
            rest, place = rest // n_buckets, place * n_buckets
        return seed * n_buckets + self.response.draw(bucket % n_buckets, below)


Channel: TypeAlias = Response | Unary | Hashing
