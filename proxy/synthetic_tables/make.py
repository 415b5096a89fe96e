"""Makes a synthetic table: checks its price, measures what it needs, and draws rows.

Everything except the measuring is post-processing. The last step always fits the model to the
history alone: a table that was bought and a table from history are made in the same way.
"""

import secrets
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from fractions import Fraction
from typing import Any, Final

import numpy as np
import pyarrow as pa

from accountant.ledger.limits import Payer
from cube.axis import Axis, BooleanAxis, CategoryAxis
from cube.measurement import PlannedMeasurement, Weight
from cube.query import N_GROUPS_MAX, QueryBlock, Scope, counting
from cube.refusals import (
    BudgetExhausted,
    InvalidRequest,
    InvalidTarget,
    LimitReached,
    TooLarge,
    UnknownName,
)
from cube.schema import Schema
from planner.sql.messages import suggestion
from proxy.synthetic_tables.gaussian_spending import GaussianSpending
from proxy.synthetic_tables.models import Model, decoded_model, drawn, drawn_parts, encoded
from proxy.synthetic_tables.network_measurer import NetworkMeasurer
from proxy.synthetic_tables.network_settings import attributes_of, check_score, settings_of
from proxy.synthetic_tables.pairwise_measurer import PAIRS, GateMeasurer, Stratified, known_now
from proxy.synthetic_tables.request import MadeTable, Method, SynthesisRequest, Watch
from proxy.synthetic_tables.spending import LaplaceSpending
from proxy.tables.private_table import ServedTable
from synthesis.choice import GAUSSIAN, LAPLACE, NoiseCost
from synthesis.known import Stratum
from synthesis.pairwise import (
    TOTAL_SHARE,
    Wishes,
    known_model,
    known_sketch,
    measured_model,
)
from synthesis.privbayes.learning import learned_network
from synthesis.strata import known_strata, measured_strata, scopes_of, strata_of
from synthesis.tables import Column

N_LEVELS_MAX: Final = N_GROUPS_MAX  # of one column: its counts are one block
EPSILON_MIN: Final = Fraction(1, 1000)  # divided among a hundred pairs even this is useless
EPSILON_MAX: Final = 100  # beyond it nothing is private, and a typing error is likely
DRAWN: Final = 0.9
PLANNED: Final = 1 - 2.0**-30  # of a budget, so that divided and rounded floats stay within it
SEED_BITS: Final = 63


def make(
    table: ServedTable, request: SynthesisRequest, payer: Payer, watch: Watch = lambda _step: None
) -> MadeTable:
    """Make a synthetic table of a private table. May charge.

    Parameters
    ----------
    table : ServedTable
    request : SynthesisRequest
    payer : Payer
    watch : callable
        Called at every step; an exception from it stops the making. What was charged until then
        stays charged, is in the history, and is used by the next table.

    Raises
    ------
    UnknownName, TooLarge, InvalidTarget, BudgetExhausted, LimitReached, InvalidRequest
        Before anything is charged.
    LedgerUnavailable, SourceUnavailable
        What was charged is kept, and completed at the next request.
    """
    axes = checked_axes(table.info.schema, request)
    check_delta(table, request)
    check_score(columns_of(axes), request)
    if request.epsilon:
        check_affordable(table, request.epsilon, payer)
    if request.epsilon and request.delta is not None:
        spending: LaplaceSpending = GaussianSpending(
            table, payer, request.epsilon, watch, request.delta
        )
    else:
        spending = LaplaceSpending(table, payer, request.epsilon, watch)
    seed = secrets.randbits(SEED_BITS) if request.seed is None else request.seed
    if request.method is Method.PRIVBAYES:
        fitted = _network(spending, columns_of(axes), request, seed)
    else:
        fitted = _pairwise(spending, columns_of(axes), request)
    spending.step("drawing rows", PAIRS)
    rows = drawn(fitted.model, axes, n_rows=request.n_rows, seed=seed)
    spending.step("storing rows", DRAWN)
    return MadeTable(
        rows=rows,
        method=Method.PRIVBAYES if request.method is Method.PRIVBAYES else Method.PAIRWISE,
        epsilon_spent=spending.spent,
        unknown=fitted.unknown,
        tables=fitted.tables,
        model=encoded(fitted.model) | {"seed": seed},
        n_charges=len(table.gate.payments()),
        incomplete=fitted.incomplete,
        generation=table.extent.generation,
    )


@dataclass(frozen=True, slots=True)
class _Fitted:
    """A model, and facts about it."""

    model: Model
    tables: tuple[Scope, ...]
    unknown: tuple[str, ...] = ()
    incomplete: str = ""


def _pairwise(
    spending: LaplaceSpending, columns: Sequence[Column], request: SynthesisRequest
) -> _Fitted:
    strata = strata_of(columns, request.target)
    fitted = _by_class(spending, columns, request, strata) if strata else None
    return _of_all_rows(spending, columns, request) if fitted is None else fitted


def _of_all_rows(
    spending: LaplaceSpending, columns: Sequence[Column], request: SynthesisRequest
) -> _Fitted:
    measurer = GateMeasurer(spending, columns)
    if request.epsilon:
        budget, cost = _planned_budget(spending, request)
        wishes = _wishes(columns, request)
        model = measured_model(columns, measurer, budget=budget, wishes=wishes, cost=cost)
    else:
        spending.step("reading the history", 0.0)
        model = known_model(columns, measurer.known())
    unknown = known_sketch(columns, measurer.known()).unknown
    if len(unknown) == len(columns):
        raise InvalidRequest(
            f"Nothing is known of the columns of {request.table} yet.",
            hint="Give an epsilon, or query counts by some of its columns first.",
        )
    return _Fitted(model, tuple(sorted(model.pairs)), unknown, measurer.stopped or "")


def _by_class(
    spending: LaplaceSpending,
    columns: Sequence[Column],
    request: SynthesisRequest,
    strata: Sequence[Stratum],
) -> _Fitted | None:
    """A model for each class of the target; None if it would be free and too little is known."""
    others = [column for column in columns if column.name not in request.target]
    sizes = {column.name: column.size for column in columns if column.name in request.target}
    measurers = {
        one: GateMeasurer(spending, others, Stratified(one, place, len(strata), sizes))
        for place, one in enumerate(strata)
    }
    if not request.epsilon:
        spending.step("reading the history", 0.0)
        known = known_strata(columns, measurers)
        return None if known is None else _Fitted(known, tuple(scopes_of(known)))
    budget, cost = _planned_budget(spending, request)
    first = measurers[strata[0]]
    if any(measurers[one].known().n_rows is None for one in strata):
        first.count(TOTAL_SHARE * budget)
        budget -= TOTAL_SHARE * budget
    model = measured_strata(
        columns, measurers, budget=budget, wishes=_wishes(others, request), cost=cost
    )
    stopped = [one.stopped for one in measurers.values() if one.stopped]
    return _Fitted(model, tuple(scopes_of(model)), incomplete=stopped[0] if stopped else "")


def _planned_budget(
    spending: LaplaceSpending, request: SynthesisRequest
) -> tuple[float, NoiseCost]:
    """What may be spent, in the units of the noise, and what a budget buys."""
    if isinstance(spending, GaussianSpending):
        return PLANNED * float(spending.budget), GAUSSIAN
    return PLANNED * float(spending.budget_of(request.epsilon)), LAPLACE


def _wishes(columns: Sequence[Column], request: SynthesisRequest) -> Wishes:
    """The pairs that count more: those of a workload, and those of a target with any column."""
    names = {column.name for column in columns}
    kept = (tuple(name for name in scope if name in names) for scope in request.workload)
    with_target = (
        tuple(sorted((name, other)))
        for name in request.target
        if name in names
        for other in names - {name}
    )
    return Wishes.for_queries([*kept, *with_target])


def _network(
    spending: LaplaceSpending, columns: Sequence[Column], request: SynthesisRequest, seed: int
) -> _Fitted:
    if not request.epsilon:
        raise InvalidRequest(
            "A history does not determine a network: privbayes needs an epsilon.",
            hint="Give one, or make a table from history alone with the method pairwise.",
        )
    budget = spending.budget_of(request.epsilon)
    if known_now(spending.table, columns).n_rows is None:
        spending.step("counting rows", 0.0)
        spending.buy({None: budget * Fraction(TOTAL_SHARE)})
        budget -= spending.budget_of(spending.spent)
    network = learned_network(
        attributes_of(columns, request),
        NetworkMeasurer(spending, len(columns)),
        np.random.default_rng(seed),
        budget=budget,
        n_rows=max(1.0, known_now(spending.table, columns).n_rows or 0.0),
        settings=settings_of(request),
    )
    scopes = [
        tuple(sorted((node.child, *(parent.column for parent in node.parents))))
        for node in network.nodes
    ]
    return _Fitted(network, tuple(sorted(scopes)))


def resampled(
    model: Mapping[str, Any], axes: Sequence[Axis], *, n_rows: int | None, seed: int
) -> pa.Table:
    """New rows drawn from a stored model. Free."""
    return drawn(decoded_model(model), axes, n_rows=n_rows, seed=seed)


def resampled_parts(
    model: Mapping[str, Any], axes: Sequence[Axis], *, n_rows: int | None, seed: int
) -> Iterator[pa.Table]:
    """The same rows, a part at a time."""
    return drawn_parts(decoded_model(model), axes, n_rows=n_rows, seed=seed)


def checked_axes(schema: Schema, request: SynthesisRequest) -> tuple[Axis, ...]:
    """The requested columns, in order.

    Raises
    ------
    UnknownName, TooLarge, InvalidTarget
    """
    if request.epsilon > EPSILON_MAX:
        raise InvalidTarget(
            f"An epsilon of {float(request.epsilon):g} gives no meaningful protection.",
            hint=f"At most {EPSILON_MAX} may be spent on a synthetic table; 1 is already a lot.",
        )
    if 0 < request.epsilon < EPSILON_MIN:
        raise InvalidTarget(
            f"An epsilon of {float(request.epsilon):g} is too small to measure anything.",
            hint=f"Give {float(EPSILON_MIN):g} or more; 0 makes the table from history alone.",
        )
    for name in request.columns:
        if name not in schema.by_name:
            known = list(schema.by_name)
            raise UnknownName(
                f"{schema.table} has no column {name} with declared levels.",
                hint=suggestion(name, known) or f"Columns: {', '.join(known)}.",
            )
    axes = tuple(schema.by_name[name] for name in request.columns) or schema.axes
    for axis in axes:
        if axis.size > N_LEVELS_MAX:
            raise TooLarge(
                f"{axis.name} has {axis.size} levels; a synthetic table allows {N_LEVELS_MAX}.",
                hint="Declare it with coarser levels, or leave it out: columns => (..).",
            )
    return axes


def columns_of(axes: Sequence[Axis]) -> tuple[Column, ...]:
    """Axes as the columns of a synthetic table."""
    return tuple(Column(axis.name, axis.size, _n_ordered(axis)) for axis in axes)


def check_delta(table: ServedTable, request: SynthesisRequest) -> None:
    """Refuse a delta that the private table does not offer, or that the method cannot use.

    Raises
    ------
    InvalidRequest
    """
    if request.delta is None:
        return
    if request.method is Method.PRIVBAYES:
        raise InvalidRequest(
            f"The method {request.method} does not use Gaussian noise, and takes no delta.",
            hint="Leave delta out, or use the method pairwise.",
        )
    if table.delta is None:
        raise InvalidRequest(
            f"{request.table} does not allow Gaussian noise: its owner offers no delta.",
            hint="Leave delta out; its owner can offer one, like delta = 1e-9 in its settings.",
        )
    if request.delta != table.delta:
        raise InvalidRequest(
            f"{request.table} offers another delta than {float(request.delta):g}.",
            hint=f"Use delta => {float(table.delta):g}, or leave delta out.",
        )


def check_affordable(table: ServedTable, epsilon: Fraction, payer: Payer) -> None:
    """Refuse an epsilon that could not be paid in full, before anything is paid.

    Raises
    ------
    BudgetExhausted, LimitReached
    """
    weight = Weight.at_least(table.info.schema.per_row(epsilon))
    everything = PlannedMeasurement(QueryBlock(counting()), weight)
    try:
        table.check([everything], payer, epsilon_cap=None)
    except (BudgetExhausted, LimitReached) as refusal:
        raise type(refusal)(replace(refusal.shortfall, is_synthetic=True)) from None


def _n_ordered(axis: Axis) -> int:
    """The number of levels that are ordered, so that neighbours are similar."""
    return 0 if isinstance(axis, CategoryAxis | BooleanAxis) else len(axis.regular)
