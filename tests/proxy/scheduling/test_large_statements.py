"""An analyst's large statements come one after the other; small ones and others' do not wait."""

import threading
from concurrent.futures import ThreadPoolExecutor
from typing import Any

import pytest

from cube.pace import Deadline, paced
from cube.refusals import TooSlow
from proxy.scheduling.fair_share import N_ROWS_LARGE, LargeStatements


class Rows:
    """A part of so many rows, as far as its size goes."""

    def __init__(self, n_rows: int) -> None:
        self.n_rows = n_rows
        self.blocks = (self,)
        self.aggregates = (self,)


LARGE: list[Any] = [Rows(N_ROWS_LARGE), Rows(1)]
SMALL: list[Any] = [Rows(N_ROWS_LARGE - 1), Rows(1)]


def test_one_large_statement_of_an_analyst_at_a_time() -> None:
    large = LargeStatements()
    inside, alone = threading.Semaphore(1), []

    def work() -> None:
        with large.turn("ann", LARGE):
            alone.append(inside.acquire(blocking=False))
            inside.release()

    with ThreadPoolExecutor(8) as pool:
        for one in [pool.submit(work) for _ in range(40)]:
            one.result(30)
    assert all(alone)
    assert not large._at_work


def test_small_ones_and_those_of_others_do_not_wait() -> None:
    large = LargeStatements()
    with large.turn("ann", LARGE), large.turn("bob", LARGE), large.turn("ann", SMALL):
        assert large._at_work == {"ann", "bob"}


def test_who_has_no_time_left_does_not_wait_for_ever() -> None:
    large = LargeStatements()

    def wait() -> None:
        with paced(Deadline(0.05)), large.turn("ann", LARGE):
            raise AssertionError

    with large.turn("ann", LARGE), ThreadPoolExecutor(1) as pool, pytest.raises(TooSlow):
        pool.submit(wait).result(30)
    assert not large._at_work
