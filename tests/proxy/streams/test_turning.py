"""Epochs turn by the clock, whatever goes wrong with one stream; and which servers have streams."""

import io
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
import structlog

from cube.refusals import InvalidRequest
from proxy.api.requests import QueryRequest
from proxy.bootstrap import build
from proxy.config.settings import load
from proxy.monitoring.logs import configure_logs
from proxy.streams.turning import Turning
from tests.support.streaming import BY_EPOCH, CREATE, DAILY, TODAY, TOMORROW, streaming

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


@pytest.mark.parametrize("n_workers", [1, 2])
def test_a_server_of_one_process_has_streams(tmp_path: Path, n_workers: int) -> None:
    (tmp_path / "people.csv").write_text("age\n40\n")
    (tmp_path / "tacit.toml").write_text(CONFIGURATION)
    settings = load(tmp_path / "tacit.toml")
    settings = replace(settings, server=replace(settings.server, workers=n_workers))
    service = build(settings)
    try:
        create = QueryRequest(sql=CREATE)
        if n_workers > 1:
            with pytest.raises(InvalidRequest, match="has no streams"):
                service.engine.answer(create)
        else:
            assert service.engine.answer(create).data.num_rows == 1
            assert (tmp_path / "people.ledger.streams" / "visits.all.bits").exists()
    finally:
        service.close()
