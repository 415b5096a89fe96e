"""Counts of answers: each once, durable when acknowledged, whatever happens to the process."""

import multiprocessing as mp
import random
import time
from collections import Counter
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import AbstractContextManager, closing, nullcontext
from pathlib import Path
from typing import NoReturn

import numpy as np
import pytest

from cube.pace import paced
from cube.refusals import CannotStart, StoreUnavailable
from proxy.collections.store import CHUNK, Counts, CountStore, Outcome
from proxy.scheduling.fair_share import DEFAULT_TIMES, FairShare, Shift
from tests.support import dying_counter
from tests.support.dying_counter import (
    COLLECTION,
    N_PLACES,
    N_THREADS,
    places,
    sent,
    token,
)

N_KILLS = 5
N_BEFORE_KILL = 200
SECONDS_MAX = 60


@pytest.fixture
def store(tmp_path: Path) -> Iterator[CountStore]:
    with closing(CountStore(tmp_path / "counts")) as made:
        made.begin(COLLECTION)
        yield made


def expected(numbers: Iterator[int] | range | set[int]) -> dict[int, Counter[int]]:
    found: dict[int, Counter[int]] = {}
    for number in numbers:
        for combination, cells in places(number):
            found.setdefault(combination, Counter()).update(cells)
    return found


def check_counts(store: CountStore, numbers: range | set[int]) -> None:
    counts = store.counts(COLLECTION)
    assert counts.n_respondents == len(numbers)
    assert sum(counts.n_answers.values()) == len(numbers)
    wanted = expected(numbers)
    for combination in range(3):
        one = wanted.get(combination, Counter())
        assert counts.of(combination, N_PLACES).tolist() == [one[at] for at in range(N_PLACES)]


def test_every_answer_is_counted_where_it_belongs(store: CountStore) -> None:
    assert [sent(store, one) for one in range(100)] == [Outcome.COUNTED] * 100
    check_counts(store, range(100))


def test_a_token_counts_once_whatever_comes_with_it(store: CountStore) -> None:
    sent(store, 1)
    again = store.count(COLLECTION, token(1), ((0, (5,)),), n_respondents_max=10)
    assert again is Outcome.COUNTED_BEFORE
    check_counts(store, range(1, 2))


def test_of_many_threads_with_the_same_tokens_each_token_counts_once(store: CountStore) -> None:
    numbers = [one % 50 for one in range(400)]
    with ThreadPoolExecutor(16) as pool:
        outcomes = Counter(pool.map(lambda one: sent(store, one), numbers))
    assert outcomes == {Outcome.COUNTED: 50, Outcome.COUNTED_BEFORE: 350}
    check_counts(store, range(50))


def test_waiting_answers_share_a_commit(tmp_path: Path) -> None:
    """Also where respondents have one share of the process, and one of them works at a time."""
    share = FairShare(n_at_once=1)
    with closing(CountStore(tmp_path / "counts")) as store:
        store.begin(COLLECTION)

        def in_turn(number: int) -> Outcome:
            with Shift(share, "respondents", DEFAULT_TIMES, is_gone=lambda: False).working():
                return sent(store, number)

        commits: list[str] = []
        store._connection.set_trace_callback(
            lambda text: commits.append(text) if text == "COMMIT" else None
        )
        store._lock.acquire()  # as if a sync to the disk took its time
        with ThreadPoolExecutor(20) as pool:
            waiting = [pool.submit(in_turn, one) for one in range(20)]
            while len(store._waiting._requests) < 19:
                time.sleep(0.001)
            store._lock.release()
            assert {one.result() for one in waiting} == {Outcome.COUNTED}
        assert len(commits) == 2


def test_the_quota_is_kept_and_a_spent_token_is_still_acknowledged(store: CountStore) -> None:
    for one in range(3):
        store.count(COLLECTION, token(one), places(one), n_respondents_max=3)
    refused = store.count(COLLECTION, token(3), places(3), n_respondents_max=3)
    again = store.count(COLLECTION, token(0), places(0), n_respondents_max=3)
    assert (refused, again) == (Outcome.FULL, Outcome.COUNTED_BEFORE)
    check_counts(store, range(3))


def test_nothing_is_counted_once_a_collection_is_closed(store: CountStore) -> None:
    sent(store, 0)
    store.close_collection(COLLECTION)
    assert sent(store, 1) is Outcome.CLOSED
    assert sent(store, 0) is Outcome.COUNTED_BEFORE
    check_counts(store, range(1))


def test_collections_are_apart(store: CountStore) -> None:
    store.begin("other")
    sent(store, 0)
    assert store.count("other", token(0), places(0), n_respondents_max=9) is Outcome.COUNTED
    store.begin("other")  # again: nothing is set back
    assert store.n_respondents("other") == 1
    check_counts(store, range(1))


def test_an_unknown_collection_spoils_no_other_answer(store: CountStore) -> None:
    with pytest.raises(StoreUnavailable):
        store.count("unknown", token(0), places(0), n_respondents_max=9)
    with pytest.raises(LookupError):
        store.counts("unknown")
    assert sent(store, 0) is Outcome.COUNTED


def test_no_count_is_in_what_a_value_says_of_itself(store: CountStore) -> None:
    sent(store, 0)
    assert "array" not in repr(store.counts(COLLECTION))


def test_a_full_disk_acknowledges_nothing_and_loses_nothing(store: CountStore) -> None:
    for one in range(50):
        sent(store, one)
    (n_pages,) = store._connection.execute("PRAGMA page_count").fetchone()
    store._connection.execute(f"PRAGMA max_page_count = {n_pages}")
    number = 50
    with pytest.raises(StoreUnavailable, match="full"):  # noqa: PT012 - one of many fills it
        for number in range(50, 2000):
            sent(store, number)
    check_counts(store, range(number))
    store._connection.execute("PRAGMA max_page_count = 1000000")
    assert sent(store, number) is Outcome.COUNTED
    check_counts(store, range(number + 1))


@pytest.mark.parametrize("n_bytes_max", [60_000, 300_000], ids=["the log", "the file"])
def test_where_no_file_may_grow_answers_are_refused_and_none_is_lost_or_counted_twice(
    tmp_path: Path, n_bytes_max: int
) -> None:
    """The system refuses to write: at first the log, or once counts are copied, the file itself."""
    path, noted = tmp_path / "counts", tmp_path / "acknowledged"
    with closing(CountStore(path)) as store:
        store.begin(COLLECTION)
    process = mp.get_context("spawn").Process(
        target=dying_counter.live_in, args=(str(path), str(noted), n_bytes_max)
    )
    process.start()
    process.join(SECONDS_MAX)
    assert process.exitcode == 0, "no answer was refused, or not in words that help"
    acknowledged = {int(one) for one in noted.read_text().split()}
    with closing(CountStore(path)) as store:  # there is room again
        counted = _counted(store)
        assert acknowledged <= counted
        assert len(counted - acknowledged) <= N_THREADS, "those that were being written"
        check_counts(store, counted)
        everybody = range(max(counted) + 1)
        outcomes = Counter(sent(store, one) for one in everybody)
        assert outcomes[Outcome.COUNTED_BEFORE] == len(counted)
        check_counts(store, everybody)


def test_a_damaged_file_is_refused_and_left_as_it_is(tmp_path: Path) -> None:
    path = tmp_path / "counts"
    with closing(CountStore(path)) as store:
        store.begin(COLLECTION)
        with ThreadPoolExecutor(32) as pool:
            list(pool.map(lambda one: sent(store, one), range(2000)))
    content = bytearray(path.read_bytes())
    content[4096 * 5 : 4096 * 6] = bytes(4096)
    path.write_bytes(content)
    with pytest.raises(CannotStart, match="damaged"):
        CountStore(path)
    assert path.read_bytes() == content


def test_a_file_that_contradicts_itself_is_refused(tmp_path: Path) -> None:
    path = tmp_path / "counts"
    with closing(CountStore(path)) as store:
        store.begin(COLLECTION)
        sent(store, 0)
        store._connection.execute("DELETE FROM spent")
    with pytest.raises(CannotStart, match="number of answers differs from its number of tokens"):
        CountStore(path)


def test_another_file_is_refused(tmp_path: Path) -> None:
    path = tmp_path / "counts"
    path.write_text("not a database, but some other text that is long enough" * 100)
    with pytest.raises(CannotStart, match="cannot be used"):
        CountStore(path)
    with pytest.raises(CannotStart, match="cannot be used"):
        CountStore(tmp_path / "no" / "folder")


def test_counts_are_of_one_byte_order(store: CountStore) -> None:
    sent(store, 0)
    (blob,) = store._connection.execute("SELECT counts FROM counts").fetchone()
    assert np.frombuffer(blob, "<i8")[:2].tolist() == [1, 1]


def test_killed_processes_lose_no_acknowledged_answer_and_count_none_twice(
    tmp_path: Path,
) -> None:
    path, noted = tmp_path / "counts", tmp_path / "acknowledged"
    with closing(CountStore(path)) as store:
        store.begin(COLLECTION)
    context = mp.get_context("forkserver")
    context.set_forkserver_preload([dying_counter.__name__])
    moments = random.Random(7)  # noqa: S311 - moments of a test
    first = 0
    for _ in range(N_KILLS):
        before = noted.stat().st_size if noted.exists() else 0
        # Two servers of one file, that are sent the same answers.
        killed = [
            context.Process(target=dying_counter.live, args=(str(path), str(noted), first))
            for _ in range(2)
        ]
        for one in killed:
            one.start()
        end = time.monotonic() + SECONDS_MAX
        while time.monotonic() < end and (
            not noted.exists() or noted.stat().st_size < before + 6 * N_BEFORE_KILL
        ):
            time.sleep(0.01)
        time.sleep(moments.uniform(0, 0.3))
        for one in killed:
            one.kill()
            one.join(60)
        acknowledged = {int(one) for one in noted.read_text().split("\n")[:-1]}
        first = max(0, max(acknowledged) - N_BEFORE_KILL)
        with closing(CountStore(path)) as store:
            counted = _counted(store)
            assert acknowledged <= counted
            check_counts(store, counted)
            again = {sent(store, one) for one in acknowledged}
            assert again == {Outcome.COUNTED_BEFORE}
            check_counts(store, counted)


def _counted(store: CountStore) -> set[int]:
    """The respondents whose tokens are spent."""
    tokens = {one for (one,) in store._connection.execute("SELECT token FROM spent")}
    return {one for one in range(100_000) if token(one) in tokens}


def test_a_reader_waits_neither_for_a_commit_nor_for_the_file_to_be_laid_out(
    store: CountStore,
) -> None:
    sent(store, 1)
    with ThreadPoolExecutor(1) as pool, store._writing() as connection:
        connection.execute("UPDATE collections SET n_respondents = 7")
        assert pool.submit(store.n_respondents, COLLECTION).result(SECONDS_MAX) == 1
        assert pool.submit(store.counts, COLLECTION).result(SECONDS_MAX).n_respondents == 1
        spent = pool.submit(store.why_not, COLLECTION, token(1), n_respondents_max=1)
        assert spent.result(SECONDS_MAX) is None
        connection.execute("UPDATE collections SET n_respondents = 1")


class Unread(dict[int, bytes]):
    """Chunks that nobody asked for."""

    def items(self) -> NoReturn:
        raise AssertionError("another combination was read")


def test_counts_of_one_combination_are_made_of_its_own_alone() -> None:
    ones = np.ones(CHUNK, dtype="<i8").tobytes()
    counts = Counts(1, {0: 1, 1: 1}, {0: Unread(), 1: {2: ones}})
    assert counts.of(1, 3 * CHUNK).tolist() == [0] * 2 * CHUNK + [1] * CHUNK
    assert counts.of(7, 5).tolist() == [0] * 5


def test_each_combination_is_a_step_of_the_statements_work(store: CountStore) -> None:
    sent(store, 1)
    counts = store.counts(COLLECTION)
    pace = Steps()
    with paced(pace):
        for combination in range(3):
            counts.of(combination, N_PLACES)
    assert pace.n_steps == 3


class Steps:
    """A pace that counts."""

    seconds_left = 60.0
    is_paid = False

    def __init__(self) -> None:
        self.n_steps = 0

    def step(self, seconds: float) -> None:
        del seconds
        self.n_steps += 1

    def take_longer(self) -> None: ...

    def note_paid(self) -> None: ...

    def note_work(self, seconds: float) -> None: ...

    def waiting(self, *, is_first: bool) -> AbstractContextManager[None]:
        del is_first
        return nullcontext()
