"""Rows from a model, one column after another, each by its law given those before it.

The law of a column given a few others, and values changed so that every level has its count.

The law of a column given a few others, from its tables with each of them.

Fitted over the combinations that occur in the rows already drawn, never over all possible ones, so
the work grows with the rows. Tables may contradict each other: then the fit is a compromise, and
the column's own counts are kept all the same.

Values of rows changed so that every level has the count that it should have.

A law that was fitted to contradictory tables, or to a sample of the rows, gives a column's counts
only nearly, and rounding adds to that. The rows that change are those whose own law is least
against it.

Whole numbers of rows from shares, and values dealt to rows in random order.

Rounding is controlled: every count is the expected one rounded up or down, and each group's counts
sum to its size, so that rounding adds far less noise than independent draws would. Within a group,
the assignment of values to rows is uniform: two columns dealt to one group are independent in it.

Variates come from the caller's generator: they do not protect data, so a table may be drawn again
with another seed, or the same. Every column has its counts, up to rounding to whole rows. Whether
the tables of pairs can be met as well depends on the order of the columns if they contradict each
other; a second order is tried if the first misses some.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray
from scipy import sparse

from synthesis.buckets import Buckets
from synthesis.fitting import ratio_or_zero
from synthesis.model import PairwiseModel, excess
from synthesis.tables import Floats, Integers

N_SWEEPS = 10  # further sweeps change two-way tables by less than rounding does
RATIO_MAX = 1e6  # of one step: tables that contradict each other would push shares out of range
SUM_MIN = 1e-200  # of a row, before it is scaled


@dataclass(frozen=True, eq=False)
class PartnerTable:
    """Counts of a column with one partner, or with several at once.

    Parameters
    ----------
    counts : (n_partner_groups, n_groups) ndarray of float64
        Rows are groups of the partner's levels, columns those of the column's.
    groups : Buckets
        The groups of the column's levels.
    """

    counts: Floats
    groups: Buckets

    def __post_init__(self) -> None:
        if self.counts.ndim != 2 or self.counts.shape[1] != self.groups.n_buckets:  # noqa: PLR2004 - rows and columns
            raise ValueError(
                f"the counts have the shape {self.counts.shape}, but there are "
                f"{self.groups.n_buckets} groups"
            )


@dataclass(frozen=True, eq=False)
class Conditional:
    """``Pr(column | partners)``, proportional to a product of one factor for each partner.

    Parameters
    ----------
    base : (n_levels,) ndarray of float64
        The column's own shares.
    weights : (n_levels,) ndarray of float64
        The numbers that the factors are multiplied with: the shares, adjusted so that they result.
    factors : tuple of (n_partner_groups, n_groups) ndarray of float64
    groups : tuple of Buckets
        The groups of the column's levels, for each factor.
    """

    base: Floats
    weights: Floats
    factors: tuple[Floats, ...]
    groups: tuple[Buckets, ...]

    def given(self, combinations: Integers) -> Floats:
        """Shares of the levels, (n_combinations, n_levels), given the partners' groups.

        Parameters
        ----------
        combinations : (n_combinations, n_partners) ndarray of int64
        """
        shares = np.tile(self.weights, (len(combinations), 1))
        for factor, groups, levels in zip(self.factors, self.groups, combinations.T, strict=True):
            shares *= groups.expanded(factor[levels])
        sums = shares.sum(axis=1, keepdims=True)
        # If the partners' factors exclude every level, the column's own shares are used
        return np.where(sums > 0, ratio_or_zero(shares, sums), self.base)


def fit_conditional(
    base: Floats, tables: Sequence[PartnerTable], combinations: Integers, counts: Integers
) -> Conditional:
    """Fit the law of a column so that it agrees with its table with every partner.

    Parameters
    ----------
    base : (n_levels,) ndarray of float64
        The column's shares.
    tables : sequence of PartnerTable
    combinations : (n_combinations, n_tables) ndarray of int64
        The partners' groups in rows that exist, distinct.
    counts : (n_combinations,) ndarray of int64
        The number of rows with each combination.

    Notes
    -----
    Proportional fitting [1]_ of the joint law of the column and the existing combinations, starting
    from independence: ``shares *= wanted / found`` for the table with each partner in turn, then
    normalised, so that the law of the combinations stays the same. ``wanted`` is the table's law of
    the column given the partner, times the partner's counts in the rows. The column's own shares
    come last in every sweep: where tables contradict each other there is no law that agrees with
    all of them, and these are the ones that must hold. Of all joint laws that agree with the
    tables, if there are any, this is the one of greatest entropy [2]_.

    References
    ----------
    .. [1] W. E. Deming, F. F. Stephan, "On a Least Squares Adjustment of a Sampled Frequency Table
       When the Expected Marginal Totals are Known", Annals of Mathematical Statistics 11, 1940.
    .. [2] I. Csiszar, "I-Divergence Geometry of Probability Distributions and Minimization
       Problems", Annals of Probability 3, 1975.
    """
    partners = [
        _Partner.of(table, levels, counts)
        for table, levels in zip(tables, combinations.T, strict=True)
    ]
    if not partners:
        return Conditional(base, base, (), ())
    n_rows = counts.astype(np.float64)
    weights = n_rows  # of combinations; they normalise the shares, which saves a pass over them
    shares = np.tile(base, (len(combinations), 1))
    factors = [np.ones(table.counts.shape) for table in tables]
    own = np.ones(base.size)
    wanted = base * n_rows.sum()
    step = np.empty_like(shares)
    for _ in range(N_SWEEPS):
        for place, partner in enumerate(partners):
            ratio = _ratio(partner.wanted, partner.found(shares, weights))
            factors[place] = _scaled(factors[place] * ratio)
            np.take(partner.groups.expanded(ratio), partner.levels, axis=0, out=step)
            shares *= step
            weights = ratio_or_zero(n_rows, _row_sums(shares))
        ratio = _ratio(wanted, weights @ shares)
        own = _scaled((own * ratio)[np.newaxis])[0]
        shares *= ratio
        shares *= ratio_or_zero(np.ones(len(shares)), _row_sums(shares))[:, np.newaxis]
        weights = np.where(shares.any(axis=1), n_rows, 0.0)
    return Conditional(
        base, base * own, tuple(factors), tuple(partner.groups for partner in partners)
    )


@dataclass(frozen=True, eq=False)
class _Partner:
    """One partner's side of the fit.

    Parameters
    ----------
    wanted : (n_partner_groups, n_groups) ndarray of float64
    groups : Buckets
    levels : (n_combinations,) ndarray of int64
        The partner's group in each combination.
    by_level : (n_combinations,) ndarray of int64
        Combinations, sorted by that group.
    starts : (n_partner_groups + 1,) ndarray of int64
        Where each group begins in that order.
    """

    wanted: Floats
    groups: Buckets
    levels: Integers
    by_level: Integers
    starts: Integers

    @classmethod
    def of(cls, table: PartnerTable, levels: Integers, counts: Integers) -> "_Partner":
        n_rows = np.bincount(levels, weights=counts, minlength=len(table.counts))
        shares = ratio_or_zero(table.counts, table.counts.sum(axis=1, keepdims=True))
        by_level = np.argsort(levels, kind="stable")
        starts = np.searchsorted(levels[by_level], np.arange(len(table.counts) + 1))
        return cls(shares * n_rows[:, np.newaxis], table.groups, levels, by_level, starts)

    def found(self, shares: Floats, weights: Floats) -> Floats:
        """The table that the shares imply, with each combination weighted."""
        shape = (self.starts.size - 1, self.by_level.size)
        summing = sparse.csr_array((weights[self.by_level], self.by_level, self.starts), shape)
        return self.groups.summed(np.asarray(summing @ shares, dtype=np.float64), 1)


def _ratio(wanted: Floats, found: Floats) -> Floats:
    """By how much to multiply what was found; 0 where nothing was found."""
    most = np.where(found > 0, RATIO_MAX, 0.0)
    return np.divide(wanted, found, out=most, where=wanted < found * RATIO_MAX)


def _row_sums(shares: Floats) -> Floats:
    """The sum of each row; rows that have become tiny are first scaled, in place, to the sum 1.

    Only proportions within a row matter, and one over the least numbers there are is infinite.
    """
    sums: Floats = shares.sum(axis=1)
    is_tiny = (sums > 0) & (sums < SUM_MIN)
    if is_tiny.any():
        shares[is_tiny] /= sums[is_tiny, np.newaxis]
        sums[is_tiny] = 1.0
    return sums


def _scaled(factor: Floats) -> Floats:
    """A factor scaled so that each row has the maximum 1; a row of zeros becomes ones."""
    largest = factor.max(axis=1, keepdims=True)
    return np.where(largest > 0, ratio_or_zero(factor, largest), 1.0)


N_LOOKED_AT = 16  # rows, for each that has to change
N_LOOKED_AT_MIN = 200_000  # in all, if there are as many: rows that may change can be rare
N_CELLS_AT_ONCE = 2**20  # of rows and levels, so that memory does not grow with the rows
LEAST_SHARE = 1e-9  # of a level in a row's law


@dataclass(frozen=True, eq=False)
class RowLaws:
    """The law of a column in each row.

    Parameters
    ----------
    law : Conditional
        The law of the levels, given the partners.
    combinations : (n_combinations, n_partners) ndarray of int64
        The partners' groups in each combination.
    of_row : (n_rows,) ndarray of int64
        The combination of each row.
    """

    law: Conditional
    combinations: Integers
    of_row: Integers

    def given(self, rows: Integers) -> Floats:
        """Shares of the levels in some rows, (n_rows, n_levels)."""
        return self.law.given(self.combinations[self.of_row[rows]])


def with_counts(
    values: Integers, wanted: Integers, laws: RowLaws, rng: np.random.Generator
) -> Integers:
    """The values, with as few of them changed as the wanted counts need.

    Parameters
    ----------
    values : (n_rows,) ndarray of int64
        The level of each row.
    wanted : (n_levels,) ndarray of int64
        The wanted number of rows at each level; the sum is `n_rows`.
    laws : RowLaws
    rng : numpy.random.Generator

    Returns
    -------
    (n_rows,) ndarray of int64
    """
    surplus = np.bincount(values, minlength=wanted.size) - wanted
    missing = np.maximum(-surplus, 0)
    too_many = np.flatnonzero(surplus > 0)
    changed = values.copy()
    for level in rng.permutation(too_many).tolist():
        n_to_change = int(surplus[level])
        rows = np.flatnonzero(values == level)
        n_looked_at = max(N_LOOKED_AT * n_to_change, N_LOOKED_AT_MIN // too_many.size)
        if rows.size > n_looked_at:
            rows = rng.choice(rows, n_looked_at, replace=False)
        keys = _keys(rows, level, missing, laws, rng)
        chosen = rng.permutation(rows[np.argsort(-keys, kind="stable")[:n_to_change]])
        for row, given in zip(chosen.tolist(), laws.given(chosen), strict=True):
            changed[row] = _level(given, missing, rng)
            missing[changed[row]] -= 1
    return changed


def _keys(
    rows: Integers, level: int, missing: Integers, laws: RowLaws, rng: np.random.Generator
) -> Floats:
    """Random numbers for rows that have a level: those with the largest are to change.

    Notes
    -----
    Weighted sampling without replacement [1]_: a row's weight is how much likelier the missing
    levels are in it than the level that it has.

    References
    ----------
    .. [1] P. S. Efraimidis, P. G. Spirakis, "Weighted Random Sampling with a Reservoir",
       Information Processing Letters 97, 2006.
    """
    n_at_once = max(1, N_CELLS_AT_ONCE // missing.size)
    combinations, of_row = np.unique(laws.of_row[rows], return_inverse=True)
    weights = []
    for start in range(0, combinations.size, n_at_once):
        some = combinations[start : start + n_at_once]
        shares = laws.law.given(laws.combinations[some])
        weights.append(shares[:, missing > 0].sum(axis=1) / (shares[:, level] + LEAST_SHARE))
    weight = np.maximum(np.concatenate(weights)[of_row], LEAST_SHARE)
    return np.asarray(np.log(rng.random(rows.size)) / weight, dtype=np.float64)


def _level(given: Floats, missing: Integers, rng: np.random.Generator) -> int:
    """One of the missing levels: by its share in the row's law, and by how many are missing."""
    weights = np.cumsum(given * missing)
    if not weights[-1] > 0:
        weights = np.cumsum(missing.astype(np.float64))
    return int(np.searchsorted(weights, rng.random() * weights[-1], side="right"))


WHOLE = 1e-9  # an expected count this little below a whole number counts as that number


def controlled_counts(shares: Floats, sizes: Integers, rng: np.random.Generator) -> Integers:
    """Split each group into whole parts, each within one of its expected size.

    Parameters
    ----------
    shares : (n_groups, n_parts) ndarray of float64
        The share of each part in each group: not negative, each row with sum 1.
    sizes : (n_groups,) ndarray of int64
    rng : numpy.random.Generator

    Returns
    -------
    (n_groups, n_parts) ndarray of int64
        Rows sum to `sizes`; a count's expectation is ``share * size``.

    Notes
    -----
    The remainders after rounding down are distributed by systematic sampling [1]_: a group's
    cumulative remainders are cut at ``u, u + 1, ...``, with ``u`` uniform on [0, 1).

    References
    ----------
    .. [1] W. G. Madow, "On the Theory of Systematic Sampling, II", Annals of Mathematical
       Statistics 20, 1949.
    """
    expected = shares * sizes[:, np.newaxis]
    floors = np.floor(expected + WHOLE)
    cumulated = np.cumsum(np.maximum(expected - floors, 0.0), axis=1)
    missing = sizes - floors.sum(axis=1)
    scale = np.divide(missing, cumulated[:, -1], out=np.zeros(sizes.size), where=missing > 0)
    cumulated *= scale[:, np.newaxis]
    cumulated[:, -1] = missing
    # Rounding may have raised a sum slightly above the whole number that it should be
    np.minimum(cumulated, missing[:, np.newaxis], out=cumulated)
    cuts = np.ceil(cumulated - rng.random((sizes.size, 1)))
    return np.asarray(floors + np.diff(cuts, axis=1, prepend=0.0), dtype=np.int64)


def dealt(groups: Integers, values: Integers, rng: np.random.Generator) -> Integers:
    """Deal values to rows, at random within each group.

    Parameters
    ----------
    groups : (n_rows,) ndarray of int64
    values : (n_rows,) ndarray of int64
        Sorted by group: first those of the lowest group, then those of the next, and so on.
    rng : numpy.random.Generator

    Returns
    -------
    (n_rows,) ndarray of int64
        The value of each row.
    """
    shuffled = rng.permutation(groups.size)
    result = np.empty(groups.size, dtype=np.int64)
    result[shuffled[np.argsort(groups[shuffled], kind="stable")]] = values
    return result


N_PARTNERS_MAX = 16  # the strongest; with eight, sixteen columns miss pairs that are known exactly
N_FIT_CELLS_MAX = 2**22  # combinations times levels: 32 MB for each array of the fit
N_DRAW_CELLS_MAX = 2**18  # of the groups that are rounded at once, to fit a processor's cache
KEY_MAX = 2**62  # combinations are numbered in int64
MISSED_MAX = 0.01  # of the rows, beyond a table's own noise: then another order is tried


def draw_rows(
    model: PairwiseModel, rng: np.random.Generator, *, n_rows: int | None = None
) -> NDArray[np.int32]:
    """Draw a synthetic table.

    Parameters
    ----------
    model : PairwiseModel
    rng : numpy.random.Generator
    n_rows : int, optional
        The estimated number of rows by default.

    Returns
    -------
    (n_rows, n_columns) ndarray of int32
        The level of each row in each column, in the order of the model's columns.
    """
    n_rows = round(model.total) if n_rows is None else n_rows
    if n_rows < 0:
        raise ValueError(f"n_rows must not be negative, got {n_rows}")
    rows = np.empty((len(model.columns), n_rows), dtype=np.int32)
    drawn = _drawn_columns(model, n_rows, rng) if n_rows else {}
    for place, column in enumerate(model.columns if n_rows else []):
        name = column.name
        rows[place] = _split(drawn[name], model.buckets[name], model.parts[name], rng)
    return rows.T


def _drawn_columns(
    model: PairwiseModel, n_rows: int, rng: np.random.Generator
) -> dict[str, Integers]:
    """The bucket of each row in each column, drawn in the order that misses less."""
    best: dict[str, Integers] = {}
    missed_least = float("inf")
    for is_relative in (False, True):
        drawn: dict[str, Integers] = {}
        for name, partners in drawing_order(model, is_relative=is_relative):
            given = {partner: drawn[partner] for partner in partners}
            drawn[name] = _drawn(model, name, given, n_rows, rng)
        missed = excess(model, drawn)
        if missed < missed_least:
            best, missed_least = drawn, missed
        if missed <= MISSED_MAX:
            break
    return best


def drawing_order(
    model: PairwiseModel, *, is_relative: bool = False
) -> list[tuple[str, tuple[str, ...]]]:
    """Columns in the order of drawing, each with the earlier columns that it is drawn from.

    The first is the column that depends most on all others; each next one is the column that
    depends most on those before it. Its partners are the earlier columns with an estimated pair
    table, the strongest first, at most `N_PARTNERS_MAX`.

    Parameters
    ----------
    model : PairwiseModel
    is_relative : bool
        Whether dependence is compared with the most that two columns can have. Then columns that
        determine each other in a few rows only (one is NULL where the other is) follow each other,
        before one of them is drawn from something else.
    """
    names = [column.name for column in model.columns]
    of_pair = model.relative_dependence if is_relative else model.dependence
    strength = {pair: of_pair(pair) for pair in model.pairs}
    strength |= {(second, first): value for (first, second), value in strength.items()}
    order: list[tuple[str, tuple[str, ...]]] = []
    pull = {name: sum(strength.get((name, other), 0.0) for other in names) for name in names}
    while pull:
        name = max(pull, key=pull.__getitem__)
        before = [one for one, _ in order if (name, one) in strength]
        before.sort(key=lambda one: -strength[name, one])
        if not order:
            pull = dict.fromkeys(names, 0.0)
        order.append((name, tuple(before[:N_PARTNERS_MAX])))
        del pull[name]
        for other in pull:
            pull[other] += strength.get((other, name), 0.0)
    return order


@dataclass(frozen=True, eq=False)
class _Combinations:
    """The distinct combinations of some columns' values that occur in rows.

    Parameters
    ----------
    levels : (n_combinations, n_columns) ndarray of int64
        Sorted by the first column, then by the second, and so on.
    counts : (n_combinations,) ndarray of int64
        The number of rows with each combination.
    of_row : (n_rows,) ndarray of int64
        The combination of each row.
    """

    levels: Integers
    counts: Integers
    of_row: Integers

    @classmethod
    def of(cls, columns: Sequence[Integers], n_rows: int) -> "_Combinations":
        key, n_keys = np.zeros(n_rows, dtype=np.int64), 1
        for column in columns:
            size = int(column.max()) + 1
            if n_keys * size > KEY_MAX:
                key = np.unique(key, return_inverse=True)[1]
                n_keys = n_rows
            key, n_keys = key * size + column, n_keys * size
        _, first, of_row, counts = np.unique(
            key, return_index=True, return_inverse=True, return_counts=True
        )
        levels = np.empty((first.size, len(columns)), dtype=np.int64)
        for place, column in enumerate(columns):
            levels[:, place] = column[first]
        return cls(levels, counts, of_row)

    def sampled(self, n_max: int, rng: np.random.Generator) -> tuple[Integers, Integers]:
        """Levels and counts of all combinations; if over `n_max`, of those in `n_max` rows."""
        if self.counts.size <= n_max:
            return self.levels, self.counts
        rows = rng.choice(self.of_row.size, n_max, replace=False)
        which, counts = np.unique(self.of_row[rows], return_counts=True)
        return self.levels[which], counts


def _drawn(
    model: PairwiseModel,
    name: str,
    partners: Mapping[str, Integers],
    n_rows: int,
    rng: np.random.Generator,
) -> Integers:
    """A column's bucket in each row, given its partners' buckets in that row."""
    shares = model.shares[name]
    tables = [model.given(partner, name) for partner in partners]
    partner_groups = [
        table.groups[0].labels[drawn]
        for table, drawn in zip(tables, partners.values(), strict=True)
    ]
    combinations = _Combinations.of(partner_groups, n_rows)
    n_fit_max = max(1, N_FIT_CELLS_MAX // shares.size)
    law = fit_conditional(
        shares,
        [PartnerTable(table.counts, table.groups[1]) for table in tables],
        *combinations.sampled(n_fit_max, rng),
    )
    values = dealt(combinations.of_row, _values(law, combinations, rng), rng)
    wanted = controlled_counts(shares[np.newaxis], np.array([n_rows]), rng)[0]
    return with_counts(values, wanted, RowLaws(law, combinations.levels, combinations.of_row), rng)


def _values(law: Conditional, combinations: _Combinations, rng: np.random.Generator) -> Integers:
    """The values dealt to the rows of each combination, one combination after the other."""
    n_levels = law.base.size
    n_at_once = max(1, N_DRAW_CELLS_MAX // n_levels)
    values = []
    for start in range(0, combinations.counts.size, n_at_once):
        part = slice(start, start + n_at_once)
        counts = controlled_counts(
            law.given(combinations.levels[part]), combinations.counts[part], rng
        )
        values.append(np.repeat(np.tile(np.arange(n_levels), len(counts)), counts.ravel()))
    return np.concatenate(values)


def _split(drawn: Integers, buckets: Buckets, parts: Floats, rng: np.random.Generator) -> Integers:
    """Levels for a column's buckets: each bucket is split by its levels' shares."""
    sizes = np.bincount(drawn, minlength=buckets.n_buckets)
    values = []
    for members, size in zip(buckets.members, sizes, strict=True):
        counts = controlled_counts(parts[members][np.newaxis], np.array([size]), rng)[0]
        values.append(np.repeat(members, counts))
    return dealt(drawn, np.concatenate(values), rng)
