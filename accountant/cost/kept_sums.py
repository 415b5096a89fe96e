"""Sums of costs as plain numbers, and back: what a server keeps to start from.

A function of the cells is written as its axes, the numbers of its classes and its values; classes
that functions share are written once. Arrays of whole numbers are bytes, everything else is JSON.
What is read is checked for form alone: that the numbers are the right ones is for who keeps them to
know (ledger/checkpoint.py), and `is_below` compares them with the rows at a cell.

Nothing here reads or writes a file. Proof: proofs/checkpoint.md.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from fractions import Fraction
from typing import Any

import numpy as np

from accountant.cost.cell_function import CellFunction, Whole
from accountant.cost.row_cost import units_per_square
from cube.classes import AxisClasses
from cube.measurement import PlannedMeasurement
from cube.pieces import Pieces
from cube.query import Factor
from cube.rows_by_level import RowsByLevel
from cube.tiles import Tiles

WORD = 8  # bytes of a number in an array


@dataclass(slots=True)
class SumsWriter:
    """Functions as JSON values, and the arrays that they refer to."""

    arrays: list[bytes] = field(default_factory=list)
    classes: list[dict[str, Any]] = field(default_factory=list)
    _n_bytes: int = 0
    _known: dict[int, int] = field(default_factory=dict)  # by `id`: functions hold their classes

    def written(self, function: CellFunction) -> dict[str, Any]:
        """One function."""
        return {
            "axes": list(function.axes),
            "classes": [self._class(one) for one in function.classes],
            "shape": list(function.values.shape),
            "values": self._array(function.values),
            "exact": function.exact,
        }

    def _class(self, classes: AxisClasses) -> int:
        place = self._known.get(id(classes))
        if place is None:
            place = self._known[id(classes)] = len(self.classes)
            self.classes.append(
                {
                    "n_levels": classes.n_levels,
                    "starts": self._array(classes.starts),
                    "of_run": self._array(classes.of_run),
                    "degree": classes.degree,
                }
            )
        return place

    def _array(self, numbers: Whole) -> list[int] | dict[str, list[int]]:
        """Where its bytes are, and how many numbers; numbers beyond int64 are written out."""
        if numbers.dtype == object:
            return {"numbers": [int(one) for one in numbers.ravel().tolist()]}
        content = np.ascontiguousarray(numbers, dtype="<i8").tobytes()
        where = [self._n_bytes, numbers.size]
        self.arrays.append(content)
        self._n_bytes += len(content)
        return where


class SumsReader:
    """The functions that a writer wrote.

    Parameters
    ----------
    classes : sequence of dict
    content : bytes
        All arrays.

    Raises
    ------
    ValueError, KeyError, TypeError, IndexError
        If they are not what a writer wrote; also by `read`.
    """

    def __init__(self, classes: Sequence[Mapping[str, Any]], content: bytes) -> None:
        self._numbers = np.frombuffer(content, dtype="<i8").astype(np.int64)
        self._numbers.flags.writeable = False
        self._classes = [self._class(one) for one in classes]

    def read(self, written: Mapping[str, Any]) -> CellFunction:
        """One function."""
        values = self._array(written["values"]).reshape([int(one) for one in written["shape"]])
        classes = tuple(self._classes[place] for place in written["classes"])
        return CellFunction(tuple(written["axes"]), classes, values, written["exact"] is True)

    def _class(self, written: Mapping[str, Any]) -> AxisClasses:
        starts, of_run = self._array(written["starts"]), self._array(written["of_run"])
        return AxisClasses(int(written["n_levels"]), starts, of_run, int(written["degree"]))

    def _array(self, where: Any) -> Whole:
        if isinstance(where, dict):
            return np.array([int(one) for one in where["numbers"]], dtype=object)
        start, size = where
        found = self._numbers[start // WORD : start // WORD + size]
        if start % WORD or found.size != size:
            raise ValueError("an array that is not there")
        return found


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
