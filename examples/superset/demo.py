"""Superset on two private tables, over both wires: ``python -m examples.superset.demo FOLDER``.

The first run installs Superset into an environment in FOLDER, which takes some minutes. Each run
starts a Tacit server on a new ledger and a Superset with new metadata, registers Tacit over both
wires, makes a dashboard on one of them, prints its address and the login, and serves until Ctrl-C.
Superset's metadata are in SQLite, where a table can have one dataset alone; so one wire at a time.
"""

import argparse
import re
import signal
import socket
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Final

from examples.superset.dashboard import make_dashboard, register
from examples.superset.environment import ADMIN, Environment
from examples.superset.rest import Superset
from examples.superset.tables import issue, prepare

START_SECONDS: Final = 60.0
_GRPC: Final = re.compile(r"Tacit serves on (\S+)")
_POSTGRES: Final = re.compile(r"host=(\S+) port=(\d+)")


@dataclass(frozen=True, slots=True)
class Served:
    """Where a Tacit server is, and the token that opens it."""

    grpc: str
    postgres: str
    token: str

    @property
    def databases(self) -> dict[str, str]:
        """The URI that Superset connects to, for each wire."""
        login = f"superset:{self.token}"
        return {
            "postgres": f"postgresql+psycopg2://{login}@{self.postgres}/tacit",
            "flight": f"tacit://{login}@{self.grpc}/",
        }


@dataclass(frozen=True, slots=True)
class Running:
    """A Superset with a dashboard."""

    superset: Superset
    password: str
    served: Served
    dashboard: int

    @property
    def page(self) -> str:
        """Where the dashboard is."""
        return f"{self.superset.address}/superset/dashboard/{self.dashboard}/"


def main() -> None:
    """Run until Ctrl-C."""
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("folder", type=Path, help="where Superset is installed; made if missing")
    parser.add_argument("--wire", choices=("postgres", "flight"), default="postgres")
    told = parser.parse_args()
    environment = Environment(told.folder)
    if not environment.is_installed:
        print("Installing Superset (800 MB, takes some minutes) ..", flush=True)  # noqa: T201
        environment.install()
    with running(environment, told.wire) as run:
        print(f"{run.page}  user {ADMIN}, password {run.password}")  # noqa: T201
        print("Ctrl-C stops it.", flush=True)  # noqa: T201
        signal.sigwait({signal.SIGINT, signal.SIGTERM})


@contextmanager
def running(environment: Environment, wire: str) -> Iterator[Running]:
    """Run Tacit, and Superset with a dashboard on one wire, until the end of the block."""
    with tempfile.TemporaryDirectory(prefix="tacit-superset-") as folder:
        config = prepare(Path(folder))
        token = issue(config)
        with tacit_serving(config, token) as served:
            password = environment.begin()
            port = _free_port()
            process = environment.serve(port)
            try:
                superset = Superset(f"http://127.0.0.1:{port}")
                superset.wait()
                superset.log_in(ADMIN, password)
                registered = {
                    name: register(superset, f"Tacit ({name})", uri)
                    for name, uri in served.databases.items()
                }
                board = make_dashboard(superset, registered[wire])
                yield Running(superset, password, served, board)
            finally:
                process.terminate()
                process.wait()


@contextmanager
def tacit_serving(config: Path, token: str) -> Iterator[Served]:
    """Run ``tacit serve`` as its own process."""
    log = config.with_name("server.log")
    command = [sys.executable, "-m", "proxy", "serve", str(config)]
    with (
        log.open("w") as log_file,
        subprocess.Popen(command, stdout=log_file, stderr=log_file) as process,  # noqa: S603 - our own command
    ):
        try:
            end = time.monotonic() + START_SECONDS
            while "Ctrl-C" not in (said := log.read_text()):
                if time.monotonic() > end or process.poll() is not None:
                    raise RuntimeError(f"tacit serve did not start: {said[-2000:]}")
                time.sleep(0.1)
            grpc, postgres = _GRPC.search(said), _POSTGRES.search(said)
            if grpc is None or postgres is None:
                raise RuntimeError(f"tacit serve printed no address for a wire: {said[-2000:]}")
            yield Served(grpc[1], f"{postgres[1]}:{postgres[2]}", token)
        finally:
            process.terminate()


def _free_port() -> int:
    with socket.create_server(("127.0.0.1", 0)) as taken:
        return int(taken.getsockname()[1])


if __name__ == "__main__":
    main()
