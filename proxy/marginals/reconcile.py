"""From the tables in a history to the cells of each set: as measured, or made to agree.

Post-processing of released values: nothing is bought or charged here.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from importlib.util import find_spec
from typing import Final

import numpy as np

from cube.query import Scope
from cube.schema import Schema
from inference.marginals.entropy import maximum_entropy
from inference.marginals.error_law import CellError, MeasuredTable, cell_error
from inference.marginals.joint import reconciled_globally
from inference.marginals.nonnegative import N_PROGRAMME_CELLS_MAX, nonnegative
from inference.marginals.projection import reconciled
from inference.marginals.table import ConsistentTable, Floats, NoisyTable, Reconciled, marginal
from inference.posterior import Posterior, ends_about
from planner.workload import Consistency
from proxy.api.marginals import MarginalSet
from proxy.marginals.rows import MarginalRows, in_order

SOURCE_MODEL: Final = "model"

_NO_INTERVAL: Final = (
    "No cell has an interval: the correction of cells below zero depends on the noise."
)
_NO_JOINT: Final = (
    "Tables that agree and are nowhere negative may still not fit any one population; global "
    "consistency makes them marginals of one joint table."
)
_MODELLED: Final = (
    "Tables with source 'model' were not measured: they are the most even tables that agree with "
    "those that were, and their error is unknown."
)


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
    sets : tuple of MarginalSet
    sources : tuple of str
        The source of each set that a table covers.
    consistency : Consistency
    total : float, optional
        The public number of records.
    confidence : float
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
            rows.append(
                _modelled(one, least_negative([table.noisy for table in tables], None).tables)
            )
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
        notes = (_NO_INTERVAL, *notes)
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
            return least_negative(noisy, settings.total)


def least_negative(tables: Sequence[NoisyTable], total: float | None) -> Reconciled:
    """Non-negative tables: the closest ones if the solver is installed, otherwise nearly so."""
    n_cells_max = N_PROGRAMME_CELLS_MAX if find_spec("cvxpy") is not None else 0
    return nonnegative(tables, total=total, n_programme_cells_max=n_cells_max)


def _for_model(
    settings: ReconcileSettings, found: Reconciled, tables: Sequence[MeasuredTable]
) -> tuple[ConsistentTable, ...]:
    """Tables that a model can be made to agree with."""
    if settings.consistency is Consistency.EXACT:
        return least_negative([table.noisy for table in tables], settings.total).tables
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
    """The cells of a set, with intervals of what is possible where the cell is."""
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
