"""A disk that takes no more: a clear error, nothing lost, and the call works once there is room.

A process may be forbidden to write files beyond a size; to what writes them that is a full disk.
Each test is a process of its own, as the limit is a process's.
"""

import subprocess
import sys
from pathlib import Path

import pytest

BEGIN = """\
import resource, sys
from pathlib import Path
import numpy as np
from cube.refusals import LedgerUnavailable, StoreUnavailable
from tests.support.streaming import COUNT, CREATE, streaming

def room(n_bytes):
    resource.setrlimit(resource.RLIMIT_FSIZE, (n_bytes, resource.RLIM_INFINITY))

def refused(call, kind):
    try:
        call()
    except kind as refusal:
        return refusal
    raise AssertionError("it was done")

LARGE = CREATE.replace("1000", "8000000")
with streaming(Path(sys.argv[1])) as server:
"""
STATE = """\
    room(500_000)
    said = refused(lambda: server.rows(LARGE), StoreUnavailable)
    assert "the disk is full" in said.message and "once there is space" in said.hint
    assert server.kinds() == ["stream_opened", "epoch_begun"]
    refused(lambda: server.observe(np.arange(300)), StoreUnavailable)
    assert server.files() == []  # nothing half made is left
    room(resource.RLIM_INFINITY)
    server.observe(np.arange(300_000))
    assert server.kinds() == ["stream_opened", "epoch_begun"]  # and paid for once
    (row,) = server.rows(COUNT)
    assert abs(row["n"] - 300_000) < 1000
"""
RELEASE = """\
    server.rows(CREATE)
    server.observe(np.arange(300))
    wal = Path(sys.argv[1] + "-wal")
    room(wal.stat().st_size if wal.exists() else Path(sys.argv[1]).stat().st_size)
    server.observe(np.arange(300, 400))  # all blocks of a state are there already
    refused(lambda: server.rows(COUNT), LedgerUnavailable)
room(resource.RLIM_INFINITY)
with streaming(Path(sys.argv[1])) as server:  # a ledger of which a write failed wants a restart
    assert "epoch_released" not in server.kinds()
    server.observe(np.arange(400, 500))
    (row,) = server.rows(COUNT)
    assert abs(row["n"] - 500) < 30
    assert server.rows(COUNT) == [row]
    assert server.kinds().count("epoch_released") == 1
"""


@pytest.mark.skipif(sys.platform != "linux", reason="limits the size of files as Linux does")
@pytest.mark.parametrize("script", [STATE, RELEASE], ids=["state", "release"])
def test_what_the_disk_does_not_take_is_told_and_works_later(tmp_path: Path, script: str) -> None:
    ended = subprocess.run(  # noqa: S603 - our own script
        [sys.executable, "-c", BEGIN + script, str(tmp_path / "a.ledger")],
        capture_output=True,
        text=True,
        check=False,
    )
    assert ended.returncode == 0, ended.stderr
