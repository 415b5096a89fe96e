"""`tacit serve` with both wires as a process of its own, for the benchmarks of the PostgreSQL wire.

It serves the Adult table, with a large budget, to analysts who have a token each.
"""

import re
import signal
import socket
import subprocess
import sys
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final

import psycopg

from examples.adult.demo import ADDRESS, prepare
from proxy.admin.ledger_admin import open_configured
from proxy.config.settings import load
from proxy.identity.issuing import Grant, issue_token

HOST: Final = "127.0.0.1"
CONNECT_SECONDS: Final = 20


@dataclass(frozen=True, slots=True)
class BothWires:
    """A server: its addresses, its process, where its log is, and the tokens of its analysts."""

    flight: str
    postgres_port: int
    pid: int
    log: Path
    tokens: dict[str, str]

    def psycopg(self, analyst: str) -> "psycopg.Connection[Any]":
        """A connection of an analyst by libpq."""
        return psycopg.connect(
            host=HOST,
            port=self.postgres_port,
            dbname="tacit",
            user=analyst,
            password=self.tokens[analyst],
            sslmode="disable",
            connect_timeout=CONNECT_SECONDS,
            autocommit=True,
        )


@contextmanager
def served(folder: Path, analysts: Sequence[str]) -> Iterator[BothWires]:
    """Serve until the block is left."""
    path, port = prepare(folder), free_port()
    text = re.sub(r"(?m)^budget = .*$", 'budget = "100"', path.read_text())
    text = text.replace("[server]", f'[server]\npostgres_listen = "{HOST}:{port}"')
    path.write_text(text)
    with open_configured(load(path).ledger) as ledger:
        tokens = {
            name: issue_token(ledger, Grant(analyst=name, tables=("adult",)), by="benchmark")[1]
            for name in analysts
        }
    command = [sys.executable, "-m", "proxy", "serve", str(path)]
    log = folder / "server.log"
    with (
        log.open("w") as log_file,
        subprocess.Popen(  # noqa: S603 - our own command on our own file
            command, stdout=subprocess.PIPE, stderr=log_file, text=True
        ) as process,
    ):
        try:
            address = next(filter(None, map(ADDRESS.search, process.stdout or ())), None)
            if address is None:
                raise RuntimeError(f"the server stopped: {log.read_text()}")
            yield BothWires(address[1], port, process.pid, log, tokens)
        finally:
            process.send_signal(signal.SIGTERM)
            process.communicate(timeout=60)


def free_port() -> int:
    """A port that nobody listens on now."""
    with socket.create_server((HOST, 0)) as found:
        port: int = found.getsockname()[1]
        return port
