"""Counts of units: what a unit loses by them, and which of its groups count."""

from collections.abc import Sequence
from fractions import Fraction

import numpy as np
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from accountant.exact.unit_counts import mixed
from cube.measurement import UNITS_PER_EPSILON, PlannedMeasurement, Weight
from cube.query import QueryBlock
from cube.statistic import Asked, PlannedUnitCount, UnitCount
from tests.support.counted_units import (
    BLOCKS,
    BY_CITY,
    EVERYBODY,
    ROWS_MAX,
    SIGNED,
    TABLES,
    Unit,
    all_units,
    bought,
    counted_plainly,
    counts,
    gate_on,
    group_of,
)
from tests.support.examples import examples

ONCE = settings(
    deadline=None,
    max_examples=examples(40),
    suppress_health_check=[HealthCheck.function_scoped_fixture],
)


@ONCE
@given(TABLES, st.sampled_from(BLOCKS))
def test_every_unit_counts_once_in_every_group_that_it_has_a_row_in(
    units: dict[int, Unit], block: QueryBlock
) -> None:
    assert counts(units, UnitCount(block, ROWS_MAX)) == counted_plainly(units, block)


@ONCE
@given(TABLES, st.sampled_from(BLOCKS), st.integers(1, ROWS_MAX), st.integers(0, 2**60 - 1))
def test_no_unit_moves_counts_by_more_than_it_is_charged_for(
    units: dict[int, Unit], block: QueryBlock, groups_max: int, digest: int
) -> None:
    """All units that there can be, beside others; some unit moves them by all of that."""
    count = UnitCount(block, groups_max)
    others = {key: unit for key, unit in units.items() if key != digest}
    before = counts(others, count)
    moved = []
    for unit in all_units():
        after = counts({**others, digest: unit}, count)
        change = [more - fewer for more, fewer in zip(after, before, strict=True)]
        assert set(change) <= {0, 1}
        moved.append(sum(change))
    assert max(moved) == count.reach(ROWS_MAX) == min(block.n_rows, groups_max, ROWS_MAX)


@ONCE
@given(TABLES, st.sampled_from(BLOCKS), st.integers(1, ROWS_MAX))
def test_units_with_rows_left_out_are_counted_as_if_there_were_no_others(
    units: dict[int, Unit], block: QueryBlock, groups_max: int
) -> None:
    odd = {digest: unit for digest, unit in units.items() if digest % 2}
    cut = UnitCount(block, groups_max, only_cut=True)
    assert counts(units, cut) == counts(odd, UnitCount(block, groups_max))


@ONCE
@given(TABLES, st.integers(1, ROWS_MAX - 1))
def test_which_groups_of_a_unit_count_depends_on_that_unit_alone(
    units: dict[int, Unit], groups_max: int
) -> None:
    """The counts are the sums of those of each unit by itself."""
    count = UnitCount(SIGNED, groups_max)
    alone = [counts({digest: unit}, count) for digest, unit in units.items()]
    together = [sum(column) for column in zip(*alone, strict=True)] or [0] * SIGNED.n_rows
    assert counts(units, count) == together


def test_a_bound_on_rows_alone_is_convicted() -> None:
    """Were all groups of a unit counted, one of three groups would lose three times its price."""
    unit = tuple((city, 0) for city in range(3))
    count = UnitCount(BY_CITY, 1)
    assert sum(counts({7: unit}, count)) == 1
    assert sum(counted_plainly({7: unit}, BY_CITY)) == 3 > count.reach(ROWS_MAX)


def test_the_groups_that_count_never_change_between_releases() -> None:
    """A raise finds the noise by counting again: these numbers are splitmix64's, for ever."""
    digests = np.zeros(3, dtype=np.int64)
    found = mixed(digests, np.arange(3, dtype=np.int64))
    assert [int(one) for one in found] == [
        16294208416658607535,
        7960286522194355700,
        487617019471545679,
    ]


def test_every_group_of_a_unit_is_as_likely_to_count() -> None:
    """Of 30,000 units in three groups each: right code fails once in a million runs."""
    rng = np.random.default_rng(5)
    digests = rng.integers(0, 2**60, 30_000)
    every = [(city, 0) for city in range(3)]
    found = counts({int(digest): tuple(every) for digest in digests}, UnitCount(BY_CITY, 1))
    n_units = len(set(digests.tolist()))
    deviation = np.sqrt(n_units * (1 / 3) * (2 / 3))
    assert sum(found) == n_units
    assert all(abs(one - n_units / 3) < 5.2 * deviation for one in found)


def loss(plan: Sequence[Asked | PlannedMeasurement], unit: Unit, digest: int) -> Fraction:
    """What the answers to a plan lose of one unit, exactly."""
    total = Fraction(0)
    for one in plan:
        if isinstance(one, PlannedUnitCount):
            total += one.weight.exact * sum(counts({digest: unit}, one.count))
        elif isinstance(one, PlannedMeasurement):
            groups = [group_of(one.block, cell) for cell in unit]
            total += one.laplace_weight.exact * sum(group is not None for group in groups)
    return total


@ONCE
@given(
    st.lists(
        st.tuples(st.sampled_from(BLOCKS), st.integers(1, 4), st.integers(1, 2**38)), max_size=3
    ),
    st.lists(st.tuples(st.sampled_from(BLOCKS[:3]), st.integers(1, 2**38)), max_size=2),
    st.integers(0, 2**60 - 1),
)
def test_no_unit_loses_more_than_is_charged(
    tmp_path_factory: pytest.TempPathFactory,
    asked: list[tuple[QueryBlock, int, int]],
    rows: list[tuple[QueryBlock, int]],
    digest: int,
) -> None:
    """Counts of units and rows in one charge; exactly what is charged, where units count once."""
    planned = [PlannedUnitCount(UnitCount(block, n), Weight(units)) for block, n, units in asked]
    beside = [PlannedMeasurement(block, Weight(units)) for block, units in rows]
    if not planned and not beside:
        return
    with gate_on(tmp_path_factory.mktemp("orders")) as gate:
        charged = Fraction(bought(gate, *planned, rows=beside), UNITS_PER_EPSILON)
    lost = max(loss([*planned, *beside], unit, digest) for unit in all_units())
    assert lost <= charged
    if all(block is EVERYBODY for block, *_ in [*asked, *rows]):
        assert lost == charged
