"""Budgets that renew, against sums over a calendar: whatever happens, in whichever order."""

import datetime as dt
import json
from collections import defaultdict
from collections.abc import Sequence
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import NamedTuple

from hypothesis import given, settings
from hypothesis import strategies as st

from accountant.auditor.verify import verify
from accountant.ledger.entries import Entry
from accountant.ledger.history.replay import Replay
from accountant.ledger.limits import Window
from accountant.ledger.mending import correct_clock
from tests.support.audited import to
from tests.support.examples import examples
from tests.support.renewing import (
    CALENDARS,
    ONE,
    RENEWING,
    TABLES,
    Hands,
    begun,
    epsilon,
    is_refused,
    left,
    renewing,
    same,
    set_budget,
)


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


@settings(max_examples=examples(150), deadline=None)
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


@settings(max_examples=examples(60), deadline=None)
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
        assert verify(renewing(entries, to(just, "budget"))).problem is None
        assert "the table's budget of one" in str(
            verify(renewing(entries, to(less, "budget"))).problem
        )
