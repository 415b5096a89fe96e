"""Epochs turn by the clock, whatever goes wrong with one stream; and which servers have streams."""

import io
from pathlib import Path

import numpy as np
import pytest
import structlog

from cube.refusals import InvalidRequest
from proxy.api.requests import LOCAL, QueryRequest
from proxy.bootstrap import build
from proxy.config.settings import load
from proxy.engine.engine import Engine
from proxy.monitoring.logs import configure_logs
from proxy.streams.feature import Streams
from proxy.streams.service import StreamService, Turning
from streams.arrivals import Arrivals
from tests.support.streaming import BY_EPOCH, COUNT, CREATE, DAILY, TODAY, TOMORROW, streaming

CONFIGURATION = """\
[ledger]
path = "people.ledger"
[tables.people]
source = "people.csv"
budget = "1.0"
n_records_max = 1000
half_width = 20
[tables.people.columns.age]
kind = "integer"
low = 0
high = 99
"""


def test_a_stream_whose_state_is_gone_does_not_stop_the_others(tmp_path: Path) -> None:
    with streaming(tmp_path / "a.ledger") as server:
        server.rows(DAILY.replace("visits", "hits"))
        server.rows(DAILY)
        server.observe(np.arange(300))
    (server.folder / f"hits.{TODAY}.bits").write_bytes(b"nothing")
    with streaming(tmp_path / "a.ledger") as server:
        written = io.StringIO()
        configure_logs(written)
        server.clock.day, server.clock.seconds = TOMORROW, 0
        turning = Turning(server.streams)
        turning.look()
        structlog.reset_defaults()
        assert "not_turned" in written.getvalue()
        assert "store_unavailable" in written.getvalue()
        (day,) = server.rows(BY_EPOCH)
        assert day["epoch"] == TODAY
        assert abs(day["n"] - 300) < 30
        assert f"visits.{TOMORROW}.bits" in server.files()
        assert f"hits.{TOMORROW}.bits" in server.files()


def test_a_server_whose_ledger_is_a_file_keeps_states_beside_it(tmp_path: Path) -> None:
    (tmp_path / "people.csv").write_text("age\n40\n")
    (tmp_path / "tacit.toml").write_text(CONFIGURATION)
    service = build(load(tmp_path / "tacit.toml"))
    try:
        assert service.engine.answer(QueryRequest(sql=CREATE)).data.num_rows == 1
        assert (tmp_path / "people.ledger.streams" / "visits.all.bits").exists()
    finally:
        service.close()


def test_a_server_that_keeps_no_states_answers_what_was_released_and_says_where_to_go(
    tmp_path: Path,
) -> None:
    with streaming(tmp_path / "a.ledger") as server:
        server.rows(CREATE)
        server.observe(np.arange(300))
        released = server.rows(COUNT)
        server.rows(CREATE.replace("visits", "hits"))
        streams = StreamService(server.ledger)  # as with a ledger in a database
        engine = Engine({}, features=[Streams(streams)])
        assert engine.answer(QueryRequest(sql=COUNT)).data.to_pylist() == released
        for statement in (
            COUNT.replace("visits", "hits"),
            "DROP STREAM hits",
            CREATE.replace("visits", "looks"),
        ):
            with pytest.raises(
                InvalidRequest, match="has no folder for the states of streams"
            ) as caught:
                engine.answer(QueryRequest(sql=statement))
            assert "a ledger in a file" in str(caught.value.hint)
        with pytest.raises(InvalidRequest, match="has no folder for the states of streams"):
            streams.observed(LOCAL, "hits").observe(Arrivals(np.arange(3)))
        assert server.kinds().count("epoch_released") == 1
