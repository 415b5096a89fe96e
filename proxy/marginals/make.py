"""Makes marginals: buys what is missing, reads it from the history, makes it agree.

Only the purchase costs. Everything afterwards is post-processing of the history, and the same
request is free when it is repeated.
"""

import math
from collections.abc import Iterator, Sequence
from dataclasses import replace
from fractions import Fraction
from typing import TypeAlias

from accountant.ledger.limits import Payer
from cube.query import QueryBlock, Scope, counting
from cube.refusals import InvalidRequest, TooLarge
from cube.target import AccuracyTarget
from inference.block_estimates import RowEstimates
from inference.marginals.joint import N_JOINT_CELLS_MAX
from inference.marginals.projection import meeting_sets
from inference.posterior import Posterior
from planner.sql.messages import listed
from planner.workload import Consistency, Wanted
from proxy.api.marginals import MadeMarginals, MarginalSet, MarginalsRequest
from proxy.api.requests import SOURCE_HISTORY, SOURCE_MEASURED
from proxy.marginals.history import WholeTable, natural_partition, of_scope, whole_tables
from proxy.marginals.purchase_plan import Added, divided, needed
from proxy.marginals.reconcile import Agreement, ReconcileSettings, agreed, raw
from proxy.marginals.rows import long_table
from proxy.tables.private_table import ServedTable

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
        yield f"measuring what is missing of {len(request.sets)} tables"
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
    return whole_tables(table.snapshot().history, columns)


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
    return needed(request.sets, schema, target, known, total=_total(request))


def _total(request: MarginalsRequest) -> float | None:
    return None if request.public_total is None else float(request.public_total)


def _check_covered(sets: Sequence[MarginalSet], scopes: Sequence[Scope]) -> None:
    """Refuse columns of which nothing is known and nothing will be bought."""
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
