"""An honest score of a synthetic table: how far its rows are from the private ones, bought.

The fit of a model says how well its rows agree with what was measured, and nothing about the rest.
Here noisy distances of pairs of columns are bought, whether these were measured before or not; the
rows are public, and are the numbers that the private counts are compared with. A score is of rows
alone: it makes no table better, and no count is known from it.
"""

from collections.abc import Mapping, Sequence
from dataclasses import replace
from fractions import Fraction
from itertools import combinations
from typing import Final

import numpy as np
import pyarrow as pa

from accountant.ledger import Payer
from cube.axis import Axis
from cube.query import QueryBlock, Scope, counting
from cube.refusals import Refused
from cube.statistic import Distance
from inference.noise_law import law_of_noise
from proxy.synthetic_tables.make import checked_axes, columns_of
from proxy.synthetic_tables.measurers import holder_margins, known_now
from proxy.synthetic_tables.models import levels_of, n_rows_of
from proxy.synthetic_tables.request import (
    CONFIDENCE,
    Evaluation,
    MadeTable,
    PlannedStep,
    Progress,
    SynthesisRequest,
    Watch,
)
from proxy.synthetic_tables.spending import LaplaceSpending, all_levels, product_partition
from proxy.tables import ServedTable
from synthesis import (
    Buckets,
    Column,
    HolderMargins,
    Integers,
    controlled_counts,
    shares_of_holders,
)

N_GROUPS: Final = 32  # of one column: a pair has 1,024 cells at most, and a charge names each
N_PAIRS_MIN: Final = 8  # so that the spread of their distances is seen
N_PAIRS_MAX: Final = 100
SPREAD: Final = 0.02  # of the distances of a table's pairs, as a guess
MADE: Final = 0.95  # of the whole, before the rows are evaluated


def planned_evaluation(table: ServedTable, request: SynthesisRequest) -> tuple[PlannedStep, ...]:
    """The step that a request adds to a preview, if it asks for an evaluation."""
    if not request.evaluate:
        return ()
    columns = columns_of(checked_axes(table.info.schema, request))
    n_rows = known_now(table, columns).n_rows  # until rows are counted, use the public bound
    n_likely = table.info.schema.n_records_max if n_rows is None else max(1, round(n_rows))
    budget = float(table.info.schema.per_row(request.evaluate))
    n_noises = max(1, len(all_levels(table)))
    n_asked = n_compared(len(columns), n_likely, budget / n_noises**0.5)
    return (PlannedStep(name="evaluating the rows", epsilon=request.evaluate, n_tables=n_asked),)


def scored(
    table: ServedTable, request: SynthesisRequest, payer: Payer, made: MadeTable, watch: Watch
) -> MadeTable:
    """A table with its evaluation; without one, and why, if that is refused after all."""
    watch(Progress("evaluating the rows", MADE, made.epsilon_spent))
    try:
        evaluation = evaluated(
            table,
            payer,
            checked_axes(table.info.schema, request),
            made.rows,
            n_rows=min(n_rows_of(made.model), table.info.schema.n_records_max),
            epsilon=request.evaluate,
            seed=int(made.model["seed"]),
            levels=made.levels,
        )
    except Refused as refusal:  # the rows are paid for, and are kept
        why = f"The rows were not evaluated: {refusal.message}"
        return replace(made, incomplete=f"{made.incomplete} {why}".strip())
    spent = made.epsilon_spent + evaluation.epsilon_spent
    return replace(made, epsilon_spent=spent, evaluation=evaluation)


def evaluated(  # noqa: PLR0913 - what is compared with what, and who pays
    table: ServedTable,
    payer: Payer,
    axes: Sequence[Axis],
    rows: pa.Table,
    *,
    n_rows: int,
    epsilon: Fraction,
    seed: int,
    levels: Sequence[int] | None = None,
) -> Evaluation:
    """Buy the mean distance of pairs of columns between a table's rows and the private ones.

    Parameters
    ----------
    axes : sequence of Axis
        The columns of the rows.
    n_rows : int
        How many rows the private table has, by a noisy estimate.
    epsilon : Fraction
        The most that it may cost; more than 0.
    seed : int
        Selects the pairs.
    levels : sequence of int, optional
        Of a federated table: the holders whose rows are compared; all by default.

    Raises
    ------
    BudgetExhausted, LimitReached, LedgerUnavailable, SourceUnavailable

    Notes
    -----
    A pair's distance is half the sum of ``|c / n - r / n|`` over cells, with `c` the private counts
    and `r` the rows' counts scaled to the same number of rows ``n``. One private row more or less
    moves the sum of ``|c - r|`` by one, so m sums at an m-th of a budget each have Laplace noise of
    scale ``m / budget``, the budget being epsilon over the most rows of a unit. Of all pairs, as
    many are drawn as make the noise, which grows with the root of m, and the error of drawing,
    which falls with it, equally large. Drawing without replacement is counted as a Gaussian error.

    Each holder of a federated table tells the distance of its own counts from a share of the rows'
    counts. For a column and the holder, these are the rows that name the holder, and the sum of
    the distances is the distance. For two other columns it is the share that the holder's noisy
    counts suggest (`synthesis.shares_of_holders`). These shares add up to the rows' counts, so by
    the triangle inequality the sum is at least the distance of all rows: the estimate is an upper
    bound. Every holder pays the epsilon, and each sum has the noise of every holder.
    """
    rng = np.random.default_rng(seed)
    columns, of_rows = columns_of(axes), levels_of(axes, rows)
    groups = {one.name: grouped(of_rows[one.name], one) for one in columns}
    scopes = _scopes([one.name for one in columns])
    spending = LaplaceSpending(table, payer, epsilon, _unwatched, levels)
    budget, n_noises = spending.budget_of(epsilon), max(1, len(spending.levels))
    n_asked = n_compared(len(columns), n_rows, float(budget) / n_noises**0.5)
    drawn = [scopes[place] for place in rng.permutation(len(scopes))[:n_asked]]
    compared = _Compared(spending, columns, of_rows, groups, n_rows, rng)
    asked = [one for scope in drawn for one in compared.distances(scope)]
    told = np.array(spending.ask(asked, budget / n_asked)) / (2 * n_rows)
    distances = told.reshape(n_asked, n_noises).sum(axis=1)
    scale = n_asked / float(budget) / (2 * n_rows)
    law = law_of_noise(
        np.full(n_noises * n_asked, scale / n_asked),
        gaussian=_drawing_error(distances, n_noises**0.5 * scale, len(scopes)),
    )
    return Evaluation(
        estimate=float(np.clip(distances.mean(), 0.0, 1.0)),
        half_width=law.half_width(CONFIDENCE),
        n_pairs=n_asked,
        n_pairs_all=len(scopes),
        epsilon_spent=spending.spent,
        is_bound=n_noises > 1,
    )


def n_compared(n_columns: int, n_rows: int, budget: float | Fraction) -> int:
    """How many pairs of columns an evaluation compares; one column is compared by itself."""
    n_all = len(_scopes([str(place) for place in range(n_columns)]))
    balanced = round(2**0.5 * SPREAD * float(budget) * n_rows)
    return min(n_all, max(N_PAIRS_MIN, min(balanced, N_PAIRS_MAX)))


def grouped(levels: Integers, column: Column) -> Integers:
    """The group of every level of a column: few groups, of about as many synthetic rows each.

    Neighbouring levels are together where levels are ordered; otherwise those after the most
    frequent ones.

    Parameters
    ----------
    levels : (n_rows,) ndarray of int64

    Returns
    -------
    (size,) ndarray of int64
        From 0 on, none left out; at most `N_GROUPS` for ordered levels, and one for each other.
    """
    if column.size <= N_GROUPS:
        return np.arange(column.size)
    counts = np.bincount(levels, minlength=column.size)
    groups = np.empty(column.size, dtype=np.int64)
    if column.n_ordered:
        before = np.cumsum(counts[: column.n_ordered]) - counts[: column.n_ordered]
        n_before = max(1, int(counts[: column.n_ordered].sum()))
        groups[: column.n_ordered] = np.minimum(before * N_GROUPS // n_before, N_GROUPS - 1)
        groups[column.n_ordered :] = N_GROUPS + np.arange(column.size - column.n_ordered)
    else:
        order = np.argsort(-counts, kind="stable")
        groups[order] = np.minimum(np.arange(column.size), N_GROUPS - 1)
    return np.asarray(np.unique(groups, return_inverse=True)[1], dtype=np.int64)


def _scopes(names: Sequence[str]) -> list[Scope]:
    """Every pair of columns, sorted; of one column, itself."""
    return list(combinations(sorted(names), min(2, len(names))))


class _Compared:
    """The rows that are compared, as if there were `n_rows`."""

    def __init__(  # noqa: PLR0913, PLR0917 - the rows, and with whose they are compared
        self,
        spending: LaplaceSpending,
        columns: Sequence[Column],
        of_rows: Mapping[str, Integers],
        groups: Mapping[str, Integers],
        n_rows: int,
        rng: np.random.Generator,
    ) -> None:
        self._spending, self._of_rows, self._groups = spending, of_rows, groups
        self._places = {name: groups[name][of_rows[name]] for name in groups}
        self._n_rows, self._rng = n_rows, rng
        self._holders = spending.table.extent.holders
        others = [one for one in columns if self._holders is None or one.name != self._holders.axis]
        self._margins: list[HolderMargins] = []
        if self._holders is not None:
            self._margins = holder_margins(spending.table, others, (), spending.levels)

    def distances(self, scope: Scope) -> list[Distance]:
        """The distance of private counts from those of the rows; of several holders, of each."""
        holders = self._holders
        if holders is None:
            return [self._distance(scope, self._counts(scope))]
        own = tuple(name for name in scope if name != holders.axis)
        if len(own) < len(scope):
            counts = self._counts(own, self._of_rows[holders.axis])
        else:
            counts = self._by_holder(own)
        return [
            holders.distance_of(self._distance(own, counts[..., place]), level)
            for place, level in enumerate(self._spending.levels)
        ]

    def _distance(self, scope: Scope, counts: Integers) -> Distance:
        block = QueryBlock(counting(), product_partition(scope, self._groups))
        return Distance(block, tuple(counts.ravel().tolist()))

    def _by_holder(self, scope: Scope) -> Integers:
        """The rows' counts that each holder is likely to have a share of; holders come last."""
        counts = self._counts(scope)
        groups = [Buckets(self._groups[name]) for name in scope]
        shares = shares_of_holders(counts, scope, groups, self._margins)
        dealt = controlled_counts(
            shares.reshape(counts.size, len(self._margins)), counts.ravel(), self._rng
        )
        return dealt.reshape(*counts.shape, len(self._margins))

    def _counts(self, scope: Scope, of_holder: Integers | None = None) -> Integers:
        """The rows' counts in the groups of some columns, by their holder if it is given."""
        places = [self._places[name] for name in scope]
        shape = [int(self._groups[name].max()) + 1 for name in scope]
        if of_holder is not None:
            places, shape = [*places, of_holder], [*shape, len(self._spending.levels)]
        cells = np.ravel_multi_index(tuple(places), tuple(shape))
        counts = np.bincount(cells, minlength=int(np.prod(shape)))
        if counts.sum() != self._n_rows:
            shares = (counts / counts.sum())[np.newaxis]
            (counts,) = controlled_counts(shares, np.array([self._n_rows]), self._rng)
        return np.asarray(counts.reshape(shape), dtype=np.int64)


def _drawing_error(distances: np.ndarray, scale: float, n_all: int) -> float:
    """The deviation of the mean over the drawn pairs from that over all of them."""
    n_asked = distances.size
    if n_asked == n_all:
        return 0.0
    between = max(0.0, float(distances.var(ddof=1)) - 2 * scale**2)
    return float(np.sqrt(between / n_asked * (1 - n_asked / n_all)))


def _unwatched(_step: Progress) -> None:
    """Report nothing: it is one step of making a table."""
