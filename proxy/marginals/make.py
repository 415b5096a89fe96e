"""Makes marginals: buys what is missing, reads it from the history, makes it agree.

The whole tables of counts in a history, from which marginals are made.

A whole table counts every cell of its columns, over all records. Only such tables are reconciled:
their noise is independent, and has the same law in all cells.

What to buy for marginals: a budget divided, or tables refined until each meets a target.

Decided from weights, targets and the public schema alone; no value is read.

Only the purchase costs. Everything afterwards is post-processing of the history, and the same
request is free when it is repeated.
"""

import math
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from fractions import Fraction
from typing import Final, TypeAlias

import numpy as np

from accountant.ledger import Payer
from cube.encoding import fingerprint
from cube.measurement import UNITS_PER_EPSILON, Measurement, Weight
from cube.query import Partition, QueryBlock, Scope, counting
from cube.refusals import InvalidRequest, TooLarge
from cube.schema import Schema
from cube.target import AccuracyTarget
from inference import History, Posterior, RowEstimates, counts_groups
from inference.marginals import (
    N_JOINT_CELLS_MAX,
    DeclaredMarginal,
    MeasuredTable,
    cell_error,
    laplace_weights,
    meeting_sets,
)
from planner.measuring import LATTICE_SHARE, ROUNDING_MARGIN, weight_for
from planner.sql import listed
from planner.workload import Consistency, Wanted
from proxy.api import SOURCE_HISTORY, SOURCE_MEASURED, MadeMarginals, MarginalSet, MarginalsRequest
from proxy.marginals.reconcile import Agreement, ReconcileSettings, agreed, long_table, raw
from proxy.tables import ServedTable


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


def whole_tables(history: History, columns: Iterable[str], n_holders: int = 1) -> list[WholeTable]:
    """The tables on some of `columns`, or of the total; those of larger weights last.

    Each value of a federated table is a sum of those of its holders, with the noise of each.
    """
    asked = set(columns)
    found = []
    for scope in history.partition_scopes:
        if scope and asked and asked.isdisjoint(scope):
            continue
        kept = tuple(name for name in scope if name in asked)
        for known in history.partitions_on(scope):
            if _is_whole(known.block):
                places = history.in_use_of(fingerprint(known.block))
                found += [_whole(history[place], scope, kept, n_holders) for place in places]
    return sorted(found, key=lambda one: one.weight)


def promised(
    whole: WholeTable | None, partition: Partition | None, weight: int, n_holders: int = 1
) -> WholeTable:
    """A table that is about to be measured: its noise is known, its values are not yet.

    It is refined from `whole`, if that is given.
    """
    partition = partition if whole is None else whole.partition
    scope = () if partition is None else partition.axes
    shape = () if partition is None else partition.shape
    # The gate rounds up: this bounds its noise and its lattice.
    scale = (1 + ROUNDING_MARGIN) / float(Weight(weight).exact)
    step = scale * LATTICE_SHARE
    table = MeasuredTable(scope, np.zeros(shape), scale, n_holders, lattice_step=step)
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


def _whole(measurement: Measurement, scope: Scope, kept: Scope, n_holders: int) -> WholeTable:
    partition = measurement.block.partition
    values = measurement.values
    table = MeasuredTable(
        scope,
        values.reshape(()) if partition is None else values[partition.labels],
        measurement.noise_scale / math.sqrt(n_holders),
        n_holders,
        lattice_step=measurement.lattice_widening / n_holders,
        is_gaussian=measurement.is_gaussian,
    )
    weight = 0 if measurement.is_gaussian else measurement.laplace_weight.units
    return WholeTable(partition, weight, table.onto(kept))


Added = Mapping[Scope, Weight]

ENOUGH: Final = (
    1 + 1e-6
)  # of a half-width: a target that was promised and bought is not bought again
# A mean of several tables has a smaller variance than each of them, but at a low confidence it may
# have a wider interval than Laplace noise: then all are bought a little more precisely.
FACTORS: Final = (Fraction(1), Fraction(5, 4), Fraction(3, 2), Fraction(2))


def divided(
    sets: Sequence[MarginalSet], schema: Schema, budget: Fraction, known: Sequence[WholeTable]
) -> Added:
    """The weight to add to each set's table, for the least total variance."""
    declared = [DeclaredMarginal(one.scope, one.importance) for one in sets]
    sizes = {axis.name: axis.size for axis in schema.axes}
    before = [Fraction(_units(known, one.scope), UNITS_PER_EPSILON) for one in declared]
    added = laplace_weights(declared, sizes, budget, before)
    return {
        one.scope: weight for one, weight in zip(declared, added, strict=True) if weight is not None
    }


def needed(  # noqa: PLR0913 - what is asked, and what is known
    sets: Sequence[MarginalSet],
    schema: Schema,
    target: AccuracyTarget,
    known: Sequence[WholeTable],
    *,
    total: float | None,
    n_holders: int = 1,
) -> Added:
    """The weights to add so that each reconciled cell of each set meets a target.

    Larger tables come first, because smaller ones follow from them in part.
    """
    units = math.ceil(weight_for(target, Fraction(1)).units * math.sqrt(n_holders))
    scopes = sorted((one.scope for one in sets), key=lambda one: -math.prod(schema.sizes(one)))
    added: dict[Scope, Weight] = {}
    for factor in FACTORS:
        tables, added = list(known), {}
        for scope in scopes:
            missing = math.ceil(units * factor) - _units(known, scope)
            if missing > 0 and not is_known(tables, scope, target, total=total):
                added[scope] = Weight(missing)
                tables = raised(tables, scope, schema, added[scope], n_holders)
        if all(is_known(tables, scope, target, total=total) for scope in scopes):
            break
    return added


def is_known(
    tables: Sequence[WholeTable], scope: Scope, target: AccuracyTarget, *, total: float | None
) -> bool:
    """Whether the reconciled tables will meet a target on a scope."""
    measured = [one.measured for one in tables]
    if not any(set(scope).issubset(one.scope) for one in measured):
        return False
    error = cell_error(measured, scope, total=total)
    return error.half_width(target.confidence) <= target.half_width * ENOUGH


def raised(
    tables: Sequence[WholeTable],
    scope: Scope,
    schema: Schema,
    added: Weight,
    n_holders: int = 1,
) -> list[WholeTable]:
    """The tables after one of them is refined, or measured for the first time."""
    before = of_scope(tables, scope)
    partition = natural_partition(scope, schema.sizes(scope))
    after = promised(before, partition, _units(tables, scope) + added.units, n_holders)
    return [*(one for one in tables if one is not before), after]


def _units(tables: Sequence[WholeTable], scope: Scope) -> int:
    known = of_scope(tables, scope)
    return 0 if known is None else known.weight


Step: TypeAlias = str  # the current step, in a few words


def make_marginals(
    table: ServedTable, request: MarginalsRequest, payer: Payer
) -> Iterator[Step | MadeMarginals]:
    """The requested tables, after the names of the steps. May charge.

    A client that disconnects after the purchase has paid for it, and finds it in the history.

    Raises
    ------
    InvalidRequest, InvalidTarget, UnknownName, TooLarge
        Before anything is charged.
    BudgetExhausted, LimitReached, CostAboveCap
        Likewise.
    LedgerUnavailable, SourceUnavailable
        A charge that was made is kept, and completed at the next request.
    """
    request.check(table.info.schema)
    target = _target(request, table.info.default)
    is_raw = request.consistency is Consistency.RAW
    yield "reading the history"
    known = _known(table, request)
    _check_size(request, known, table)
    spent, sources = Fraction(0), [SOURCE_HISTORY] * len(request.sets)
    if is_raw and request.budget is None:
        yield f"measuring the missing counts of {len(request.sets)} tables"
        spent, sources = _bought_rows(table, request, target, payer)
    else:
        added = _to_add(table, request, target, known)
        if not is_raw:
            _check_covered(request.sets, [*(one.measured.scope for one in known), *added])
        if added:
            yield f"measuring {len(added)} tables"
            spent = _bought_tables(table, request, added, known, payer, target.epsilon_cap)
        sources = [
            SOURCE_MEASURED if one.scope in added else SOURCE_HISTORY for one in request.sets
        ]
    yield "reading the tables" if is_raw else "making the tables agree"
    settings = ReconcileSettings(
        sets=request.sets,
        sources=tuple(sources),
        consistency=request.consistency,
        total=_total(request),
        confidence=target.confidence,
    )
    made = _made(table, request, settings)
    yield MadeMarginals(
        data=long_table(made.rows, table.info.schema),
        consistency=request.consistency,
        epsilon_spent=spent,
        confidence=target.confidence,
        misfit=made.misfit,
        residual=made.residual,
        notes=made.notes,
    )


def _target(request: MarginalsRequest, default: AccuracyTarget) -> AccuracyTarget:
    asked = request.target
    return AccuracyTarget(
        half_width=default.half_width if asked.half_width is None else asked.half_width,
        confidence=default.confidence if asked.confidence is None else asked.confidence,
        epsilon_cap=default.epsilon_cap if asked.epsilon_cap is None else asked.epsilon_cap,
    )


def _known(table: ServedTable, request: MarginalsRequest) -> list[WholeTable]:
    columns = {name for one in request.sets for name in one.columns}
    snapshot = table.snapshot()
    return whole_tables(snapshot.pooled, columns, snapshot.n_holders)


def _check_size(request: MarginalsRequest, known: Sequence[WholeTable], table: ServedTable) -> None:
    """Refuse tables that are too large to be made to agree, before they are paid for."""
    if request.consistency is Consistency.RAW:
        return
    meeting_sets([*(one.measured.scope for one in known), *(one.scope for one in request.sets)])
    columns = tuple(sorted({name for one in request.sets for name in one.columns}))
    n_cells = math.prod(table.info.schema.sizes(columns))
    if request.consistency is Consistency.GLOBAL and n_cells > N_JOINT_CELLS_MAX:
        raise TooLarge(
            f"A joint table of {listed(columns)} has {n_cells} cells; {N_JOINT_CELLS_MAX} are "
            "fitted.",
            hint="Ask for fewer columns, or for nonnegative consistency.",
        )


def _to_add(
    table: ServedTable,
    request: MarginalsRequest,
    target: AccuracyTarget,
    known: Sequence[WholeTable],
) -> Added:
    schema = table.info.schema
    if request.budget is not None:
        budget = schema.per_row(request.budget)
        return divided(request.sets, schema, budget, known) if budget else {}
    return needed(
        request.sets,
        schema,
        target,
        known,
        total=_total(request),
        n_holders=table.snapshot().n_holders,
    )


def _total(request: MarginalsRequest) -> float | None:
    return None if request.public_total is None else float(request.public_total)


def _check_covered(sets: Sequence[MarginalSet], scopes: Sequence[Scope]) -> None:
    """Refuse columns about which nothing is known and nothing will be bought."""
    asked = {name for one in sets for name in one.columns}
    unknown = sorted(asked - {name for scope in scopes for name in scope})
    if unknown or not scopes:
        what = f"columns {listed(unknown)}" if unknown else "the number of records"
        raise InvalidRequest(
            f"No whole table in the history has {what}.",
            hint="Ask for them with a budget above 0, or with a half_width.",
        )


def _bought_rows(
    table: ServedTable, request: MarginalsRequest, target: AccuracyTarget, payer: Payer
) -> tuple[Fraction, list[str]]:
    """Answer each set as a GROUP BY; the cost, and the source of each."""
    acquired = table.acquire(_wanted(table, request, target), payer, target.epsilon_cap)
    sources = [SOURCE_HISTORY if one else SOURCE_MEASURED for one in acquired.was_known]
    return acquired.epsilon, sources


def _bought_tables(  # noqa: PLR0913, PLR0917 - what to buy, for whom, and the limit on its price
    table: ServedTable,
    request: MarginalsRequest,
    added: Added,
    known: Sequence[WholeTable],
    payer: Payer,
    cap: Fraction | None,
) -> Fraction:
    schema = table.info.schema
    purchase = {}
    for scope, weight in added.items():
        before = of_scope(known, scope)
        natural = natural_partition(scope, schema.sizes(scope))
        purchase[natural if before is None else before.partition] = weight
    caps = [one for one in (cap, request.budget) if one is not None]
    return table.buy_tables(purchase, payer, epsilon_cap=min(caps, default=None))


def _made(table: ServedTable, request: MarginalsRequest, settings: ReconcileSettings) -> Agreement:
    known = [one.measured for one in _known(table, request)]
    if settings.consistency is not Consistency.RAW:
        return agreed(settings, table.info.schema, known)
    found = table.look(_wanted(table, request, _target(request, table.info.default)))
    estimates = [_all_known(rows) for rows in found]
    missing = [one for one, rows in zip(request.sets, estimates, strict=True) if rows is None]
    if missing:
        _check_covered(missing, [one.scope for one in known])
    return raw(settings, table.info.schema, estimates, known)


def _wanted(table: ServedTable, request: MarginalsRequest, target: AccuracyTarget) -> list[Wanted]:
    target = replace(target, epsilon_cap=None)
    return [
        Wanted(
            QueryBlock(
                counting(), natural_partition(one.scope, table.info.schema.sizes(one.scope))
            ),
            target,
        )
        for one in request.sets
    ]


def _all_known(rows: RowEstimates) -> tuple[Posterior, ...] | None:
    known = tuple(row for row in rows if isinstance(row, Posterior))
    return known if len(known) == len(rows) else None
