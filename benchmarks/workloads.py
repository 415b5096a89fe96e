"""Five families of histories on which numerics differ: ranges, the paper's own, boxes, near-copies.

A history is drawn on cells and handed over on atoms, so that a million cells are a few hundred
columns. The caller adds rows whose dependence is known by construction.

These are inputs of benchmarks and tests; nothing here computes an answer.
"""

from collections.abc import Callable, Mapping
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

NEAR_COPY_SPREAD = 1e-5  # how little the rows of the hardest family differ from one another
TRIALS_MAX = 10  # cells in a query of the paper's workload, counted with repetition


@dataclass(frozen=True, eq=False)
class History:
    """Rows (n_rows, n_atoms) over atoms of given sizes (n_atoms,)."""

    rows: NDArray[np.float64]
    sizes: NDArray[np.float64]

    def __post_init__(self) -> None:
        if self.rows.shape[1:] != self.sizes.shape:
            raise ValueError(f"rows {self.rows.shape} over atoms {self.sizes.shape}")


def merged(rows: NDArray[np.float64], sizes: NDArray[np.float64]) -> History:
    """A history with columns that no row tells apart made one atom."""
    columns, atoms = np.unique(rows, axis=1, return_inverse=True)
    return History(columns, np.bincount(atoms.ravel(), weights=sizes).astype(np.float64))


def ranges(rng: np.random.Generator, *, n_cells: int, n_rows: int) -> History:
    """Counts of runs of consecutive cells, both ends uniform."""
    ends = np.sort(rng.integers(0, n_cells, size=(n_rows, 2)), axis=1) + np.array([0, 1])
    cuts = np.unique(np.concatenate((ends.ravel(), [0, n_cells])))
    first, last = np.searchsorted(cuts, ends.T)
    place = np.arange(cuts.size - 1)
    rows = (first[:, np.newaxis] <= place) & (place < last[:, np.newaxis])
    return merged(rows.astype(np.float64), np.diff(cuts).astype(np.float64))


def regions_of_interest(rng: np.random.Generator, *, n_cells: int, n_rows: int) -> History:
    """Xiao and Xiong's test queries, equations 37 and 38, with the probabilities normalised.

    A query is 1 to 10 multinomial trials over cells; cell ``j`` (from 0) has probability
    ``0.09 * 10**-(j // 10)``, where the printed 0.9 would add up to ten.
    """
    n_trials = rng.integers(1, TRIALS_MAX + 1, size=n_rows)
    query = np.repeat(np.arange(n_rows), n_trials)
    decade = rng.geometric(0.9, size=query.size) - 1
    cell = np.minimum(10 * decade + rng.integers(0, 10, size=query.size), n_cells - 1)
    asked, column = np.unique(cell, return_inverse=True)
    rows = np.zeros((n_rows, asked.size + 1))
    np.add.at(rows, (query, column), 1.0)
    return merged(rows, np.append(np.ones(asked.size), n_cells - asked.size))


def boxes(rng: np.random.Generator, *, side: int, n_rows: int) -> History:
    """Counts of rectangles on a square grid of cells."""
    ends = np.sort(rng.integers(0, side, size=(2, n_rows, 2)), axis=2)
    place = np.arange(side)
    inside = (ends[..., :1] <= place) & (place <= ends[..., 1:])
    rows = inside[0][:, :, np.newaxis] & inside[1][:, np.newaxis, :]
    return merged(rows.reshape(n_rows, -1).astype(np.float64), np.ones(side * side))


def near_copies(rng: np.random.Generator, *, n_cells: int, n_rows: int) -> History:
    """Rows that are all ones but for a hundred-thousandth: independent, and barely."""
    rows = 1.0 + NEAR_COPY_SPREAD * rng.standard_normal((n_rows, n_cells))
    return History(rows, np.ones(n_cells))


def dense(rng: np.random.Generator, *, n_cells: int, n_rows: int) -> History:
    """Whole coefficients from -10 to 10 everywhere: no structure to gain from."""
    rows = rng.integers(-10, 11, size=(n_rows, n_cells)).astype(np.float64)
    return History(rows, np.ones(n_cells))


def with_combinations(rng: np.random.Generator, history: History, n_combinations: int) -> History:
    """The history, then sums of three of its rows with whole coefficients: dependent for sure."""
    chosen = rng.integers(0, len(history.rows), size=(n_combinations, 3))
    factors = rng.choice(np.array([-3.0, -2.0, -1.0, 1.0, 2.0, 3.0]), size=(n_combinations, 3))
    combinations = np.einsum("kt,kta->ka", factors, history.rows[chosen])
    return History(np.vstack((history.rows, combinations)), history.sizes)


FAMILIES: Mapping[str, Callable[[np.random.Generator], History]] = {
    "ranges over 1e3 cells": lambda rng: ranges(rng, n_cells=1_000, n_rows=900),
    "ranges over 1e6 cells": lambda rng: ranges(rng, n_cells=1_000_000, n_rows=300),
    "regions of interest": lambda rng: regions_of_interest(rng, n_cells=1_000_000, n_rows=600),
    "boxes on a grid": lambda rng: boxes(rng, side=24, n_rows=400),
    "near-copies": lambda rng: near_copies(rng, n_cells=200, n_rows=200),
}
"""The five, at the sizes the claims are made for."""
