"""Processor time of the server for an answer through ADBC, beside that of an earlier commit.

    python -m benchmarks.throughput [--quick] [--against REVISION]

`tacit serve` serves the Adult table to an analyst with a token. The dashboard of `benchmarks.load`
is asked for once; then come rounds of three kinds of statements: free ones that were asked before,
free ones that were not (the same in other words, a multiple at another confidence), and ones of the
same charts that are paid. What counts is the processor time that the server's processes take for
each, all threads together, from the first message of a statement to its last. Repeated ones are
asked while nothing is bought: a dashboard that is reloaded.

With `--against`, the tree of that commit is served beside this one, with a ledger of its own. Both
are asked the same statements in turns, in one sitting, and what is claimed are ratios: of two
servers on one machine at one time. Without it there are figures and no claims.
"""

import argparse
import io
import os
import re
import signal
import statistics
import subprocess
import sys
import tarfile
import time
from collections.abc import Iterable, Iterator, Sequence
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Final

import adbc_driver_flightsql.dbapi as flight_sql
import numpy as np

from benchmarks.load_clients import (
    OWN_HALF_WIDTHS,
    Imagination,
    Statement,
    dashboard_of,
    topics_of,
)
from benchmarks.report import Bar, progress, run
from benchmarks.serve_latency import FREE_KINDS, TARGET, ask
from examples.adult.demo import ADDRESS
from proxy.config.settings import load

HERE: Final = Path(__file__).resolve().parents[1]
AUTHORIZATION: Final = "adbc.flight.sql.authorization_header"
BUDGET: Final = "4096"
N_ROUNDS, N_QUICK_ROUNDS = 9, 3
N_DASHBOARD: Final = 100
N_REPEATED: Final = 20  # statements of a round that are asked again
N_AGAIN: Final = 6  # times
N_NEW: Final = 80
N_PAID: Final = 25
SEED: Final = 7
SHARES_MAX: Final = {"repeated": 0.5, "new": 0.65, "paid": 0.65}


@dataclass(frozen=True, slots=True)
class Served:
    """A server: the processes that do its work, and a connection to it."""

    pids: tuple[int, ...]
    connection: flight_sql.Connection

    def answer(self, sql: str) -> tuple[float, bool]:
        """Ask for a statement; the milliseconds that the server worked, and whether it was paid."""
        began = self._processor_seconds()
        _, receipt = ask(self.connection, sql)
        return 1000 * (self._processor_seconds() - began), bool(receipt["epsilon_spent"])

    def _processor_seconds(self) -> float:
        """What all threads of its processes have worked, those that have ended included."""
        # The kernel's clock of another process: clock_getcpuclockid(3).
        return sum(time.clock_gettime((~pid << 3) | 2) for pid in self.pids)


def main() -> None:
    """Run the benchmark and print its report."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--quick", action="store_true", help="fewer rounds, the same bars")
    parser.add_argument("--against", metavar="REVISION", help="a commit to be compared with")
    arguments = parser.parse_args()
    n_rounds = N_QUICK_ROUNDS if arguments.quick else N_ROUNDS
    with TemporaryDirectory(prefix="tacit-throughput-") as name, ExitStack() as stack:
        trees = {"now": HERE}
        if arguments.against is not None:
            trees["before"] = checked_out(arguments.against, Path(name) / "tree")
        servers = [
            stack.enter_context(serving(tree, Path(name) / one)) for one, tree in trees.items()
        ]
        rounds = [*measured(servers, n_rounds)]
    figures = {
        one: {kind: statistics.median(each[kind][place] for each in rounds) for kind in SHARES_MAX}
        for place, one in enumerate(trees)
    }
    bars = [] if arguments.against is None else shares(figures["now"], figures["before"])
    run({"against": arguments.against, "n_rounds": n_rounds, "processor_ms": figures}, bars)


def measured(servers: Sequence[Served], n_rounds: int) -> Iterator[dict[str, list[float]]]:
    """For each round and kind the milliseconds of an answer, on average, of each server."""
    schema = load(HERE / "examples" / "adult" / "tacit.toml").tables[0].schema
    bought = [asked(one) for one in dashboard_of(schema, N_DASHBOARD, 0, SEED)]
    for server in servers:
        for sql in bought:
            server.answer(sql)
    draw = np.random.default_rng(SEED)
    own = Imagination(schema, topics_of(schema, 0, SEED), OWN_HALF_WIDTHS, draw)
    for place in range(n_rounds):
        progress(f"round {place + 1} of {n_rounds}")
        repeated = [str(sql) for sql in draw.choice(bought, N_REPEATED, replace=False)]
        mean(answered(servers, repeated))  # asked since anything was bought
        yield {
            "repeated": mean(answered(servers, repeated * N_AGAIN)),
            "new": mean(answered(servers, [new(bought, draw) for _ in range(N_NEW)])),
            "paid": mean(paid(servers, own)),
        }


def answered(servers: Sequence[Served], statements: Iterable[str]) -> Iterator[list[float]]:
    """The milliseconds of each free statement, of each server."""
    for sql in statements:
        both = [server.answer(sql) for server in servers]
        if any(is_paid for _, is_paid in both):
            raise RuntimeError(f"not free: {sql}")
        yield [milliseconds for milliseconds, _ in both]


def paid(servers: Sequence[Served], own: Imagination) -> Iterator[list[float]]:
    """The same of statements that all servers have to buy something for."""
    n_paid = 0
    while n_paid < N_PAID:
        sql = asked(own.statement())
        both = [server.answer(sql) for server in servers]
        if all(is_paid for _, is_paid in both):
            n_paid += 1
            yield [milliseconds for milliseconds, _ in both]


def asked(statement: Statement) -> str:
    """The SQL, with its target."""
    return statement.sql.replace("SELECT", TARGET.format(half_width=statement.half_width), 1)


def mean(times: Iterable[Sequence[float]]) -> list[float]:
    """The mean of each server's milliseconds."""
    return [statistics.fmean(own) for own in zip(*times, strict=True)]


def new(bought: Sequence[str], draw: np.random.Generator) -> str:
    """A statement that was never asked, and that the history answers."""
    kind = ("in_other_words", "never_asked")[int(draw.integers(2))]
    alias = f"n{int(draw.integers(2**40))}"
    return FREE_KINDS[kind](bought[int(draw.integers(len(bought)))], draw).replace(
        "n FROM", f"{alias} FROM"
    )


def shares(now: dict[str, float], before: dict[str, float]) -> list[Bar]:
    """What of the processor time before is still needed."""
    found = {kind: now[kind] / before[kind] for kind in SHARES_MAX}
    return [
        Bar(f"{kind} answer, share of the processor time before", share, most, share <= most)
        for (kind, share), most in zip(found.items(), SHARES_MAX.values(), strict=True)
    ]


def checked_out(revision: str, folder: Path) -> Path:
    """The tree of a commit."""
    packed = subprocess.run(  # noqa: S603 - git, on a revision that whoever runs this has named
        ["git", "-C", str(HERE), "archive", revision],  # noqa: S607 - the git that is found
        stdout=subprocess.PIPE,
        check=True,
    )
    with tarfile.open(fileobj=io.BytesIO(packed.stdout)) as archive:
        archive.extractall(folder, filter="data")
    return folder


@contextmanager
def serving(tree: Path, folder: Path) -> Iterator[Served]:
    """Serve the example of a tree, with the code of that tree; a connection with a token."""
    folder.mkdir()
    config, log = folder / "tacit.toml", folder / "server.log"
    text = (tree / "examples" / "adult" / "tacit.toml").read_text()
    for key, value in (
        ("listen", "127.0.0.1:0"),
        ("source", str(tree / "examples" / "adult" / "adult.csv")),
        ("path", "adult.ledger"),
        ("budget", BUDGET),
    ):
        text = re.sub(rf'(?m)^{key} = ".*"$', f'{key} = "{value}"', text)
    config.write_text(text.replace("allow_anonymous = true", "allow_anonymous = false"))
    tacit = [sys.executable, "-m", "proxy"]
    grant = ["token", "issue", "--analyst", "ann", "--table", "adult", "--config", str(config)]
    own_code = {**os.environ, "PYTHONPATH": str(tree), "OMP_NUM_THREADS": "1"}
    issued = subprocess.run(  # noqa: S603 - our own command on our own file
        [*tacit, *grant], cwd=tree, env=own_code, text=True, stdout=subprocess.PIPE, check=True
    )
    with (
        log.open("w") as log_file,
        subprocess.Popen(  # noqa: S603 - our own command on our own file
            [*tacit, "serve", str(config)],
            cwd=tree,
            env=own_code,
            text=True,
            stdout=subprocess.PIPE,
            stderr=log_file,
        ) as process,
    ):
        try:
            address = next(filter(None, map(ADDRESS.search, process.stdout or ())), None)
            if address is None:
                raise RuntimeError(f"the server stopped: {log.read_text()}")
            with flight_sql.connect(
                f"grpc://{address[1]}",
                db_kwargs={AUTHORIZATION: f"Bearer {issued.stdout.strip()}"},
                autocommit=True,
            ) as connection:
                yield Served((process.pid,), connection)
        finally:
            process.send_signal(signal.SIGTERM)
            process.communicate(timeout=30)


if __name__ == "__main__":
    main()
