"""Measurements with noise of either kind on a small cube, for tests of inference.

Their values can be drawn in floats: nothing here protects data.
"""

import math
from collections.abc import Sequence
from dataclasses import dataclass
from fractions import Fraction
from functools import cache

import numpy as np
from numpy.typing import NDArray

from cube.measurement import Measurement, Precision, Weight
from cube.query import QueryBlock
from tests.support.cubes import dense_rows

LATTICE_BITS = 20


@dataclass(frozen=True, eq=False)
class Look:
    """A block, and the noise to measure it with.

    Parameters
    ----------
    block : QueryBlock
    size : float
        The scale of the Laplace noise, or the deviation of the Gaussian noise.
    is_gaussian : bool
    """

    block: QueryBlock
    size: float
    is_gaussian: bool = False

    def measured(
        self, values: NDArray[np.float64] | None = None, supersedes: int | None = None
    ) -> Measurement:
        """The measurement with these noisy values; zeros if none are given."""
        noisy = np.zeros(self.block.n_rows) if values is None else values
        steps = tuple(int(one) for one in np.rint(np.ldexp(noisy, LATTICE_BITS)))
        weight: Weight | Precision
        if self.is_gaussian:
            weight = Precision.at_least(Fraction(1) / (2 * Fraction(self.size) ** 2))
            scale = math.sqrt(1 / (4 * weight.exact)) * (1 + 1e-12)
        else:
            weight = Weight.at_least(1 / self.size)
            scale = float(1 / weight.exact) * (1 + 1e-12)
        return Measurement(self.block, weight, LATTICE_BITS, scale, steps, supersedes)

    def drawn(
        self, counts: NDArray[np.float64], rng: np.random.Generator, wrong: float = 1.0
    ) -> Measurement:
        """The measurement of a cube, with noise whose size is wrong by a factor."""
        exact = rows_of(self.block) @ counts
        draw = rng.normal if self.is_gaussian else rng.laplace
        return self.measured(exact + wrong * draw(0.0, self.size, exact.size))


@cache
def rows_of(block: QueryBlock) -> NDArray[np.float64]:
    """The coefficients of every cell, (n_rows, n_cells)."""
    return np.array(dense_rows(block), dtype=np.float64)


def raised(
    earlier: Measurement, place: int, more: Look, values: NDArray[np.float64]
) -> Measurement:
    """The average of an earlier measurement and a further look, weighted by precision."""
    first, second = 1 / earlier.deviation**2, 1 / more.size**2
    mean = (first * earlier.values + second * values) / (first + second)
    return Look(more.block, 1 / math.sqrt(first + second), is_gaussian=True).measured(mean, place)


def history_of(looks: Sequence[Look]) -> list[Measurement]:
    """The measurements of some looks, with values of zero."""
    return [look.measured() for look in looks]
