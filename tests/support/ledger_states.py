"""States of ledgers, compared part by part."""

import dataclasses
from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

from accountant.cost.cell_function import CellFunction
from accountant.cost.history_cost import CostState
from accountant.ledger.history.replay import Replay
from accountant.ledger.values import AppendOnly, GrowingMap, GrowingSet
from cube.encoding import encode_block, fingerprint
from cube.query import QueryBlock

N_CELLS = 200


def plain(value: Any) -> Any:
    """A value that compares by content: everything but the sum of costs."""
    found = value
    if isinstance(value, QueryBlock):
        found = fingerprint(value), str(encode_block(value))
    elif isinstance(value, CostState):
        found = value.rows_per_unit, value.by, value.n_cells_max
    elif isinstance(value, GrowingSet):
        found = value.numbers
    elif isinstance(value, GrowingMap):
        found = plain(value.pairs)
    elif dataclasses.is_dataclass(value):
        names = [one.name for one in dataclasses.fields(value)]
        found = type(value), [plain(getattr(value, name)) for name in names]
    elif isinstance(value, Mapping):
        found = [(plain(key), plain(one)) for key, one in value.items()]
    elif isinstance(value, AppendOnly | list | tuple):
        found = type(value), [plain(one) for one in value]
    elif isinstance(value, np.ndarray):
        found = value.dtype, value.shape, value.tolist()
    return found


def cost_at(functions: Sequence[CellFunction], cell: Mapping[str, int]) -> int:
    """The sum of functions at a cell, each from its values on levels; the largest of a class."""
    total = 0
    for function in functions:
        flat = function.flattened()
        place = tuple(
            int(classes.at(np.array([cell[name]]))[0])
            for name, classes in zip(flat.axes, flat.classes, strict=True)
        )
        total += int(flat.values[place])
    return total


def assert_alike(one: Replay, other: Replay) -> None:
    """That two states are equal, and that their costs are the same function of the cells."""
    assert plain(one) == plain(other)
    rng = np.random.default_rng(5)
    for table, history in one.histories.items():
        costs = history.cost, other.histories[table].cost
        if all(cost.table_cost().exact for cost in costs):
            assert costs[0].table_cost() == costs[1].table_cost()
        sums = [cost.summed() for cost in costs]
        assert sums[0].n_rows == sums[1].n_rows
        assert sums[0].exact == sums[1].exact
        sizes = {
            axis: classes.n_levels
            for function in sums[0].functions
            for axis, classes in zip(function.axes, function.classes, strict=True)
        }
        for _ in range(N_CELLS):
            cell = {axis: int(rng.integers(size)) for axis, size in sizes.items()}
            assert cost_at(sums[0].functions, cell) == cost_at(sums[1].functions, cell)
