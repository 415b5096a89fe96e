"""Users of streams, uploaded by the real ADBC driver; what is refused notes nobody."""

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import grpc
import numpy as np
import pyarrow as pa
import pytest
from adbc_driver_flightsql import dbapi
from adbc_driver_manager import Error
from google.protobuf.any_pb2 import Any as AnyMessage

from accountant.ledger.credentials import Role
from accountant.ledger.limits import Payer
from cube.refusals import NotAllowed
from proxy.api.requests import LOCAL, Caller
from proxy.protocol import flight_pb2
from proxy.protocol import flight_sql_pb2 as sql
from proxy.protocol.flight_pb2_grpc import FlightServiceStub
from proxy.wire.arrow_ipc import flight_messages
from proxy.wire.errors import NotOffered
from proxy.wire.flight.commands import UPLOAD_BYTES_MAX, ingest
from tests.support.serving import serving
from tests.support.streaming import COUNT, CREATE, EACH, WATCHED, Streaming, streaming

LEAVING = CREATE.replace("epsilon => 8", "epsilon => 8, departures => true")
OPTIONS = sql.CommandStatementIngest.TableDefinitionOptions
APPEND = OPTIONS(
    if_not_exist=OPTIONS.TABLE_NOT_EXIST_OPTION_FAIL, if_exists=OPTIONS.TABLE_EXISTS_OPTION_APPEND
)


@pytest.fixture
def server(tmp_path: Path) -> Iterator[Streaming]:
    with streaming(tmp_path / "a.ledger") as found:
        yield found


@pytest.fixture
def address(server: Streaming) -> Iterator[str]:
    with serving(server.engine, streams=server.streams) as found:
        yield found


@pytest.fixture
def cursor(address: str) -> Iterator[Any]:
    with (
        dbapi.connect(f"grpc://{address}", autocommit=True) as connection,
        connection.cursor() as opened,
    ):
        yield opened


def users(ids: range, kind: pa.DataType | None = None) -> pa.Table:
    return pa.table({"user": pa.array(ids, kind or pa.int64())})


def state(server: Streaming) -> list[bytes]:
    """The bits of every state: as the disk has them, since they are written in place."""
    return [(server.folder / name).read_bytes() for name in server.files()]


def test_a_column_of_ids_is_noted_by_adbc_and_counted(server: Streaming, cursor: Any) -> None:
    server.rows(CREATE)
    assert cursor.adbc_ingest("visits", users(range(200)), mode="append") == 200
    batches = pa.Table.from_batches(
        [*users(range(150, 250)).to_batches(), *users(range(240, 300)).to_batches()]
    )
    assert cursor.adbc_ingest("visits", batches.to_reader(), mode="append") == 160
    for kind in (pa.int8(), pa.uint64(), pa.int32()):
        assert cursor.adbc_ingest("visits", users(range(100), kind), mode="append") == 100
    cursor.execute(COUNT)
    ((n,),) = cursor.fetchall()
    # 1000 bits of epsilon 8 miss by a deviation of about 1; 30 off happens in no lifetime.
    assert abs(n - 300) < 30


def test_a_column_says_who_left_and_the_last_row_of_a_user_stands(
    server: Streaming, cursor: Any
) -> None:
    server.rows(LEAVING)
    cursor.adbc_ingest("visits", users(range(300)), mode="append")
    ids = [*range(100), *range(100), *range(100, 300)]
    left = [True] * 100 + [False] * 100 + [True] * 200
    cursor.adbc_ingest("visits", pa.table({"left": left, "user": ids}), mode="append")
    assert abs(server.rows(COUNT)[0]["n"] - 100) < 30


def test_columns_say_which_predicates_held(server: Streaming, cursor: Any) -> None:
    server.rows(WATCHED)
    ids = np.arange(300)
    table = pa.table({"mobile": ids % 3 == 0, "user": ids, "paid": ids < 60})
    assert cursor.adbc_ingest("visits", table, mode="append") == 300
    cursor.adbc_ingest("visits", pa.table({"user": ids, "paid": ids < 120}), mode="append")
    cursor.execute(EACH)
    (found,) = cursor.fetchall()
    # 1000 bits of epsilon 8 each, as above.
    assert all(abs(n - true) < 30 for n, true in zip(found, (300, 120, 100), strict=True))


def test_who_left_is_where_no_predicate_holds(server: Streaming, cursor: Any) -> None:
    server.rows(WATCHED.replace("epsilon => 24", "epsilon => 24, departures => true"))
    ids = np.arange(300)
    cursor.adbc_ingest("visits", pa.table({"user": ids, "paid": ids < 200}), mode="append")
    gone = pa.table({"user": ids[:150], "left": [True] * 150, "paid": [True] * 150})
    cursor.adbc_ingest("visits", gone, mode="append")
    cursor.execute(EACH)
    (found,) = cursor.fetchall()
    assert all(abs(n - true) < 30 for n, true in zip(found, (150, 50, 0), strict=True))


@pytest.mark.parametrize(
    ("table", "said"),
    [
        (pa.table({"user": [1], "old": [True]}), "may have paid, mobile, and no other"),
        (pa.table({"paid": [True]}), "must have the column user"),
        (pa.table({"user": [1], "paid": [1]}), "The predicate paid must be true or false"),
        (pa.table({"user": [1, 2], "paid": [True, None]}), "NULL"),
        (pa.table({"user": [1, 1000], "paid": [True, False]}), "outside the universe"),
    ],
)
def test_wrong_predicates_are_refused_and_nobody_is_noted(
    server: Streaming, cursor: Any, table: pa.Table, said: str
) -> None:
    server.rows(WATCHED)
    before = state(server)
    with pytest.raises(Error, match=said):
        cursor.adbc_ingest("visits", table, mode="append")
    assert state(server) == before


def test_an_upload_without_rows_notes_nobody(server: Streaming) -> None:
    server.rows(CREATE)
    before = state(server)
    command = sql.CommandStatementIngest(table="visits", table_definition_options=APPEND)
    assert ingest(command, flight_messages(users(range(0))), [server.feature], LOCAL) == 0
    assert state(server) == before


WRONG = {
    "another name": (pa.table({"id": [1]}), "must have the column user, and no other"),
    "one more": (pa.table({"user": [1], "age": [2]}), "must have the column user, and no other"),
    "departures undeclared": (
        pa.table({"user": [1], "left": [True]}),
        "must have the column user, and",
    ),
    "twice": (pa.table([[1], [2]], names=["user", "user"]), "must have the column user"),
    "texts": (pa.table({"user": ["777"]}), "Users are whole numbers, and the column user is of"),
    "fractions": (pa.table({"user": [777.0]}), "Users are whole numbers"),
    "dictionary": (
        pa.table({"user": pa.array([777]).dictionary_encode()}),
        "Users are whole numbers",
    ),
    "null": (pa.table({"user": [1, None]}), "A value is NULL, so no user"),
    "beyond 64 bits": (
        pa.table({"user": pa.array([2**63 + 777], pa.uint64())}),
        "not a signed whole number of 64 bits",
    ),
    "outside": (pa.table({"user": [*range(900), 1777]}), "outside the universe"),
    "negative": (pa.table({"user": [*range(900), -777]}), "outside the universe"),
}


@pytest.mark.parametrize(("table", "said"), WRONG.values(), ids=WRONG.keys())
def test_wrong_rows_are_refused_and_nobody_is_noted(
    server: Streaming, cursor: Any, table: pa.Table, said: str
) -> None:
    server.rows(CREATE)
    before = state(server)
    with pytest.raises(Error, match=said) as caught:
        cursor.adbc_ingest("visits", table, mode="append")
    assert "777" not in str(caught.value)
    assert state(server) == before


def test_wrong_departures_are_refused_and_nobody_is_noted(server: Streaming, cursor: Any) -> None:
    server.rows(LEAVING)
    before = state(server)
    for left, said in (([1, 0], "true or false"), ([True, None], "NULL")):
        with pytest.raises(Error, match=said):
            cursor.adbc_ingest("visits", pa.table({"user": [1, 2], "left": left}), mode="append")
    table = pa.table({"user": [1, 1000], "left": [False, True]})
    with pytest.raises(Error, match="outside the universe"):
        cursor.adbc_ingest("visits", table, mode="append")
    assert state(server) == before


@pytest.mark.parametrize("mode", ["create", "replace", "create_append"])
def test_an_upload_makes_no_table(server: Streaming, cursor: Any, mode: Any) -> None:
    server.rows(CREATE)
    before = state(server)
    for name in ("visits", "hits"):
        with pytest.raises(Error, match="cannot create or replace a table"):
            cursor.adbc_ingest(name, users(range(3)), mode=mode)
    assert state(server) == before


def test_what_is_no_stream_takes_no_rows(cursor: Any) -> None:
    with pytest.raises(Error, match=r"no stream 'people'\. Only streams accept uploads"):
        cursor.adbc_ingest("people", users(range(3)), mode="append")


def test_other_places_and_options_are_refused(server: Streaming, cursor: Any) -> None:
    server.rows(CREATE)
    for where in ({"catalog_name": "other"}, {"db_schema_name": "data_privacy"}):
        with pytest.raises(Error, match="There are no streams in"):
            cursor.adbc_ingest("visits", users(range(3)), mode="append", **where)
    cursor.adbc_ingest(
        "visits", users(range(3)), mode="append", catalog_name="tacit", db_schema_name="public"
    )
    for command, said in (
        (sql.CommandStatementIngest(table="visits", transaction_id=b"t"), "transactions"),
        (sql.CommandStatementIngest(table="visits", temporary=True), "no options"),
        (sql.CommandStatementIngest(table="visits", options={"a": "b"}), "no options"),
    ):
        command.table_definition_options.CopyFrom(APPEND)
        with pytest.raises(NotOffered, match=said):
            ingest(command, flight_messages(users(range(3))), [server.feature], LOCAL)


def test_who_may_only_ask_uploads_nothing_and_nothing_of_theirs_is_read(server: Streaming) -> None:
    server.rows(CREATE)
    command = sql.CommandStatementIngest(table="visits", table_definition_options=APPEND)

    def never() -> Iterator[flight_pb2.FlightData]:
        raise AssertionError
        yield

    with pytest.raises(NotAllowed):
        ingest(
            command,
            never(),
            [server.feature],
            Caller(Payer("eve"), Role.ANALYST, ("visits",)),
        )


def test_too_much_at_once_is_refused_and_nobody_is_noted(server: Streaming, address: str) -> None:
    server.rows(CREATE)
    before = state(server)
    envelope = AnyMessage()
    envelope.Pack(sql.CommandStatementIngest(table="visits", table_definition_options=APPEND))
    first, *rest = flight_messages(pa.table({"user": np.zeros(UPLOAD_BYTES_MAX // 8, np.int64)}))
    first.flight_descriptor.cmd = envelope.SerializeToString()
    with grpc.insecure_channel(address) as channel, pytest.raises(grpc.RpcError) as caught:
        list(FlightServiceStub(channel).DoPut(iter((first, *rest))))
    assert "more than 33554432 bytes" in str(caught.value)
    assert "in parts" in str(caught.value)
    assert state(server) == before
