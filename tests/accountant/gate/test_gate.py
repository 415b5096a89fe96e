"""The gate: what it measures, what it refuses, and what it charges."""

import threading
from fractions import Fraction
from pathlib import Path

import numpy as np
import pytest

from accountant.gate.gate import Gate
from accountant.gate.opening import open_table
from accountant.ledger.ledger import Ledger
from accountant.ledger.limits import Payer
from accountant.ledger.opening import open_ledger
from accountant.noise.lattice_noise import SystemNoise
from cube.axis import IntegerAxis
from cube.encoding import fingerprint
from cube.measurement import UNITS_PER_EPSILON, Weight
from cube.query import Factor, LinearQuery, QueryBlock, Term, counting
from cube.refusals import BudgetExhausted, CostAboveCap, DataChanged, LedgerMismatch, TooLarge
from cube.schema import Schema
from tests.support.fakes import KnownTable, NoNoise
from tests.support.seven_people import (
    ADULTS,
    AGE,
    BUDGET,
    BY_SEX,
    EVERYONE,
    QUARTER,
    RECORDS,
    SCHEMA,
    SEX,
    plan,
)


@pytest.fixture
def gate(ledger: Ledger, table: KnownTable) -> Gate:
    return open_table(ledger, SCHEMA, BUDGET, table, SystemNoise())


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
    with pytest.raises(ValueError, match="does not match the schema"):
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
    with pytest.raises(DataChanged, match="not the data that is recorded in its ledger"):
        open_table(ledger, SCHEMA, BUDGET, changed, SystemNoise())
    older = IntegerAxis(name="age", low=0, high=6)
    other = Schema(table="people", axes=(older, SEX), n_records_max=1000)
    with pytest.raises(LedgerMismatch, match="other columns, levels"):
        open_table(ledger, other, BUDGET, KnownTable(other, RECORDS), SystemNoise())


def test_data_gets_no_second_budget_under_another_name(ledger: Ledger, gate: Gate) -> None:
    assert gate.budget().limit == BUDGET
    renamed = Schema(table="persons", axes=(AGE, SEX), n_records_max=1000)
    with pytest.raises(LedgerMismatch, match="records the data of persons under the name people"):
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
