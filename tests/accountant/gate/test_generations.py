"""Generations of a table: history, cost, the gate's rows, the auditor, and the loss of a person."""

from collections.abc import Callable
from fractions import Fraction
from pathlib import Path

import numpy as np
import pytest
from numpy.typing import NDArray

from accountant.auditor.verify import verify
from accountant.gate.gate import Gate
from accountant.gate.opening import open_table
from accountant.ledger.entries import GenerationBegun, Generations
from accountant.ledger.history.raises import StalePlan
from accountant.ledger.ledger import Ledger
from accountant.ledger.opening import open_ledger
from accountant.noise.lattice_noise import SystemNoise
from cube.measurement import UNITS_PER_EPSILON, PlannedMeasurement, Weight
from cube.refusals import BudgetExhausted, DataChanged, LedgerMismatch, SourceUnavailable
from cube.schema import Schema
from cube.statistic import PlannedUnitCount, UnitCount
from tests.support.audited import assert_not_opened, problem_with, to
from tests.support.fakes import KnownTable, NoNoise
from tests.support.gaussian import RHO, TERMS, with_gaussian_noise
from tests.support.generations import (
    ANN,
    FUNDS,
    ONE,
    OTHERS,
    buy,
    check,
    entries,
    renew,
    renewed,
    spent,
)
from tests.support.growing_table import GrowingTable, opened
from tests.support.seven_people import ADULTS, BY_SEX, EVERYONE, RECORDS, SCHEMA, SEX


@pytest.fixture
def gate(ledger: Ledger, table: KnownTable) -> Gate:
    return open_table(ledger, SCHEMA, FUNDS, table, SystemNoise())


def test_what_was_spent_stays_spent_and_nothing_that_was_measured_answers(
    ledger: Ledger, gate: Gate
) -> None:
    buy(gate, ADULTS, 3)
    buy(gate, EVERYONE, 1)
    assert spent(gate) == 4
    renewed(gate, ledger)
    history = gate.history
    assert spent(gate) == 4
    assert (len(history.measurements), history.units_of_rows) == (0, 0)
    assert [len(one.measurements) for one in history.earlier] == [2]
    buy(gate, BY_SEX, 2)  # of another block than the first in its place
    with pytest.raises(StalePlan):
        buy(gate, ADULTS, 4, raised_from=0)
    buy(gate, BY_SEX, 3, raised_from=0)
    assert spent(gate) == 7
    assert len(gate.payments()) == 4
    check(ledger)


def test_the_new_rows_are_measured_and_the_old_ones_were(ledger: Ledger, table: KnownTable) -> None:
    gate = open_table(ledger, SCHEMA, FUNDS, table, NoNoise())
    buy(gate, EVERYONE, 1)
    renewed(gate, ledger)
    buy(gate, EVERYONE, 1)
    of_before, now = gate.history.earlier[0].measurements[0], gate.measurements()[0]
    assert of_before.values[0] == len(RECORDS)
    assert now.values[0] == len(OTHERS)


def test_nothing_is_measured_until_the_new_data_is_read(
    ledger: Ledger, gate: Gate, table: KnownTable
) -> None:
    buy(gate, EVERYONE, 1)
    assert renew(ledger, OTHERS)
    assert gate.lacks_rows
    n_read, position = len(table.scopes_read), ledger.position
    for source in (None, KnownTable(SCHEMA, RECORDS), KnownTable(SCHEMA, OTHERS[:2])):
        if source is not None:
            gate.read_from(source)  # not the data that the ledger says
        with pytest.raises(SourceUnavailable, match="has not read the new data yet"):
            buy(gate, ADULTS, 1)
    assert (len(table.scopes_read), ledger.position) == (n_read, position)
    gate.read_from(KnownTable(SCHEMA, OTHERS))
    assert not gate.lacks_rows
    buy(gate, ADULTS, 1)
    check(ledger)


def test_a_server_with_new_data_measures_nothing_of_the_old_generation(
    ledger: Ledger, gate: Gate
) -> None:
    """It has read the data before the ledger says so."""
    gate.read_from(KnownTable(SCHEMA, OTHERS))
    with pytest.raises(SourceUnavailable):
        buy(gate, EVERYONE, 1)
    assert renew(ledger, OTHERS)
    buy(gate, EVERYONE, 1)
    check(ledger)


def test_a_charge_is_decided_on_the_generation_that_there_is_when_it_is_written(
    tmp_path: Path,
) -> None:
    """Another process begins one between the look at the rows and the transaction."""
    with open_ledger(tmp_path / "a.ledger") as here, open_ledger(tmp_path / "a.ledger") as there:
        gate = open_table(here, SCHEMA, FUNDS, KnownTable(SCHEMA, RECORDS), SystemNoise())
        assert renew(there, OTHERS)
        assert gate.history.generations.number == 1  # as far as it has read
        with pytest.raises(SourceUnavailable):
            buy(gate, EVERYONE, 1)
        assert gate.history.generations.number == 2
        assert gate.history.units_spent == 0


def test_a_charge_that_waits_is_given_up_and_stays_paid(ledger: Ledger, gate: Gate) -> None:
    plan = [PlannedMeasurement(EVERYONE, ONE)]
    waiting = gate.charge(plan, ANN, epsilon_cap=None)
    assert renew(ledger, OTHERS)
    assert gate.complete(waiting.seq) is None
    gate.read_from(KnownTable(SCHEMA, OTHERS))
    assert gate.take_over(waiting.seq, 0) is None
    assert gate.complete_pending() == 0
    (verdict,) = verify(entries(ledger)).tables
    assert (verdict.n_pending, verdict.n_measurements) == (0, 0)
    assert spent(gate) == 1
    check(ledger)


def test_a_charge_of_the_new_generation_waits_for_a_server_that_has_its_data(
    ledger: Ledger, gate: Gate
) -> None:
    renewed(gate, ledger)
    waiting = gate.charge([PlannedMeasurement(EVERYONE, ONE)], ANN, epsilon_cap=None)
    late = Gate(ledger, SCHEMA, KnownTable(SCHEMA, RECORDS), SystemNoise())
    position = ledger.position
    with pytest.raises(SourceUnavailable):
        late.take_over(waiting.seq, 0)
    with pytest.raises(SourceUnavailable):
        late.complete_pending()
    assert ledger.position == position
    assert gate.complete(waiting.seq)
    check(ledger)


def test_nothing_happens_if_the_data_is_what_it_was(ledger: Ledger, gate: Gate) -> None:
    position = ledger.position
    assert not renew(ledger, RECORDS)
    assert ledger.position == position
    renewed(gate, ledger)
    assert not renew(ledger, OTHERS)
    renewed(gate, ledger, RECORDS)  # what there was before is another generation, and paid anew
    assert gate.history.generations.number == 3
    check(ledger)


def test_a_budget_is_one_over_all_generations(ledger: Ledger, table: KnownTable) -> None:
    gate = open_table(ledger, SCHEMA, Fraction(3, 16), table, SystemNoise())
    buy(gate, EVERYONE, 2)
    renewed(gate, ledger)
    buy(gate, EVERYONE, 1)
    renewed(gate, ledger, RECORDS)
    with pytest.raises(BudgetExhausted):
        buy(gate, EVERYONE, 1)
    check(ledger)


def test_a_server_starts_with_the_data_of_the_last_generation_alone(
    ledger: Ledger, gate: Gate
) -> None:
    buy(gate, EVERYONE, 1)
    assert renew(ledger, OTHERS)
    again = open_table(ledger, SCHEMA, FUNDS, KnownTable(SCHEMA, OTHERS), SystemNoise())
    buy(again, EVERYONE, 1)
    assert spent(again) == 2
    with pytest.raises(DataChanged) as refused:
        open_table(ledger, SCHEMA, FUNDS, KnownTable(SCHEMA, RECORDS), SystemNoise())
    assert "tacit table renew people" in (refused.value.hint or "")


@pytest.mark.parametrize("records", [RECORDS, OTHERS])
def test_data_of_any_generation_has_no_second_budget(
    ledger: Ledger, gate: Gate, records: NDArray[np.int64]
) -> None:
    renewed(gate, ledger)
    other = Schema(table="others", axes=SCHEMA.axes, n_records_max=1000)
    with pytest.raises(LedgerMismatch, match="under the name people"):
        open_table(ledger, other, FUNDS, KnownTable(other, records), SystemNoise())
    more = KnownTable(other, OTHERS[:1])
    open_table(ledger, other, FUNDS, more, SystemNoise())
    with pytest.raises(LedgerMismatch, match="under the name people"):
        renew(ledger, records, other)
    with pytest.raises(ValueError, match="under the name people"):
        ledger.append("others", lambda _: _begun(KnownTable(other, records), ledger))
    check(ledger)


def _begun(table: KnownTable, ledger: Ledger) -> GenerationBegun:
    key = ledger.key
    return GenerationBegun(table.fingerprint(key), table.rows_fingerprint(key), 0, "owner")


def test_another_declaration_is_no_new_generation(ledger: Ledger, gate: Gate) -> None:
    del gate
    narrower = Schema(table="people", axes=(SEX,), n_records_max=1000)
    with pytest.raises(LedgerMismatch, match="other columns"):
        renew(ledger, OTHERS[:, 1:], narrower)
    several = Schema(
        table="people", axes=SCHEMA.axes, n_records_max=1000, unit="who", rows_per_unit_max=3
    )
    with pytest.raises(LedgerMismatch, match="rows_per_unit_max = 1"):
        renew(ledger, OTHERS, several)
    unknown = Schema(table="strangers", axes=SCHEMA.axes, n_records_max=1000)
    with pytest.raises(LedgerMismatch, match="does not know"):
        renew(ledger, OTHERS, unknown)


def test_a_table_that_grows_has_no_generations(ledger: Ledger) -> None:
    growing = opened(ledger, GrowingTable(), 3)
    with pytest.raises(ValueError, match="grows"):
        ledger.append("orders", lambda _: GenerationBegun("data", "rows", 0, "owner"))
    with pytest.raises(TypeError):
        growing.read_from(KnownTable(SCHEMA, OTHERS))
    check(ledger)


def test_statistics_units_and_gaussian_noise_go_on(ledger: Ledger, gate: Gate) -> None:
    """The constant of Gaussian noise is paid once; counts of units are forgotten, and stay paid."""
    count = PlannedUnitCount(UnitCount(BY_SEX, 2), ONE)
    raised = PlannedUnitCount(UnitCount(BY_SEX, 2), Weight(2 * ONE.units), 0)

    def ask(*statistics: object) -> int:
        before = gate.history.units_spent
        asked = gate.charge((), ANN, epsilon_cap=None, statistics=statistics)  # type: ignore[arg-type]
        gate.complete(asked.seq)
        return gate.history.units_spent - before

    first = ask(*with_gaussian_noise(BY_SEX))
    assert ask(count) == ONE.units
    renewed(gate, ledger)
    assert not gate.history.unit_counts.latest
    with pytest.raises(StalePlan):
        ask(raised)
    assert ask(count) == ONE.units
    second = ask(*with_gaussian_noise(BY_SEX))
    assert gate.history.gaussian.terms == TERMS
    assert gate.history.gaussian.rho_units == 2 * RHO.units
    assert second < first  # without the constant
    (verdict,) = verify(entries(ledger)).tables
    assert verdict.unit_counts == Fraction(2 * ONE.units, UNITS_PER_EPSILON)
    assert verdict.gaussian == Fraction(first + second, UNITS_PER_EPSILON)
    check(ledger)


@pytest.mark.parametrize(
    ("change", "says"),
    [
        (to(1, "units_before"), "from 1 spent units"),
        (to("", "data_fingerprint"), "no fingerprint of its data"),
        (lambda body: body.pop("rows_fingerprint"), "rows_fingerprint"),
    ],
)
def test_a_lie_about_a_generation_is_found(
    ledger: Ledger, gate: Gate, change: Callable[[dict[str, object]], None], says: str
) -> None:
    buy(gate, EVERYONE, 2)
    renewed(gate, ledger)
    written = entries(ledger)
    (seq,) = [one.seq for one in written if one.kind == "generation_begun"]
    assert says in problem_with(written, seq, change)
    assert_not_opened(written, seq, change)


def test_the_same_data_is_no_generation(ledger: Ledger, gate: Gate, table: KnownTable) -> None:
    renewed(gate, ledger)
    written = entries(ledger)
    key = ledger.key

    def same(body: dict[str, object]) -> None:
        body["data_fingerprint"] = table.fingerprint(key)
        body["rows_fingerprint"] = table.rows_fingerprint(key)

    (seq,) = [one.seq for one in written if one.kind == "generation_begun"]
    assert "the same data as the one before" in problem_with(written, seq, same)
    assert_not_opened(written, seq, same)


def test_a_raise_of_an_earlier_generation_is_found(ledger: Ledger, gate: Gate) -> None:
    buy(gate, EVERYONE, 1)
    renewed(gate, ledger)
    buy(gate, EVERYONE, 2)
    written = entries(ledger)
    seq = [one.seq for one in written if one.kind == "charge"][-1]
    raised = to(0, "blocks", 0, "raised_from")
    assert "does not exist" in problem_with(written, seq, raised)
    assert_not_opened(written, seq, raised)


def test_a_charge_that_forgets_what_was_spent_before_is_found(ledger: Ledger, gate: Gate) -> None:
    """The cost of the new rows alone does not cover what the earlier ones cost."""
    buy(gate, EVERYONE, 3)
    renewed(gate, ledger)
    buy(gate, EVERYONE, 2)
    written = entries(ledger)
    seq = [one.seq for one in written if one.kind == "charge"][-1]
    assert spent(gate) == 5
    cheaper = to(4 * ONE.units, "units_after")
    assert "the rows cost" in problem_with(written, seq, cheaper)


def test_no_generation_begins_later_than_a_corrected_clock() -> None:
    known = Generations(("a", "b", "c"), ("2026-01-01", "2026-05-01", "2027-01-01"))
    assert known.corrected("2026-06-01").begun_at == ("2026-01-01", "2026-05-01", "2026-06-01")
    assert known.corrected("2026-02-01").begun_at == ("2026-01-01", "2026-02-01", "2026-02-01")
    assert known.corrected("2027-02-01") is known
    assert Generations().corrected("2026-01-01") == Generations()
