"""A stream as a ledger notes it: of a thousand users, by the day or without an end."""

from collections.abc import Iterator
from contextlib import closing, contextmanager
from dataclasses import replace
from fractions import Fraction
from pathlib import Path

from accountant.ledger.ledger import Ledger
from accountant.ledger.limits import Window
from accountant.ledger.opening import open_ledger, open_unmarked
from accountant.ledger.streams import (
    EpochBegun,
    EpochReleased,
    StreamBody,
    StreamDropped,
    StreamOpened,
    VisitsReleased,
)
from streams.counters import CounterMechanism, best_counter_mechanism
from streams.mechanism import Mechanism, best_mechanism
from tests.support.audited import Clock

MECHANISM: Mechanism = best_mechanism(Fraction(1), 1000)
DAILY = StreamOpened(
    column="user",
    universe=1000,
    n_places=1000,
    p1=MECHANISM.state.threshold,
    alpha=MECHANISM.output.threshold,
    epsilon_units=MECHANISM.epsilon_units,
    epochs=Window.DAY,
    has_departures=False,
    key="",
    budget_units=None,
    by="ann",
)
ENDLESS = replace(DAILY, epochs=Window.NEVER)
# Of what its users did, two predicates are counted too, each at the same epsilon.
WATCHED = replace(ENDLESS, predicates=("paid", "mobile"), epsilon_units=3 * ENDLESS.epsilon_units)
HASHED = replace(DAILY, universe=0, key="ab" * 16)
UNITS = DAILY.epsilon_units
COUNTERS: CounterMechanism = best_counter_mechanism(Fraction(1), 1000, 5, 4)
# It counts visits up to 5, and is released four times a day.
VISITS = replace(
    DAILY,
    p1=COUNTERS.state.threshold,
    alpha=COUNTERS.output.threshold,
    epsilon_units=COUNTERS.epsilon_units,
    levels=5,
    n_releases=4,
)
NOISY = (30, 20, -5, 0, -7)


def write_a_stream(ledger: Ledger) -> None:
    """A stream with a release, one that was dropped, and one with predicates."""
    for name, body in (
        ("visits", ENDLESS),
        ("visits", EpochBegun("all", 0, UNITS)),
        ("visits", EpochReleased("all", (-3,))),
        ("hits", HASHED),
        ("hits", StreamDropped("ann")),
        ("orders", WATCHED),
        ("orders", EpochBegun("all", 0, 3 * UNITS)),
        ("orders", EpochReleased("all", (400, -3, 77))),
    ):
        noted(ledger, name, body)


def write_visits(ledger: Ledger) -> None:
    """A stream of visits whose epoch has one release in it; its day is not over."""
    for body in (
        VISITS,
        EpochBegun(ledger.now()[:10], 0, VISITS.epsilon_units),
        VisitsReleased(ledger.now()[:10], NOISY, 2),
    ):
        noted(ledger, "visits", body)


def noted(ledger: Ledger, stream: str, body: StreamBody) -> None:
    """An entry about a stream, whatever it says."""
    ledger.append_stream(stream, lambda _book, _at: body)


@contextmanager
def ledger_on(path: Path, day: str, seconds: int = 0) -> Iterator[Ledger]:
    """A ledger that it is some day for, and some time of that day."""
    if not path.exists():
        open_ledger(path).close()
    store, key, _ = open_unmarked(str(path), None)
    clock = Clock(day)
    clock.seconds = seconds
    with closing(Ledger(store, key, clock)) as ledger:
        yield ledger
