"""A call in a process of its own, so that its memory is nobody else's."""

import multiprocessing
from collections.abc import Callable
from pathlib import Path
from typing import TypeVar

Result = TypeVar("Result")


def apart(call: Callable[..., Result], *arguments: object) -> Result:
    """What a function of a module gives in a new process."""
    with multiprocessing.get_context("spawn").Pool(1) as pool:
        return pool.apply(call, arguments)


def peak_mib() -> float:
    """The largest memory of this process; that of getrusage is the parent's, if that was larger."""
    status = Path("/proc/self/status").read_text(encoding="ascii")
    return int(status.partition("VmHWM:")[2].split()[0]) / 1024
