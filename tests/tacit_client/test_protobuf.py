"""The wire format, against the library that the server uses."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from proxy.protocol import tacit_pb2
from tacit_client import protobuf
from tacit_client.errors import DETAILS_KEY, detail_in

NUMBERS = st.integers(-(2**63), 2**63 - 1)
DOUBLES = st.floats(allow_nan=False)


@given(st.text(), DOUBLES, NUMBERS, st.lists(st.text(), max_size=3))
def test_what_is_written_is_read_by_the_library(
    text: str, double: float, number: int, names: list[str]
) -> None:
    sets = protobuf.written([*((1, name) for name in names), (2, double)])
    written = protobuf.written([(1, text), (2, sets), (6, number)])
    found = tacit_pb2.MarginalsRequest.FromString(written)
    assert (found.table, found.public_total) == (text, number)
    assert (list(found.sets[0].columns), found.sets[0].importance) == (names, double)


@given(st.text(), DOUBLES, NUMBERS)
def test_what_the_library_writes_is_read(text: str, double: float, number: int) -> None:
    budget = tacit_pb2.Budget(table=text, epsilon_limit=double, n_measurements=number)
    found = protobuf.fields(budget.SerializeToString())
    assert (protobuf.text_of(found, 1) or "") == text
    assert (protobuf.double_of(found, 2) or 0.0) == double
    assert (protobuf.integer_of(found, 5) or 0) % 2**64 == number % 2**64


@given(st.binary(max_size=60))
def test_any_bytes_are_read_or_refused(message: bytes) -> None:
    try:
        protobuf.fields(message)
    except protobuf.NotAMessage:
        return
    assert detail_in({DETAILS_KEY: message}) is None


@pytest.mark.parametrize("message", [b"\x08", b"\x12\x05ab", b"\x0b", b"\x08" + b"\xff" * 11])
def test_broken_messages_are_refused(message: bytes) -> None:
    with pytest.raises(protobuf.NotAMessage):
        protobuf.fields(message)
