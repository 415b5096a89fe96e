"""The whole tables of counts in a history, from which marginals are made.

A whole table counts every cell of its columns, over all records. Only such tables are reconciled:
their noise is independent, and has the same law in all cells.
"""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass

import numpy as np

from cube.encoding import fingerprint
from cube.measurement import Measurement, Weight
from cube.query import Partition, QueryBlock, Scope
from inference.history import History, counts_groups
from inference.marginals.error_law import MeasuredTable
from planner.measuring.weights import LATTICE_SHARE, ROUNDING_MARGIN


@dataclass(frozen=True, slots=True, eq=False)
class WholeTable:
    """One measured table.

    Parameters
    ----------
    partition : Partition, optional
        The partition that was measured; None for the total.
    weight : int
        In units; 0 for Gaussian noise, as no weight raises that.
    measured : MeasuredTable
        The counts, summed over columns that are not requested.
    """

    partition: Partition | None
    weight: int
    measured: MeasuredTable

    @property
    def scope(self) -> Scope:
        """Its columns, including those that are not requested."""
        return () if self.partition is None else self.partition.axes


def whole_tables(history: History, columns: Iterable[str]) -> list[WholeTable]:
    """The tables on some of `columns`, or of the total; those of larger weights last."""
    asked = set(columns)
    found = []
    for scope in history.partition_scopes:
        if scope and asked and asked.isdisjoint(scope):
            continue
        kept = tuple(name for name in scope if name in asked)
        for known in history.partitions_on(scope):
            if _is_whole(known.block):
                places = history.in_use_of(fingerprint(known.block))
                found += [_whole(history[place], scope, kept) for place in places]
    return sorted(found, key=lambda one: one.weight)


def promised(whole: WholeTable | None, partition: Partition | None, weight: int) -> WholeTable:
    """A table that is about to be measured: its noise is known, its values are not yet.

    It is refined from `whole`, if that is given.
    """
    partition = partition if whole is None else whole.partition
    scope = () if partition is None else partition.axes
    shape = () if partition is None else partition.shape
    # The gate rounds up: this bounds its noise and its lattice.
    scale = (1 + ROUNDING_MARGIN) / float(Weight(weight).exact)
    table = MeasuredTable(scope, np.zeros(shape), scale, lattice_step=scale * LATTICE_SHARE)
    return WholeTable(partition, weight, table)


def of_scope(tables: Sequence[WholeTable], scope: Scope) -> WholeTable | None:
    """The table of exactly these columns with the largest weight."""
    return next((one for one in reversed(tables) if one.scope == scope and one.weight), None)


def natural_partition(scope: Scope, shape: tuple[int, ...]) -> Partition | None:
    """The partition in which every cell of a scope is a group; None for the total."""
    if not scope:
        return None
    return Partition(scope, np.arange(int(np.prod(shape)), dtype=np.int64).reshape(shape))


def _is_whole(block: QueryBlock) -> bool:
    """Whether each cell of the block's columns is a group, and all records are counted."""
    if not counts_groups(block):
        return False
    return block.partition is None or block.partition.n_groups == block.partition.n_cells


def _whole(measurement: Measurement, scope: Scope, kept: Scope) -> WholeTable:
    partition = measurement.block.partition
    values = measurement.values
    table = MeasuredTable(
        scope,
        values.reshape(()) if partition is None else values[partition.labels],
        measurement.noise_scale,
        lattice_step=measurement.lattice_widening,
        is_gaussian=measurement.is_gaussian,
    )
    weight = 0 if measurement.is_gaussian else measurement.laplace_weight.units
    return WholeTable(partition, weight, table.onto(kept))
