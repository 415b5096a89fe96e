"""Scores of several holders: their references, and the noise of their sums."""

import math

import numpy as np
import pytest
from numpy.typing import NDArray

from synthesis.buckets import Buckets, GroupedEstimate
from synthesis.choice import GAUSSIAN, LAPLACE, noise_of_sum
from synthesis.references import HolderMargins, shares_of_holders, tables_if_independent
from synthesis.sketch import Candidate, Sketch
from synthesis.tables import Column, TableEstimate

COLUMNS = [Column("x", 3), Column("y", 4)]
Counts = NDArray[np.float64]
LITTLE = np.array(1e-9)  # variance: as good as no noise
CANDIDATE = Candidate(("x", "y"), (Buckets(np.arange(3)), Buckets(np.arange(4))))
GROUPED = Candidate(("x", "y"), (Buckets(np.array([0, 0, 1])), Buckets(np.array([0, 1, 1, 1]))))


def one_ways(counts: Counts, variance: NDArray[np.float64]) -> dict[str, TableEstimate]:
    return {
        name: TableEstimate((name,), counts.sum(axis=1 - axis), variance)
        for axis, name in enumerate(("x", "y"))
    }


def scored(
    counts: list[Counts], candidate: Candidate, variance: NDArray[np.float64] = LITTLE
) -> tuple[Counts, float, Sketch]:
    """The references of holders of these counts, what lies between them, the sketch of all."""
    whole = sum(counts, np.zeros((3, 4)))
    sketch = Sketch.of(COLUMNS, list(one_ways(whole, LITTLE).values()), ())
    holders = [HolderMargins(float(one.sum()), one_ways(one, variance)) for one in counts]
    return *tables_if_independent(sketch, candidate, holders), sketch


def summed(counts: Counts, candidate: Candidate) -> Counts:
    first, second = candidate.groups
    return second.summed(first.summed(counts, 0), 1)


def product(counts: Counts) -> Counts:
    return np.asarray(np.outer(counts.sum(axis=1), counts.sum(axis=0)) / counts.sum())


NORTH = 900 * np.outer([0.7, 0.2, 0.1], [0.1, 0.2, 0.3, 0.4])
SOUTH = 600 * np.outer([0.1, 0.1, 0.8], [0.4, 0.4, 0.1, 0.1])
TIED = np.array([[100.0, 0, 0, 0], [0, 50, 50, 0], [0, 0, 0, 200]])


@pytest.mark.parametrize("candidate", [CANDIDATE, GROUPED], ids=["levels", "groups"])
def test_holders_whose_columns_are_independent_are_as_far_from_it_together_as_they_differ(
    candidate: Candidate,
) -> None:
    # Neither holder tells anything; all dependence is between them, and known from single columns
    found, between, _ = scored([NORTH, SOUTH], candidate)
    for one, counts in zip(found, (NORTH, SOUTH), strict=True):
        np.testing.assert_allclose(one, summed(counts, candidate), rtol=1e-6)
    together = summed(NORTH + SOUTH, candidate)
    exact = np.abs(together - summed(product(NORTH + SOUTH), candidate)).sum()
    assert between == pytest.approx(exact, rel=1e-5)
    assert between > 100


def test_the_score_is_exact_for_like_holders_and_never_less_than_that_of_all_rows() -> None:
    for counts in ([TIED, 2 * TIED], [TIED, NORTH, SOUTH], [TIED]):
        found, between, sketch = scored(counts, CANDIDATE)
        told = sum(float(np.abs(a - b).sum()) for a, b in zip(counts, found, strict=True))
        whole = sum(counts, np.zeros((3, 4)))
        exact = float(np.abs(whole - sketch.reference(CANDIDATE)).sum())
        if len(counts) == 3:
            assert told + between > exact
        else:
            assert told + between == pytest.approx(exact, rel=1e-5)


def test_where_noise_hides_how_holders_differ_each_has_its_share_of_all() -> None:
    found, between, sketch = scored([NORTH, SOUTH], CANDIDATE, np.array(1e9))
    whole = sketch.reference(CANDIDATE)
    np.testing.assert_allclose(found[0], 0.6 * whole, rtol=1e-9)
    np.testing.assert_allclose(found[1], 0.4 * whole, rtol=1e-9)
    assert between == pytest.approx(0, abs=1e-6)


def test_a_holder_of_whom_nothing_is_known_has_an_equal_share() -> None:
    whole = NORTH + SOUTH
    sketch = Sketch.of(COLUMNS, list(one_ways(whole, LITTLE).values()), ())
    found, between = tables_if_independent(sketch, CANDIDATE, [HolderMargins(None, {})] * 2)
    np.testing.assert_allclose(found[0], sketch.reference(CANDIDATE) / 2)
    assert between == pytest.approx(0, abs=1e-6)


def test_a_sum_over_holders_is_as_noisy_as_its_law_says() -> None:
    # The mean of |sum| over draws, within 5 of its standard errors; twice the scale is 300 away
    draw = np.random.default_rng(11)
    for n_holders in (1, 2, 3, 10):
        sums = np.abs(draw.laplace(size=(n_holders, 400_000)).sum(axis=0))
        error = sums.std() / math.sqrt(sums.size)
        assert abs(sums.mean() - noise_of_sum(n_holders)) < 5 * error
    assert LAPLACE.of_holders(1) == LAPLACE
    sizes = np.array([3, 40])
    for cost, times in ((LAPLACE, 1.875), (GAUSSIAN, math.sqrt(3))):
        more = cost.of_holders(3)
        assert more.least_l1(sizes, 2.0) == pytest.approx(times * cost.least_l1(sizes, 2.0))


@pytest.mark.parametrize("candidate", [CANDIDATE, GROUPED], ids=["levels", "groups"])
def test_shares_of_holders_with_independent_columns_are_theirs(candidate: Candidate) -> None:
    """In every cell of the table of all rows, and of one column."""
    whole = np.rint(1000 * summed(NORTH + SOUTH, candidate)).astype(np.int64)
    holders = [HolderMargins(float(one.sum()), one_ways(one, LITTLE)) for one in (NORTH, SOUTH)]
    found = shares_of_holders(whole // 1000, ("x", "y"), candidate.groups, holders)
    of_each = np.stack([summed(NORTH, candidate), summed(SOUTH, candidate)], axis=-1)
    np.testing.assert_allclose(found, of_each / of_each.sum(axis=-1, keepdims=True), atol=0.01)
    alone = shares_of_holders(whole.sum(axis=1) // 1000, ("x",), candidate.groups[:1], holders)
    of_x = of_each.sum(axis=1)
    np.testing.assert_allclose(alone, of_x / of_x.sum(axis=-1, keepdims=True), atol=0.01)


def test_shares_add_up_whatever_is_known() -> None:
    rng = np.random.default_rng(3)
    for holders in (
        [HolderMargins(None, {})] * 3,
        [HolderMargins(-20.0, {}), HolderMargins(10.0, {}), HolderMargins(None, {})],
        [HolderMargins(600.0, one_ways(NORTH, np.array(1e9))), HolderMargins(400.0, {})],
        [HolderMargins(5.0, one_ways(-NORTH, LITTLE)), HolderMargins(5.0, one_ways(TIED, LITTLE))],
    ):
        counts = rng.integers(0, 3, (3, 4))
        found = shares_of_holders(counts, ("x", "y"), CANDIDATE.groups, holders)
        assert found.shape == (3, 4, len(holders))
        assert (found >= 0).all()
        np.testing.assert_allclose(found.sum(axis=-1), 1.0)
    counts = np.ones((3, 4), dtype=np.int64)
    unknown = shares_of_holders(counts, ("x", "y"), CANDIDATE.groups, [HolderMargins(None, {})] * 4)
    np.testing.assert_allclose(unknown, 0.25)


def test_shares_follow_what_holders_have_counted_of_both_columns() -> None:
    """Exactly, with little noise: also in groups, finer or coarser; and not where groups cross."""
    both = (TIED, np.random.default_rng(8).integers(1, 200, (3, 4)).astype(np.float64))
    whole = sum(both, np.zeros((3, 4)))

    def found(pairs: list[list[GroupedEstimate]], groups: tuple[Buckets, ...]) -> Counts:
        holders = [
            HolderMargins(float(one.sum()), one_ways(one, LITTLE), {("x", "y"): own})
            for one, own in zip(both, pairs, strict=True)
        ]
        counts = summed(whole, Candidate(("x", "y"), groups)).astype(np.int64)
        return shares_of_holders(counts, ("x", "y"), groups, holders)

    def told(groups: tuple[Buckets, ...], variance: float) -> list[list[GroupedEstimate]]:
        tables = [summed(one, Candidate(("x", "y"), groups)) for one in both]
        return [
            [GroupedEstimate(groups, TableEstimate(("x", "y"), one, np.array(variance)))]
            for one in tables
        ]

    levels, grouped = CANDIDATE.groups, GROUPED.groups
    for asked in (levels, grouped):
        exact = [summed(one, Candidate(("x", "y"), asked)) for one in both]
        counts = np.maximum(sum(exact, np.zeros(exact[0].shape)), 1.0)
        np.testing.assert_allclose(
            found(told(levels, 1e-9), asked) * counts[..., np.newaxis],
            np.stack(exact, axis=-1),
            atol=1e-3,
        )
    without = found([[], []], levels)
    truth = np.stack(both, axis=-1)
    off = [
        np.abs(one * whole[..., np.newaxis] - truth).sum()
        for one in (without, found(told(grouped, 1e-9), levels))
    ]
    assert off[1] < 0.8 * off[0]
    np.testing.assert_allclose(found(told(levels, 1e9), levels), without)
    crossed = (Buckets(np.array([0, 1, 1])), Buckets(np.array([0, 0, 1, 1])))
    np.testing.assert_allclose(found(told(crossed, 1e-9), grouped), found([[], []], grouped))
