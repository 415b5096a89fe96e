"""A ledger with an entry of every kind, made by the real gate; and ways to lie in one."""

import json
from collections.abc import Callable, Sequence
from dataclasses import replace
from fractions import Fraction
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from accountant.auditor.verify import verify
from accountant.gate.gate import Gate
from accountant.gate.opening import open_table
from accountant.ledger.credentials import Credential, Proof, Role, SealedVerifier
from accountant.ledger.entries import (
    GENESIS,
    AccessGranted,
    AccessRevoked,
    BudgetSet,
    Entry,
    LimitSet,
    Served,
    Tally,
    chained_digest,
)
from accountant.ledger.history.replay import Replay
from accountant.ledger.ledger import Ledger
from accountant.ledger.limits import Limit, Payer, Subject, SubjectKind, Window
from accountant.ledger.opening import open_ledger
from accountant.noise.lattice_noise import SystemNoise
from cube.encoding import canonical_json
from cube.measurement import PlannedMeasurement, Weight
from cube.query import Factor, Partition, QueryBlock, counting
from cube.schema import Schema
from tests.support.fakes import KnownTable
from tests.support.seven_people import ADULTS, AGE, BY_SEX, EVERYONE, RECORDS
from tests.support.seven_people import SCHEMA as PEOPLE

PETS = Schema(table="pets", axes=(AGE,), n_records_max=1000)
WEIGHT = Weight(2**36)

CHILDREN = QueryBlock(
    counting([Factor(("age",), np.array([1, 1, 0, 0, 0, 0], dtype=np.int64))]),
    Partition(("sex",), np.array([-1, 0], dtype=np.int64)),
)
ANN, BOB = Payer("ann", ("sales",)), Payer("bob")
Change = Callable[[dict[str, Any]], None]


class Clock:
    """A clock that a test turns; a second passes at every look."""

    def __init__(self, day: str = "2026-11-20") -> None:
        self.day = day
        self.seconds = 0

    def __call__(self) -> str:
        self.seconds += 1
        hours, rest = divmod(self.seconds, 3600)
        return f"{self.day}T{hours:02}:{rest // 60:02}:{rest % 60:02}.000+00:00"


def limit(subject: Subject, epsilon: str | None, per_query: str | None = None) -> LimitSet:
    """A limit for a day."""
    limits = [None if text is None else Fraction(text) for text in (epsilon, per_query)]
    return LimitSet(Limit(subject, limits[0], Window.DAY, limits[1]), by="owner")


def credential(name: str, shown_as: str, verifier: SealedVerifier | None = None) -> Credential:
    return Credential(
        id=name,
        payer=BOB,
        role=Role.ANALYST,
        tables=("people",),
        proof=Proof.TOKEN,
        shown_as=shown_as,
        expires="2027-01-01T00:00:00.000+00:00",
        verifier=verifier,
    )


def buy(gate: Gate, payer: Payer, *blocks: QueryBlock, raised_from: int | None = None) -> None:
    """Measure blocks at `WEIGHT`; twice that, for what was measured before."""
    weight = WEIGHT if raised_from is None else Weight(2 * WEIGHT.units)
    plan = [PlannedMeasurement(block, weight, raised_from) for block in blocks]
    gate.measure(plan, payer, epsilon_cap=None)


def append(ledger: Ledger, table: str, body: Any) -> None:
    ledger.append(table, lambda _history: body)


def write_ledger(path: Path) -> None:
    """A ledger with an entry of every kind and two tables; one charge waits at its end."""
    clock = Clock()
    with open_ledger(path) as opened:
        key, store = opened.key, opened._store
        ledger = Ledger(store, key, clock)
        people = open_table(ledger, PEOPLE, Fraction(1), KnownTable(PEOPLE, RECORDS), SystemNoise())
        pets = open_table(
            ledger, PETS, Fraction(1, 3), KnownTable(PETS, RECORDS[:, :1]), SystemNoise()
        )
        password = credential("b-1", "ab" * 32, SealedVerifier("cd" * 32, "ef" * 32))
        ledger.append_access(lambda _book: AccessGranted(password, "owner"))
        append(ledger, "people", limit(Subject(SubjectKind.GROUP, "sales"), "1/2", "3/16"))
        append(ledger, "people", limit(Subject(SubjectKind.EACH_ANALYST), "9/128"))
        append(ledger, "people", limit(Subject(SubjectKind.ANALYST, "ann"), None, "1/4"))
        buy(people, ANN, EVERYONE, BY_SEX)
        buy(pets, BOB, ADULTS)
        buy(people, BOB, ADULTS)
        buy(people, ANN, ADULTS, raised_from=2)
        append(ledger, "people", BudgetSet(Fraction(3, 7)))
        clock.day, clock.seconds = "2026-11-21", 0
        buy(people, BOB, CHILDREN)
        buy(people, BOB, ADULTS)
        tally = Tally("ann", 3, 1, 2**35, 2**36, (0, 0, 1, 3, 0))
        append(ledger, "people", Served("2026-11-20T00:00:00.000+00:00", (tally,)))
        ledger.append_access(lambda _book: AccessRevoked("b-1", "owner"))
        ledger.append_access(lambda _book: AccessGranted(credential("b-2", "ab" * 32), "owner"))
        waiting = people.charge([PlannedMeasurement(EVERYONE, Weight(4))], BOB, epsilon_cap=None)
        assert people.take_over(waiting.seq, 0)
        people.complete(waiting.seq)
        people.charge([PlannedMeasurement(EVERYONE, Weight(3))], BOB, epsilon_cap=None)


def rechained(entries: Sequence[Entry]) -> list[Entry]:
    """The same entries with digests that fit: what somebody who can write the file can do."""
    head, linked = GENESIS, []
    for one in entries:
        head = chained_digest(head, (one.seq, one.at, one.kind, one.table, one.body))
        linked.append(replace(one, digest=head))
    return linked


def rewritten(entries: Sequence[Entry], seq: int, change: Change) -> list[Entry]:
    """One entry's body changed, and everything after it linked to that."""
    body = json.loads(entries[seq - 1].body)
    change(body)
    changed = replace(entries[seq - 1], body=canonical_json(body))
    return rechained([*entries[: seq - 1], changed, *entries[seq:]])


def problem_with(entries: Sequence[Entry], seq: int, change: Change) -> str:
    """What the auditor says of one changed entry of entries without a problem."""
    assert verify(entries).problem is None
    problem = verify(rewritten(entries, seq, change)).problem
    assert problem is not None
    return problem


def assert_not_opened(entries: Sequence[Entry], seq: int, change: Change) -> None:
    """The server, too, stops at the changed entry."""
    with pytest.raises(ValueError, match=f"entry {seq}"):
        Replay().read(rewritten(entries, seq, change))  # what opens a ledger, without its file


def to(value: Any, *path: str | int) -> Change:
    """Set what is at `path` of a body."""

    def change(body: Any) -> None:
        for step in path[:-1]:
            body = body[step]
        body[path[-1]] = value

    return change
