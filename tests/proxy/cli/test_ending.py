"""A server that still loads ends at once by a signal, as one that serves, and loses nothing."""

import os
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest

from tests.support.postgres import wait_until

CONFIGURATION = """\
[server]
listen = "127.0.0.1:0"
[ledger]
path = "people.ledger"
[tables.people]
source = "people.csv"
extract = "file"
budget = "1.0"
n_records_max = 100000000
half_width = 20
[tables.people.columns.age]
kind = "numeric"
edges = [{edges}]
"""


@pytest.mark.slow
@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGINT])
@pytest.mark.parametrize("workers", [1, 2])
def test_a_loading_server_ends_at_once_and_starts_again(
    tmp_path: Path, number: signal.Signals, workers: int
) -> None:
    """The ledger is as it was, and no partial extract stays."""
    line = b"%d\n" * 1000 % tuple(range(1000))
    with (tmp_path / "people.csv").open("wb") as file:
        file.write(b"age\n")
        for _ in range(8_000):
            file.write(line)
    edges = ", ".join(map(str, range(5000)))
    (tmp_path / "tacit.toml").write_text(CONFIGURATION.format(edges=edges))
    code = "from proxy.cli.app import main; main()"
    process = subprocess.Popen(  # noqa: S603 - our own command
        [sys.executable, "-c", code, "serve", "tacit.toml", f"--workers={workers}"],
        cwd=tmp_path,
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
        start_new_session=True,
    )
    try:
        wait_until(lambda: any(tmp_path.glob("people.ledger.extracts/*")), 120)
        time.sleep(0.5)
        began = time.monotonic()
        if number == signal.SIGINT:
            os.killpg(process.pid, number)  # as a terminal does
        else:
            process.send_signal(number)
        said, _ = process.communicate(timeout=60)
        assert time.monotonic() - began < 30  # it takes a twentieth of a second with a free core
    finally:
        process.kill()
    assert process.returncode == 0
    assert "Traceback" not in said
    assert "error" not in said
    verified = subprocess.run(  # noqa: S603 - our own command
        [sys.executable, "-c", code, "audit", "verify", "people.ledger"],
        cwd=tmp_path,
        capture_output=True,
        text=True,
        check=False,
    )
    assert verified.returncode == 0, verified.stdout + verified.stderr


@pytest.mark.parametrize("work", ["while True: pass", "connection.execute(LONG)", "stuck()"])
def test_what_begins_is_ended_whatever_it_waits_for(work: str) -> None:
    """Python's own steps, a statement of the database, and a system call that nothing ends."""
    script = f"""
import ctypes, os, sys, time, duckdb
from contextlib import suppress
from proxy.cli.serving import ending
ending.END_SECONDS_MAX = 0.5
LONG = "SELECT sum(a.range * b.range) FROM range(1000000) a, range(1000000) b"
connection = duckdb.connect(config={{"threads": 1}})
def stuck():
    # Nothing interrupts who waits for a lock that is its own.
    library, mutex = ctypes.CDLL(None), ctypes.create_string_buffer(64)
    library.pthread_mutex_lock(mutex)
    library.pthread_mutex_lock(mutex)
asked = ending.Ending()
with suppress(ending.EndedEarly):
    with asked.at_once():
        print("begins", flush=True)
        {work}
print("ended in order", flush=True)
"""  # noqa: S608 - a script of this test
    process = subprocess.Popen(  # noqa: S603 - our own script
        [sys.executable, "-c", script], stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True
    )
    try:
        assert process.stdout is not None
        assert process.stdout.readline() == "begins\n"
        process.send_signal(signal.SIGTERM)
        said, wrong = process.communicate(timeout=60)
    finally:
        process.kill()
    assert process.returncode == 0
    assert "Traceback" not in wrong
    assert ("ended in order" in said) or "stuck" in work
