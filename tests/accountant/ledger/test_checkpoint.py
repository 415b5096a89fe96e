"""A start with a checkpoint: the state of replay, or replay itself if anything is wrong with it."""

import dataclasses
import os
import subprocess
import sys
import textwrap
import time
from collections.abc import Iterator, Sequence
from itertools import pairwise
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from accountant.cost import summed_costs
from accountant.cost.cell_function import CellFunction
from accountant.cost.cost_at_cell import is_below
from accountant.cost.history_cost import CostState
from accountant.ledger import checkpoint as of_checkpoints
from accountant.ledger.checkpoint import (
    HEAD,
    SEAL_BYTES,
    Checkpoint,
    agrees_with_entry,
    checkpoint_beside,
    state_bytes,
)
from accountant.ledger.entries import Charge, Entry
from accountant.ledger.history.replay import Replay
from accountant.ledger.limits import Payer
from accountant.ledger.opening import open_ledger
from accountant.ledger.stores.key_file import fingerprint_key, key_beside
from benchmarks.made_up_charges import MadeUpCharges, Sizes
from benchmarks.restart import Past, write_ledger
from cube.schema import Schema
from examples.adult.demo import HERE
from proxy.config.settings import load
from tests.support.ledger_states import assert_alike, plain

N_MEASUREMENTS = 120


@pytest.fixture
def schema() -> Schema:
    return load(HERE / "tacit.toml").tables[0].schema


@pytest.fixture(params=[1, 2, 3])
def path(
    tmp_path: Path, schema: Schema, request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch
) -> Path:
    """A ledger with a checkpoint; one of them of more rows than boxes are tried for."""
    if request.param == 3:
        monkeypatch.setattr(summed_costs, "N_COVERED_MAX", N_MEASUREMENTS // 6)
    found = tmp_path / "adult.ledger"
    past = Past(schema, np.random.default_rng(request.param))
    write_ledger(found, past.bodies(N_MEASUREMENTS), schema.table)
    with open_ledger(found) as ledger:
        assert ledger.keep_state()
    return found


def file_of(ledger: Path) -> Path:
    return checkpoint_beside(key_beside(ledger))


def replayed(path: Path) -> Replay:
    with open_ledger(path) as ledger:
        return Replay().read(ledger.entries())


def checkpoint_of(path: Path) -> Checkpoint:
    return Checkpoint(file_of(path), fingerprint_key(key_beside(path), may_create=False))


def read(checkpoint: Checkpoint, entries: Sequence[Entry]) -> tuple[Replay, int]:
    return checkpoint.read(lambda seq: iter(entries[seq:]))


def entries_of(path: Path) -> list[Entry]:
    with open_ledger(path) as ledger:
        return list(ledger.entries())


def recalled(path: Path, other: Path | None = None) -> tuple[Replay, int]:
    """The state of a ledger, or of another one, by the checkpoint of the first."""
    return read(checkpoint_of(path), entries_of(other or path))


def test_the_state_is_that_of_replay(path: Path) -> None:
    found, n_known = recalled(path)
    assert n_known == found.n_entries
    assert_alike(found, replayed(path))


def test_it_stays_so_when_entries_are_added(path: Path, schema: Schema) -> None:
    (one, n_known), other = recalled(path), replayed(path)
    assert n_known
    charges = MadeUpCharges(schema, np.random.default_rng(9), Sizes(3, 4))
    for _ in range(20):
        made = charges.charge(Payer("ann"))
        spent = one.histories[schema.table].units_spent
        # Charged anew, without raises: these were of another history.
        blocks = tuple(block for block in made.blocks if block.raised_from is None)
        if not blocks:
            continue
        rise = sum(block.laplace_noise.weight.units for block in blocks)
        charge = Charge(made.payer, blocks, spent, spent + rise)
        for state in (one, other):
            state.appended("2024-06-01T00:00:00.000+00:00", schema.table, charge)
    assert one.head == other.head
    assert_alike(one, other)


def test_a_ledger_goes_on_behind_its_checkpoint(tmp_path: Path, schema: Schema) -> None:
    path = tmp_path / "adult.ledger"
    bodies = list(Past(schema, np.random.default_rng(3)).bodies(2 * N_MEASUREMENTS))
    # The file of a shorter ledger with the same beginning: the chain of digests is the same.
    write_ledger(path, iter(bodies[: len(bodies) // 2]), schema.table)
    with open_ledger(path) as ledger:
        assert ledger.keep_state()
    longer = tmp_path / "longer.ledger"
    write_ledger(longer, iter(bodies), schema.table)
    found, n_known = recalled(path, longer)
    assert n_known == len(bodies) // 2
    assert_alike(found, replayed(longer))


def test_what_was_read_of_a_file_is_written_again(path: Path) -> None:
    found, n_known = recalled(path)
    assert checkpoint_of(path).write(found) == n_known
    again, n_known = recalled(path)
    assert n_known == again.n_entries
    assert_alike(again, replayed(path))


def test_every_changed_byte_and_every_cut_is_noticed(path: Path) -> None:
    file, expected = file_of(path), plain(replayed(path))
    checkpoint, entries, whole = checkpoint_of(path), entries_of(path), file.read_bytes()
    rng = np.random.default_rng(4)
    starts = list(range(len(HEAD) + SEAL_BYTES + 16))  # head, seal, length, and the text's begin
    places = [*starts, *rng.integers(len(whole), size=200).tolist(), len(whole) - 1]
    for place in places:
        changed = bytearray(whole)
        changed[place] ^= 1 << int(rng.integers(8))
        file.write_bytes(bytes(changed))
        assert checkpoint._content() is None
        if place in {0, len(HEAD), len(whole) - 1}:
            found, n_known = read(checkpoint, entries)
            assert not n_known
            assert plain(found) == expected
    for length in (0, 1, len(HEAD), len(HEAD) + SEAL_BYTES, len(whole) // 2, len(whole) - 1):
        file.write_bytes(whole[:length])
        assert checkpoint._content() is None
    file.write_bytes(whole + b"\0")
    assert checkpoint._content() is None
    file.write_bytes(whole)
    assert checkpoint._content() is not None
    assert dataclasses.replace(checkpoint, key=bytes(32))._content() is None
    assert dataclasses.replace(checkpoint, code=bytes(32))._content() is None


def test_every_changed_entry_is_noticed(path: Path) -> None:
    """The chain is followed though nobody asks what the entries mean."""
    checkpoint, entries = checkpoint_of(path), entries_of(path)
    rng = np.random.default_rng(5)
    for place in [0, len(entries) - 1, *rng.integers(len(entries), size=20).tolist()]:
        entry = entries[place]
        for changed in (
            dataclasses.replace(entry, body=entry.body + " "),
            dataclasses.replace(entry, at="2023" + entry.at[4:]),
            dataclasses.replace(entry, table="other"),
            dataclasses.replace(entry, seq=entry.seq + 1),
        ):
            with pytest.raises(ValueError, match=f"entry {changed.seq}"):
                read(checkpoint, [*entries[:place], changed, *entries[place + 1 :]])
    found, n_known = read(checkpoint, entries[:-1])  # shorter than the file
    assert not n_known
    assert found.n_entries == len(entries) - 1


def test_a_file_of_another_ledger_under_the_same_key_is_not_taken(
    path: Path, tmp_path: Path, schema: Schema
) -> None:
    other = tmp_path / "other.ledger"
    past = Past(schema, np.random.default_rng(8))
    write_ledger(other, past.bodies(N_MEASUREMENTS), schema.table)
    found, n_known = recalled(path, other)
    assert not n_known
    assert plain(found) == plain(replayed(other))


def test_a_sealed_sum_that_is_too_small_is_found_at_a_cell(
    path: Path, schema: Schema, monkeypatch: pytest.MonkeyPatch
) -> None:
    """As if the code that wrote the file had lost what counts everybody."""
    found = replayed(path)
    kept = found.histories[schema.table].cost.summed().kept
    less = dataclasses.replace(kept, functions=tuple(one.scaled(0) for one in kept.functions))
    monkeypatch.setattr(CostState, "kept", property(lambda _: (less, ())))
    checkpoint_of(path).write(found)
    monkeypatch.undo()
    assert_not_taken(path)


def test_a_sealed_state_without_its_costs_is_not_taken(
    path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    found = replayed(path)
    monkeypatch.setattr(CostState, "kept", property(lambda _: (None, ())))
    checkpoint_of(path).write(found)
    monkeypatch.undo()
    assert_not_taken(path)


def test_a_sealed_state_of_other_entries_is_found_by_those_that_are_drawn(
    path: Path, schema: Schema, monkeypatch: pytest.MonkeyPatch
) -> None:
    """As if the code that wrote the file had mixed up values; every entry is drawn here."""
    monkeypatch.setattr(of_checkpoints, "N_ENTRIES_COMPARED", 10_000)
    assert recalled(path)[1]
    found = replayed(path)
    history = found.histories[schema.table]
    values = history.measurements[7].lattice_values
    vars(history.measurements[7])["lattice_values"] = tuple(one + 1 for one in values)
    checkpoint_of(path).write(found)
    assert_not_taken(path)


def assert_not_taken(path: Path) -> None:
    found, n_known = recalled(path)
    assert not n_known
    assert plain(found) == plain(replayed(path))


def test_each_entry_agrees_with_the_state_and_no_other_does(path: Path) -> None:
    state, entries = replayed(path), entries_of(path)
    assert all(agrees_with_entry(state, entry) for entry in entries)
    measured = [entry for entry in entries if entry.kind == "measurement"]
    for entry, other in pairwise(measured):
        swapped = other.body.split('"lattice_values":')[1]
        body = entry.body.split('"lattice_values":')[0] + '"lattice_values":' + swapped
        assert not agrees_with_entry(state, dataclasses.replace(entry, body=body))
    charges = [entry for entry in entries if entry.kind == "charge"]
    for entry in charges:
        body = entry.body.replace('"analyst":"analyst"', '"analyst":"ann"')
        assert not agrees_with_entry(state, dataclasses.replace(entry, body=body))


def test_the_comparison_at_cells_is_the_cost_of_the_rows(path: Path, schema: Schema) -> None:
    """Exact: at the sum it passes, one unit below it does not."""
    _, rows = replayed(path).histories[schema.table].cost.kept
    functions = CostState().charged(rows).summed().functions
    for cell in cells(schema, 20):
        assert is_below(rows, functions, cell, 1, None)
        less = [*functions, CellFunction.constant(-1)]
        assert not is_below(rows, less, cell, 1, None)


def cells(schema: Schema, n: int) -> Iterator[dict[str, int]]:
    rng = np.random.default_rng(5)
    for _ in range(n):
        yield {axis.name: int(rng.integers(axis.size)) for axis in schema.axes}


def test_the_cost_is_known_before_it_is_added_up_again(path: Path, schema: Schema) -> None:
    """A start does not eliminate: it takes the largest cost that was found."""
    cost = recalled(path)[0].histories[schema.table].cost
    before: Any = cost._known
    known = cost.table_cost()
    assert before is None
    assert cost._known is None
    assert known == replayed(path).histories[schema.table].cost.table_cost()


def test_the_file_is_for_its_owner(path: Path) -> None:
    assert file_of(path).stat().st_mode & 0o777 == 0o600


def test_it_is_written_anew_only_for_so_many_entries_more(path: Path) -> None:
    with open_ledger(path) as ledger:
        assert not ledger.keep_state(1)  # what was read is there
        assert ledger.keep_state(0)
    file_of(path).unlink()
    with open_ledger(path) as ledger:
        assert ledger.keep_state(10)
        assert not ledger.keep_state(1)


def test_a_state_that_cannot_be_written_leaves_the_file(path: Path, schema: Schema) -> None:
    before, found = file_of(path).read_bytes(), replayed(path)
    vars(found.histories[schema.table])["declaration"] = object()
    with pytest.raises(Exception, match="cannot store a object"):
        state_bytes(found)
    assert file_of(path).read_bytes() == before


def test_drafts_of_killed_writers_do_not_pile_up(path: Path) -> None:
    file = file_of(path)
    old, young, other = (
        file.with_name(name)
        for name in (f"{file.name}.0123.new", f"{file.name}.4567.new", "b.ledger.checkpoint.0.new")
    )
    for draft in (old, young, other):
        draft.write_bytes(b"half")
    for draft in (old, other):
        os.utime(draft, (0, 0))
    with open_ledger(path) as ledger:
        assert ledger.keep_state(0)
    assert [draft.exists() for draft in (old, young, other)] == [False, True, True]


def test_a_writer_that_is_killed_leaves_a_whole_file(path: Path) -> None:
    code = """
        import sys
        from pathlib import Path
        from accountant.ledger.opening import open_ledger
        with open_ledger(Path(sys.argv[1])) as ledger:
            while True:
                ledger.keep_state(0)
                print("written", flush=True)
    """
    rng = np.random.default_rng(6)
    for _ in range(3):
        with subprocess.Popen(  # noqa: S603 - our own code
            [sys.executable, "-c", textwrap.dedent(code), str(path)], stdout=subprocess.PIPE
        ) as writer:
            assert writer.stdout is not None
            writer.stdout.readline()
            time.sleep(float(rng.uniform(0, 0.05)))
            writer.kill()
        assert recalled(path)[1]
