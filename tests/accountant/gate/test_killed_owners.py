"""Processes that advance a horizon, accept changes and buy, killed at random moments.

After each kill the auditor finds nothing wrong, nothing was charged beyond the horizon of its
moment, periods leave no gap, and what a charge released is what the last turn of it measured.
"""

import json
import multiprocessing as mp
import random
import time
from collections import Counter
from pathlib import Path

import pytest

from accountant.auditor.verify import verify
from accountant.ledger.entries import Entry
from accountant.ledger.open_ledger import open_ledger, open_reader
from tests.support import dying_owner

N_KILLS = 6
SECONDS_MAX = 1.0
SECONDS_TO_BEGIN_MAX = 30.0


def written(path: Path) -> list[Entry]:
    reader = open_reader(str(path))
    try:
        return list(reader.entries_after(0))
    finally:
        reader.close()


def check(path: Path) -> Counter[str]:
    """Hold a ledger against what may be; how many entries of each kind it has."""
    entries = written(path)
    verdict = verify(entries)
    assert verdict.problem is None
    horizon = 0
    for entry in entries:
        body = json.loads(entry.body)
        if entry.kind == "horizon_advanced":
            for period in body["periods"]:
                assert period["start"] == horizon
                horizon = period["end"]
        if entry.kind == "measurement":
            assert len(body["lattice_values"]) == 1
    kinds = Counter(entry.kind for entry in entries)
    given_up = kinds["charge"] - kinds["measurement"]
    assert 0 <= given_up <= kinds["changes_accepted"] + 2 * N_KILLS
    return kinds


@pytest.mark.slow
def test_owners_killed_at_any_moment(tmp_path: Path) -> None:
    path = tmp_path / "a.ledger"
    with open_ledger(path):
        pass
    context = mp.get_context("forkserver")
    context.set_forkserver_preload(["tests.support.dying_owner"])
    moments = random.Random(7)  # noqa: S311 - moments of a test
    before, kinds = 0, Counter[str]()
    for _ in range(N_KILLS):
        processes = [context.Process(target=dying_owner.live, args=(str(path),)) for _ in range(2)]
        for one in processes:
            one.start()
        end = time.monotonic() + SECONDS_TO_BEGIN_MAX
        while len(written(path)) < before + 8 and time.monotonic() < end:
            time.sleep(0.05)
        time.sleep(moments.uniform(0, SECONDS_MAX))
        for one in processes:
            one.kill()
            one.join(60)
        kinds = check(path)
        before = sum(kinds.values())
    assert kinds["horizon_advanced"] > N_KILLS
    assert kinds["changes_accepted"] > 0
    assert kinds["measurement"] > N_KILLS
    with open_ledger(path) as ledger:  # and a server opens it
        assert ledger.history("orders").growth is not None
