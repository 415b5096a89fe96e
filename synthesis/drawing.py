"""Rows from a model, one column after another, in whole numbers of rows.

Whole numbers of rows from shares, and values dealt to rows in random order.

Rounding is controlled: every count is the expected one rounded up or down, and each group's counts
sum to its size, so that rounding adds far less noise than independent draws would. Within a group,
the assignment of values to rows is uniform: two columns dealt to one group are independent in it.

Rows from a model, one column after another, each given those before it.

Variates come from the caller's generator: they do not protect data, so a table may be drawn again
with another seed, or the same. Every column has its counts, up to rounding to whole rows. Whether
the tables of pairs can be met as well depends on the order of the columns if they contradict each
other; a second order is tried if the first misses some.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from synthesis.buckets import Buckets
from synthesis.conditional import Conditional, PartnerTable, RowLaws, fit_conditional, with_counts
from synthesis.model import PairwiseModel, excess
from synthesis.tables import Floats, Integers

WHOLE = 1e-9  # an expected count this little below a whole number counts as that number


def controlled_counts(shares: Floats, sizes: Integers, rng: np.random.Generator) -> Integers:
    """Split each group into whole parts, each within one of its expected size.

    Parameters
    ----------
    shares : (n_groups, n_parts) ndarray of float64
        Not negative, each row with sum 1.
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
