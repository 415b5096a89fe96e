"""A clock that is or was ahead: what is refused, what an owner can correct, and windows."""

import datetime as dt
import json
from collections.abc import Iterator, Sequence
from contextlib import closing
from dataclasses import replace
from fractions import Fraction
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import NamedTuple

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from accountant.auditor.verify import verify
from accountant.ledger.charged import ChargedBlock
from accountant.ledger.clock import STEP_MAX, ClockGuard
from accountant.ledger.entries import BudgetSet, Charge, Entry, LimitSet, TableOpened
from accountant.ledger.history.payments import none_later
from accountant.ledger.ledger import Ledger
from accountant.ledger.limits import Limit, Payer, Subject, SubjectKind, Window
from accountant.ledger.mending import correct_clock
from accountant.ledger.opening import open_ledger, open_reader
from accountant.ledger.stores.sqlite_store import SqliteStore
from accountant.ledger.values import AppendOnly
from cube.measurement import UNITS_PER_EPSILON
from cube.refusals import ClockDoubtful
from tests.support.audited import rechained, rewritten, to
from tests.support.examples import examples
from tests.support.short_ledger import COUNT, NOISE, WEIGHT, appended, write_short_ledger

ANN = Subject(SubjectKind.ANALYST, "ann")
DAY_ONE = dt.datetime(2026, 11, 1, 12, tzinfo=dt.UTC)
NO_GUARD = ClockGuard(dt.timedelta(days=10**5))


def moment(day: float) -> str:
    return (DAY_ONE + dt.timedelta(days=day)).isoformat(timespec="milliseconds")


class Hands:
    """The time that a test sets."""

    def __init__(self, day: float = 0.0) -> None:
        self.day = day

    def __call__(self) -> str:
        return moment(self.day)


def begun(folder: Path, clock: Hands, guard: ClockGuard) -> Ledger:
    """A ledger of one table."""
    ledger = Ledger(SqliteStore(folder / "people.ledger"), b"k" * 32, clock, guard)
    appended(ledger, TableOpened("schema", "data", Fraction(10**6)))
    return ledger


def charge(ledger: Ledger, units: int, analyst: str = "ann") -> int | None:
    rows = (ChargedBlock(COUNT, NOISE),)
    return ledger.append(
        "people",
        lambda history: Charge(
            Payer(analyst), rows, history.units_spent, history.units_spent + units
        ),
    )


def limit(ledger: Ledger, units: int, window: Window) -> None:
    allowed = Fraction(units, UNITS_PER_EPSILON)
    appended(ledger, LimitSet(Limit(ANN, allowed, window), "owner"))


def every_entry(folder: Path) -> list[Entry]:
    with closing(open_reader(str(folder / "people.ledger"))) as reader:
        return list(reader.entries_after(0))


@pytest.fixture
def clock() -> Hands:
    return Hands()


@pytest.fixture
def ledger(tmp_path: Path, clock: Hands) -> Iterator[Ledger]:
    with begun(tmp_path, clock, NO_GUARD) as ledger:
        yield ledger


# How far ahead a clock is believed.


def test_an_entry_far_ahead_of_the_one_before_is_refused(tmp_path: Path) -> None:
    clock = Hands()
    with begun(tmp_path, clock, ClockGuard()) as ledger:
        clock.day = 26_000
        with pytest.raises(ClockDoubtful):
            ledger.check_clock()
        with pytest.raises(ClockDoubtful, match="more than 40 days after") as refused:
            charge(ledger, WEIGHT.units)
        assert refused.value.code == "clock_doubtful"
        assert "set-clock" in refused.value.explain()
        clock.day = 39.9
        ledger.check_clock()
        assert charge(ledger, WEIGHT.units) == 2, "a clock that is right again needs no mending"


def test_the_first_entry_has_none_before_it(tmp_path: Path) -> None:
    with begun(tmp_path, Hands(26_000), ClockGuard()) as ledger:
        assert ledger.last_at == moment(26_000)


def test_a_ledger_that_was_idle_goes_on_once_its_owner_says_so(tmp_path: Path) -> None:
    clock = Hands()
    begun(tmp_path, clock, ClockGuard()).close()
    clock.day = 400
    with Ledger(SqliteStore(tmp_path / "people.ledger"), b"k" * 32, clock) as ledger:
        with pytest.raises(ClockDoubtful):
            charge(ledger, WEIGHT.units)
        correct_clock(ledger, by="owner")
        assert charge(ledger, WEIGHT.units) == 3
    entries = every_entry(tmp_path)
    assert [one.at for one in entries] == [moment(0), moment(400), moment(400)]
    verdict = verify(entries)
    assert verdict.problem is None
    (note,) = verdict.notes
    assert f"owner corrected the clock from {moment(0)} to {moment(400)}" in note


def test_time_that_passed_while_a_process_ran_is_accepted() -> None:
    seconds = [0.0]
    guard = ClockGuard(elapsed=lambda: seconds[0])
    guard.note(moment(0))
    seconds[0] = 100 * 86_400.0
    assert guard.stamp(moment(139.9), moment(0)) == moment(139.9)
    with pytest.raises(ClockDoubtful):
        guard.stamp(moment(140.1), moment(0))
    guard.note(moment(0))
    assert guard.stamp(moment(139.9), moment(0)) == moment(139.9), "it is no news"
    with pytest.raises(ClockDoubtful):
        guard.stamp(moment(139.9), moment(1))  # an entry that was not there when it passed
    assert guard.stamp(moment(0), moment(1)) == moment(1)
    assert STEP_MAX.days == 40


# What was stamped with a time to come.


def test_a_clock_that_was_ahead_freezes_a_limit_until_it_is_corrected(
    ledger: Ledger, clock: Hands
) -> None:
    limit(ledger, WEIGHT.units, Window.DAY)
    clock.day = 26_000
    charge(ledger, WEIGHT.units)
    for clock.day in (1, 2, 3):
        with pytest.raises(ValueError, match="exceeds the limit"):
            charge(ledger, WEIGHT.units)
    correct_clock(ledger, by="owner")
    with pytest.raises(ValueError, match="exceeds the limit"):
        charge(ledger, WEIGHT.units)  # it was charged before now, perhaps today
    clock.day = 3.4
    with pytest.raises(ValueError, match="exceeds the limit"):
        charge(ledger, WEIGHT.units)
    clock.day = 4
    charge(ledger, WEIGHT.units)
    with pytest.raises(ValueError, match="exceeds the limit"):
        charge(ledger, WEIGHT.units)
    assert ledger.history("people").spent_by(ANN) == 2 * WEIGHT.units
    assert verify(ledger.entries()).problem is None


def test_a_corrected_ledger_is_the_same_when_it_is_opened_again(tmp_path: Path) -> None:
    path = write_short_ledger(tmp_path / "short.ledger")
    with open_ledger(path, NO_GUARD) as ledger:
        ledger._clock = lambda: moment(26_000)
        appended(ledger, BudgetSet(Fraction(2)))
        ledger._clock = lambda: moment(30)
        correct_clock(ledger, by="owner")
        appended(ledger, BudgetSet(Fraction(3)))
        position, last = ledger.position, ledger.last_at
        spendings = list(ledger.history("people").spending.by_account[ANN])
    with open_ledger(path) as again:
        assert (again.position, again.last_at) == (position, last) == (position, moment(30))
        assert list(again.history("people").spending.by_account[ANN]) == spendings
        assert again.history("people").now == moment(30)


def test_others_who_have_it_open_learn_of_the_correction(tmp_path: Path) -> None:
    path = write_short_ledger(tmp_path / "short.ledger")
    with open_ledger(path, NO_GUARD) as one, open_ledger(path) as other:
        one._clock = lambda: moment(26_000)
        appended(one, BudgetSet(Fraction(2)))
        other.refresh()
        assert other.now() == moment(26_000)
        correct_clock(other, by="owner")
        one.refresh()
        assert one.last_at == other.last_at < moment(26_000)


def test_only_a_correction_lets_time_go_back(ledger: Ledger, clock: Hands) -> None:
    for clock.day in (5, 1):
        charge(ledger, WEIGHT.units)
    correct_clock(ledger, by="owner")
    entries = list(ledger.entries())
    assert verify(entries).problem is None
    backwards = rechained([*entries[:2], replace(entries[2], at=moment(1)), *entries[3:]])
    assert "earlier than the time of the entry before" in (verify(backwards).problem or "")


@pytest.mark.parametrize(
    ("field", "value", "why"),
    [
        ("was", moment(4), "but the entry before has"),
        ("was", "soon", "not a time of the form"),
        ("by", 3, "not a text"),
    ],
)
def test_a_correction_says_what_the_time_was(
    ledger: Ledger, clock: Hands, field: str, value: object, why: str
) -> None:
    clock.day = 5
    charge(ledger, WEIGHT.units)
    clock.day = 1
    correct_clock(ledger, by="owner")
    entries = list(ledger.entries())
    forged = rewritten(entries, 3, to(value, field))
    assert why in (verify(forged).problem or "")


# Against brute force.


class Step(NamedTuple):
    """What happens at a time of the clock: a charge of so many units, or a correction."""

    day: float
    units: int | None


DAYS = st.one_of(
    st.integers(0, 12).map(float), st.integers(0, 100).map(lambda n: n / 2), st.just(26_000.0)
)
STEPS = st.lists(
    st.builds(Step, DAYS, st.none() | st.integers(WEIGHT.units, WEIGHT.units + 5)), max_size=12
)


def counted(entries: Sequence[Entry], since: str) -> int:
    """What counts since a moment, by the rule: as of its time, or of a correction behind it."""
    total = 0
    for place, entry in enumerate(entries):
        if entry.kind == "charge":
            corrected = [one.at for one in entries[place:] if one.kind == "clock_corrected"]
            body = json.loads(entry.body)
            if min([entry.at, *corrected]) >= since:
                total += body["units_after"] - body["units_before"]
    return total


@settings(max_examples=examples(60), deadline=None)
@given(steps=STEPS, window=st.sampled_from(list(Window)), last=DAYS)
def test_windows_are_what_brute_force_says_in_the_ledger_and_in_its_audit(
    steps: list[Step], window: Window, last: float
) -> None:
    clock = Hands()
    with TemporaryDirectory() as name, begun(Path(name), clock, NO_GUARD) as ledger:
        for clock.day, units in steps:
            if units is None:
                correct_clock(ledger, by="owner")
            else:
                charge(ledger, units)
        clock.day = last
        entries = list(ledger.entries())
        spent = counted(entries, window.start(ledger.now()))
        history = ledger.history("people")
        assert history.spent_by(ANN, window.start(ledger.now())) == spent
        times = [at for at, _ in history.spending.by_account.get(ANN, ())]
        assert times == sorted(times)
        limit(ledger, spent + WEIGHT.units - 1, window)
        with pytest.raises(ValueError, match="exceeds the limit"):
            charge(ledger, WEIGHT.units)
        limit(ledger, spent + WEIGHT.units, window)
        charge(ledger, WEIGHT.units)
        entries = list(ledger.entries())
    assert verify(entries).problem is None
    less = str(Fraction(spent + WEIGHT.units - 1, UNITS_PER_EPSILON))
    forged = rewritten(entries, len(entries) - 1, to(less, "epsilon"))
    assert f"entry {len(entries)}: analyst:ann spends" in (verify(forged).problem or "")


@given(
    times=st.lists(st.integers(0, 9), max_size=8).map(sorted),
    at=st.integers(-1, 10),
)
def test_no_charge_counts_at_a_later_time_than_the_correction(times: list[int], at: int) -> None:
    spendings = AppendOnly([(moment(day), 7 * n) for n, day in enumerate(times)])
    found = none_later(spendings, moment(at))
    assert list(found) == [(min(moment(day), moment(at)), 7 * n) for n, day in enumerate(times)]
