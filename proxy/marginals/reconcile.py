"""From the tables in a history to the cells of each set, and these as one long table.

Marginals as one long Arrow table: one row for each cell of each set, keys as text.

Post-processing of released values: nothing is bought or charged here.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Final

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from cube.axis import LevelValue
from cube.query import Scope
from cube.schema import Schema
from inference import Posterior, ends_about
from inference.marginals import (
    CellError,
    ConsistentTable,
    Floats,
    MeasuredTable,
    Reconciled,
    Solver,
    cell_error,
    marginal,
    maximum_entropy,
    nonnegative,
    reconciled,
    reconciled_globally,
)
from planner.workload import Consistency
from proxy.api import MarginalSet

MARGINALS_SCHEMA: Final = pa.schema(
    [
        pa.field("marginal", pa.int32(), nullable=False),  # the set's index in the request, from 0
        pa.field("columns", pa.list_(pa.string()), nullable=False),
        pa.field("keys", pa.list_(pa.string()), nullable=False),  # a null key is SQL's NULL
        pa.field("value", pa.float64(), nullable=False),
        pa.field("low", pa.float64()),  # null, like the next two, if the cell has no interval
        pa.field("high", pa.float64()),
        pa.field("standard_error", pa.float64()),
        pa.field("source", pa.string(), nullable=False),
    ]
)


@dataclass(frozen=True, eq=False)
class MarginalRows:
    """The cells of one set, with the last column varying fastest.

    Parameters
    ----------
    columns : tuple of str
        The columns, in the order in which they are shown.
    values : (n_cells,) ndarray of float64
    low, high, standard_errors : (n_cells,) ndarray of float64
        NaN where there is none.
    """

    columns: tuple[str, ...]
    values: Floats
    low: Floats
    high: Floats
    standard_errors: Floats
    source: str


def in_order(values: Floats, columns: Sequence[str]) -> Floats:
    """The cells of a table over sorted axes, in the order of `columns`, the last one fastest."""
    scope = sorted(columns)
    return np.transpose(values, [scope.index(name) for name in columns]).ravel()


def long_table(marginals: Sequence[MarginalRows], schema: Schema) -> pa.Table:
    """All sets, one after another."""
    pieces = [_piece(number, one, schema) for number, one in enumerate(marginals)]
    return pa.Table.from_batches(pieces, schema=MARGINALS_SCHEMA)


def _piece(number: int, one: MarginalRows, schema: Schema) -> pa.RecordBatch:
    n_rows, width = one.values.size, len(one.columns)
    names = pa.array(one.columns, pa.string()).take(pa.array(np.tile(np.arange(width), n_rows)))
    keys = pa.array(_keys(one.columns, schema).ravel(), pa.string())
    arrays = [
        pa.array(np.full(n_rows, number), pa.int32()),
        _lists(names, n_rows, width),
        _lists(keys, n_rows, width),
        pa.array(one.values, pa.float64()),
        *(
            pa.array(column, pa.float64(), from_pandas=True)
            for column in (one.low, one.high, one.standard_errors)
        ),
        pa.array([one.source] * n_rows, pa.string()),
    ]
    return pa.RecordBatch.from_arrays(arrays, schema=MARGINALS_SCHEMA)


def _lists(values: pa.Array, n_rows: int, width: int) -> pa.ListArray:
    offsets = pa.array(np.arange(n_rows + 1) * width, pa.int32())
    return pa.ListArray.from_arrays(offsets, values)


def _keys(columns: Sequence[str], schema: Schema) -> NDArray[np.object_]:
    """The texts of every cell's levels, (n_rows, n_columns)."""
    by_name = {axis.name: axis for axis in schema.axes}
    texts = [
        np.array([level_text(level) for level in by_name[name].levels], dtype=np.object_)
        for name in columns
    ]
    grids = np.meshgrid(*texts, indexing="ij")
    return np.stack([grid.ravel() for grid in grids], axis=1) if grids else np.empty((1, 0), object)


def level_text(level: LevelValue) -> str | None:
    """A level as SQL would show it as text; None for NULL."""
    if level is None:
        return None
    if isinstance(level, bool):
        return str(level).lower()
    return str(level)


SOURCE_MODEL: Final = "model"

_NO_INTERVAL: Final = (
    "No cell has an interval: the correction of cells below zero depends on the noise."
)
_NO_JOINT: Final = (
    "Tables that agree and are nowhere negative may still not come from any single population; "
    "global consistency makes them marginals of one joint table."
)
_MODELLED: Final = (
    "Tables with source 'model' were not measured: they are the most even tables that agree with "
    "those that were, and their error is unknown."
)


_SOLVED: Final = {
    Solver.PROJECTION: "the projection of the noisy tables, which has no cell below zero",
    Solver.CLARABEL: "the closest tables without a cell below zero, by Clarabel (cvxpy)",
    Solver.RIPPLING: "rippling, for tables of too many cells for Clarabel, or that it gave up: "
    "they are nearly the closest",
    Solver.MIRROR_DESCENT: "accelerated mirror descent on the joint table",
}


def solver_note(solver: Solver) -> str:
    """What was used to make tables agree, in a sentence."""
    return f"Solver: {_SOLVED[solver]}."


@dataclass(frozen=True, slots=True, eq=False)
class Agreement:
    """The cells of each set, and how far the tables were changed."""

    rows: tuple[MarginalRows, ...]
    misfit: float | None
    residual: float | None
    notes: tuple[str, ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class ReconcileSettings:
    """How to make tables agree.

    Parameters
    ----------
    sources : tuple of str
        The source of each set that a table covers.
    total : float, optional
        The public number of records.
    """

    sets: tuple[MarginalSet, ...]
    sources: tuple[str, ...]
    consistency: Consistency
    total: float | None
    confidence: float


def raw(
    settings: ReconcileSettings,
    schema: Schema,
    estimates: Sequence[Sequence[Posterior] | None],
    tables: Sequence[MeasuredTable],
) -> Agreement:
    """The sets as the history answers them; None for a set that only a model can answer."""
    rows = []
    for one, source, posteriors in zip(settings.sets, settings.sources, estimates, strict=True):
        if posteriors is None:
            rows.append(_modelled(one, nonnegative([table.noisy for table in tables]).tables))
            continue
        ends = np.array([posterior.interval(settings.confidence) for posterior in posteriors])
        values, low, high, errors = (
            in_order(column.reshape(schema.sizes(one.scope)), one.columns)
            for column in (
                np.array([posterior.value for posterior in posteriors]),
                ends[:, 0],
                ends[:, 1],
                np.array([posterior.standard_deviation for posterior in posteriors]),
            )
        )
        rows.append(MarginalRows(one.columns, values, low, high, errors, source))
    return Agreement(tuple(rows), None, None, _model_note(rows))


def agreed(
    settings: ReconcileSettings, schema: Schema, tables: Sequence[MeasuredTable]
) -> Agreement:
    """The sets, made to agree with one another and with every known table."""
    found = _reconciled(settings, tables)
    rows = []
    for one, source in zip(settings.sets, settings.sources, strict=True):
        values = _within(found.tables, one.scope)
        if values is None:
            rows.append(_modelled(one, _for_model(settings, found, tables)))
            continue
        error = None
        if settings.consistency is Consistency.EXACT:
            error = cell_error(tables, one.scope, total=settings.total)
        highest = schema.n_records_max if settings.total is None else settings.total
        rows.append(_rows(one, values, error, settings.confidence, float(highest), source))
    notes = _model_note(rows)
    if settings.consistency is not Consistency.EXACT:
        notes = (_NO_INTERVAL, solver_note(found.solver), *notes)
    if settings.consistency is Consistency.NONNEGATIVE:
        notes = (*notes, _NO_JOINT)
    return Agreement(tuple(rows), found.misfit, found.residual, notes)


def _reconciled(settings: ReconcileSettings, tables: Sequence[MeasuredTable]) -> Reconciled:
    noisy = [table.noisy for table in tables]
    match settings.consistency:
        case Consistency.EXACT:
            return reconciled(noisy, total=settings.total)
        case Consistency.GLOBAL:
            return reconciled_globally(noisy, total=settings.total)
        case _:
            return nonnegative(noisy, total=settings.total)


def _for_model(
    settings: ReconcileSettings, found: Reconciled, tables: Sequence[MeasuredTable]
) -> tuple[ConsistentTable, ...]:
    """Tables that a model can be made to agree with."""
    if settings.consistency is Consistency.EXACT:
        return nonnegative([table.noisy for table in tables], total=settings.total).tables
    return found.tables


def _within(tables: Sequence[ConsistentTable], scope: Scope) -> Floats | None:
    """The marginal on a scope, from the smallest table that contains it."""
    holders = [table for table in tables if set(scope).issubset(table.scope)]
    if not holders:
        return None
    holder = min(holders, key=lambda table: table.values.size)
    return marginal(holder.values, holder.scope, scope)


def _modelled(one: MarginalSet, tables: Sequence[ConsistentTable]) -> MarginalRows:
    values = maximum_entropy(one.scope, tables).values
    return _rows(one, values, None, 0.0, 0.0, SOURCE_MODEL)


def _rows(  # noqa: PLR0913, PLR0917 - everything that describes the cells of a set
    one: MarginalSet,
    values: Floats,
    error: CellError | None,
    confidence: float,
    highest: float,
    source: str,
) -> MarginalRows:
    """The cells of a set, with intervals cut to the values that are possible there."""
    cells = in_order(values, one.columns)
    nothing = np.full(cells.size, np.nan)
    if error is None:
        return MarginalRows(one.columns, cells, nothing, nothing, nothing, source)
    half_width = error.half_width(confidence)
    low, high = ends_about(cells, half_width, 0.0, highest)
    errors = np.full(cells.size, error.standard_error)
    return MarginalRows(one.columns, cells, low, high, errors, source)


def _model_note(rows: Sequence[MarginalRows]) -> tuple[str, ...]:
    return (_MODELLED,) if any(one.source == SOURCE_MODEL for one in rows) else ()
