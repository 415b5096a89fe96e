"""The pace of a statement's work: without one a thread runs on, with one it ends in time."""

import threading

import pytest

from cube.pace import Deadline, checkpoint, current_pace, paced, seconds_left, waiting
from cube.refusals import TooSlow


def test_a_thread_without_a_pace_works_on() -> None:
    checkpoint()
    with waiting():
        assert seconds_left(5.0) == 5.0


def test_a_deadline_that_passed_ends_the_work_at_the_next_step() -> None:
    with paced(Deadline(-1.0)):
        assert seconds_left(5.0) == 0.0
        with pytest.raises(TooSlow, match="longer than the"):
            checkpoint()
    checkpoint()


def test_a_deadline_bounds_what_the_next_step_may_take() -> None:
    with paced(Deadline(100.0)):
        checkpoint()
        assert seconds_left(5.0) == 5.0
        assert 99.0 < seconds_left(1000.0) <= 100.0


def test_a_pace_is_of_one_thread() -> None:
    seen: list[object] = []
    with paced(Deadline(-1.0)):
        thread = threading.Thread(target=lambda: seen.append(current_pace()))
        thread.start()
        thread.join()
    assert seen == [None]
