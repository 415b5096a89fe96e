"""A process killed at random moments under load, over and over: what it spent and what it released.

After each kill: whatever was released is in the ledger with its charge; nothing was charged twice
(each count is raised by one step at a time, so that the ledger must hold each step once); and the
auditor, who shares no code with the gate, finds nothing wrong. Then the next process goes on.
"""

import json
import multiprocessing as mp
import random
import threading
import time
from collections import Counter
from collections.abc import Iterator
from pathlib import Path

import pytest

from accountant.auditor.verify import verify
from accountant.ledger.entries import Entry
from accountant.ledger.opening import open_reader
from tests.support import dying_buyers
from tests.support.postgres import PostgresServer, serving_postgres

SECONDS_MAX = 0.6  # of life for a process, from its fork on; opening takes about a third of it
SECONDS_TO_BEGIN_MAX = 20.0  # on a machine that does other things
N_KILLS_A_LEDGER = 25  # then a new one, or reading it back would take longer than writing it


@pytest.fixture(scope="module")
def forking() -> mp.context.ForkServerContext:
    context = mp.get_context("forkserver")
    context.set_forkserver_preload(["tests.support.dying_buyers"])
    return context


def killed_once(
    context: mp.context.ForkServerContext,
    place: tuple[str, str],
    released: Path,
    seconds: float,
    *,
    is_busy: bool,
) -> None:
    """Kill a process some time after it began; if `is_busy`, after it has released something."""
    arguments = (*place, str(released))
    n_bytes = released.stat().st_size if released.exists() else 0
    process = context.Process(target=dying_buyers.buy_until_killed, args=arguments)
    process.start()
    end = time.monotonic() + SECONDS_TO_BEGIN_MAX
    while is_busy and process.is_alive() and time.monotonic() < end:
        if released.exists() and released.stat().st_size > n_bytes:
            break
        time.sleep(0.005)
    time.sleep(seconds)
    process.kill()
    process.join(60)
    process.close()


def entries(location: str) -> list[Entry]:
    reader = open_reader(location)
    try:
        return list(reader.entries_after(0))
    finally:
        reader.close()


def check(location: str, released: Path) -> int:
    """Hold what was released against the ledger; how many releases."""
    written = entries(location)
    verdict = verify(written)
    assert verdict.problem is None
    bodies = [(entry.seq, entry.kind, json.loads(entry.body)) for entry in written]
    measured = {
        body["charge"]: body["lattice_values"] for _, kind, body in bodies if kind == "measurement"
    }
    text = released.read_text() if released.exists() else ""
    lines = [line.split() for line in text.splitlines(keepends=True) if line.endswith("\n")]
    for seq, value in lines:
        assert measured[int(seq)] == [[int(value)]], "released, and not in the ledger"
    steps = Counter(
        (json.dumps(block["block"]), block["weight_units"])
        for _, kind, body in bodies
        if kind == "charge"
        for block in body["blocks"]
    )
    assert set(steps.values()) <= {1}, "a step that was paid for twice"
    n_pending = sum(kind == "charge" for _, kind, _ in bodies) - len(measured)
    assert n_pending <= dying_buyers.N_BUYERS, "each buyer waits for one charge at the most"
    return len(lines)


def lives(n_kills: int, seed: int) -> Iterator[float]:
    draw = random.Random(seed)  # noqa: S311 - moments, not noise
    for _ in range(n_kills):
        yield draw.uniform(0.05, SECONDS_MAX)


def kill_on_sqlite(
    context: mp.context.ForkServerContext, folder: Path, n_kills: int, seed: int
) -> int:
    location, released = str(folder / "people.ledger"), folder / "released"
    n_released = 0
    for number, seconds in enumerate(lives(n_kills, seed)):
        killed_once(context, (location, ""), released, seconds, is_busy=number % 2 == 1)
        if (folder / "people.ledger.key").exists():
            n_released = check(location, released)
    return n_released


def test_a_process_killed_at_random_loses_nothing(
    forking: mp.context.ForkServerContext, tmp_path: Path
) -> None:
    assert kill_on_sqlite(forking, tmp_path, 8, seed=0) > 8


@pytest.mark.slow
def test_a_process_killed_three_hundred_times_loses_nothing(
    forking: mp.context.ForkServerContext, tmp_path: Path
) -> None:
    n_released = 0
    for number in range(300 // N_KILLS_A_LEDGER):
        folder = tmp_path / str(number)
        folder.mkdir()
        n_released += kill_on_sqlite(forking, folder, N_KILLS_A_LEDGER, seed=number)
    assert n_released > 3000


def kill_on_postgres(
    context: mp.context.ForkServerContext,
    server: PostgresServer,
    folder: Path,
    n_kills: int,
    n_server_kills: int,
) -> int:
    """Kill the process each time, and now and then the database under it too."""
    location, released = server.location(), folder / "released"
    key = str(folder / "ledger.key")
    n_released = 0
    for number, seconds in enumerate(lives(n_kills, seed=1)):
        is_servers_turn = n_server_kills > 0 and number % (n_kills // n_server_kills) == 0
        killer = threading.Timer(seconds * 0.8 + 0.2, server.kill)
        if is_servers_turn:
            killer.start()
        killed_once(context, (location, key), released, seconds, is_busy=number % 2 == 1)
        if is_servers_turn:
            killer.join()
            server.start()
        if (folder / "ledger.key").exists():
            n_released = check(location, released)
    return n_released


def test_a_process_on_postgresql_killed_with_and_without_it_loses_nothing(
    forking: mp.context.ForkServerContext, tmp_path: Path
) -> None:
    with serving_postgres() as server:
        assert kill_on_postgres(forking, server, tmp_path, 4, 1) > 4


@pytest.mark.slow
def test_a_process_on_postgresql_killed_fifty_times_loses_nothing(
    forking: mp.context.ForkServerContext, tmp_path: Path
) -> None:
    with serving_postgres() as server:
        assert kill_on_postgres(forking, server, tmp_path, 50, 5) > 500
