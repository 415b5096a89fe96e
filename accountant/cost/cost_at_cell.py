"""The cost of rows at one cell, by the definition: weight times coefficient.

Without profiles, classes or sums of functions, so that it can tell whether these are right: it
compares a sum of costs that was kept with the rows that it is of. Far too slow for all cells.

Nothing here reads or writes a file. Proof: proofs/checkpoint.md.
"""

from collections.abc import Mapping, Sequence
from fractions import Fraction

import numpy as np

from accountant.cost.cell_function import CellFunction
from accountant.cost.row_cost import units_per_square
from cube.classes import Tiles
from cube.measurement import PlannedMeasurement
from cube.pieces import Pieces
from cube.query import Factor
from cube.schema import RowsByLevel


def is_below(
    rows: Sequence[PlannedMeasurement],
    functions: Sequence[CellFunction],
    cell: Mapping[str, int],
    rows_per_unit: int,
    by: RowsByLevel | None,
) -> bool:
    """Whether what rows cost one cell, row by row from what they are, is not above a sum there.

    Parameters
    ----------
    rows : sequence of PlannedMeasurement
    functions : sequence of CellFunction
    cell : mapping of str to int
        The level of every axis.
    rows_per_unit, by
        As of the table. Where rows are bounded by level, the cost is that of one of them.
    """
    values: dict[int, int] = {}
    times = 1 if by is not None else rows_per_unit
    paid = Fraction(0)
    for row in rows:
        size = abs(_coefficient(row, cell, values))
        if row.terms is None:
            paid += times * row.laplace_weight.units * size
        elif by is None:
            paid += times**2 * units_per_square(row.precision, row.terms) * size**2
        else:  # at least for one row by itself
            paid += units_per_square(row.precision, row.terms) * size**2
    return paid <= sum(_value(function, cell) for function in functions)


def _coefficient(row: PlannedMeasurement, cell: Mapping[str, int], values: dict[int, int]) -> int:
    """The coefficient of the row that counts a cell; `values` are of factors that were looked at.

    They are known by their `id`: the rows hold them.
    """
    partition = row.block.partition
    if partition is not None:
        levels = tuple(cell[name] for name in partition.axes)
        groups = partition.groups
        if isinstance(groups, Tiles):
            group = int(groups.at(tuple(np.array([one]) for one in levels)).ravel()[0])
        elif isinstance(groups, Pieces):
            group = int(groups.at(np.array(levels))[0])
        else:
            group = int(groups[levels])
        if group < 0:
            return 0
    total = 0
    for term in row.block.query.terms:
        product = int(term.scale)
        for factor in term.factors:
            value = values.get(id(factor))
            if value is None:
                value = values[id(factor)] = _value_of(factor, cell)
            product *= value
            if not product:
                break
        total += product
    return total


def _value_of(factor: Factor, cell: Mapping[str, int]) -> int:
    levels = tuple(cell[name] for name in factor.axes)
    if isinstance(factor.numbers, Pieces):
        return int(factor.numbers.at(np.array(levels))[0])
    return int(factor.numbers[levels])


def _value(function: CellFunction, cell: Mapping[str, int]) -> int:
    """The value of a function at a cell; of a polynomial, the largest of its class."""
    flat = function.flattened()
    places = tuple(
        int(classes.at(np.array([cell[name]]))[0])
        for name, classes in zip(flat.axes, flat.classes, strict=True)
    )
    return int(flat.values[places])
