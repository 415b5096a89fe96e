"""Ten minutes of random statements with large numbers, beside an honest analyst's free counts.

    python -m benchmarks.hostile_fuzz [--quick] [--seed N]

`tacit serve` serves the Adult table and a public table to two analysts. Mallory sends what
`benchmarks.hostile_grammar` makes, one statement after the other: nested questions to the catalog,
to the public table, on answers and of no table, with calls that would make gigabytes. Bob asks for
counts that were bought before. The memory is that of the server and of the processes that it has
started. The quick form takes a minute.
"""

import itertools
import sys
import threading
import time
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Final

import numpy as np

from benchmarks.hostile import (
    GLANCE_SECONDS,
    HONEST,
    HONEST_P95_MS_MAX,
    OVER_SECONDS_MAX,
    STATEMENT_SECONDS,
    Client,
    Sent,
    beside,
    memory,
    served,
    slowest,
    summary_ms,
)
from benchmarks.hostile_grammar import statement
from benchmarks.report import Bar, progress, run, wants_quick

SECONDS: Final = 600.0
QUICK_SECONDS: Final = 60.0
MEMORY_MAX: Final = 512 * 2**20
N_SHOWN: Final = 5


def main() -> None:
    """Run the benchmark and print its report."""
    arguments = sys.argv[1:]
    seed = 0
    if "--seed" in arguments:
        place = arguments.index("--seed")
        seed = int(arguments[place + 1])
        del sys.argv[place + 1 : place + 3]
    quick = wants_quick(__doc__ or "")
    with TemporaryDirectory(prefix="tacit-fuzz-") as folder, served(Path(folder)) as server:
        honest, hostile = (
            Client(server.address, server.honest),
            Client(server.address, server.hostile),
        )
        bought = Sent()
        for sql in HONEST:
            honest.ask(sql, sql, bought)
        grown: list[tuple[int, str]] = []
        sent = Sent()
        calm = beside(
            honest,
            lambda: fuzzed(
                hostile, server.pid, sent, grown, QUICK_SECONDS if quick else SECONDS, seed
            ),
        )
    report(sent, grown, calm)


def fuzzed(  # noqa: PLR0913, PLR0917 - what is sent, and what is noted of it
    client: Client,
    pid: int,
    sent: Sent,
    grown: list[tuple[int, str]],
    seconds: float,
    seed: int,
) -> None:
    """Send one random statement after the other, and note how much memory each took."""
    end = time.monotonic() + seconds
    for number in itertools.count(seed * 10**6):
        if time.monotonic() > end:
            return
        sql = statement(number)
        before, over = memory(pid), threading.Event()

        def most(over: threading.Event = over) -> int:
            found = 0
            while not over.wait(GLANCE_SECONDS / 2):
                found = max(found, memory(pid))
            return found

        with ThreadPoolExecutor(1) as pool:
            looking = pool.submit(most)
            client.ask(f"{number}: {sql[:200]}", sql, sent)
            over.set()
            grown.append((max(0, looking.result() - before), f"{number}: {sql[:200]}"))
        if sent.answers[-1][1] > STATEMENT_SECONDS / 2 or grown[-1][0] > MEMORY_MAX / 2:
            progress(f"{sent.answers[-1][1]:6.2f} s {grown[-1][0] / 2**20:6.0f} MB {sql[:150]}")


def report(sent: Sent, grown: list[tuple[int, str]], honest: Sent) -> None:
    """Print the figures, and whether the bars hold."""
    codes = [code for _, _, code in sent.answers]
    largest = sorted(grown, reverse=True)[:N_SHOWN]
    most = largest[0][0]
    longest, limit = max(sent.seconds()), STATEMENT_SECONDS + OVER_SECONDS_MAX
    p95 = float(np.percentile(honest.seconds(), 95)) * 1000
    internal = sum(code in {"INTERNAL", "UNKNOWN", "UNAVAILABLE", "internal"} for code in codes)
    refused = sum(code not in {"ok", "answered"} for _, _, code in honest.answers)
    figures = {
        "n_statements": len(codes),
        "codes": {code: codes.count(code) for code in sorted(set(codes))},
        "slowest": slowest(sent),
        "largest": [f"{size / 2**20:.0f} MB: {sql}" for size, sql in largest],
        "honest_ms": summary_ms(honest),
    }
    run(
        figures,
        [
            Bar("longest statement, s", longest, limit, longest <= limit),
            Bar("memory of a statement, bytes", most, MEMORY_MAX, most < MEMORY_MAX),
            Bar("honest counts, p95 ms", p95, HONEST_P95_MS_MAX, p95 < HONEST_P95_MS_MAX),
            Bar("honest counts refused", refused, 0, not refused),
            Bar("internal errors", internal, 0, not internal),
        ],
    )


if __name__ == "__main__":
    main()
