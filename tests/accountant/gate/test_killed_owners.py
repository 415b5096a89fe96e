"""Processes that advance a horizon, accept changes and buy, killed at random moments.

After each kill the auditor finds nothing wrong, nothing was charged beyond the horizon of its
moment, periods leave no gap, and what a charge released is what the last turn of it measured.
"""

import json
from collections import Counter
from pathlib import Path

import pytest

from accountant.auditor.verify import verify
from accountant.ledger.entries import Entry
from accountant.ledger.opening import open_ledger
from tests.support import dying_owner
from tests.support.killing import kill_again_and_again, written

N_KILLS = 6


def check(entries: list[Entry]) -> None:
    """Hold a ledger against what may be."""
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


@pytest.mark.slow
def test_owners_killed_at_any_moment(tmp_path: Path) -> None:
    path = tmp_path / "a.ledger"
    kill_again_and_again(path, dying_owner.live, check, N_KILLS)
    kinds = Counter(entry.kind for entry in written(path))
    assert kinds["horizon_advanced"] > N_KILLS
    assert kinds["changes_accepted"] > 0
    assert kinds["measurement"] > N_KILLS
    with open_ledger(path) as ledger:  # and a server opens it
        assert ledger.history("orders").growth is not None
