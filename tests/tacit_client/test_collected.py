"""What a collection says, over the wire: the same as the protocol's own messages."""

import json
from collections.abc import Iterator
from contextlib import closing
from pathlib import Path

import grpc
import pytest

import tacit_client
from accountant.ledger.opening import open_ledger
from local_dp.campaign import campaign_text
from proxy.api.requests import LOCAL
from proxy.collections.service import CollectionService
from proxy.protocol import tacit_pb2
from proxy.protocol.tacit_pb2_grpc import TacitStub
from tests.support.campaigns import survey
from tests.support.engine_fake import CannedEngine
from tests.support.serving import serving

BY = ["smokes", "education"]


@pytest.fixture
def server(tmp_path: Path) -> Iterator[str]:
    with (
        open_ledger(tmp_path / "ledger") as ledger,
        closing(CollectionService(ledger, tmp_path / "counts")) as made,
        serving(CannedEngine(), collections=made) as address,
    ):
        made.create(LOCAL, campaign_text(survey()), n_respondents_max=100)
        for number in range(30):
            tacit_client.respond(
                "survey",
                {"education": "school", "smokes": True, "region": 2},
                store=tmp_path / str(number),
                epsilon_max=2,
                server=address,
            )
        yield address


@pytest.mark.parametrize("is_likeliest", [False, True])
def test_shares_are_what_the_protocol_answers(server: str, is_likeliest: bool) -> None:
    with tacit_client.connect(server) as connection:
        found = connection.collected("survey", BY, likeliest=is_likeliest)
    request = tacit_pb2.EstimateCollectionRequest(
        name="survey", attributes=BY, likeliest=is_likeliest
    )
    with grpc.insecure_channel(server) as channel:
        reply = TacitStub(channel).EstimateCollection(request)
    assert found.data.column_names == ["education", "smokes", "share", "low", "high", "method"]
    rows = found.data.to_pylist()
    for row, cell in zip(rows, reply.cells, strict=True):
        assert [row["education"], row["smokes"]] == [json.loads(one) for one in cell.levels]
        assert row["share"] == cell.share
        if not is_likeliest:
            assert (row["low"], row["high"], row["method"]) == (cell.low, cell.high, cell.method)
    assert (found.estimator, found.n_respondents) == (reply.estimator, 30)
    if is_likeliest:
        assert all(row["low"] is row["high"] is row["method"] is None for row in rows)
        assert (found.confidence, found.half_width_together) == (None, None)
        assert found.combination == ("education", "smokes")
        assert (found.n_answers, found.likelihood_gap) == (reply.basis.answers, 0.0)
    else:
        assert found.confidence == 0.95
        assert found.half_width_together == reply.half_width_together > 0
        assert (found.combination, found.n_answers, found.likelihood_gap) == ((), None, None)


def test_what_is_refused_is_refused(server: str) -> None:
    with tacit_client.connect(server) as connection:
        with pytest.raises(tacit_client.InterfaceError, match="list"):
            connection.collected("survey", "smokes")
        with pytest.raises(tacit_client.Refused, match="no intervals"):
            connection.collected("survey", BY, likeliest=True, confidence=0.9)
        wider = connection.collected("survey", BY, confidence=0.99)
        assert wider.confidence == 0.99
    with pytest.raises(tacit_client.Error):
        connection.collected("survey", BY)
