"""From the tables a history holds to the cells of each set: as measured, or made to agree.

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
from inference.posterior import Posterior
from planner.workload import Consistency
from proxy.api.marginals import MarginalSet
from proxy.marginals.rows import MarginalRows, in_order

SOURCE_MODEL: Final = "model"

_NO_INTERVAL: Final = (
    "No cell has an interval: what is done to cells below zero depends on the noise."
)
_NO_JOINT: Final = (
    "Tables that agree and are nowhere negative may still be those of no population; global "
    "consistency makes them marginals of one joint table."
)
_MODELLED: Final = (
    "Tables with source 'model' were not measured: they are the most even ones that agree with "
    "those that were, and nothing tells how far the truth is from them."
)


@dataclass(frozen=True, slots=True, eq=False)
class Agreement:
    """The cells of each set, and how far tables had to move."""

    rows: tuple[MarginalRows, ...]
    misfit: float | None
    residual: float | None
    notes: tuple[str, ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class ReconcileSettings:
    """What is to be made of the tables.

    Parameters
    ----------
    sets : tuple of MarginalSet
    sources : tuple of str
        Of each set that a table covers.
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
    wish: ReconcileSettings,
    schema: Schema,
    estimates: Sequence[Sequence[Posterior] | None],
    tables: Sequence[MeasuredTable],
) -> Agreement:
    """The sets as history answers them; None where it does not, and a model must."""
    rows = []
    for one, source, posteriors in zip(wish.sets, wish.sources, estimates, strict=True):
        if posteriors is None:
            rows.append(
                _modelled(one, least_negative([table.noisy for table in tables], None).tables)
            )
            continue
        ends = np.array([posterior.interval(wish.confidence) for posterior in posteriors])
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


def agreed(wish: ReconcileSettings, schema: Schema, tables: Sequence[MeasuredTable]) -> Agreement:
    """The sets, made to agree with one another and with every table there is."""
    found = _reconciled(wish, tables)
    rows = []
    for one, source in zip(wish.sets, wish.sources, strict=True):
        values = _within(found.tables, one.scope)
        if values is None:
            rows.append(_modelled(one, _for_model(wish, found, tables)))
            continue
        error = None
        if wish.consistency is Consistency.EXACT:
            error = cell_error(tables, one.scope, total=wish.total)
        highest = schema.n_records_max if wish.total is None else wish.total
        rows.append(_rows(one, values, error, wish.confidence, float(highest), source))
    notes = _model_note(rows)
    if wish.consistency is not Consistency.EXACT:
        notes = (_NO_INTERVAL, *notes)
    if wish.consistency is Consistency.NONNEGATIVE:
        notes = (*notes, _NO_JOINT)
    return Agreement(tuple(rows), found.misfit, found.residual, notes)


def _reconciled(wish: ReconcileSettings, tables: Sequence[MeasuredTable]) -> Reconciled:
    noisy = [table.noisy for table in tables]
    match wish.consistency:
        case Consistency.EXACT:
            return reconciled(noisy, total=wish.total)
        case Consistency.GLOBAL:
            return reconciled_globally(noisy, total=wish.total)
        case _:
            return least_negative(noisy, wish.total)


def least_negative(tables: Sequence[NoisyTable], total: float | None) -> Reconciled:
    """Non-negative tables: the closest where their solver is installed, else nearly so."""
    n_cells_max = N_PROGRAMME_CELLS_MAX if find_spec("cvxpy") is not None else 0
    return nonnegative(tables, total=total, n_programme_cells_max=n_cells_max)


def _for_model(
    wish: ReconcileSettings, found: Reconciled, tables: Sequence[MeasuredTable]
) -> tuple[ConsistentTable, ...]:
    """Tables that a model can be made to agree with."""
    if wish.consistency is Consistency.EXACT:
        return least_negative([table.noisy for table in tables], wish.total).tables
    return found.tables


def _within(tables: Sequence[ConsistentTable], scope: Scope) -> Floats | None:
    """The marginal on a scope of the smallest table that has it."""
    holders = [table for table in tables if set(scope).issubset(table.scope)]
    if not holders:
        return None
    holder = min(holders, key=lambda table: table.values.size)
    return marginal(holder.values, holder.scope, scope)


def _modelled(one: MarginalSet, tables: Sequence[ConsistentTable]) -> MarginalRows:
    values = maximum_entropy(one.scope, tables).values
    return _rows(one, values, None, 0.0, 0.0, SOURCE_MODEL)


def _rows(  # noqa: PLR0913, PLR0917 - all there is to the cells of a set
    one: MarginalSet,
    values: Floats,
    error: CellError | None,
    confidence: float,
    highest: float,
    source: str,
) -> MarginalRows:
    """The cells of a set, with intervals that are clipped to what is possible, rounded outwards."""
    cells = in_order(values, one.columns)
    nothing = np.full(cells.size, np.nan)
    if error is None:
        return MarginalRows(one.columns, cells, nothing, nothing, nothing, source)
    half_width = error.half_width(confidence)
    low = np.clip(np.nextafter(cells - half_width, -np.inf), 0.0, highest)
    high = np.clip(np.nextafter(cells + half_width, np.inf), 0.0, highest)
    errors = np.full(cells.size, error.standard_error)
    return MarginalRows(one.columns, cells, low, high, errors, source)


def _model_note(rows: Sequence[MarginalRows]) -> tuple[str, ...]:
    return (_MODELLED,) if any(one.source == SOURCE_MODEL for one in rows) else ()
