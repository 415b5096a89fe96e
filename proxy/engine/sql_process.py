"""SQL that callers wrote, run in processes that can be ended and whose memory is bounded.

A single call of a function in DuckDB is neither interrupted nor counted by its limit on memory. So
the SQL runs in a process that the kernel ends: its memory by a limit on what it may allocate, its
time by an alarm. Such a process holds an empty database that reaches no file, network, extension
or setting, and is given the relations of one statement at a time. A few of them wait for work; what
has grown, or was ended, is replaced.

The parent writes a line of JSON and the relations as Arrow streams; the process answers with a line
of JSON, and the result as a stream. Where the kernel has no limit on what a process allocates
(elsewhere than on Linux), DuckDB's own limit remains.
"""

import atexit
import json
import os
import resource
import signal
import subprocess
import sys
import threading
import time
from collections.abc import Mapping
from contextlib import suppress
from pathlib import Path
from typing import IO, Any, Final

import duckdb
import pyarrow as pa

from cube.pace import checkpoint, note_work, seconds_left, waiting

N_PROCESSES_MAX: Final = 8  # one analyst works on two statements at a time
N_KEPT: Final = 2  # that wait for work
N_BYTES_MORE: Final = 384 * 2**20  # that a process may allocate after its start
N_BYTES_LEAVES: Final = 128 * 2**20  # one that has grown by as much is replaced
N_BYTES_BUFFER: Final = 2**18  # of a pipe: most statements and answers are written at once
N_BYTES_RESULT: Final = 128 * 2**20
N_ROWS_MAX: Final = 1_000_000  # of a result
SECONDS_LEAST: Final = 0.001  # an alarm after no time is none
GLANCE_SECONDS: Final = 0.1

# What ended a statement.
TOO_MUCH: Final = "too much"  # time, or memory
TOO_LARGE: Final = "too large"  # a result
BINDING: Final = "binding"
OTHER: Final = "other"

_SETTINGS: Final = (
    "SET GLOBAL temp_directory = ''",
    "SET GLOBAL enable_external_access = false",
    "SET GLOBAL autoinstall_known_extensions = false",
    "SET GLOBAL autoload_known_extensions = false",
    "SET GLOBAL allow_community_extensions = false",
    "SET GLOBAL python_enable_replacements = false",
    "SET GLOBAL threads = 1",
    "SET GLOBAL memory_limit = '256MB'",
    "SET GLOBAL TimeZone = 'UTC'",
    "SET GLOBAL integer_division = true",  # as in PostgreSQL
    # A noisy count may be zero: then a ratio is NULL, and the other rows are kept.
    "SET GLOBAL ieee_floating_point_ops = false",
    "SET GLOBAL error_on_division_by_zero = false",
    "SET GLOBAL lock_configuration = true",
)
_START: Final = "from proxy.engine.sql_process import work; work()"
# What is allocated is what is used: other allocators reserve a gigabyte, which counts.
_ALLOCATION: Final = {"ARROW_DEFAULT_MEMORY_POOL": "system", "MALLOC_ARENA_MAX": "1"}
_READY: Final = b"ready\n"
_ENVIRONMENT: Final = ("PATH", "LD_LIBRARY_PATH", "DYLD_LIBRARY_PATH", "LANG", "LC_ALL")


class SqlEnded(Exception):
    """A statement that gave no result.

    Parameters
    ----------
    kind : str
        `TOO_MUCH`, `TOO_LARGE`, `BINDING` or `OTHER`.
    text : str
        DuckDB's message; empty if there is none.
    """

    def __init__(self, kind: str, text: str = "") -> None:
        super().__init__(kind, text)
        self.kind, self.text = kind, text


class SqlProcesses:
    """Processes that run SQL, and are shared by all statements. Thread-safe."""

    def __init__(self) -> None:
        self._changed = threading.Condition()
        self._idle: list[_Process] = []
        self._n_processes = 0

    def start(self) -> None:
        """Start the processes that wait for work, so that no statement waits for a start."""
        with self._changed:
            while self._n_processes < N_KEPT:
                self._idle.append(_Process())
                self._n_processes += 1

    def run(self, sql: str, relations: Mapping[str, pa.Table], seconds: float) -> pa.Table:
        """The result of a query.

        Parameters
        ----------
        sql : str
        relations : mapping
            What the query can read, by its name.
        seconds : float
            How long it may take.

        Raises
        ------
        SqlEnded
            If it gives no result.
        TooSlow
            If no process is free before the deadline of the statement.
        """
        end = time.monotonic() + seconds  # with the time until a process is there and has started
        process = self._taken()
        try:
            return process.run(sql, relations, end)
        finally:
            note_work(process.seconds_worked)
            self._give_back(process)

    def close(self) -> None:
        """End the processes that wait for work."""
        with self._changed:
            idle, self._idle = self._idle, []
            self._n_processes -= len(idle)
        for process in idle:
            process.end()

    def pids(self) -> list[int]:
        """The numbers of the processes that wait for work."""
        with self._changed:
            return [process.pid for process in self._idle]

    def _taken(self) -> "_Process":
        process = self._free()
        if process is None:
            with waiting(is_first=True):
                while process is None:
                    with self._changed:
                        self._changed.wait(seconds_left(GLANCE_SECONDS))
                    checkpoint()
                    process = self._free()
        return process

    def _free(self) -> "_Process | None":
        """A process that waits for work, or a new one; None if there are too many."""
        with self._changed:
            while self._idle:
                process = self._idle.pop()
                if process.lives:
                    return process
                process.end()
                self._n_processes -= 1
            if self._n_processes >= N_PROCESSES_MAX:
                return None
            self._n_processes += 1
        try:
            return _Process()
        except OSError:
            with self._changed:
                self._n_processes -= 1
            raise

    def _give_back(self, process: "_Process") -> None:
        with self._changed:
            if not process.leaves and len(self._idle) < N_KEPT:
                self._idle.append(process)
                self._changed.notify()
                return
            self._n_processes -= 1
            self._changed.notify()
        process.end()
        with suppress(OSError):  # the next statement tries again
            self.start()


PROCESSES: Final = SqlProcesses()
atexit.register(PROCESSES.close)


class _Process:
    """One process, as its parent sees it."""

    def __init__(self) -> None:
        # Not forked: threads and locks do not survive that. It is told nothing of the environment.
        environment = {name: os.environ[name] for name in _ENVIRONMENT if name in os.environ}
        environment |= _ALLOCATION
        environment["PYTHONPATH"] = os.pathsep.join(filter(None, sys.path))
        self._process = subprocess.Popen(  # noqa: S603 - our own code
            [sys.executable, "-P", "-c", _START],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            env=environment,
            bufsize=N_BYTES_BUFFER,
        )
        self._is_ready = False
        self.leaves = False
        self.seconds_worked = 0.0

    def run(self, sql: str, relations: Mapping[str, pa.Table], end: float) -> pa.Table:
        """The result of a query, by a moment of the clock; `SqlEnded` without one."""
        started = time.monotonic()
        self.leaves = True  # until it has answered
        try:
            answer, found = self._asked(sql, relations, end)
        except (OSError, EOFError, ValueError, pa.ArrowException):
            self.seconds_worked = time.monotonic() - started
            raise SqlEnded(TOO_MUCH) from None  # the kernel ended it
        self.seconds_worked = float(answer["worked"])
        self.leaves = bool(answer["leaves"])
        if found is None:
            raise SqlEnded(answer["ended"], answer["text"])
        return found

    @property
    def pid(self) -> int:
        """Its number."""
        return self._process.pid

    @property
    def lives(self) -> bool:
        """Whether nothing has ended it."""
        return self._process.poll() is None

    def end(self) -> None:
        """End it without its help: it keeps nothing."""
        self._process.kill()
        for pipe in self._pipes():
            with suppress(OSError):
                pipe.close()
        self._process.wait()

    def _asked(
        self, sql: str, relations: Mapping[str, pa.Table], end: float
    ) -> tuple[dict[str, Any], pa.Table | None]:
        given, taken = self._pipes()
        if not self._is_ready:
            if taken.readline() != _READY:
                raise RuntimeError("a process that runs SQL did not start")
            self._is_ready = True
        seconds = end - time.monotonic()
        order = {"sql": sql, "seconds": seconds, "names": list(relations)}
        given.write(json.dumps(order).encode() + b"\n")
        for table in relations.values():
            _write(given, table)
        given.flush()
        line = taken.readline()
        if not line:
            raise EOFError
        answer = json.loads(line)
        return answer, None if "ended" in answer else _read(taken)

    def _pipes(self) -> tuple[IO[bytes], IO[bytes]]:
        given, taken = self._process.stdin, self._process.stdout
        if given is None or taken is None:
            raise RuntimeError("a process without pipes")
        return given, taken


def work() -> None:
    """Run what the parent asks for, until it is gone. The whole life of a process."""
    signal.signal(signal.SIGINT, signal.SIG_IGN)  # of a terminal: meant for the server
    given = os.fdopen(os.dup(0), "rb", N_BYTES_BUFFER)
    taken = os.fdopen(os.dup(1), "wb", N_BYTES_BUFFER)
    os.dup2(2, 1)  # what a library prints is no answer
    database = duckdb.connect(":memory:")
    for setting in _SETTINGS:
        database.execute(setting)
    _found(database.cursor(), "SELECT 1 AS x", {"none": pa.schema({"x": pa.int8()}).empty_table()})
    least = _n_bytes_allocated()
    _bound(least)
    taken.write(_READY)
    taken.flush()
    while line := given.readline():
        order = json.loads(line)
        relations = {name: _read(given) for name in order["names"]}
        # The kernel ends the process, whatever it does, unless it has answered by then.
        signal.setitimer(signal.ITIMER_REAL, max(order["seconds"], SECONDS_LEAST))
        before = time.process_time()
        answer: dict[str, object] = {}
        found: pa.Table | None = None
        cursor = database.cursor()
        try:
            found = _found(cursor, order["sql"], relations)
        except SqlEnded as ended:
            answer = {"ended": ended.kind, "text": ended.text[:1000]}
        finally:
            cursor.close()
            signal.setitimer(signal.ITIMER_REAL, 0.0)
        answer["worked"] = time.process_time() - before
        answer["leaves"] = _n_bytes_allocated() - least > N_BYTES_LEAVES
        taken.write(json.dumps(answer).encode() + b"\n")
        if found is not None:
            _write(taken, found)
        taken.flush()
        del relations, found


def _found(
    cursor: duckdb.DuckDBPyConnection, sql: str, relations: Mapping[str, pa.Table]
) -> pa.Table:
    try:
        for name, table in relations.items():
            cursor.register(name, table)
        found: pa.Table = cursor.sql(sql).limit(N_ROWS_MAX + 1).to_arrow_table()
    except (duckdb.OutOfMemoryException, MemoryError):
        raise SqlEnded(TOO_MUCH) from None
    except duckdb.BinderException as error:
        raise SqlEnded(BINDING, str(error)) from None
    except duckdb.Error as error:
        raise SqlEnded(OTHER, str(error)) from None
    if found.num_rows > N_ROWS_MAX or found.nbytes > N_BYTES_RESULT:
        raise SqlEnded(TOO_LARGE)
    return found


def _bound(least: int) -> None:
    """Let the kernel refuse more memory, any file, and a picture of the memory."""
    with suppress(OSError):  # if the machine's memory ends, this process is the first to go
        Path("/proc/self/oom_score_adj").write_text("500", encoding="ascii")
    resource.setrlimit(resource.RLIMIT_CORE, (0, 0))
    resource.setrlimit(resource.RLIMIT_FSIZE, (0, 0))
    if least:
        most = least + N_BYTES_MORE
        resource.setrlimit(resource.RLIMIT_DATA, (most, most))


def _n_bytes_allocated() -> int:
    """What the kernel counts against the limit; 0 where it does not say."""
    try:
        text = Path("/proc/self/status").read_text(encoding="ascii")
    except OSError:
        return 0
    return next(
        (int(line.split()[1]) * 1024 for line in text.splitlines() if line.startswith("VmData:")), 0
    )


def _write(pipe: IO[bytes], table: pa.Table) -> None:
    with pa.ipc.new_stream(pa.PythonFile(pipe, "w"), table.schema) as stream:
        stream.write_table(table)


def _read(pipe: IO[bytes]) -> pa.Table:
    with pa.ipc.open_stream(pa.PythonFile(pipe, "r")) as stream:
        return stream.read_all()
