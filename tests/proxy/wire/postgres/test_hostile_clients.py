"""Clients that mean harm, or are broken: nobody else notices, and they learn nothing."""

import struct
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pyarrow as pa
import pytest

from proxy.api.requests import Caller
from proxy.identity.authenticate import LedgerAuthenticator
from proxy.wire.postgres import connection as connection_module
from proxy.wire.postgres import connection as conversation
from proxy.wire.postgres.frontend import MESSAGE_BYTES_MAX
from proxy.wire.tls import server_context
from tests.support.certificates import LOOPBACK, Authority
from tests.support.engine_fake import ANSWERS, COUNT_ALL, BrokenEngine, CannedEngine
from tests.support.identities import credentials
from tests.support.postgres_wire import AnybodyLocal, postgres_serving
from tests.support.raw_postgres import (
    SYNC,
    RawClient,
    Reply,
    bind,
    ended,
    execute,
    framed,
    parse,
    query,
    raw_client,
    received,
    startup,
    tags,
    works,
)

SSL_REQUEST = struct.pack("!ii", 8, 80877103)
HUGE = 300_000_000
SAID_NOWHERE = "the salary of Ann is 4711"


@pytest.fixture
def address() -> Iterator[str]:
    with postgres_serving(CannedEngine()) as served:
        yield served


# Before the login.


@pytest.mark.parametrize(
    "first",
    [
        struct.pack("!i", HUGE),
        struct.pack("!i", -1),
        struct.pack("!i", 3),
        struct.pack("!ii", 8, 99 << 16),
        b"GET / HTTP/1.1\r\n\r\n",
        b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n",
        b"\x16\x03\x01\x02\x00\x01\x00\x01\xfc\x03\x03",  # TLS that was not asked for
        startup(),
        startup(user="ann", replication="true"),
        startup(user="ann", **{"tacit.half_width": "nothing"}),
        startup(user="ann", unheard_of="1"),
        startup(user="ann", database="another"),
        struct.pack("!ii", 12, 3 << 16) + b"user",
        struct.pack("!ii", 16, 3 << 16) + b"user\0\xff\0\0",
    ],
    ids=lambda first: first[:12].hex(),
)
def test_what_is_no_startup_is_told_so_and_is_over(address: str, first: bytes) -> None:
    with raw_client(address) as client:
        client.send(first)
        (said,) = ended(client)
        assert said.tag == "E"
        assert said.fields["S"] == "FATAL"
        assert "Traceback" not in said.fields["M"]
    assert works(address)


@pytest.mark.parametrize(
    "begun", [b"", b"\0", struct.pack("!i", 8), startup(user="ann")[:-3], SSL_REQUEST, b"\x16\x03"]
)
def test_who_does_not_finish_a_login_is_out_in_time(
    monkeypatch: pytest.MonkeyPatch, begun: bytes
) -> None:
    monkeypatch.setattr(connection_module, "LOGIN_SECONDS", 0.5)
    with postgres_serving(CannedEngine()) as address, raw_client(address) as client:
        client.send(begun)
        started = time.monotonic()
        while client.socket.recv(1):
            pass
        assert time.monotonic() - started < 5


def test_a_byte_at_a_time_gains_no_time(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(connection_module, "LOGIN_SECONDS", 0.5)
    with postgres_serving(CannedEngine()) as address, raw_client(address) as client:
        assert seconds_taken(client, startup(user="ann", options="-c " + "x" * 9000), 0.02) < 5


def seconds_taken(client: RawClient, message: bytes, pause: float) -> float:
    """How long the server takes the bytes of a message, with a pause after each."""
    started = time.monotonic()
    for byte in message:
        try:
            client.send(bytes((byte,)))
        except OSError:
            break
        time.sleep(pause)
    return time.monotonic() - started


def test_encryption_is_asked_for_a_few_times_only(address: str) -> None:
    with raw_client(address) as client:
        client.send(SSL_REQUEST * 100)
        found = b"".join(iter(lambda: received(client), b""))
        assert found.startswith(b"NNNE")
        assert b"08P01" in found


def test_nothing_sent_in_plain_text_counts_under_tls(tmp_path: Path) -> None:
    """What somebody on the way put behind the request for TLS is no part of what follows."""
    with tls_serving(tmp_path) as address, raw_client(address) as client:
        client.send(SSL_REQUEST + startup(user="ann") + query(COUNT_ALL))
        assert client.socket.recv(1) == b"S"
        rest = b"".join(iter(lambda: received(client), b""))
        assert b"1234" not in rest
        assert not rest.startswith(b"R")


def test_a_handshake_that_stalls_is_over_in_time(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    monkeypatch.setattr(connection_module, "LOGIN_SECONDS", 0.5)
    with tls_serving(tmp_path) as address, raw_client(address) as client:
        client.send(SSL_REQUEST)
        assert client.socket.recv(1) == b"S"
        client.send(b"\x16\x03\x01\x02\x00")
        while client.socket.recv(4096):
            pass


@contextmanager
def tls_serving(folder: Path) -> Iterator[str]:
    server = Authority().sign("server", alternatives=LOOPBACK)
    context = server_context(*server.written(folder, "server"), None)
    with postgres_serving(CannedEngine(), tls=context) as address:
        yield address


@pytest.mark.parametrize(
    "answer",
    [
        framed("p", b"SCRAM-SHA-256\0" + struct.pack("!i", 10) + b"n,,n=,r=x"),
        framed("p", b"SCRAM-SHA-256\0" + struct.pack("!i", -1)),
        framed("p", b"no end"),
        framed("p", b"MD5\0" + struct.pack("!i", 0)),
        framed("p", b"x" * 4000),
        struct.pack("!ci", b"p", HUGE),
        query(COUNT_ALL),
        framed("X"),
    ],
    ids=lambda answer: answer[:16].hex(),
)
def test_what_is_no_answer_to_a_login_is_the_end(tmp_path: Path, answer: bytes) -> None:
    with (
        credentials(tmp_path) as ledger,
        postgres_serving(CannedEngine(), LedgerAuthenticator(ledger)) as address,
        raw_client(address) as client,
    ):
        client.send(startup(user="ann"))
        assert client.reply().tag == "R"
        client.send(answer)
        (said,) = ended(client)
        assert said.fields["S"] == "FATAL"


# Once logged in.


@pytest.mark.parametrize("tag", ["Q", "P", "B", "D", "E", "C", "S", "H", "X", "F", "d", "p"])
@pytest.mark.parametrize("length", [HUGE, -5, 3, MESSAGE_BYTES_MAX + 5])
def test_no_message_is_longer_than_is_allowed(address: str, tag: str, length: int) -> None:
    with raw_client(address) as client:
        client.log_in()
        client.send(tag.encode() + struct.pack("!i", length))
        (said,) = ended(client)
        assert (said.fields["S"], said.fields["C"]) == ("FATAL", "08P01")


@pytest.mark.parametrize("tag", [b"\0", b"Z", b"\xff", b"G"])
def test_no_other_type_of_message_is_read(address: str, tag: bytes) -> None:
    with raw_client(address) as client:
        client.log_in()
        client.send(tag + struct.pack("!i", 4))
        assert ended(client)[0].fields["C"] == "08P01"


def test_half_a_message_is_not_waited_for_for_ever(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(conversation, "SECONDS_TO_SEND_MAX", 0.5)
    with postgres_serving(CannedEngine()) as address, raw_client(address) as client:
        client.log_in()
        time.sleep(1.0)  # silence between messages is no offence
        assert "D" in tags(client.ask(query(COUNT_ALL)))
        client.send(query(COUNT_ALL)[:-4])
        started = time.monotonic()
        assert client.socket.recv(1) == b""
        assert time.monotonic() - started < 5


def test_an_unexpected_error_is_a_number_and_nothing_else() -> None:
    with (
        postgres_serving(BrokenEngine(RuntimeError(SAID_NOWHERE))) as address,
        raw_client(address) as client,
    ):
        client.log_in()
        for message in (query(COUNT_ALL), parse(COUNT_ALL) + bind() + execute() + SYNC):
            found = client.ask(message)
            said = next(reply for reply in found if reply.tag == "E")
            assert said.fields["C"] == "XX000"
            assert "incident" in said.fields["M"]
            assert not any(SAID_NOWHERE.encode() in reply.body for reply in found)
            assert not any(b"Traceback" in reply.body for reply in found)


class BrokenAuthenticator(AnybodyLocal):
    """An authenticator with a mistake in it."""

    def needs_no_password(self, user: str, shown: Caller | None = None) -> bool:  # noqa: ARG002 - the protocol names it
        raise RuntimeError(SAID_NOWHERE)


def test_nor_before_the_login() -> None:
    with (
        postgres_serving(CannedEngine(), BrokenAuthenticator()) as address,
        raw_client(address) as client,
    ):
        client.send(startup(user="ann"))
        (said,) = ended(client)
        assert said.fields["C"] == "XX000"
        assert SAID_NOWHERE not in said.fields["M"]


@pytest.mark.parametrize("text", ["", ";", " ;; ", "-- nothing", "/* nothing */;"])
def test_a_text_without_a_statement_is_answered(address: str, text: str) -> None:
    with raw_client(address) as client:
        client.log_in()
        assert tags(client.ask(query(text))) == "IZ"
        assert tags(client.ask(parse(text), bind(), execute(), SYNC)) == "12IZ"


# Memory.


def codes(replies: list[Reply]) -> set[str]:
    return {reply.fields["C"] for reply in replies if reply.tag == "E"}


def test_what_is_kept_under_names_is_bounded() -> None:
    long = COUNT_ALL + " " * 60_000
    with postgres_serving(CannedEngine({long: ANSWERS[COUNT_ALL]})) as served:
        for kept in (
            [parse(long, f"name {number}") for number in range(100)],
            [parse(long)] + [bind(f"{number}" + "x" * 60_000) for number in range(100)],
            [parse(long)] + [bind("x" * 900_000 + f"{number}") for number in range(10)],
        ):
            with raw_client(served) as client:
                client.log_in()
                assert codes(client.ask(*kept, SYNC)) == {"54000"}
                assert "D" in tags(client.ask(query(long)))  # what needs no name goes on


def test_no_answer_begins_while_too_much_of_others_waits() -> None:
    wide = pa.table({"n": pa.array(range(3_000_000), pa.int64())})
    engine = CannedEngine({COUNT_ALL: ANSWERS[COUNT_ALL], "SELECT wide": wide})
    with postgres_serving(engine) as address, raw_client(address) as client:
        client.log_in()
        client.ask(query("BEGIN"))
        opened = [parse("SELECT wide"), *(bind(name) + execute(name, 1) for name in "ab")]
        assert codes(client.ask(*opened, parse(COUNT_ALL), bind(), execute(), SYNC)) == {"54000"}
        assert engine.calls["answer"] == 2
        client.ask(query("ROLLBACK"))
        assert "D" in tags(client.ask(query(COUNT_ALL)))


# Cancels.
