"""A client of the PostgreSQL wire that sends what a test says, byte by byte."""

import socket
import struct
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from typing import NamedTuple

import pytest

from tests.support.engine_fake import COUNT_ALL


class Reply(NamedTuple):
    """One message of the server."""

    tag: str
    body: bytes

    @property
    def fields(self) -> dict[str, str]:
        """The fields of an error or a notice."""
        parts = self.body.split(b"\0")
        return {part[:1].decode(): part[1:].decode() for part in parts if part}

    @property
    def values(self) -> list[bytes | None]:
        """The values of a row."""
        (n,) = struct.unpack_from("!h", self.body)
        found: list[bytes | None] = []
        place = 2
        for _ in range(n):
            (length,) = struct.unpack_from("!i", self.body, place)
            place += 4
            found.append(None if length < 0 else self.body[place : place + length])
            place += max(length, 0)
        return found


def framed(tag: str, body: bytes = b"") -> bytes:
    return tag.encode() + struct.pack("!i", len(body) + 4) + body


def text(value: str) -> bytes:
    return value.encode() + b"\0"


def startup(minor: int = 0, /, **options: str) -> bytes:
    words = b"".join(text(name) + text(value) for name, value in options.items())
    body = struct.pack("!i", 3 << 16 | minor) + words + b"\0"
    return struct.pack("!i", len(body) + 4) + body


def query(sql: str) -> bytes:
    return framed("Q", text(sql))


def parse(sql: str, name: str = "", types: Sequence[int] = ()) -> bytes:
    kinds = struct.pack(f"!h{len(types)}I", len(types), *types)
    return framed("P", text(name) + text(sql) + kinds)


def bind(
    portal: str = "",
    statement: str = "",
    values: Sequence[bytes | None] = (),
    result_formats: Sequence[int] = (),
    formats: Sequence[int] = (),
) -> bytes:
    cells = b"".join(
        b"\xff\xff\xff\xff" if value is None else struct.pack("!i", len(value)) + value
        for value in values
    )
    return framed(
        "B",
        text(portal)
        + text(statement)
        + struct.pack(f"!h{len(formats)}h", len(formats), *formats)
        + struct.pack("!h", len(values))
        + cells
        + struct.pack(f"!h{len(result_formats)}h", len(result_formats), *result_formats),
    )


def describe(kind: str, name: str = "") -> bytes:
    return framed("D", kind.encode() + text(name))


def execute(portal: str = "", n_rows: int = 0) -> bytes:
    return framed("E", text(portal) + struct.pack("!i", n_rows))


SYNC = framed("S")


class RawClient:
    """A connection; nothing is sent unasked."""

    def __init__(self, address: str) -> None:
        host, _, port = address.rpartition(":")
        self.socket = socket.create_connection((host, int(port)), timeout=20)

    def send(self, *messages: bytes) -> None:
        self.socket.sendall(b"".join(messages))

    def reply(self) -> Reply:
        """The next message; EOFError if there is none."""
        tag = self._exactly(1)
        (length,) = struct.unpack("!i", self._exactly(4))
        return Reply(tag.decode(), self._exactly(length - 4))

    def until_ready(self) -> list[Reply]:
        """Every message up to the next ReadyForQuery, which is the last of them."""
        found = [self.reply()]
        while found[-1].tag != "Z":
            found.append(self.reply())
        return found

    def rest(self) -> list[Reply]:
        """Every message until the server hangs up."""
        found: list[Reply] = []
        try:
            while True:
                found.append(self.reply())
        except (EOFError, ConnectionError):
            return found

    def ask(self, *messages: bytes) -> list[Reply]:
        """Send, and read up to the next ReadyForQuery."""
        self.send(*messages)
        return self.until_ready()

    def log_in(self, user: str = "ann", **options: str) -> list[Reply]:
        """Log in where no password is asked for."""
        return self.ask(startup(user=user, **options))

    def _exactly(self, n: int) -> bytes:
        found = b""
        while len(found) < n:
            more = self.socket.recv(n - len(found))
            if not more:
                raise EOFError
            found += more
        return found


@contextmanager
def raw_client(address: str) -> Iterator[RawClient]:
    client = RawClient(address)
    with client.socket:
        yield client


def tags(replies: Sequence[Reply]) -> str:
    """The types of messages, a letter each."""
    return "".join(reply.tag for reply in replies)


def ended(client: RawClient) -> list[Reply]:
    """What the server says before it hangs up, which it must do."""
    found = client.rest()
    with pytest.raises((EOFError, ConnectionError)):
        client.reply()
    return found


def works(address: str) -> bool:
    """Whether an honest client is served."""
    with raw_client(address) as client:
        try:
            client.log_in()
            return "D" in tags(client.ask(query(COUNT_ALL)))
        except (EOFError, ConnectionError):
            return False


def received(client: RawClient) -> bytes:
    """Some bytes; none once the connection is over, however it ended."""
    try:
        return client.socket.recv(4096)
    except ConnectionResetError:
        return b""
