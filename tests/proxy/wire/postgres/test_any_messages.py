"""Any messages at all, to a real listener: it answers as PostgreSQL does, never by accident."""

import socket
import struct
from collections.abc import Iterator

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from tests.support.engine_fake import COUNT_ALL, COUNT_BY_SEX, CannedEngine
from tests.support.examples import examples
from tests.support.postgres_wire import postgres_serving
from tests.support.raw_postgres import (
    SYNC,
    RawClient,
    Reply,
    bind,
    describe,
    execute,
    framed,
    parse,
    query,
    raw_client,
    startup,
    tags,
)

KNOWN = set("123CDEGIKNRSTZnstv")  # of a server's messages
NAMES = st.sampled_from(["", "a", "b"])
COUNTS = st.sampled_from([COUNT_ALL, COUNT_BY_SEX])
ABOUT_THE_SESSION = st.sampled_from(
    [
        *("BEGIN", "COMMIT", "ROLLBACK", "SAVEPOINT a", "ROLLBACK TO a", "RELEASE a"),
        *("SET application_name = 'x'", "SHOW ALL", "RESET ALL", "DISCARD ALL"),
        *(f"DECLARE a CURSOR FOR {COUNT_BY_SEX}", "FETCH 2 FROM a", "MOVE a", "CLOSE a"),
        *(f"PREPARE a AS {COUNT_ALL}", "EXECUTE a", "DEALLOCATE a", "DEALLOCATE ALL"),
        *("", ";", "; ;", "no statement", "SELECT '", "DROP TABLE people", "COPY people TO STDOUT"),
    ]
)
STATEMENTS = st.one_of(COUNTS, ABOUT_THE_SESSION)
RIGHT = st.one_of(
    st.lists(STATEMENTS, min_size=1, max_size=3).map("; ".join).map(query),
    st.builds(parse, STATEMENTS, NAMES, st.lists(st.integers(0, 3000), max_size=2)),
    st.builds(bind, NAMES, NAMES, st.just(()), st.lists(st.integers(-1, 2), max_size=3)),
    st.builds(describe, st.sampled_from("PS"), NAMES),
    st.builds(execute, NAMES, st.sampled_from([0, 1, 2, -1, 2**31 - 1])),
    NAMES.map(lambda name: framed("C", b"P" + name.encode() + b"\0")),
    NAMES.map(lambda name: framed("C", b"S" + name.encode() + b"\0")),
    st.sampled_from([SYNC, framed("H"), framed("d", b"x"), framed("c")]),
)
WRONG = st.one_of(
    st.binary(max_size=40),
    st.builds(framed, st.sampled_from("QPBDECSHFdcfpXR"), st.binary(max_size=40)),
    st.builds(
        lambda tag, length: tag + struct.pack("!i", length),
        st.sampled_from([b"Q", b"P", b"B", b"d"]),
        st.sampled_from([-1, 0, 3, 300_000_000, 2**31 - 1]),
    ),
)
FIRST = st.one_of(st.sampled_from([startup(user="ann"), b"", b"\0"]), st.binary(max_size=60))
MANY = settings(
    max_examples=examples(200),
    deadline=None,
    suppress_health_check=[HealthCheck.function_scoped_fixture],
)


@pytest.fixture(scope="module")
def address() -> Iterator[str]:
    with postgres_serving(CannedEngine()) as served:
        yield served


def replies(client: RawClient, *messages: bytes) -> list[Reply]:
    """What comes back to messages after which the client hangs up."""
    try:
        client.send(*messages)
        client.socket.shutdown(socket.SHUT_WR)
    except OSError:  # the server has ended it already
        return []
    return client.rest()


def assert_no_accident(found: list[Reply]) -> None:
    """Errors say what is wrong, in the protocol's form; none is the server's own."""
    assert set(tags(found)) <= KNOWN
    for reply in found:
        assert b"Traceback" not in reply.body
        if reply.tag == "E":
            assert {"S", "V", "C", "M"} <= reply.fields.keys()
            assert reply.fields["C"] != "XX000", reply.fields


@MANY
@given(st.lists(RIGHT, max_size=12))
def test_right_messages_in_any_order_are_answered(address: str, messages: list[bytes]) -> None:
    """Each Sync and each query is followed by one ReadyForQuery."""
    with raw_client(address) as client:
        client.log_in()
        found = replies(client, *messages)
    assert_no_accident(found)
    n_ready = sum(message[:1] in (b"Q", b"S") for message in messages)
    assert tags(found).count("Z") == n_ready


@MANY
@given(st.lists(st.one_of(RIGHT, WRONG), max_size=12))
def test_wrong_messages_end_at_most_their_own_connection(
    address: str, messages: list[bytes]
) -> None:
    with raw_client(address) as client:
        client.log_in()
        assert_no_accident(replies(client, *messages))


@MANY
@given(FIRST, st.lists(st.one_of(RIGHT, WRONG), max_size=4))
def test_nothing_is_an_accident_before_the_login_either(
    address: str, first: bytes, messages: list[bytes]
) -> None:
    with raw_client(address) as client:
        found = replies(client, first, *messages)
    assert_no_accident([reply for reply in found if reply.tag != "N" or reply.body])
