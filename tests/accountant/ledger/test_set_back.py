"""A ledger that is set back is detected, unless its mark is set back with it."""

import shutil
import threading
from collections.abc import Callable, Iterator
from contextlib import closing
from fractions import Fraction
from functools import cache
from pathlib import Path
from tempfile import mkdtemp
from typing import NamedTuple

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from accountant.ledger.entries import BudgetSet
from accountant.ledger.ledger import Ledger
from accountant.ledger.opening import (
    open_ledger,
    open_reader,
    open_shared_ledger,
    open_unmarked,
)
from accountant.ledger.stores.key_file import KEY_BYTES, key_beside
from accountant.ledger.stores.mark import SLOT_BYTES, MarkedStore, MarkFile, Position, mark_beside
from cube.refusals import CannotStart, LedgerCorrupt, LedgerLost, LedgerSetBack, LedgerUnavailable
from tests.support.examples import examples
from tests.support.postgres import PostgresServer
from tests.support.short_ledger import BODIES, RAISES, appended, raised_twice, write_short_ledger

NAME = "people.ledger"
EVERY_BODY = [*BODIES, *RAISES]


class FullDisk(MarkFile):
    """A mark that cannot be written."""

    def _write(self, *_: object) -> None:
        raise OSError(28, "No space left on device")


class Moment(NamedTuple):
    """The files as they were, and how many entries were in them, with the WAL and without it."""

    files: dict[str, bytes]
    n_entries: int
    n_without_wal: int
    n_marked: int

    def put(self, folder: Path, names: Callable[[str], bool]) -> None:
        for name in filter(names, (*self.files, f"{NAME}-wal")):
            (folder / name).unlink(missing_ok=True)
            if name in self.files:
                (folder / name).write_bytes(self.files[name])


@pytest.fixture
def path(tmp_path: Path) -> Path:
    return write_short_ledger(tmp_path / NAME)


@pytest.fixture
def mark(path: Path) -> Path:
    return mark_beside(key_beside(path))


def n_entries(path: Path) -> int:
    with closing(open_reader(str(path))) as reader:
        return sum(1 for _ in reader.entries_after(0))


def files_of(folder: Path) -> dict[str, bytes]:
    return {one.name: one.read_bytes() for one in folder.iterdir() if not one.name.endswith("-shm")}


@cache
def moments() -> tuple[Moment, ...]:
    """After every commit, and between every commit and its mark, as a crash leaves the files."""
    folder = Path(mkdtemp())
    found: list[Moment] = []

    def note(n_marked: int) -> None:
        files = files_of(folder)
        copy = Path(mkdtemp()) / NAME
        copy.write_bytes(files[NAME])
        without = n_entries(copy)
        if f"{NAME}-wal" in files:
            copy.with_name(f"{NAME}-wal").write_bytes(files[f"{NAME}-wal"])
        found.append(Moment(files, n_entries(copy), without, n_marked))
        shutil.rmtree(copy.parent)

    class Noting(MarkFile):
        def advance(self, position: Position) -> None:
            note(self.read().n_entries)
            super().advance(position)

    with open_ledger(folder / NAME) as ledger:
        store = ledger._store
        assert isinstance(store, MarkedStore)
        store._mark = Noting(store._mark.path)
        note(0)
        for body in EVERY_BODY:
            appended(ledger, body)
            note(store._mark.read().n_entries)
    note(len(EVERY_BODY))
    shutil.rmtree(folder)
    return tuple(found)


def places() -> st.SearchStrategy[int]:
    return st.integers(0, 2 * len(EVERY_BODY) + 1)


@settings(max_examples=examples(150), deadline=None)
@given(now=places(), ledger=places(), mark=places(), keeps_wal=st.booleans(), loses=st.booleans())
def test_a_set_back_is_detected_unless_everything_is_set_back(
    *, now: int, ledger: int, mark: int, keeps_wal: bool, loses: bool
) -> None:
    """Crash at any point; then set back the ledger, and the mark too, to any earlier point each."""
    crash, back, marked = moments()[now], moments()[min(ledger, now)], moments()[min(mark, now)]
    folder = Path(mkdtemp())
    try:
        crash.put(folder, lambda _: True)
        back.put(folder, lambda name: name == NAME or (keeps_wal and name == f"{NAME}-wal"))
        if not keeps_wal:
            (folder / f"{NAME}-wal").unlink(missing_ok=True)
        marked.put(folder, lambda name: name.endswith(".mark"))
        n_left = back.n_entries if keeps_wal else back.n_without_wal
        if loses:
            (folder / f"{NAME}.mark").unlink()
        if loses or n_left < marked.n_marked:
            with pytest.raises((LedgerSetBack, LedgerCorrupt)):
                open_ledger(folder / NAME)
        else:  # the mark was set back at least as far, or nothing was lost that was heard of
            with open_ledger(folder / NAME) as opened:
                assert opened.position[0] == n_left >= marked.n_marked
    finally:
        shutil.rmtree(folder)


def test_the_moments_have_entries_in_the_wal_alone_and_commits_without_a_mark() -> None:
    assert any(one.n_without_wal < one.n_entries for one in moments())
    assert any(one.n_marked < one.n_entries for one in moments())
    assert all(one.n_marked >= one.n_entries - 1 for one in moments())


def test_an_older_ledger_in_the_place_of_a_newer_is_refused(path: Path) -> None:
    older = path.read_bytes()
    raised_twice(path)
    path.write_bytes(older)
    with pytest.raises(CannotStart, match=r"does not hold the 8 entries .* set back") as refused:
        open_ledger(path)
    assert refused.value.code == "ledger_set_back"
    assert "accept-rollback" in refused.value.explain()
    assert path.read_bytes() == older


def test_a_wal_that_is_gone_is_noticed(path: Path, tmp_path: Path) -> None:
    """A process is killed; what it wrote last lies in the WAL, and somebody clears that away."""
    with open_ledger(path) as ledger:
        appended(ledger, BudgetSet(Fraction(2)))
        killed = files_of(tmp_path)
    assert len(killed[f"{NAME}-wal"]) > 0
    for name, content in killed.items():
        (tmp_path / name).write_bytes(content)
    (tmp_path / f"{NAME}-wal").unlink()
    with pytest.raises(CannotStart, match="set back"):
        open_ledger(path)


def test_little_lies_in_the_wal_alone(path: Path) -> None:
    with open_ledger(path) as ledger:
        for number in range(300):
            appended(ledger, BudgetSet(Fraction(number)))
        assert path.with_name(f"{NAME}-wal").stat().st_size < 100 * 4200


def test_a_ledger_of_another_past_is_refused(path: Path, tmp_path: Path) -> None:
    """The same number of entries, and a last one that says something else."""
    (tmp_path / "other").mkdir()
    other = write_short_ledger(tmp_path / "other" / NAME)
    with open_ledger(path) as one, open_ledger(other) as two:
        appended(one, BudgetSet(Fraction(2)))
        appended(two, BudgetSet(Fraction(3)))
    path.write_bytes(other.read_bytes())
    with pytest.raises(LedgerSetBack):
        open_ledger(path)


def test_a_ledger_with_a_lost_or_damaged_mark_is_refused(path: Path, mark: Path) -> None:
    whole = mark.read_bytes()
    for content in (b"", b"x" * len(whole), whole.replace(b"tacit", b"TACIT")):
        mark.write_bytes(content)
        with pytest.raises(LedgerSetBack, match="is damaged"):
            open_ledger(path)
    mark.unlink()
    with pytest.raises(LedgerSetBack, match="is missing"):
        open_ledger(path)
    mark.write_bytes(whole)
    open_ledger(path).close()


def test_a_ledger_from_before_marks_opens_once_without_one(path: Path, mark: Path) -> None:
    key = key_beside(path)
    before = key.read_bytes()[:KEY_BYTES]
    key.write_bytes(before)
    mark.unlink()
    with open_ledger(path) as ledger:
        assert ledger.key == before
        assert MarkFile(mark).read() == Position(*ledger.position)
    mark.unlink()
    with pytest.raises(LedgerSetBack, match="is missing"):
        open_ledger(path)


def test_a_torn_write_leaves_the_mark_before_it(mark: Path) -> None:
    file = MarkFile(mark)
    before = file.read()
    for n_bytes in range(0, SLOT_BYTES, 7):
        whole = mark.read_bytes()
        file.advance(Position(before.n_entries + 1, "ab" * 32))
        after = mark.read_bytes()
        changed = next(at for at in range(len(whole)) if whole[at] != after[at])
        begins = changed - changed % SLOT_BYTES
        torn = whole[:begins] + after[begins : begins + n_bytes] + whole[begins + n_bytes :]
        mark.write_bytes(torn)
        assert file.read() in {before, Position(before.n_entries + 1, "ab" * 32)}
        mark.write_bytes(whole)
    assert file.read() == before


def test_a_mark_only_goes_forward_whichever_process_writes(mark: Path) -> None:
    positions = [Position(n, f"{n:064x}") for n in range(5, 105)]

    def write(part: list[Position]) -> None:
        for position in part:
            MarkFile(mark).advance(position)

    parts = (positions[::3], positions[1::3][::-1], positions[2::3])
    threads = [threading.Thread(target=write, args=(part,)) for part in parts]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert MarkFile(mark).read() == positions[-1]
    MarkFile(mark).advance(positions[0])
    assert MarkFile(mark).read() == positions[-1]
    with pytest.raises(LedgerLost, match="another entry 104"):
        MarkFile(mark).advance(Position(104, "cd" * 32))


def test_nothing_is_written_while_running_once_the_mark_is_ahead(path: Path, mark: Path) -> None:
    with open_ledger(path) as ledger:
        MarkFile(mark).advance(Position(5, "ab" * 32))
        for _ in range(2):
            with pytest.raises(LedgerLost, match="set back"):
                appended(ledger, BudgetSet(Fraction(2)))
            with pytest.raises(LedgerLost):
                ledger.probe()
        assert not ledger.is_writable
    assert n_entries(path) == 4


def test_a_commit_that_could_not_be_marked_is_not_reported_as_durable(
    path: Path, mark: Path
) -> None:
    """The commit went well, and the mark failed: nobody hears of it, and it is not lost either."""

    with open_ledger(path) as ledger:
        store = ledger._store
        assert isinstance(store, MarkedStore)
        store._mark = FullDisk(mark)
        with pytest.raises(LedgerUnavailable, match="No space left") as refused:
            appended(ledger, BudgetSet(Fraction(2)))
        assert type(refused.value) is LedgerUnavailable
        assert ledger.history("people").budget == Fraction(13, 7)
        store._mark = MarkFile(mark)
        ledger.probe()
        assert appended(ledger, BudgetSet(Fraction(3))) == 6
    with open_ledger(path) as ledger:
        assert [one.seq for one in ledger.entries()] == [1, 2, 3, 4, 5, 6]


def test_a_process_marks_an_entry_before_it_reports_it(path: Path, mark: Path) -> None:
    """One process is killed between its commit and the mark; what it wrote is read by another."""
    with open_ledger(path) as one, open_ledger(path) as other:
        for ledger in (one, other):
            assert isinstance(ledger._store, MarkedStore)
            ledger._store._mark = FullDisk(mark)
        with pytest.raises(LedgerUnavailable):
            appended(one, BudgetSet(Fraction(2)))
        with pytest.raises(LedgerUnavailable):
            other.refresh()
        with pytest.raises(LedgerUnavailable):
            other.append("people", lambda _history: None)
        assert other.position[0] == MarkFile(mark).read().n_entries == 4
        assert isinstance(other._store, MarkedStore)
        other._store._mark = MarkFile(mark)
        other.refresh()
        assert other.position[0] == MarkFile(mark).read().n_entries == 5


def test_what_was_read_at_the_opening_is_marked_too(path: Path, mark: Path) -> None:
    before = mark.read_bytes()
    with open_ledger(path) as ledger:
        appended(ledger, BudgetSet(Fraction(2)))
    mark.write_bytes(before)  # as a crash leaves it
    with open_ledger(path) as ledger:
        assert MarkFile(mark).read() == Position(*ledger.position)
        assert ledger.position[0] == 5


@pytest.fixture
def shared(postgres_server: PostgresServer, tmp_path: Path) -> Iterator[tuple[Ledger, str, Path]]:
    location, key = postgres_server.location(schema="set_back"), tmp_path / "ledger.key"
    with postgres_server.connect() as connection:
        connection.execute("DROP SCHEMA IF EXISTS set_back CASCADE")
    with open_shared_ledger(location, key) as ledger:
        yield ledger, location, key


def test_a_database_that_is_set_back_is_refused_by_each_server_that_knew_more(
    shared: tuple[Ledger, str, Path], postgres_server: PostgresServer
) -> None:
    ledger, location, key = shared
    for body in BODIES:
        appended(ledger, body)
    copy = key.with_name("copy.key")
    copy.write_bytes(key.read_bytes())
    with pytest.raises(LedgerSetBack, match="is missing"):
        open_shared_ledger(location, copy)
    mark_beside(copy).write_bytes(mark_beside(key).read_bytes())
    for body in RAISES:
        appended(ledger, body)
    with postgres_server.connect() as connection:
        connection.execute("ALTER TABLE set_back.entries DISABLE TRIGGER USER")
        connection.execute("DELETE FROM set_back.entries WHERE seq > 6")
    with pytest.raises(LedgerSetBack, match=r"8 entries that ledger\.mark"):
        open_shared_ledger(location, key)
    store, again, path = open_unmarked(location, key)
    store.close()
    assert (again, path) == (ledger.key, key)
    with open_shared_ledger(location, copy) as other:  # this server never knew
        assert other.position[0] == 6
