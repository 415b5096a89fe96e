"""Who has worked for longer steps aside; an analyst has so many places; time is counted."""

import threading
import time
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor

import pytest

from cube.pace import checkpoint, current_pace, seconds_left, take_longer, waiting
from cube.refusals import TooSlow
from proxy.scheduling.fair_share import (
    ASIDE_SECONDS_MAX,
    QUANTUM_SECONDS,
    CallTimes,
    FairShare,
    Shift,
)

LONG = CallTimes(statement=60.0, job=60.0)


def shift(share: FairShare, analyst: str, times: CallTimes = LONG, *, gone: bool = False) -> Shift:
    return Shift(share, analyst, times, lambda: gone)


def busy(seconds: float) -> None:
    """Work for so long, by this thread's own clock."""
    end = time.thread_time() + seconds
    while time.thread_time() < end:
        checkpoint()


def test_work_has_a_pace_and_leaves_none_behind() -> None:
    share = FairShare()
    one = shift(share, "ann")
    with one.working():
        assert current_pace() is one
        assert 59 < seconds_left(1000) <= 60
    assert current_pace() is None
    assert not share._accounts


def test_a_statement_that_has_no_time_left_is_told_at_its_next_step() -> None:
    one = shift(FairShare(), "ann", CallTimes(statement=0.02, job=60.0))
    with pytest.raises(TooSlow, match=r"0\.02 seconds"), one.working():
        busy(5.0)


def test_a_job_may_take_longer_and_is_known_by_what_it_turns_out_to_be() -> None:
    one = shift(FairShare(), "ann", CallTimes(statement=0.02, job=60.0))
    with one.working():
        take_longer()
        busy(0.05)


def test_a_step_that_needs_time_is_not_begun_without() -> None:
    with shift(FairShare(), "ann", CallTimes(statement=30.0, job=60.0)).working():
        checkpoint(0.1)
        with pytest.raises(TooSlow):
            checkpoint(60.0)


class _Clock:
    """Stands for the module `time`: it goes on when it is told to."""

    def __init__(self) -> None:
        self.now = self.worked = 0.0

    def monotonic(self) -> float:
        return self.now

    def thread_time(self) -> float:
        return self.worked


def test_where_others_work_a_step_needs_as_much_more_time(monkeypatch: pytest.MonkeyPatch) -> None:
    clock = _Clock()
    monkeypatch.setattr("proxy.scheduling.fair_share.time", clock)
    one = shift(FairShare(), "ann", CallTimes(statement=10.0, job=60.0))
    with one.working():
        with waiting(is_first=True):
            clock.now += 3.0  # of waiting for what is no turn
        clock.worked += 1.0
        clock.now += 1.0
        checkpoint(4.0)  # 6 are left, and nobody was in the way
        clock.now += 1.5  # of which this statement had nothing
        with pytest.raises(TooSlow):
            checkpoint(4.0)  # 4.5 are left, and would give it 1.8
        checkpoint(1.0)


def test_work_for_a_client_that_is_gone_ends() -> None:
    one = shift(FairShare(), "ann", gone=True)
    with pytest.raises(TooSlow, match="client is gone"), one.working():
        busy(5.0)


def test_one_analyst_has_so_many_places_and_others_have_their_own() -> None:
    share = FairShare(n_at_once=2)
    working, go = threading.Semaphore(0), threading.Event()

    def work(analyst: str) -> None:
        with shift(share, analyst).working():
            working.release()
            assert go.wait(30)

    with ThreadPoolExecutor(5) as pool:
        asked = [pool.submit(work, analyst) for analyst in ("ann", "ann", "ann", "ann", "bob")]
        for _ in range(3):
            assert working.acquire(timeout=30)
        assert share._accounts["ann"].n_working == 2
        assert share._accounts["bob"].n_working == 1
        assert not working.acquire(timeout=0.05)
        go.set()
        for one in asked:
            one.result(timeout=30)
    assert not share._accounts


def test_who_finds_no_place_in_time_is_refused_and_forgotten() -> None:
    share = FairShare(n_at_once=1)
    with (
        shift(share, "ann").working(),
        pytest.raises(TooSlow),
        shift(share, "ann", CallTimes(statement=0.02, job=1.0)).working(),
    ):
        raise AssertionError
    assert not share._accounts


def test_who_waits_for_something_else_gives_up_the_place_and_has_it_again() -> None:
    share = FairShare(n_at_once=1)
    order: list[str] = []
    waits, done = threading.Event(), threading.Event()

    def first() -> None:
        with shift(share, "ann").working():
            with waiting():
                waits.set()
                assert done.wait(30)
            order.append("first")

    with ThreadPoolExecutor(1) as pool:
        asked = pool.submit(first)
        assert waits.wait(30)
        with shift(share, "ann").working():
            done.set()
            order.append("second")
        asked.result(timeout=30)
    assert order == ["second", "first"]


@pytest.fixture
def hog() -> Iterator[Callable[[FairShare], None]]:
    """Heavy statements of one analyst, in as many threads as may work, until the test is over."""
    over = threading.Event()
    threads: list[threading.Thread] = []

    def begin(share: FairShare) -> None:
        started = threading.Barrier(share._n_at_once + 1)

        def work() -> None:
            with shift(share, "hog").working():
                started.wait(30)
                while not over.is_set():
                    checkpoint()

        threads.extend(threading.Thread(target=work) for _ in range(share._n_at_once))
        for thread in threads:
            thread.start()
        started.wait(30)

    yield begin
    over.set()
    for thread in threads:
        thread.join(30)


def test_a_light_statement_goes_before_heavy_ones(
    hog: Callable[[FairShare], None],
) -> None:
    """What the heavy ones work while a light one does is counted, not timed."""
    share = FairShare()
    hog(share)
    for _ in range(20):
        with shift(share, "ann").working():
            before = share._accounts["hog"].worked
            busy(QUANTUM_SECONDS / 2)
            heavy = share._accounts["hog"].worked - before
        # Four threads of the other may each be in the middle of a step of two milliseconds.
        assert heavy < 5 * QUANTUM_SECONDS
        time.sleep(0.005)


def test_two_who_work_all_the_time_have_equal_shares(hog: Callable[[FairShare], None]) -> None:
    share = FairShare()
    hog(share)
    with shift(share, "ann").working():
        busy(0.3)  # as long as it takes to use up what it had for free
        start = (share._accounts["ann"].worked, share._accounts["hog"].worked)
        busy(0.3)
        end = (share._accounts["ann"].worked, share._accounts["hog"].worked)
    own, other = (after - before for after, before in zip(end, start, strict=True))
    assert other > 0.1 * own, "nobody is starved"
    assert own > 0.3 * other


def test_nobody_waits_for_long_for_one_who_only_waits() -> None:
    """One who has worked less may be stuck, and says so to nobody: others go on in the end."""
    share = FairShare()
    stuck, over = threading.Event(), threading.Event()

    def work() -> None:
        with shift(share, "stuck").working():
            stuck.set()
            over.wait(30)

    with ThreadPoolExecutor(1) as pool:
        asked = pool.submit(work)
        assert stuck.wait(30)
        started = time.monotonic()
        with shift(share, "ann").working():
            busy(0.15)
        assert time.monotonic() - started < 100 * ASIDE_SECONDS_MAX + 10
        over.set()
        asked.result(timeout=30)


def test_who_was_idle_has_saved_up_no_more_than_a_moment() -> None:
    share = FairShare()
    with shift(share, "ann").working():
        busy(0.5)
        with shift(share, "bob").working():
            pass
        ahead = share._accounts["ann"].worked - share._accounts["bob"].worked
        assert ahead <= 0.11


def test_who_waits_is_told_when_the_time_is_over_and_keeps_nobody_waiting() -> None:
    share = FairShare()
    one = shift(share, "ann", CallTimes(statement=0.02, job=1.0))

    def wait_in_vain() -> None:
        with one.working(), waiting():
            assert "ann" not in share._accounts
            while True:
                time.sleep(0.005)
                checkpoint()

    with pytest.raises(TooSlow):
        wait_in_vain()
    assert not share._accounts


def test_pieces_are_worked_for_one_by_one() -> None:
    share = FairShare(n_at_once=1)
    one = shift(share, "ann")
    made = one.pieces(iter([1, 2]))
    assert next(made) == 1
    with shift(share, "ann").working():  # a place is free while a piece is being taken
        pass
    assert list(made) == [2]
    assert not share._accounts
