"""A turn is one's own until it is over, and then anybody's who waits for one."""

import threading
from concurrent.futures import ThreadPoolExecutor

import pytest

from cube.pace import Deadline, paced
from cube.refusals import TooSlow
from proxy.tables.purchasing import Turns


def test_one_at_a_time_has_a_turn() -> None:
    turns = Turns(seconds=60.0)
    inside, n_together = threading.Semaphore(1), []

    def work() -> None:
        with turns.taken() as turn:
            n_together.append(inside.acquire(blocking=False))
            with turns.kept(turn) as is_kept:
                assert is_kept
            inside.release()

    with ThreadPoolExecutor(8) as pool:
        for one in [pool.submit(work) for _ in range(50)]:
            one.result(timeout=30)
    assert all(n_together)


def test_a_turn_that_takes_too_long_is_taken_by_the_next_and_its_holder_can_tell() -> None:
    turns = Turns(seconds=0.02)
    with turns.taken() as first:
        with ThreadPoolExecutor(1) as pool:
            asked = pool.submit(_taken, turns)
            assert asked.result(timeout=30)
        with turns.kept(first) as is_kept:
            assert not is_kept
    with turns.taken() as third, turns.kept(third) as is_kept:
        assert is_kept


def test_whoever_lost_a_turn_does_not_end_that_of_another() -> None:
    turns = Turns(seconds=0.02)
    took, go = threading.Event(), threading.Event()

    def second() -> bool:
        with turns.taken() as turn:
            turn.end += 60
            took.set()
            assert go.wait(30)
            with turns.kept(turn) as is_kept:
                return is_kept

    with ThreadPoolExecutor(1) as pool:
        with turns.taken():
            asked = pool.submit(second)
            assert took.wait(30)
        go.set()
        assert asked.result(timeout=30)


def test_who_has_no_time_left_does_not_wait_for_a_turn() -> None:
    turns = Turns(seconds=0.5)
    with turns.taken(), ThreadPoolExecutor(1) as pool, pytest.raises(TooSlow):
        pool.submit(_hurried, turns).result(timeout=30)


def _taken(turns: Turns) -> bool:
    with turns.taken() as turn, turns.kept(turn) as is_kept:
        return is_kept


def _hurried(turns: Turns) -> None:
    with paced(Deadline(0.01)), turns.taken():
        raise AssertionError
