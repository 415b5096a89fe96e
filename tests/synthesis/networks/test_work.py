"""How long learning takes is told from numbers: against what learning looks at."""

import math
from collections.abc import Sequence
from itertools import combinations

import numpy as np
import pytest

from synthesis.networks.learned import (
    LEARNERS,
    N_SCOPES_MAX,
    N_WORK_MAX,
    WORK_OF_CELL,
    Method,
    work,
)
from synthesis.networks.score import BicScore, mutual_information, null_draws
from synthesis.networks.source import RowTables, ShareTable
from synthesis.tables import Column, Floats

SIZES = (2, 3, 2, 4, 3, 2)


class WatchedTables(RowTables):
    """Tables of rows, of which it is noted which were read."""

    read: list[tuple[int, ...]]

    def table(self, places: Sequence[int]) -> ShareTable:
        self.read.append(tuple(places))
        return super().table(places)


def chain(n_rows: int = 4000) -> WatchedTables:
    """Each column follows the ones before it: a climb has every reason to look at wide tables."""
    rng = np.random.default_rng(5)
    codes = np.zeros((n_rows, len(SIZES)), dtype=np.int64)
    for place, size in enumerate(SIZES):
        before = codes[:, :place].sum(axis=1) % size
        codes[:, place] = np.where(
            rng.random(n_rows) < 0.5, before, rng.integers(size, size=n_rows)
        )
    found = WatchedTables([Column(f"c{at}", size) for at, size in enumerate(SIZES)], codes)
    found.read = []
    return found


@pytest.mark.parametrize("method", Method)
@pytest.mark.parametrize("degree", [1, 2, 3])
def test_no_learner_reads_more_tables_than_is_told(method: Method, degree: int) -> None:
    degree = 1 if method is Method.CHOW_LIU else degree
    source = chain()
    LEARNERS[method](BicScore(source, degree=degree))
    wide = [one for one in source.read if len(one) > 1]
    told = work(SIZES, degree=degree, method=method, is_noisy=False, reading=lambda _: 1e12)
    assert len(set(wide)) == len(wide) <= told // 1e12
    if method is Method.EXACT:
        assert len(wide) == told // 1e12


def test_of_noisy_tables_every_draw_is_counted() -> None:
    told = work(SIZES, degree=2, method=Method.EXACT, is_noisy=True, reading=lambda _: 0.0)
    expected = 0
    for width in (2, 3):
        for scope in combinations(SIZES, width):
            for size in scope:
                n_cells = math.prod(scope)
                expected += n_cells * null_draws(size, n_cells // size)
    assert told == WORK_OF_CELL * expected


@pytest.mark.parametrize("method", Method)
def test_columns_that_make_the_largest_table_too_large_leave_the_others_to_be_looked_at(
    method: Method,
) -> None:
    """One level more for a few columns made a network seem cheap."""

    def of(n_levels: int) -> float:
        sizes = [n_levels] * 4 + [8] * 56
        return work(sizes, degree=3, method=method, is_noisy=True, reading=lambda _: 1.0)

    assert of(17) > 0.5 * of(16)
    assert of(10_000) > 0.05 * of(16)


def test_many_scopes_are_not_looked_at_one_by_one_and_not_taken_for_fewer() -> None:
    seen: list[tuple[int, ...]] = []

    def reading(scope: tuple[int, ...]) -> float:
        seen.append(scope)
        return 1.0

    sizes = [2] * 60
    told = work(sizes, degree=3, method=Method.EXACT, is_noisy=False, reading=reading)
    assert len(seen) < math.comb(60, 2) + math.comb(60, 3)
    assert math.comb(60, 3) > N_SCOPES_MAX
    cells = sum(math.comb(60, width) * width * 2**width for width in (2, 3, 4))
    reads = sum(math.comb(60, width) for width in (2, 3, 4))
    assert told == pytest.approx(WORK_OF_CELL * cells + reads)


@pytest.mark.parametrize(
    ("n_columns", "size", "n_rows", "method", "degree", "is_allowed"),
    [
        (16, 4, 200_000, Method.EXACT, 3, True),  # 5 seconds
        (16, 4, 200_000, Method.EXACT, 4, True),
        (16, 4, 4_000_000, Method.EXACT, 3, False),
        (16, 4, 4_000_000, Method.HILL_CLIMBING, 3, True),
        (40, 4, 1_000_000, Method.HILL_CLIMBING, 3, True),
        (40, 4, 4_000_000, Method.HILL_CLIMBING, 3, False),
    ],
)
def test_what_is_allowed_of_rows(  # noqa: PLR0913 - one parameter per number
    n_columns: int, size: int, n_rows: int, method: Method, degree: int, *, is_allowed: bool
) -> None:
    told = work(
        [size] * n_columns,
        degree=degree,
        method=method,
        is_noisy=False,
        reading=lambda scope: n_rows * len(scope),
    )
    assert (told <= N_WORK_MAX) == is_allowed


@pytest.mark.parametrize("shape", [(2, 2), (3, 4), (5, 20), (16, 64)])
def test_fewer_draws_of_large_tables_know_the_mean_no_worse(shape: tuple[int, int]) -> None:
    """The spread of the mean of as many draws, over the mean: 18 % of a pair of two levels."""
    rng = np.random.default_rng(6)
    n_draws = null_draws(*shape)
    law = np.full(math.prod(shape), 1 / math.prod(shape))
    means: list[float] = []
    for _ in range(30):
        drawn: Floats = rng.multinomial(100_000, law, n_draws).reshape(n_draws, *shape) / 100_000
        means.append(float(mutual_information(drawn, 0).mean()))
    assert np.std(means) / np.mean(means) <= 0.18 * 1.4  # the deviation of 30 is known to 13 %
    assert n_draws == {4: 64, 12: 64, 100: 13, 1024: 8}[law.size]
