"""Two tables that share a budget which renews, under a clock that a test sets."""

import datetime as dt
from collections.abc import Callable
from fractions import Fraction
from functools import partial
from pathlib import Path

from accountant.ledger.charged import ChargedBlock
from accountant.ledger.clock import ClockGuard
from accountant.ledger.entries import BudgetSet, Charge, Entry, TableOpened
from accountant.ledger.history.table_history import TableHistory
from accountant.ledger.ledger import Ledger
from accountant.ledger.limits import Payer, Window
from accountant.ledger.stores.sqlite_store import SqliteStore
from cube.measurement import UNITS_PER_EPSILON
from tests.support.audited import Change, rewritten
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
        if str(error) != "the charge exceeds the table's budget":
            raise
        return True
    return False


def set_budget(ledger: Ledger, units: int, renews: Window) -> None:
    for table in TABLES:
        ledger.append(table, partial(_always, BudgetSet(epsilon(units), renews)))


def left(ledger: Ledger, table: str = "people") -> int:
    """What may be spent at the clock's time."""
    return ledger._replay.at_now(table, ledger.now()).units_left


def renewing(entries: list[Entry], change: Change) -> list[Entry]:
    """The ledger with another budget in the openings of both tables."""
    for seq in (1, 2):
        entries = rewritten(entries, seq, change)
    return entries
