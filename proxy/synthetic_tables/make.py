"""Makes a synthetic table of a private one, or says step by step what it would cost.

Makes a synthetic table: checks its price, measures what it needs, and draws rows.

Everything except the measuring is post-processing. The last step always fits the model to the
history alone: a table that was bought and a table from history are made in the same way.

What a synthetic table would cost, step by step. Plans only: nothing is charged or read.
"""

import secrets
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from fractions import Fraction
from math import comb, prod
from typing import Any, Final

import numpy as np
import pyarrow as pa

from accountant.ledger import Payer
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
from planner.sql import suggestion
from proxy.synthetic_tables.measurers import (
    PAIRS,
    GateMeasurer,
    HoldersTogether,
    NetworkMeasurer,
    Stratified,
    attributes_of,
    holder_sizes,
    joined_settings_of,
    known_by_holder,
    known_now,
    settings_of,
)
from proxy.synthetic_tables.models import decoded_model, drawn, drawn_parts, encoded
from proxy.synthetic_tables.request import (
    Joining,
    MadeTable,
    Method,
    PlannedStep,
    SynthesisRequest,
    Watch,
)
from proxy.synthetic_tables.spending import (
    GaussianBudget,
    GaussianSpending,
    LaplaceSpending,
    all_levels,
)
from proxy.tables import ServedTable
from synthesis import (
    GAUSSIAN,
    LAPLACE,
    SCORE_SHARE,
    TOTAL_SHARE,
    Column,
    KnownEstimates,
    Model,
    NoiseCost,
    Stratum,
    Structure,
    Wishes,
    buy_tables,
    federated_network,
    known_model,
    known_sketch,
    known_strata,
    measured_strata,
    one_way_budgets,
    scopes_of,
    score_share,
    strata_of,
    worth_scoring,
)
from synthesis.privbayes import BayesianNetwork, ChoiceMeasurer, learned_network

N_LEVELS_MAX: Final = N_GROUPS_MAX  # of one column: its counts are one block
EPSILON_MIN: Final = Fraction(1, 1000)  # divided among a hundred pairs even this is useless
EPSILON_MAX: Final = 100  # beyond it nothing is private, and a typing error is likely
DRAWN: Final = 0.9
PLANNED: Final = 1 - 2.0**-30  # of a budget, so that divided and rounded floats stay within it
SEED_BITS: Final = 63
N_STATISTICS_MAX: Final = 1_000  # tables; each is in the ledger, with its noisy counts


def make(
    table: ServedTable, request: SynthesisRequest, payer: Payer, watch: Watch = lambda _step: None
) -> MadeTable:
    """Make a synthetic table of a private table. May charge.

    Parameters
    ----------
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
    check_statistics(axes, request)
    check_delta(table, request)
    levels = all_levels(table)
    if request.epsilon or request.evaluate:
        levels = affordable_levels(table, request, payer)
    if request.epsilon and request.delta is not None:
        spending: LaplaceSpending = GaussianSpending(
            table, payer, request.epsilon, watch, request.delta, levels
        )
    else:
        spending = LaplaceSpending(table, payer, request.epsilon, watch, levels)
    seed = secrets.randbits(SEED_BITS) if request.seed is None else request.seed
    if request.method is Method.PRIVBAYES:
        fitted = _network(spending, columns_of(axes), request, seed)
    else:
        fitted = _pairwise(spending, columns_of(axes), request)
    spending.step("drawing rows", PAIRS)
    rows = drawn(fitted.model, axes, n_rows=request.n_rows, seed=seed)
    spending.step("storing rows", DRAWN)
    left_out = holders_left_out(table, levels)
    without = f"Made without the rows of holders that could not answer: {left_out}."
    return MadeTable(
        rows=rows,
        method=Method.PRIVBAYES if request.method is Method.PRIVBAYES else Method.PAIRWISE,
        epsilon_spent=spending.spent,
        unknown=fitted.unknown,
        tables=fitted.tables,
        model=encoded(fitted.model) | {"seed": seed},
        n_charges=len(table.gate.payments()),
        incomplete=f"{fitted.incomplete} {without if left_out else ''}".strip(),
        levels=levels if table.is_federated else None,
        left_out=left_out,
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
    strata = () if _holder_among(spending.table, columns) else strata_of(columns, request.target)
    fitted = _by_class(spending, columns, request, strata) if strata else None
    return _of_all_rows(spending, columns, request) if fitted is None else fitted


def _of_all_rows(
    spending: LaplaceSpending, columns: Sequence[Column], request: SynthesisRequest
) -> _Fitted:
    holder = _holder_among(spending.table, columns)
    bought = _bought(columns, holder)
    measurer = GateMeasurer(spending, bought)
    if request.epsilon:
        budget, cost = _planned_budget(spending, request)
        wishes = _wishes(bought, request)
        buy_tables(bought, measurer, budget=budget, wishes=wishes, cost=cost)
    else:
        spending.step("reading the history", 0.0)
    known = known_by_holder(spending.table, columns, holder) if holder else measurer.known()
    model, unknown = known_model(columns, known), known_sketch(columns, known).unknown
    if len(unknown) == len(columns):
        raise InvalidRequest(
            f"Nothing is known of the columns of {request.table} yet.",
            hint="Give an epsilon, or query counts by some of its columns first.",
        )
    return _Fitted(model, tuple(sorted(model.pairs)), unknown, measurer.stopped or "")


def _holder_among(table: ServedTable, columns: Sequence[Column]) -> str:
    """The column that is the holder of a federated table; empty if there is none."""
    name = table.info.schema.holders
    return name if name is not None and any(one.name == name for one in columns) else ""


def _bought(columns: Sequence[Column], holder: str) -> tuple[Column, ...]:
    """The columns that are measured: each holder measures them, so their holder is known."""
    return tuple(column for column in columns if column.name != holder)


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
        return PLANNED * float(spending.budget), noise_cost(spending.levels, GAUSSIAN)
    budget = float(spending.budget_of(request.epsilon))
    return PLANNED * budget, noise_cost(spending.levels, LAPLACE)


def noise_cost(levels: Sequence[int], of_one: NoiseCost) -> NoiseCost:
    """What a budget buys of a kind of noise: of a federated table, every holder adds its own."""
    return of_one.of_holders(len(levels)) if levels else of_one


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
            "A history does not determine a network, so privbayes needs an epsilon.",
            hint="Give one, or make a table from history alone with the method pairwise.",
        )
    budget = spending.budget_of(request.epsilon)
    if request.joining is not None:
        return _of_network(_joined(spending, columns, request, request.joining, budget, seed))
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
    return _of_network(network)


def _joined(  # noqa: PLR0913, PLR0917 - what to buy, from whom, and how
    spending: LaplaceSpending,
    columns: Sequence[Column],
    request: SynthesisRequest,
    joining: Joining,
    budget: Fraction,
    seed: int,
) -> BayesianNetwork:
    """A network of the rows of the holders of a federated table; each pays the budget."""
    levels = spending.levels
    sizes = holder_sizes(spending.table, columns, levels)
    uncounted = [level for level, size in zip(levels, sizes, strict=True) if size is None]
    if uncounted:
        spending.step("counting rows", 0.0)
        spending.buy({None: budget * Fraction(TOTAL_SHARE)}, uncounted)
        budget -= budget * Fraction(TOTAL_SHARE)
        sizes = holder_sizes(spending.table, columns, levels)
    return federated_network(
        attributes_of(columns, request),
        _holders(spending, len(columns), joining.structure),
        [size or 0.0 for size in sizes],
        np.random.default_rng(seed),
        budget=budget,
        structure=joining.structure,
        settings=joined_settings_of(request, joining),
    )


def _holders(
    spending: LaplaceSpending, n_columns: int, structure: Structure
) -> list[ChoiceMeasurer]:
    """Each holder, asked by itself for a model, and otherwise together with the others."""
    holders = spending.table.extent.holders
    if holders is None:
        raise RuntimeError("no table of several holders")
    levels = spending.levels
    if structure is Structure.MODELS:
        turns = [(place, len(levels)) for place in range(len(levels))]
        return [
            NetworkMeasurer(spending, n_columns, level, turn)
            for level, turn in zip(levels, turns, strict=True)
        ]
    together = HoldersTogether(spending, n_columns, holders)
    return [together.one(level) for level in levels]


def _of_network(network: BayesianNetwork) -> _Fitted:
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
    axes = tuple(schema.by_name[name] for name in request.columns) or schema.of_one_holder.axes
    for axis in axes:
        if axis.size > N_LEVELS_MAX:
            raise TooLarge(
                f"{axis.name} has {axis.size} levels; a synthetic table allows {N_LEVELS_MAX}.",
                hint="Declare it with coarser levels, or leave it out: columns => (..).",
            )
    return axes


def check_statistics(axes: Sequence[Axis], request: SynthesisRequest) -> None:
    """Refuse tables of all sets of columns that are too many or too large.

    Raises
    ------
    TooLarge
    """
    joining = request.joining
    if joining is None or joining.structure is not Structure.STATISTICS:
        return
    n_together = min(request.degree, len(axes) - 1) + 1
    n_tables = comb(len(axes), n_together)
    largest = prod(sorted(axis.size for axis in axes)[-n_together:])
    if n_tables > N_STATISTICS_MAX or largest > N_GROUPS_MAX:
        raise TooLarge(
            f"The structure statistics counts {n_tables} tables of {n_together} columns, the "
            f"largest of {largest} cells; {N_STATISTICS_MAX} tables of {N_GROUPS_MAX} cells are "
            "allowed.",
            hint="Name fewer columns, lower degree, or use structure => 'votes'.",
        )


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


def affordable_levels(
    table: ServedTable, request: SynthesisRequest, payer: Payer
) -> tuple[int, ...]:
    """Refuse what a request may cost if it could not be paid in full, before anything is paid.

    Returns
    -------
    tuple of int
        The holders of a federated table that can pay it: all of them, unless the request is content
        with those that can. Empty for any other table.

    Raises
    ------
    BudgetExhausted, LimitReached
    SourceUnavailable
        If a holder of a federated table cannot be asked, and the request needs it.
    """
    weight = Weight.at_least(table.info.schema.per_row(request.epsilon + request.evaluate))
    everything = PlannedMeasurement(QueryBlock(counting()), weight)
    try:
        table.check([everything], payer, epsilon_cap=None)
        refusals = table.refusals([everything], payer)
        able = tuple(level for level, refusal in enumerate(refusals) if refusal is None)
        refused = next((one for one in refusals if one is not None), None)
        if refused is not None and not (able and request.any_holders):
            raise refused
    except (BudgetExhausted, LimitReached) as refusal:
        raise type(refusal)(replace(refusal.shortfall, is_synthetic=True)) from None
    return able


def holders_left_out(table: ServedTable, levels: Sequence[int]) -> str:
    """The holders of a federated table but some; how many, where SQL does not name them."""
    missing = [level for level in all_levels(table) if level not in levels]
    return table.named_holders(missing) if missing else ""


def _n_ordered(axis: Axis) -> int:
    """The number of levels that are ordered, so that neighbours are similar."""
    return 0 if isinstance(axis, CategoryAxis | BooleanAxis) else len(axis.regular)


def preview(table: ServedTable, request: SynthesisRequest) -> tuple[PlannedStep, ...]:
    """What each step would cost. Charges nothing.

    Raises
    ------
    UnknownName, TooLarge, InvalidTarget, InvalidRequest
    """
    axes = checked_axes(table.info.schema, request)
    columns = columns_of(axes)
    columns = _bought(columns, _holder_among(table, columns))
    check_statistics(axes, request)
    check_delta(table, request)
    known = known_now(table, columns)
    steps = [PlannedStep(name="reading the history", epsilon=Fraction(0), n_tables=len(known))]
    if not request.epsilon:
        return tuple(steps)
    schema = table.info.schema
    left, cost = float(schema.per_row(request.epsilon)), noise_cost(all_levels(table), LAPLACE)
    price = float(schema.rows_per_unit_max)
    if request.delta is not None:
        bought = GaussianBudget.of(table, request.epsilon, request.delta)
        steps.append(_planned("opening Gaussian noise", float(bought.opening), 0))
        cost = noise_cost(all_levels(table), GAUSSIAN)
        left, price = float(bought.budget), float(bought.epsilon_per_budget)
    if request.joining is not None:
        return (*steps, *_joined_steps(table, columns, request.joining, request, left, price))
    if known.n_rows is None:  # until rows are counted, use the public bound
        known = replace(known, n_rows=float(table.info.schema.n_records_max))
        steps.append(_planned("counting rows", price * TOTAL_SHARE * left, 1))
        left -= TOTAL_SHARE * left
    if request.method is Method.PRIVBAYES:
        for_network = float(settings_of(request).network_share) * left
        steps.append(_planned("choosing the network", price * for_network, len(columns) - 1))
        steps.append(_planned("measuring tables", price * (left - for_network), len(columns)))
        return tuple(steps)
    strata = () if len(columns) < len(axes) else strata_of(columns, request.target)
    if strata:
        # Each class is planned like a table of its own. Rows are in one class, so one price pays
        columns = tuple(column for column in columns if column.name not in request.target)
        known = KnownEstimates(n_rows=(known.n_rows or 0.0) / len(strata))
    plan = _Plan(columns, known, cost, n_classes=max(1, len(strata)))
    return (*steps, *plan.steps(left, price))


def _joined_steps(  # noqa: PLR0913, PLR0917 - the order and its price
    table: ServedTable,
    columns: Sequence[Column],
    joining: Joining,
    request: SynthesisRequest,
    left: float,
    price: float,
) -> list[PlannedStep]:
    """What a network of a federated table costs, at each of its holders."""
    steps, sizes = [], holder_sizes(table, columns)
    if any(size is None for size in sizes):
        steps.append(_planned("counting rows", price * TOTAL_SHARE * left, 1))
        left -= TOTAL_SHARE * left
    settings = joined_settings_of(request, joining)
    if joining.structure is Structure.STATISTICS:
        n_parents = min(settings.degree_of(joining.structure), len(columns) - 1)
        n_tables = comb(len(columns), n_parents + 1)
        return [*steps, _planned("measuring tables", price * left, n_tables)]
    for_network = float(settings.learning(joining.structure).network_share) * left
    return [
        *steps,
        _planned("choosing the network", price * for_network, len(columns) - 1),
        _planned("measuring tables", price * (left - for_network), len(columns)),
    ]


@dataclass(frozen=True, slots=True)
class _Plan:
    """The purchases of the pairwise method for some rows, and for others like them."""

    columns: tuple[Column, ...]
    known: KnownEstimates
    cost: NoiseCost
    n_classes: int

    def steps(self, left: float, price: float) -> list[PlannedStep]:
        """What columns, scores and pairs cost, of a budget; `price` is the epsilon of a unit."""
        n_pairs = len(self.columns) * (len(self.columns) - 1) // 2
        if self.n_classes > 1:
            return self._steps_of_classes(left, price, n_pairs)
        budgets = one_way_budgets(self.columns, self.known, left, self.cost)
        steps = [_planned("measuring columns", price * sum(budgets.values()), len(budgets))]
        rest = left - sum(budgets.values())
        if not n_pairs or not worth_scoring(rest, left):
            return steps
        for_scores = score_share(n_pairs, self.known.n_rows or 0.0, rest, self.cost) * rest
        return [
            *steps,
            _planned("scoring pairs", price * for_scores, n_pairs),
            _planned("measuring pairs", price * (rest - for_scores), n_pairs),
        ]

    def _steps_of_classes(self, left: float, price: float, n_pairs: int) -> list[PlannedStep]:
        """The same for classes whose sizes are not known: the dearest may take all that is left."""
        n_columns = self.n_classes * len(self.columns)
        if not n_pairs:
            return [_planned("measuring columns", price * (1 - SCORE_SHARE) * left, n_columns)]
        rest = (1 - SCORE_SHARE) * left
        for_columns = sum(one_way_budgets(self.columns, self.known, rest, self.cost).values())
        n_pairs *= self.n_classes
        return [
            _planned("measuring columns", price * for_columns, n_columns),
            _planned("scoring pairs", price * SCORE_SHARE * left, n_pairs),
            _planned("measuring pairs", price * (rest - for_columns), n_pairs),
        ]


def _planned(name: str, epsilon: float, n_tables: int) -> PlannedStep:
    return PlannedStep(name=name, epsilon=Fraction(epsilon), n_tables=n_tables)
