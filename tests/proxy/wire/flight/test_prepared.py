"""Values that clients bind: one row of an Arrow table, and nothing else."""

import pyarrow as pa
import pytest

from cube.refusals import InvalidRequest, InvalidSql, TooLarge
from planner.sql.parameters import list_of, parameter_of
from proxy.protocol import flight_pb2
from proxy.wire.arrow_ipc import flight_messages
from proxy.wire.flight.commands import PreparedStatement


def test_a_row_of_values_is_bound_until_another_is() -> None:
    prepared = PreparedStatement("SELECT ?, ?")
    for first, second in ((1, "a"), (2, None)):
        table = pa.table({"1": pa.array([first], pa.int32()), "2": pa.array([second], pa.string())})
        prepared.bind(flight_messages(table))
        assert prepared.bound == (parameter_of(first, "1"), parameter_of(second, "2"))


def test_what_is_not_one_row_is_refused() -> None:
    prepared = PreparedStatement("SELECT ?")
    for values in ([], [1, 2]):
        with pytest.raises(InvalidRequest, match="rows of parameter values came"):
            prepared.bind(flight_messages(pa.table({"1": pa.array(values, pa.int64())})))


def test_what_is_no_table_or_no_value_is_refused() -> None:
    prepared = PreparedStatement("SELECT ?")
    for junk in (b"", b"junk", b"\xff" * 100):
        with pytest.raises(InvalidRequest, match="not an Arrow table"):
            prepared.bind([flight_pb2.FlightData(data_header=junk, data_body=junk)])
    with pytest.raises(InvalidSql, match="A parameter of type bytes"):
        prepared.bind(flight_messages(pa.table({"1": [b"bytes"]})))
    with pytest.raises(TooLarge):
        prepared.bind(flight_messages(pa.table({"1": ["x" * 2**21]})))
    # An array that claims more values than it has would be read beyond its end.
    (schema, batch) = flight_messages(pa.table({"1": [2**40]}))
    (_, shorter) = flight_messages(pa.table({"1": pa.array([1], pa.int8())}))
    with pytest.raises(InvalidRequest, match="not an Arrow table"):
        prepared.bind([schema, shorter])
    assert batch.data_header != shorter.data_header


def test_parameters_have_the_types_that_clients_should_bind() -> None:
    kinds = {"1": "BIGINT", "2": "DECIMAL", "3": "DATE[]", "4": "TIMESTAMP", "a": "VARCHAR"}
    assert PreparedStatement("", kinds).parameter_schema == pa.schema(
        {
            "1": pa.int64(),
            "2": pa.float64(),
            "3": pa.list_(pa.date32()),
            "4": pa.timestamp("us"),
            "a": pa.string(),
        }
    )


def test_a_list_is_bound_as_one_parameter() -> None:
    prepared = PreparedStatement("SELECT COUNT(*) FROM t WHERE a = ANY($1)")
    prepared.bind(flight_messages(pa.table({"1": pa.array([["x", "y"]])})))
    assert prepared.bound == (list_of(["x", "y"], "1"),)
