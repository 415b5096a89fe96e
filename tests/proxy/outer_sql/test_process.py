"""Tests for the processes that run SQL which callers wrote."""

import os
import random
import signal
import subprocess
import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import IO

import pyarrow as pa
import pytest

from cube.pace import Deadline, paced
from cube.refusals import TooLarge, TooSlow, UnknownName, UnsupportedSql
from proxy.outer_sql import process
from proxy.outer_sql.closed_database import SqlEnded
from proxy.outer_sql.postprocessing import OuterSql
from proxy.outer_sql.process import PROCESSES, SqlProcesses
from proxy.scheduling.fair_share import CallTimes, FairShare, Shift

NUMBERS = pa.table({"n": [1, 2, 3]})
# One call each, which nothing interrupts and no limit of the database counts.
CALLS = (
    "SELECT len(range(100000000))",
    "SELECT range(1000000000) AS x",
    "SELECT repeat('a', 2000000000)",
)


@contextmanager
def processes() -> Iterator[SqlProcesses]:
    """Processes of the test's own, which it ends."""
    own = SqlProcesses()
    try:
        yield own
    finally:
        own.close()


def growth(pid: int) -> int:
    """The memory that a process has to itself."""
    text = Path(f"/proc/{pid}/status").read_text(encoding="ascii")
    return next(int(line.split()[1]) for line in text.splitlines() if "RssAnon" in line) * 1024


@pytest.mark.parametrize("sql", CALLS)
def test_one_call_that_makes_gigabytes_is_refused(sql: str) -> None:
    with pytest.raises(TooLarge, match="too long, or too much memory"):
        OuterSql().run(sql, {})
    assert OuterSql().run("SELECT SUM(n) AS n FROM t", {"t": NUMBERS})["n"].to_pylist() == [6]


def test_one_call_that_nothing_interrupts_ends_with_its_time() -> None:
    PROCESSES.run("SELECT 1 AS x", {}, 60.0)
    began = time.monotonic()
    with pytest.raises(SqlEnded):
        PROCESSES.run("SELECT len(printf('%200000000d', 1)) AS x", {}, 0.2)
    with paced(Deadline(0.2)), pytest.raises(TooSlow):
        OuterSql().run("SELECT COUNT(*) FROM range(9000000000) a, range(9000000000) b", {})
    assert time.monotonic() - began < 30  # either took minutes
    assert PROCESSES.run("SELECT 1 AS x", {}, 60.0)["x"].to_pylist() == [1]


def test_a_statement_sees_what_it_is_given_and_nothing_of_others() -> None:
    outer = OuterSql()
    assert outer.run("SELECT n FROM t", {"t": NUMBERS}).num_rows == 3
    with pytest.raises(UnsupportedSql, match="does not exist"):
        outer.run("SELECT n FROM t", {})
    with pytest.raises(UnknownName):
        outer.run("SELECT m FROM t", {"t": NUMBERS})


def test_a_process_knows_nothing_of_the_servers_environment(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setenv("TACIT_SECRET", "hidden")
    with processes() as own:
        own.start()
        text = Path(f"/proc/{own.pids()[0]}/environ").read_text(encoding="ascii")
    assert "hidden" not in text
    for sql in ("SELECT getenv('PATH')", "SELECT * FROM '/etc/passwd'", "COPY t TO '/tmp/x'"):
        with pytest.raises(UnsupportedSql):
            OuterSql().run(sql, {"t": NUMBERS})


def test_a_process_that_something_else_ended_is_replaced_unnoticed() -> None:
    with processes() as own:
        own.run("SELECT 1 AS x", {}, 60.0)
        for pid in own.pids():
            os.kill(pid, signal.SIGKILL)
            os.waitid(os.P_PID, pid, os.WEXITED | os.WNOWAIT)
        assert own.run("SELECT 2 AS x", {}, 60.0)["x"].to_pylist() == [2]


def test_a_process_that_has_grown_is_replaced() -> None:
    with processes() as own:
        with pytest.raises(SqlEnded):
            own.run("SELECT list(range) AS x FROM range(20000000)", {}, 60.0)
        own.run("SELECT 1 AS x", {}, 60.0)
        assert all(growth(pid) < 2**27 for pid in own.pids())


def test_a_table_that_is_met_again_is_sent_to_a_process_once(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    sent: list[pa.Table] = []
    write = process._write

    def noted(pipe: IO[bytes], table: pa.Table) -> None:
        sent.append(table)
        write(pipe, table)

    monkeypatch.setattr(process, "_write", noted)
    public = pa.table({"n": range(100_000)})
    sql = "SELECT COUNT(*) AS x FROM p JOIN t ON p.n = t.n"
    with processes() as own:
        for number in range(5):
            answers = pa.table({"n": range(number)})  # of one statement
            found = own.run(sql, {"p": public, "t": answers}, 60.0)
            assert found["x"].to_pylist() == [number]
        assert sum(table is public for table in sent) == 2  # before it was met again, and to keep
        assert len(sent) == 2 + 5
        own.run("SELECT 1 AS x", {}, 60.0)
        other = pa.table({"n": range(1, 100_000)})
        for table, first in ((other, 1), (other, 1), (public, 0), (other, 1)):
            found = own.run("SELECT MIN(n) AS x FROM p", {"p": table}, 60.0)
            assert found["x"].to_pylist() == [first]
        assert len(sent) == 2 + 5 + 2


def test_tables_that_do_not_fit_make_room_or_are_sent_again(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    tables = [pa.table({"n": range(place, place + 10_000)}) for place in range(4)]
    monkeypatch.setattr(process, "N_BYTES_KEPT", 2 * tables[0].nbytes)
    draw = random.Random(3)  # noqa: S311 - which tables are read
    with processes() as own:
        own.start()
        pids = set(own.pids())
        for _ in range(60):
            read = draw.sample(range(4), draw.randint(1, 4))
            sql = " UNION ALL ".join(f"SELECT MIN(n) AS x FROM t{place}" for place in read)  # noqa: S608 - own names
            found = own.run(sql, {f"t{place}": tables[place] for place in read}, 60.0)
            assert sorted(found["x"].to_pylist()) == sorted(read)
        assert set(own.pids()) == pids


def test_what_a_process_works_counts_as_the_analysts_work() -> None:
    share = FairShare()
    shift = Shift(share, "mallory", CallTimes(), lambda: False)
    OuterSql().run("SELECT 1 AS x", {})
    with shift.working():
        OuterSql().run("SELECT SUM(range % 7) AS x FROM range(30000000)", {})
        worked = shift._worked()
    assert worked > 0.01


def test_a_process_loads_nothing_of_the_server_but_what_runs_sql() -> None:
    told = (
        "import sys; from proxy.outer_sql.process import work; "
        "print(*sorted(one for one in sys.modules if one.partition('.')[0] in "
        "('accountant', 'cube', 'inference', 'planner', 'proxy', 'synthesis', 'streams')))"
    )
    found = subprocess.run(  # noqa: S603 - this interpreter, and a text that stands above
        [sys.executable, "-c", told], check=True, capture_output=True, text=True
    )
    beside_cube = [one for one in found.stdout.split() if one.partition(".")[0] != "cube"]
    here = "proxy.outer_sql"
    assert beside_cube == ["proxy", here, f"{here}.closed_database", f"{here}.process"]
