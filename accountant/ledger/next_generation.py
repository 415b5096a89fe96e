"""A new generation of a table: what becomes of its history.

    history   nothing that was measured says anything about the new rows, or is raised from there
    cost      of the cells, begins anew; what rows had cost until then stays beside it, for ever
    Gaussian  its account goes on: one order and one constant for the whole table
    units     what was counted is forgotten, and stays paid
    charges   those that wait for rows that are gone are given up; they stay paid

A unit's rows may be others in each generation, so it has lost at most the sum of what the dearest
unit has lost in each. Nothing here does input or output. Proof: proofs/generations.md.
"""

from dataclasses import replace
from types import MappingProxyType

from accountant.cost.history_cost import CostState
from accountant.ledger.append_only import AppendOnly, GrowingSet
from accountant.ledger.generations import GenerationBegun
from accountant.ledger.table_history import TableHistory
from accountant.ledger.unit_counts import UnitCounts


def next_generation(history: TableHistory, data: str, rows: str, by: str) -> GenerationBegun | None:
    """The entry that begins a generation with this data; None if it is what there is.

    Parameters
    ----------
    history : TableHistory
    data, rows : str
        The fingerprints of the data, and of what is read from it.
    by : str
        Who says so.

    Raises
    ------
    ValueError
        If the table grows.
    """
    if history.growth is not None:
        raise ValueError("a generation of a table that grows")
    if history.generations.data[-1:] == (data,) and history.rows_fingerprint in (None, rows):
        return None
    return GenerationBegun(data, rows, history.units_spent, by)


def with_next_generation(history: TableHistory, body: GenerationBegun) -> TableHistory:
    """The history after a generation began; ValueError if it cannot follow it."""
    begun = next_generation(history, body.data_fingerprint, body.rows_fingerprint, body.by)
    if begun is None:
        raise ValueError("a generation with the data that there was")
    if begun != body:
        raise ValueError(
            f"begun on top of {body.units_before} units, but {history.units_spent} were spent"
        )
    generations, counts = history.generations, history.unit_counts
    units = generations.units + history.units_of_rows
    return replace(
        history,
        rows_fingerprint=body.rows_fingerprint,
        generations=generations.followed_by(
            body.data_fingerprint, history.now, units, len(history.payments)
        ),
        earlier=(*history.earlier, _ended(history)),
        measurements=AppendOnly(),
        paid_by=AppendOnly(),
        pending=MappingProxyType({}),
        turns=MappingProxyType({}),
        cost=CostState(rows_per_unit=history.cost.rows_per_unit, by=history.cost.by),
        unit_counts=UnitCounts(counts.rows_per_unit, counts.units),
        superseded=GrowingSet(),
        released=AppendOnly(),
    )


def _ended(history: TableHistory) -> TableHistory:
    """The history of the generation that ends, for questions about it."""
    return replace(
        history,
        generations=replace(history.generations, ended_at=history.now),
        sharing=(),
        earlier=(),
        pending=MappingProxyType({}),
        turns=MappingProxyType({}),
        read=GrowingSet(),  # of which charges wait that others made: of none
    )
