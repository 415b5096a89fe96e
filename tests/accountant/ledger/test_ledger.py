"""The ledger: entries are read back as written, their order is checked, and nothing is lost."""

import json
from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace
from fractions import Fraction
from pathlib import Path

import pytest

from accountant.ledger.entries import BudgetSet, Charge, Measured, TableBody
from accountant.ledger.entry_json import read, write
from accountant.ledger.history.table_history import TableHistory
from accountant.ledger.limits import Payer
from accountant.ledger.opening import open_ledger
from cube.measurement import UNITS_PER_EPSILON, Weight
from cube.refusals import LedgerUnavailable
from tests.support.auditing import audited
from tests.support.short_ledger import (
    BODIES,
    CHARGE,
    NOISE,
    OPENED,
    RAISES,
    VALUES,
    WEIGHT,
    appended,
    raised_twice,
    raising,
    write_short_ledger,
)


@pytest.fixture
def path(tmp_path: Path) -> Path:
    return write_short_ledger(tmp_path / "people.ledger")


@pytest.fixture
def raised(path: Path) -> Path:
    return raised_twice(path)


@pytest.mark.parametrize("body", [*BODIES, *RAISES])
def test_an_entry_reads_back_as_it_was_written(body: TableBody) -> None:
    kind, text = write(body)
    assert write(read(kind, json.loads(text))) == (kind, text)


def test_a_ledger_replays_to_what_it_was(path: Path) -> None:
    with open_ledger(path) as ledger:
        history = ledger.history("people")
    assert history.opened == OPENED
    assert history.budget == Fraction(13, 7)
    assert history.units_spent == 2 * WEIGHT.units
    assert not history.pending
    count, by_group = history.measurements
    assert (count.lattice_values, by_group.lattice_values) == VALUES
    assert count.weight == by_group.weight == WEIGHT
    assert count.block.query.terms[0].factors[0].values.tolist() == [0, 1, 1]


def test_a_table_that_was_not_opened_has_no_history(path: Path) -> None:
    with open_ledger(path) as ledger:
        assert ledger.history("others").opened is None


def test_an_audit_adds_up_the_rows_again(path: Path) -> None:
    report = audited(path)
    assert report.problem is None
    assert report.n_entries == 4
    (table,) = report.tables
    assert table.spent == table.recomputed == Fraction(2 * WEIGHT.units, UNITS_PER_EPSILON)
    assert (table.exact, table.n_measurements, table.n_pending) == (True, 2, 0)


def test_an_audit_may_run_beside_a_server(path: Path) -> None:
    before = audited(path)
    with open_ledger(path) as ledger:
        ledger.append("people", lambda _: BudgetSet(Fraction(2)))
        report = audited(path)
        assert report.problem is None
        assert report.n_entries == before.n_entries + 1
        assert report.head != before.head
        ledger.append("people", lambda _: BudgetSet(Fraction(1)))


def test_two_processes_with_one_ledger_follow_each_other(path: Path) -> None:
    link = path.with_name("alias.ledger")
    link.symlink_to(path)
    with open_ledger(path) as one, open_ledger(link) as other:
        assert appended(one, BudgetSet(Fraction(2))) == 5
        assert other.history("people").budget == Fraction(13, 7), "not seen until it is looked for"
        assert appended(other, BudgetSet(Fraction(3))) == 6
        one.refresh()
        assert one.history("people").budget == other.history("people").budget == 3
        assert one.position == other.position


def test_entries_of_other_processes_decide_what_may_follow(path: Path) -> None:
    with open_ledger(path) as one, open_ledger(path) as other:
        appended(one, replace(CHARGE, units_before=2 * WEIGHT.units, units_after=4 * WEIGHT.units))
        seen: list[int] = []

        def charge(history: TableHistory) -> Charge:
            seen.append(history.units_spent)
            return replace(CHARGE, units_before=seen[-1], units_after=seen[-1] + 1)

        assert other.append("people", charge) == 6
        assert seen == [4 * WEIGHT.units]


def test_many_threads_write_together_and_nothing_is_lost(path: Path) -> None:
    with open_ledger(path) as ledger, ThreadPoolExecutor(16) as pool:
        numbers = pool.map(lambda n: appended(ledger, BudgetSet(Fraction(n))), range(200))
        assert sorted(filter(None, numbers)) == list(range(5, 205))
    assert audited(path).n_entries == 204


def test_a_refused_request_does_not_delay_the_others(path: Path) -> None:
    with open_ledger(path) as ledger, ThreadPoolExecutor(16) as pool:
        bodies = [BudgetSet(Fraction(n if n % 3 else -1)) for n in range(60)]
        tries = [pool.submit(appended, ledger, body) for body in bodies]
        refused = [one for one in tries if isinstance(one.exception(), ValueError)]
    assert len(refused) == 20
    assert audited(path).n_entries == 44


def test_time_never_goes_back(path: Path) -> None:
    with open_ledger(path) as ledger:
        ledger._clock = lambda: "2001-01-01T00:00:00.000+00:00"
        appended(ledger, BudgetSet(Fraction(2)))
        *_, before, last = ledger.entries()
        assert last.at == before.at


def test_closing_twice_does_no_harm_and_writing_after_it_is_an_error(path: Path) -> None:
    ledger = open_ledger(path)
    ledger.close()
    ledger.close()
    with pytest.raises(LedgerUnavailable):
        ledger.append("people", lambda _: BudgetSet(Fraction(2)))


@pytest.mark.parametrize(
    ("body", "why"),
    [
        (OPENED, "opened once"),
        (BudgetSet(Fraction(-1)), "must not be negative"),
        (Measured(3, VALUES), "not a pending charge"),
        (Measured(99, VALUES), "not a pending charge"),
        (CHARGE, "starts from 0 spent units"),
        (replace(CHARGE, units_before=2 * WEIGHT.units, units_after=0), "lowers the spent total"),
        (Charge(Payer("ann"), (), 2 * WEIGHT.units, 2 * WEIGHT.units), "pays for nothing"),
    ],
)
def test_an_entry_that_cannot_follow_is_not_written(path: Path, body: TableBody, why: str) -> None:
    with open_ledger(path) as ledger:
        with pytest.raises(ValueError, match=why):
            ledger.append("people", lambda _: body)
        assert ledger.append("people", lambda _: BudgetSet(Fraction(2))) == 5
    assert audited(path).problem is None


def test_no_entry_about_a_table_comes_before_its_opening(path: Path) -> None:
    with open_ledger(path) as ledger, pytest.raises(ValueError, match="opened once, before"):
        ledger.append("others", lambda _: CHARGE)


@pytest.mark.parametrize("values", [((1,),), ((1,), (2, 3), (4,)), ((1,), (2,))])
def test_a_measurement_has_a_value_for_every_row_that_was_charged(
    path: Path, values: tuple[tuple[int, ...], ...]
) -> None:
    with open_ledger(path) as ledger:
        spent = ledger.history("people").units_spent
        charge = replace(CHARGE, units_before=spent, units_after=2 * spent)
        seq = appended(ledger, charge) or 0
        with pytest.raises(ValueError, match=r"values for|does not match the charged rows"):
            ledger.append("people", lambda _: Measured(seq, values))


def test_raises_replay_and_cost_their_differences(raised: Path) -> None:
    with open_ledger(raised) as ledger:
        history = ledger.history("people")
    assert [found.supersedes for found in history.measurements] == [None, None, 0, 2]
    assert [place for place in range(4) if place in history.superseded] == [0, 2]
    assert history.measurements[3].weight == Weight(3 * WEIGHT.units)
    assert history.measurements[3].lattice_bits == NOISE.lattice_bits
    assert history.measurements[3].block is history.measurements[0].block
    (table,) = audited(raised).tables
    assert table.spent == table.recomputed == Fraction(4 * WEIGHT.units, UNITS_PER_EPSILON)


def test_an_entry_without_raises_is_written_as_it_was_before_there_were_any() -> None:
    kind, text = write(CHARGE)
    assert "raised_from" not in text
    charge = read(kind, json.loads(text))
    assert isinstance(charge, Charge)
    assert [charged.raised_from for charged in charge.blocks] == [None, None]


def test_a_raise_is_not_entered_while_another_of_the_same_measurement_waits(path: Path) -> None:
    with open_ledger(path) as ledger:
        ledger.append("people", lambda _: raising(2, 0, 2 * WEIGHT.units))
        with pytest.raises(ValueError, match="is pending"):
            ledger.append("people", lambda _: raising(3, 0, 3 * WEIGHT.units))
    assert audited(path).problem is None
