"""What a file of counts remembers of the order of answers: in its bytes, not in what SQL reads."""

import multiprocessing as mp
import random
import sqlite3
from collections.abc import Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import closing
from pathlib import Path

import pytest

from proxy.collections.store import CLOSED, FORGOTTEN, N_WAL_BYTES, CountStore, Outcome
from tests.support import dying_counter
from tests.support.dying_counter import COLLECTION, sent, token

PAGE = 4096
WAL_OVERHEAD = 56  # the headers of a WAL and of one page in it
N_IN_A_PAGE = 60
N_IN_PAGES = 500
SECONDS_MAX = 60
BLOCKED = {
    "SELECT * FROM spent": "emptying the WAL",
    "DELETE FROM counts WHERE 0": "laying the file out",
}


@pytest.fixture
def path(tmp_path: Path) -> Path:
    return tmp_path / "counts"


@pytest.fixture
def store(path: Path) -> Iterator[CountStore]:
    with closing(CountStore(path)) as made:
        made.begin(COLLECTION)
        yield made


@pytest.fixture
def other(store: CountStore) -> Iterator[sqlite3.Connection]:
    """Of another process: SQLite does not tell it from one of this."""
    with closing(sqlite3.connect(store.path, isolation_level=None)) as opened:
        yield opened


def wal_bytes(path: Path) -> int:
    return path.with_name(f"{path.name}-wal").stat().st_size


def closed_file(path: Path, numbers: Sequence[int]) -> bytes:
    """The bytes of a file to which these answered, one after another, and were then closed."""
    with closing(CountStore(path)) as store:
        store.begin(COLLECTION)
        for one in numbers:
            sent(store, one)
        close_whole(store)
    return path.read_bytes()


def close_whole(store: CountStore) -> None:
    store.close_collection(COLLECTION)
    store.forget_order()


def states(store: CountStore) -> list[int]:
    rows = store._connection.execute("SELECT is_closed FROM collections").fetchall()
    return [state for (state,) in rows]


def test_an_open_collection_has_its_last_answers_in_the_order_in_which_they_came(
    store: CountStore, other: sqlite3.Connection
) -> None:
    """What docs/threat_model.md warns of; rows are put down from the end of a page on."""
    for one in range(N_IN_A_PAGE):
        sent(store, one)
    other.execute("PRAGMA wal_checkpoint(TRUNCATE)").fetchall()
    content = store.path.read_bytes()
    places = [content.index(token(one)) for one in range(N_IN_A_PAGE)]
    assert places == sorted(places, reverse=True)
    assert {one // PAGE for one in places} == {places[0] // PAGE}


@pytest.mark.parametrize("n", [N_IN_A_PAGE, N_IN_PAGES])
def test_the_bytes_of_a_closed_file_are_the_same_in_whatever_order_answers_came(
    tmp_path: Path, n: int
) -> None:
    numbers = list(range(n))
    first = closed_file(tmp_path / "first", numbers)
    for seed in range(3):
        random.Random(seed).shuffle(numbers)  # noqa: S311 - who comes when, in a test
        assert closed_file(tmp_path / f"other-{seed}", numbers) == first
    assert all(first.count(token(one)) == 1 for one in numbers)


@pytest.mark.usefixtures("other")  # so that the WAL stays where it is
def test_a_closing_empties_the_wal_and_changes_no_count(store: CountStore) -> None:
    for one in range(N_IN_PAGES):
        sent(store, one)
    before = store.counts(COLLECTION).digest
    close_whole(store)
    assert wal_bytes(store.path) <= PAGE + WAL_OVERHEAD, "but for the note that it is done"
    assert store.counts(COLLECTION).digest == before
    assert sent(store, N_IN_PAGES) is Outcome.CLOSED
    assert sent(store, 0) is Outcome.COUNTED_BEFORE


def test_a_file_is_laid_out_anew_once_for_each_closing(store: CountStore) -> None:
    store.begin("other")
    said: list[str] = []
    store._connection.set_trace_callback(said.append)
    for name in (COLLECTION, COLLECTION, "other", "other"):
        store.close_collection(name)
        store.forget_order()
    assert said.count("VACUUM") == 2
    assert states(store) == [FORGOTTEN, FORGOTTEN]


@pytest.mark.parametrize("statement", BLOCKED, ids=list(BLOCKED.values()))
def test_where_another_process_is_in_the_way_it_is_said_and_done_later(
    store: CountStore,
    other: sqlite3.Connection,
    capsys: pytest.CaptureFixture[str],
    statement: str,
) -> None:
    for one in range(N_IN_A_PAGE):
        sent(store, one)
    store.close_collection(COLLECTION)
    before = store.counts(COLLECTION).digest
    store._connection.execute("PRAGMA busy_timeout = 20")  # instead of ten seconds
    other.execute("BEGIN")
    other.execute(statement).fetchall()
    store.forget_order()
    told = "".join(capsys.readouterr())
    assert "order_not_forgotten" in told
    assert "SQLITE_BUSY" in told
    assert store.counts(COLLECTION).digest == before
    other.execute("ROLLBACK")
    assert sent(store, N_IN_A_PAGE) is Outcome.CLOSED
    assert states(store) == [CLOSED]
    store.forget_order()
    assert "order_not_forgotten" not in "".join(capsys.readouterr())
    assert states(store) == [FORGOTTEN]
    assert wal_bytes(store.path) <= PAGE + WAL_OVERHEAD


def test_a_full_disk_keeps_no_collection_open_and_loses_nothing(path: Path, tmp_path: Path) -> None:
    with closing(CountStore(path)) as store:
        store.begin(COLLECTION)
        for one in range(N_IN_PAGES):
            sent(store, one)
        before = store.counts(COLLECTION).digest
    process = mp.get_context("spawn").Process(
        target=dying_counter.close_in, args=(str(path), path.stat().st_size // 2)
    )
    process.start()
    process.join(SECONDS_MAX)
    assert process.exitcode == 0
    with closing(CountStore(path)) as store:  # there is room again
        assert states(store) == [CLOSED], "the disk was not full"
        assert store.counts(COLLECTION).digest == before
        close_whole(store)
        assert states(store) == [FORGOTTEN]
        assert store.counts(COLLECTION).digest == before
    backwards = closed_file(tmp_path / "other", range(N_IN_PAGES - 1, -1, -1))
    assert path.read_bytes()[PAGE:] == backwards[PAGE:]  # the first page has a count of commits


def test_the_wal_is_emptied_whenever_it_has_grown_long(store: CountStore) -> None:
    with ThreadPoolExecutor(64) as pool:
        list(pool.map(lambda one: sent(store, one), range(2000)))
    assert 0 <= wal_bytes(store.path) < N_WAL_BYTES


def test_a_wal_that_a_reader_held_is_cut_once_they_are_gone(
    store: CountStore, other: sqlite3.Connection
) -> None:
    other.execute("BEGIN")
    other.execute("SELECT * FROM spent").fetchall()
    for one in range(200):
        assert sent(store, one) is Outcome.COUNTED
    assert wal_bytes(store.path) > 2 * N_WAL_BYTES
    other.execute("ROLLBACK")
    for one in range(200, 300):
        sent(store, one)
    assert wal_bytes(store.path) <= N_WAL_BYTES
    assert store._connection.execute("PRAGMA busy_timeout").fetchone() == (10_000,)
