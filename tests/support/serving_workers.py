"""`tacit serve --workers N` as real processes, within a `with` block."""

import os
import re
import signal
import sys
import time
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

from tests.support.forked import Forked

WAIT_SECONDS = 60.0
CONFIGURATION = """\
[server]
listen = "127.0.0.1:0"
postgres_listen = "127.0.0.1:0"
metrics_listen = "127.0.0.1:0"
{server}
[ledger]
path = "people.ledger"
[tables.people]
source = "people.csv"
budget = "1000"
n_records_max = 1000
half_width = 20
[tables.people.columns.age]
kind = "integer"
low = 0
high = 99
"""


@dataclass(frozen=True, slots=True)
class Workers:
    """A server of several workers.

    Parameters
    ----------
    process : Forked
        The one that started the others.
    address, postgres, metrics : str
    log : Path
    """

    process: Forked
    address: str
    postgres: str
    metrics: str
    log: Path

    def pids(self) -> list[int]:
        """The workers' processes, not what else Python starts beside them."""
        children = Path(f"/proc/{self.process.pid}/task/{self.process.pid}/children")
        found = []
        for child in children.read_text().split():
            command = Path(f"/proc/{child}/cmdline").read_bytes()
            if b"spawn_main" in command:
                found.append(int(child))
        return found

    def kill_one(self) -> int:
        """Kill a worker, which learns nothing of it; its process's number."""
        killed = self.pids()[0]
        os.kill(killed, signal.SIGKILL)
        return killed

    def await_event(self, event: str, n_times: int) -> None:
        """Wait until the log has an event so many times."""
        end = time.monotonic() + WAIT_SECONDS
        while self.log.read_text().count(f'"{event}"') < n_times:
            if time.monotonic() > end:
                raise TimeoutError(f"no {event}: {self.log.read_text()}")
            time.sleep(0.05)


def written(folder: Path, server: str = "allow_anonymous = true") -> Path:
    """A configuration of a table of a hundred people, one of each age."""
    (folder / "people.csv").write_text("age\n" + "".join(f"{age}\n" for age in range(100)))
    path = folder / "tacit.toml"
    path.write_text(CONFIGURATION.format(server=server))
    return path


def command(configuration: Path, *options: str) -> Sequence[str]:
    run = "from proxy.cli.app import main; main()"
    return [sys.executable, "-c", run, "serve", str(configuration), *options]


@contextmanager
def serving_workers(configuration: Path, n_workers: int = 2) -> Iterator[Workers]:
    log = configuration.with_name("server.log")
    with (
        log.open("w") as log_file,
        Forked(
            "serve", str(configuration), "--workers", str(n_workers), stderr=log_file.fileno()
        ) as process,
    ):
        try:
            lines = []
            for line in process.stdout:
                lines.append(line)
                if "Ctrl-C" in line:
                    break
            greeting = "".join(lines)
            address = re.search(r"serves on (\S+)", greeting)
            postgres = re.search(r"host=(\S+) port=(\d+)", greeting)
            metrics = re.search(r"http://(\S+)/metrics", greeting)
            if address is None or postgres is None or metrics is None:
                raise RuntimeError(f"the server stopped: {log.read_text()}")
            yield Workers(process, address[1], f"{postgres[1]}:{postgres[2]}", metrics[1], log)
        finally:
            process.terminate()
            try:
                process.wait(WAIT_SECONDS)
            finally:
                process.kill()
