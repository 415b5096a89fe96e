"""A ledger with a year behind it, written by the real ledger and gate on tables that are known."""

import datetime as dt
from collections.abc import Iterator
from contextlib import contextmanager
from fractions import Fraction
from pathlib import Path

import numpy as np

from accountant.auditor.verdict import Verdict
from accountant.auditor.verify import verify
from accountant.gate.gate import Gate
from accountant.gate.opening import open_table
from accountant.ledger.credentials import Credential, Proof, Role
from accountant.ledger.entries import AccessGranted, AccessRevoked, Entry, LimitSet, Served, Tally
from accountant.ledger.ledger import Ledger
from accountant.ledger.limits import Limit, Payer, Subject, Window
from accountant.ledger.stores.key_file import fingerprint_key, key_beside
from accountant.ledger.stores.sqlite_store import SqliteStore
from accountant.noise.lattice_noise import SystemNoise
from cube.axis import Axis, CategoryAxis, DateAxis, IntegerAxis, MeasureAxis
from cube.measurement import PlannedMeasurement, Weight
from cube.query import Factor, LinearQuery, Partition, QueryBlock, Term, counting
from cube.schema import Schema
from tests.support.fakes import KnownTable
from tests.support.gaussian import with_gaussian_noise

SCRIPT = '<script>alert("ann")</script>'
ANN, BOB, EVE = Payer("ann", ("sales",)), Payer("bob", ("ops", "sales")), Payer(SCRIPT)
UNIT = 2**40

AXES: tuple[Axis, ...] = (
    IntegerAxis(name="age", low=18, high=90),
    CategoryAxis(name="city", values=("Oslo", "Paris", "Rome", SCRIPT), null=True, other="else"),
    DateAxis(name="since", low=dt.date(2020, 1, 1), high=dt.date(2020, 12, 31)),
    MeasureAxis(name="income", low=0, high=100, step=Fraction(1, 2)),
    CategoryAxis(name="never_asked", values=("x", "y")),
)


class Clock:
    """Time that passes a day at a time."""

    def __init__(self) -> None:
        self._now = dt.datetime(2026, 1, 5, 8, 30, tzinfo=dt.UTC)

    def __call__(self) -> str:
        self._now += dt.timedelta(hours=7, minutes=13)
        return self._now.isoformat(timespec="milliseconds")


def schema_of(table: str) -> Schema:
    return Schema(table=table, axes=AXES, n_records_max=10_000, unit="person")


def counted(axis: str, start: int, end: int) -> QueryBlock:
    return QueryBlock(counting([between(axis, start, end)]))


def between(axis: str, start: int, end: int) -> Factor:
    size = next(one.size for one in AXES if one.name == axis)
    values = np.zeros(size, dtype=np.int64)
    values[start:end] = 1
    return Factor((axis,), values)


def grouped(axis: str, *factors: Factor) -> QueryBlock:
    size = next(one.size for one in AXES if one.name == axis)
    return QueryBlock(counting(factors), Partition((axis,), np.arange(size, dtype=np.int64)))


def summed(axis: str) -> QueryBlock:
    size = next(one.size for one in AXES if one.name == axis)
    return QueryBlock(
        LinearQuery((Term(Fraction(1), (Factor((axis,), np.arange(size, dtype=np.int64)),)),))
    )


@contextmanager
def opened_ledger(path: Path) -> Iterator[Ledger]:
    store = SqliteStore(path)
    key = fingerprint_key(key_beside(store.path), may_create=True)
    with Ledger(store, key, Clock()) as ledger:
        yield ledger


def opened_gate(ledger: Ledger, table: str, budget: Fraction, seed: int = 1) -> Gate:
    schema = schema_of(table)
    draw = np.random.default_rng(seed)
    records = draw.integers(0, [axis.size for axis in AXES], size=(200, len(AXES)))
    source = KnownTable(schema, records.astype(np.int64))
    return open_table(ledger, schema, budget, source, SystemNoise())


def planned(
    block: QueryBlock, epsilon: float, raised_from: int | None = None
) -> PlannedMeasurement:
    return PlannedMeasurement(block, Weight.at_least(epsilon), raised_from)


def write_year(path: Path) -> list[Entry]:
    """Two tables, three analysts, every kind of entry; returns all that was written."""
    with opened_ledger(path) as ledger:
        people = opened_gate(ledger, "people", Fraction(1, 2))
        _grant(ledger)
        _buy(people, ANN, planned(grouped("city"), 0.03), planned(counted("age", 10, 40), 0.01))
        _serve(ledger, "people", Tally("ann", 12, 3, 3 * UNIT // 10, UNIT // 10, (4, 6, 2, 3, 0)))
        _limit(ledger, Limit(Subject.parse("analyst:bob"), Fraction(1, 5), Window.MONTH))
        _limit(ledger, Limit(Subject.parse("each_analyst"), None, Window.NEVER, Fraction(1, 4)))
        _buy(people, BOB, planned(grouped("city", between("age", 20, 50)), 0.05))
        _buy(people, BOB, planned(grouped("city"), 0.07, raised_from=0))
        _buy(people, EVE, planned(counted("since", 31, 60), 0.02))
        people = opened_gate(ledger, "people", Fraction("1.1"))
        _limit(ledger, Limit(Subject.parse("analyst:bob"), Fraction(1, 3), Window.MONTH))
        for start in range(0, 60, 5):
            _buy(people, ANN, planned(counted("age", start, start + 20), 0.011))
        _buy(people, BOB, planned(summed("income"), 0.0001))
        _serve(
            ledger,
            "people",
            Tally(SCRIPT, 1, 1, UNIT // 50, UNIT // 50, (0, 0, 0, 1, 1)),
            Tally("ann", 140, 13, UNIT, UNIT // 9, (60, 41, 37, 15, 0)),
        )
        visits = opened_gate(ledger, "visits & more", Fraction(1, 3), seed=2)
        _buy(visits, ANN, planned(counted("age", 0, 30), 0.001))
        ledger.append_access(lambda _book: AccessRevoked("c2", "owner"))
        return list(ledger.entries())


def write_unasked(path: Path) -> list[Entry]:
    """One table with a budget of nothing, which nobody asked."""
    with opened_ledger(path) as ledger:
        opened_gate(ledger, "people", Fraction(0))
        return list(ledger.entries())


def write_overspent(path: Path) -> list[Entry]:
    """One table whose budget was lowered below what is spent."""
    with opened_ledger(path) as ledger:
        gate = opened_gate(ledger, "people", Fraction(1))
        _buy(gate, ANN, planned(counted("age", 0, 9), 0.5))
        opened_gate(ledger, "people", Fraction(1, 4))
        return list(ledger.entries())


def write_gaussian(path: Path) -> list[Entry]:
    """One table on which Gaussian noise was measured."""
    with opened_ledger(path) as ledger:
        gate = opened_gate(ledger, "people", Fraction(1))
        asked = with_gaussian_noise(grouped("city"))
        gate.complete(gate.charge([], ANN, epsilon_cap=None, statistics=asked).seq)
        return list(ledger.entries())


def judged(entries: list[Entry]) -> Verdict:
    """What the auditor says of them."""
    return verify(entries, has_columns=True)


def _buy(gate: Gate, payer: Payer, *plan: PlannedMeasurement) -> None:
    gate.measure(plan, payer, epsilon_cap=None)


def _serve(ledger: Ledger, table: str, *tallies: Tally) -> None:
    body = Served("2026-01-01T00:00:00.000+00:00", tallies)
    ledger.append(table, lambda _history: body)


def _limit(ledger: Ledger, limit: Limit) -> None:
    ledger.append("people", lambda _history: LimitSet(limit, "owner"))


def _grant(ledger: Ledger) -> None:
    for name, payer, role in (("c1", ANN, Role.ANALYST), ("c2", EVE, Role.OWNER)):
        credential = Credential(
            id=name,
            payer=payer,
            role=role,
            tables=("people",),
            proof=Proof.TOKEN,
            shown_as=name * 8,
            expires="2027-01-01T00:00:00.000+00:00",
        )
        ledger.append_access(
            lambda _book, credential=credential: AccessGranted(credential, "owner")  # type: ignore[misc]  # bound now
        )
