"""`tacit` as a process that is forked from one which has loaded it: less work for each.

A process of its own in every way that a client or an owner notices: a pid, pipes, signals, an exit
code. What loads it is not tested by these; some tests start the command as a person does.
"""

import multiprocessing as mp
import os
import signal
import subprocess
import sys
from collections.abc import Mapping
from contextlib import suppress
from multiprocessing.reduction import DupFd
from pathlib import Path
from types import TracebackType
from typing import Any, Self, TextIO

_CONTEXT = mp.get_context("forkserver")
LOADED = tuple(
    f"proxy.{one}" for one in ("bootstrap", "cli.app", "cli.access", "cli.ask", "cli.serve")
)


class Forked:
    """A running `tacit`, with what tests use of `subprocess.Popen`.

    Parameters
    ----------
    arguments : sequence of str
        Behind `tacit`.
    stderr : int
        A file descriptor; by default, what is written there is lost.
    environment : mapping of str to str, optional
        By default, this process's.
    """

    def __init__(
        self,
        *arguments: str,
        stderr: int | None = None,
        environment: Mapping[str, str] | None = None,
    ) -> None:
        _CONTEXT.set_forkserver_preload(list(LOADED))
        reading, writing = os.pipe()
        lost = os.open(os.devnull, os.O_WRONLY)
        own = dict(os.environ if environment is None else environment)
        ends = [DupFd(one) for one in (writing, lost if stderr is None else stderr)]
        self._process = _CONTEXT.Process(target=_run, args=(arguments, *ends, own, str(Path.cwd())))
        try:
            self._process.start()
        finally:
            os.close(writing)
            os.close(lost)
        self.stdout: TextIO = os.fdopen(reading, encoding="utf-8")

    @property
    def pid(self) -> int:
        """The number of the process."""
        assert self._process.pid is not None
        return self._process.pid

    @property
    def returncode(self) -> int | None:
        """The exit code; below 0, the signal that ended it; None while it runs."""
        return self._process.exitcode

    def poll(self) -> int | None:
        """The exit code, or None while it runs."""
        return self._process.exitcode

    def wait(self, timeout: float | None = None) -> int:
        """The exit code, once it has ended."""
        self._process.join(timeout)
        if self._process.exitcode is None:
            raise subprocess.TimeoutExpired("tacit", timeout or 0)
        return self._process.exitcode

    def send_signal(self, number: int) -> None:
        """Send a signal, if it still runs."""
        if self._process.exitcode is None:
            with suppress(ProcessLookupError):
                os.kill(self.pid, number)

    def terminate(self) -> None:
        """Send SIGTERM."""
        self.send_signal(signal.SIGTERM)

    def kill(self) -> None:
        """Send SIGKILL."""
        self.send_signal(signal.SIGKILL)

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        where: TracebackType | None,
    ) -> None:
        self.stdout.close()
        self.wait()


def _run(
    arguments: tuple[str, ...],
    stdout: Any,
    stderr: Any,
    environment: Mapping[str, str],
    folder: str,
) -> None:
    os.chdir(folder)
    os.environ.clear()
    os.environ.update(environment)
    os.dup2(stdout.detach(), 1)
    os.dup2(stderr.detach(), 2)
    from proxy.cli.app import main  # noqa: PLC0415 - loaded by what this process is forked from

    sys.argv = ["tacit", *arguments]
    try:
        main()
    finally:
        sys.stdout.flush()
        sys.stderr.flush()
