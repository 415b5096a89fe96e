"""Budgets that renew: what counts in a window, against brute force, and against the auditor."""

import datetime as dt
from collections.abc import Iterator
from fractions import Fraction
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from accountant.auditor.verify import verify
from accountant.ledger.entries import BudgetSet, TableOpened
from accountant.ledger.entry_json import read_text, write
from accountant.ledger.history.table_history import Renewal
from accountant.ledger.ledger import Ledger
from accountant.ledger.limits import Window
from accountant.ledger.mending import correct_clock
from accountant.ledger.opening import open_ledger
from tests.support.audited import rewritten, to
from tests.support.renewing import (
    CALENDARS,
    DAY_ONE,
    NO_GUARD,
    ONE,
    RENEWING,
    Hands,
    begun,
    charge,
    epsilon,
    is_refused,
    left,
    renewing,
    set_budget,
    text,
)


@pytest.fixture
def clock() -> Hands:
    return Hands()


@pytest.fixture
def ledger(tmp_path: Path, clock: Hands) -> Iterator[Ledger]:
    with begun(tmp_path, clock, 2, Window.QUARTER) as ledger:
        yield ledger


# Windows.


@given(
    window=st.sampled_from(RENEWING),
    at=st.datetimes(dt.datetime(2020, 1, 1), dt.datetime(2033, 1, 1)),  # noqa: DTZ001 - made so below
)
def test_a_window_ends_with_the_first_midnight_of_the_next(window: Window, at: dt.datetime) -> None:
    at = at.replace(tzinfo=dt.UTC)
    start, end = (dt.datetime.fromisoformat(one(text(at))) for one in (window.start, window.end))
    assert start <= at < end
    calendar = CALENDARS[window]
    moment = dt.timedelta(milliseconds=1)
    assert calendar(start) == calendar(at) == calendar(end - moment)
    assert calendar(start - moment) != calendar(at) != calendar(end)


def test_what_never_renews_has_no_end() -> None:
    assert (Window.NEVER.start(text(DAY_ONE)), Window.NEVER.end(text(DAY_ONE))) == ("", "")


# What an entry says.


def test_only_a_budget_that_renews_says_so() -> None:
    for body in (TableOpened("s", "d", Fraction(1)), BudgetSet(Fraction(1))):
        assert "renews" not in write(body)[1]
        assert read_text(*write(body)) == body
    for body in (
        TableOpened("s", "d", Fraction(1), renews=Window.QUARTER),
        BudgetSet(Fraction(1), Window.QUARTER),
    ):
        assert '"renews":"quarter"' in write(body)[1]
        assert read_text(*write(body)) == body


@pytest.mark.parametrize("renews", ["never", "fortnight", "", 3])
def test_a_budget_renews_after_a_window_that_ends(ledger: Ledger, renews: object) -> None:
    forged = rewritten(list(ledger.entries()), 1, to(renews, "renews"))
    assert "renews is" in (verify(forged).problem or "")


# What counts.


@pytest.mark.parametrize("window", RENEWING)
def test_the_border_of_a_window(tmp_path: Path, window: Window) -> None:
    """What is spent in its last moment is gone with it; what is spent in its first is not."""
    clock = Hands()
    with begun(tmp_path, clock, 2, window) as ledger:
        charge(ledger)
        clock.at = dt.datetime.fromisoformat(window.end(clock())) - dt.timedelta(milliseconds=1)
        charge(ledger, "pets")
        assert left(ledger) == 0
        assert is_refused(ledger)
        clock.at += dt.timedelta(milliseconds=1)
        assert left(ledger) == left(ledger, "pets") == 2 * ONE
        charge(ledger, units=2 * ONE)
        assert left(ledger, "pets") == 0
        assert is_refused(ledger, "pets")
        assert ledger.history("people").units_used_since("") == 4 * ONE
        entries = list(ledger.entries())
    assert verify(entries).problem is None
    early = rewritten(entries, len(entries), to(2 * ONE + 1 + ONE, "units_after"))
    assert f"the table's budget of one {window} of" in (verify(early).problem or "")


def test_the_auditor_convicts_a_server_that_renews_too_soon(ledger: Ledger, clock: Hands) -> None:
    charge(ledger)
    charge(ledger, "pets")
    clock.at += dt.timedelta(days=13)  # 2027
    charge(ledger)
    entries = list(ledger.entries())
    assert verify(entries).problem is None
    for renews in ("year", "quarter", "month"):
        again = renewing(entries, to(renews, "renews"))
        assert verify(again).problem is None
    never = verify(renewing(entries, lambda body: body.pop("renews"))).problem
    assert "entry 5: " in str(never)
    assert f"{3 * ONE} units are spent, more than the table's budget of {2 * ONE}" in str(never)
    week = renewing(entries, to("week", "renews"))
    assert verify(week).problem is None
    less = renewing(entries, to(str(epsilon(2 * ONE - 1)), "budget"))
    assert "entry 4: " in str(verify(less).problem)


def test_the_owner_changes_the_window_and_what_is_spent_stays_spent(
    ledger: Ledger, clock: Hands
) -> None:
    charge(ledger)
    clock.at += dt.timedelta(days=13)
    charge(ledger)
    assert left(ledger) == ONE
    set_budget(ledger, 2 * ONE, Window.NEVER)
    assert left(ledger) == 0
    set_budget(ledger, 4 * ONE, Window.YEAR)
    assert left(ledger) == 3 * ONE
    set_budget(ledger, ONE // 2, Window.QUARTER)
    assert left(ledger) == 0
    clock.at += dt.timedelta(days=90)
    assert left(ledger) == ONE // 2
    assert verify(ledger.entries()).problem is None


def test_a_clock_that_was_corrected_gives_nothing_back(ledger: Ledger, clock: Hands) -> None:
    charge(ledger)
    clock.at += dt.timedelta(days=13)
    charge(ledger, units=2 * ONE)
    clock.at -= dt.timedelta(days=13)
    assert left(ledger) == 0  # by the entries, it is 2027
    correct_clock(ledger, by="owner")
    assert left(ledger) == 0  # it is 2026, and three were spent
    assert is_refused(ledger)
    clock.at += dt.timedelta(days=13)
    charge(ledger, units=2 * ONE)
    verdict = verify(ledger.entries())
    assert verdict.problem is None
    people = verdict.tables[0]
    assert people.renewal is not None
    assert (people.spent, people.renewal.spent) == (epsilon(5 * ONE), epsilon(2 * ONE))


def test_what_is_told_of_a_budget_that_renews(ledger: Ledger, clock: Hands) -> None:
    charge(ledger)
    for days in (13, 90, 91, 92, 92):
        clock.at += dt.timedelta(days=days)
        charge(ledger, "pets")
    told = Renewal.of(ledger._replay.at_now("people", ledger.now()))
    assert told is not None
    assert (told.window, told.next_day) == (Window.QUARTER, "2028-04-01")
    assert (told.spent_in_year, told.spent_in_all) == (epsilon(5 * ONE), epsilon(6 * ONE))
    verdict = verify(ledger.entries())
    assert verdict.problem is None
    people, pets = (one.renewal for one in verdict.tables)
    assert people is not None
    assert pets is not None
    assert people.spent_in_year + pets.spent_in_year == told.spent_in_year
    assert people.spent == 0
    assert pets.spent == epsilon(ONE)


def test_what_never_renews_is_told_as_before(tmp_path: Path, clock: Hands) -> None:
    with begun(tmp_path, clock, 2, Window.NEVER) as ledger:
        assert Renewal.of(ledger._replay.at_now("people", ledger.now())) is None
        assert all(one.renewal is None for one in verify(ledger.entries()).tables)


def test_it_is_the_same_when_it_is_opened_again(tmp_path: Path) -> None:
    clock = Hands()
    with open_ledger(tmp_path / "a.ledger", NO_GUARD) as ledger:
        ledger._clock = clock
        opened = TableOpened("s", "d", epsilon(2 * ONE), "r", renews=Window.MONTH)
        ledger.append("people", lambda _history: opened)
        for days in (0, 13):
            clock.at += dt.timedelta(days=days)
            charge(ledger)
    with open_ledger(tmp_path / "a.ledger", NO_GUARD) as again:
        again._clock = clock
        assert left(again) == ONE
        assert again.history("people").units_spent == 2 * ONE
