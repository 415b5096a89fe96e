"""The gate: what it sells, what it refuses, and what no failure brings to light."""

import gc
import threading
import types
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from fractions import Fraction
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from accountant.contraction import answer_bound, exact_answers
from accountant.gate import CellCounts, Gate, Source
from accountant.ledger import Ledger
from accountant.ledger_file import open_ledger
from accountant.limits import Payer
from accountant.noise import SystemNoise
from accountant.opening import open_table
from cube.axis import CategoryAxis, IntegerAxis
from cube.block import Partition, QueryBlock
from cube.encoding import fingerprint
from cube.measurement import UNITS_PER_EPSILON, PlannedMeasurement, Weight
from cube.query import Factor, LinearQuery, Term, counting
from cube.refusals import (
    BudgetExhausted,
    CostAboveCap,
    DataChanged,
    LedgerMismatch,
    Refused,
    SourceUnavailable,
    TooLarge,
)
from cube.schema import Schema
from tests.support.cubes import SIZES, blocks, dense_rows
from tests.support.fakes import BrokenNoise, FailingSource, KnownTable, NoNoise

AGE = IntegerAxis(name="age", low=0, high=5)
SEX = CategoryAxis(name="sex", values=("Female", "Male"))
SCHEMA = Schema(table="people", axes=(AGE, SEX), n_records_max=1000)
RECORDS = np.array([[0, 0], [1, 0], [1, 1], [5, 1], [5, 1], [3, 0], [2, 1]], dtype=np.int64)
BUDGET = Fraction(1)
QUARTER = Weight.at_least(Fraction(1, 4))
CANARY = 31_415_926_535

EVERYONE = QueryBlock(counting())
ADULTS = QueryBlock(counting([Factor(("age",), np.array([0, 0, 1, 1, 1, 1], dtype=np.int64))]))
BY_SEX = QueryBlock(ADULTS.query, Partition(("sex",), np.arange(2, dtype=np.int64)))


def plan(*blocks: QueryBlock, weight: Weight = QUARTER) -> list[PlannedMeasurement]:
    return [PlannedMeasurement(block, weight) for block in blocks]


@pytest.fixture
def ledger(tmp_path: Path) -> Iterator[Ledger]:
    with open_ledger(tmp_path / "people.ledger") as ledger:
        yield ledger


@pytest.fixture
def table() -> KnownTable:
    return KnownTable(SCHEMA, RECORDS)


@pytest.fixture
def gate(ledger: Ledger, table: KnownTable) -> Gate:
    return open_table(ledger, SCHEMA, BUDGET, table, SystemNoise())


@settings(deadline=None)
@given(blocks(whole=True), st.lists(st.integers(0, 71), max_size=30))
def test_exact_answers_are_the_rows_times_the_cells(block: QueryBlock, cells: list[int]) -> None:
    """Against dense rows, over every cell of a small cube."""
    axes = tuple(IntegerAxis(name=name, low=0, high=SIZES[name] - 1) for name in sorted(SIZES))
    schema = Schema(table="cube", axes=axes, n_records_max=30)
    sizes = [SIZES[name] for name in sorted(SIZES)]
    records = np.stack(np.unravel_index(np.array(cells, dtype=np.int64), sizes), axis=1)
    counts = KnownTable(schema, records.astype(np.int64)).measure(block.scope)
    expected = [sum((row[cell] for cell in cells), Fraction(0)) for row in dense_rows(block)]
    assert exact_answers(block, counts, schema) == expected
    assert max(map(abs, expected)) <= answer_bound(block, schema)


def test_what_is_bought_is_the_exact_answer_plus_the_noise_on_the_lattice(
    ledger: Ledger, table: KnownTable
) -> None:
    gate = open_table(ledger, SCHEMA, BUDGET, table, NoNoise())
    bought = gate.measure(plan(EVERYONE, BY_SEX), Payer("ann"), epsilon_cap=None)
    assert [list(measurement.values) for measurement in bought] == [[7.0], [1.0, 3.0]]
    assert tuple(gate.measurements()) == bought
    assert all(measurement.weight == QUARTER for measurement in bought)


def test_a_price_reads_nothing_and_charges_nothing(gate: Gate, table: KnownTable) -> None:
    price = gate.price(plan(EVERYONE, BY_SEX))
    assert price.epsilon == Fraction(1, 2)
    assert price.exact
    assert not table.scopes_read
    assert gate.budget().spent == 0
    gate.measure(plan(EVERYONE, BY_SEX), Payer("ann"), epsilon_cap=None)
    assert gate.budget().spent == price.epsilon
    assert gate.budget().left == Fraction(1, 2)
    assert gate.budget().n_measurements == 2


def test_a_budget_can_be_spent_to_the_last_unit_and_no_further(
    gate: Gate, table: KnownTable
) -> None:
    for _ in range(4):
        gate.measure(plan(EVERYONE), Payer("ann"), epsilon_cap=None)
    assert gate.budget().left == 0
    n_reads = len(table.scopes_read)
    with pytest.raises(BudgetExhausted, match=r"costs epsilon 9\.09495e-13|0\.00000") as refused:
        gate.measure(plan(EVERYONE, weight=Weight(1)), Payer("ann"), epsilon_cap=None)
    assert "people has 0 left" in refused.value.message
    assert len(table.scopes_read) == n_reads
    assert gate.budget().spent == BUDGET


def test_a_refusal_rounds_the_price_up_and_what_is_left_down(gate: Gate) -> None:
    third = Weight.at_least(Fraction(1, 3))
    gate.measure(plan(EVERYONE, weight=third), Payer("ann"), epsilon_cap=None)
    too_much = Weight.at_least(Fraction(2, 3) + Fraction(1, 10**9))
    with pytest.raises(BudgetExhausted, match=r"costs epsilon 0\.666667, .* has 0\.666666 left"):
        gate.measure(plan(EVERYONE, weight=too_much), Payer("ann"), epsilon_cap=None)


def test_a_cap_of_the_request_is_kept_to_exactly(gate: Gate, table: KnownTable) -> None:
    just_below = QUARTER.exact - Fraction(1, UNITS_PER_EPSILON)
    with pytest.raises(CostAboveCap, match=r"0\.25, more than the cap of 0\.249999"):
        gate.measure(plan(EVERYONE), Payer("ann"), epsilon_cap=just_below)
    assert not table.scopes_read
    gate.measure(plan(EVERYONE), Payer("ann"), epsilon_cap=QUARTER.exact)


def test_one_scope_is_read_once(gate: Gate, table: KnownTable) -> None:
    gate.measure(plan(BY_SEX, BY_SEX, ADULTS), Payer("ann"), epsilon_cap=None)
    assert sorted(table.scopes_read) == [("age",), ("age", "sex")]


def test_an_empty_plan_is_free(gate: Gate, table: KnownTable) -> None:
    assert gate.measure([], Payer("ann"), epsilon_cap=Fraction(0)) == ()
    assert not table.scopes_read


def test_an_answer_too_large_for_the_lattice_is_refused_before_the_charge(
    gate: Gate, table: KnownTable
) -> None:
    huge = QueryBlock(LinearQuery((Term(Fraction(2**40), ()), Term(Fraction(2**40), ()))))
    with pytest.raises(TooLarge):
        gate.measure(plan(huge), Payer("ann"), epsilon_cap=None)
    assert not table.scopes_read
    assert gate.budget().spent == 0


@pytest.mark.parametrize("axes", [("age",), ("height",)])
def test_a_block_over_other_axes_is_a_broken_plan(gate: Gate, axes: tuple[str, ...]) -> None:
    foreign = QueryBlock(counting([Factor(axes, np.arange(7, dtype=np.int64))]))
    with pytest.raises(ValueError, match="does not fit the schema"):
        gate.measure(plan(foreign), Payer("ann"), epsilon_cap=None)
    assert gate.budget().spent == 0


def test_everything_is_there_again_after_a_restart(tmp_path: Path, table: KnownTable) -> None:
    path = tmp_path / "people.ledger"
    with open_ledger(path) as ledger:
        gate = open_table(ledger, SCHEMA, BUDGET, table, SystemNoise())
        bought = gate.measure(plan(EVERYONE, BY_SEX), Payer("ann"), epsilon_cap=None)
        budget = gate.budget()
    with open_ledger(path) as ledger:
        gate = open_table(ledger, SCHEMA, BUDGET, table, SystemNoise())
        assert gate.budget() == budget
        for before, after in zip(bought, gate.measurements(), strict=True):
            assert after.lattice_values == before.lattice_values
            assert after.noise_scale == before.noise_scale
            assert fingerprint(after.block) == fingerprint(before.block)
        gate.measure(plan(EVERYONE), Payer("ann"), epsilon_cap=None)
        with pytest.raises(BudgetExhausted):
            gate.measure(plan(EVERYONE, BY_SEX), Payer("ann"), epsilon_cap=None)


def test_an_owner_may_set_another_budget_and_what_is_spent_stays_spent(
    ledger: Ledger, table: KnownTable
) -> None:
    open_table(ledger, SCHEMA, BUDGET, table, SystemNoise()).measure(
        plan(EVERYONE), Payer("ann"), epsilon_cap=None
    )
    lowered = open_table(ledger, SCHEMA, Fraction(1, 8), table, SystemNoise())
    assert (lowered.budget().spent, lowered.budget().left) == (Fraction(1, 4), Fraction(0))
    with pytest.raises(BudgetExhausted):
        lowered.measure(plan(EVERYONE), Payer("ann"), epsilon_cap=None)
    raised = open_table(ledger, SCHEMA, Fraction(1, 2), table, SystemNoise())
    raised.measure(plan(EVERYONE), Payer("ann"), epsilon_cap=None)
    assert raised.budget().left == 0


def test_other_data_or_another_schema_is_refused(ledger: Ledger, gate: Gate) -> None:
    assert gate.budget().limit == BUDGET
    changed = KnownTable(SCHEMA, RECORDS[:-1])
    with pytest.raises(DataChanged, match="not the data its ledger began with"):
        open_table(ledger, SCHEMA, BUDGET, changed, SystemNoise())
    older = IntegerAxis(name="age", low=0, high=6)
    other = Schema(table="people", axes=(older, SEX), n_records_max=1000)
    with pytest.raises(LedgerMismatch, match="other columns, levels"):
        open_table(ledger, other, BUDGET, KnownTable(other, RECORDS), SystemNoise())


def test_data_gets_no_second_budget_under_another_name(ledger: Ledger, gate: Gate) -> None:
    assert gate.budget().limit == BUDGET
    renamed = Schema(table="persons", axes=(AGE, SEX), n_records_max=1000)
    with pytest.raises(LedgerMismatch, match="knows the data of persons as people"):
        open_table(ledger, renamed, BUDGET, KnownTable(renamed, RECORDS), SystemNoise())
    others = KnownTable(renamed, RECORDS[:-1])
    assert open_table(ledger, renamed, BUDGET, others, SystemNoise()).budget().spent == 0


def test_the_order_of_columns_is_no_other_schema(ledger: Ledger, gate: Gate) -> None:
    reordered = Schema(table="people", axes=(SEX, AGE), n_records_max=2000)
    again = open_table(ledger, reordered, BUDGET, KnownTable(SCHEMA, RECORDS), SystemNoise())
    assert again.budget() == gate.budget()


def test_threads_share_one_budget(gate: Gate) -> None:
    tenth = Weight.at_least(Fraction(1, 16))
    outcomes: list[str] = []

    def ask() -> None:
        try:
            gate.measure(plan(EVERYONE, weight=tenth), Payer("ann"), epsilon_cap=None)
            outcomes.append("answered")
        except BudgetExhausted:
            outcomes.append("refused")

    threads = [threading.Thread(target=ask) for _ in range(20)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert sorted(outcomes) == ["answered"] * 16 + ["refused"] * 4
    assert gate.budget().left == 0
    assert len(gate.measurements()) == 16


def test_a_source_that_fails_leaves_a_charge_that_is_completed_and_not_made_again(
    ledger: Ledger, table: KnownTable
) -> None:
    source = FailingSource(table, 1, "the disk of the private table is on fire")
    gate = open_table(ledger, SCHEMA, BUDGET, source, NoNoise())
    with pytest.raises(SourceUnavailable) as refused:
        gate.measure(plan(BY_SEX), Payer("ann"), epsilon_cap=None)
    assert "fire" not in refused.value.explain()
    assert gate.budget().spent == Fraction(1, 4)
    assert tuple(gate.measurements()) == ()
    assert gate.complete_pending() == 1
    (found,) = gate.measurements()
    assert list(found.values) == [1.0, 3.0]
    assert gate.budget().spent == Fraction(1, 4)
    assert len(gate.measurements()) == 1
    gate.measure(plan(BY_SEX), Payer("ann"), epsilon_cap=None)
    assert gate.budget().spent == Fraction(1, 2), "asked once more, it is bought once more"


def test_a_charge_that_two_complete_at_once_is_measured_once(
    ledger: Ledger, table: KnownTable
) -> None:
    gate = open_table(ledger, SCHEMA, BUDGET, table, SystemNoise())
    payment = gate.charge(plan(BY_SEX), Payer("ann"), epsilon_cap=None)
    with ThreadPoolExecutor(8) as pool:
        list(pool.map(lambda _: gate.complete(payment.seq), range(8)))
    assert len(gate.measurements()) == 1
    assert len(table.scopes_read) == 1, "one turn, one draw"
    assert gate.complete(payment.seq) == tuple(gate.measurements())


def test_a_draw_is_kept_only_if_nobody_took_over(ledger: Ledger, table: KnownTable) -> None:
    slow = open_table(ledger, SCHEMA, BUDGET, table, SystemNoise())
    other = open_table(ledger, SCHEMA, BUDGET, table, SystemNoise())
    payment = slow.charge(plan(BY_SEX), Payer("ann"), epsilon_cap=None)
    assert other.take_over(payment.seq, 0)
    assert other.take_over(payment.seq, 0) is None, "that turn is over"
    assert slow.complete(payment.seq) is None
    assert tuple(slow.measurements()) == ()
    assert other.complete(payment.seq) == tuple(slow.measurements())
    assert len(slow.measurements()) == 1
    assert slow.take_over(payment.seq, 0) is None
    assert slow.budget().spent == QUARTER.exact


def test_what_waits_is_completed_at_the_next_opening(ledger: Ledger, table: KnownTable) -> None:
    failing = open_table(ledger, SCHEMA, BUDGET, FailingSource(table, 9, ""), NoNoise())
    with pytest.raises(SourceUnavailable):
        failing.measure(plan(BY_SEX, EVERYONE), Payer("ann"), epsilon_cap=None)
    still_failing = open_table(ledger, SCHEMA, BUDGET, FailingSource(table, 9, ""), NoNoise())
    assert tuple(still_failing.measurements()) == ()
    assert len(still_failing.history.pending) == 1
    gate = open_table(ledger, SCHEMA, BUDGET, table, NoNoise())
    assert [list(found.values) for found in gate.measurements()] == [[1.0, 3.0], [7.0]]
    assert gate.complete_pending() == 0
    assert gate.budget().spent == Fraction(1, 2)


class CanarySource:
    """A `Source` with one recognisable count in one cell, made afresh at every read."""

    def fingerprint(self, key: bytes) -> str:
        return f"the same for every key of {len(key)} bytes"

    def measure(self, scope: tuple[str, ...]) -> CellCounts:
        levels = tuple(np.array([1], dtype=np.int64) for _ in scope)
        return CellCounts(levels, np.array([CANARY], dtype=np.int64))


CANARY_SCHEMA = Schema(table="people", axes=(AGE, SEX), n_records_max=2**36)
CANARY_BYTES = [str(CANARY).encode(), CANARY.to_bytes(5, "little"), CANARY.to_bytes(5, "big")]


def shows_canary(text: bytes) -> bool:
    return any(trace in text for trace in CANARY_BYTES)


def test_the_search_for_the_canary_has_teeth() -> None:
    counts = CanarySource().measure(())
    assert shows_canary(counts.counts.tobytes())
    assert shows_canary(str(counts.counts.tolist()).encode())
    assert not shows_canary(repr(counts).encode())


def test_an_exact_count_is_in_no_file_and_no_repr(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    with open_ledger(tmp_path / "people.ledger") as ledger:
        gate = open_table(ledger, CANARY_SCHEMA, BUDGET, CanarySource(), SystemNoise())
        bought = gate.measure(plan(EVERYONE, BY_SEX), Payer("ann"), epsilon_cap=None)
        shown = [*map(repr, bought), repr(gate), repr(vars(gate)), repr(ledger._replay)]
        files = {path.name: path.read_bytes() for path in tmp_path.iterdir()}
    assert {"people.ledger", "people.ledger-wal", "people.ledger.key"} <= files.keys()
    assert not any(map(shows_canary, files.values()))
    assert not any(shows_canary(path.read_bytes()) for path in tmp_path.iterdir())
    assert not any(shows_canary(text.encode()) for text in (*shown, caplog.text))
    gc.collect()
    kept = [found for found in gc.get_objects() if isinstance(found, CellCounts)]
    assert not any(shows_canary(counts.counts.tobytes()) for counts in kept)


@pytest.mark.parametrize(
    ("source", "noise", "raised"),
    [
        (FailingSource(CanarySource(), 9, "canary"), SystemNoise(), SourceUnavailable),
        (CanarySource(), BrokenNoise(), RuntimeError),
    ],
)
def test_no_failure_carries_an_exact_count(
    ledger: Ledger, source: Source, noise: SystemNoise, raised: type[Exception]
) -> None:
    """Neither in its text, nor in what it hangs on to: causes, contexts, locals of frames."""
    gate = open_table(ledger, CANARY_SCHEMA, BUDGET, source, noise)
    with pytest.raises(raised) as failed:
        gate.measure(plan(EVERYONE), Payer("ann"), epsilon_cap=None)
    error: BaseException = failed.value
    assert error.__cause__ is None
    assert error.__context__ is None
    frames = list(frames_of(error))
    names = {frame.f_code.co_name for frame in frames}
    assert "measure" in names
    assert not names & {"_read_and_add_noise", "exact_answers", "discrete_laplace"}
    for frame in frames:
        for value in frame.f_locals.values():
            assert not isinstance(value, CellCounts)
            assert not shows_canary(repr(value).encode())
    assert gate.budget().spent == Fraction(1, 4)


def frames_of(error: BaseException) -> Iterator[types.FrameType]:
    trace = error.__traceback__
    while trace is not None:
        yield trace.tb_frame
        trace = trace.tb_next


@pytest.mark.parametrize(
    "counts",
    [
        CellCounts((), np.array([3], dtype=np.int64)),
        CellCounts((np.array([6], dtype=np.int64),), np.array([3], dtype=np.int64)),
        CellCounts((np.array([-1], dtype=np.int64),), np.array([3], dtype=np.int64)),
        CellCounts((np.array([0], dtype=np.int64),), np.array([-3], dtype=np.int64)),
        CellCounts((np.array([0], dtype=np.int64),), np.array([1001], dtype=np.int64)),
        CellCounts((np.zeros(4, dtype=np.int64),), np.full(4, 2**62, dtype=np.int64)),
    ],
)
def test_counts_of_no_possible_table_are_not_computed_with(counts: CellCounts) -> None:
    with pytest.raises(ValueError, match="a source") as raised:
        exact_answers(ADULTS, counts, SCHEMA)
    assert not any(digit in str(raised.value) for digit in "0123456789")


def test_malformed_counts_cannot_be_built() -> None:
    with pytest.raises(TypeError, match="int64"):
        CellCounts((), np.array([1], dtype=np.int32))
    with pytest.raises(ValueError, match="for each occupied cell"):
        CellCounts((np.zeros(2, dtype=np.int64),), np.zeros(3, dtype=np.int64))


requests = st.lists(
    st.tuples(
        st.sampled_from([EVERYONE, ADULTS, BY_SEX]),
        st.integers(1, 2**39).map(Weight),
        st.one_of(st.none(), st.fractions(0, 1)),
    ),
    min_size=1,
    max_size=6,
)


@settings(deadline=None)
@given(requests, st.integers(0, len(RECORDS) - 1))
def test_decisions_are_the_same_on_neighbouring_tables(
    tmp_path_factory: pytest.TempPathFactory,
    asked: list[tuple[QueryBlock, Weight, Fraction | None]],
    without: int,
) -> None:
    """Prices, refusals, what is read and what is charged: all decided without the data."""
    decided = []
    for records in (RECORDS, np.delete(RECORDS, without, axis=0)):
        table = KnownTable(SCHEMA, records)
        seen: list[object] = []
        with open_ledger(tmp_path_factory.mktemp("neighbour") / "ledger") as ledger:
            gate = open_table(ledger, SCHEMA, BUDGET, table, SystemNoise())
            for block, weight, epsilon_cap in asked:
                wanted = plan(block, weight=weight)
                seen.append(gate.price(wanted))
                try:
                    bought = gate.measure(wanted, Payer("ann"), epsilon_cap=epsilon_cap)
                    seen.append(len(bought))
                except Refused as refused:
                    seen.append((refused.code, refused.explain()))
                seen.append((gate.budget(), list(table.scopes_read)))
        decided.append(seen)
    assert decided[0] == decided[1]
