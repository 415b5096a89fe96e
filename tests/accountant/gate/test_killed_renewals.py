"""Processes that renew a table, charge, raise and measure, killed at random moments.

After each kill the auditor finds nothing wrong: nothing is charged twice, and no value that was
drawn of one generation's data is recorded under a charge of another. The data of each generation
has 64 rows more than the one before, and noise has a scale of one: a value that is off by 32 occurs
once in e**32.
"""

import json
from collections import Counter
from pathlib import Path

import pytest

from accountant.auditor.verify import verify
from accountant.ledger.entries import Entry
from accountant.ledger.opening import open_ledger
from tests.support import dying_renewer
from tests.support.dying_renewer import ROWS_EACH
from tests.support.killing import kill_again_and_again, written

N_KILLS = 8


def check(entries: list[Entry]) -> None:
    """Hold a ledger against what may be."""
    verdict = verify(entries)
    assert verdict.problem is None
    generation, charged_in, bits, measured = 1, dict[int, int](), dict[int, int](), set[int]()
    for entry in entries:
        body = json.loads(entry.body)
        match entry.kind:
            case "generation_begun":
                generation += 1
            case "charge":
                charged_in[entry.seq] = generation
                bits[entry.seq] = body["blocks"][0]["lattice_bits"]
            case "taken_over":
                assert charged_in[body["charge"]] == generation
            case "measurement":
                assert charged_in[body["charge"]] == generation
                assert body["charge"] not in measured
                measured.add(body["charge"])
                ((value,),) = body["lattice_values"]
                assert (
                    abs(value / 2 ** bits[body["charge"]] - ROWS_EACH * generation) < ROWS_EACH / 2
                )
    (table,) = verdict.tables
    assert table.n_generations == generation
    assert table.spent == table.recomputed


@pytest.mark.slow
def test_renewers_killed_at_any_moment(tmp_path: Path) -> None:
    path = tmp_path / "a.ledger"
    kill_again_and_again(path, dying_renewer.live, check, N_KILLS)
    kinds = Counter(entry.kind for entry in written(path))
    assert kinds["generation_begun"] > N_KILLS
    assert kinds["measurement"] > N_KILLS
    with open_ledger(path) as ledger:  # and a server opens it
        number = ledger.history("people").generations.number
        assert number == 1 + kinds["generation_begun"]
