"""What the rows of a ledger cost each cell, computed from the text of the charges.

A block of weight w costs a cell ``w |coefficient|`` if the cell is in one of its groups. Nearly
every block is a product of short runs of levels, one factor per column, and is kept in that form:
no level is enumerated. The few others (sums of terms, factors over several columns) go through the
accountant's own profiles, which may be a proved bound and are then marked as such.

Equal blocks are merged, with the sum of their weights. cells.py adds blocks up.
"""

import json
import math
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from fractions import Fraction
from typing import Any, TypeAlias

import numpy as np
from numpy.typing import NDArray

from accountant.cost.cell_function import CellFunction
from accountant.cost.profile import profile_of
from cube.block import QueryBlock
from cube.encoding import decode_block, encode_block
from cube.query import counting

Block: TypeAlias = Mapping[str, Any]  # as `cube.encoding.encode_block` wrote it
EVERYTHING: Block = encode_block(QueryBlock(counting()))  # it costs every cell the same


@dataclass(frozen=True, slots=True)
class Runs:
    """Magnitudes along one column, as runs of equal ones.

    Parameters
    ----------
    n_levels : int
        The number of levels of the column.
    starts : tuple of int
        Where each run begins; the first begins at 0.
    values : tuple of int
        The magnitude on each run.
    """

    n_levels: int
    starts: tuple[int, ...]
    values: tuple[int, ...]

    def at(self, positions: NDArray[np.int64]) -> NDArray[np.object_]:
        """The magnitudes at some levels, as Python integers."""
        places = np.searchsorted(np.array(self.starts), positions, side="right") - 1
        return np.array(self.values, dtype=object)[places]

    def times(self, other: "Runs") -> "Runs":
        """The product with other runs along the same column."""
        if self.n_levels != other.n_levels:
            raise ValueError("two factors of one block disagree on how many levels a column has")
        starts = np.unique(np.array((*self.starts, *other.starts), dtype=np.int64))
        values = self.at(starts) * other.at(starts)
        return Runs(self.n_levels, tuple(starts.tolist()), tuple(values.tolist()))


@dataclass(frozen=True, slots=True)
class ProductCost:
    """``units`` times the product of runs, one for each of a few columns."""

    units: int
    runs: Mapping[str, Runs]

    @property
    def bound(self) -> int:
        """An upper bound on the cost of a cell."""
        return self.units * math.prod(max(runs.values) for runs in self.runs.values())


@dataclass(frozen=True, slots=True)
class OtherCost:
    """``units`` times any other function of the cells.

    `exact` is False if the function is only an upper bound on the cost.
    """

    units: int
    function: CellFunction
    exact: bool

    @property
    def bound(self) -> int:
        """An upper bound on the cost of a cell."""
        return self.units * self.function.bound


Cost: TypeAlias = ProductCost | OtherCost


@dataclass(slots=True)
class PaidRows:
    """Everything that was paid for on one table, collected while its charges are read."""

    _units: dict[str, int] = field(default_factory=dict)
    _blocks: dict[str, Block] = field(default_factory=dict)

    def add(self, block: Block, units: int) -> str:
        """Add units to the weight of a block's rows; returns a name for the block."""
        name = json.dumps(block, separators=(",", ":"))
        if name not in self._units:
            self._units[name], self._blocks[name] = 0, block
        self._units[name] += units
        return name

    def costs(self) -> Iterator[Cost]:
        """The cost of each block; the sum over all blocks is what a cell has paid."""
        for name, block in self._blocks.items():
            product = _product_of(block)
            if product is not None:
                scale, runs = product
                yield ProductCost(scale * self._units[name], runs)
                continue
            profile = profile_of(decode_block(dict(block)))
            for part in profile.parts:
                yield OtherCost(self._units[name], part, profile.exact)


def _product_of(block: Block) -> tuple[int, dict[str, Runs]] | None:
    """A block's cost as a whole number and runs along columns; None if it has another form."""
    if len(block["terms"]) != 1:
        return None
    [term] = block["terms"]
    arrays = list(term["factors"])
    if "partition" in block and min(block["partition"]["runs"][1::2]) < 0:
        arrays.append(_indicator(block["partition"]))  # otherwise every cell is in some group
    scale = Fraction(term["scale"])
    if scale.denominator != 1 or any(len(array["axes"]) != 1 for array in arrays):
        return None
    found: dict[str, Runs] = {}
    for array in arrays:
        [axis], [n_levels] = array["axes"], array["shape"]
        runs = _runs(n_levels, tuple(array["runs"]))
        found[axis] = found[axis].times(runs) if axis in found else runs
    return abs(int(scale)), found


def _indicator(partition: Mapping[str, Any]) -> dict[str, Any]:
    """1 for the cells that are in some group, 0 for the others."""
    runs = list(partition["runs"])
    runs[1::2] = [int(label >= 0) for label in runs[1::2]]
    return {**partition, "runs": runs}


def _runs(n_levels: int, encoded: tuple[int, ...]) -> Runs:
    starts, place = [], 0
    for length in encoded[0::2]:
        starts.append(place)
        place += length
    if place != n_levels:
        raise ValueError("run lengths do not fill the array")
    return Runs(n_levels, tuple(starts), tuple(map(abs, encoded[1::2])))
