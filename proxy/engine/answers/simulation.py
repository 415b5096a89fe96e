"""The law of a formula of several linear answers, simulated from their joint law.

Points of a box that contains several errors together, however they are correlated.

How errors are correlated reveals which measurements the answers rest on. Where the history is
private, the interval of a formula is its range on a box that contains all of its parts with the
requested confidence.

Quantiles computed from counts of levels, exact or noisy, for many draws at once.

Draws of the true values of its parts are put through the formula. They are seeded by the query, so
the same posteriors have the same interval whatever else was measured since: were it drawn anew, it
could be narrow enough today and not tomorrow. What posteriors gave once is remembered, within a
limit of memory, and given again; nothing else than these posteriors can give it. A law does not
show what was paid.

A formula has no value in a row where an answer that it divides by cannot be told from 0: where it
is not above `DIVISOR_WIDTHS` of its own half-widths. One such half-width would be passed by an
empty group once in 60 times at confidence 0.95; two are passed once in 1,800, and there a quotient
is known to half of itself.
"""

from collections.abc import Hashable, Sequence
from dataclasses import dataclass, field, replace
from itertools import product
from typing import Final, TypeAlias

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from cube.pace import checkpoint
from inference import Places, Posterior, draw_errors
from planner.cache import BoundedCache
from planner.workload import Answer, Part, QuantileFormula, SqlFormula, n_draws_for
from proxy.outer_sql.closed_database import N_ROWS_MAX
from proxy.outer_sql.postprocessing import OuterSql

Floats: TypeAlias = NDArray[np.float64]

N_PARTS_MAX: Final = 6  # of a formula; with more, the interval is the public range


def box_errors(
    parts: Sequence[Sequence[Posterior]], confidence: float, n_points: int, rng: np.random.Generator
) -> Floats | None:
    """Errors of the parts' rows, at points of their boxes; None if there are too many parts.

    Parameters
    ----------
    parts : sequence of (sequence of Posterior)
        The rows of each linear part of a formula. Every row has a box of its own.
    confidence : float
        The probability with which all parts of a row lie in its box (Bonferroni).
    n_points : int
        The minimum number of points. Corners, and midpoints of edges and faces, are always among
        them; the others are random points inside, to sample the formula there.

    Returns
    -------
    (rows of all parts, points) ndarray of float64, optional
    """
    if len(parts) > N_PARTS_MAX:
        return None
    grid = np.array(list(product((-1.0, 0.0, 1.0), repeat=len(parts)))).T
    inside = rng.uniform(-1.0, 1.0, (len(parts), max(0, n_points - grid.shape[1])))
    points = np.concatenate((grid, inside), axis=1)
    each = 1 - (1 - confidence) / len(parts)
    widths = [np.array([[row.half_width(each)] for row in rows]) for rows in parts]
    # A half-width may be infinite; zero times infinity counts as zero here, not as NaN.
    return np.concatenate(
        [
            np.where(at == 0, 0.0, width * np.where(at == 0, 1.0, at))
            for width, at in zip(widths, points, strict=True)
        ]
    )


N_DECIMALS = 6  # of a count; noise is never that small


def quantiles(
    formula: QuantileFormula, counts: NDArray[np.float64], n_groups: int
) -> NDArray[np.float64]:
    """The quantile of each group in each draw.

    Parameters
    ----------
    counts : (n_cells, n_draws) ndarray of float64
        The count of each cell listed in `formula`.

    Returns
    -------
    (n_groups, n_draws) ndarray of float64
        NaN for a group that has no records by its counts.

    Notes
    -----
    With whole counts this is PERCENTILE_CONT or PERCENTILE_DISC. Cumulated noisy counts may
    decrease; their running maximum is used instead.
    """
    n_levels, n_draws = len(formula.levels), counts.shape[1]
    by_level = np.zeros((n_groups * n_levels, n_draws))
    # Whole counts stay whole, despite rounding errors of the estimate.
    by_level[np.array(formula.cells, dtype=np.int64)] = np.round(counts, N_DECIMALS)
    below = np.cumsum(by_level.reshape(n_groups, n_levels, n_draws), axis=1)
    below = np.maximum.accumulate(np.maximum(below, 0.0), axis=1)
    total = below[:, -1, :]
    if formula.is_bracketed:
        found = _brackets(formula, below, total)
    elif formula.upper:
        found = _inside_bins(formula, below, formula.fraction * total)
    elif formula.is_interpolated:
        rank = formula.fraction * np.maximum(total - 1, 0.0)
        lower = _level_at(formula.levels, below, np.floor(rank))
        upper = _level_at(formula.levels, below, np.minimum(np.ceil(rank), np.ceil(total) - 1))
        found = lower + (rank - np.floor(rank)) * (upper - lower)
    else:
        found = _level_at(
            formula.levels, below, np.maximum(np.ceil(formula.fraction * total) - 1, 0.0)
        )
    return np.where(total > 0, found, np.nan)


def _brackets(
    formula: QuantileFormula, below: NDArray[np.float64], total: NDArray[np.float64]
) -> NDArray[np.float64]:
    """The quantile itself, and in turn the lower and the upper end of the bins it is in.

    A quantile that interpolates is between two records: the lower one's bin has the lower end, and
    the upper one's the upper end.
    """
    found = _inside_bins(formula, below, formula.fraction * total)
    last = np.maximum(np.ceil(total) - 1, 0.0)
    rank = np.minimum(formula.fraction * np.maximum(total - 1, 0.0), last)
    if not formula.is_interpolated:
        rank = np.clip(np.ceil(formula.fraction * total) - 1, 0.0, last)
    found[:, 1::2] = _level_at(formula.levels, below, np.floor(rank))[:, 1::2]
    found[:, 2::2] = _level_at(formula.upper, below, np.ceil(rank))[:, 2::2]
    return found


def _level_at(
    values: Sequence[float], below: NDArray[np.float64], rank: NDArray[np.float64]
) -> NDArray[np.float64]:
    """The level of the record with `rank` records before it, (n_groups, n_draws)."""
    place = (below <= rank[:, None, :]).sum(axis=1)
    levels = np.array(values)
    return np.asarray(levels[np.minimum(place, levels.size - 1)], dtype=np.float64)


def _inside_bins(
    formula: QuantileFormula, below: NDArray[np.float64], rank: NDArray[np.float64]
) -> NDArray[np.float64]:
    """The value with `rank` records below it, if records are spread evenly within a bin."""
    place = np.minimum((below < rank[:, None, :]).sum(axis=1), below.shape[1] - 1)[:, None, :]
    upto = np.take_along_axis(below, place, axis=1)
    before = np.where(place > 0, np.take_along_axis(below, np.maximum(place - 1, 0), axis=1), 0.0)
    share = np.where(
        upto > before, (rank[:, None, :] - before) / np.maximum(upto - before, 1e-300), 0.0
    )
    low, high = np.array(formula.levels)[place], np.array(formula.upper)[place]
    return np.asarray((low + np.clip(share, 0.0, 1.0) * (high - low))[:, 0, :], dtype=np.float64)


Flags: TypeAlias = NDArray[np.bool_]

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
N_REMEMBERED_MAX: Final = 1024  # laws
REMEMBERED_BYTES_MAX: Final = 2**26
POSTERIOR_BYTES: Final = 1024  # that a posterior takes beside its terms, about
TERM_BYTES: Final = 32  # a place, a row, a coefficient and a scale


@dataclass(frozen=True, eq=False)
class SimulatedLaw:
    """The value of a formula in each row, and draws of its true value.

    Parameters
    ----------
    values : (n_rows,) ndarray of float64
        NaN where the formula has no value.
    draws : (n_rows, n_draws) ndarray of float64
    low, high : float
        The public range of the true value.
    is_undivided : (n_rows,) ndarray of bool
        Whether something that it divides by cannot be told from 0.
    is_boxed : bool
        Whether the draws are points of a box that contains the true value, not draws of its law.
    is_bracketed : bool
        Whether half of the draws are lower ends, and half are upper ends.
    """

    values: Floats
    draws: Floats
    low: float
    high: float
    is_undivided: Flags
    is_boxed: bool = False
    is_bracketed: bool = False
    _ends: dict[float, tuple[Floats, Floats]] = field(default_factory=dict, init=False, repr=False)

    def interval(self, cut_at: float) -> tuple[Floats, Floats]:
        """The ends of each row's interval of a confidence, (n_rows,) each."""
        found = self._ends.get(cut_at)
        if found is None:
            tail = 0.0 if self.is_boxed else (1 - cut_at) / 2
            found = self._ends[cut_at] = self._cut(tail / 2 if self.is_bracketed else tail)
        return found

    def spreads(self, cut_at: float) -> Floats:
        """Half of how far the draws of each row lie apart, whatever the public range is, (n_rows,).

        An interval that is cut to the public range may be narrow only because its noise erred.
        """
        tail = 0.0 if self.is_boxed else (1 - cut_at) / 2
        is_drawn = ~np.isnan(self.draws)
        filled = np.where(is_drawn, self.draws, self.values[:, None])
        low, high = np.quantile(filled, [tail, 1 - tail], axis=1)
        return np.where(is_drawn.any(axis=1), (high - low) / 2, 0.0)

    def probabilities(self, low: float, high: float) -> Floats:
        """The share of the draws that are in a range, (n_rows,); NaN where there is no value.

        NaN as well where draws are points of a box: how they are spread says nothing.
        """
        if self.is_boxed:
            return np.full(self.values.shape, np.nan)
        is_in = (self.draws > low) & (self.draws <= high)
        share = is_in.mean(axis=1)
        return np.where(np.isnan(self.draws).any(axis=1) | np.isnan(self.values), np.nan, share)

    def standard_errors(self) -> Floats:
        """The standard deviation of the true value about the answer, (n_rows,)."""
        if self.is_boxed:
            return np.asarray(np.abs(self.draws - self.values[:, None]).max(axis=1))
        squares = np.square(self.draws - self.values[:, None])
        n_found = np.count_nonzero(~np.isnan(squares), axis=1)
        total = np.nansum(squares, axis=1)
        return np.sqrt(np.where(n_found > 0, total / np.maximum(n_found, 1), np.nan))

    def hidden(self, lost: Flags) -> "SimulatedLaw":
        """The same without values and intervals in some rows."""
        values = np.where(lost, np.nan, self.values)
        return replace(self, values=values, draws=np.where(lost[:, None], np.nan, self.draws))

    def _cut(self, tail: float) -> tuple[Floats, Floats]:
        """Equal tails of draws; the public range where there is no value in too many draws."""
        draws, values = self.draws, self.values
        is_lost = np.isnan(draws).mean(axis=1) > tail / 10
        filled = np.where(np.isnan(draws), values[:, None], draws)
        low, high = np.quantile(filled, [tail, 1 - tail], axis=1)
        low = values - (values - low) * LATTICE_MARGIN
        high = values + (high - values) * LATTICE_MARGIN
        low = np.where(is_lost | np.isnan(low), -np.inf, low)
        high = np.where(is_lost | np.isnan(high), np.inf, high)
        low, high = np.clip(low, self.low, self.high), np.clip(high, self.low, self.high)
        # The value is cut as its interval is. The draws of a curved formula may miss it.
        low, high = np.fmin(low, values), np.fmax(high, values)
        low.flags.writeable = high.flags.writeable = False  # later callers get the same arrays
        return low, high


_REMEMBERED: BoundedCache[Hashable, SimulatedLaw] = BoundedCache(
    n_entries_max=N_REMEMBERED_MAX, n_bytes_max=REMEMBERED_BYTES_MAX
)


@dataclass(frozen=True, eq=False)
class Simulation:
    """One formula of a part, and all that its law follows from.

    Parameters
    ----------
    answer : Answer
        With a formula.
    part : Part
        Determines the rows, and the confidences that intervals need draws for.
    rows : tuple of (tuple of Posterior)
        The rows of each linear query that the formula uses.
    names : str
        The fingerprints of these queries, one after the other.
    history : Places
        The history that the posteriors' terms refer to.
    outer : OuterSql
        Computes formulas.
    is_boxed : bool
        Whether intervals depend on the half-widths of the parts alone, not on how their errors are
        correlated.
    """

    answer: Answer
    part: Part
    rows: tuple[tuple[Posterior, ...], ...]
    names: str
    history: Places
    outer: OuterSql
    is_boxed: bool

    def law(self) -> SimulatedLaw:
        """The law, remembered if the same posteriors gave it before."""
        key = self._key()
        found = _REMEMBERED.get(key)
        if found is None:
            found = self._simulated()
            _REMEMBERED.put(key, found, n_bytes=self._n_bytes(found))
        return found

    def _key(self) -> Hashable:
        """All that the law depends on.

        Posteriors are compared by identity: those of another table, of another moment or of a
        caller who may see less are others. The remembered key keeps them, so none can take the
        place of another.
        """
        answer, part = self.answer, self.part
        divisors = tuple(map(answer.uses.index, answer.divisors))
        asked = (answer.formula, divisors, answer.low, answer.high, answer.has_interval)
        drawn = (part.n_rows, part.is_searched, self._confidences, self._n_draws(self.rows))
        return (self.is_boxed, self.names, asked, drawn, self._known())

    def _known(self) -> Hashable:
        if not self.is_boxed:
            return self.rows
        # What callers may see of a private history is made anew for each statement: it is compared
        # by all of it that a box depends on.
        confidences = (self.part.cut_at(self.part.confidence), self._confidence_of_part)
        return tuple(
            tuple((one.value, one.low, one.high, *map(one.half_width, confidences)) for one in rows)
            for rows in self.rows
        )

    def _n_bytes(self, law: SimulatedLaw) -> int:
        """The memory that a law and its key keep, about."""
        posteriors = [one for rows in self.rows for one in rows]
        n_terms = sum(one.terms.place.size for one in posteriors)
        kept = POSTERIOR_BYTES * len(posteriors) + TERM_BYTES * n_terms
        n_ends = 2 * len(self._confidences) * law.values.nbytes
        return kept + n_ends + law.draws.nbytes + law.values.nbytes + len(self.names)

    @property
    def _confidences(self) -> tuple[float, ...]:
        """The confidences of the intervals: first the part's own, then each column's."""
        part = self.part
        return (part.confidence, *(one.confidence or part.confidence for one in part.columns))

    def _simulated(self) -> SimulatedLaw:
        answer, n_rows = self.answer, self.part.n_rows
        is_undivided = self._is_undivided()
        if isinstance(answer.formula, QuantileFormula):
            values = self._quantiles(answer.formula)
        elif isinstance(answer.formula, SqlFormula):
            n_draws = self._n_draws(self.rows) if answer.has_interval else 0
            truths = self._truths(self.rows, n_draws)
            pieces = np.split(truths, np.cumsum([len(one) for one in self.rows])[:-1])
            spread = [np.broadcast_to(piece, (n_rows, 1 + n_draws)) for piece in pieces]
            for place in map(answer.uses.index, answer.divisors):
                spread[place] = np.where(is_undivided[:, None], np.nan, spread[place])
            values = _computed(answer.formula, spread, self.outer)
            values[is_undivided, 1:] = np.nan
        else:
            raise TypeError("a simulated answer has a formula")
        shown = np.clip(values[:, 0], answer.low, answer.high)
        draws = values[:, 1:] if values.shape[1] > 1 else np.full((n_rows, 1), np.nan)
        shown.flags.writeable = False  # it is remembered
        return SimulatedLaw(
            values=shown,
            draws=draws,
            low=answer.low,
            high=answer.high,
            is_undivided=is_undivided,
            is_boxed=self.is_boxed,
            is_bracketed=isinstance(answer.formula, QuantileFormula)
            and answer.formula.is_bracketed,
        )

    def _is_undivided(self) -> Flags:
        """The rows in which something that a formula divides by cannot be told from 0."""
        is_lost = np.zeros(self.part.n_rows, dtype=np.bool_)
        cut_at = self.part.cut_at(self.part.confidence)
        for place in self.answer.divisors:
            posteriors = self.rows[self.answer.uses.index(place)]
            least = np.array([DIVISOR_WIDTHS * one.half_width(cut_at) for one in posteriors])
            sizes = np.array([one.value if one.low >= 0 else abs(one.value) for one in posteriors])
            is_lost |= np.broadcast_to(sizes <= least, is_lost.shape)
        return is_lost

    def _quantiles(self, formula: QuantileFormula) -> Floats:
        """The quantile of every group, and draws of it, some groups at a time to save memory."""
        (counts,) = self.rows
        n_levels, n_rows = len(formula.levels), self.part.n_rows
        n_draws = self._n_draws((counts,))
        n_at_once = max(1, N_CUMULATED_AT_ONCE // (n_levels * (n_draws + 1)))
        group_of = np.array(formula.cells, dtype=np.int64) // n_levels
        pieces = []
        for first in range(0, n_rows, n_at_once):
            n_groups = min(n_at_once, n_rows - first)
            own = np.flatnonzero((group_of >= first) & (group_of < first + n_groups))
            cells = tuple(formula.cells[place] - first * n_levels for place in own)
            truths = self._truths([tuple(counts[place] for place in own)], n_draws)
            pieces.append(quantiles(replace(formula, cells=cells), truths, n_groups))
        return np.concatenate(pieces) if pieces else np.empty((0, 1 + n_draws))

    def _truths(self, rows: Sequence[Sequence[Posterior]], n_draws: int) -> Floats:
        """The values of a formula's parts, and draws of their true values, (n, 1 + n_draws).

        A box that is outside of the public range would leave a point of it: it is put about the
        nearest possible value, which is no further from the truth.
        """
        checkpoint()
        posteriors = [posterior for one in rows for posterior in one]
        found = np.array([one.value for one in posteriors])
        centres = found
        if self.is_boxed:
            ends = np.array([(one.low, one.high) for one in posteriors]).reshape(-1, 2)
            centres = np.clip(found, ends[:, 0], ends[:, 1])
        errors = self._errors(rows, n_draws)
        return np.concatenate((found[:, None], centres[:, None] - errors), axis=1)

    def _errors(self, rows: Sequence[Sequence[Posterior]], n_draws: int) -> Floats:
        """Draws of the errors of a formula's parts, or points of the box that they are in.

        None at all where a box is of no use: a quantile depends on too many counts.
        """
        posteriors = [posterior for one in rows for posterior in one]
        if not n_draws:
            return np.zeros((len(posteriors), 0))
        if not self.is_boxed:
            return draw_errors(posteriors, self.history, n_draws, self._generator)
        points = box_errors(rows, self._widest_confidence, n_draws, self._generator)
        if points is None or not isinstance(self.answer.formula, SqlFormula):
            return np.zeros((len(posteriors), 0))
        return points

    @property
    def _widest_confidence(self) -> float:
        """The largest confidence of an interval: that of a box."""
        return max(self._confidences)

    @property
    def _confidence_of_part(self) -> float:
        """The confidence at which a box contains each of the formula's parts."""
        return 1 - (1 - self._widest_confidence) / len(self.rows)

    def _n_draws(self, rows: Sequence[Sequence[Posterior]]) -> int:
        """As many draws as the limits allow; at least as many as the tails of the intervals need.

        Drawing an answer that rests on many noises takes as long as drawing many answers.
        """
        part = self.part
        n_terms = sum(posterior.terms.place.size for one in rows for posterior in one)
        n_rows = max(sum(map(len, rows)), n_terms // N_TERMS_A_ROW)
        fewest = n_draws_for(part.cut_at(self._widest_confidence))
        drawn = [
            one for one in part.answers if isinstance(one.formula, SqlFormula | QuantileFormula)
        ]
        n_formulas = sum(one.has_interval for one in drawn)
        n_drawn = min(N_DRAWN_MAX, N_DRAWN_ALL_MAX // max(n_formulas, 1))
        return max(fewest, min(N_DRAWS, n_drawn // max(part.n_rows, n_rows, 1)))

    @property
    def _generator(self) -> np.random.Generator:
        """Seeded by the query alone: the same posteriors always have the same interval."""
        return np.random.default_rng(list(self.names.encode()))


def _computed(
    formula: SqlFormula, pieces: Sequence[NDArray[np.float64]], outer: OuterSql
) -> NDArray[np.float64]:
    """A formula evaluated on arrays of the same shape, one for each of its columns."""
    columns = [piece.ravel() for piece in pieces]
    # A draw outside a function's domain, or a value that overflows, gives NULL; so does what is
    # divided by something that is not there.
    sql = f'SELECT CAST(TRY({formula.sql}) AS DOUBLE) AS "computed" FROM "draws"'  # noqa: S608 - planned
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
