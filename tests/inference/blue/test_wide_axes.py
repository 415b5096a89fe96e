"""Estimates over a column of many levels against the same algebra on every level."""

import numpy as np
import pytest
from numpy.typing import NDArray

from cube.query import N_NARROW_LEVELS_MAX, Factor, Partition, QueryBlock, counting
from inference.blue.atoms import Atoms
from inference.blue.blue import OnlineBlue

N_LEVELS, N_CITIES = N_NARROW_LEVELS_MAX + 300, 3
AXES, SIZES = ("amount", "city"), (N_LEVELS, N_CITIES)
PLACES = np.arange(N_LEVELS, dtype=np.int64)
CUTS = (700, 1500, 3000)


def summand(power: int, low: int, high: int) -> NDArray[np.int64]:
    """A power of the place within bounds, 0 elsewhere; centred, as sums are asked for."""
    inside = (low <= PLACES) & (high > PLACES)
    return np.where(inside, (PLACES - 2000) ** power, 0)


def random_block(draw: np.random.Generator) -> QueryBlock:
    """A count, a sum or a sum of squares, of a range of amounts, of one city or by city."""
    low, high = sorted(draw.choice([0, *CUTS, N_LEVELS], size=2, replace=False).tolist())
    factors = [Factor(("amount",), summand(int(draw.integers(0, 3)), low, high))]
    kind = draw.integers(0, 3)
    if kind == 0:
        factors.append(Factor(("city",), np.eye(N_CITIES, dtype=np.int64)[draw.integers(0, 3)]))
    by_city = Partition(("city",), np.arange(N_CITIES, dtype=np.int64))
    return QueryBlock(counting(factors), by_city if kind == 1 else None).primitive[0]


def dense(block: QueryBlock) -> NDArray[np.float64]:
    """Its rows over every cell."""
    (term,) = block.query.terms
    values = np.full(SIZES, float(term.scale))
    for factor in term.factors:
        values = values * (factor.values[:, None] if factor.axes == ("amount",) else factor.values)
    if block.partition is None:
        return values.reshape(1, -1)
    chosen = [(block.partition.labels == row)[None, :] for row in range(block.n_rows)]
    return np.stack([(values * one).ravel() for one in chosen])


@pytest.mark.parametrize("seed", range(6))
def test_estimates_are_those_of_every_level(seed: int) -> None:
    draw = np.random.default_rng(seed)
    blocks = [random_block(draw) for _ in range(14)]
    atoms, blue = Atoms.undivided(AXES, SIZES), None
    for some in (blocks[:3], blocks[3:8], blocks[8:]):  # classes split, powers appear
        refined = atoms.refined(some)
        assert refined is not None
        finer, parents, rows = refined
        if blue is None:
            blue = OnlineBlue(atoms.sizes)
        if finer.n_atoms > atoms.n_atoms:
            blue.split(parents, finer.sizes)
        blue.add(rows, np.ones(len(rows)))
        atoms = finer
    assert blue is not None
    assert atoms.grid.n_cells < 200
    history = np.concatenate([dense(block) for block in blocks])
    lengths = np.linalg.norm(history, axis=1)
    # Of rows of one length each, for the reference to be as accurate as the answer.
    left, sizes, right = np.linalg.svd(history / lengths[:, None], full_matrices=False)
    kept = sizes > 1e-9 * sizes[0]
    left, sizes, right = left[:, kept], sizes[kept], right[kept]
    for query in (random_block(draw) for _ in range(6)):
        read = atoms.rows(query)
        assert read is not None
        found = blue.combine(read.coefficients)
        wanted = dense(query)
        coordinates = wanted @ right.T
        missing = np.linalg.norm(wanted - coordinates @ right, axis=1)
        estimable = missing <= 1e-6 * np.linalg.norm(wanted, axis=1)
        assert (found.estimable & read.is_constant).tolist() == estimable.tolist()
        answered = found.coefficients[estimable] @ history
        scale = np.abs(wanted).max()
        assert np.abs(answered - wanted[estimable]).max(initial=0.0) <= 1e-6 * scale
        # The shortest coefficients with this combination: no part of them adds up to nothing.
        some = (coordinates[estimable] / sizes) @ left.T / lengths
        nothing = np.linalg.svd(left.T * lengths, full_matrices=True)[2][sizes.size :]
        shortest = some - (some @ nothing.T) @ nothing
        expected = np.square(shortest).sum(axis=1)
        assert found.half_variance[estimable] == pytest.approx(expected, rel=1e-4, abs=1e-12)


@pytest.mark.parametrize("seed", range(5))
def test_a_row_that_cuts_a_polynomial_is_not_constant(seed: int) -> None:
    draw = np.random.default_rng(seed)
    block = QueryBlock(counting([Factor(("amount",), PLACES)]))
    refined = Atoms.undivided(AXES, SIZES).refined([block])
    assert refined is not None
    cut = int(draw.integers(100, N_LEVELS - 100))
    below = QueryBlock(counting([Factor(("amount",), np.where(cut > PLACES, PLACES, 0))]))
    read = refined[0].rows(below)
    assert read is not None
    assert not read.is_constant.any()
    again = refined[0].rows(block)
    assert again is not None
    assert again.is_constant.all()
