"""`Connection.best` over the wire: the same as `tacit.v1` says to the library's own messages."""

import dataclasses

import grpc
import pytest

import tacit_client
from proxy.engine.engine import Engine
from proxy.protocol import tacit_pb2
from proxy.protocol.tacit_pb2_grpc import TacitStub
from tacit_client import protobuf
from tacit_client.calls import _best
from tests.support.synthetic import spent

COUNT = "SELECT COUNT(*) AS n FROM people WHERE city = 'Oslo'"
PRIOR = {300: 0.25, 500: 0.5, 700: 0.25}


def test_it_is_what_the_protocol_answers(
    connection: tacit_client.Connection, engine: Engine, address: str
) -> None:
    found = connection.best(COUNT, PRIOR, loss="power", power=1.5, confidence=0.8)
    assert 0 < found.epsilon_spent == float(spent(engine))
    points = [tacit_pb2.PriorPoint(value=k, probability=p) for k, p in PRIOR.items()]
    request = tacit_pb2.BestReportRequest(
        sql=COUNT,
        prior=points,
        loss="power",
        power=1.5,
        target=tacit_pb2.Target(half_width=100, confidence=0.8),
    )
    with grpc.insecure_channel(address) as channel:
        reply = TacitStub(channel).BestReport(request)
    assert (found.value, found.expected_loss) == (reply.report, reply.expected_loss)
    interval = reply.interval
    ends = (found.low, found.high, found.confidence, found.probability)
    assert ends == (interval.low, interval.high, interval.confidence, interval.probability)
    (column,) = reply.receipt.columns
    shown = (found.answer, found.answer_low, found.answer_high)
    assert shown == (reply.answer, column.low[0], column.high[0])
    assert found.notes == tuple(reply.receipt.notes)
    assert connection.best(COUNT, PRIOR, confidence=0.8).epsilon_spent == 0


def test_a_list_is_a_prior_from_0_on_and_a_select_gives_one(
    connection: tacit_client.Connection,
) -> None:
    by_list = connection.best(COUNT, [0, 0.5, 0.5])
    by_rows = connection.best(COUNT, "SELECT n FROM (VALUES (1), (2)) AS t(n)")
    assert by_list.value == by_rows.value == 2
    assert by_list.expected_loss == pytest.approx(by_rows.expected_loss)


def test_a_table_of_losses_is_passed_on(connection: tacit_client.Connection) -> None:
    found = connection.best(COUNT, [0.5, 0.5], loss=[[0, 7], [9, 8]])
    assert found.value in {0, 1}
    assert connection.best(COUNT, [0, 1], loss=[[0, 0], [9, 8]]).expected_loss == 8


@pytest.mark.parametrize(
    ("prior", "how"),
    [
        ({1: 0.5}, {}),
        ({1.5: 1.0}, {}),
        ({}, {}),
        ({1: 1.0}, {"loss": "none"}),
        ({1: 1.0}, {"loss": "power"}),
        ("SELECT nothing FROM cities", {}),
    ],
)
def test_what_is_no_belief_is_refused(
    connection: tacit_client.Connection, engine: Engine, prior: object, how: dict[str, str]
) -> None:
    with pytest.raises((tacit_client.Refused, tacit_client.InterfaceError)):
        connection.best(COUNT, prior, **how)  # type: ignore[arg-type]  # what a user may send
    assert spent(engine) == 0


def test_the_report_of_an_older_server_has_no_interval_under_the_prior() -> None:
    older = tacit_pb2.BestReportReply(report=3, expected_loss=1.0, answer=2.5)
    found = _best(protobuf.fields(older.SerializeToString()))
    assert (found.value, found.expected_loss, found.answer) == (3, 1.0, 2.5)
    assert found.low is found.high is found.confidence is found.probability is None


def test_a_newer_server_may_say_more() -> None:
    reply = tacit_pb2.BestReportReply(report=3, interval=tacit_pb2.PosteriorInterval(high=4))
    more = protobuf.written([(99, "more")])
    found = _best(protobuf.fields(reply.SerializeToString() + more))
    assert dataclasses.astuple(found)[:4] == (3, 0.0, 0, 4)
