"""A PostgreSQL server of one's own: a cluster in a temporary directory, started and killed at will.

It listens on a Unix socket alone. PostgreSQL refuses to run as root, so that root runs it as
somebody else. Without PostgreSQL its tests are skipped, unless TACIT_TESTS_NEED_SERVERS=1.

The fixture `postgres_server` is one for a whole session; a test that kills a server makes its own.
"""

import contextlib
import os
import pwd
import shutil
import signal
import socket
import subprocess
import tempfile
import threading
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import NoReturn

import psycopg
import pytest

NEED = "TACIT_TESTS_NEED_SERVERS"
SECONDS = 60
UNPRIVILEGED = ("postgres", "nobody")
PORT = 5432  # names the socket; every cluster has a directory of its own
# Connections are plenty and memory is not; whatever makes a commit durable is as it should be.
SETTINGS = {"shared_buffers": "16MB", "max_connections": "60", "listen_addresses": ""}


def missing(what: str) -> NoReturn:
    """Skip, or fail where servers must be there."""
    if os.environ.get(NEED) == "1":
        pytest.fail(f"{what}, and {NEED}=1", pytrace=False)
    pytest.skip(what)


def find_program(name: str) -> Path | None:
    """A program of PostgreSQL, on PATH or where Debian keeps it; the newest."""
    found = shutil.which(name)
    if found is not None:
        return Path(found).resolve()  # beside the others it needs
    folders = Path("/usr/lib/postgresql").glob("*/bin")
    newest_first = sorted(folders, key=lambda one: float(one.parent.name), reverse=True)
    return next((one / name for one in newest_first if (one / name).exists()), None)


class PostgresServer:
    """One cluster. It is stopped, or runs as `self.process`."""

    def __init__(self, initdb: Path, folder: Path) -> None:
        self._programs = initdb.parent
        self._user = _unprivileged() if os.geteuid() == 0 else None
        self.folder = folder
        self.process: subprocess.Popen[bytes] | None = None
        if self._user is not None:
            os.chown(folder, self._user.pw_uid, self._user.pw_gid)
        self._run(
            self._programs / "initdb",
            *("--pgdata", self.folder / "data", "--username", "owner", "--auth", "trust"),
            *("--encoding", "UTF8", "--locale", "C", "--no-sync"),
        )

    def location(self, database: str = "postgres", user: str = "owner", schema: str = "") -> str:
        """The text that names a ledger in a database of this server."""
        text = f"postgresql://{user}@/{database}?host={self.folder}&port={PORT}"
        return f"{text}&schema={schema}" if schema else text

    def connect(self, database: str = "postgres") -> psycopg.Connection:
        """A connection of the superuser, each statement of which is a transaction."""
        return psycopg.connect(
            host=str(self.folder), port=PORT, dbname=database, user="owner", autocommit=True
        )

    def start(self, **settings: str) -> None:
        """Start, and wait until somebody may connect."""
        options = [
            part
            for name, value in {**SETTINGS, **settings}.items()
            for part in ("-c", f"{name}={value}")
        ]
        with (self.folder / "log").open("ab") as log:
            self.process = subprocess.Popen(  # noqa: S603 - a program that was looked for
                [
                    str(self._programs / "postgres"),
                    *("-D", str(self.folder / "data"), "-k", str(self.folder)),
                    *("-p", str(PORT), *options),
                ],
                stdout=log,
                stderr=log,
                cwd=self.folder,
                user=self._user and self._user.pw_uid,
                group=self._user and self._user.pw_gid,
                extra_groups=self._user and [],
            )
        self._wait_until_ready()

    def stop(self) -> None:
        """Stop at once, in order; connections are cut."""
        if self.process is not None:
            self.process.send_signal(signal.SIGINT)
            self.process.wait(SECONDS)
            self.process = None

    def kill(self) -> None:
        """Kill every process of the server, as a machine that stops does, but for its memory."""
        if self.process is None:
            return
        self.process.send_signal(signal.SIGSTOP)  # so that it starts no more of them
        pids = [*_children(self.process.pid), self.process.pid]
        for pid in pids:
            with contextlib.suppress(ProcessLookupError):
                os.kill(pid, signal.SIGKILL)
        self.process.wait(SECONDS)
        # One that waits for the disk dies when the disk answers, and holds the memory until then.
        wait_until(lambda: not any(map(_is_alive, pids)))
        self.process = None

    def _wait_until_ready(self) -> None:
        def is_ready() -> bool:
            if self.process is None or self.process.poll() is not None:
                pytest.fail((self.folder / "log").read_text()[-2000:], pytrace=False)
            try:
                self.connect().close()
            except psycopg.OperationalError:
                return False
            return True

        wait_until(is_ready)

    def _run(self, *command: str | Path) -> None:
        done = subprocess.run(  # noqa: S603 - a program that was looked for
            command,
            check=False,
            capture_output=True,
            timeout=SECONDS,
            cwd=self.folder,
            user=self._user and self._user.pw_uid,
            group=self._user and self._user.pw_gid,
            extra_groups=self._user and [],
        )
        if done.returncode:
            pytest.fail(done.stderr.decode()[-2000:], pytrace=False)


def wait_until(is_so: Callable[[], bool], seconds: float = SECONDS) -> None:
    """Wait for something that happens soon; AssertionError if it does not."""
    deadline = time.monotonic() + seconds
    while not is_so():
        assert time.monotonic() < deadline
        time.sleep(0.01)


@contextlib.contextmanager
def serving_postgres() -> Iterator[PostgresServer]:
    """A new server that runs, and is gone afterwards with all it held."""
    initdb = find_program("initdb")
    if initdb is None:
        missing("there is no PostgreSQL (initdb) on this machine")
    # Not in pytest's own directory: that is private to the user who runs the tests, and the path of
    # a socket may have 107 bytes.
    with tempfile.TemporaryDirectory(prefix="tacit-pg-", ignore_cleanup_errors=True) as folder:
        server = PostgresServer(initdb, Path(folder))
        try:
            server.start()
            yield server
        finally:
            server.kill()


@contextlib.contextmanager
def over_tcp(server: PostgresServer) -> Iterator[int]:
    """A port of this machine that leads to a server's socket, for clients that reach no socket."""

    def pass_on(source: socket.socket, target: socket.socket) -> None:
        with contextlib.suppress(OSError):
            while piece := source.recv(2**16):
                target.sendall(piece)
        for end in (source, target):
            with contextlib.suppress(OSError):
                end.shutdown(socket.SHUT_RDWR)

    def serve(client: socket.socket) -> None:
        with client, socket.socket(socket.AF_UNIX) as inner:
            inner.connect(f"{server.folder}/.s.PGSQL.{PORT}")
            back = threading.Thread(target=pass_on, args=(inner, client), daemon=True)
            back.start()
            pass_on(client, inner)
            back.join(SECONDS)

    def accept() -> None:
        with contextlib.suppress(OSError):  # until the listener is closed
            while True:
                client, _ = listener.accept()
                threads.append(threading.Thread(target=serve, args=(client,), daemon=True))
                threads[-1].start()

    threads: list[threading.Thread] = []
    with socket.create_server(("127.0.0.1", 0)) as listener:
        accepting = threading.Thread(target=accept, daemon=True)
        accepting.start()
        try:
            yield listener.getsockname()[1]
        finally:
            listener.shutdown(socket.SHUT_RDWR)
            for thread in (accepting, *threads):
                thread.join(SECONDS)


@pytest.fixture(scope="session")
def postgres_server() -> Iterator[PostgresServer]:
    with serving_postgres() as server:
        yield server


def _unprivileged() -> pwd.struct_passwd:
    for name in UNPRIVILEGED:
        with contextlib.suppress(KeyError):
            return pwd.getpwnam(name)
    missing("PostgreSQL does not run as root, and there is nobody else")


def _children(pid: int) -> list[int]:
    """The processes that a server started; none of them starts others."""
    listed = Path(f"/proc/{pid}/task/{pid}/children")
    if listed.exists():
        return [int(child) for child in listed.read_text().split()]
    return []  # they notice by themselves that their parent is gone


def _is_alive(pid: int) -> bool:
    try:
        # After the name, which may hold anything, comes the state; a zombie holds nothing.
        return Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0] != "Z"
    except OSError:
        return False
