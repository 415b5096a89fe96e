"""One worker first, then all; who dies is replaced; one that cannot begin ends the server once."""

import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field

import pytest
from structlog.testing import capture_logs

from cube.refusals import CannotStart, LedgerMismatch
from proxy.workers import supervisor as supervising
from proxy.workers.supervisor import (
    CannotServe,
    Ended,
    Hear,
    Message,
    Roll,
    Serves,
    Supervisor,
    Vitals,
)

WAIT_SECONDS = 30.0
Behave = Callable[["FakeWorker"], None]


@dataclass(eq=False)
class FakeWorker:
    """A process that does what a test says, and ends when it is told to."""

    place: int
    hear: Hear
    is_deaf: bool = False
    is_killed: bool = False
    told: list[Message] = field(default_factory=list)

    def says(self, message: Message) -> None:
        self.hear(self, message)  # type: ignore[arg-type]  # it does what a process does

    def end(self) -> None:
        if not self.is_deaf:
            self.says(Ended(0))

    def kill(self) -> None:
        self.is_killed = True
        self.says(Ended(-9))


class Stage:
    """Starts fake workers; how the n-th behaves at its start is the n-th of a list."""

    def __init__(self, *behaviours: Behave) -> None:
        self.workers: list[FakeWorker] = []
        self.greetings: list[tuple[str, ...]] = []
        self.begun = threading.Condition()
        self._behaviours = behaviours

    def begin(self, place: int, hear: Hear) -> FakeWorker:
        worker = FakeWorker(place, hear)
        number = len(self.workers)
        with self.begun:
            self.workers.append(worker)
            self.begun.notify_all()
        behave = self._behaviours[number] if number < len(self._behaviours) else serves
        behave(worker)
        return worker

    def await_workers(self, n_workers: int) -> None:
        with self.begun:
            assert self.begun.wait_for(lambda: len(self.workers) >= n_workers, WAIT_SECONDS)

    @contextmanager
    def running(self, n_places: int, roll: Roll) -> Iterator[None]:
        """A supervisor of this stage in a thread, until the block is left."""
        supervisor = self.supervisor(n_places, roll)
        greeted = threading.Event()

        def greet(lines: tuple[str, ...]) -> None:
            self.greetings.append(lines)
            greeted.set()

        thread = threading.Thread(target=supervisor.run, args=(greet,))
        thread.start()
        try:
            assert greeted.wait(WAIT_SECONDS)
            yield
        finally:
            supervisor.stop()
            thread.join(WAIT_SECONDS)
            assert not thread.is_alive()

    def supervisor(self, n_places: int, roll: Roll) -> Supervisor:
        return Supervisor(n_places, self.begin, roll)  # type: ignore[arg-type]  # as above


def serves(worker: FakeWorker) -> None:
    worker.says(Serves((f"worker {worker.place} serves",)))
    worker.says(Vitals(is_ready=True))


def says(*messages: Message) -> Behave:
    def behave(worker: FakeWorker) -> None:
        for message in messages:
            worker.says(message)

    return behave


@pytest.fixture(autouse=True)
def _hasty(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(supervising, "PAUSE_SECONDS", 0.01)
    monkeypatch.setattr(supervising, "PAUSE_SECONDS_MAX", 0.05)


def test_all_places_are_filled_once_and_greeted_for_once() -> None:
    stage, roll = Stage(), Roll()
    with stage.running(3, roll):
        assert roll.is_ready
        assert [one.place for one in stage.workers] == [0, 1, 2]
    assert len(stage.greetings) == 1


def test_the_others_wait_until_the_first_serves() -> None:
    said: list[FakeWorker] = []
    stage = Stage(said.append)
    supervisor = stage.supervisor(3, Roll())
    thread = threading.Thread(target=supervisor.run, args=(stage.greetings.append,))
    thread.start()
    stage.await_workers(1)
    assert stage.workers == said
    serves(said[0])
    stage.await_workers(3)
    supervisor.stop()
    thread.join(WAIT_SECONDS)


def test_what_one_finds_wrong_is_raised_once_and_none_is_left() -> None:
    why = LedgerMismatch("The ledger knows people with other columns.")
    stage = Stage(says(CannotServe(why), Ended(1)))
    with pytest.raises(LedgerMismatch) as raised:
        stage.supervisor(4, Roll()).run(stage.greetings.append)
    assert raised.value is why
    assert len(stage.workers) == 1
    assert not stage.greetings


def test_a_worker_that_vanishes_at_the_start_is_told_of() -> None:
    stage = Stage(serves, says(Ended(-9)))
    with pytest.raises(CannotStart, match="signal 9"):
        stage.supervisor(2, Roll()).run(stage.greetings.append)
    assert not stage.greetings


def test_who_dies_is_replaced_however_often_while_the_others_go_on() -> None:
    stage, roll = Stage(), Roll()
    with capture_logs() as logged, stage.running(2, roll):
        for number in range(1, 6):
            stage.workers[number].says(Ended(-9))
            stage.await_workers(number + 2)
        assert {one.place for one in stage.workers[1:]} == {1}
    ends = [line for line in logged if line["event"] == "worker_ended"]
    assert [line["code"] for line in ends[:5]] == ["signal 9"] * 5


def test_one_that_cannot_begin_again_is_tried_again() -> None:
    fails = says(CannotServe(CannotStart("The data has changed.")), Ended(1))
    stage = Stage(serves, serves, fails, fails, serves)
    with capture_logs() as logged, stage.running(2, Roll()):
        stage.workers[1].says(Ended(-9))
        stage.await_workers(5)
    events = [line["event"] for line in logged if "worker" in line]
    assert events.count("worker_cannot_start") == 2


def test_pauses_double_up_to_a_limit_and_service_makes_good(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    now = [1000.0]
    monkeypatch.setattr(time, "monotonic", lambda: now[0])
    monkeypatch.setattr(supervising, "PAUSE_SECONDS", 1.0)
    monkeypatch.setattr(supervising, "PAUSE_SECONDS_MAX", 6.0)
    place = supervising._Place()
    supervisor = Stage().supervisor(1, Roll())
    pauses = []
    for served in (0.0, 1.0, 5.0, 59.0, 61.0, 2.0):
        place.serves_since = now[0]
        now[0] += served
        supervisor._empty(place)
        assert place.fill_at is not None
        pauses.append(place.fill_at - now[0])
    assert pauses == [1.0, 2.0, 4.0, 6.0, 1.0, 2.0]


def test_who_does_not_end_in_time_is_killed(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(supervising, "END_SECONDS_MAX", 0.05)

    def deaf(worker: FakeWorker) -> None:
        worker.is_deaf = True
        serves(worker)

    stage = Stage(serves, deaf)
    with stage.running(2, Roll()):
        pass
    assert [one.is_killed for one in stage.workers] == [False, True]


def test_a_signal_while_they_start_ends_them() -> None:
    stage = Stage(lambda _: None)
    supervisor = stage.supervisor(2, Roll())
    supervisor.stop()
    supervisor.run(stage.greetings.append)
    assert len(stage.workers) == 1
    assert not stage.greetings
