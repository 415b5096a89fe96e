"""Budgets that renew: what counts in a window, against brute force, and against the auditor."""

import datetime as dt
import json
from collections import defaultdict
from collections.abc import Callable, Iterator, Sequence
from fractions import Fraction
from functools import partial
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import NamedTuple

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from accountant.auditor.verify import verify
from accountant.ledger.budget import Renewal
from accountant.ledger.charged import ChargedBlock
from accountant.ledger.clock import ClockGuard
from accountant.ledger.entries import BudgetSet, Charge, Entry, TableOpened
from accountant.ledger.entry_json import read_text, write
from accountant.ledger.ledger import Ledger
from accountant.ledger.limits import Payer, Window
from accountant.ledger.mending import correct_clock
from accountant.ledger.open_ledger import open_ledger
from accountant.ledger.replay import Replay
from accountant.ledger.stores.sqlite_store import SqliteStore
from accountant.ledger.table_history import TableHistory
from cube.measurement import UNITS_PER_EPSILON
from tests.support.audited import Change, rewritten, to
from tests.support.short_ledger import COUNT, NOISE, WEIGHT

NO_GUARD = ClockGuard(dt.timedelta(days=10**5))
ONE = WEIGHT.units  # what a charge adds here, at the least
DAY_ONE = dt.datetime(2026, 12, 20, 12, tzinfo=dt.UTC)
TABLES = ("people", "pets")
RENEWING = [window for window in Window if window is not Window.NEVER]

# The calendar of these tests: two moments are in one window if these are equal.
CALENDARS: dict[Window, Callable[[dt.datetime], object]] = {
    Window.DAY: lambda at: at.toordinal(),
    Window.WEEK: lambda at: at.isocalendar()[:2],
    Window.MONTH: lambda at: (at.year, at.month),
    Window.QUARTER: lambda at: (at.year, (at.month + 2) // 3),
    Window.YEAR: lambda at: at.year,
    Window.NEVER: lambda _at: None,
}


def text(at: dt.datetime) -> str:
    return at.isoformat(timespec="milliseconds")


def same(window: Window, one: str, other: str) -> bool:
    calendar = CALENDARS[window]
    return calendar(dt.datetime.fromisoformat(one)) == calendar(dt.datetime.fromisoformat(other))


class Hands:
    """The time that a test sets."""

    def __init__(self, at: dt.datetime = DAY_ONE) -> None:
        self.at = at

    def __call__(self) -> str:
        return text(self.at)


def epsilon(units: int) -> Fraction:
    return Fraction(units, UNITS_PER_EPSILON)


def begun(folder: Path, clock: Hands, n_charges: int, renews: Window) -> Ledger:
    """Two tables that share a budget of so many charges."""
    ledger = Ledger(SqliteStore(folder / "people.ledger"), b"k" * 32, clock, NO_GUARD)
    for table in TABLES:
        budget = epsilon(n_charges * ONE)
        opened = TableOpened("schema", table, budget, "rows", shared_budget="all", renews=renews)
        ledger.append(table, partial(_always, opened))
    return ledger


def _always(body: TableOpened | BudgetSet, _history: TableHistory) -> TableOpened | BudgetSet:
    return body


def charge(ledger: Ledger, table: str = "people", units: int = ONE) -> None:
    ledger.append(
        table,
        lambda history: Charge(
            Payer("ann"),
            (ChargedBlock(COUNT, NOISE),),
            history.units_spent,
            history.units_spent + units,
        ),
    )


def is_refused(ledger: Ledger, table: str = "people", units: int = ONE) -> bool:
    try:
        charge(ledger, table, units)
    except ValueError as error:
        if str(error) != "a charge beyond the table's budget":
            raise
        return True
    return False


def set_budget(ledger: Ledger, units: int, renews: Window) -> None:
    for table in TABLES:
        ledger.append(table, partial(_always, BudgetSet(epsilon(units), renews)))


def left(ledger: Ledger, table: str = "people") -> int:
    """What may be spent at the clock's time."""
    return ledger._replay.at_now(table, ledger.now()).units_left


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
    assert f"the table's budget of one {window} is" in (verify(early).problem or "")


def test_the_auditor_convicts_a_server_that_renews_too_soon(ledger: Ledger, clock: Hands) -> None:
    charge(ledger)
    charge(ledger, "pets")
    clock.at += dt.timedelta(days=13)  # 2027
    charge(ledger)
    entries = list(ledger.entries())
    assert verify(entries).problem is None
    for renews in ("year", "quarter", "month"):
        again = _renewing(entries, to(renews, "renews"))
        assert verify(again).problem is None
    never = verify(_renewing(entries, lambda body: body.pop("renews"))).problem
    assert "entry 5: " in str(never)
    assert f"{3 * ONE} units are spent, and the table's budget is {2 * ONE}" in str(never)
    week = _renewing(entries, to("week", "renews"))
    assert verify(week).problem is None
    less = _renewing(entries, to(str(epsilon(2 * ONE - 1)), "budget"))
    assert "entry 4: " in str(verify(less).problem)


def _renewing(entries: list[Entry], change: Change) -> list[Entry]:
    """The ledger with another budget in the openings of both tables."""
    for seq in (1, 2):
        entries = rewritten(entries, seq, change)
    return entries


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


# Against brute force.


class Step(NamedTuple):
    """Some days later (or earlier, by the clock), one thing happens."""

    days: float
    what: str
    table: str
    units: int
    renews: Window


STEPS = st.lists(
    st.builds(
        Step,
        st.sampled_from([0.0, 0.5, 1.0, 3.0, 12.0, 40.0, 95.0, 370.0, -1.0, -20.0, -100.0]),
        st.sampled_from(["charge"] * 6 + ["correct", "budget"]),
        st.sampled_from(TABLES),
        st.integers(ONE, 2 * ONE),
        st.sampled_from(list(Window)),
    ),
    max_size=14,
)


class Spent(NamedTuple):
    """What an entry added, and when it counts."""

    seq: int
    at: str
    units: int


def added(entries: Sequence[Entry]) -> list[Spent]:
    """Each charge's addition, at its time, or at that of a correction behind it."""
    found = []
    for place, entry in enumerate(entries):
        if entry.kind == "charge":
            corrected = [one.at for one in entries[place:] if one.kind == "clock_corrected"]
            body = json.loads(entry.body)
            units = body["units_after"] - body["units_before"]
            found.append(Spent(entry.seq, min([entry.at, *corrected]), units))
    return found


@settings(max_examples=150, deadline=None)
@given(steps=STEPS, renews=st.sampled_from(list(Window)))
def test_a_charge_is_refused_exactly_if_brute_force_says_so(
    steps: list[Step], renews: Window
) -> None:
    clock, n_charges = Hands(), 3
    with TemporaryDirectory() as name, begun(Path(name), clock, n_charges, renews) as ledger:
        allowed = n_charges * ONE
        for step in steps:
            clock.at += dt.timedelta(days=step.days)
            if step.what == "correct":
                correct_clock(ledger, by="owner")
            elif step.what == "budget":
                allowed, renews = step.units, step.renews
                set_budget(ledger, allowed, renews)
            else:
                now = ledger.now()
                counting = [
                    one.units for one in added(list(ledger.entries())) if same(renews, one.at, now)
                ]
                assert left(ledger, step.table) == max(0, allowed - sum(counting))
                would_pass = sum(counting) + step.units <= allowed
                assert is_refused(ledger, step.table, step.units) is not would_pass
        entries = list(ledger.entries())
        known = {table: ledger.history(table) for table in TABLES}
    verdict = verify(entries)
    assert verdict.problem is None
    again = Replay().read(entries)
    for table in TABLES:
        assert list(again.history(table).spending.in_all) == list(known[table].spending.in_all)
    if renews is not Window.NEVER:
        told = sum(one.renewal.spent for one in verdict.tables if one.renewal is not None)
        at = entries[-1].at
        present = [one.units for one in added(entries) if same(renews, one.at, at)]
        assert told == epsilon(sum(present))


@settings(max_examples=60, deadline=None)
@given(steps=STEPS, renews=st.sampled_from(RENEWING), n_charges=st.integers(2, 4))
def test_no_window_adds_more_than_the_budget_and_all_of_them_no_more_than_its_multiple(
    steps: list[Step], renews: Window, n_charges: int
) -> None:
    """The theorem, for a budget that stays as it is; and that a lower one would be convicted."""
    clock = Hands()
    with TemporaryDirectory() as name, begun(Path(name), clock, n_charges, renews) as ledger:
        n_refused = 0
        for step in steps:
            clock.at += dt.timedelta(days=abs(step.days))
            n_refused += is_refused(ledger, step.table, step.units)
        entries = list(ledger.entries())
        total = ledger.history("people").units_used_since("")
    sums: dict[object, int] = defaultdict(int)
    for one in added(entries):
        sums[CALENDARS[renews](dt.datetime.fromisoformat(one.at))] += one.units
    most = max(sums.values(), default=0)
    assert most <= n_charges * ONE
    assert total == sum(sums.values()) <= len(sums) * n_charges * ONE
    assert verify(entries).problem is None
    if most:
        just, less = (str(epsilon(most - short)) for short in (0, 1))
        assert verify(_renewing(entries, to(just, "budget"))).problem is None
        assert "the table's budget of one" in str(
            verify(_renewing(entries, to(less, "budget"))).problem
        )
