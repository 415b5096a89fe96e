"""An answered part: the posteriors of its linear queries, the values and intervals of its answers.

An answer that is one linear query has its posterior's interval. The interval of a formula of
several is simulated from their joint law: draws of the true values given the answers are put
through the formula and cut at equal tails. Its value and interval are cut to the public range.

A formula has no value in a row where an answer that it divides by cannot be told from 0: where it
is not above `DIVISOR_WIDTHS` of its own half-widths. One such half-width would be passed by an
empty group once in 60 times at confidence 0.95; two are passed once in 1,800, and there a quotient
is known to half of itself.
"""

from collections.abc import Sequence
from dataclasses import dataclass, replace
from fractions import Fraction
from typing import Final

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from cube.cached import cached_property
from cube.encoding import fingerprint
from cube.pace import checkpoint
from inference.history import History
from inference.joint import draw_errors
from inference.posterior import Posterior
from planner.draws import n_draws_for
from planner.workload import (
    Aggregate,
    Answer,
    Part,
    QuantileFormula,
    SqlFormula,
    Wanted,
)
from proxy.api.requests import SOURCE_MIXED
from proxy.engine.boxes import box_errors
from proxy.engine.postprocessing import N_ROWS_MAX, OuterSql
from proxy.engine.quantiles import quantiles

DIVISOR_WIDTHS: Final = 2  # half-widths of a divisor; nothing is divided by less
N_DRAWS: Final = 2000  # then a 0.95 interval covers 0.95 to within half a per cent
N_DRAWN_MAX: Final = 1_000_000  # rows times draws, beyond what intervals require
N_DRAWN_ALL_MAX: Final = 8 * N_DRAWN_MAX  # of all formulas of a part
N_TERMS_A_ROW: Final = (
    8  # noises that are drawn and added in the time of one evaluation of a formula
)
N_CUMULATED_AT_ONCE: Final = 2**20  # counts for quantiles: 8 MB, a few times over
LATTICE_MARGIN: Final = (
    1 + 2.0**-16
)  # draws follow the continuous law; the lattice's law is this close


@dataclass(frozen=True, eq=False)
class AnsweredAggregate:
    """One linear query of a part: the posterior of every row, its source, and its cost.

    `asked` holds each of its blocks with the target that finally applied.
    """

    aggregate: Aggregate
    posteriors: tuple[Posterior, ...]
    source: str
    epsilon_spent: Fraction
    asked: tuple[Wanted, ...]


@dataclass(frozen=True, eq=False)
class AnsweredPart:
    """A part with the estimates of its linear queries.

    Parameters
    ----------
    part : Part
    aggregates : tuple of AnsweredAggregate
    history : History
        The history that the posteriors' terms refer to.
    outer : OuterSql
        Computes formulas.
    is_boxed : bool
        Whether a formula's interval depends on the half-widths of its parts alone, not on how their
        errors are correlated.
    """

    part: Part
    aggregates: tuple[AnsweredAggregate, ...]
    history: History
    outer: OuterSql
    is_boxed: bool = False

    @cached_property
    def answers(self) -> "tuple[AnsweredItem, ...]":
        """Every answer of the part."""
        return tuple(
            _linear(answer, cost, self)
            if answer.formula is None
            else _simulated(answer, cost, self)
            for answer, cost in zip(self.part.answers, self._costs(), strict=True)
        )

    @property
    def epsilon_spent(self) -> Fraction:
        """How much the part added to its table's cost."""
        return sum((one.epsilon_spent for one in self.aggregates), Fraction(0))

    def _costs(self) -> list[Fraction]:
        """What each answer added; the cost of a shared aggregate counts for its first answer."""
        costs, paid = [], set[int]()
        for answer in self.part.answers:
            new = set(answer.uses) - paid
            costs.append(sum((self.aggregates[one].epsilon_spent for one in new), Fraction(0)))
            paid |= new
        return costs

    def values(self, aggregate: int) -> NDArray[np.float64]:
        """What is shown of an aggregate in every row of the part, (n_rows,)."""
        answered = self.aggregates[aggregate]
        found = np.array([one.value for one in answered.posteriors])
        if answered.aggregate.is_nonnegative:
            found = np.maximum(found, 0.0)
        return np.repeat(found, self.part.n_rows) if answered.aggregate.is_total else found


@dataclass(frozen=True, eq=False)
class AnsweredItem:
    """One answer of a part: a value for each row, and the law of the true value given it.

    Parameters
    ----------
    answer : Answer
    values : (n_rows,) ndarray of float64
        NaN where a formula has no value.
    source : str
    epsilon_spent : Fraction
    part : Part
        Determines the confidence of the intervals.
    posteriors : tuple of Posterior
        For a linear answer: one per row.
    draws : (n_rows, n_draws) ndarray of float64, optional
        For a formula: draws of the true value.
    is_boxed : bool
        Whether the draws are points of a box that contains the true value, not draws of its law.
    is_undivided : (n_rows,) ndarray of bool, optional
        For a formula: whether something that it divides by cannot be told from 0.
    """

    answer: Answer
    values: NDArray[np.float64]
    source: str
    epsilon_spent: Fraction
    part: Part
    posteriors: tuple[Posterior, ...] = ()
    draws: NDArray[np.float64] | None = None
    is_boxed: bool = False
    is_undivided: NDArray[np.bool_] | None = None

    @property
    def has_target(self) -> NDArray[np.bool_]:
        """The rows that are to be known to a target: those in which a formula has a value."""
        is_lost = np.zeros(self.values.shape, dtype=np.bool_)
        if self.is_undivided is not None:
            is_lost |= self.is_undivided
        return ~(is_lost | np.isnan(self.values))

    def intervals(self, confidence: float) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
        """The ends of each row's interval, (n_rows,) each."""
        cut_at = self.part.cut_at(confidence)
        if self.draws is None:
            ends = [posterior.interval(cut_at) for posterior in self.posteriors]
            return np.array([low for low, _ in ends]), np.array([high for _, high in ends])
        tail = 0.0 if self.is_boxed else (1 - cut_at) / 2
        if isinstance(self.answer.formula, QuantileFormula) and self.answer.formula.is_bracketed:
            tail /= 2  # half of the draws are lower ends, and half are upper ends
        return _cut(self.draws, self.values, tail, self.answer)

    def half_widths(self, confidence: float) -> NDArray[np.float64]:
        """How far the true value may be from the answer, (n_rows,)."""
        if self.draws is None:
            cut_at = self.part.cut_at(confidence)
            return np.array([posterior.half_width(cut_at) for posterior in self.posteriors])
        low, high = self.intervals(confidence)
        wide = np.maximum(high - self.values, self.values - low)
        return np.where(np.isnan(wide), np.inf, wide)

    def standard_errors(self) -> NDArray[np.float64]:
        """The standard deviation of the true value about the answer, (n_rows,)."""
        if self.draws is None:
            return np.array([posterior.standard_deviation for posterior in self.posteriors])
        if self.is_boxed:
            return np.asarray(np.abs(self.draws - self.values[:, None]).max(axis=1))
        squares = np.square(self.draws - self.values[:, None])
        n_found = np.count_nonzero(~np.isnan(squares), axis=1)
        total = np.nansum(squares, axis=1)
        return np.sqrt(np.where(n_found > 0, total / np.maximum(n_found, 1), np.nan))


def _linear(answer: Answer, cost: Fraction, part: AnsweredPart) -> AnsweredItem:
    (place,) = answer.uses
    used = part.aggregates[place]
    return AnsweredItem(answer, part.values(place), used.source, cost, part.part, used.posteriors)


def _simulated(answer: Answer, cost: Fraction, part: AnsweredPart) -> AnsweredItem:
    used = [part.aggregates[place] for place in answer.uses]
    n_rows = part.part.n_rows
    is_undivided = _is_undivided(answer, part)
    if isinstance(answer.formula, QuantileFormula):
        values = _quantiles(answer.formula, answer, part)
    elif isinstance(answer.formula, SqlFormula):
        rows = [one.posteriors for one in used]
        n_draws = _n_draws(part.part, rows) if answer.has_interval else 0
        truths = _truths(answer, part, rows, n_draws)
        pieces = np.split(truths, np.cumsum([len(one.posteriors) for one in used])[:-1])
        spread = [np.broadcast_to(piece, (n_rows, 1 + n_draws)) for piece in pieces]
        for place in map(answer.uses.index, answer.divisors):
            spread[place] = np.where(is_undivided[:, None], np.nan, spread[place])
        values = _computed(answer.formula, spread, part.outer)
        values[is_undivided, 1:] = np.nan
    else:
        raise TypeError("a simulated answer has a formula")
    n_draws = values.shape[1] - 1
    sources = {one.source for one in used}
    return AnsweredItem(
        answer=answer,
        values=np.clip(values[:, 0], answer.low, answer.high),
        source=sources.pop() if len(sources) == 1 else SOURCE_MIXED,
        epsilon_spent=cost,
        part=part.part,
        draws=values[:, 1:] if n_draws else np.full((n_rows, 1), np.nan),
        is_boxed=part.is_boxed,
        is_undivided=is_undivided,
    )


def _is_undivided(answer: Answer, part: AnsweredPart) -> NDArray[np.bool_]:
    """The rows in which something that a formula divides by cannot be told from 0."""
    is_lost = np.zeros(part.part.n_rows, dtype=np.bool_)
    cut_at = part.part.cut_at(part.part.confidence)
    for place in answer.divisors:
        posteriors = part.aggregates[place].posteriors
        least = np.array([DIVISOR_WIDTHS * one.half_width(cut_at) for one in posteriors])
        sizes = np.array([one.value if one.low >= 0 else abs(one.value) for one in posteriors])
        is_lost |= np.broadcast_to(sizes <= least, is_lost.shape)
    return is_lost


def _quantiles(formula: QuantileFormula, answer: Answer, part: AnsweredPart) -> NDArray[np.float64]:
    """The quantile of every group, and draws of it, for some groups at a time to save memory."""
    (counts,) = (part.aggregates[place].posteriors for place in answer.uses)
    n_levels, n_rows = len(formula.levels), part.part.n_rows
    n_draws = _n_draws(part.part, [counts])
    n_at_once = max(1, N_CUMULATED_AT_ONCE // (n_levels * (n_draws + 1)))
    group_of = np.array(formula.cells, dtype=np.int64) // n_levels
    pieces = []
    for first in range(0, n_rows, n_at_once):
        n_groups = min(n_at_once, n_rows - first)
        own = np.flatnonzero((group_of >= first) & (group_of < first + n_groups))
        cells = tuple(formula.cells[place] - first * n_levels for place in own)
        truths = _truths(answer, part, [tuple(counts[place] for place in own)], n_draws)
        pieces.append(quantiles(replace(formula, cells=cells), truths, n_groups))
    return np.concatenate([np.empty((0, 1 + n_draws)), *pieces])


def _truths(
    answer: Answer, part: AnsweredPart, rows: Sequence[Sequence[Posterior]], n_draws: int
) -> NDArray[np.float64]:
    """The values of a formula's parts, and draws of their true values, (n, 1 + n_draws)."""
    checkpoint()
    posteriors = [posterior for one in rows for posterior in one]
    found = np.array([posterior.value for posterior in posteriors])
    errors = _errors(answer, part, rows, n_draws)
    return np.concatenate((found[:, None], found[:, None] - errors), axis=1)


def _errors(
    answer: Answer, part: AnsweredPart, rows: Sequence[Sequence[Posterior]], n_draws: int
) -> NDArray[np.float64]:
    """Draws of the errors of a formula's parts, or points of the box that they are in.

    None at all where a box is of no use: a quantile depends on too many counts.
    """
    used = [part.aggregates[place] for place in answer.uses]
    posteriors = [posterior for one in rows for posterior in one]
    if not n_draws:
        return np.zeros((len(posteriors), 0))
    if not part.is_boxed:
        # Seeded by the query and the history, so that the same query gives the same interval.
        return draw_errors(posteriors, part.history, n_draws, _generator(used, len(part.history)))
    columns = [part.part.confidence, *(one.confidence or 0.0 for one in part.part.columns)]
    points = box_errors(rows, max(columns), n_draws, _generator(used, 0))
    if points is None or not isinstance(answer.formula, SqlFormula):
        return np.zeros((len(posteriors), 0))
    return points


def _n_draws(part: Part, rows: Sequence[Sequence[Posterior]]) -> int:
    """As many draws as the limits allow; at least as many as the tails of the intervals need.

    Drawing an answer that rests on many noises takes as long as drawing many answers.
    """
    n_terms = sum(posterior.terms.place.size for one in rows for posterior in one)
    n_rows = max(sum(map(len, rows)), n_terms // N_TERMS_A_ROW)
    confidences = [column.confidence or part.confidence for column in part.columns]
    fewest = n_draws_for(part.cut_at(max((part.confidence, *confidences))))
    n_formulas = sum(one.formula is not None and one.has_interval for one in part.answers)
    n_drawn = min(N_DRAWN_MAX, N_DRAWN_ALL_MAX // max(n_formulas, 1))
    return max(fewest, min(N_DRAWS, n_drawn // max(part.n_rows, n_rows, 1)))


def _computed(
    formula: SqlFormula, pieces: Sequence[NDArray[np.float64]], outer: OuterSql
) -> NDArray[np.float64]:
    """A formula evaluated on arrays of the same shape, one for each of its columns."""
    columns = [piece.ravel() for piece in pieces]
    # A draw outside a function's domain, or a value that overflows, gives NULL; so does what is
    # divided by something that is not there.
    sql = f"SELECT CAST(TRY({formula.sql}) AS DOUBLE) AS computed FROM draws"  # noqa: S608 - planned
    computed = []
    for start in range(0, max(columns[0].size, 1), N_ROWS_MAX):
        own = slice(start, start + N_ROWS_MAX)
        draws = pa.table(
            {
                f"a{place}": pa.array(column[own], from_pandas=True)  # NaN as NULL
                for place, column in enumerate(columns)
            }
        )
        result = outer.run(sql, {"draws": draws})
        computed.append(result.column("computed").to_numpy(zero_copy_only=False))  # NULL as NaN
    values = np.concatenate(computed).astype(np.float64).reshape(pieces[0].shape)
    return np.where(np.isfinite(values), values, np.nan)


def _cut(
    draws: NDArray[np.float64], values: NDArray[np.float64], tail: float, answer: Answer
) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
    """Equal tails of draws; the public range where a formula has no value in too many draws."""
    is_lost = np.isnan(draws).mean(axis=1) > tail / 10
    filled = np.where(np.isnan(draws), values[:, None], draws)
    low, high = np.quantile(filled, [tail, 1 - tail], axis=1)
    low = values - (values - low) * LATTICE_MARGIN
    high = values + (high - values) * LATTICE_MARGIN
    low = np.where(is_lost | np.isnan(low), -np.inf, low)
    high = np.where(is_lost | np.isnan(high), np.inf, high)
    return np.clip(low, answer.low, answer.high), np.clip(high, answer.low, answer.high)


def _generator(used: Sequence[AnsweredAggregate], n_measured: int) -> np.random.Generator:
    names = "".join(fingerprint(block) for one in used for block in one.aggregate.blocks)
    return np.random.default_rng([n_measured, *names.encode()])
