"""The PostgreSQL wire beside Flight SQL: how long free answers take, what connections cost.

    python -m benchmarks.wire_postgres [--quick]

`tacit serve` serves the Adult table. A count that the history knows is repeated, in turns, by
psycopg 3 (once as a text, once with a parameter, which is the extended protocol) and by ADBC on
Flight SQL, each on a fresh cursor, from `execute` to the fetched rows. The slower of psycopg's is
compared. Then 200 connections are opened, each of which asks once and then
does nothing; the server's memory beside before is what they cost. Last, 32 clients ask as fast as
they are answered.
"""

import time
from concurrent.futures import ThreadPoolExecutor
from contextlib import ExitStack
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any, Final

import adbc_driver_flightsql.dbapi as flight_sql
import psycopg

from benchmarks.hostile import memory
from benchmarks.postgres_server import BothWires, served
from benchmarks.report import Bar, progress, run, wants_quick
from benchmarks.serve_latency import summary

TIMES_FLIGHT_MAX: Final = 1.5
N_IDLE: Final = 200
IDLE_BYTES_MAX: Final = 50_000_000
N_BUSY: Final = 32
BUSY_SECONDS: Final = 30.0
QUICK_BUSY_SECONDS: Final = 5.0
N_REPEATED: Final = 1500
QUICK_N_REPEATED: Final = 400
N_WARM: Final = 50
COUNT: Final = "SELECT COUNT(*) AS n FROM adult WHERE age >= 40"
WITH_PARAMETER: Final = "SELECT COUNT(*) AS n FROM adult WHERE age >= %s"
TEXT, BOUND, FLIGHT = "psycopg", "psycopg_with_parameter", "adbc"
BUSY_AGES: Final = range(20, 80)
ANALYSTS: Final = tuple(f"analyst{number}" for number in range(8))


def main() -> None:
    """Run the benchmark and print its report."""
    quick = wants_quick(__doc__ or "")
    n_repeated = QUICK_N_REPEATED if quick else N_REPEATED
    with (
        TemporaryDirectory(prefix="tacit-bench-") as folder,
        served(Path(folder), ANALYSTS) as server,
    ):
        timings = {name: summary(found) for name, found in repeated(server, n_repeated).items()}
        progress(str(timings))
        idle_bytes = idle(server)
        progress(f"{N_IDLE} idle connections: {idle_bytes} bytes")
        answers, errors = busy(server, QUICK_BUSY_SECONDS if quick else BUSY_SECONDS)
    slower = max(timings[name]["median"] for name in (TEXT, BOUND))
    times = slower / timings[FLIGHT]["median"]
    figures = {
        "n_repeated": n_repeated,
        "free_ms": timings,
        "busy_answers_a_second": answers,
        "busy_errors": sorted(set(errors))[:5],
    }
    bars = [
        Bar("free count by psycopg beside ADBC, median over median", times,
            TIMES_FLIGHT_MAX, times <= TIMES_FLIGHT_MAX),
        Bar(f"memory of {N_IDLE} idle connections, bytes", idle_bytes,
            IDLE_BYTES_MAX, idle_bytes < IDLE_BYTES_MAX),
        Bar(f"errors of {N_BUSY} busy clients", len(errors), 0, not errors),
    ]  # fmt: skip
    run(figures, bars)


def repeated(server: BothWires, n_repeated: int) -> dict[str, list[float]]:
    """The milliseconds of one free count in each of three ways, which take turns."""
    analyst = ANALYSTS[0]
    header = {"adbc.flight.sql.authorization_header": f"Bearer {server.tokens[analyst]}"}
    found: dict[str, list[float]] = {TEXT: [], BOUND: [], FLIGHT: []}
    with (
        server.psycopg(analyst) as postgres,
        flight_sql.connect(f"grpc://{server.flight}", db_kwargs=header, autocommit=True) as flight,
    ):
        for _ in range(N_WARM + n_repeated):  # the first pays, and both wires warm up
            found[TEXT].append(timed(postgres, COUNT))
            found[BOUND].append(timed(postgres, WITH_PARAMETER, (40,)))
            found[FLIGHT].append(timed(flight, COUNT))
    return {name: timings[N_WARM:] for name, timings in found.items()}


def timed(connection: Any, *asked: Any) -> float:
    """The milliseconds of a count on a fresh cursor of either driver."""
    start = time.perf_counter()
    with connection.cursor() as cursor:
        cursor.execute(*asked)
        if len(cursor.fetchall()) != 1:
            raise RuntimeError("a count is one row")
    return 1000 * (time.perf_counter() - start)


def idle(server: BothWires) -> int:
    """The memory that connections take which have asked once."""
    before = memory(server.pid)
    with ExitStack() as opened:
        for number in range(N_IDLE):
            connection = opened.enter_context(server.psycopg(ANALYSTS[number % len(ANALYSTS)]))
            connection.execute(COUNT)
        return memory(server.pid) - before


def busy(server: BothWires, seconds: float) -> tuple[float, list[str]]:
    """Answers a second to many clients, and the errors that any of them saw."""
    with ThreadPoolExecutor(N_BUSY) as pool:
        ends = time.monotonic() + seconds
        clients = [pool.submit(asking, server, number, ends) for number in range(N_BUSY)]
        found = [client.result() for client in clients]
    return sum(n for n, _ in found) / seconds, [text for _, texts in found for text in texts]


def asking(server: BothWires, number: int, ends: float) -> tuple[int, list[str]]:
    """How many answers one client gets until the end, and its errors."""
    n_answers, errors = 0, []
    try:
        with server.psycopg(ANALYSTS[number % len(ANALYSTS)]) as connection:
            while time.monotonic() < ends:
                connection.execute(
                    WITH_PARAMETER, (BUSY_AGES[(n_answers + number) % len(BUSY_AGES)],)
                ).fetchall()
                n_answers += 1
    except psycopg.Error as error:
        errors.append(str(error))
    return n_answers, errors


if __name__ == "__main__":
    main()
