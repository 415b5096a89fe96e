"""Processes that write one ledger, killed together at random moments, again and again."""

import multiprocessing as mp
import random
import time
from collections.abc import Callable
from contextlib import closing
from pathlib import Path

from accountant.ledger.entries import Entry
from accountant.ledger.opening import open_ledger, open_reader

N_PROCESSES = 2
N_ENTRIES_EACH = 8  # that are written at least before a kill
SECONDS_MAX = 1.0
SECONDS_TO_BEGIN_MAX = 30.0


def written(path: Path) -> list[Entry]:
    """The entries of a ledger, whoever has it open."""
    with closing(open_reader(str(path))) as reader:
        return list(reader.entries_after(0))


def kill_again_and_again(
    path: Path, live: Callable[[str, int], None], check: Callable[[list[Entry]], None], n_kills: int
) -> None:
    """Begin a ledger, then start processes and kill them, and look at what they wrote.

    Parameters
    ----------
    path : Path
        Of the ledger.
    live : callable
        What a process does, for ever: with the path, and the number of the process. Its module is
        imported once.
    check : callable
        What is asserted of the entries after each kill.
    n_kills : int
    """
    with open_ledger(path):
        pass
    context = mp.get_context("forkserver")
    context.set_forkserver_preload([live.__module__])
    moments = random.Random(7)  # noqa: S311 - moments of a test
    n_before = 0
    for kill in range(n_kills):
        numbers = range(N_PROCESSES * kill, N_PROCESSES * (kill + 1))
        processes = [context.Process(target=live, args=(str(path), one)) for one in numbers]
        for one in processes:
            one.start()
        end = time.monotonic() + SECONDS_TO_BEGIN_MAX
        while len(written(path)) < n_before + N_ENTRIES_EACH and time.monotonic() < end:
            time.sleep(0.05)
        time.sleep(moments.uniform(0, SECONDS_MAX))
        for one in processes:
            one.kill()
            one.join(60)
        entries = written(path)
        check(entries)
        n_before = len(entries)
