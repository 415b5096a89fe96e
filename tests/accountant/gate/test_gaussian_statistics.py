"""Gaussian noise at the gate: charged before it is read, released once, replayed, and audited."""

import re
from collections.abc import Callable
from fractions import Fraction
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from accountant.auditor.verify import verify
from accountant.cost.zcdp_account import GaussianAccount, best_terms
from accountant.gate.gate import Gate
from accountant.gate.opening import open_table
from accountant.ledger.charged import ChargedGaussian
from accountant.ledger.entries import Entry, Measured
from accountant.ledger.ledger import Ledger
from accountant.ledger.limits import Payer
from accountant.ledger.opening import open_ledger
from accountant.noise.lattice_noise import SystemNoise
from cube.encoding import canonical_json, decode_statistic, encode_statistic
from cube.measurement import UNITS_PER_EPSILON, GaussianTerms, PlannedMeasurement, Precision, Rho
from cube.query import Partition, QueryBlock, counting
from cube.refusals import (
    BudgetExhausted,
    CostAboveCap,
    InvalidRequest,
    SourceUnavailable,
    TooLarge,
)
from cube.statistic import Asked, Distance, PlannedStatistic
from tests.support.audited import Change, assert_not_opened, problem_with, to
from tests.support.examples import examples
from tests.support.fakes import FailingSource, KnownTable, NoNoise
from tests.support.gaussian import BILLIONTH, COUNTS, RHO, TERMS, with_gaussian_noise
from tests.support.seven_people import (
    BUDGET,
    BY_SEX,
    EVERYONE,
    QUARTER,
    SCHEMA,
    buy,
    plan,
)

ANN = Payer("ann")
FROM_NOTHING = Distance(BY_SEX, (0, 0))
ONCE = GaussianAccount(TERMS, RHO.units)
TWICE = GaussianAccount(TERMS, 2 * RHO.units)


def told(gate: Gate, *asked: Asked) -> tuple[float, ...]:
    payment = gate.charge([], ANN, epsilon_cap=None, statistics=asked)
    assert gate.complete(payment.seq) == ()
    found = gate.history.released_under(payment.seq)
    assert found is not None
    return found.values


def test_counts_and_distances_are_exact_without_noise(ledger: Ledger, table: KnownTable) -> None:
    gate = open_table(ledger, SCHEMA, BUDGET, table, NoNoise())
    (bought,) = gate.measure(plan(BY_SEX), ANN, epsilon_cap=None)
    values = told(gate, *with_gaussian_noise(COUNTS, FROM_NOTHING))
    assert values == (*bought.values, bought.values.sum())
    (counted,) = gate.history.released[-1].counts
    assert counted.block.n_rows == 2
    assert tuple(counted.values) == tuple(bought.values)
    assert counted.deviation == pytest.approx(1 / np.sqrt(2 * float(RHO.exact)))
    assert len(gate.measurements()) == 1, "they are no rows of the history"


def test_what_it_costs_is_the_accounts_and_adds_up_with_what_rows_cost(
    ledger: Ledger, table: KnownTable
) -> None:
    gate = open_table(ledger, SCHEMA, 3 * BUDGET, table, SystemNoise())
    first = gate.charge([], ANN, epsilon_cap=None, statistics=with_gaussian_noise(COUNTS))
    assert first.units == ONCE.units
    second = gate.charge(
        plan(EVERYONE),
        ANN,
        epsilon_cap=None,
        statistics=with_gaussian_noise(QueryBlock(counting())),
    )
    assert second.units == TWICE.units - ONCE.units + QUARTER.units
    history = gate.history
    assert history.gaussian == TWICE
    assert history.units_of_rows == QUARTER.units
    assert history.units_spent == TWICE.units + QUARTER.units
    mixed: list[Asked] = [
        *with_gaussian_noise(FROM_NOTHING),
        PlannedStatistic(FROM_NOTHING, QUARTER),
    ]
    third = gate.charge([], ANN, epsilon_cap=None, statistics=mixed)
    three = GaussianAccount(TERMS, 3 * RHO.units)
    assert third.units == three.units - TWICE.units + QUARTER.units
    buy(gate, *plan(BY_SEX))
    assert gate.history.units_of_rows == 3 * QUARTER.units
    verdict = verify(ledger.entries())
    assert verdict.problem is None
    (found,) = verdict.tables
    assert found.spent == found.recomputed == gate.budget().spent
    assert (found.delta, found.gaussian) == (BILLIONTH, Fraction(three.units, UNITS_PER_EPSILON))


def test_the_order_is_the_tables_and_another_delta_is_refused(
    ledger: Ledger, table: KnownTable
) -> None:
    gate = open_table(ledger, SCHEMA, BUDGET, table, SystemNoise())
    told(gate, *with_gaussian_noise(COUNTS))
    tuned = with_gaussian_noise(COUNTS, terms=GaussianTerms(BILLIONTH, Fraction(300)))
    assert gate.charge([], ANN, epsilon_cap=None, statistics=tuned).charge.terms == TERMS
    other = with_gaussian_noise(COUNTS, terms=best_terms(2 * BILLIONTH, Fraction(1)))
    with pytest.raises(InvalidRequest, match="another delta"):
        gate.charge([], ANN, epsilon_cap=None, statistics=other)


def test_what_cannot_be_paid_is_refused_before_anything_is_read(
    ledger: Ledger, table: KnownTable
) -> None:
    epsilon = Fraction(ONCE.units, UNITS_PER_EPSILON)
    gate = open_table(ledger, SCHEMA, epsilon, table, SystemNoise())
    for refusal, asked, cap in (
        (CostAboveCap, with_gaussian_noise(COUNTS), epsilon - Fraction(1, UNITS_PER_EPSILON)),
        (BudgetExhausted, with_gaussian_noise(COUNTS, FROM_NOTHING), None),
        (TooLarge, with_gaussian_noise(Distance(EVERYONE, (2**40,)), rho=Rho(2**63)), None),
        (ValueError, with_gaussian_noise(foreign()), None),
    ):
        with pytest.raises(refusal):
            gate.charge([], ANN, epsilon_cap=cap, statistics=asked)
    assert table.scopes_read == []
    assert gate.budget().spent == 0
    told(gate, *with_gaussian_noise(COUNTS))
    assert gate.budget().left == 0


def foreign() -> QueryBlock:
    return QueryBlock(counting(), Partition(("sex",), np.array([0, 1, 2])))


def test_what_could_not_be_read_is_completed_and_not_paid_again(
    ledger: Ledger, table: KnownTable
) -> None:
    gate = open_table(ledger, SCHEMA, BUDGET, FailingSource(table, 1, "fire"), NoNoise())
    payment = gate.charge([], ANN, epsilon_cap=None, statistics=with_gaussian_noise(COUNTS))
    with pytest.raises(SourceUnavailable):
        gate.complete(payment.seq)
    assert gate.history.released_under(payment.seq) is None
    assert gate.complete_pending() == 1
    assert gate.complete(payment.seq) == (), "asked again, it is told already"
    assert gate.history.units_spent == ONCE.units


def test_the_ledger_is_read_back(tmp_path: Path, table: KnownTable) -> None:
    with open_ledger(tmp_path / "people.ledger") as ledger:
        gate = open_table(ledger, SCHEMA, BUDGET, table, SystemNoise())
        values = told(gate, *with_gaussian_noise(COUNTS, FROM_NOTHING))
        buy(gate, *plan(BY_SEX))
        charged = gate.payments()[0].charge
    with open_ledger(tmp_path / "people.ledger") as ledger:
        again = open_table(ledger, SCHEMA, BUDGET, table, SystemNoise())
        assert again.history.released[0].values == values
        assert again.history.gaussian == TWICE
        assert again.payments()[0].charge.terms == charged.terms
        noises = [one.noise for one in charged.statistics if isinstance(one, ChargedGaussian)]
        read = again.payments()[0].charge.statistics
        assert [one.noise for one in read if isinstance(one, ChargedGaussian)] == noises
        assert verify(ledger.entries()).problem is None


def test_counts_are_read_as_they_were_written() -> None:
    encoded = encode_statistic(COUNTS)
    assert canonical_json(encode_statistic(decode_statistic(encoded))) == canonical_json(encoded)


def test_rows_of_fractions_cannot_be_asked_for() -> None:
    with pytest.raises(ValueError, match="must be whole numbers"):
        with_gaussian_noise(QueryBlock(counting().scaled(Fraction(1, 2))))


@pytest.mark.parametrize("released", [(), (1, 2), (1, 2, 3, 4)])
def test_a_measurement_of_other_rows_is_refused(
    ledger: Ledger, table: KnownTable, released: tuple[int, ...]
) -> None:
    gate = open_table(ledger, SCHEMA, BUDGET, table, SystemNoise())
    asked = with_gaussian_noise(COUNTS, FROM_NOTHING)
    body = Measured(gate.charge([], ANN, epsilon_cap=None, statistics=asked).seq, (), 0, released)
    with pytest.raises(ValueError, match="does not match the charged statistics"):
        ledger.append(SCHEMA.table, lambda _history: body)


def test_the_released_counts_have_the_noise_that_was_paid(
    table: KnownTable, tmp_path: Path
) -> None:
    """Mean square of 800 draws within 6 standard errors; of half the variance it is not.

    A right one fails once in some ten million runs.
    """
    with open_ledger(tmp_path / "many.ledger") as ledger:
        gate = open_table(ledger, SCHEMA, Fraction(200), table, SystemNoise())
        values = np.array(told(gate, *with_gaussian_noise(*[COUNTS] * 400))).reshape(400, 2)
    exact = np.array(told_without_noise(tmp_path, table))
    squares = (values - exact) ** 2 * 2 * float(RHO.exact)
    standard_error = (2 / squares.size) ** 0.5
    assert abs(squares.mean() - 1) < 6 * standard_error
    assert abs(squares.mean() - 2) > 6 * 2 * standard_error
    assert abs(squares.mean() - 0.5) > 6 * standard_error


def told_without_noise(folder: Path, table: KnownTable) -> tuple[float, ...]:
    with open_ledger(folder / "exact.ledger") as ledger:
        return told(
            open_table(ledger, SCHEMA, BUDGET, table, NoNoise()), *with_gaussian_noise(COUNTS)
        )


steps = st.one_of(
    st.integers(1, 2**50).map(lambda units: with_gaussian_noise(COUNTS, rho=Rho(units))),
    st.just([PlannedStatistic(FROM_NOTHING, QUARTER)]),
    st.integers(1, 2**90).map(
        lambda units: [PlannedMeasurement(BY_SEX, Precision(units), terms=TERMS)]
    ),
)


@settings(deadline=None, max_examples=examples(25))
@given(st.lists(steps, min_size=1, max_size=5))
def test_in_any_order_the_auditor_agrees_with_the_server(
    tmp_path_factory: pytest.TempPathFactory,
    bought: list[list[Asked | PlannedMeasurement]],
) -> None:
    records = np.zeros((3, 2), dtype=np.int64)
    with open_ledger(tmp_path_factory.mktemp("any") / "ledger") as ledger:
        gate = open_table(ledger, SCHEMA, Fraction(10), KnownTable(SCHEMA, records), SystemNoise())
        for asked in bought:
            rows = [one for one in asked if isinstance(one, PlannedMeasurement)]
            others = [one for one in asked if not isinstance(one, PlannedMeasurement)]
            gate.charge(rows, ANN, epsilon_cap=None, statistics=others)
        verdict = verify(ledger.entries())
        assert verdict.problem is None
        assert verdict.tables[0].recomputed == gate.budget().spent


CHARGE, TOLD = 3, 4  # entries of the ledger below
FIRST = ("statistics", 0)


def cheaper(body: dict[str, object]) -> None:
    body["units_after"] = ONCE.units


LIES: list[tuple[int, Change | Callable[[dict[str, object]], None], str]] = [
    (CHARGE, to(RHO.units - 2**30, *FIRST, "rho_units"), "smaller than the paid rho"),
    (CHARGE, to(2 * RHO.units, *FIRST, "rho_units"), "does not cover its Gaussian noise"),
    (CHARGE, to((1.0).hex(), *FIRST, "noise_scale"), "smaller than the paid rho"),
    (CHARGE, to(0, *FIRST, "rho_units"), "below 1"),
    (CHARGE, to(2**63 + 1, *FIRST, "rho_units"), "a rho of"),
    (CHARGE, to("1/1000000001", "normal", "delta"), "does not cover its Gaussian noise"),
    (CHARGE, to("1/10", "normal", "delta"), "the delta"),
    (CHARGE, to("1", "normal", "order"), "the order"),
    (CHARGE, to("4/3", "normal", "order"), "the order"),
    (CHARGE, to(str(2 * TERMS.order), "normal", "order"), "does not cover its Gaussian noise"),
    (CHARGE, lambda body: body.pop("normal"), "must have terms if it pays for Gaussian noise"),
    (CHARGE, cheaper, "does not cover its Gaussian noise"),
    (5, to("1/999999999", "normal", "delta"), "differ from the table's"),
    (5, to("300", "normal", "order"), "differ from the table's"),
    (TOLD, to([4, 2], "released"), "one number for each"),
    (TOLD, to([4, 2, 1, 1], "released"), "one number for each"),
]
FOR_THE_AUDITOR_ALONE = [
    (CHARGE, to(7, *FIRST, "weight_units"), "the field 'weight_units' is unknown"),
    (TOLD, to([4, 2, 2**63], "released"), "64 bits"),
]


@pytest.fixture
def entries(ledger: Ledger, table: KnownTable) -> list[Entry]:
    gate = open_table(ledger, SCHEMA, BUDGET, table, SystemNoise())
    told(gate, *with_gaussian_noise(COUNTS, FROM_NOTHING))
    told(gate, *with_gaussian_noise(FROM_NOTHING))
    return list(ledger.entries())


@pytest.mark.parametrize(("seq", "change", "said"), [*LIES, *FOR_THE_AUDITOR_ALONE])
def test_the_auditor_finds_a_lie_about_gaussian_noise(
    entries: list[Entry], seq: int, change: Change, said: str
) -> None:
    assert re.search(f"entry {seq}: .*{said}", problem_with(entries, seq, change))


@pytest.mark.parametrize(("seq", "change"), [(seq, change) for seq, change, _ in LIES])
def test_the_server_does_not_open_such_a_ledger_either(
    entries: list[Entry], seq: int, change: Change
) -> None:
    assert_not_opened(entries, seq, change)
