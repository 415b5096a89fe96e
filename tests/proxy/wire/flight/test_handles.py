"""A shelf keeps what it can, forgets the least recently used, and says how to get it again."""

import tempfile
from collections.abc import Iterator
from contextlib import ExitStack
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from cube.refusals import UnknownTicket
from proxy.wire.flight.commands import KEY_BYTES, HandleStore
from proxy.workers.crew import Crew, Seat

ANN, BOB = "ann", "bob"


def shelf(n_items_max: int = 100, n_bytes_max: int = 100) -> HandleStore[str]:
    return HandleStore(
        "result", again="Ask again.", n_items_max=n_items_max, n_bytes_max=n_bytes_max
    )


def test_an_item_is_found_under_its_key_as_often_as_wanted() -> None:
    held = shelf()
    key = held.put("answer", 1, ANN)
    assert [held.get(key, ANN), held.get(key, ANN)] == ["answer", "answer"]


def test_keys_are_long_and_never_repeat() -> None:
    held = shelf()
    keys = {held.put("same", 1, ANN) for _ in range(50)}
    assert len(keys) == 50
    assert {len(key) for key in keys} == {KEY_BYTES}


@pytest.mark.parametrize("key", [b"", b"x", b"\0" * KEY_BYTES])
def test_an_unknown_key_is_refused_with_the_way_out(key: bytes) -> None:
    with pytest.raises(UnknownTicket) as caught:
        shelf().get(key, ANN)
    assert caught.value.explain() == "This server no longer holds that result. Ask again."


def test_the_least_recently_used_item_is_forgotten_first() -> None:
    held = shelf(n_items_max=2)
    first, second = held.put("first", 1, ANN), held.put("second", 1, ANN)
    held.get(first, ANN)
    held.put("third", 1, ANN)
    assert held.get(first, ANN) == "first"
    with pytest.raises(UnknownTicket):
        held.get(second, ANN)


def test_the_newest_item_is_kept_however_large() -> None:
    held = shelf(n_bytes_max=10)
    held.put("small", 1, ANN)
    key = held.put("huge", 1_000, ANN)
    assert held.get(key, ANN) == "huge"
    assert len(held) == 1


def test_discarding_twice_is_harmless() -> None:
    held = shelf()
    key = held.put("answer", 1, ANN)
    held.discard(key, ANN)
    held.discard(key, ANN)
    with pytest.raises(UnknownTicket):
        held.get(key, ANN)


def test_what_is_held_for_one_is_not_there_for_another() -> None:
    held = shelf()
    key = held.put("answer", 1, ANN)
    refusals = []
    for wanted in (key, bytes(KEY_BYTES)):
        with pytest.raises(UnknownTicket) as caught:
            held.get(wanted, BOB)
        refusals.append(caught.value.explain())
    assert len(set(refusals)) == 1
    held.discard(key, BOB)
    assert held.get(key, ANN) == "answer"


@given(
    sizes=st.lists(st.integers(0, 60), min_size=1, max_size=30),
    closed=st.sets(st.integers(0, 29)),
)
def test_a_shelf_keeps_exactly_what_its_bounds_allow(sizes: list[int], closed: set[int]) -> None:
    held = shelf(n_items_max=5, n_bytes_max=100)
    expected: list[tuple[bytes, int]] = []
    for position, size in enumerate(sizes):
        key = held.put("x", size, ANN)
        expected.append((key, size))
        while len(expected) > 1 and (len(expected) > 5 or sum(s for _, s in expected) > 100):
            expected.pop(0)
        if position in closed:
            held.discard(key, ANN)
            expected.pop()
    assert len(held) == len(expected)
    assert [held.get(key, ANN) for key, _ in expected] == ["x"] * len(expected)


@pytest.fixture
def shelves() -> Iterator[list[HandleStore[str]]]:
    """The stores of three workers of one server."""
    with tempfile.TemporaryDirectory(prefix="tacit-") as folder, ExitStack() as stack:
        crews = [stack.enter_context(Crew(Seat(place, 3, Path(folder)))) for place in range(3)]
        yield [
            HandleStore("result", again="Ask again.", n_items_max=9, n_bytes_max=99, crew=crew)
            for crew in crews
        ]


def test_an_item_is_found_whichever_worker_is_asked(shelves: list[HandleStore[str]]) -> None:
    keys = [held.put(f"of {place}", 1, ANN) for place, held in enumerate(shelves)]
    for held in shelves:
        assert [held.get(key, ANN) for key in keys] == ["of 0", "of 1", "of 2"]
    assert [len(held) for held in shelves] == [1, 1, 1]


def test_another_worker_gives_an_item_to_its_owner_alone(shelves: list[HandleStore[str]]) -> None:
    key = shelves[0].put("answer", 1, ANN)
    forged = key[:1] + bytes(KEY_BYTES)
    refusals = set()
    for held in shelves:
        for wanted, owner in ((key, BOB), (forged, ANN), (b"\x07" + key[1:], ANN), (key[1:], ANN)):
            with pytest.raises(UnknownTicket) as caught:
                held.get(wanted, owner)
            refusals.add(caught.value.explain())
        held.discard(key, BOB)
        held.change(key, "worse", BOB)
    assert refusals == {"This server no longer holds that result. Ask again."}
    assert shelves[2].get(key, ANN) == "answer"


def test_an_item_is_changed_and_forgotten_whichever_worker_is_asked(
    shelves: list[HandleStore[str]],
) -> None:
    key = shelves[0].put("first", 1, ANN)
    shelves[1].change(key, "second", ANN)
    assert [held.get(key, ANN) for held in shelves] == ["second"] * 3
    shelves[0].change(key, "third", ANN)
    assert [held.get(key, ANN) for held in shelves] == ["third"] * 3
    shelves[2].discard(key, ANN)
    shelves[1].discard(key, ANN)
    shelves[1].change(key, "fourth", ANN)
    for held in shelves:
        with pytest.raises(UnknownTicket):
            held.get(key, ANN)
