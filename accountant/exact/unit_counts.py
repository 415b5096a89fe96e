"""Exact statistics of units: what each unit adds is bounded, wherever its rows are.

    counts of units     in how many groups each unit has a row, with a bound on these groups
    bounded rows        the rows of a block, with a bound on the rows and the sum of each unit
    sizes of units      how many units have how many rows of a block

Of a unit in more groups than may count, those come first that have the smallest numbers made of the
unit's digest and the group. So which of a unit's groups count depends on that unit's rows and the
key alone: a raise finds the same numbers again, and another unit changes nothing. No number that a
unit adds to is moved by more than one, and no more of them than the bound. Of bounded rows, the
same is so of the groups and coefficients of a unit's rows; rows with both alike are alike.

Called by the gate alone, which keeps the results in locals of one function. Proof: proofs/units.md,
"Distinct units" and "Bounded rows".
"""

from typing import Final

import numpy as np
from numpy.typing import NDArray

from accountant.exact.exact_answers import check_levels, groups_of, weighed
from accountant.source import UnitCells
from cube.query import QueryBlock
from cube.schema import Schema
from cube.statistic import BoundedRows, OfUnits, UnitCount, UnitSizes

# Of splitmix64 (Steele, Lea & Flood 2014, "Fast splittable pseudorandom number generators"): its
# increment, and the multipliers of its finalizer. Never changed: a raise must find the same groups.
INCREMENT: Final = np.uint64(0x9E3779B97F4A7C15)
MULTIPLIERS: Final = (np.uint64(0xBF58476D1CE4E5B9), np.uint64(0x94D049BB133111EB))
SHIFTS: Final = (np.uint64(30), np.uint64(27), np.uint64(31))


def exact_of_units(count: OfUnits, reach: int, cells: UnitCells, schema: Schema) -> list[int]:
    """The numbers of a statistic of units: see `exact_unit_counts` and what follows it."""
    if isinstance(count, UnitCount):
        return exact_unit_counts(count, reach, cells, schema)
    if isinstance(count, UnitSizes):
        return exact_unit_sizes(count, cells, schema)
    return exact_bounded_rows(count, cells, schema)


def exact_bounded_rows(asked: BoundedRows, cells: UnitCells, schema: Schema) -> list[int]:
    """What the rows of each group add up to, of those of each unit that count.

    int64 is enough: the gate refuses a block whose magnitudes could add up to more than 2**62.

    Parameters
    ----------
    cells : UnitCells
        The cells of the scope of the block, with the units that have rows there.

    Raises
    ------
    ValueError
        As `exact_unit_counts`.
    """
    block = asked.block
    inside, groups, coefficients = _about(block, cells, schema)
    alike = np.stack([cells.units[inside], groups[inside], coefficients[inside]])
    (units, groups, coefficients), first, which = np.unique(
        alike, axis=1, return_index=True, return_inverse=True
    )
    n_alike = np.zeros(units.size, dtype=np.int64)
    np.add.at(n_alike, which.ravel(), cells.counts[inside])
    digests = cells.digests[inside][first]
    order = np.lexsort((coefficients, groups, mixed(mixed(digests, groups), coefficients), units))
    units, groups, coefficients, n_rows = (
        one[order] for one in (units, groups, coefficients, n_alike)
    )
    starts = np.flatnonzero(np.diff(units, prepend=-1))
    kept = _within(n_rows, starts, asked.rows_max)
    magnitudes = _within(np.abs(coefficients) * kept, starts, asked.sum_max)
    found = np.zeros(block.n_rows, dtype=np.int64)
    np.add.at(found, groups, np.sign(coefficients) * magnitudes)
    return [int(one) for one in found]


def exact_unit_sizes(asked: UnitSizes, cells: UnitCells, schema: Schema) -> list[int]:
    """How many units are in each range; parameters and errors as of `exact_bounded_rows`."""
    inside, _, coefficients = _about(asked.block, cells, schema)
    sizes = cells.counts[inside]
    if asked.by_sum:
        sizes = sizes * np.abs(coefficients[inside])
    units, which = np.unique(cells.units[inside], return_inverse=True)
    of_unit = np.zeros(units.size, dtype=np.int64)
    np.add.at(of_unit, which, sizes)
    ends = 2 ** np.arange(asked.n_ranges - 1, dtype=np.int64)
    found = np.searchsorted(ends, of_unit, side="left")
    return [int(one) for one in np.bincount(found, minlength=asked.n_ranges)]


def _about(
    block: QueryBlock, cells: UnitCells, schema: Schema
) -> tuple[NDArray[np.bool_], NDArray[np.int64], NDArray[np.int64]]:
    """Which cells a block is about, the group of each cell, and the coefficient of each."""
    check_unit_cells(block.scope, cells, schema)
    groups = groups_of(block, cells.levels, cells.units)
    coefficients = weighed(block, cells.levels, np.ones_like(cells.units))
    return (coefficients != 0) & (groups >= 0), groups, coefficients


def _within(numbers: NDArray[np.int64], starts: NDArray[np.int64], most: int) -> NDArray[np.int64]:
    """What is left of numbers if those of each unit, in their order, add up to at most `most`."""
    before = np.cumsum(numbers) - numbers
    lengths = np.diff(starts, append=numbers.size)
    of_unit = before - np.repeat(before[starts], lengths)
    found: NDArray[np.int64] = np.minimum(numbers, np.maximum(most - of_unit, 0))
    return found


def exact_unit_counts(count: UnitCount, reach: int, cells: UnitCells, schema: Schema) -> list[int]:
    """How many units count in each group.

    Parameters
    ----------
    count : UnitCount
    reach : int
        The most groups in which a unit counts, as it is paid for.
    cells : UnitCells
        The cells of the scope of the groups, with the units that have rows there.
    schema : Schema

    Raises
    ------
    ValueError
        If the cells cannot be those of a table of the schema. The text reveals nothing of them.
    """
    block = count.block
    inside, groups, _ = _about(block, cells, schema)
    if count.only_cut:
        inside &= cells.were_cut > 0
    # Of at most 2**40 units and 2**17 groups.
    pairs, first = np.unique(cells.units[inside] * block.n_rows + groups[inside], return_index=True)
    units, groups = np.divmod(pairs, block.n_rows)
    if block.n_rows > reach:
        digests = cells.digests[inside][first]
        groups = groups[_is_kept(units, groups, digests, reach)]
    return [int(found) for found in np.bincount(groups, minlength=block.n_rows)]


def check_unit_cells(scope: tuple[str, ...], cells: UnitCells, schema: Schema) -> None:
    """Raise ValueError, with a text that reveals none of them, unless these cells are possible."""
    check_levels(scope, cells.levels, schema)
    if not cells.units.size:
        return
    if min(cells.units.min(), cells.digests.min()) < 0:
        raise ValueError("the source answered with units that are not numbered from 0")
    if cells.counts.min() < 1:
        raise ValueError("the source answered with cells without records")
    # In floats the sum cannot wrap around, and at 2**40 records it is still exact.
    n_records = cells.counts.astype(np.float64).sum()
    if max(n_records, int(cells.units.max()) + 1) > schema.n_records_max:
        raise ValueError("the source holds more records than the schema allows")


def _is_kept(
    units: NDArray[np.int64], groups: NDArray[np.int64], digests: NDArray[np.int64], reach: int
) -> NDArray[np.bool_]:
    """Which pairs of a unit and a group are among the first of the unit, (n,)."""
    order = np.lexsort((groups, mixed(digests, groups), units))
    ordered = units[order]
    starts = np.flatnonzero(np.diff(ordered, prepend=-1))
    lengths = np.diff(starts, append=ordered.size)
    rank = np.arange(ordered.size) - np.repeat(starts, lengths)
    is_kept = np.empty(ordered.size, dtype=np.bool_)
    is_kept[order] = rank < reach
    return is_kept


def mixed(
    digests: NDArray[np.int64] | NDArray[np.uint64], groups: NDArray[np.int64]
) -> NDArray[np.uint64]:
    """A number made of a unit's digest and a group, that looks random, (n,): splitmix64."""
    state = digests.astype(np.uint64) + (groups.astype(np.uint64) + np.uint64(1)) * INCREMENT
    for shift, multiplier in zip(SHIFTS, MULTIPLIERS, strict=False):
        state = (state ^ (state >> shift)) * multiplier
    found: NDArray[np.uint64] = state ^ (state >> SHIFTS[-1])
    return found
