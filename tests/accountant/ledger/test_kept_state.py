"""States of ledgers as bytes: of every kind of entry, the state of replay; nothing but values."""

import dataclasses
import gzip
import os
import pickle
from collections.abc import Callable
from contextlib import closing, suppress
from fractions import Fraction
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from accountant.gate.opening import open_table
from accountant.ledger import checkpoint as of_states
from accountant.ledger.checkpoint import (
    NotAState,
    agrees_with_cell,
    agrees_with_entry,
    code_digest,
    state_bytes,
    state_of,
)
from accountant.ledger.collections import CollectionClosed, CollectionOpened
from accountant.ledger.entries import BudgetJoined, BudgetSet, DataPinned, Entry
from accountant.ledger.entry_json import _READERS
from accountant.ledger.history.replay import Replay
from accountant.ledger.opening import open_ledger
from accountant.ledger.stores.sqlite_store import SqliteReader
from accountant.ledger.values import GrowingSet, successor
from accountant.noise.lattice_noise import SystemNoise
from cube.measurement import PlannedMeasurement, Precision
from cube.query import Factor, QueryBlock, counting
from cube.refusals import BudgetExhausted
from cube.statistic import PlannedUnitCount, UnitCount
from proxy.api import LOCAL, QueryRequest
from tests.support import audited, growing_table
from tests.support.a_stream import ledger_on, write_a_stream, write_visits
from tests.support.campaigns import TEXTS
from tests.support.counted_units import BY_CITY, EVERYBODY, HALF, QUARTER, bought, gate_on
from tests.support.fakes import KnownTable
from tests.support.federated import federated_engine
from tests.support.gaussian import COUNTS, TERMS, with_gaussian_noise
from tests.support.generations import FUNDS, buy, renewed
from tests.support.ledger_states import assert_alike
from tests.support.seven_people import ADULTS, BY_SEX, EVERYONE, RECORDS, SCHEMA
from tests.support.short_ledger import appended, raised_twice, write_short_ledger

ANN = audited.ANN
KEPT = Path(__file__).parents[2] / "end_to_end"


def write_short(path: Path) -> None:
    with open_ledger(raised_twice(write_short_ledger(path))) as ledger:
        for body in (DataPinned("rows"), BudgetJoined("everything")):
            appended(ledger, body)


def write_noise_of_both_kinds(path: Path) -> None:
    """Rows with Gaussian noise, raised; statistics; and a generation after them."""
    fine, finer = (Precision.at_least(Fraction(1, n)) for n in (1000, 300))
    with open_ledger(path) as ledger:
        table = KnownTable(SCHEMA, RECORDS)
        gate = open_table(ledger, SCHEMA, FUNDS, table, SystemNoise())
        buy(gate, EVERYONE)
        for precision, place in ((fine, None), (finer, 1)):
            plan = [PlannedMeasurement(BY_SEX, precision, place, TERMS)]
            gate.measure(plan, ANN, epsilon_cap=None)
        charged = gate.charge([], ANN, epsilon_cap=None, statistics=with_gaussian_noise(COUNTS))
        gate.complete(charged.seq)
        renewed(gate, ledger)
        buy(gate, ADULTS)
        buy(gate, ADULTS, 3, raised_from=0)


def write_counts_of_units(path: Path) -> None:
    """Counts of units, one of them raised, in a ledger of another name."""
    with gate_on(path.parent) as gate:
        count = UnitCount(BY_CITY, 2)
        bought(gate, PlannedUnitCount(count, QUARTER), rows=[PlannedMeasurement(EVERYBODY, HALF)])
        bought(gate, PlannedUnitCount(count, HALF, raised_from=0))
    (path.parent / "orders.ledger").rename(path)


def write_growth(path: Path) -> None:
    """A table that grows, with rows of it that change and are accepted."""
    with open_ledger(path) as ledger:
        table = growing_table.GrowingTable()
        gate = growing_table.opened(ledger, table, 3)
        days = Factor(("day",), np.array([1, 1, 0, 0, 0, 0, 0, 0], dtype=np.int64))
        block = QueryBlock(counting([days]))
        buy(gate, block, 2)
        buy(gate, block, 3, raised_from=0)
        late = np.array([[2, 1]], dtype=np.int64)
        table.records = np.concatenate([table.records, late])
        gate.accept_changes(0, 3, "owner")
        buy(gate, block)


def write_streams(path: Path) -> None:
    """Two streams beside a table: one with a release, one that is dropped."""
    write_short(path)
    with ledger_on(path, "2026-11-24") as ledger:
        write_a_stream(ledger)


def write_streams_of_visits(path: Path) -> None:
    """A stream that counts visits, with a release within its epoch."""
    with ledger_on(path, "2026-11-24", 43_200) as ledger:
        write_visits(ledger)


def write_kept(folder: str) -> Callable[[Path], None]:
    def write(path: Path) -> None:
        path.write_bytes(gzip.decompress((KEPT / folder / "ledger.gz").read_bytes()))

    return write


def write_collections(path: Path) -> None:
    """A collection that is open, and one that was closed."""
    with open_ledger(path) as ledger:
        for text in TEXTS[:2]:
            opened = CollectionOpened(text, 10, is_by_invitation=False, by="owner")
            ledger.append_collection(lambda _book, opened=opened: opened)  # type: ignore[misc]
        closed = CollectionClosed("survey", 3, "ab" * 32, "owner")
        ledger.append_collection(lambda _book: closed)


def write_federated(path: Path) -> None:
    """A coordinator's ledger, with a charge that a holder refused."""
    counts = {name: np.full((2, 2), 40) for name in ("north", "south")}
    with federated_engine(path.parent, {"a": 2, "b": 2}, counts) as federation:
        asked = QueryRequest(sql="SELECT COUNT(*) AS n FROM rows", caller=LOCAL)
        federation.engine.answer(asked)

        def nothing_is_left(level: int) -> None:
            federation.ledgers[level].append("rows", lambda _: BudgetSet(Fraction(1, 10**6)))

        federation.holders.before = nothing_is_left
        with suppress(BudgetExhausted):
            federation.engine.answer(
                dataclasses.replace(asked, sql="SELECT a, COUNT(*) AS n FROM rows GROUP BY a")
            )
    (path.parent / "coordinator.ledger").rename(path)


def write_held(path: Path) -> None:
    """The ledger of a holder, which was asked by a coordinator."""
    write_federated(path)
    path.unlink()
    (path.parent / "north.ledger").rename(path)


LEDGERS: dict[str, Callable[[Path], None]] = {
    "short": write_short,
    "federated": write_federated,
    "held": write_held,
    "every kind": audited.write_ledger,
    "both noises": write_noise_of_both_kinds,
    "units": write_counts_of_units,
    "growth": write_growth,
    "collections": write_collections,
    "streams": write_streams,
    "streams of visits": write_streams_of_visits,
    "kept_ledger": write_kept("kept_ledger"),
    "kept_shop": write_kept("kept_shop"),
}


@pytest.fixture(params=LEDGERS)
def path(tmp_path: Path, request: pytest.FixtureRequest) -> Path:
    found = tmp_path / "a.ledger"
    LEDGERS[request.param](found)
    return found


def entries_of(path: Path) -> list[Entry]:
    with closing(SqliteReader(path)) as reader:
        return list(reader.entries_after(0))


def unread(replay: Replay) -> Replay:
    """As of a process that has made every entry itself."""
    for table, history in replay.histories.items():
        replay.histories[table] = successor(history, read=GrowingSet())
    return replay


def test_a_state_is_that_of_replay_after_any_number_of_entries(path: Path) -> None:
    entries = entries_of(path)
    for n_entries in {*range(0, len(entries), 9), len(entries) - 1, len(entries)}:
        expected = unread(Replay().read(entries[:n_entries]))
        found = state_of(state_bytes(expected))
        assert_alike(found, expected)
        assert [history.read.numbers for history in found.histories.values()] == [()] * len(
            found.histories
        )


def test_a_state_goes_on_as_replay_does(path: Path) -> None:
    entries = entries_of(path)
    half = len(entries) // 2
    found = state_of(state_bytes(Replay().read(entries[:half]))).read(entries[half:])
    assert_alike(unread(found), unread(Replay().read(entries)))


def test_what_is_computed_of_values_is_not_kept(path: Path) -> None:
    state = Replay().read(entries_of(path))
    before = state_bytes(state)
    for history in state.histories.values():
        for measurement in history.measurements:
            assert measurement.values.size == measurement.block.n_rows
            assert measurement.block.scope is not None
    assert len(state_bytes(state)) == len(before)


def test_every_entry_and_every_cell_agrees(path: Path) -> None:
    entries = entries_of(path)
    state = Replay().read(entries)
    assert all(agrees_with_entry(state, entry) for entry in entries)
    for history in state.histories.values():
        history.cost.summed()
    found = state_of(state_bytes(state))
    assert all(agrees_with_entry(found, entry) for entry in entries)
    for _ in range(20):
        assert all(map(agrees_with_cell, found.histories.values()))


def test_the_ledgers_have_an_entry_of_every_kind(tmp_path: Path) -> None:
    kinds = set()
    for name, make in LEDGERS.items():
        (tmp_path / name).mkdir()
        make(tmp_path / name / "a.ledger")
        kinds |= {entry.kind for entry in entries_of(tmp_path / name / "a.ledger")}
    about_the_ledger = {"rollback_accepted", "clock_corrected"}  # which change times and no more
    assert kinds | about_the_ledger >= set(_READERS)


@dataclasses.dataclass
class Stranger:
    """A value of no module of ours."""

    name: str = "x"


@pytest.mark.parametrize("value", [Stranger(), os.system, Path(), np.int64(3), np.array([0.5])])
def test_nothing_but_values_is_written(value: object) -> None:
    with pytest.raises(NotAState):
        state_bytes(Replay(access=value))  # type: ignore[arg-type]


class Runs:
    """What a pickle can do to who reads it."""

    def __init__(self, call: Any, *arguments: Any) -> None:
        self.recipe = call, arguments

    def __reduce__(self) -> Any:
        return self.recipe


@pytest.mark.parametrize(
    "value",
    [
        Runs(os.system, "exit 1"),
        Runs(eval, "1"),
        Runs(getattr, "x", "upper"),
        Runs(open_ledger, Path("x")),
        Runs(SqliteReader, "x"),
        Stranger(),
        np.array([1]),
    ],
)
def test_nothing_but_values_is_made(value: object) -> None:
    with pytest.raises(NotAState):
        state_of(pickle.dumps(value))


def test_the_code_is_named_by_its_text() -> None:
    assert code_digest() == code_digest()
    assert len(code_digest()) == 32


def test_code_without_its_text_is_never_the_same(tmp_path: Path) -> None:
    package = str(tmp_path / "__init__.py")
    assert of_states._digest_of([package]) != of_states._digest_of([package])
    Path(package).write_text("ONE = 1")
    assert of_states._digest_of([package]) == of_states._digest_of([package])
