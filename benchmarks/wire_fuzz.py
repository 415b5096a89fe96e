"""Anything at all to the PostgreSQL wire, by seed: nothing breaks, and nothing is told.

    python -m benchmarks.wire_fuzz [--quick]

`tacit serve` serves the Adult table. Strangers send first packets, requests for TLS, cancels and
logins that are right but for a few bytes, lengths or repetitions, while others begin and do not go
on. Then an analyst who is logged in does the same with the messages of both protocols. Meanwhile
another analyst counts, and has to be answered.

What counts: the server's process is there and its log has no incident and no traceback; no client
was sent an internal error, a traceback or a path; the memory that strangers took; and the honest
counts that failed. A failure names the seed of its connection, which sends the same bytes again.
"""

import random
import re
import socket
import struct
import threading
import time
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from contextlib import ExitStack, suppress
from dataclasses import dataclass, field
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Final

from benchmarks.hostile import memory, watched
from benchmarks.postgres_server import HOST, BothWires, served
from benchmarks.report import Bar, progress, run, wants_quick
from proxy.identity.scram import PLAIN
from tests.support.raw_postgres import (
    SYNC,
    RawClient,
    bind,
    describe,
    execute,
    framed,
    parse,
    query,
    startup,
)
from tests.support.scram_client import ScramClient

SECONDS: Final = 300.0
QUICK_SECONDS: Final = 20.0
STRANGERS_BYTES_MAX: Final = 64 * 2**20
N_SENDERS: Final = 8
N_LOITERERS: Final = 40  # who begin and do not go on
N_MESSAGES_MAX: Final = 30
REPLY_SECONDS: Final = 0.05
SEED: Final = 17
COUNT: Final = "SELECT COUNT(*) AS n FROM adult WHERE age >= 40"
LENGTHS: Final = (0, 3, 4, 8, 60, 10_004, 2**20, 300_000_000, 2**31 - 1, -1, -(2**31))
PIECES: Final = tuple(
    piece.encode()
    for piece in (
        *("'", '"', "$1", "$$", ";", "--", "/*", "*/", "(", ")", "\\", "\0", "::", "%", "é"),
        *(" SELECT ", " FROM ", " WHERE ", " GROUP BY ", " NULL ", " CAST(", " AS ", "1e999"),
    )
)
TOLD: Final = re.compile(rb"Traceback|File \"|\.py\b|site-packages|CXX000")
LOGGED: Final = re.compile(r"(?m)^.*(?:Traceback|incident).*$")
_SSL: Final = struct.pack("!ii", 8, 80877103)
_GSS: Final = struct.pack("!ii", 8, 80877104)
_CANCEL: Final = struct.pack("!iiiI", 16, 80877102, 1, 1)
_START: Final = startup(user="mallory", database="tacit", application_name="psql")
_FIRST: Final = framed(
    "p", PLAIN.encode() + b"\0" + struct.pack("!i", 32) + b"n,,n=,r=rOprNGfwEbeRWgbNEkqO0000"
)
_FINAL: Final = framed(
    "p", b"c=biws,r=rOprNGfwEbeRWgbNEkqO,p=dHzbZapWIk4jUhN+Ute9ytag9zjfMHgsqmmiz7AndVQ="
)
STRANGERS: Final = (
    _SSL,
    _GSS,
    _CANCEL,
    _START,
    _START + _FIRST,
    _START + _FIRST + _FINAL,
    _FIRST,
    query(COUNT),
)
MESSAGES: Final = (
    query(COUNT),
    query("SELECT 1; SELECT 2"),
    query("BEGIN; SAVEPOINT a; ROLLBACK TO a; COMMIT"),
    query("SET tacit.half_width = 50; SHOW ALL; RESET ALL; DISCARD ALL"),
    query("DECLARE c CURSOR WITH HOLD FOR SELECT 1; FETCH 1 FROM c; CLOSE c"),
    query("PREPARE p AS SELECT 1; EXECUTE p; DEALLOCATE p"),
    query("EXPLAIN " + COUNT),
    query("SET tacit.notices = on; SET TIME ZONE 'UTC'; SHOW search_path"),
    query("SELECT /*+ tacit(half_width=500) */ sex, COUNT(*) FROM adult GROUP BY sex"),
    query("SELECT current_setting('search_path'), version(), pg_backend_pid()"),
    query(
        "SELECT n.nspname, c.relname, pg_get_userbyid(c.relowner) FROM pg_catalog.pg_class c "
        "LEFT JOIN pg_catalog.pg_namespace n ON n.oid = c.relnamespace "
        "WHERE c.relkind IN ('r', 'v') AND c.relname ~ '^(adult)$' ORDER BY 1, 2"
    ),
    query("SELECT column_name FROM information_schema.columns WHERE ordinal_position = 1"),
    parse("SELECT oid, typname FROM pg_type WHERE oid = ANY($1)", "v", (1007,)),
    bind("", "v", [b"{16,23}"]),
    parse(COUNT, "s"),
    parse("SELECT COUNT(*) FROM adult WHERE age >= $1", "t", (23,)),
    bind("p", "s"),
    parse("SELECT $1::date, $2::numeric, $3::bool, $4", "u", (1082, 1700, 16, 1009)),
    bind("", "t", [b"40"], (1,), (0,)),
    bind("", "u", [b"2020-01-01", b"1.5e3", b"yes", b'{a,"b c",NULL}']),
    bind("", "u", [bytes(4), bytes(8), b"\1", bytes(12)], (1,), (1,)),
    bind("", "t", [struct.pack("!i", 40)], (), (1,)),
    describe("S", "t"),
    describe("P"),
    execute(),
    execute("p", 1),
    framed("C", b"Ss\0"),
    framed("C", b"Pp\0"),
    framed("H"),
    framed("F", b"\0\0\0\1"),
    framed("d", b"data"),
    SYNC,
    SYNC,
)  # fmt: skip


@dataclass(slots=True)
class Heard:
    """What came of the connections that were made: how many, and what was wrong with them."""

    n_connections: int = 0
    n_messages: int = 0
    wrong: list[str] = field(default_factory=list)


def main() -> None:
    """Run the benchmark and print its report."""
    seconds = QUICK_SECONDS if wants_quick(__doc__ or "") else SECONDS
    with (
        TemporaryDirectory(prefix="tacit-bench-") as folder,
        served(Path(folder), ("bob", "mallory")) as server,
    ):
        honest, over = Heard(), threading.Event()
        with ThreadPoolExecutor(1) as pool:
            counting = pool.submit(count_on, server, honest, over)
            strangers = Heard()
            grown = stranger_memory(server, strangers, seconds / 2)
            progress(f"strangers: {strangers.n_connections} connections, {grown} bytes")
            inside = Heard()
            flood(server, from_inside, inside, seconds / 2)
            progress(f"inside: {inside.n_messages} messages")
            over.set()
            counting.result()
        logged = LOGGED.findall(server.log.read_text(encoding="utf-8", errors="replace"))
        is_alive = Path(f"/proc/{server.pid}").exists()
    wrong = strangers.wrong + inside.wrong
    figures = {
        "seed": SEED,
        "stranger_connections": strangers.n_connections,
        "connections_inside": inside.n_connections,
        "messages_inside": inside.n_messages,
        "honest_counts": honest.n_messages,
        "wrong": (wrong + honest.wrong)[:10],
    }
    bars = [
        Bar("server that ended", not is_alive, 0, is_alive),
        Bar("incidents and tracebacks in the log", len(logged), 0, not logged),
        Bar("replies with internal errors, tracebacks or paths", len(wrong), 0, not wrong),
        Bar("memory that strangers took, bytes", grown,
            STRANGERS_BYTES_MAX, grown < STRANGERS_BYTES_MAX),
        Bar("honest counts that failed", len(honest.wrong), 0, not honest.wrong),
    ]  # fmt: skip
    run(figures, bars)


def stranger_memory(server: BothWires, heard: Heard, seconds: float) -> int:
    """By how much the server grows at most while strangers send what they like."""
    before = memory(server.pid)
    most = [before]
    with watched(server.pid, most), ExitStack() as opened:
        for number in range(N_LOITERERS):
            loiterer = opened.enter_context(socket.create_connection((HOST, server.postgres_port)))
            loiterer.sendall(_START[: number % len(_START)])
        flood(server, from_outside, heard, seconds)
    return max(most) - before


def flood(
    server: BothWires,
    send: Callable[[BothWires, random.Random, Heard], None],
    heard: Heard,
    seconds: float,
) -> None:
    """Many connections at a time, each from a seed of its own."""
    ends = time.monotonic() + seconds
    lock = threading.Lock()

    def sender(number: int) -> None:
        own, turn = Heard(), 0
        while time.monotonic() < ends:
            seed = f"{SEED}/{send.__name__}/{number}/{turn}"
            n_before = len(own.wrong)
            with suppress(OSError, EOFError):  # the server hung up, as it may
                send(server, random.Random(seed), own)  # noqa: S311 - the same bytes again
            own.wrong[n_before:] = [f"{seed}: {text}" for text in own.wrong[n_before:]]
            own.n_connections, turn = own.n_connections + 1, turn + 1
        with lock:
            heard.n_connections += own.n_connections
            heard.n_messages += own.n_messages
            heard.wrong += own.wrong

    with ThreadPoolExecutor(N_SENDERS) as pool:
        for one in [pool.submit(sender, number) for number in range(N_SENDERS)]:
            one.result()


def from_outside(server: BothWires, draw: random.Random, heard: Heard) -> None:
    """A stranger's connection."""
    client = RawClient(f"{HOST}:{server.postgres_port}")
    with client.socket:
        client.send(*(changed(one, draw) for one in draw.choices(STRANGERS, k=draw.randint(1, 3))))
        listen(client, heard)


def from_inside(server: BothWires, draw: random.Random, heard: Heard) -> None:
    """A connection of somebody who is logged in."""
    client = RawClient(f"{HOST}:{server.postgres_port}")
    with client.socket:
        log_in(client, "mallory", server.tokens["mallory"])
        for _ in range(draw.randint(1, N_MESSAGES_MAX)):
            message = draw.choice(MESSAGES)
            client.send(changed(message, draw) if draw.random() < 0.5 else message)
            heard.n_messages += 1
        client.send(SYNC)
        listen(client, heard)


def changed(message: bytes, draw: random.Random) -> bytes:
    """A message that is right but for one thing."""
    n_head = 4 if message in STRANGERS else 5
    head, body = message[: n_head - 4], bytearray(message[n_head:])
    match draw.randrange(6):
        case 0:
            return message[: draw.randrange(len(message))]
        case 1:
            return message * draw.randrange(2, 5)
        case 2:
            return head + struct.pack("!i", draw.choice(LENGTHS)) + body
        case 3:
            body = bytearray(draw.randbytes(draw.randrange(60)) + b"\0")
        case 4:
            spread(body, draw)
        case _:
            head = draw.randbytes(len(head))
    return head + struct.pack("!i", len(body) + 4) + body


def spread(body: bytearray, draw: random.Random) -> None:
    """Change a few bytes of a body, and perhaps how many there are."""
    for _ in range(draw.randint(1, 3)):
        place = draw.randrange(len(body) + 1)
        match draw.randrange(4):
            case 0:
                del body[place : place + draw.randrange(1, 5)]
            case 1:
                body[place:place] = draw.randbytes(draw.randrange(1, 9))
            case 2:
                body[place:place] = draw.choice(PIECES)
            case _:
                body[place : place + 1] = bytes((draw.randrange(256),))


def listen(client: RawClient, heard: Heard) -> None:
    """Read what comes until the server hangs up or says nothing more for a moment."""
    client.socket.settimeout(REPLY_SECONDS)
    told = b""
    with suppress(OSError):
        while chunk := client.socket.recv(65_536):
            told += chunk
    heard.wrong += [
        str(told[max(0, one.start() - 200) : one.end() + 200]) for one in TOLD.finditer(told)
    ]


def log_in(client: RawClient, user: str, token: str) -> None:
    """Log in by SCRAM."""
    scram = ScramClient(token)
    client.send(startup(user=user, database="tacit"))
    client.reply()
    first = PLAIN.encode() + b"\0" + struct.pack("!i", len(scram.first)) + scram.first
    client.send(framed("p", first))
    answer = client.reply().body[4:]
    client.send(framed("p", scram.final(answer)))
    client.until_ready()


def count_on(server: BothWires, heard: Heard, over: threading.Event) -> None:
    """An honest analyst's counts, on connections old and new."""
    while not over.is_set():
        try:
            with server.psycopg("bob") as connection:
                for _ in range(50):
                    connection.execute(COUNT).fetchall()
                    heard.n_messages += 1
        except Exception as error:  # noqa: BLE001 - whatever it is, it is one that failed
            heard.wrong.append(f"honest: {error}")


if __name__ == "__main__":
    main()
