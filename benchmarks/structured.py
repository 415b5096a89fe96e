"""Histories over a million cells, streamed as the proxy reads them: block, atoms, estimate.

No array over cells is kept: each query is built, merged into the atoms and discarded. What a query
costs then depends on how many atoms and directions the history has, not on how many cells.
"""

from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from time import perf_counter

import numpy as np
from numpy.typing import NDArray

from cube.query import Factor, QueryBlock, counting
from inference.blue.atoms import Atoms
from inference.blue.blue import OnlineBlue

AXIS = "cell"
N_TIMED = 31
N_KEPT = 8  # queries asked about afterwards: a few arrays over all cells
N_SET_MAX = 20  # cells in a set of the Zipf workload
ZIPF_EXPONENT = 1.5
DECADE = 10  # cells in each decade of the paper's equation 37
N_TRIALS_MAX = 10  # of its equation 38

Drawing = Callable[[np.random.Generator, int], NDArray[np.int64]]


def a_range(rng: np.random.Generator, n_cells: int) -> NDArray[np.int64]:
    """A run of consecutive cells, both ends uniform, but not all of them."""
    first, last = np.sort(rng.integers(0, n_cells, size=2))
    coefficients = np.zeros(n_cells, dtype=np.int64)
    coefficients[first : max(last, 1)] = 1
    return coefficients


def a_region_of_interest(rng: np.random.Generator, n_cells: int) -> NDArray[np.int64]:
    """Xiao and Xiong's equations 37 and 38: up to ten trials over cells in decades."""
    n_trials = int(rng.integers(1, N_TRIALS_MAX + 1))
    decades = rng.geometric(0.9, size=n_trials) - 1
    cells = np.minimum(DECADE * decades + rng.integers(0, DECADE, size=n_trials), n_cells - 1)
    return np.bincount(cells, minlength=n_cells).astype(np.int64)


def a_set(rng: np.random.Generator, n_cells: int) -> NDArray[np.int64]:
    """A few cells, the first of all cells the most popular."""
    cells = rng.zipf(ZIPF_EXPONENT, size=int(rng.integers(1, N_SET_MAX + 1))) - 1
    coefficients = np.zeros(n_cells, dtype=np.int64)
    coefficients[cells[cells < n_cells]] = 1
    coefficients[0] |= not coefficients.any()
    return coefficients


def a_dyadic_node(rng: np.random.Generator, n_cells: int) -> NDArray[np.int64]:
    """A node of the binary tree over the cells, its level uniform."""
    width = n_cells >> int(rng.integers(1, n_cells.bit_length()))
    start = width * int(rng.integers(n_cells // width))
    coefficients = np.zeros(n_cells, dtype=np.int64)
    coefficients[start : start + width] = 1
    return coefficients


@dataclass(frozen=True, slots=True)
class Workload:
    """So many queries of one kind over so many cells."""

    draw: Drawing
    n_cells: int
    n_rows: int

    def blocks(self, rng: np.random.Generator) -> Iterator[QueryBlock]:
        """Queries without end."""
        while True:
            yield QueryBlock(counting([Factor((AXIS,), self.draw(rng, self.n_cells))]))


WORKLOADS: Mapping[str, Workload] = {
    "ranges, 1e3 cells, 1000 rows": Workload(a_range, 10**3, 1000),
    "ranges, 1e6 cells, 1000 rows": Workload(a_range, 10**6, 1000),
    "equation 38, 1e6 cells, 1000 rows": Workload(a_region_of_interest, 10**6, 1000),
    "equation 38, 1e6 cells, 5000 rows": Workload(a_region_of_interest, 10**6, 5000),
    "Zipf sets, 1e6 cells, 1000 rows": Workload(a_set, 10**6, 1000),
    "dyadic, 2**20 cells, 1000 rows": Workload(a_dyadic_node, 2**20, 1000),
}


def measured(workload: Workload, rng: np.random.Generator) -> dict[str, float]:
    """Take the workload in row by row, then ask sums of two of its rows.

    Times are medians, in milliseconds: of the second half of the rows where the history grows.
    """
    atoms = Atoms.undivided((AXIS,), (workload.n_cells,))
    blue = OnlineBlue(atoms.sizes)
    blocks = workload.blocks(rng)
    split_ms, add_ms = [], []
    asked: list[QueryBlock] = []
    for place in range(workload.n_rows):
        block = next(blocks)
        if place < N_KEPT:
            asked.append(block)
        start = perf_counter()
        refinement = atoms.refined([block])
        split_ms.append(1e3 * (perf_counter() - start))
        if refinement is None:
            raise RuntimeError("the atoms are too many to lay out")
        finer, parents, rows = refinement
        start = perf_counter()
        if finer.n_atoms > atoms.n_atoms:
            blue.split(parents, finer.sizes)
        blue.add(rows, 10.0 ** rng.uniform(-2.0, 0.0, size=1))
        add_ms.append(1e3 * (perf_counter() - start))
        atoms = finer
    read_ms, query_ms, residual = [], [], 0.0
    for _ in range(N_TIMED):
        pair = [asked[place] for place in rng.permutation(len(asked))[:2]]
        start = perf_counter()
        read = [atoms.rows(block) for block in pair]
        read_ms.append(1e3 * (perf_counter() - start) / 2)
        query = np.sum([one.coefficients for one in read if one is not None], axis=0)
        start = perf_counter()
        combination = blue.combine(query)
        query_ms.append(1e3 * (perf_counter() - start))
        if not combination.estimable.all():
            raise RuntimeError("a sum of two rows of the history is not estimable")
        residual = max(residual, float(combination.residual[0]))
    half = workload.n_rows // 2
    return {
        "cells": workload.n_cells,
        "rows": workload.n_rows,
        "classes": atoms.n_atoms,
        "rank": blue.rank,
        "split_ms": float(np.median(split_ms[half:])),
        "add_ms": float(np.median(add_ms[half:])),
        "read_ms": float(np.median(read_ms)),
        "query_ms": float(np.median(query_ms)),
        "residual": residual,
    }
