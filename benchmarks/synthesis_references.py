"""What synthetic tables are held against: independent columns, and the real rows drawn again.

    independent      the real columns, each shuffled: no dependence, and no noise
    floor            the same with noise: all of the budget spent on counts of single columns
    bootstrap        as many rows drawn from the real ones, with replacement

Nothing private is near: the noise of the floor is a textbook generator's.
"""

from collections.abc import Callable
from fractions import Fraction

import numpy as np
from numpy.typing import NDArray

from benchmarks.marginal_distance import pairs_distance
from benchmarks.synthesis_tables import BenchTable
from proxy.synthetic_tables.make import columns_of
from synthesis.choice import LAPLACE
from synthesis.drawing import draw_rows
from synthesis.model import fit_model
from synthesis.sketch import Sketch
from synthesis.tables import TableEstimate

N_RUNS = 3  # of whatever is random


def independent(table: BenchTable, real: NDArray[np.int64]) -> float:
    """The mean distance of pairs if columns were independent."""
    return _mean(table, real, lambda rng: rng.permuted(real, axis=0))


def bootstrap(table: BenchTable, real: NDArray[np.int64]) -> float:
    """The mean distance of pairs of rows drawn from the real ones."""
    return _mean(table, real, lambda rng: real[rng.integers(len(real), size=len(real))])


def floor(table: BenchTable, real: NDArray[np.int64], epsilon: Fraction) -> float:
    """The mean distance of pairs of independent columns that are bought for an epsilon."""
    columns = columns_of(table.schema.axes)
    prices = LAPLACE.split(np.array(table.sizes), float(epsilon))

    def drawn(rng: np.random.Generator) -> NDArray[np.int64]:
        estimates = []
        for place, (column, price) in enumerate(zip(columns, prices.tolist(), strict=True)):
            counts = np.bincount(real[:, place], minlength=column.size)
            noisy = counts + rng.laplace(0.0, 1 / price, column.size)
            estimates.append(TableEstimate((column.name,), noisy, np.array(2 / price**2)))
        return draw_rows(fit_model(Sketch.of(columns, estimates)), rng).astype(np.int64)

    return _mean(table, real, drawn)


def _mean(
    table: BenchTable,
    real: NDArray[np.int64],
    drawn: Callable[[np.random.Generator], NDArray[np.int64]],
) -> float:
    errors = [
        pairs_distance(real, drawn(np.random.default_rng(seed)), table.sizes)
        for seed in range(N_RUNS)
    ]
    return float(np.mean(errors))
