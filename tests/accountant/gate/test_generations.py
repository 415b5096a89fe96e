"""Generations of a table: history, cost, the gate's rows, the auditor, and the loss of a person."""

from collections.abc import Callable
from dataclasses import replace
from fractions import Fraction
from itertools import combinations_with_replacement, product
from pathlib import Path

import numpy as np
import pytest
from numpy.typing import NDArray

from accountant.auditor.verify import verify
from accountant.cost.history_cost import CostState
from accountant.gate.gate import Gate
from accountant.gate.next_snapshot import renew_table
from accountant.gate.open_table import Funds, open_table
from accountant.ledger.entries import Entry
from accountant.ledger.generations import GenerationBegun, Generations
from accountant.ledger.ledger import Ledger
from accountant.ledger.limits import Payer
from accountant.ledger.open_ledger import open_ledger
from accountant.ledger.raises import StalePlan
from accountant.ledger.replay import Replay
from accountant.noise.laplace import SystemNoise
from cube.block import Partition, QueryBlock
from cube.measurement import UNITS_PER_EPSILON, PlannedMeasurement, Weight
from cube.query import Factor, LinearQuery, Term
from cube.refusals import BudgetExhausted, DataChanged, LedgerMismatch, SourceUnavailable
from cube.rows_by_level import RowsByLevel
from cube.schema import Schema
from cube.statistic import PlannedUnitCount, UnitCount
from tests.accountant.gate import test_gaussian_loss as mixed_noise
from tests.support.audited import assert_not_opened, problem_with, to
from tests.support.fakes import KnownTable, NoNoise
from tests.support.gaussian import RHO, TERMS, with_gaussian_noise
from tests.support.growing_table import GrowingTable, opened
from tests.support.seven_people import ADULTS, AGE, BY_SEX, EVERYONE, RECORDS, SCHEMA, SEX

ANN, ONE = Payer("ann"), Weight.at_least(Fraction(1, 16))
FUNDS = Funds(Fraction(64))
OTHERS = np.array([[4, 0], [4, 1], [2, 0]], dtype=np.int64)
N_CELLS = 12


def buy(gate: Gate, block: QueryBlock, times: int = 1, raised_from: int | None = None) -> None:
    plan = [PlannedMeasurement(block, Weight(times * ONE.units), raised_from)]
    gate.measure(plan, ANN, epsilon_cap=None)


def renew(ledger: Ledger, records: NDArray[np.int64], schema: Schema = SCHEMA) -> bool:
    return renew_table(ledger, schema, FUNDS, KnownTable(schema, records), "owner")


def renewed(gate: Gate, ledger: Ledger, records: NDArray[np.int64] = OTHERS) -> None:
    """A generation has begun, and the server has read its data."""
    assert renew(ledger, records, gate.schema)
    gate.read_from(KnownTable(gate.schema, records))


def spent(gate: Gate) -> Fraction:
    return Fraction(gate.history.units_spent, ONE.units)


def entries(ledger: Ledger) -> list[Entry]:
    return list(ledger.entries())


def check(ledger: Ledger) -> None:
    """The auditor finds the same sum, and a server that starts now the same history."""
    verdict = verify(entries(ledger), has_columns=True)
    assert verdict.problem is None
    for one in verdict.tables:
        assert one.exact
        assert one.spent == one.recomputed
        again, history = (
            Replay().read(entries(ledger)).history(one.table),
            ledger.history(one.table),
        )
        assert again.generations == history.generations
        assert again.units_of_rows == history.units_of_rows
        assert again.cost.table_cost() == history.cost.table_cost()
        assert one.n_generations == history.generations.number


@pytest.fixture
def gate(ledger: Ledger, table: KnownTable) -> Gate:
    return open_table(ledger, SCHEMA, FUNDS, table, SystemNoise())


def test_what_was_spent_stays_spent_and_nothing_that_was_measured_answers(
    ledger: Ledger, gate: Gate
) -> None:
    buy(gate, ADULTS, 3)
    buy(gate, EVERYONE, 1)
    assert spent(gate) == 4
    renewed(gate, ledger)
    history = gate.history
    assert spent(gate) == 4
    assert (len(history.measurements), history.units_of_rows) == (0, 0)
    assert [len(one.measurements) for one in history.earlier] == [2]
    buy(gate, BY_SEX, 2)  # of another block than the first in its place
    with pytest.raises(StalePlan):
        buy(gate, ADULTS, 4, raised_from=0)
    buy(gate, BY_SEX, 3, raised_from=0)
    assert spent(gate) == 7
    assert len(gate.payments()) == 4
    check(ledger)


def test_the_new_rows_are_measured_and_the_old_ones_were(ledger: Ledger, table: KnownTable) -> None:
    gate = open_table(ledger, SCHEMA, FUNDS, table, NoNoise())
    buy(gate, EVERYONE, 1)
    renewed(gate, ledger)
    buy(gate, EVERYONE, 1)
    of_before, now = gate.history.earlier[0].measurements[0], gate.measurements()[0]
    assert of_before.values[0] == len(RECORDS)
    assert now.values[0] == len(OTHERS)


def test_nothing_is_measured_until_the_new_data_is_read(
    ledger: Ledger, gate: Gate, table: KnownTable
) -> None:
    buy(gate, EVERYONE, 1)
    assert renew(ledger, OTHERS)
    assert gate.lacks_rows
    n_read, position = len(table.scopes_read), ledger.position
    for source in (None, KnownTable(SCHEMA, RECORDS), KnownTable(SCHEMA, OTHERS[:2])):
        if source is not None:
            gate.read_from(source)  # not the data that the ledger says
        with pytest.raises(SourceUnavailable, match="not read yet"):
            buy(gate, ADULTS, 1)
    assert (len(table.scopes_read), ledger.position) == (n_read, position)
    gate.read_from(KnownTable(SCHEMA, OTHERS))
    assert not gate.lacks_rows
    buy(gate, ADULTS, 1)
    check(ledger)


def test_a_server_with_new_data_measures_nothing_of_the_old_generation(
    ledger: Ledger, gate: Gate
) -> None:
    """It has read the data before the ledger says so."""
    gate.read_from(KnownTable(SCHEMA, OTHERS))
    with pytest.raises(SourceUnavailable):
        buy(gate, EVERYONE, 1)
    assert renew(ledger, OTHERS)
    buy(gate, EVERYONE, 1)
    check(ledger)


def test_a_charge_is_decided_on_the_generation_that_there_is_when_it_is_written(
    tmp_path: Path,
) -> None:
    """Another process begins one between the look at the rows and the transaction."""
    with open_ledger(tmp_path / "a.ledger") as here, open_ledger(tmp_path / "a.ledger") as there:
        gate = open_table(here, SCHEMA, FUNDS, KnownTable(SCHEMA, RECORDS), SystemNoise())
        assert renew(there, OTHERS)
        assert gate.history.generations.number == 1  # as far as it has read
        with pytest.raises(SourceUnavailable):
            buy(gate, EVERYONE, 1)
        assert gate.history.generations.number == 2
        assert gate.history.units_spent == 0


def test_a_charge_that_waits_is_given_up_and_stays_paid(ledger: Ledger, gate: Gate) -> None:
    plan = [PlannedMeasurement(EVERYONE, ONE)]
    waiting = gate.charge(plan, ANN, epsilon_cap=None)
    assert renew(ledger, OTHERS)
    assert gate.complete(waiting.seq) is None
    gate.read_from(KnownTable(SCHEMA, OTHERS))
    assert gate.take_over(waiting.seq, 0) is None
    assert gate.complete_pending() == 0
    (verdict,) = verify(entries(ledger)).tables
    assert (verdict.n_pending, verdict.n_measurements) == (0, 0)
    assert spent(gate) == 1
    check(ledger)


def test_a_charge_of_the_new_generation_waits_for_a_server_that_has_its_data(
    ledger: Ledger, gate: Gate
) -> None:
    renewed(gate, ledger)
    waiting = gate.charge([PlannedMeasurement(EVERYONE, ONE)], ANN, epsilon_cap=None)
    late = Gate(ledger, SCHEMA, KnownTable(SCHEMA, RECORDS), SystemNoise())
    position = ledger.position
    with pytest.raises(SourceUnavailable):
        late.take_over(waiting.seq, 0)
    with pytest.raises(SourceUnavailable):
        late.complete_pending()
    assert ledger.position == position
    assert gate.complete(waiting.seq)
    check(ledger)


def test_nothing_happens_if_the_data_is_what_it_was(ledger: Ledger, gate: Gate) -> None:
    position = ledger.position
    assert not renew(ledger, RECORDS)
    assert ledger.position == position
    renewed(gate, ledger)
    assert not renew(ledger, OTHERS)
    renewed(gate, ledger, RECORDS)  # what there was before is another generation, and paid anew
    assert gate.history.generations.number == 3
    check(ledger)


def test_a_budget_is_one_over_all_generations(ledger: Ledger, table: KnownTable) -> None:
    gate = open_table(ledger, SCHEMA, Fraction(3, 16), table, SystemNoise())
    buy(gate, EVERYONE, 2)
    renewed(gate, ledger)
    buy(gate, EVERYONE, 1)
    renewed(gate, ledger, RECORDS)
    with pytest.raises(BudgetExhausted):
        buy(gate, EVERYONE, 1)
    check(ledger)


def test_a_server_starts_with_the_data_of_the_last_generation_alone(
    ledger: Ledger, gate: Gate
) -> None:
    buy(gate, EVERYONE, 1)
    assert renew(ledger, OTHERS)
    again = open_table(ledger, SCHEMA, FUNDS, KnownTable(SCHEMA, OTHERS), SystemNoise())
    buy(again, EVERYONE, 1)
    assert spent(again) == 2
    with pytest.raises(DataChanged) as refused:
        open_table(ledger, SCHEMA, FUNDS, KnownTable(SCHEMA, RECORDS), SystemNoise())
    assert "tacit table renew people" in (refused.value.hint or "")


@pytest.mark.parametrize("records", [RECORDS, OTHERS])
def test_data_of_any_generation_has_no_second_budget(
    ledger: Ledger, gate: Gate, records: NDArray[np.int64]
) -> None:
    renewed(gate, ledger)
    other = Schema(table="others", axes=SCHEMA.axes, n_records_max=1000)
    with pytest.raises(LedgerMismatch, match="as people"):
        open_table(ledger, other, FUNDS, KnownTable(other, records), SystemNoise())
    more = KnownTable(other, OTHERS[:1])
    open_table(ledger, other, FUNDS, more, SystemNoise())
    with pytest.raises(LedgerMismatch, match="as people"):
        renew(ledger, records, other)
    with pytest.raises(ValueError, match="known as people"):
        ledger.append("others", lambda _: _begun(KnownTable(other, records), ledger))
    check(ledger)


def _begun(table: KnownTable, ledger: Ledger) -> GenerationBegun:
    key = ledger.key
    return GenerationBegun(table.fingerprint(key), table.rows_fingerprint(key), 0, "owner")


def test_another_declaration_is_no_new_generation(ledger: Ledger, gate: Gate) -> None:
    del gate
    narrower = Schema(table="people", axes=(SEX,), n_records_max=1000)
    with pytest.raises(LedgerMismatch, match="other columns"):
        renew(ledger, OTHERS[:, 1:], narrower)
    several = Schema(
        table="people", axes=SCHEMA.axes, n_records_max=1000, unit="who", rows_per_unit_max=3
    )
    with pytest.raises(LedgerMismatch, match="rows_per_unit_max = 1"):
        renew(ledger, OTHERS, several)
    unknown = Schema(table="strangers", axes=SCHEMA.axes, n_records_max=1000)
    with pytest.raises(LedgerMismatch, match="does not know"):
        renew(ledger, OTHERS, unknown)


def test_a_table_that_grows_has_no_generations(ledger: Ledger) -> None:
    growing = opened(ledger, GrowingTable(), 3)
    with pytest.raises(ValueError, match="grows"):
        ledger.append("orders", lambda _: GenerationBegun("data", "rows", 0, "owner"))
    with pytest.raises(TypeError):
        growing.read_from(KnownTable(SCHEMA, OTHERS))
    check(ledger)


def test_statistics_units_and_gaussian_noise_go_on(ledger: Ledger, gate: Gate) -> None:
    """The constant of Gaussian noise is paid once; counts of units are forgotten, and stay paid."""
    count = PlannedUnitCount(UnitCount(BY_SEX, 2), ONE)
    raised = PlannedUnitCount(UnitCount(BY_SEX, 2), Weight(2 * ONE.units), 0)

    def ask(*statistics: object) -> int:
        before = gate.history.units_spent
        asked = gate.charge((), ANN, epsilon_cap=None, statistics=statistics)  # type: ignore[arg-type]
        gate.complete(asked.seq)
        return gate.history.units_spent - before

    first = ask(*with_gaussian_noise(BY_SEX))
    assert ask(count) == ONE.units
    renewed(gate, ledger)
    assert not gate.history.unit_counts.latest
    with pytest.raises(StalePlan):
        ask(raised)
    assert ask(count) == ONE.units
    second = ask(*with_gaussian_noise(BY_SEX))
    assert gate.history.gaussian.terms == TERMS
    assert gate.history.gaussian.rho_units == 2 * RHO.units
    assert second < first  # without the constant
    (verdict,) = verify(entries(ledger)).tables
    assert verdict.unit_counts == Fraction(2 * ONE.units, UNITS_PER_EPSILON)
    assert verdict.gaussian == Fraction(first + second, UNITS_PER_EPSILON)
    check(ledger)


@pytest.mark.parametrize(
    ("change", "says"),
    [
        (to(1, "units_before"), "on top of 1"),
        (to("", "data_fingerprint"), "without data"),
        (lambda body: body.pop("rows_fingerprint"), "rows_fingerprint"),
    ],
)
def test_a_lie_about_a_generation_is_found(
    ledger: Ledger, gate: Gate, change: Callable[[dict[str, object]], None], says: str
) -> None:
    buy(gate, EVERYONE, 2)
    renewed(gate, ledger)
    written = entries(ledger)
    (seq,) = [one.seq for one in written if one.kind == "generation_begun"]
    assert says in problem_with(written, seq, change)
    assert_not_opened(written, seq, change)


def test_the_same_data_is_no_generation(ledger: Ledger, gate: Gate, table: KnownTable) -> None:
    renewed(gate, ledger)
    written = entries(ledger)
    key = ledger.key

    def same(body: dict[str, object]) -> None:
        body["data_fingerprint"] = table.fingerprint(key)
        body["rows_fingerprint"] = table.rows_fingerprint(key)

    (seq,) = [one.seq for one in written if one.kind == "generation_begun"]
    assert "that there was" in problem_with(written, seq, same)
    assert_not_opened(written, seq, same)


def test_a_raise_of_an_earlier_generation_is_found(ledger: Ledger, gate: Gate) -> None:
    buy(gate, EVERYONE, 1)
    renewed(gate, ledger)
    buy(gate, EVERYONE, 2)
    written = entries(ledger)
    seq = [one.seq for one in written if one.kind == "charge"][-1]
    raised = to(0, "blocks", 0, "raised_from")
    assert "never made" in problem_with(written, seq, raised)
    assert_not_opened(written, seq, raised)


def test_a_charge_that_forgets_what_was_spent_before_is_found(ledger: Ledger, gate: Gate) -> None:
    """The cost of the new rows alone does not cover what the earlier ones cost."""
    buy(gate, EVERYONE, 3)
    renewed(gate, ledger)
    buy(gate, EVERYONE, 2)
    written = entries(ledger)
    seq = [one.seq for one in written if one.kind == "charge"][-1]
    assert spent(gate) == 5
    cheaper = to(4 * ONE.units, "units_after")
    assert "the rows cost" in problem_with(written, seq, cheaper)


def random_block(rng: np.random.Generator) -> QueryBlock:
    """A block of one or two rows with small coefficients, about some of the cells."""
    ages = Factor(("age",), rng.integers(-2, 3, size=AGE.size).astype(np.int64))
    sexes = Factor(("sex",), rng.integers(0, 2, size=SEX.size).astype(np.int64))
    terms = [Term(Fraction(1), (ages, sexes))]
    if rng.integers(2):
        terms.append(Term(Fraction(1), (Factor(("age",), rng.integers(0, 2, size=AGE.size)),)))
    partition = Partition(("sex",), np.arange(2, dtype=np.int64)) if rng.integers(2) else None
    return QueryBlock(LinearQuery(tuple(terms)), partition)


def coefficient(block: QueryBlock, at: dict[str, int]) -> int:
    """How much a record of a cell moves the row of its group."""
    total = 0
    for term in block.query.terms:
        values = [one.values[tuple(at[name] for name in one.axes)] for one in term.factors]
        total += int(term.scale) * int(np.prod(values))
    return total


def moved(block: QueryBlock) -> NDArray[np.int64]:
    """How much a record of each cell moves each row: (n_rows, N_CELLS)."""
    found = np.zeros((block.n_rows, N_CELLS), dtype=np.int64)
    for place, (age, sex) in enumerate(product(range(AGE.size), range(SEX.size))):
        row = 0 if block.partition is None else int(block.partition.labels[sex])
        found[row, place] = coefficient(block, {"age": age, "sex": sex})
    return found


def losses(gate: Gate, rows_max: int, by: RowsByLevel | None) -> list[int]:
    """For each generation, the largest loss of a unit: over all rows that it may have in it."""
    cells = list(product(range(AGE.size), range(SEX.size)))
    allowed = [
        chosen
        for n in range(rows_max + 1)
        for chosen in combinations_with_replacement(range(N_CELLS), n)
        if by is None
        or all(sum(cells[one][0] == age for one in chosen) <= by.rows for age in range(AGE.size))
    ]
    found = []
    for history in (*gate.history.earlier, gate.history):
        measured = [(moved(one.block), one.weight.units) for one in history.measurements]
        found.append(
            max(
                sum(
                    units * int(np.abs(rows[:, list(chosen)].sum(axis=1)).sum())
                    for rows, units in measured
                )
                for chosen in allowed
            )
        )
    return found


@pytest.mark.parametrize("seed", range(8))
@pytest.mark.parametrize("bound", ["one row", "two rows", "two rows, one at each age"])
def test_no_unit_loses_more_than_was_charged_and_some_unit_does(
    ledger: Ledger, seed: int, bound: str
) -> None:
    """By enumeration over all rows that a unit may have in each generation.

    Within a generation some signs may cancel between a unit's rows, which no price relies on: a
    unit with one row loses exactly what is charged. What a cell has cost in all generations
    together, and what the last generation costs, are both less than the loss.
    """
    rng = np.random.default_rng(seed)
    rows_max = 1 if bound == "one row" else 2
    by = RowsByLevel("age", 1) if "at each" in bound else None
    schema = Schema(
        table="people",
        axes=SCHEMA.axes,
        n_records_max=1000,
        unit="who",
        rows_per_unit_max=rows_max,
        rows_per_unit_max_by=by,
    )
    gate = open_table(ledger, schema, FUNDS, KnownTable(schema, RECORDS), SystemNoise())
    bought = []
    for generation in range(3):
        if generation:
            renewed(gate, ledger, rng.integers(0, 2, size=(5 + generation, 2)).astype(np.int64))
        for _ in range(3):
            block, times = random_block(rng), int(rng.integers(1, 4))
            if not moved(block).any():
                continue
            bought.append(PlannedMeasurement(block, Weight(times * ONE.units)))
            gate.measure(bought[-1:], ANN, epsilon_cap=None)
    each = losses(gate, rows_max, by)
    charged = gate.history.units_spent
    assert sum(each) <= charged
    check(ledger)
    if rows_max == 1:
        assert sum(each) == charged
        own_cells = CostState().charged(bought).table_cost().units
        assert own_cells < sum(each)  # a server whose cells keep only their own cost is convicted
        assert each[-1] < sum(each)  # and so is one that forgets


def test_the_laws_of_both_noises_over_two_generations(ledger: Ledger, table: KnownTable) -> None:
    """A person who was in the dearest cell of either: summed up value by value.

    The constant of the Gaussian account is paid once. A server whose cells keep only their own cost
    is convicted.
    """
    gate = open_table(ledger, SCHEMA, FUNDS, table, SystemNoise())
    plans = []
    for sex in (0, 1):
        of_sex = Factor(("sex",), np.array([1 - sex, sex], dtype=np.int64))
        block = QueryBlock(LinearQuery((Term(Fraction(1), (of_sex,)),)))
        plans.append([replace(planned, block=block) for planned in mixed_noise.MIXED])
        if sex:
            renewed(gate, ledger)
        gate.measure(plans[-1], ANN, epsilon_cap=None)
    parts = [mixed_noise.losses(planned, 1) for plan in plans for planned in plan]
    constant = Fraction(mixed_noise.CONSTANT, UNITS_PER_EPSILON)
    charged = Fraction(gate.history.units_spent, UNITS_PER_EPSILON)
    each = Fraction(mixed_noise.priced(mixed_noise.MIXED)) - constant
    assert charged == 2 * each + constant
    assert mixed_noise.delta_of(parts, float(charged)) <= float(mixed_noise.DELTA)
    own = CostState().charged([*plans[0], *plans[1]]).table_cost().units
    forgetful = float(Fraction(own, UNITS_PER_EPSILON) + constant)
    assert mixed_noise.delta_of(parts, forgetful) > float(mixed_noise.DELTA)
    check(ledger)


def test_no_generation_begins_later_than_a_corrected_clock() -> None:
    known = Generations(("a", "b", "c"), ("2026-01-01", "2026-05-01", "2027-01-01"))
    assert known.corrected("2026-06-01").begun_at == ("2026-01-01", "2026-05-01", "2026-06-01")
    assert known.corrected("2026-02-01").begun_at == ("2026-01-01", "2026-02-01", "2026-02-01")
    assert known.corrected("2027-02-01") is known
    assert Generations().corrected("2026-01-01") == Generations()
