"""Rows held against measured tables: true ones pass at the odds, spoilt ones never."""

import numpy as np
import pytest
from numpy.typing import NDArray

from cube.query import Partition
from proxy.synthetic_tables.report.residuals import (
    CheckedTable,
    Drawing,
    MeasuredTable,
    Standing,
    Way,
    checked_tables,
)

Integers = NDArray[np.int64]
N_ROWS = 20_000
ROUNDED = Drawing()


def hours(n_rows: int = N_ROWS) -> dict[str, Integers]:
    """Two columns: 24 levels that most rows are in, and two that depend on them."""
    rng = np.random.default_rng(1)
    hour = rng.integers(0, 24, n_rows)
    return {"hour": hour, "late": ((hour + rng.integers(0, 6, n_rows)) > 15).astype(np.int64)}


def plain(**sizes: int) -> Partition:
    names = tuple(sorted(sizes))
    shape = tuple(sizes[name] for name in names)
    return Partition(names, np.arange(np.prod(shape)).reshape(shape))


HOUR, LATE, BOTH = plain(hour=24), plain(late=2), plain(hour=24, late=2)


def measured(
    partition: Partition,
    levels: dict[str, Integers],
    rng: np.random.Generator,
    *,
    scale: float = 20.0,
    is_gaussian: bool = False,
) -> MeasuredTable:
    groups = partition.labels[tuple(levels[name] for name in partition.axes)]
    counts = np.bincount(groups, minlength=partition.n_groups).astype(np.float64)
    if is_gaussian:
        noise = rng.normal(0.0, np.sqrt(2) * scale, counts.size)
    else:
        noise = rng.laplace(0.0, scale, counts.size)
    return MeasuredTable(partition, counts + noise, scale, is_gaussian)


def checked(
    tables: list[MeasuredTable], levels: dict[str, Integers], drawing: Drawing = ROUNDED
) -> list[CheckedTable]:
    return checked_tables(tables, levels, n_rows=N_ROWS, drawing=drawing)


@pytest.mark.parametrize("is_gaussian", [False, True])
def test_the_true_rows_are_inside_and_a_wrong_scale_is_not(is_gaussian: bool) -> None:
    """Of 600 reports, each at odds of 1 in 1,000, more than 8 are beyond once in a million runs."""
    rng, levels, n_off, n_off_if_less = np.random.default_rng(2), hours(), 0, 0
    for _ in range(600):
        found = [measured(one, levels, rng, is_gaussian=is_gaussian) for one in (HOUR, LATE, BOTH)]
        n_off += any(one.worst.excess for one in checked(found, levels))
        said = [MeasuredTable(one.partition, one.values, 8.0, is_gaussian) for one in found]
        n_off_if_less += any(one.worst.excess for one in checked(said, levels))
    assert n_off <= 8
    assert n_off_if_less > 540


def test_a_shuffled_column_is_seen_in_its_pair_alone() -> None:
    rng, levels = np.random.default_rng(3), hours()
    tables = [measured(one, levels, rng) for one in (HOUR, LATE, BOTH)]
    spoilt = levels | {"late": rng.permutation(levels["late"])}
    found = checked(tables, spoilt)
    assert [(one.scope, one.standing) for one in found[:1]] == [
        (("hour", "late"), Standing.OUTSIDE)
    ]
    assert {one.standing for one in found[1:]} == {Standing.INSIDE}
    counts = np.bincount(2 * levels["hour"] + levels["late"], minlength=48)
    wrong = np.bincount(2 * spoilt["hour"] + spoilt["late"], minlength=48)
    truly = np.abs(counts - wrong).sum() / 2
    assert abs(found[0].worst.rows - truly) < 48 * 20, "rows in the wrong place, but for the noise"


def test_near_empty_counts_do_not_hide_a_large_error() -> None:
    """Of 10,000 counts 24 hold all rows; noise of all together would cover what is off."""
    rng, levels = np.random.default_rng(4), hours()
    wide = {"code": 400 * levels["hour"]}
    table = measured(plain(code=10_000), wide, rng)
    moved = wide["code"].copy()
    moved[np.flatnonzero(moved == 4000)[:300]] = 4400
    moved[np.flatnonzero(moved == 800)[:300]] = 1200
    [found] = checked([table], {"code": moved})
    every = next(one for one in found.residuals if one.way is Way.EVERY)
    assert not every.excess
    assert found.standing is Standing.OUTSIDE


def test_what_is_spread_over_near_empty_counts_is_seen_in_their_sum() -> None:
    rng, levels = np.random.default_rng(5), hours()
    wide = {"code": 400 * levels["hour"]}
    spread = wide["code"].copy()
    lost = rng.choice(spread.size, 15_000, replace=False)
    spread[lost] = rng.integers(0, 10_000, lost.size)
    table = measured(plain(code=10_000), {"code": spread}, rng, scale=10.0)
    [found] = checked([table], wide)
    missing = max(found.residuals, key=lambda one: one.excess * (one.way is Way.SMALL))
    assert missing.way is Way.SMALL
    assert missing.rows == pytest.approx(-15_000, abs=5 * 10 * np.sqrt(2 * 10_000))


def test_a_level_of_a_pair_is_seen_though_noise_hides_each_of_its_counts() -> None:
    rng, levels = np.random.default_rng(6), hours()
    code = rng.integers(0, 100, N_ROWS)
    table = measured(plain(code=100, hour=24), levels | {"code": code}, rng, scale=5.0)
    moved = levels["hour"].copy()
    moved[moved == 23] = 22
    [found] = checked([table], {"hour": moved, "code": code})
    assert found.worst.way is Way.SUM
    assert abs(found.worst.rows) == pytest.approx(
        np.sum(levels["hour"] == 23), abs=6 * 5 * np.sqrt(2 * 100)
    )
    _, hour = found.measured.levels_in(found.worst.groups)
    assert hour.tolist() in ([22], [23])


def test_what_misses_by_little_is_near() -> None:
    rng, levels = np.random.default_rng(7), hours()
    table = measured(LATE, levels, rng, scale=0.5)
    moved = levels["late"].copy()
    moved[np.flatnonzero(moved == 0)[:50]] = 1
    [near] = checked([table], {"late": moved})
    assert near.standing is Standing.NEAR
    moved[np.flatnonzero(moved == 0)[:200]] = 1
    [outside] = checked([table], {"late": moved})
    assert outside.standing is Standing.OUTSIDE
    assert outside.excess_share == pytest.approx(250 / N_ROWS, rel=0.1)


@pytest.mark.parametrize("is_independent", [False, True])
def test_drawing_fewer_rows_is_no_error(is_independent: bool) -> None:
    """A tenth of the rows at random; in one of a thousand tables drawing goes beyond its part."""
    rng, levels = np.random.default_rng(8), hours()
    tables = [measured(one, levels, rng, scale=0.5) for one in (HOUR, LATE, BOTH)]
    kept = rng.choice(N_ROWS, N_ROWS // 10, replace=False)
    if is_independent:
        few = {name: of_row[kept] for name, of_row in levels.items()}
    else:
        order = np.lexsort((levels["late"], levels["hour"]))
        few = {name: of_row[order][::10] for name, of_row in levels.items()}
    found = checked(tables, few, Drawing(10.0, is_independent))
    assert {one.standing for one in found} == {Standing.INSIDE}
    if is_independent:
        rounded = checked(tables, few, Drawing(10.0, is_independent=False))
        assert rounded[0].standing is Standing.OUTSIDE, "rounding would have been much closer"


def test_tables_come_worst_first() -> None:
    rng, levels = np.random.default_rng(9), hours()
    tables = [measured(one, levels, rng) for one in (LATE, HOUR)]
    off = levels | {"hour": np.where(levels["hour"] == 5, 6, levels["hour"])}
    assert [one.scope for one in checked(tables, off)] == [("hour",), ("late",)]
