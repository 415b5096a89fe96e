"""Tables that several holders have parts of, and ways to divide them.

    T1, T2    networks of seven columns in place of the seeds' own, which is lost: a tree and one of
              degree 2, with its entropy of 5.12 bits
    adult     the labelled Adult table of the examples, numbers in wide public bins
    poker     hands of five cards dealt at random, labelled by the rules

A fifth of the rows of a table is kept out for every method alike. Nothing here is noisy.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from enum import StrEnum
from itertools import pairwise
from typing import Final

import numpy as np
from numpy.typing import NDArray

from benchmarks.synthesis_tables import BenchTable, example
from proxy.synthetic_tables.make import columns_of
from synthesis.tables import Column

ENTROPY: Final = 5.12  # bits, of the seeds' network and of those that stand for it
SIZES: Final = (2, 2, 2, 2, 2, 2, 3)
FIRST: Final = 0.4  # the share of the first column's first level
COPIED_1, COPIED_2 = 0.8277607486, 0.8336599998  # so that the entropies are 5.12 bits
N_SEEDS_ROWS: Final = 40_000
N_HANDS: Final = 25_000
KEPT_OUT: Final = 5  # every fifth row, after shuffling
SUITS, RANKS = 4, 13
ROWS_MIN: Final = 2  # of a holder: with fewer, the sensitivity of information is not defined
LEVELS_MAX: Final = 10  # of a column whose values divide a table among holders
# Upper ends of the bins of Adult's numbers, by the places of their levels
BINS: Final = {
    "age": tuple(range(5, 75, 5)),
    "capital_gain": (1, 5, 10, 20),
    "hours_per_week": tuple(range(9, 99, 10)),
}

Rows = NDArray[np.int64]
Law = NDArray[np.float64]


@dataclass(frozen=True, eq=False)
class Table:
    """Rows as places of levels, the levels of each column, and what a classifier names.

    Parameters
    ----------
    name : str
    train, test : (n_rows, n_columns) ndarray of int64
    sizes : tuple of int
    target : int
        The place of the class.
    n_ordered : tuple of int
        Of each column's levels, those in order from the first.
    law : ndarray of float64, optional
        The probability of every combination of levels, where it is known.
    """

    name: str
    train: Rows
    test: Rows
    sizes: tuple[int, ...]
    target: int
    n_ordered: tuple[int, ...]
    law: Law | None = None

    @property
    def columns(self) -> tuple[Column, ...]:
        """The columns with names whose order is that of their places."""
        described = enumerate(zip(self.sizes, self.n_ordered, strict=True))
        return tuple(Column(f"c{place:02}", size, n) for place, (size, n) in described)


class Division(StrEnum):
    """How rows are divided among holders."""

    EQUAL = "equal"
    SIZES = "random sizes"
    CLASS = "by class"
    ATTRIBUTE = "by a column"
    CENTRAL = "central"


def divided(
    table: Table, division: Division, n_holders: int, rng: np.random.Generator
) -> list[Rows]:
    """The rows of each holder, none of them with fewer than two.

    Parameters
    ----------
    table : Table
    division : Division
    n_holders : int
        Of the first two divisions; of a column's values there are as many as it has.
    rng : numpy.random.Generator

    Returns
    -------
    list of (n_rows, n_columns) ndarray of int64
        By class and by a column, a value with one row has no holder.
    """
    rows = rng.permutation(table.train)
    match division:
        case Division.CENTRAL:
            return [rows]
        case Division.EQUAL:
            return list(np.array_split(rows, n_holders))
        case Division.SIZES:
            shares = rng.dirichlet(np.ones(n_holders))
            spare = len(rows) - ROWS_MIN * n_holders
            ends = np.round(np.cumsum(shares) * spare).astype(np.int64)
            ends = ends + ROWS_MIN * np.arange(1, n_holders + 1)
            ends[-1] = len(rows)
            return [rows[start:end] for start, end in pairwise([0, *ends.tolist()])]
        case Division.CLASS:
            place = table.target
        case _:
            others = [
                place
                for place, size in enumerate(table.sizes)
                if place != table.target and 2 < size <= LEVELS_MAX
            ]
            place = others[int(rng.integers(len(others)))]
    parts = [rows[rows[:, place] == value] for value in range(table.sizes[place])]
    return [part for part in parts if len(part) >= ROWS_MIN]


def tree_network() -> Law:
    """T1: the tree X0 -> X1, X2; X1 -> X3, X4; X2 -> X5, X6."""
    s = COPIED_1
    low = (1 - s) / 2
    copy = np.array([[s, 1 - s], [1 - s, s]])
    wide = np.array([[s, low, low], [low, low, s]])
    first = np.array([FIRST, 1 - FIRST])
    law: Law = np.einsum("a,ab,ac,bd,be,cf,cg->abcdefg", first, copy, copy, copy, copy, copy, wide)
    return law


def degree_two_network() -> Law:
    """T2: X0 -> X1, X2; X1 -> X3; X1, X2 -> X4; X2 -> X5; X3, X4 -> X6."""
    s = COPIED_2
    r = (1 - s) / 2
    copy = np.array([[s, 1 - s], [1 - s, s]])
    zero = np.array([[s, 0.35], [0.45, 1 - s]])
    of_two = np.stack([zero, 1 - zero], axis=-1)
    mixed = np.array([r, s, r])
    wide = np.array([[[s, r, r], mixed], [mixed, [r, r, s]]])
    first = np.array([FIRST, 1 - FIRST])
    law: Law = np.einsum(
        "a,ab,ac,bd,bce,cf,deg->abcdefg", first, copy, copy, copy, of_two, copy, wide
    )
    return law


def of_network(name: str, law: Law, n_rows: int, rng: np.random.Generator) -> Table:
    """A table of rows drawn from a law; all of them are the holders'."""
    drawn = rng.choice(law.size, n_rows, p=law.ravel() / law.sum())
    rows = np.stack(np.unravel_index(drawn, law.shape), axis=1).astype(np.int64)
    shape = tuple(law.shape)
    return Table(name, rows, rows[:0], shape, len(shape) - 1, (0,) * len(shape), law)


def adult() -> Table:
    """Adult with its numbers in bins that do not depend on the rows."""
    of_example = example()
    rows = of_example.rows()
    sizes, n_ordered = list(of_example.sizes), _n_ordered(of_example)
    for name, ends in BINS.items():
        place = of_example.place(name)
        rows[:, place] = np.searchsorted(np.array(ends), rows[:, place], side="right")
        sizes[place] = n_ordered[place] = len(ends) + 1
    return _with_a_fifth_out("adult", rows, sizes, of_example.place("income"), n_ordered)


def adult_as_declared() -> Table:
    """Adult with every level of the example's schema."""
    table = example()
    return _with_a_fifth_out(
        "adult, all levels",
        table.rows(),
        table.sizes,
        table.place("income"),
        _n_ordered(table),
    )


def _n_ordered(table: BenchTable) -> list[int]:
    return [column.n_ordered for column in columns_of(table.schema.axes)]


def poker(n_hands: int = N_HANDS) -> Table:
    """Hands of five cards, suit and rank of each, and what the hand is worth."""
    rng = np.random.default_rng(5)
    cards = rng.random((n_hands, SUITS * RANKS)).argsort(axis=1)[:, :5]
    suits, ranks = cards % SUITS, cards // SUITS
    rows = np.stack([suits, ranks], axis=2).reshape(n_hands, 10)
    rows = np.column_stack([rows, poker_classes(suits, ranks)]).astype(np.int64)
    return _with_a_fifth_out("poker", rows, (*(SUITS, RANKS) * 5, 10), 10, (0,) * 11)


def poker_classes(suits: NDArray[np.int64], ranks: NDArray[np.int64]) -> NDArray[np.int64]:
    """The classes of the data set Poker Hand, 0 (nothing) to 9 (royal flush).

    Parameters
    ----------
    suits : (n, 5) ndarray of int64
    ranks : (n, 5) ndarray of int64
        0 for an ace, which is the lowest and the highest, to 12 for a king.
    """
    times = np.sort((ranks[:, :, None] == np.arange(RANKS)).sum(axis=1), axis=1)[:, ::-1]
    is_flush = (suits == suits[:, :1]).all(axis=1)
    ordered = np.sort(ranks, axis=1)
    is_single = times[:, 0] == 1
    is_royal = is_single & (ordered == np.array([0, 9, 10, 11, 12])).all(axis=1)
    is_straight = is_single & ((ordered[:, -1] - ordered[:, 0] == 4) | is_royal)
    kinds = [
        is_flush & is_royal,
        is_flush & is_straight,
        times[:, 0] == 4,
        (times[:, 0] == 3) & (times[:, 1] == 2),
        is_flush,
        is_straight,
        times[:, 0] == 3,
        times[:, 1] == 2,
        times[:, 0] == 2,
    ]
    return np.select(kinds, list(range(9, 0, -1)), 0)


def _with_a_fifth_out(
    name: str, rows: Rows, sizes: Sequence[int], target: int, n_ordered: Sequence[int]
) -> Table:
    mixed = np.random.default_rng(0).permutation(rows)
    kept = np.delete(mixed, np.s_[::KEPT_OUT], axis=0)
    return Table(name, kept, mixed[::KEPT_OUT], tuple(sizes), target, tuple(n_ordered))


def entropy(law: Law) -> float:
    """The entropy of a law, in bits."""
    shares = law[law > 0]
    return float(-(shares * np.log2(shares)).sum())
