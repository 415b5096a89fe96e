"""A Spark Connect server without Java: Sail, in a process of its own.

The fixture `sail` is one for a whole session. Without pysail its tests are skipped, unless
TACIT_TESTS_NEED_SERVERS=1.
"""

import importlib.util
import socket
import subprocess
import sys
from collections.abc import Iterator
from dataclasses import dataclass

import pytest

from tests.support.postgres import missing, wait_until

SERVING = """
import sys
from pysail.spark import SparkConnectServer
server = SparkConnectServer(ip="127.0.0.1", port=int(sys.argv[1]))
server.start(background=False)
"""


@dataclass(frozen=True)
class SailServer:
    """Where it listens, and what it runs as."""

    port: int
    process: subprocess.Popen[bytes]

    @property
    def address(self) -> str:
        return f"127.0.0.1:{self.port}"


@pytest.fixture(scope="session")
def sail() -> Iterator[SailServer]:
    """A server that runs for all tests of a session."""
    yield from serving_sail()


def serving_sail() -> Iterator[SailServer]:
    """A new server that runs, and is gone afterwards."""
    if importlib.util.find_spec("pysail") is None:
        missing("pysail is not installed")
    port = free_port()
    process = subprocess.Popen(  # noqa: S603 - this interpreter
        [sys.executable, "-c", SERVING, str(port)],
        stdout=subprocess.DEVNULL,
        stderr=subprocess.DEVNULL,
    )
    try:
        wait_until(lambda: listens(port))
        yield SailServer(port, process)
    finally:
        process.kill()
        process.wait()


def free_port() -> int:
    """A port that nobody listens on."""
    with socket.socket() as found:
        found.bind(("127.0.0.1", 0))
        port: int = found.getsockname()[1]
        return port


def listens(port: int) -> bool:
    """Whether somebody does."""
    with socket.socket() as tried:
        return tried.connect_ex(("127.0.0.1", port)) == 0
