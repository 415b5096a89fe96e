"""Synthetic tables of collections of randomised answers: models of tables that cost nothing here.

Respondents have spent their own epsilon, so everything about their answers is post-processing:
there is no budget, no gate and no history. The pairwise method takes the tables as it takes what a
history knows; the method privbayes chooses parents by the tables themselves.

A synthetic table does not change when more people answer: its record says how many had answered.
"""

import math
import secrets
from collections.abc import Sequence
from dataclasses import replace
from fractions import Fraction
from itertools import combinations
from typing import Final

import numpy as np

from cube.query import Partition, QueryBlock, Scope, counting
from cube.refusals import InvalidRequest, InvalidTarget, TooLarge
from cube.runtime import cached_property
from cube.schema import Schema
from cube.statistic import Score
from planner.sql import JOINED_BY, CreateSynthetic
from proxy.collections import N_SIMULATED_MAX, CollectedTable
from proxy.config import SyntheticLimits
from proxy.synthetic_tables.make import SEED_BITS, checked_axes, columns_of
from proxy.synthetic_tables.measurers import attributes_of
from proxy.synthetic_tables.models import drawn, encoded
from proxy.synthetic_tables.request import (
    MadeTable,
    Method,
    PlannedStep,
    Progress,
    SynthesisRequest,
    Watch,
)
from proxy.synthetic_tables.resolve import request_of
from synthesis import (
    N_DIMENSIONS_MAX,
    Column,
    Floats,
    KnownEstimates,
    Model,
    TableEstimate,
    combined,
    known_model,
    known_sketch,
    projected,
    tells_more_than_noise,
)
from synthesis.privbayes import FALSE_ODDS, greedy_network, n_simulations, parents_worth

N_NULL_DRAWS: Final = 100
N_SIMULATED_IN_ALL_MAX: Final = 2**27  # for all sets of parents: some ten seconds
N_CELLS_MAX: Final = 2**11  # of a child with its parents
READ: Final = 0.1
FITTED: Final = 0.8


def free_request(
    order: CreateSynthetic, schema: Schema, limits: SyntheticLimits
) -> SynthesisRequest:
    """The request that an order stands for; without what only a private table has.

    Parents are chosen by mutual information, which is the score of the record.

    Raises
    ------
    InvalidTarget, InvalidRequest, UnknownName, TooLarge
    """
    _check_free(order, schema.table)
    return replace(request_of(order, schema, limits), score=Score.INFORMATION)


def _check_free(order: CreateSynthetic, name: str) -> None:
    """Refuse a budget, and what says on what it is spent."""
    if order.epsilon or order.evaluate:
        asked = "epsilon" if order.epsilon else "evaluate"
        raise InvalidTarget(
            f"{name} is a collection, which has no budget: {asked} buys nothing from it.",
            hint="Write epsilon => 0: what respondents have answered is free.",
        )
    bought = {
        "delta": order.delta is not None,
        "target": bool(order.target),
        "workload": order.workload is not None,
        "hierarchies": bool(order.hierarchies),
        "theta": order.theta is not None,
        "structure_share": order.structure_share is not None,
        "groups": bool(order.groups),
        **{name: getattr(order, name) is not None for name in (*JOINED_BY, "holders")},
        "score": order.score is not None and order.score.upper() != Score.INFORMATION,
    }
    for option, is_given in bought.items():
        if is_given:
            raise InvalidRequest(
                f"{option} says what to buy from a private table; {name} is a collection, whose "
                "tables exist already.",
                hint=f"Leave {option} out.",
            )


def planned(table: CollectedTable, request: SynthesisRequest) -> tuple[PlannedStep, ...]:
    """The step of making a table: to read the answers, for nothing.

    Raises
    ------
    UnknownName, TooLarge
    """
    columns = columns_of(checked_axes(table.info.schema, request))
    n_tables = len(table.agreeing([column.name for column in columns]))
    return (PlannedStep(name="reading the answers", epsilon=Fraction(0), n_tables=n_tables),)


def make_of_answers(table: CollectedTable, request: SynthesisRequest, watch: Watch) -> MadeTable:
    """Make a synthetic table from the answers given until now. Free.

    Raises
    ------
    UnknownName, TooLarge, InvalidRequest
    """
    axes = checked_axes(table.info.schema, request)
    columns = columns_of(axes)
    seed = secrets.randbits(SEED_BITS) if request.seed is None else request.seed
    watch(Progress("reading the answers", 0.0, Fraction(0)))
    answers = AnsweredTables(table, columns, np.random.default_rng(seed))
    known = answers.known()
    unknown = known_sketch(columns, known).unknown
    if len(unknown) == len(columns):
        raise InvalidRequest(
            f"No one has answered {request.table} about these columns yet.",
            hint="Wait for respondents; tacit collection list says how many there are.",
        )
    watch(Progress("fitting", READ, Fraction(0)))
    model: Model
    if request.method is Method.PRIVBAYES:
        if unknown:
            raise InvalidRequest(
                f"No one has answered {request.table} about {', '.join(unknown)} yet.",
                hint="Leave these columns out: columns => (..).",
            )
        network = greedy_network(
            attributes_of(columns, request), answers, answers.rng, degree=request.degree
        )
        scopes = {
            tuple(sorted((node.child, *(parent.column for parent in node.parents))))
            for node in network.nodes
        }
        model, method = network, Method.PRIVBAYES
    else:
        fitted = known_model(columns, known)
        scopes, model, method = set(fitted.pairs), fitted, Method.PAIRWISE
    watch(Progress("drawing rows", FITTED, Fraction(0)))
    return MadeTable(
        rows=drawn(model, axes, n_rows=request.n_rows, seed=seed),
        method=method,
        epsilon_spent=Fraction(0),
        unknown=unknown,
        tables=tuple(sorted(scopes)),
        model=encoded(model) | {"seed": seed},
        n_charges=0,
        n_respondents=table.estimates.n_respondents,
    )


class AnsweredTables:
    """The tables of a collection, as the two methods want them."""

    def __init__(
        self, table: CollectedTable, columns: Sequence[Column], rng: np.random.Generator
    ) -> None:
        self._table, self.rng = table, rng
        self._tables = table.agreeing([column.name for column in columns])
        self._work = 0

    @cached_property
    def scopes(self) -> tuple[Scope, ...]:
        """The columns of each table."""
        return tuple(one.scope for one in self._tables)

    def known(self) -> KnownEstimates:
        """Every pair that some combination has and that tells more than noise, and every column.

        The tables agree, so the margins that several have of a column are equal; each is taken as
        precise as its own combination makes it, and all of them together are about as precise as
        answers make them. The pairs of one combination share its noise: see `synthesis.known`.
        """
        tables: list[tuple[TableEstimate, int]] = []
        for one in self._tables:
            n_sharing = max(1, len(one.scope) - 1)
            for kept in combinations(range(len(one.scope)), min(len(one.scope), N_DIMENSIONS_MAX)):
                others = tuple(place for place in range(len(one.scope)) if place not in kept)
                scope = tuple(one.scope[place] for place in kept)
                counts, variances = one.counts.sum(axis=others), one.variances.sum(axis=others)
                tables.append((TableEstimate(scope, counts, variances), n_sharing))
        of_pair: dict[Scope, list[TableEstimate]] = {}
        for table, _ in tables:
            of_pair.setdefault(table.scope, []).append(table)
        used = {
            scope
            for scope, same in of_pair.items()
            if len(scope) > 1 and tells_more_than_noise(combined(same))
        }
        found: list[TableEstimate] = []
        for table, n_sharing in tables:
            shared = TableEstimate(table.scope, table.values, n_sharing * table.variance)
            if table.scope in used:
                found.append(shared)
            else:
                found.extend(shared.margin(name) for name in table.scope)
        return KnownEstimates(tuple(found), n_rows=float(self._table.estimates.n_respondents))

    def worth(self, child: str, parents: Scope, odds: float = FALSE_ODDS) -> float:
        """What parents tell in the answers of those who were asked about all of them, in nats.

        Compared with tables that are drawn, randomised and estimated in the same way: the noise of
        a channel is no noise that is added.
        """
        campaign = self._table.campaign
        scope = tuple(sorted((child, *parents)))
        sizes = campaign.sizes(scope)
        if math.prod(sizes) > N_CELLS_MAX:
            raise TooLarge(
                f"A table of {', '.join(scope)} has {math.prod(sizes)} cells; dependence is "
                f"tested on at most {N_CELLS_MAX}.",
                hint="Leave a column out, or use method => 'pairwise'.",
            )
        cells = np.arange(math.prod(sizes)).reshape(sizes)
        estimates = self._table.estimates
        work = estimates.n_places(scope) * max(N_NULL_DRAWS, cells.size)
        self._count_work(work, n_simulations(parents), scope)
        found = estimates.tabled(QueryBlock(counting(), Partition(scope, cells)), sizes)
        axis, n = scope.index(child), float(found.n_answers)

        def drawn(law: Floats) -> Floats:
            noisy = found.noisy_tables(np.moveaxis(law, 0, axis), n, N_NULL_DRAWS, self.rng)
            return np.moveaxis(_nearest(noisy, n), axis + 1, 1)

        shares = np.moveaxis(_nearest(found.counts[np.newaxis], n)[0], axis, 0)
        return parents_worth(shares, drawn, odds)

    def _count_work(self, work: int, n_times: int, scope: Scope) -> None:
        """Refuse what takes too much, before any of it is done."""
        self._work += n_times * work
        if work > N_SIMULATED_MAX or self._work > N_SIMULATED_IN_ALL_MAX:
            raise TooLarge(
                f"Testing dependence in {self._table.campaign.name} takes too many simulated "
                f"answers about {', '.join(scope)}.",
                hint="Name fewer columns, or use method => 'pairwise'.",
            )

    def counts(self, names: Sequence[str]) -> Floats:
        """From the combination that leaves them least noise, once all were made to agree."""
        holders = [one for one in self._tables if set(names) <= set(one.scope)]
        best = min(holders, key=lambda one: float(one.variances.sum()))
        kept = [name for name in best.scope if name in names]
        others = tuple(place for place, name in enumerate(best.scope) if name not in names)
        counts: Floats = best.counts.sum(axis=others)
        return counts.transpose([kept.index(name) for name in names])


def _nearest(tables: Floats, total: float) -> Floats:
    """Each table's nearest one that is not negative, as shares."""
    cells = tables.reshape(len(tables), -1)
    counts = projected(cells, np.full(len(cells), total), np.ones_like(cells))
    shares: Floats = counts / counts.sum(axis=1, keepdims=True)
    return shares.reshape(tables.shape)
