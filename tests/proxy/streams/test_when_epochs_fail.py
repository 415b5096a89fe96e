"""What goes wrong while epochs turn: nothing is begun twice, and nobody else is kept waiting."""

import io
import threading
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import structlog

from cube.refusals import InvalidRequest, LedgerUnavailable, StoreUnavailable
from proxy.monitoring import background
from proxy.monitoring.background import Background
from proxy.monitoring.logs import configure_logs
from proxy.streams.answers import StreamElsewhere
from proxy.streams.served_stream import ServedStream
from proxy.streams.service import Turning
from streams.state import BitState
from tests.support.streaming import (
    BY_EPOCH,
    COUNT,
    CREATE,
    DAILY,
    LATER,
    TODAY,
    TOMORROW,
    Streaming,
    streaming,
)

PRESENT = np.arange(300, dtype=np.int64)


def only(server: Streaming) -> ServedStream:
    (found,) = server.streams.served
    return found


class LateLock:
    """A lock before which something else happens once, as it may between two threads."""

    def __init__(self, before: Callable[[], object]) -> None:
        self._before: Callable[[], object] | None = before
        self._lock = threading.Lock()

    def __enter__(self) -> None:
        before, self._before = self._before, None
        if before is not None:
            before()
        self._lock.acquire()

    def __exit__(self, *_: object) -> None:
        self._lock.release()


def test_a_stream_that_is_created_meanwhile_fails_no_look(
    server: Streaming, monkeypatch: pytest.MonkeyPatch
) -> None:
    server.rows(CREATE)
    late = LateLock(lambda: server.rows(CREATE.replace("visits", "hits")))
    monkeypatch.setattr(server.streams, "_lock", late)
    assert set(server.streams) == {"visits", "hits"}


def test_a_thread_goes_on_after_whatever_went_wrong(monkeypatch: pytest.MonkeyPatch) -> None:
    again = threading.Event()

    class Failing(Background):
        has_work = True
        n_looks = 0

        def look(self) -> None:
            self.n_looks += 1
            if self.n_looks == 1:
                raise KeyError("a name that is nobody's business")
            again.set()

    monkeypatch.setattr(background, "PAUSE_SECONDS", 0.01)
    written = io.StringIO()
    configure_logs(written)
    with Failing("failing", 0.01):
        assert again.wait(30)
    structlog.reset_defaults()
    assert '"event": "background_failed"' in written.getvalue()
    assert '"stage": "failing"' in written.getvalue()
    assert "nobody" not in written.getvalue()


@pytest.mark.parametrize("statement", [CREATE, DAILY])
def test_an_epoch_whose_payment_was_made_and_not_told_gets_its_state(
    server: Streaming, monkeypatch: pytest.MonkeyPatch, statement: str
) -> None:
    """As when the entry is durable, and the mark of the ledger cannot be written behind it."""
    append = server.ledger.append_stream
    n_calls = iter(range(10))

    def doubtful(*asked: Any) -> int | None:
        seq = append(*asked)
        if next(n_calls) == 1:
            raise LedgerUnavailable("The mark of the ledger cannot be written.")
        return seq

    monkeypatch.setattr(server.ledger, "append_stream", doubtful)
    with pytest.raises(StoreUnavailable, match="visits is created, and its first epoch has no"):
        server.rows(statement)
    assert server.kinds() == ["stream_opened", "epoch_begun"]
    server.observe(PRESENT)
    server.turn(TOMORROW)
    rows = server.rows(BY_EPOCH)
    assert abs(rows[0]["n"] - 300) < 30


def test_a_stream_without_windows_whose_state_is_gone_says_what_to_do(server: Streaming) -> None:
    server.rows(CREATE)
    (server.folder / "visits.all.bits").unlink()
    server.streams.close()
    with pytest.raises(StoreUnavailable, match="is missing") as caught:
        server.observe(PRESENT)
    assert "create another one" in str(caught.value.hint)
    with pytest.raises(InvalidRequest, match="no state from which") as answered:
        server.rows(COUNT)
    assert "Drop it" in str(answered.value.hint)


def test_a_damaged_state_is_erased_once_its_epoch_is_over_and_the_others_are_answered(
    path: Path,
) -> None:
    with streaming(path) as server:
        server.rows(DAILY)
    (server.folder / f"visits.{TODAY}.bits").write_bytes(b"nothing")
    with streaming(path) as server:
        turning = Turning(server.streams)
        server.clock.day, server.clock.seconds = TOMORROW, 0
        turning.look()
        server.observe(PRESENT)
        server.clock.day, server.clock.seconds = LATER, 0
        turning.look()
        server.turn(LATER)
        assert [row["epoch"] for row in server.rows(BY_EPOCH)] == [TOMORROW]
        assert server.files() == [f"visits.{LATER}.bits"]


def test_a_ledger_that_is_busy_for_a_moment_keeps_arrivals_for_no_longer(
    server: Streaming, monkeypatch: pytest.MonkeyPatch
) -> None:
    server.rows(DAILY)
    server.clock.day, server.clock.seconds = TOMORROW, 0
    turning, passed = Turning(server.streams), [0.0]
    real = time.monotonic
    monkeypatch.setattr(time, "monotonic", lambda: real() + passed[0])
    with monkeypatch.context() as busy:
        busy.setattr(server.ledger, "append_stream", refused)
        turning.look()
    assert server.kinds().count("epoch_begun") == 1
    passed[0] = 1.1
    turning.look()
    assert server.kinds().count("epoch_begun") == 2


def refused(*_asked: Any) -> int:
    raise LedgerUnavailable("The ledger is busy.")


def test_where_the_ledger_cannot_be_written_arrivals_are_told_so(
    server: Streaming, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("proxy.streams.served_stream.AWAITED_SECONDS", 0.05)
    server.rows(DAILY)
    server.clock.day, server.clock.seconds = TOMORROW, 0
    monkeypatch.setattr(server.ledger, "_is_writable", False)
    with pytest.raises(StoreUnavailable, match="the ledger cannot be written"):
        server.observe(PRESENT)


def test_an_epoch_that_begins_while_a_statement_is_planned_is_not_over(
    server: Streaming, monkeypatch: pytest.MonkeyPatch
) -> None:
    server.rows(DAILY)
    server.observe(PRESENT)
    stream = only(server)
    turned: list[bool] = []

    def late(_stream: ServedStream) -> bool:
        """Whether the present epoch is due: the last look before it has begun."""
        if not turned:
            turned.append(True)
            server.clock.day, server.clock.seconds = TOMORROW, 0
            stream.begin()
        return False

    monkeypatch.setattr(ServedStream, "is_due", property(late))
    assert stream.ended() == (TODAY,)


def test_an_epoch_that_is_not_over_is_not_released(server: Streaming) -> None:
    server.rows(DAILY)
    before = server.kinds()
    with pytest.raises(StoreUnavailable, match="ends at this moment"):
        only(server).release(TODAY)
    assert server.kinds() == before
    assert server.files() == [f"visits.{TODAY}.bits"]


def test_what_an_earlier_process_wrote_is_on_the_disk_once_a_later_one_says_so(
    path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    with streaming(path) as server:
        server.rows(DAILY)
        server.observe(PRESENT)
    synced: list[Path] = []
    monkeypatch.setattr(BitState, "sync", lambda state: synced.append(state.path))
    with streaming(path) as server:
        only(server).sync()
    assert [one.name for one in synced] == [f"visits.{TODAY}.bits"]


def test_a_stream_that_is_dropped_meanwhile_neither_turns_nor_is_released(
    server: Streaming,
) -> None:
    server.rows(DAILY)
    stream = only(server)
    server.rows("DROP STREAM visits")
    server.turn(TOMORROW)
    stream.turn()
    with pytest.raises(InvalidRequest, match="was dropped"):
        stream.release(TODAY)
    assert not server.files()


def test_the_ledger_is_read_once_for_all_epochs_without_a_state(server: Streaming) -> None:
    server.rows(DAILY)
    server.streams.close()
    for day in (TOMORROW, LATER, "2026-11-27"):
        for file in server.folder.iterdir():
            file.unlink()
        server.turn(day)
    n_reads = []

    class Reading(StreamElsewhere):
        def _read_again(self) -> None:
            n_reads.append(1)

    elsewhere = Reading(server.ledger, "visits", server.folder, lambda _: None)
    assert elsewhere.answerable() == ()
    assert len(n_reads) == 1
