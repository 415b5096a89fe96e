"""Whether a state that was kept agrees with entries of its ledger, and with what its rows cost.

Each is looked at alone: an entry is read as a start reads it, a cost is added up from what rows
are. This finds mistakes of whoever wrote or read a checkpoint; that it was not forged is for the
seal to show (checkpoint.py). Nothing here does input or output. Proof: proofs/checkpoint.md.
"""

import secrets
from bisect import bisect_left

from accountant.cost.cost_at_cell import is_below
from accountant.ledger.charged import ChargedBlock
from accountant.ledger.entries import Charge, Entry, Measured
from accountant.ledger.entry_json import read_text, write
from accountant.ledger.replay import Replay
from accountant.ledger.table_history import TableHistory
from cube.grid import arrays_of
from cube.measurement import PlannedMeasurement
from cube.query import shape_of


def agrees_with_entry(replay: Replay, entry: Entry) -> bool:
    """Whether what an entry says is in a state: a charge as it was paid, a measurement's values."""
    body = read_text(entry.kind, entry.body)
    if not isinstance(body, Charge | Measured):
        return True
    history = replay.histories[entry.table]
    if isinstance(body, Charge):
        place = bisect_left(history.payments, entry.seq, key=lambda one: one.seq)
        found = history.payments[place]
        return found.seq == entry.seq and write(found.charge) == write(body)
    of_each = (*history.earlier, history)
    return any(_has_measured(one, body) for one in of_each)


def agrees_with_cell(history: TableHistory) -> bool:
    """Whether the sum of costs of a table is not below what its rows cost one cell, by themselves.

    The cell is from the system's entropy. Rows that were raised, and those that wait to be
    measured, are left out: the sum has these, too.
    """
    kept, later = history.cost.kept
    if kept is None or later:
        return not history.measurements  # a table without a sum has no rows
    rows, sizes = _rows_of(history), dict[str, int]()
    for axes, numbers in arrays_of(row.block for row in rows):
        sizes.update(zip(axes, shape_of(numbers), strict=True))
    for function in kept.functions:
        classes = zip(function.axes, function.classes, strict=True)
        sizes.update((axis, one.n_levels) for axis, one in classes)
    cell = {axis: secrets.randbelow(size) for axis, size in sizes.items()}
    return is_below(rows, kept.functions, cell, history.cost.rows_per_unit, history.cost.by)


def _rows_of(history: TableHistory) -> list[PlannedMeasurement]:
    """Rows that a table's cost is at least the cost of."""
    if history.growth is not None:  # what was measured of rows that have changed costs otherwise
        return list(history.paid)
    terms = history.gaussian.terms
    return [
        PlannedMeasurement(one.block, one.weight, terms=terms if one.is_gaussian else None)
        for place, one in enumerate(history.measurements)
        if place not in history.superseded
    ]


def _has_measured(history: TableHistory, body: Measured) -> bool:
    """Whether a history has the values of a measurement, and what it released."""
    charge = next((one.charge for one in history.payments if one.seq == body.charge), None)
    released = history.released_under(body.charge)
    if charge is None or (released is not None and released.released != body.released):
        return False
    found = history.measured_under(body.charge)
    return len(found) == len(body.lattice_values) and all(
        _is_average(charged) or one.lattice_values == values
        for charged, one, values in zip(charge.blocks, found, body.lattice_values, strict=True)
    )


def _is_average(charged: ChargedBlock) -> bool:
    """Whether what is known is not the value that was drawn, but an average with an earlier one."""
    return charged.is_gaussian and charged.raised_from is not None
