"""Epochs begin by the clock alone; what is over gets no state; what was dropped leaves none."""

import threading
from pathlib import Path

import numpy as np
import pytest

from accountant.ledger.streams import StreamDropped
from cube.refusals import InvalidRequest, StoreUnavailable, TooLarge, UnknownName
from proxy.api.requests import LOCAL
from proxy.streams.service import Turning
from streams.arrivals import Arrivals
from streams.declared import population_of
from tests.support.streaming import (
    BY_EPOCH,
    CREATE,
    DAILY,
    LATER,
    TODAY,
    TOMORROW,
    Streaming,
    streaming,
)

PRESENT = np.arange(300, dtype=np.int64)


def test_an_arrival_begins_no_epoch(server: Streaming, monkeypatch: pytest.MonkeyPatch) -> None:
    """Or the ledger, which analysts see some of, would say that somebody came."""
    monkeypatch.setattr("proxy.streams.served_stream.AWAITED_SECONDS", 0.1)
    server.rows(DAILY)
    server.clock.day, server.clock.seconds = TOMORROW, 0
    before = list(server.ledger.entries())
    with pytest.raises(StoreUnavailable, match="ends at this moment") as caught:
        server.observe(PRESENT)
    assert "again" in str(caught.value.hint)
    assert list(server.ledger.entries()) == before


def test_an_arrival_waits_for_its_epoch(server: Streaming) -> None:
    server.rows(DAILY)
    server.clock.day, server.clock.seconds = TOMORROW, 0
    arriving = threading.Thread(target=server.observe, args=(PRESENT,))
    arriving.start()
    Turning(server.streams).look()
    arriving.join()
    server.turn(LATER)
    rows = server.rows(BY_EPOCH)
    assert [row["epoch"] for row in rows] == [TODAY, TOMORROW]
    assert abs(rows[1]["n"] - 300) < 30


def test_all_epochs_are_paid_for_before_any_is_released(server: Streaming) -> None:
    """Releases and states take their time: what waits behind them would be begun late."""
    for name in ("visits", "hits", "looks"):
        server.rows(DAILY.replace("visits", name))
    server.clock.day, server.clock.seconds = TOMORROW, 0
    Turning(server.streams).look()
    assert server.kinds()[6:] == ["epoch_begun"] * 3 + ["epoch_released"] * 3


def test_an_epoch_that_never_had_a_state_is_never_released(server: Streaming) -> None:
    """Everybody was refused on that day: a release would say that nobody came."""
    server.folder.mkdir()
    in_the_way = server.folder / f"visits.{TODAY}.bits.new"
    in_the_way.mkdir()  # where a folder stands, no file is made
    with pytest.raises(StoreUnavailable, match="is created, and its first epoch has no state"):
        server.rows(DAILY)
    with pytest.raises(StoreUnavailable, match="cannot be kept"):
        server.observe(PRESENT)
    in_the_way.rmdir()
    server.turn(TOMORROW)
    with pytest.raises(InvalidRequest, match="No epoch of the stream visits is over"):
        server.rows(BY_EPOCH)
    server.observe(PRESENT)
    server.turn(LATER)
    assert [row["epoch"] for row in server.rows(BY_EPOCH)] == [TOMORROW]
    assert not [name for name in server.files() if TODAY in name]


def test_a_file_that_is_there_already_is_another_state(server: Streaming) -> None:
    """As after a ledger that was set back: to go on with it might be a second release of it."""
    server.rows(DAILY)
    (server.folder / f"visits.{TOMORROW}.bits").write_bytes(b"of another time")
    with pytest.raises(StoreUnavailable, match="is missing, or is not the one"):
        server.turn(TOMORROW)
    with pytest.raises(StoreUnavailable, match="is missing, or is not the one"):
        server.observe(PRESENT)
    server.clock.day, server.clock.seconds = LATER, 0
    turning = Turning(server.streams)
    for _ in range(2):  # what went wrong with one epoch keeps no other one waiting
        turning.look()
    server.observe(PRESENT)
    assert server.kinds().count("epoch_begun") == 3
    assert server.kinds().count("epoch_released") == 1


def test_what_a_crash_left_of_a_dropped_stream_is_erased(path: Path) -> None:
    with streaming(path) as server:
        server.rows(CREATE)
        server.rows(CREATE.replace("visits", "hits"))
        server.ledger.append_stream("visits", lambda _book, _at: StreamDropped("ann"))
    (path.with_name("a.ledger.streams") / "visits.all.bits.new").write_bytes(b"half made")
    with streaming(path) as server:
        Turning(server.streams).look()
        assert server.files() == ["hits.all.bits"]


def test_whoever_still_holds_a_dropped_stream_notes_nobody(server: Streaming) -> None:
    server.rows(CREATE)
    held = server.streams.observed(LOCAL, "visits")
    server.rows("DROP STREAM visits")
    with pytest.raises(InvalidRequest, match="was dropped"):
        held.observe(Arrivals(PRESENT))


def test_of_several_drops_at_once_one_drops(server: Streaming) -> None:
    server.rows(CREATE)
    ends: list[object] = []

    def drop() -> None:
        try:
            ends.append(server.rows("DROP STREAM visits"))
        except UnknownName as refusal:
            ends.append(refusal.code)

    droppers = [threading.Thread(target=drop) for _ in range(8)]
    for one in droppers:
        one.start()
    for one in droppers:
        one.join()
    dropped = [{"name": "visits", "dropped": True}]
    assert len(ends) == 8
    assert all(one in (dropped, "unknown_name") for one in ends)
    assert dropped in ends
    assert server.kinds().count("stream_dropped") == 1


def test_states_of_all_streams_have_room_together(
    server: Streaming, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("proxy.streams.service.N_BITS_MAX", 2500)
    server.rows(CREATE)
    with pytest.raises(TooLarge, match="at most 2500 bits together; 1500 are left"):
        server.rows("CREATE STREAM hits (user UNIVERSE 1000, paid BOOLEAN)")
    server.rows("CREATE STREAM hits (user UNIVERSE 1500)")
    server.rows("DROP STREAM visits")
    server.rows("CREATE STREAM looks (user BUCKETS 1000)")


def test_a_hash_is_made_once_for_a_stream(server: Streaming) -> None:
    """It has 4 MB, and takes longer to make than a message to be noted."""
    server.rows("CREATE STREAM visits (user BUCKETS 1000)")
    opened = server.ledger.streams.streams["visits"].opened
    assert population_of(opened) is population_of(opened)
