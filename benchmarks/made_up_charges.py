"""Charges that could have been written about a table, for ledgers that no server filled.

Blocks over a few columns, some of them grouped and some raised from an earlier measurement. The
values are nobody's: no data are read.
"""

from dataclasses import dataclass
from typing import Final

import numpy as np

from accountant.cost.row_cost import profile_of
from accountant.ledger.charged import ChargedBlock
from accountant.ledger.entries import Charge
from accountant.ledger.limits import Payer
from accountant.noise.lattice_noise import LatticeNoise
from cube.axis import Axis
from cube.measurement import Weight
from cube.query import Factor, Partition, QueryBlock, counting
from cube.schema import Schema

SHARE_GROUPED: Final = 0.2
SHARE_RAISED: Final = 0.1
N_GROUP_LEVELS_MAX: Final = 16
WEIGHT: Final = 0.003  # a count within two hundredths of the Adult table


@dataclass(frozen=True, slots=True)
class Sizes:
    """How many blocks a charge has at the most, and how many columns a block."""

    n_blocks_max: int
    n_columns_max: int


class MadeUpCharges:
    """Charges to one table, one after the other.

    Parameters
    ----------
    schema : Schema
        The table.
    rng : numpy.random.Generator
        Draws rows, weights and values.
    sizes : Sizes
    """

    def __init__(self, schema: Schema, rng: np.random.Generator, sizes: Sizes) -> None:
        self._schema = schema
        self._rng = rng
        self._sizes = sizes
        self._units_spent = 0
        self._measured: list[ChargedBlock] = []
        self._can_be_raised: list[int] = []

    @property
    def n_measurements(self) -> int:
        """How many blocks were charged so far."""
        return len(self._measured)

    def charge(self, payer: Payer) -> Charge:
        """The next charge."""
        before = self._units_spent
        n_blocks = 1 + int(self._rng.integers(self._sizes.n_blocks_max))
        blocks = tuple(self._charged() for _ in range(n_blocks))
        for charged in blocks:
            self._can_be_raised.append(len(self._measured))
            self._measured.append(charged)
            # More than was needed for a raise: what is charged only has to be enough.
            self._units_spent += (
                charged.laplace_noise.weight.units * profile_of(charged.block).bound
            )
        return Charge(payer, blocks, before, self._units_spent)

    def values(self, charged: ChargedBlock) -> tuple[int, ...]:
        """What the measurement of a block could have found."""
        drawn = self._rng.integers(0, 2**30, size=charged.block.n_rows)
        return tuple(drawn.tolist())

    def _charged(self) -> ChargedBlock:
        if self._can_be_raised and self._rng.random() < SHARE_RAISED:
            place = self._can_be_raised.pop(int(self._rng.integers(len(self._can_be_raised))))
            earlier = self._measured[place]
            weight = Weight(earlier.laplace_noise.weight.units * 3 // 2)
            return ChargedBlock(earlier.block, earlier.laplace_noise.refined_to(weight), place)
        weight = Weight.at_least(WEIGHT * self._rng.uniform(0.5, 1.5))
        return ChargedBlock(self._block(), LatticeNoise.for_weight(weight))

    def _block(self) -> QueryBlock:
        n_columns = 1 + int(self._rng.integers(self._sizes.n_columns_max))
        chosen = self._rng.permutation(len(self._schema.axes))[:n_columns]
        axes = [self._schema.axes[place] for place in chosen]
        partition = None
        if self._rng.random() < SHARE_GROUPED and axes[0].size <= N_GROUP_LEVELS_MAX:
            key = axes.pop(0)
            partition = Partition((key.name,), np.arange(key.size, dtype=np.int64))
        return QueryBlock(counting(map(self._factor, axes)), partition)

    def _factor(self, axis: Axis) -> Factor:
        """A range of levels, never all of them."""
        values = np.zeros(axis.size, dtype=np.int64)
        first, last = np.sort(self._rng.permutation(axis.size)[:2])
        values[first:last] = 1
        return Factor((axis.name,), values)
