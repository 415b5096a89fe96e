"""Marginals over the wire: what `tacit.v1` answers to the library's own messages is the same."""

import itertools

import grpc
import pytest

import tacit_client
from cube.refusals import Refused
from proxy.engine.engine import Engine
from proxy.protocol import tacit_pb2
from proxy.protocol.tacit_pb2_grpc import TacitStub
from tests.support.engine_fake import BrokenEngine
from tests.support.refusals import kinds_of_refusal, refusal_of
from tests.support.serving import serving
from tests.support.synthetic import spent

SETS: tuple[list[str], ...] = (["city"], ["city", "member"], [])


def test_they_are_what_the_protocol_answers(
    connection: tacit_client.Connection, engine: Engine, address: str
) -> None:
    made = connection.marginals("people", SETS, budget=0.5, confidence=0.9)
    assert 0 < made.epsilon_spent == float(spent(engine)) <= 0.5
    assert (made.consistency, made.confidence) == ("exact", 0.9)
    request = tacit_pb2.MarginalsRequest(
        table="people",
        sets=[tacit_pb2.AttributeSet(columns=one) for one in SETS],
        target=tacit_pb2.Target(confidence=0.9),
        budget="0",
    )
    with grpc.insecure_channel(address) as channel:
        *_, last = TacitStub(channel).Marginals(request)
    assert made.misfit == pytest.approx(last.summary.misfit)
    again = connection.marginals("people", SETS, budget=0, confidence=0.9)
    assert again.data.drop(["source"]).equals(made.data.drop(["source"]))
    assert again.epsilon_spent == 0


def test_a_table_of_one_set_sums_to_another(connection: tacit_client.Connection) -> None:
    made = connection.marginals("people", SETS, budget=0.5)
    total = made.table().column("value")[0].as_py()
    by_city = made.table("city")
    assert by_city.column_names == ["city", "value", "low", "high", "source"]
    assert by_city.column("city").to_pylist() == ["Oslo", "Paris", "Rome", None]
    assert sum(by_city.column("value").to_pylist()) == pytest.approx(total)
    cells = made.table("city", "member").to_pylist()
    for city, rows in itertools.groupby(cells, key=lambda row: row["city"]):
        (of_city,) = [row for row in by_city.to_pylist() if row["city"] == city]
        assert sum(row["value"] for row in rows) == pytest.approx(of_city["value"])
    with pytest.raises(KeyError):
        made.table("age")


def test_a_half_width_is_met_by_every_cell(connection: tacit_client.Connection) -> None:
    made = connection.marginals("people", [["city"]], half_width=60, public_total=2000)
    for row in made.data.to_pylist():
        assert (row["high"] - row["low"]) / 2 <= 60
    assert sum(made.data.column("value").to_pylist()) == pytest.approx(2000)


def test_a_name_is_no_set(connection: tacit_client.Connection) -> None:
    with pytest.raises(tacit_client.InterfaceError, match="list"):
        connection.marginals("people", ["city"], budget=0)


@pytest.mark.parametrize("kind", list(kinds_of_refusal()), ids=lambda kind: kind.__name__)
def test_it_is_refused_as_sql_is(kind: type[Refused]) -> None:
    with (
        serving(BrokenEngine(refusal_of(kind))) as address,
        tacit_client.connect(address) as connection,
    ):
        with pytest.raises(tacit_client.Refused) as by_sql:
            connection.sql("SELECT 1 FROM people")
        with pytest.raises(tacit_client.Refused) as by_marginals:
            connection.marginals("people", [["city"]])
    assert type(by_marginals.value) is type(by_sql.value)
    assert str(by_marginals.value) == str(by_sql.value)
    assert by_marginals.value.detail == by_sql.value.detail


def test_a_crash_and_a_missing_server_say_no_more_than_that() -> None:
    with (
        serving(BrokenEngine(RuntimeError("secret 12345"))) as address,
        tacit_client.connect(address) as connection,
        pytest.raises(tacit_client.InternalError) as caught,
    ):
        connection.marginals("people", [["city"]])
    assert "12345" not in str(caught.value)
    with (
        tacit_client.connect("127.0.0.1:1") as connection,
        pytest.raises(tacit_client.OperationalError, match="UNAVAILABLE"),
    ):
        connection.marginals("people", [["city"]])
