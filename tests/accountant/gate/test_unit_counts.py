"""Counts of units: what they cost, what a unit loses, and which of its groups count."""

import re
from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import replace
from fractions import Fraction
from itertools import combinations_with_replacement, product
from pathlib import Path

import numpy as np
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from accountant.auditor.verify import verify
from accountant.exact.unit_counts import exact_unit_counts, mixed
from accountant.gate.gate import Gate
from accountant.gate.open_table import open_table
from accountant.ledger.entry_json import read_text, write
from accountant.ledger.limits import Payer, Subject, SubjectKind
from accountant.ledger.open_ledger import open_ledger
from accountant.ledger.raises import StalePlan
from accountant.noise.laplace import NoiseSource, SystemNoise
from accountant.source import CellCounts, UnitCells
from cube.axis import CategoryAxis, IntegerAxis
from cube.block import Partition, QueryBlock
from cube.gaussian import Asked
from cube.measurement import UNITS_PER_EPSILON, PlannedMeasurement, Weight
from cube.query import Factor, LinearQuery, Term, counting
from cube.refusals import BudgetExhausted, CostAboveCap, SourceUnavailable, TooLarge
from cube.schema import Schema
from cube.statistic import PlannedUnitCount, UnitCount
from tests.support.audited import assert_not_opened, problem_with, to
from tests.support.fakes import FailingSource, NoNoise

ANN = Payer("ann")
CITY = CategoryAxis(name="city", values=("a", "b", "c"))
HOUR = IntegerAxis(name="hour", low=0, high=1)
N_CELLS = 6
ROWS_MAX = 3
EVERYBODY = QueryBlock(counting())
BY_CITY = QueryBlock(counting(), Partition(("city",), np.arange(3, dtype=np.int64)))
LATE = Factor(("hour",), np.array([0, 1], dtype=np.int64))
LATE_BY_CITY = QueryBlock(counting([LATE]), Partition(("city",), np.array([0, -1, 1])))
SIGNED = QueryBlock(  # 1 in every cell of the first city, and late in the others
    LinearQuery(
        (
            Term(Fraction(1), (Factor(("city",), np.array([1, 0, 0], dtype=np.int64)),)),
            Term(Fraction(1), (LATE,)),
            Term(
                Fraction(-1),
                (Factor(("city",), np.array([1, 0, 0], dtype=np.int64)), LATE),
            ),
        )
    ),
    Partition(("city", "hour"), np.arange(6, dtype=np.int64).reshape(3, 2)),
)
BLOCKS = (EVERYBODY, BY_CITY, LATE_BY_CITY, SIGNED)
QUARTER, HALF = Weight.at_least(Fraction(1, 4)), Weight.at_least(Fraction(1, 2))

Cell = tuple[int, int]
Unit = tuple[Cell, ...]  # the cells of its rows
CELLS: tuple[Cell, ...] = tuple(product(range(3), range(2)))


def schema(rows_max: int = ROWS_MAX) -> Schema:
    return Schema(
        table="orders",
        axes=(CITY, HOUR),
        n_records_max=100_000,
        unit="person",
        rows_per_unit_max=rows_max,
    )


class Orders:
    """A `Source` of units, each with a digest of its own and the cells of its rows.

    Rows were left out of those with odd digests.
    """

    def __init__(self, units: dict[int, Unit]) -> None:
        self.units = units

    def fingerprint(self, key: bytes) -> str:
        return f"{self.units} {len(key)}"

    def rows_fingerprint(self, key: bytes) -> str:
        return f"the rows of {self.units} {len(key)}"

    def measure(self, scope: tuple[str, ...]) -> CellCounts:
        counts = Counter(levels_of(cell, scope) for unit in self.units.values() for cell in unit)
        if not scope:
            return CellCounts((), np.array([sum(counts.values())], dtype=np.int64))
        levels = np.array(list(counts), dtype=np.int64).reshape(len(counts), len(scope))
        return CellCounts(tuple(levels.T), np.array(list(counts.values()), dtype=np.int64))

    def measure_units(self, scope: tuple[str, ...]) -> UnitCells:
        pairs = sorted(
            {
                (*levels_of(cell, scope), number, digest)
                for number, (digest, unit) in enumerate(sorted(self.units.items()))
                for cell in unit
            }
        )
        table = np.array(pairs, dtype=np.int64).reshape(len(pairs), len(scope) + 2)
        *levels, numbers, digests = table.T
        return UnitCells(tuple(levels), numbers, digests, digests % 2)


def levels_of(cell: Cell, scope: tuple[str, ...]) -> tuple[int, ...]:
    return tuple(cell[("city", "hour").index(name)] for name in scope)


def counts(units: dict[int, Unit], count: UnitCount, rows_max: int = ROWS_MAX) -> list[int]:
    """The exact counts, as the gate computes them."""
    cells = Orders(units).measure_units(count.block.scope)
    return exact_unit_counts(count, count.reach(rows_max), cells, schema(rows_max))


def group_of(block: QueryBlock, cell: Cell) -> int | None:
    """The group in which a row in a cell counts, from the definition; None if in none."""
    value = Fraction(0)
    for term in block.query.terms:
        coefficient = term.scale
        for factor in term.factors:
            coefficient *= int(factor.values[levels_of(cell, factor.axes)])
        value += coefficient
    if value == 0:
        return None
    if block.partition is None:
        return 0
    label = int(block.partition.labels[levels_of(cell, block.partition.axes)])
    return None if label < 0 else label


def counted_plainly(units: dict[int, Unit], block: QueryBlock) -> list[int]:
    """How many units have a row in each group, all groups of each."""
    found = [0] * block.n_rows
    for unit in units.values():
        for group in {group_of(block, cell) for cell in unit} - {None}:
            found[int(str(group))] += 1
    return found


def all_units(rows_max: int = ROWS_MAX) -> Iterator[Unit]:
    for n_rows in range(1, rows_max + 1):
        yield from combinations_with_replacement(CELLS, n_rows)


UNITS = st.lists(st.sampled_from(CELLS), min_size=1, max_size=ROWS_MAX).map(tuple)
TABLES = st.dictionaries(st.integers(0, 2**60 - 1), UNITS, max_size=5)
ONCE = settings(
    deadline=None, max_examples=40, suppress_health_check=[HealthCheck.function_scoped_fixture]
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


@pytest.fixture
def gate(tmp_path: Path) -> Iterator[Gate]:
    with gate_on(tmp_path) as opened:
        yield opened


class gate_on:  # noqa: N801 - a context manager, as a function would be
    """The gate of a table of orders, with its ledger in a folder."""

    def __init__(self, folder: Path, noise: NoiseSource | None = None) -> None:
        self.ledger = open_ledger(folder / "orders.ledger")
        self.noise = noise or SystemNoise()

    def __enter__(self) -> Gate:
        units = {11: ((0, 0), (1, 1), (1, 1)), 12: ((0, 1),), 5: ((0, 0), (1, 0), (2, 0))}
        return open_table(self.ledger, schema(), Fraction(10), Orders(units), self.noise)

    def __exit__(self, *_: object) -> None:
        self.ledger.close()


def bought(gate: Gate, *asked: PlannedUnitCount, rows: Sequence[PlannedMeasurement] = ()) -> int:
    """What counts of units, and rows, are charged, in units; they are measured then."""
    payment = gate.charge(rows, ANN, epsilon_cap=None, statistics=asked)
    assert gate.complete(payment.seq) is not None
    return payment.units


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


def test_a_count_costs_its_weight_for_each_group_of_a_unit(gate: Gate) -> None:
    assert bought(gate, PlannedUnitCount(UnitCount(EVERYBODY, 3), QUARTER)) == QUARTER.units
    assert bought(gate, PlannedUnitCount(UnitCount(BY_CITY, 2), QUARTER)) == 2 * QUARTER.units
    assert bought(gate, PlannedUnitCount(UnitCount(BY_CITY, 9), QUARTER)) == 3 * QUARTER.units
    row = PlannedMeasurement(EVERYBODY, QUARTER)
    count = PlannedUnitCount(UnitCount(LATE_BY_CITY, 9), HALF)
    assert bought(gate, count, rows=[row]) == (3 + 2 * 2) * QUARTER.units
    assert gate.history.unit_counts.units == 10 * QUARTER.units
    assert len(gate.measurements()) == 1


def test_a_raise_costs_the_difference_and_finds_the_same_counts(tmp_path: Path) -> None:
    """Without noise every value is exact, also after a restart."""
    count = UnitCount(BY_CITY, 2)
    with gate_on(tmp_path, NoNoise()) as gate:
        assert bought(gate, PlannedUnitCount(count, QUARTER)) == 2 * QUARTER.units
        first = gate.history.unit_counts.measurements[0]
    with gate_on(tmp_path, NoNoise()) as gate:
        again = PlannedUnitCount(count, HALF, raised_from=0)
        assert bought(gate, again) == 2 * (HALF.units - QUARTER.units)
        _, raised = gate.history.unit_counts.measurements
        assert raised.supersedes == 0
        assert raised.values.tolist() == first.values.tolist()
        assert sum(raised.values) == 2 + 1 + 2
        assert set(gate.history.unit_counts.latest.values()) == {1}


def test_what_cannot_be_raised_is_refused_before_it_is_charged(gate: Gate) -> None:
    bought(gate, PlannedUnitCount(UnitCount(BY_CITY, 2), QUARTER))
    spent = gate.budget().spent
    wrong = [
        PlannedUnitCount(UnitCount(BY_CITY, 1), HALF, raised_from=0),
        PlannedUnitCount(UnitCount(EVERYBODY, 2), HALF, raised_from=0),
        PlannedUnitCount(UnitCount(BY_CITY, 2, only_cut=True), HALF, raised_from=0),
        PlannedUnitCount(UnitCount(BY_CITY, 2), QUARTER, raised_from=0),
        PlannedUnitCount(UnitCount(BY_CITY, 2), HALF, raised_from=7),
    ]
    for asked in wrong:
        with pytest.raises(StalePlan):
            gate.charge([], ANN, epsilon_cap=None, statistics=[asked])
    right = PlannedUnitCount(UnitCount(BY_CITY, 2), HALF, raised_from=0)
    with pytest.raises(ValueError, match="raised twice"):
        gate.charge([], ANN, epsilon_cap=None, statistics=[right, right])
    gate.charge([], ANN, epsilon_cap=None, statistics=[right])
    with pytest.raises(StalePlan):  # while the first waits
        gate.charge([], ANN, epsilon_cap=None, statistics=[right])
    assert gate.budget().spent == spent + 2 * (HALF.exact - QUARTER.exact)


def test_budgets_and_limits_count_them(gate: Gate) -> None:
    bought(gate, PlannedUnitCount(UnitCount(BY_CITY, 3), QUARTER))
    assert gate.history.spent_by(Subject(SubjectKind.ANALYST, "ann")) == 3 * QUARTER.units
    many = PlannedUnitCount(UnitCount(BY_CITY, 3), Weight(4 * UNITS_PER_EPSILON))
    with pytest.raises(BudgetExhausted):
        gate.charge([], ANN, epsilon_cap=None, statistics=[many])
    with pytest.raises(CostAboveCap):
        gate.charge([], ANN, epsilon_cap=QUARTER.exact, statistics=[replace(many, weight=QUARTER)])


def test_what_could_not_be_stored_is_refused_before_it_is_charged(gate: Gate) -> None:
    heavy = Factor(("hour",), np.array([0, 2**40], dtype=np.int64))
    asked = PlannedUnitCount(UnitCount(QueryBlock(counting([heavy])), 1), Weight(2**42))
    with pytest.raises(TooLarge):
        gate.charge([], ANN, epsilon_cap=None, statistics=[asked])
    assert gate.budget().spent == 0


def test_a_count_that_could_not_be_read_is_read_later_once(tmp_path: Path) -> None:
    with gate_on(tmp_path) as gate:
        broken = FailingSource(Orders({1: ((0, 0),)}), 1, "secret")
        failing = open_table(gate._ledger, schema_named("pets"), Fraction(1), broken, SystemNoise())
        asked = PlannedUnitCount(UnitCount(EVERYBODY, 1), QUARTER)
        payment = failing.charge([], ANN, epsilon_cap=None, statistics=[asked])
        with pytest.raises(SourceUnavailable):
            failing.complete(payment.seq)
        assert failing.complete_pending() == 1
        assert len(failing.history.unit_counts.measurements) == 1
        assert failing.budget().spent == QUARTER.exact


def schema_named(name: str) -> Schema:
    return Schema(
        table=name, axes=(CITY, HOUR), n_records_max=100_000, unit="person", rows_per_unit_max=3
    )


def test_the_auditor_adds_up_by_itself_and_convicts_what_is_charged_too_little(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    with gate_on(tmp_path) as gate:
        row = PlannedMeasurement(EVERYBODY, QUARTER)
        bought(gate, PlannedUnitCount(UnitCount(BY_CITY, 2), QUARTER), rows=[row])
        bought(gate, PlannedUnitCount(UnitCount(BY_CITY, 2), HALF, raised_from=0))
        (table,) = verify(gate._ledger.entries()).tables
        assert table.recomputed == table.spent == 3 * QUARTER.exact + 2 * HALF.exact
        assert table.unit_counts == 2 * HALF.exact
        assert table.exact
    cheated = tmp_path / "cheated"
    cheated.mkdir()
    monkeypatch.setattr(UnitCount, "reach", lambda _count, _rows: 1)
    with gate_on(cheated) as gate:
        bought(gate, PlannedUnitCount(UnitCount(BY_CITY, 2), QUARTER))
        problem = verify(gate._ledger.entries()).problem
    assert problem is not None
    assert "counts of units" in problem


@pytest.mark.parametrize(
    ("field", "value", "said"),
    [
        ("groups_max", 3, "for other groups"),
        ("only_cut", True, "for other groups"),
        ("only_cut", False, "does not say which"),
        ("raised_from", 1, "never made"),
        ("groups_max", 0, "groups_max"),
        ("weight_units", QUARTER.units, "smaller than the paid weight"),
        ("noise_scale", (8.0).hex(), "smaller than|no refinement"),
        ("kind", "distance", "distance|fields|field"),
    ],
)
def test_the_auditor_finds_a_raise_that_is_none(
    tmp_path: Path, field: str, value: object, said: str
) -> None:
    with gate_on(tmp_path) as gate:
        bought(gate, PlannedUnitCount(UnitCount(BY_CITY, 2), QUARTER))
        bought(gate, PlannedUnitCount(UnitCount(BY_CITY, 2), HALF, raised_from=0))
        entries = list(gate._ledger.entries())
    last = max(entry.seq for entry in entries if entry.kind == "charge")
    assert re.search(said, problem_with(entries, last, to(value, "statistics", 0, field)))
    assert_not_opened(entries, last, to(value, "statistics", 0, field))


@pytest.mark.parametrize("only_cut", [False, True])
def test_a_charge_is_read_back_as_it_was_written(gate: Gate, *, only_cut: bool) -> None:
    bought(gate, PlannedUnitCount(UnitCount(LATE_BY_CITY, 2, only_cut), QUARTER))
    (payment,) = gate.payments()
    kind, text = write(payment.charge)
    again = read_text(kind, text)
    assert write(again) == (kind, text)
    assert '"kind":"unit_count"' in text
    assert ("only_cut" in text) == only_cut
