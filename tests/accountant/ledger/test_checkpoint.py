"""A start with a checkpoint: the state of replay, or replay itself if anything is wrong with it."""

import dataclasses
import subprocess
import sys
import textwrap
import time
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from accountant.cost import summed_costs
from accountant.cost.cell_function import CellFunction
from accountant.cost.history_cost import CostState
from accountant.cost.kept_sums import is_below
from accountant.cost.summed_costs import SummedCosts
from accountant.ledger.append_only import AppendOnly, GrowingSet
from accountant.ledger.checkpoint import HEAD, SEAL_BYTES, Checkpoint, checkpoint_beside
from accountant.ledger.entries import Charge
from accountant.ledger.limits import Payer
from accountant.ledger.open_ledger import open_ledger
from accountant.ledger.replay import Replay
from accountant.ledger.stores.key_file import fingerprint_key, key_beside
from benchmarks.made_up_charges import MadeUpCharges, Sizes
from benchmarks.restart import Past, write_ledger
from cube.block import QueryBlock
from cube.encoding import fingerprint
from cube.measurement import PlannedMeasurement
from cube.schema import Schema
from examples.adult.demo import HERE
from proxy.config.settings import load

N_MEASUREMENTS = 120
N_COVERED = 20  # rows; with more, costs are kept


@pytest.fixture
def schema() -> Schema:
    return load(HERE / "tacit.toml").tables[0].schema


@pytest.fixture(autouse=True)
def costs_of_few_rows_are_kept(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(summed_costs, "N_COVERED_MAX", N_COVERED)


@pytest.fixture(params=[1, 2])
def path(tmp_path: Path, schema: Schema, request: pytest.FixtureRequest) -> Path:
    """A ledger with a checkpoint."""
    found = tmp_path / "adult.ledger"
    past = Past(schema, np.random.default_rng(request.param))
    write_ledger(found, past.bodies(N_MEASUREMENTS), schema.table)
    with open_ledger(found) as ledger:
        assert ledger.keep_costs()
    return found


@pytest.fixture
def taken(monkeypatch: pytest.MonkeyPatch) -> list[SummedCosts]:
    """The sums that are taken from files."""
    found: list[SummedCosts] = []
    recall = CostState.recall

    def recalling(state: CostState, summed: SummedCosts) -> None:
        recall(state, summed)
        found.append(summed)

    monkeypatch.setattr(CostState, "recall", recalling)
    return found


def file_of(ledger: Path) -> Path:
    return checkpoint_beside(key_beside(ledger))


def plain(value: Any) -> Any:
    """A value that compares by content: everything but the sum of costs."""
    found = value
    if isinstance(value, QueryBlock):
        found = fingerprint(value)
    elif isinstance(value, CostState):
        found = value.rows_per_unit, value.by, value.n_cells_max
    elif isinstance(value, GrowingSet):
        found = len(value), [number for number in range(10_000) if number in value]
    elif dataclasses.is_dataclass(value):
        found = [plain(getattr(value, one.name)) for one in dataclasses.fields(value)]
    elif isinstance(value, Mapping):
        found = [(plain(key), plain(one)) for key, one in value.items()]
    elif isinstance(value, AppendOnly | list | tuple):
        found = [plain(one) for one in value]
    elif isinstance(value, np.ndarray):
        found = value.tolist()
    return found


def cost_at(functions: Sequence[CellFunction], cell: Mapping[str, int]) -> int:
    """The sum of functions at a cell, each from its values on levels."""
    total = 0
    for function in functions:
        place = tuple(
            int(classes.of_level[cell[name]])
            for name, classes in zip(function.axes, function.classes, strict=True)
        )
        total += int(function.values[place])
    return total


def cells(schema: Schema, n: int) -> Iterator[dict[str, int]]:
    rng = np.random.default_rng(5)
    for _ in range(n):
        yield {axis.name: int(rng.integers(axis.size)) for axis in schema.axes}


def replayed(path: Path) -> Replay:
    with open_ledger(path) as ledger:
        return Replay().read(ledger.entries())


def recalled(path: Path, other: Path | None = None) -> Replay:
    """The state of a ledger, or of another one, by the checkpoint of the first."""
    checkpoint = Checkpoint(file_of(path), fingerprint_key(key_beside(path), may_create=False))
    with open_ledger(other or path) as ledger:
        return checkpoint.read(ledger.entries())


def assert_alike(one: Replay, other: Replay, schema: Schema) -> None:
    """That two states are equal, and that their costs are the same function of the cells."""
    assert plain(one) == plain(other)
    costs = [state.histories[schema.table].cost for state in (one, other)]
    sums = [cost.summed() for cost in costs]
    assert sums[0].n_rows == sums[1].n_rows
    assert sums[0].exact == sums[1].exact
    for cell in cells(schema, 200):
        assert cost_at(sums[0].functions, cell) == cost_at(sums[1].functions, cell)
    if all(cost.table_cost().exact for cost in costs):
        assert costs[0].table_cost() == costs[1].table_cost()


def test_the_state_is_that_of_replay(path: Path, schema: Schema, taken: list[SummedCosts]) -> None:
    found = recalled(path)
    assert taken
    assert_alike(found, replayed(path), schema)


def test_it_stays_so_when_entries_are_added(
    path: Path, schema: Schema, taken: list[SummedCosts]
) -> None:
    one, other = recalled(path), replayed(path)
    assert taken
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
    assert_alike(one, other, schema)


def test_a_ledger_goes_on_behind_its_checkpoint(
    tmp_path: Path, schema: Schema, taken: list[SummedCosts]
) -> None:
    path = tmp_path / "adult.ledger"
    bodies = list(Past(schema, np.random.default_rng(3)).bodies(2 * N_MEASUREMENTS))
    # The file of a shorter ledger with the same beginning: the chain of digests is the same.
    write_ledger(path, iter(bodies[: len(bodies) // 2]), schema.table)
    with open_ledger(path) as ledger:
        assert ledger.keep_costs()
    longer = tmp_path / "longer.ledger"
    write_ledger(longer, iter(bodies), schema.table)
    found = recalled(path, longer)
    assert taken
    assert_alike(found, replayed(longer), schema)


def test_every_changed_byte_and_every_cut_is_noticed(path: Path, taken: list[SummedCosts]) -> None:
    file, expected = file_of(path), plain(replayed(path))
    whole = file.read_bytes()
    rng = np.random.default_rng(4)
    starts = list(range(len(HEAD) + SEAL_BYTES + 16))  # head, seal, length, and the text's begin
    places = [*starts, *rng.integers(len(whole), size=200).tolist(), len(whole) - 1]
    key = fingerprint_key(key_beside(path), may_create=False)
    with open_ledger(path) as ledger:
        entries = list(ledger.entries())
    taken.clear()
    for place in places:
        changed = bytearray(whole)
        changed[place] ^= 1 << int(rng.integers(8))
        file.write_bytes(bytes(changed))
        if place in {0, len(HEAD), len(whole) - 1}:
            assert plain(Checkpoint(file, key).read(entries)) == expected
        else:
            Checkpoint(file, key).read(entries[:1])
            assert Checkpoint(file, key)._content() is None
    for length in (0, 1, len(HEAD), len(HEAD) + SEAL_BYTES, len(whole) // 2, len(whole) - 1):
        file.write_bytes(whole[:length])
        assert Checkpoint(file, key)._content() is None
    file.write_bytes(whole + b"\0")
    assert Checkpoint(file, key)._content() is None
    assert not taken
    file.write_bytes(whole)
    assert Checkpoint(file, key)._content() is not None
    assert Checkpoint(file, bytes(32))._content() is None


def test_a_file_of_another_ledger_under_the_same_key_is_not_taken(
    path: Path, tmp_path: Path, schema: Schema, taken: list[SummedCosts]
) -> None:
    other = tmp_path / "other.ledger"
    past = Past(schema, np.random.default_rng(8))
    write_ledger(other, past.bodies(N_MEASUREMENTS), schema.table)
    taken.clear()
    found = recalled(path, other)
    assert not taken
    assert plain(found) == plain(replayed(other))


def test_a_sealed_sum_that_is_too_small_is_found_at_a_cell(
    path: Path, schema: Schema, taken: list[SummedCosts], monkeypatch: pytest.MonkeyPatch
) -> None:
    """As if the code that wrote the file had lost what counts everybody."""
    with open_ledger(path) as ledger:
        state = ledger.history(schema.table).cost
        summed = state.summed()
        less = [one.scaled(0) for one in summed.functions]
        monkeypatch.setattr(
            CostState, "summed", lambda _: dataclasses.replace(summed, functions=tuple(less))
        )
        assert ledger.keep_costs()
    taken.clear()
    found = recalled(path)
    assert not taken
    assert plain(found) == plain(replayed(path))


def test_the_comparison_at_cells_is_the_cost_of_the_rows(path: Path, schema: Schema) -> None:
    """Exact: at the sum it passes, one unit below it does not."""
    cost = replayed(path).histories[schema.table].cost
    rows = cost.rows()
    assert len(rows) > N_COVERED
    functions = CostState().charged(rows).summed().functions
    for cell in cells(schema, 20):
        assert is_below(rows, functions, cell, 1, None)
        less = [*functions, CellFunction.constant(-1)]
        assert not is_below(rows, less, cell, 1, None)


def test_a_sum_of_few_rows_is_not_kept(
    path: Path, taken: list[SummedCosts], monkeypatch: pytest.MonkeyPatch
) -> None:
    """They may be covered by boxes, which need them one by one."""
    monkeypatch.setattr(summed_costs, "N_COVERED_MAX", 10 * N_MEASUREMENTS)
    taken.clear()
    recalled(path)
    assert not taken
    with open_ledger(path) as ledger:
        ledger.keep_costs()
        assert b'"tables":{}' in file_of(path).read_bytes()


def test_the_file_is_for_its_owner_and_costs_rows_of_this_ledger_alone(
    path: Path, schema: Schema
) -> None:
    assert file_of(path).stat().st_mode & 0o777 == 0o600
    planned: list[PlannedMeasurement] = recalled(path).histories[schema.table].cost.rows()
    assert planned == []  # what was recalled is no list any more


def test_it_is_written_anew_only_for_so_many_entries_more(path: Path) -> None:
    with open_ledger(path) as ledger:
        assert ledger.keep_costs(10)
        assert not ledger.keep_costs(1)


def test_a_writer_that_is_killed_leaves_a_whole_file(path: Path, taken: list[SummedCosts]) -> None:
    code = """
        import sys
        from pathlib import Path
        from accountant.cost import summed_costs
        from accountant.ledger.open_ledger import open_ledger
        summed_costs.N_COVERED_MAX = 20
        with open_ledger(Path(sys.argv[1])) as ledger:
            while True:
                ledger.keep_costs(0)
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
        taken.clear()
        recalled(path)
        assert taken
