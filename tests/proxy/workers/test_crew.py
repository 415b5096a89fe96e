"""Workers hear what others hold; one that is gone, or silent, counts as one that holds nothing."""

import socket
import stat
import tempfile
from collections.abc import Iterator
from contextlib import ExitStack
from functools import partial
from pathlib import Path
from typing import Any

import pytest

from proxy.workers import crew as crews
from proxy.workers.crew import ALONE, Crew, Seat


def doubled(place: int, question: Any) -> tuple[int, Any]:
    return place, 2 * question


@pytest.fixture
def folder() -> Iterator[Path]:
    """A short path: a socket's may not be long."""
    with tempfile.TemporaryDirectory(prefix="tacit-") as made:
        yield Path(made)


@pytest.fixture
def three(folder: Path) -> Iterator[list[Crew]]:
    with ExitStack() as stack:
        yield [stack.enter_context(Crew(Seat(place, 3, folder))) for place in range(3)]


def test_a_question_is_answered_by_the_worker_that_is_asked(three: list[Crew]) -> None:
    for place, one in enumerate(three):
        one.answer("double", partial(doubled, place))
    assert three[0].ask(1, "double", 21) == (1, 42)
    assert three[0].ask(2, "double", 4) == (2, 8)
    assert three[2].ask(0, "double", "ab") == (0, "abab")


def test_what_nobody_answers_is_none(three: list[Crew], folder: Path) -> None:
    assert three[0].ask(1, "unheard of", 1) is None
    assert three[0].ask(0, "itself", 1) is None
    assert three[0].ask(3, "no such place", 1) is None
    (folder / "2").unlink()
    assert three[0].ask(2, "gone", 1) is None


def test_a_worker_that_is_silent_is_not_waited_for(
    folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(crews, "ANSWER_SECONDS_MAX", 0.2)
    with socket.socket(socket.AF_UNIX) as silent, Crew(Seat(0, 2, folder)) as one:
        silent.bind(str(folder / "1"))
        silent.listen()
        assert one.ask(1, "anything", 1) is None


def test_who_takes_the_place_of_one_that_died_is_heard(folder: Path) -> None:
    dead = socket.socket(socket.AF_UNIX)
    dead.bind(str(folder / "1"))
    dead.close()  # the file stays, as after kill -9
    with Crew(Seat(0, 2, folder)) as one:
        assert one.ask(1, "name", None) is None
        with Crew(Seat(1, 2, folder)) as other:
            other.answer("name", lambda _: "new")
            assert one.ask(1, "name", None) == "new"
        assert one.ask(1, "name", None) is None


def test_only_the_user_of_the_server_can_open_the_sockets(folder: Path) -> None:
    assert stat.S_IMODE(folder.stat().st_mode) == 0o700


def test_a_server_of_one_process_asks_nobody() -> None:
    assert ALONE.seat.is_alone
    assert [ALONE.ask(place, "anything", 1) for place in (0, 1)] == [None, None]


@pytest.mark.parametrize(("place", "n_places"), [(-1, 2), (2, 2), (1, 1), (0, 1)])
def test_a_seat_checks_itself(place: int, n_places: int, folder: Path) -> None:
    with pytest.raises(ValueError, match=r"place|folder"):
        Seat(place, n_places, folder)
