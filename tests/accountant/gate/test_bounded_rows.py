"""Bounded rows and sizes of units: what a unit adds, what it loses, and what the auditor says."""

import re
from collections import Counter
from fractions import Fraction
from pathlib import Path

import numpy as np
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from accountant.auditor.verify import verify
from accountant.ledger.entry_json import read_text, write
from accountant.ledger.history.raises import StalePlan
from cube.measurement import UNITS_PER_EPSILON, PlannedMeasurement, Weight
from cube.query import Factor, LinearQuery, Partition, QueryBlock, Term
from cube.statistic import BoundedRows, OfUnits, PlannedUnitCount, UnitSizes
from tests.support.audited import assert_not_opened, problem_with, to
from tests.support.counted_units import (
    ANN,
    BLOCKS,
    BY_CITY,
    EVERYBODY,
    HALF,
    QUARTER,
    ROWS_MAX,
    TABLES,
    Cell,
    Unit,
    all_units,
    bought,
    counts,
    gate_on,
    levels_of,
)
from tests.support.examples import examples
from tests.support.fakes import NoNoise

PRICES = Factor(("city", "hour"), np.array([[3, -1], [0, 2], [5, 5]], dtype=np.int64))
SUM = QueryBlock(LinearQuery((Term(Fraction(1), (PRICES,)),)))
SUM_BY_CITY = QueryBlock(SUM.query, Partition(("city",), np.array([0, -1, 1], dtype=np.int64)))
EVERY_BLOCK = (*BLOCKS, SUM, SUM_BY_CITY)
NO_BOUND = 5 * ROWS_MAX
BOUNDS = st.tuples(st.sampled_from(EVERY_BLOCK), st.integers(1, ROWS_MAX), st.integers(1, NO_BOUND))
ONCE = settings(
    deadline=None,
    max_examples=examples(40),
    suppress_health_check=[HealthCheck.function_scoped_fixture],
)


def added_by(block: QueryBlock, cell: Cell) -> tuple[int, int] | None:
    """The group of a row in a cell and what it adds there, from the definition; None if nothing."""
    value = Fraction(0)
    for term in block.query.terms:
        coefficient = term.scale
        for factor in term.factors:
            coefficient *= int(factor.values[levels_of(cell, factor.axes)])
        value += coefficient
    group = 0
    if block.partition is not None:
        group = int(block.partition.labels[levels_of(cell, block.partition.axes)])
    return None if value == 0 or group < 0 else (group, int(value))


def about(block: QueryBlock, unit: Unit) -> list[tuple[int, int]]:
    found = (added_by(block, cell) for cell in unit)
    return [one for one in found if one is not None]


def plainly(units: dict[int, Unit], block: QueryBlock) -> list[int]:
    found = [0] * block.n_rows
    for unit in units.values():
        for group, value in about(block, unit):
            found[group] += value
    return found


@ONCE
@given(TABLES, st.sampled_from(EVERY_BLOCK))
def test_all_rows_count_where_no_bound_is_reached(
    units: dict[int, Unit], block: QueryBlock
) -> None:
    assert counts(units, BoundedRows(block, ROWS_MAX, NO_BOUND)) == plainly(units, block)


@ONCE
@given(TABLES, BOUNDS, st.integers(0, 2**60 - 1))
def test_no_unit_moves_the_numbers_by_more_than_it_is_charged_for(
    units: dict[int, Unit], bounds: tuple[QueryBlock, int, int], digest: int
) -> None:
    """All units that there can be, beside others; some unit moves them by all of that."""
    block, rows_max, sum_max = bounds
    asked = BoundedRows(block, rows_max, sum_max)
    others = {key: unit for key, unit in units.items() if key != digest}
    before = counts(others, asked)
    moved = []
    for unit in all_units():
        after = counts({**others, digest: unit}, asked)
        moved.append(sum(abs(more - fewer) for more, fewer in zip(after, before, strict=True)))
    largest = max(abs(one) for unit in all_units() for _, one in about(block, unit))
    assert max(moved) == min(sum_max, rows_max * largest) <= asked.reach(ROWS_MAX)


@ONCE
@given(TABLES, BOUNDS)
def test_what_a_unit_adds_depends_on_that_unit_alone(
    units: dict[int, Unit], bounds: tuple[QueryBlock, int, int]
) -> None:
    """The numbers are sums over units of what each adds by itself: some of its rows, in order."""
    asked = BoundedRows(*bounds)
    alone = [counts({digest: unit}, asked) for digest, unit in units.items()]
    together = [sum(column) for column in zip(*alone, strict=True)] or [0] * asked.block.n_rows
    assert counts(units, asked) == together
    for unit, found in zip(units.values(), alone, strict=True):
        rows = about(asked.block, unit)
        if len(rows) <= asked.rows_max and sum(abs(one) for _, one in rows) <= asked.sum_max:
            assert found == plainly({0: unit}, asked.block)


def test_without_its_bounds_a_unit_would_lose_more_than_its_price() -> None:
    unit = ((2, 0), (2, 1), (2, 1))
    asked = BoundedRows(SUM, 2, 7)
    assert counts({7: unit}, asked) == [7]
    assert plainly({7: unit}, SUM) == [15] > [asked.reach(ROWS_MAX)]


def test_every_row_of_a_unit_is_as_likely_to_count() -> None:
    """Of 30,000 units with three rows, one of which counts: wrong once in a million runs."""
    rng = np.random.default_rng(5)
    digests = {int(one) for one in rng.integers(0, 2**60, 30_000)}
    found = counts(
        {one: tuple((city, 0) for city in range(3)) for one in digests}, BoundedRows(BY_CITY, 1, 1)
    )
    assert sum(found) == len(digests)
    deviation = np.sqrt(len(digests) * (1 / 3) * (2 / 3))
    assert all(abs(one - len(digests) / 3) < 5.2 * deviation for one in found)


@ONCE
@given(TABLES, st.sampled_from(EVERY_BLOCK), st.integers(1, 6), st.booleans())
def test_sizes_of_units_are_those_of_their_rows(
    units: dict[int, Unit], block: QueryBlock, n_ranges: int, by_sum: bool
) -> None:
    found: Counter[int] = Counter()
    for unit in units.values():
        rows = about(block, unit)
        size = sum(abs(one) for _, one in rows) if by_sum else len(rows)
        if size:
            ends = [2**place for place in range(n_ranges - 1)]
            found[next((at for at, end in enumerate(ends) if size <= end), n_ranges - 1)] += 1
    expected = [found[at] for at in range(n_ranges)]
    assert counts(units, UnitSizes(block, n_ranges, by_sum)) == expected


def loss(plan: list[PlannedUnitCount | PlannedMeasurement], unit: Unit, digest: int) -> Fraction:
    """What the answers to a plan lose of one unit, exactly."""
    total = Fraction(0)
    for one in plan:
        if isinstance(one, PlannedUnitCount):
            total += one.weight.exact * sum(map(abs, counts({digest: unit}, one.count)))
        else:
            total += one.laplace_weight.exact * sum(map(abs, plainly({0: unit}, one.block)))
    return total


STATISTICS = st.one_of(
    BOUNDS.map(lambda bounds: BoundedRows(*bounds)),
    st.builds(UnitSizes, st.sampled_from(EVERY_BLOCK), st.integers(1, 4), st.booleans()),
)


@ONCE
@given(
    st.lists(st.tuples(STATISTICS, st.integers(1, 2**36)), min_size=1, max_size=3),
    st.lists(st.tuples(st.sampled_from(EVERY_BLOCK), st.integers(1, 2**36)), max_size=2),
    st.integers(0, 2**60 - 1),
)
def test_no_unit_loses_more_than_is_charged(
    tmp_path_factory: pytest.TempPathFactory,
    asked: list[tuple[OfUnits, int]],
    rows: list[tuple[QueryBlock, int]],
    digest: int,
) -> None:
    planned = [PlannedUnitCount(one, Weight(units)) for one, units in asked]
    beside = [PlannedMeasurement(block, Weight(units)) for block, units in rows]
    with gate_on(tmp_path_factory.mktemp("orders")) as gate:
        charged = Fraction(bought(gate, *planned, rows=beside), UNITS_PER_EPSILON)
        (table,) = verify(gate._ledger.entries()).tables
    assert table.recomputed == table.spent == charged
    assert max(loss([*planned, *beside], unit, digest) for unit in all_units()) <= charged


@pytest.mark.parametrize(
    "asked", [BoundedRows(SUM_BY_CITY, 2, 6), UnitSizes(SUM_BY_CITY, 3), UnitSizes(SUM, 4, True)]
)
def test_a_raise_costs_the_difference_and_finds_the_same_numbers(
    tmp_path: Path, asked: OfUnits
) -> None:
    """Without noise every value is exact, also after a restart."""
    reach = asked.reach(ROWS_MAX)
    with gate_on(tmp_path, NoNoise()) as gate:
        assert bought(gate, PlannedUnitCount(asked, QUARTER)) == reach * QUARTER.units
        first = gate.history.unit_counts.measurements[0]
        assert len(first.values) == asked.numbers.n_rows
    with gate_on(tmp_path, NoNoise()) as gate:
        again = PlannedUnitCount(asked, HALF, raised_from=0)
        assert bought(gate, again) == reach * (HALF.units - QUARTER.units)
        _, raised = gate.history.unit_counts.measurements
        assert raised.values.tolist() == first.values.tolist()
        (payment, _) = gate.payments()
        kind, text = write(payment.charge)
        assert write(read_text(kind, text)) == (kind, text)


def test_other_bounds_are_another_statistic(tmp_path: Path) -> None:
    with gate_on(tmp_path) as gate:
        bought(gate, PlannedUnitCount(BoundedRows(BY_CITY, 2, 2), QUARTER))
        for other in (
            BoundedRows(BY_CITY, 1, 2),
            BoundedRows(BY_CITY, 2, 1),
            UnitSizes(BY_CITY, 2),
        ):
            with pytest.raises(StalePlan):
                gate.charge([], ANN, epsilon_cap=None, statistics=[
                    PlannedUnitCount(other, HALF, raised_from=0)
                ])  # fmt: skip


@pytest.mark.parametrize(
    ("asked", "field", "value", "said"),
    [
        (BoundedRows(EVERYBODY, 2, 2), "sum_max", 3, "as if it had other groups or bounds"),
        (BoundedRows(EVERYBODY, 2, 2), "rows_max", 3, "as if it had other groups or bounds"),
        (BoundedRows(EVERYBODY, 2, 2), "sum_max", 2**61, "more than is allowed"),
        (BoundedRows(EVERYBODY, 2, 2), "rows_max", 0, "rows_max"),
        (UnitSizes(EVERYBODY, 3), "n_ranges", 63, "are none"),
        (UnitSizes(EVERYBODY, 3), "by_sum", 1, "are none"),
        (UnitSizes(EVERYBODY, 3), "by_sum", True, "as if it had other groups or bounds"),
    ],
)
def test_the_auditor_finds_a_raise_that_is_none(
    tmp_path: Path, asked: OfUnits, field: str, value: object, said: str
) -> None:
    with gate_on(tmp_path) as gate:
        bought(gate, PlannedUnitCount(asked, QUARTER))
        bought(gate, PlannedUnitCount(asked, HALF, raised_from=0))
        entries = list(gate._ledger.entries())
    last = max(entry.seq for entry in entries if entry.kind == "charge")
    assert re.search(said, problem_with(entries, last, to(value, "statistics", 0, field)))
    assert_not_opened(entries, last, to(value, "statistics", 0, field))


def test_the_auditor_convicts_a_server_that_charges_too_little(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(BoundedRows, "reach", lambda _asked, _rows: 1)
    with gate_on(tmp_path) as gate:
        bought(gate, PlannedUnitCount(BoundedRows(SUM, 2, 6), QUARTER))
        problem = verify(gate._ledger.entries()).problem
    assert problem is not None
    assert "counts of units" in problem
