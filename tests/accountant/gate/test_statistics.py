"""Statistics that are not rows: their cost, the order of steps, and their sensitivity."""

import gc
import itertools
import re
from dataclasses import replace
from fractions import Fraction
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from accountant.auditor.verify import verify
from accountant.cost.row_cost import profile_of
from accountant.exact.choices import Contingency
from accountant.exact.exact_answers import distance_bound, exact_answers, exact_distance
from accountant.gate.gate import Gate
from accountant.gate.opening import open_table
from accountant.ledger.entries import Entry, Measured
from accountant.ledger.ledger import Ledger
from accountant.ledger.limits import Payer
from accountant.ledger.opening import open_ledger
from accountant.noise.lattice_noise import SystemNoise
from accountant.source import CellCounts
from cube.axis import CategoryAxis
from cube.encoding import canonical_json, decode_statistic, encode_statistic
from cube.measurement import Weight
from cube.query import Factor, LinearQuery, Partition, QueryBlock, Term, counting
from cube.refusals import BudgetExhausted, SourceUnavailable, TooLarge
from cube.statistic import Choice, ChoiceCandidate, Distance, PlannedStatistic, Score
from tests.accountant.gate.test_secrecy import CANARY_SCHEMA, CanarySource, frames_of, shows_canary
from tests.support.audited import Change, rewritten, to
from tests.support.fakes import FailingSource, KnownTable, NoNoise
from tests.support.seven_people import BUDGET, BY_SEX, EVERYONE, QUARTER, SCHEMA, plan

ANN = Payer("ann")
FROM_NOTHING = Distance(BY_SEX, (0,) * BY_SEX.n_rows)
WHICH = Choice(
    Score.DISTANCE,
    (
        Partition(("age",), np.arange(6, dtype=np.int64)),
        Partition(("sex",), np.arange(2, dtype=np.int64)),
    ),
    (ChoiceCandidate(0, (1,)), ChoiceCandidate(1, (0,))),
)


def asked(*statistics: Distance | Choice, weight: Weight = QUARTER) -> list[PlannedStatistic]:
    return [PlannedStatistic(one, weight) for one in statistics]


def told(gate: Gate, *statistics: Distance | Choice) -> tuple[float, ...]:
    payment = gate.charge([], ANN, epsilon_cap=None, statistics=asked(*statistics))
    assert gate.complete(payment.seq) == ()
    found = gate.history.released_under(payment.seq)
    assert found is not None
    return found.values


@pytest.mark.parametrize("reference", [(0, 0), (1, 3), (10, -4)])
def test_a_distance_is_what_the_rows_differ_from_the_reference(
    ledger: Ledger, table: KnownTable, reference: tuple[int, int]
) -> None:
    gate = open_table(ledger, SCHEMA, BUDGET, table, NoNoise())
    (bought,) = gate.measure(plan(BY_SEX), ANN, epsilon_cap=None)
    found = told(gate, Distance(BY_SEX, reference))
    assert found == (np.abs(bought.values - np.array(reference)).sum(),)


def test_a_distance_costs_what_its_rows_would_and_is_no_row_of_the_history(
    ledger: Ledger, table: KnownTable
) -> None:
    gate = open_table(ledger, SCHEMA, BUDGET, table, SystemNoise())
    price = gate.price(plan(BY_SEX))
    payment = gate.charge([], ANN, epsilon_cap=None, statistics=asked(FROM_NOTHING))
    assert payment.units == price.units_after - price.units_before
    assert gate.complete(payment.seq) == ()
    assert tuple(gate.measurements()) == ()
    assert gate.complete(payment.seq) == (), "asked again, it is history"
    assert gate.budget().spent == price.epsilon


def test_a_choice_costs_every_cell_its_weight(ledger: Ledger, table: KnownTable) -> None:
    gate = open_table(ledger, SCHEMA, BUDGET, table, SystemNoise())
    (place,) = told(gate, WHICH)
    assert place in (0, 1)
    assert gate.budget().spent == QUARTER.exact
    gate.charge(plan(EVERYONE), ANN, epsilon_cap=None)
    assert gate.budget().spent == 2 * QUARTER.exact


def test_what_cannot_be_paid_or_read_is_refused_before_anything_is_read(
    ledger: Ledger, table: KnownTable
) -> None:
    gate = open_table(ledger, SCHEMA, QUARTER.exact, table, SystemNoise())
    too_much = asked(FROM_NOTHING, WHICH)
    with pytest.raises(BudgetExhausted):
        gate.charge([], ANN, epsilon_cap=None, statistics=too_much)
    foreign = Distance(QueryBlock(counting(), Partition(("sex",), np.array([0, 1, 2]))), (0, 0, 0))
    with pytest.raises(ValueError, match="does not match the schema"):
        gate.charge([], ANN, epsilon_cap=None, statistics=asked(foreign))
    huge = Distance(QueryBlock(counting()), (2**40,))
    with pytest.raises(TooLarge):
        gate.charge(
            [], ANN, epsilon_cap=None, statistics=[PlannedStatistic(huge, Weight(2**38 * 1000))]
        )
    with pytest.raises(ValueError, match="pays for nothing"):
        gate.charge([], ANN, epsilon_cap=None)
    assert table.scopes_read == []
    assert gate.budget().spent == 0


def test_a_statistic_that_could_not_be_read_is_completed_and_not_paid_again(
    ledger: Ledger, table: KnownTable
) -> None:
    gate = open_table(ledger, SCHEMA, BUDGET, FailingSource(table, 1, "fire"), NoNoise())
    payment = gate.charge([], ANN, epsilon_cap=None, statistics=asked(FROM_NOTHING, WHICH))
    with pytest.raises(SourceUnavailable):
        gate.complete(payment.seq)
    assert gate.history.released_under(payment.seq) is None
    assert gate.complete_pending() == 1
    found = gate.history.released_under(payment.seq)
    assert found is not None
    assert found.values[0] == 4
    assert gate.budget().spent == payment.charge.units_after * Fraction(1, 2**40)


def test_the_ledger_is_read_back_with_its_statistics(tmp_path: Path, table: KnownTable) -> None:
    with open_ledger(tmp_path / "people.ledger") as ledger:
        gate = open_table(ledger, SCHEMA, BUDGET, table, SystemNoise())
        values = told(gate, FROM_NOTHING, WHICH)
        spent = gate.budget().spent
    with open_ledger(tmp_path / "people.ledger") as ledger:
        again = open_table(ledger, SCHEMA, BUDGET, table, SystemNoise())
        (found,) = again.history.released
        assert found.values == values
        assert again.budget().spent == spent
        assert verify(ledger.entries()).problem is None


@pytest.mark.parametrize("released", [(), (1,), (3, 2), (3, -1), (3, 1, 0)])
def test_a_measurement_of_other_statistics_is_refused(
    ledger: Ledger, table: KnownTable, released: tuple[int, ...]
) -> None:
    gate = open_table(ledger, SCHEMA, BUDGET, table, SystemNoise())
    payment = gate.charge([], ANN, epsilon_cap=None, statistics=asked(FROM_NOTHING, WHICH))
    body = Measured(payment.seq, (), 0, released)
    with pytest.raises(ValueError, match=r"does not match the charged statistics|does not exist"):
        ledger.append(SCHEMA.table, lambda _history: body)


@pytest.mark.parametrize("statistic", [FROM_NOTHING, WHICH])
def test_a_statistic_is_read_as_it_was_written(statistic: Distance | Choice) -> None:
    encoded = encode_statistic(statistic)
    assert canonical_json(encode_statistic(decode_statistic(encoded))) == canonical_json(encoded)


blocks = st.tuples(
    st.lists(st.integers(-3, 3), min_size=6, max_size=6).filter(any),
    st.lists(st.integers(-1, 2), min_size=6, max_size=6).filter(
        lambda labels: max(labels) >= 0 and {*range(max(labels) + 1)} <= {*labels}
    ),
)


@given(blocks, st.lists(st.integers(0, 4), min_size=6, max_size=6), st.data())
def test_one_record_moves_a_distance_by_no_more_than_its_rows_cost_its_cell(
    made: tuple[list[int], list[int]], counts: list[int], data: st.DataObject
) -> None:
    """What proofs/gate.md says of distances, on a table of six cells, for every cell."""
    coefficients, labels = (np.array(one).reshape(3, 2) for one in made)
    factor = Factor(("age", "sex"), coefficients)
    query = LinearQuery((Term(Fraction(1), (factor,)),)).primitive()[0]
    block = QueryBlock(query, Partition(("age", "sex"), labels))
    numbers = data.draw(st.lists(st.integers(-9, 9), min_size=block.n_rows, max_size=block.n_rows))
    distance = Distance(block, tuple(numbers))
    (part,) = profile_of(block).parts
    at = np.zeros((3, 2), dtype=np.int64)
    schema = replace(SCHEMA, axes=(narrow("age", 3), narrow("sex", 2)))
    for row, column in itertools.product(range(3), range(2)):
        at[:] = 0
        at[row, column] = 1
        before = np.array(counts).reshape(3, 2)
        moved = [
            exact_distance(distance, cells_of(table), schema) for table in (before, before + at)
        ]
        exact = exact_answers(block, cells_of(at), schema)
        assert abs(moved[1] - moved[0]) <= sum(map(abs, exact)) <= part.bound
        assert max(moved) <= distance_bound(distance, schema)


def narrow(name: str, size: int) -> CategoryAxis:
    return CategoryAxis(name=name, values=tuple(map(str, range(size))))


def cells_of(table: np.ndarray) -> CellCounts:
    levels = tuple(np.ascontiguousarray(axis) for axis in np.nonzero(table))
    return CellCounts(levels, table[levels].astype(np.int64))


def test_the_released_distance_has_the_noise_that_was_paid(
    table: KnownTable, tmp_path: Path
) -> None:
    """Mean magnitude of 400 draws within 6 standard errors of the scale; twice the scale is not.

    A right one fails once in fifty million runs.
    """
    n_draws, many = 400, [FROM_NOTHING] * 400
    with open_ledger(tmp_path / "many.ledger") as ledger:
        gate = open_table(ledger, SCHEMA, Fraction(200), table, SystemNoise())
        noise = np.abs(np.array(told(gate, *many)) - 4.0)
    scale = 1 / float(QUARTER.exact)
    standard_error = scale / n_draws**0.5
    assert abs(noise.mean() - scale) < 6 * standard_error
    assert abs(noise.mean() - 2 * scale) > 6 * standard_error


CHARGE, TOLD = 3, 4  # entries of the ledger below
DISTANCE, CHOICE = ("statistics", 0), ("statistics", 1)

LIES: list[tuple[int, Change, str]] = [
    (CHARGE, to(QUARTER.units - 1, *DISTANCE, "weight_units"), "smaller than the paid weight"),
    (CHARGE, to(2 * QUARTER.units, *DISTANCE, "weight_units"), "the rows cost"),
    (CHARGE, to(2 * QUARTER.units, *CHOICE, "weight_units"), "the rows cost"),
    (CHARGE, to(0, *CHOICE, "weight_units"), "below 1"),
    (CHARGE, to(2**52 + 1, *CHOICE, "weight_units"), "a weight of"),
    (CHARGE, to([], "statistics"), "pays for nothing"),
    (CHARGE, to("guess", *DISTANCE, "kind"), "the statistic"),
    (CHARGE, to([0], *DISTANCE, "reference"), "exactly one reference number"),
    (CHARGE, to([0, 2**41], *DISTANCE, "reference"), "exactly one reference number"),
    (CHARGE, to("Q", *CHOICE, "score"), "score"),
    (CHARGE, to([], *CHOICE, "candidates"), "a choice has 0 candidates"),
    (CHARGE, to([[0, 0], [1, 0]], *CHOICE, "candidates"), "two views of one axis"),
    (CHARGE, to([[0, 1], [0, 1]], *CHOICE, "candidates"), "listed twice"),
    (CHARGE, to([[0, 7], [1, 0]], *CHOICE, "candidates"), "views that do not exist"),
    (CHARGE, to([[0], [1, 0]], *CHOICE, "candidates"), "must be sorted and distinct"),
    (CHARGE, to([1, -1, 1, 0], *CHOICE, "views", 1, "runs"), "must cover every level of one axis"),
    (TOLD, to([4, 2], "released"), "does not exist"),
    (TOLD, to([4, -1], "released"), "does not exist"),
    (TOLD, to([4], "released"), "one number for each statistic"),
    (TOLD, to([4, 1, 1], "released"), "one number for each statistic"),
    (TOLD, to([2**63, 1], "released"), "64 bits"),
]


@pytest.fixture
def entries(ledger: Ledger, table: KnownTable) -> list[Entry]:
    told(open_table(ledger, SCHEMA, BUDGET, table, SystemNoise()), FROM_NOTHING, WHICH)
    return list(ledger.entries())


def test_the_auditor_reads_statistics(entries: list[Entry]) -> None:
    verdict = verify(entries)
    assert verdict.problem is None
    assert verdict.tables[0].spent == verdict.tables[0].recomputed == 2 * QUARTER.exact


@pytest.mark.parametrize(("seq", "change", "said"), LIES)
def test_the_auditor_finds_a_lie_about_a_statistic(
    entries: list[Entry], seq: int, change: Change, said: str
) -> None:
    problem = verify(rewritten(entries, seq, change)).problem
    assert problem is not None
    assert re.search(f"entry {seq}: .*{said}", problem)


def test_a_statistic_leaves_no_exact_count_anywhere(tmp_path: Path) -> None:
    """Of a table with one recognisable count: not in a file, nor in what is kept in memory."""
    exact = Distance(EVERYONE, (0,))
    with open_ledger(tmp_path / "people.ledger") as ledger:
        gate = open_table(ledger, CANARY_SCHEMA, BUDGET, CanarySource(), SystemNoise())
        told(gate, exact, WHICH)
        shown = [repr(gate), repr(vars(gate)), repr(ledger._replay), repr(gate.history.released[0])]
        files = [path.read_bytes() for path in tmp_path.iterdir()]
    assert not any(map(shows_canary, files))
    assert not any(shows_canary(text.encode()) for text in shown)
    gc.collect()
    kept = [found for found in gc.get_objects() if isinstance(found, CellCounts | Contingency)]
    assert not any(shows_canary(one.counts.tobytes()) for one in kept)


def test_a_statistic_that_fails_shows_nothing(ledger: Ledger) -> None:
    source = FailingSource(CanarySource(), 9, "canary")
    gate = open_table(ledger, CANARY_SCHEMA, BUDGET, source, SystemNoise())
    payment = gate.charge([], ANN, epsilon_cap=None, statistics=asked(FROM_NOTHING, WHICH))
    with pytest.raises(SourceUnavailable) as failed:
        gate.complete(payment.seq)
    assert failed.value.__cause__ is None
    assert failed.value.__context__ is None
    for frame in frames_of(failed.value):
        for value in frame.f_locals.values():
            assert not isinstance(value, CellCounts)
            assert not shows_canary(repr(value).encode())
