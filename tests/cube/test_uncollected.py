"""Objects that all stay are not looked at when they are made, but are collected once they go."""

import gc
import weakref
from collections.abc import Iterator

import pytest

from cube.runtime import uncollected

N_OBJECTS = 50_000  # far beyond what starts a collection of young objects


class Ring:
    """A cycle of one object."""

    def __init__(self) -> None:
        self.itself = self


@pytest.fixture
def scanned() -> Iterator[list[int]]:
    """The number of young objects before each collection."""
    found: list[int] = []

    def note(phase: str, _info: dict[str, int]) -> None:
        if phase == "start":
            found.append(sum(map(len, map(gc.get_objects, (0, 1)))))

    gc.callbacks.append(note)
    yield found
    gc.callbacks.remove(note)


def test_what_was_made_is_old_afterwards(scanned: list[int]) -> None:
    """No collection meanwhile, and the first one afterwards looks at none of it."""
    with uncollected():
        kept = [Ring() for _ in range(N_OBJECTS)]
        assert not scanned
    more = [Ring() for _ in range(N_OBJECTS // 10)]
    assert scanned
    assert scanned[0] < N_OBJECTS // 10
    assert len(kept) + len(more) > N_OBJECTS


def test_without_it_they_are_looked_at(scanned: list[int]) -> None:
    """The measure above would notice: merely switched off, a collection finds all of them young."""
    gc.disable()
    kept = [Ring() for _ in range(N_OBJECTS)]
    gc.enable()
    more = [Ring() for _ in range(N_OBJECTS // 10)]
    assert scanned[0] >= N_OBJECTS
    assert len(kept) + len(more) > N_OBJECTS


def test_cycles_are_collected_once_they_go() -> None:
    with uncollected():
        ring = Ring()
        seen = weakref.ref(ring)
    del ring
    gc.collect()
    assert seen() is None


def test_a_process_that_collects_nothing_goes_on_so() -> None:
    gc.disable()
    try:
        with uncollected():
            pass
        assert not gc.isenabled()
    finally:
        gc.enable()


def test_what_a_server_froze_stays_frozen() -> None:
    gc.freeze()
    try:
        with uncollected():
            pass
        assert gc.get_freeze_count()
    finally:
        gc.unfreeze()
