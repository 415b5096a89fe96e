"""Streams of a server of several workers: the first holds the states, the others ask that one."""

import tempfile
import threading
from collections.abc import Iterator
from contextlib import ExitStack
from pathlib import Path

import numpy as np
import pytest

from accountant.auditor.verify import verify
from cube.refusals import InvalidRequest, StoreUnavailable, UnknownName
from proxy.api.requests import LOCAL
from proxy.workers.crew import Crew, Seat
from streams.arrivals import Arrivals
from tests.support.streaming import (
    BY_EPOCH,
    COUNT,
    CREATE,
    DAILY,
    EACH,
    LATER,
    TODAY,
    TOMORROW,
    WATCHED,
    Streaming,
    streaming,
)

PRESENT = np.arange(300, dtype=np.int64)


@pytest.fixture
def folder() -> Iterator[Path]:
    """A short path: a socket's may not be long."""
    with tempfile.TemporaryDirectory(prefix="tacit-") as made:
        yield Path(made)


@pytest.fixture
def both(tmp_path: Path, folder: Path) -> Iterator[tuple[Streaming, Streaming]]:
    """Two workers, each with a ledger of its own on one file, as two processes have."""
    with ExitStack() as stack:
        crews = [stack.enter_context(Crew(Seat(place, 2, folder))) for place in range(2)]
        first, second = (
            stack.enter_context(streaming(tmp_path / "a.ledger", crew=crew)) for crew in crews
        )
        yield first, second


def test_a_stream_is_created_observed_and_asked_at_either(
    both: tuple[Streaming, Streaming],
) -> None:
    first, second = both
    assert second.rows(CREATE) == [{"name": "visits", "epoch": "all", "bits": 1000, "epsilon": 8.0}]
    second.observe(PRESENT[:200])
    first.observe(PRESENT[100:])
    assert not second.streams.served
    (row,) = second.rows(COUNT)
    # 999 bits of epsilon 8 miss by a deviation of about 1; 30 off happens in no lifetime.
    assert abs(row["n"] - 300) < 30
    assert first.rows(COUNT) == [row]
    for one in both:
        with pytest.raises(InvalidRequest, match="it was released"):
            one.observe(PRESENT)
    entries = list(first.ledger.entries())
    kinds = [one.kind for one in entries]
    assert kinds == ["stream_opened", "epoch_begun", "epoch_released"]
    assert verify(entries).problem is None
    assert first.files() == []


@pytest.mark.parametrize("maker", [0, 1])
def test_what_one_creates_or_drops_the_other_knows_at_once(
    both: tuple[Streaming, Streaming], maker: int
) -> None:
    """No credential is looked up here, which would read the ledger again within a second."""
    one, other = both[maker], both[1 - maker]
    one.rows(DAILY)
    with pytest.raises(InvalidRequest, match="No epoch of the stream visits is over"):
        other.rows(COUNT)
    assert [row["state"] for row in other.rows("SELECT state FROM data_privacy.streams")] == [
        "open"
    ]
    one.rows("DROP STREAM visits")
    with pytest.raises(UnknownName):
        other.rows(COUNT)


def test_who_asks_first_after_epochs_turned_gets_all_that_are_over(
    both: tuple[Streaming, Streaming],
) -> None:
    first, second = both
    second.rows(DAILY)
    for day in (TOMORROW, LATER):
        first.turn(day)
        second.clock.day = day
    assert [row["epoch"] for row in second.rows(BY_EPOCH)] == [TODAY, TOMORROW]


def test_predicates_pass_to_the_holder(both: tuple[Streaming, Streaming]) -> None:
    _, second = both
    second.rows(WATCHED)
    second.observe(PRESENT, where={"paid": PRESENT < 120, "mobile": True})
    for one in both:
        (found,) = one.rows(EACH)
        assert all(
            abs(n - true) < 30 for n, true in zip(found.values(), (300, 120, 300), strict=True)
        )


def test_refusals_come_back_as_they_are(both: tuple[Streaming, Streaming]) -> None:
    first, second = both
    first.rows(CREATE)
    with pytest.raises(InvalidRequest, match="outside the universe") as caught:
        second.observe([1, 1777])
    assert "777" not in str(caught.value)
    assert caught.value.hint
    stream = second.streams.observed(LOCAL, "visits")
    with pytest.raises(InvalidRequest, match="without departures"):
        stream.observe(Arrivals(PRESENT, present=False))


def test_only_the_holder_turns_epochs_and_the_other_answers_them(
    both: tuple[Streaming, Streaming],
) -> None:
    first, second = both
    second.rows(DAILY)
    second.observe(PRESENT)
    for one in (second, first):
        one.turn(TOMORROW)
    second.observe(PRESENT[:100])
    (day,) = second.rows(BY_EPOCH)
    assert day["epoch"] == TODAY
    assert abs(day["n"] - 300) < 30
    assert first.files() == [f"visits.{TOMORROW}.bits"]


def test_a_stream_that_one_drops_is_gone_at_the_other(both: tuple[Streaming, Streaming]) -> None:
    first, second = both
    first.rows(CREATE)
    second.observe(PRESENT)
    assert second.rows("DROP STREAM visits") == [{"name": "visits", "dropped": True}]
    assert list(first.streams) == list(second.streams) == []
    assert first.files() == []


def test_many_writers_at_both_lose_nothing_and_release_once(
    both: tuple[Streaming, Streaming],
) -> None:
    first, second = both
    first.rows(CREATE)
    told = np.array_split(np.random.default_rng(3).permutation(900), 6)
    writers = [
        threading.Thread(target=(first, second)[place % 2].observe, args=(some,))
        for place, some in enumerate(told)
    ]
    for one in writers:
        one.start()
    for one in writers:
        one.join()
    answers: list[float] = []
    readers = [
        threading.Thread(target=lambda one=one: answers.append(one.rows(COUNT)[0]["n"]))
        for one in (first, second, first, second)
    ]
    for reader in readers:
        reader.start()
    for reader in readers:
        reader.join()
    assert len(answers) == 4
    assert len(set(answers)) == 1
    assert abs(answers[0] - 900) < 30
    assert first.kinds().count("epoch_released") == 1


def test_a_state_that_is_erased_while_it_is_looked_for_loses_no_answer(
    both: tuple[Streaming, Streaming], monkeypatch: pytest.MonkeyPatch
) -> None:
    first, second = both
    first.rows(CREATE)
    second.observe(PRESENT)
    stream = second.streams.find(LOCAL, "visits")
    looked: list[str] = []

    def released_once_looked_for(name: str) -> bool:
        looked.append(name)
        return len(looked) == 1

    monkeypatch.setattr(stream, "_has_state", released_once_looked_for)
    assert stream.answerable() == (looked[0],)
    monkeypatch.undo()
    assert abs(second.rows(COUNT)[0]["n"] - len(PRESENT)) < 30


def test_while_the_holder_is_away_a_call_is_refused_and_can_be_sent_again(
    tmp_path: Path, folder: Path
) -> None:
    path = tmp_path / "a.ledger"
    with Crew(Seat(1, 2, folder)) as crew, streaming(path, crew=crew) as second:
        with Crew(Seat(0, 2, folder)) as holding, streaming(path, crew=holding):
            second.rows(CREATE)
            second.observe(PRESENT[:200])
        with pytest.raises(StoreUnavailable, match="does not answer") as caught:
            second.observe(PRESENT)
        assert "again" in str(caught.value.hint)
        with Crew(Seat(0, 2, folder)) as holding, streaming(path, crew=holding):
            second.observe(PRESENT)
            assert abs(second.rows(COUNT)[0]["n"] - 300) < 30
