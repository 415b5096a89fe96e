"""Of many threads that want to write, one writes for all that wait: every request is done."""

import threading
from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass

import pytest

from accountant.ledger.group_commit import GroupCommit

SECONDS = 60


@dataclass(eq=False)
class Wish:
    number: int
    is_done: bool = False


class Book:
    """Notes who was written together; the first write waits until it is told to go on."""

    def __init__(self) -> None:
        self.batches: list[list[int]] = []
        self.n_writing = 0
        self.is_begun = threading.Event()
        self.goes_on = threading.Event()

    def write(self, wishes: Sequence[Wish]) -> None:
        self.n_writing += 1
        assert self.n_writing == 1, "one at a time"
        self.is_begun.set()
        assert self.goes_on.wait(SECONDS)
        self.batches.append([wish.number for wish in wishes])
        self.n_writing -= 1


def test_requests_that_arrive_during_a_write_are_written_together() -> None:
    book = Book()
    group: GroupCommit[Wish] = GroupCommit(book.write)
    wishes = [Wish(number) for number in range(17)]
    with ThreadPoolExecutor(17) as pool:
        pool.submit(group.deal_with, wishes[0])
        assert book.is_begun.wait(SECONDS)
        others = [pool.submit(group.deal_with, wish) for wish in wishes[1:]]
        while len(group._requests) < 16:
            assert not any(one.done() for one in others)
        book.goes_on.set()
    assert book.batches[0] == [0]
    assert [sorted(batch) for batch in book.batches[1:]] == [list(range(1, 17))]
    assert all(wish.is_done for wish in wishes)


def test_every_request_is_written_once() -> None:
    book = Book()
    book.goes_on.set()
    group: GroupCommit[Wish] = GroupCommit(book.write)
    with ThreadPoolExecutor(8) as pool:
        for _ in pool.map(lambda number: group.deal_with(Wish(number)), range(2000)):
            pass
    assert sorted(number for batch in book.batches for number in batch) == list(range(2000))


def test_a_leader_that_fails_leaves_the_turn_to_others() -> None:
    def write(_wishes: Sequence[Wish]) -> None:
        raise KeyboardInterrupt

    group: GroupCommit[Wish] = GroupCommit(write)
    for number in range(3):
        wish = Wish(number)
        with pytest.raises(KeyboardInterrupt):
            group.deal_with(wish)
        assert wish.is_done
