"""SQL that callers wrote, run in processes that can be ended and whose memory is bounded.

A single call of a function in DuckDB is neither interrupted nor counted by its limit on memory. So
the SQL runs in a process that the kernel ends: its memory by a limit on what it may allocate, its
time by an alarm. Such a process holds an empty database that reaches no file, network, extension
or setting, and is given the relations of one statement at a time. It keeps those that were sent
before, such as public tables, within a share of memory: they are sent to it once. A few processes
wait for work; what has grown, or was ended, is replaced.

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
from collections import OrderedDict
from collections.abc import Collection, Mapping, Sequence
from contextlib import suppress
from pathlib import Path
from typing import IO, Any, Final
from weakref import WeakValueDictionary

import pyarrow as pa

from cube.pace import checkpoint, note_work, seconds_left, waiting
from proxy.outer_sql.closed_database import TOO_MUCH, ClosedDatabase, SqlEnded

N_PROCESSES_MAX: Final = 8  # one analyst works on two statements at a time
N_KEPT: Final = 2  # that wait for work
N_BYTES_MORE: Final = 384 * 2**20  # that a process may allocate after its start
N_BYTES_KEPT: Final = 128 * 2**20  # of tables, besides
N_BYTES_KEPT_LEAST: Final = 2**14  # a smaller table is sent as fast as its name
N_BYTES_LEAVES: Final = 128 * 2**20  # one that has grown by as much is replaced
N_BYTES_BUFFER: Final = 2**18  # of a pipe: most statements and answers are written at once
SECONDS_LEAST: Final = 0.001  # an alarm after no time is none
GLANCE_SECONDS: Final = 0.1

_START: Final = "from proxy.outer_sql.process import work; work()"
# What is allocated is what is used: other allocators reserve a gigabyte, which counts.
_ALLOCATION: Final = {"ARROW_DEFAULT_MEMORY_POOL": "system", "MALLOC_ARENA_MAX": "1"}
_READY: Final = b"ready\n"
_ENVIRONMENT: Final = ("PATH", "LD_LIBRARY_PATH", "DYLD_LIBRARY_PATH", "LANG", "LC_ALL")


class SqlProcesses:
    """Processes that run SQL, and are shared by all statements. Thread-safe."""

    def __init__(self) -> None:
        self._changed = threading.Condition()
        self._idle: list[_Process] = []
        self._n_processes = 0
        self._met: WeakValueDictionary[int, pa.Table] = WeakValueDictionary()

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
            met = {name for name, table in relations.items() if self._is_met(table)}
            return process.run(sql, relations, end, met)
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

    def _is_met(self, table: pa.Table) -> bool:
        """Whether this very table was sent before, so that it is worth keeping; from now on it was.

        What is made for one statement, such as answers, is never met again.
        """
        if not N_BYTES_KEPT_LEAST <= table.nbytes <= N_BYTES_KEPT:
            return False
        with self._changed:
            is_met = self._met.get(id(table)) is table
            self._met[id(table)] = table
        return is_met

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
        self._kept = _Kept()
        self.leaves = False
        self.seconds_worked = 0.0

    def run(
        self, sql: str, relations: Mapping[str, pa.Table], end: float, met: Collection[str]
    ) -> pa.Table:
        """The result of a query, by a moment of the clock; `SqlEnded` without one.

        It keeps the relations whose names are in `met`, as far as they fit.
        """
        started = time.monotonic()
        self.leaves = True  # until it has answered
        try:
            answer, result = self._asked(sql, relations, end, met)
        except (OSError, EOFError, ValueError, pa.ArrowException):
            self.seconds_worked = time.monotonic() - started
            raise SqlEnded(TOO_MUCH) from None  # the kernel ended it
        self.seconds_worked = float(answer["worked"])
        self.leaves = bool(answer["leaves"])
        if result is None:
            raise SqlEnded(answer["ended"], answer["text"])
        return result

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
        self, sql: str, relations: Mapping[str, pa.Table], end: float, met: Collection[str]
    ) -> tuple[dict[str, Any], pa.Table | None]:
        given, taken = self._pipes()
        if not self._is_ready:
            if taken.readline() != _READY:
                raise RuntimeError("a process that runs SQL did not start")
            self._is_ready = True
        seconds = end - time.monotonic()
        known = {name: id(table) for name, table in relations.items() if self._kept.has(table)}
        new = {name: table for name, table in relations.items() if name not in known}
        dropped = self._kept.add([new[name] for name in new if name in met], known.values())
        keys = {name: id(table) if self._kept.has(table) else None for name, table in new.items()}
        order = {"sql": sql, "seconds": seconds, "drop": dropped, "known": known, "sent": keys}
        given.write(json.dumps(order).encode() + b"\n")
        for table in new.values():
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


class _Kept:
    """The tables that a process keeps, those that were used last at the end."""

    def __init__(self) -> None:
        self._tables: OrderedDict[int, pa.Table] = (
            OrderedDict()
        )  # held, so that no other has its id

    def has(self, table: pa.Table) -> bool:
        """Whether it keeps a table."""
        return id(table) in self._tables

    def add(self, tables: Sequence[pa.Table], used: Collection[int]) -> list[int]:
        """Keep further tables as far as they fit; returns the ids of the tables dropped for them.

        Those in `used` stay: the statement reads them.
        """
        for one in used:
            self._tables.move_to_end(one)
        left = N_BYTES_KEPT - sum(self._tables[one].nbytes for one in used)
        added = {}
        for table in tables:
            if table.nbytes <= left:
                left -= table.nbytes
                added[id(table)] = table
        dropped = []
        for one in reversed([one for one in self._tables if one not in used]):
            left -= self._tables[one].nbytes
            if left < 0:
                dropped.append(one)
        for one in dropped:
            del self._tables[one]
        self._tables |= added
        return dropped


def work() -> None:
    """Run what the parent asks for, until it is gone. The whole life of a process."""
    signal.signal(signal.SIGINT, signal.SIG_IGN)  # of a terminal: meant for the server
    given = os.fdopen(os.dup(0), "rb", N_BYTES_BUFFER)
    taken = os.fdopen(os.dup(1), "wb", N_BYTES_BUFFER)
    os.dup2(2, 1)  # what a library prints is no answer
    database = ClosedDatabase()
    database.run("SELECT 1 AS x", {"none": pa.schema({"x": pa.int8()}).empty_table()})
    least = _n_bytes_allocated()
    _bound(least)
    taken.write(_READY)
    taken.flush()
    kept: dict[int, pa.Table] = {}
    while line := given.readline():
        order = json.loads(line)
        for key in order["drop"]:
            del kept[key]
        relations = {name: kept[key] for name, key in order["known"].items()}
        for name, key in order["sent"].items():
            relations[name] = _read(given)
            if key is not None:
                kept[key] = relations[name]
        n_bytes_kept = sum(table.nbytes for table in kept.values())
        # The kernel ends the process, whatever it does, unless it has answered by then.
        signal.setitimer(signal.ITIMER_REAL, max(order["seconds"], SECONDS_LEAST))
        before = time.process_time()
        answer: dict[str, object] = {}
        result: pa.Table | None = None
        try:
            result = database.run(order["sql"], relations)
        except SqlEnded as ended:
            answer = {"ended": ended.kind, "text": ended.text[:1000]}
        finally:
            signal.setitimer(signal.ITIMER_REAL, 0.0)
        answer["worked"] = time.process_time() - before
        answer["leaves"] = _n_bytes_allocated() - least - n_bytes_kept > N_BYTES_LEAVES
        taken.write(json.dumps(answer).encode() + b"\n")
        if result is not None:
            _write(taken, result)
        taken.flush()
        del relations, result


def _bound(least: int) -> None:
    """Let the kernel refuse more memory, any file, and a picture of the memory."""
    with suppress(OSError):  # if the machine's memory ends, this process is the first to go
        Path("/proc/self/oom_score_adj").write_text("500", encoding="ascii")
    resource.setrlimit(resource.RLIMIT_CORE, (0, 0))
    resource.setrlimit(resource.RLIMIT_FSIZE, (0, 0))
    if least:
        most = least + N_BYTES_MORE + N_BYTES_KEPT
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
