"""Accepted changes of closed rows: history, cost, the auditor, and the loss of a person."""

import itertools
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass
from fractions import Fraction

import numpy as np
import pytest

from accountant.auditor.verify import verify
from accountant.gate.gate import Gate
from accountant.gate.opening import Funds, open_table
from accountant.ledger.entries import Entry, Period
from accountant.ledger.history.raises import StalePlan
from accountant.ledger.history.table_history import Growth
from accountant.ledger.ledger import Ledger
from accountant.ledger.limits import Payer, Window
from accountant.noise.lattice_noise import SystemNoise
from cube.horizon import Horizon
from cube.measurement import PlannedMeasurement, Weight
from cube.query import Factor, Partition, QueryBlock, counting
from cube.refusals import BudgetExhausted, SourceUnavailable
from cube.schema import RowsByLevel, Schema
from tests.support.audited import assert_not_opened, problem_with, to
from tests.support.growing_table import DAY, KIND, N_DAYS, RECORDS, SCHEMA, GrowingTable, opened

ANN, ONE = Payer("ann"), Weight.at_least(Fraction(1, 16))
LATE = np.array([[2, 1]], dtype=np.int64)  # a late row of the third day


def days(*which: int) -> Factor:
    return Factor(("day",), np.array([int(day in which) for day in range(N_DAYS)], dtype=np.int64))


def kinds(*which: int) -> Factor:
    return Factor(("kind",), np.array([int(kind in which) for kind in (0, 1)], dtype=np.int64))


def rows(*factors: Factor) -> QueryBlock:
    return QueryBlock(counting(factors))


def buy(gate: Gate, block: QueryBlock, times: int = 1, raised_from: int | None = None) -> None:
    weight = Weight(times * ONE.units)
    gate.measure([PlannedMeasurement(block, weight, raised_from)], ANN, epsilon_cap=None)


def spent(gate: Gate) -> Fraction:
    return Fraction(gate.history.units_spent, ONE.units)


def entries(ledger: Ledger) -> list[Entry]:
    return list(ledger._store.entries_after(0))


def check(ledger: Ledger) -> None:
    verdict = verify(entries(ledger))
    assert verdict.problem is None
    assert all(one.exact and one.spent == one.recomputed for one in verdict.tables)


@pytest.fixture
def table() -> GrowingTable:
    return GrowingTable()


@pytest.fixture
def gate(ledger: Ledger, table: GrowingTable) -> Gate:
    """Days 0 to 2 and 3 to 5 are closed, each as a period."""
    gate = opened(ledger, table, 3)
    gate.advance(6, "owner")
    return gate


def test_what_touches_the_changes_is_no_history_and_stays_paid(
    ledger: Ledger, table: GrowingTable, gate: Gate
) -> None:
    early, late = rows(days(0, 1, 2), kinds(1)), rows(days(3, 4, 5))
    both = rows(days(0, 1, 2, 3, 4, 5))
    buy(gate, early, 3)
    buy(gate, late, 2)
    buy(gate, both, 1)
    assert spent(gate) == 4
    table.records = np.append(RECORDS, LATE, axis=0)
    named = gate.accept_changes(2, 3, "owner")
    assert [(one.start, one.end) for one in named] == [(0, 3)]
    assert spent(gate) == 4  # a day of the first three has cost 4 at most, one of the others 3
    history = gate.history
    assert history.growth is not None
    assert history.growth.dropped == (0, 2)
    with pytest.raises(StalePlan):
        buy(gate, early, 4, raised_from=0)
    buy(gate, late, 3, raised_from=1)  # 4 now, as the dearest of the first three
    assert spent(gate) == 4
    buy(gate, rows(days(0)), 1)
    assert spent(gate) == 5
    check(ledger)


def test_every_changed_cell_costs_as_much_as_the_dearest(
    ledger: Ledger, table: GrowingTable, gate: Gate
) -> None:
    """A person's row may have moved from the dear cell to the cheap one."""
    buy(gate, rows(days(0), kinds(0)), 3)
    buy(gate, rows(days(2), kinds(1)), 2)
    assert spent(gate) == 3
    table.records = np.append(RECORDS, LATE, axis=0)
    gate.accept_changes(0, 3, "owner")
    buy(gate, rows(days(1), kinds(1)), 1)  # a cell that had cost nothing
    assert spent(gate) == 4
    check(ledger)


def test_nothing_happens_without_a_change(ledger: Ledger, gate: Gate) -> None:
    before = ledger.position
    assert gate.accept_changes(0, 6, "owner") == ()
    assert ledger.position == before


def test_other_changes_are_not_accepted_with_them(
    ledger: Ledger, table: GrowingTable, gate: Gate
) -> None:
    table.records = np.append(RECORDS, [[2, 1], [4, 1]], axis=0)
    before = ledger.position
    with pytest.raises(ValueError, match="other periods"):
        gate.accept_changes(0, 3, "owner")
    assert ledger.position == before
    assert len(gate.accept_changes(0, 6, "owner")) == 2


def test_a_charge_that_waits_for_rows_that_are_gone_is_given_up(
    ledger: Ledger, table: GrowingTable, gate: Gate
) -> None:
    early, late = rows(days(0, 1)), rows(days(3, 4))
    waiting = [
        gate.charge([PlannedMeasurement(block, ONE)], ANN, epsilon_cap=None)
        for block in (early, late)
    ]
    table.records = np.append(RECORDS, LATE, axis=0)
    again = open_table(ledger, SCHEMA, Fraction(4), table, SystemNoise())
    assert len(again.history.pending) == 2  # nothing is measured while rows have changed
    with pytest.raises(SourceUnavailable):
        again.prepare()
    again.accept_changes(0, 3, "owner")
    assert list(again.history.pending) == [waiting[1].seq]
    assert again.complete_pending() == 1
    assert gate.complete(waiting[0].seq) is None
    (verdict,) = verify(entries(ledger)).tables
    assert (verdict.n_pending, verdict.n_measurements) == (0, 1)
    check(ledger)


def test_a_ledger_with_accepted_changes_opens_as_it_was(
    ledger: Ledger, table: GrowingTable, gate: Gate
) -> None:
    buy(gate, rows(days(0, 1, 2, 3)), 2)
    table.records = np.append(RECORDS, LATE, axis=0)
    gate.accept_changes(0, 3, "owner")
    buy(gate, rows(days(0, 1, 2, 3)), 1)
    from accountant.ledger.history.replay import Replay  # noqa: PLC0415 - as a server at its start

    history = Replay().read(entries(ledger)).history("orders")
    assert history.growth == gate.history.growth
    assert history.units_spent == gate.history.units_spent
    assert history.cost.table_cost() == gate.history.cost.table_cost()
    check(ledger)


@pytest.mark.parametrize(
    ("change", "says"),
    [
        (to(0, "weight_units"), "cost"),
        (to(1, "units_before"), "from 1 spent units"),
        (to(0, "units_after"), "lower the spent total"),
        (to(2, "periods", 0, "start"), "never closed"),
    ],
)
def test_a_lie_about_changes_is_found(
    ledger: Ledger, table: GrowingTable, gate: Gate, change: object, says: str
) -> None:
    buy(gate, rows(days(0)), 2)
    table.records = np.append(RECORDS, LATE, axis=0)
    gate.accept_changes(0, 3, "owner")
    written = entries(ledger)
    (seq,) = [one.seq for one in written if one.kind == "changes_accepted"]
    assert says in problem_with(written, seq, change)  # type: ignore[arg-type]
    assert_not_opened(written, seq, change)  # type: ignore[arg-type]


def random_history(gate: Gate, table: GrowingTable, rng: np.random.Generator) -> None:
    """Purchases before and after accepted changes."""
    for is_late in (False, True):
        for _ in range(4):
            which = rng.choice(6, size=rng.integers(1, 6), replace=False)
            of_kinds = [(0,), (1,), (0, 1)][rng.integers(3)]
            buy(gate, rows(days(*which), kinds(*of_kinds)), int(rng.integers(1, 4)))
        if not is_late:
            table.records = np.append(RECORDS, LATE, axis=0)
            gate.accept_changes(0, 3, "owner")


def largest_loss(gate: Gate, n_before: int, n_rows: int, by: RowsByLevel | None) -> Fraction:
    """The largest loss of a unit: its rows of the first days before and after, and all others.

    Every row costs a unit its weight times how much the unit's rows move it; those of before by
    its old rows, those of after by its new ones. By brute force over where these are.
    """
    measured = [(one.block, one.weight.units) for one in gate.history.measurements]

    def moved(cells: Sequence[tuple[int, int]], block: QueryBlock) -> int:
        (term,) = block.query.terms
        total = 0
        for day, kind in cells:
            at = {"day": day, "kind": kind}
            total += int(
                np.prod([one.values[tuple(at[name] for name in one.axes)] for one in term.factors])
            )
        return total * int(term.scale)

    def allowed(cells: Sequence[tuple[int, int]]) -> bool:
        if len(cells) > n_rows:
            return False
        return by is None or all(
            sum(day == one for day, _ in cells) <= by.rows for one in range(N_DAYS)
        )

    def placed(some_days: range) -> list[tuple[tuple[int, int], ...]]:
        cells = list(itertools.product(some_days, (0, 1)))
        return [
            found
            for n in range(n_rows + 1)
            for found in itertools.combinations_with_replacement(cells, n)
        ]

    early, late = placed(range(3)), placed(range(3, 6))
    best = 0
    for others in late:
        befores = [
            sum(units * moved((*own, *others), block) for block, units in measured[:n_before])
            for own in early
            if allowed((*own, *others))
        ]
        afters = [
            sum(units * moved((*own, *others), block) for block, units in measured[n_before:])
            for own in early
            if allowed((*own, *others))
        ]
        if befores:
            best = max(best, max(befores) + max(afters))
    return Fraction(best, ONE.units)


def opened_for_units(
    ledger: Ledger, n_rows: int, by: RowsByLevel | None
) -> tuple[GrowingTable, Gate]:
    schema = Schema(
        table="orders",
        axes=(DAY, KIND),
        n_records_max=1000,
        unit="who",
        rows_per_unit_max=n_rows,
        rows_per_unit_max_by=by,
        grows="day",
    )
    table = GrowingTable(schema=schema)
    gate = open_table(ledger, schema, Fraction(64), table, SystemNoise())
    for horizon in (3, 6):
        gate.advance(horizon, "owner")
    return table, gate


@pytest.mark.parametrize("seed", range(6))
@pytest.mark.parametrize("bound", ["one row", "two rows", "two rows, one a day"])
def test_no_unit_loses_more_than_was_charged(ledger: Ledger, seed: int, bound: str) -> None:
    """Its rows of the changed days may be any others afterwards; enumerated."""
    n_rows = 1 if bound == "one row" else 2
    by = RowsByLevel("day", 1) if "a day" in bound else None
    table, gate = opened_for_units(ledger, n_rows, by)
    random_history(gate, table, np.random.default_rng(seed))
    loss = largest_loss(gate, 4, n_rows, by)
    assert loss <= spent(gate)
    if n_rows == 1:
        assert loss >= spent(gate) * Fraction(99, 100) or _is_of_dearest(gate)
    check(ledger)


def _is_of_dearest(gate: Gate) -> bool:
    """Whether what is spent is that of a history before the changes: it never falls."""
    before = gate.history.payments[3].charge.units_after
    return gate.history.units_spent == before


def test_a_horizon_and_changes_together(ledger: Ledger, table: GrowingTable, gate: Gate) -> None:
    up_to = Horizon("day", N_DAYS, 6).whole(
        QueryBlock(counting(), Partition(("kind",), np.arange(2, dtype=np.int64)))
    )
    buy(gate, up_to, 1)
    table.records = np.append(RECORDS, LATE, axis=0)
    with pytest.raises(SourceUnavailable):
        gate.advance(7, "owner")
    gate.accept_changes(0, 3, "owner")
    assert gate.advance(7, "owner")
    buy(gate, up_to, 1)
    assert spent(gate) == 2
    check(ledger)


def test_changes_once_every_level_is_readable(ledger: Ledger, table: GrowingTable) -> None:
    """Rows about everything have no end on the axis, and are cut at the changes all the same."""
    gate = opened(ledger, table, 3)
    gate.advance(N_DAYS, "owner")
    buy(gate, rows(), 2)
    buy(gate, rows(days(7)), 1)
    table.records = np.append(RECORDS, LATE, axis=0)
    gate.accept_changes(0, 3, "owner")
    assert gate.history.growth is not None
    assert gate.history.growth.dropped == (0,)
    buy(gate, rows(), 1)
    assert spent(gate) == 4  # the last day: 2 and 1 before, and 1 now
    check(ledger)


def test_what_is_bought_after_changes_that_came_first_is_added_up(
    ledger: Ledger, table: GrowingTable, gate: Gate
) -> None:
    table.records = np.append(RECORDS, LATE, axis=0)
    gate.accept_changes(0, 3, "owner")
    buy(gate, rows(days(0)), 2)
    check(ledger)
    written = entries(ledger)
    (seq,) = [one.seq for one in written if one.kind == "charge"]
    assert "cost" in problem_with(written, seq, to(ONE.units, "units_after"))


def test_what_changes_cost_counts_in_the_window_in_which_they_are_accepted(ledger: Ledger) -> None:
    """A unit with a row on two days loses 3 + 2 before, and may lose 3 + 3 after."""
    schema = Schema(
        table="orders",
        axes=(DAY, KIND),
        n_records_max=1000,
        unit="who",
        rows_per_unit_max=2,
        rows_per_unit_max_by=RowsByLevel("day", 1),
        grows="day",
    )
    table, clock = GrowingTable(schema=schema), ["2026-12-30T12:00:00.000+00:00"]
    ledger._clock = lambda: clock[0]
    budget = Funds(5 * ONE.exact, renews=Window.MONTH)
    gate = open_table(ledger, schema, budget, table, SystemNoise())
    gate.advance(6, "owner")
    buy(gate, rows(days(0)), 3)
    buy(gate, rows(days(3)), 2)
    assert spent(gate) == 5
    assert gate.budget().left == 0
    table.records = np.append(RECORDS, LATE, axis=0)
    clock[0] = "2027-01-02T12:00:00.000+00:00"
    gate.accept_changes(0, 6, "owner")
    assert spent(gate) == 6
    assert gate.budget().spent == ONE.exact
    with pytest.raises(BudgetExhausted):
        buy(gate, rows(days(5)), 8)
    assert gate.budget().left == 4 * ONE.exact
    check(ledger)


Cells = tuple[tuple[int, int], ...]
PERIODS = ((0, 3), (3, 6), (6, 8))


@dataclass
class Epoch:
    """From one change of the rows, or of what is readable, to the next."""

    horizon: int
    changed: frozenset[tuple[int, int]]  # the periods whose rows are others than before
    first: int  # the place of its first measurement


def several_changes(gate: Gate, table: GrowingTable, rng: np.random.Generator) -> list[Epoch]:
    """Purchases between accepted changes of one period after the other, and new days."""
    epochs, horizon = [Epoch(6, frozenset(), 0)], 6
    for number in range(4):
        for _ in range(2):
            which = rng.choice(horizon, size=rng.integers(1, 4), replace=False)
            of_kinds = [(0,), (1,), (0, 1)][rng.integers(3)]
            buy(gate, rows(days(*which), kinds(*of_kinds)), int(rng.integers(1, 4)))
        changed: frozenset[tuple[int, int]] = frozenset()
        if horizon < N_DAYS and rng.random() < 0.3:
            assert gate.advance(N_DAYS, "owner")
            horizon = N_DAYS
        else:
            period = PERIODS[rng.integers(3 if horizon == N_DAYS else 2)]
            row = [period[0] + int(rng.integers(period[1] - period[0])), number % 2]
            table.records = np.append(table.records, [row], axis=0)
            assert gate.accept_changes(*period, "owner")
            changed = frozenset({period})
        epochs.append(Epoch(horizon, changed, len(gate.history.measurements)))
    buy(gate, rows(days(*range(horizon)), kinds(int(rng.integers(2)))), 2)
    return epochs


def lost_by(cells: Cells, block: QueryBlock, units: int) -> int:
    (term,) = block.query.terms
    return units * sum(
        int(np.prod([one.values[(day if one.axes == ("day",) else kind,)] for one in term.factors]))
        for day, kind in cells
    )


def largest_loss_over_epochs(
    gate: Gate, epochs: Sequence[Epoch], n_rows: int, by: RowsByLevel | None
) -> Fraction:
    """The largest loss of a unit that may have other rows wherever rows changed; enumerated.

    In each epoch it has at most so many rows, on days that are readable then. From one epoch to the
    next they are the same in all periods that were readable and have not changed.
    """
    measured = [(one.block, one.weight.units) for one in gate.history.measurements]
    best: dict[Cells, int] = {}
    for number, epoch in enumerate(epochs):
        ends = [one.first for one in epochs[number + 1 :]] or [len(measured)]
        asked = measured[epoch.first : ends[0]]
        cells = list(itertools.product(range(epoch.horizon), (0, 1)))
        states = [
            one
            for n in range(n_rows + 1)
            for one in itertools.combinations_with_replacement(cells, n)
            if by is None or max(Counter(day for day, _ in one).values(), default=0) <= by.rows
        ]
        fixed = [one for one in PERIODS if one[1] <= epochs[max(number - 1, 0)].horizon]
        fixed = [one for one in fixed if one not in epoch.changed]

        def kept(state: Cells, fixed: Sequence[tuple[int, int]] = fixed) -> Cells:
            return tuple(one for one in state if any(a <= one[0] < b for a, b in fixed))

        before: dict[Cells, int] = {}
        for state, loss in best.items():
            before[kept(state)] = max(before.get(kept(state), 0), loss)
        best = {
            state: (before[kept(state)] if number else 0)
            + sum(lost_by(state, block, units) for block, units in asked)
            for state in states
            if not number or kept(state) in before
        }
    return Fraction(max(best.values()), ONE.units)


def with_several_changes(
    ledger: Ledger, seed: int, n_rows: int, by: RowsByLevel | None
) -> tuple[Gate, Fraction]:
    table, gate = opened_for_units(ledger, n_rows, by)
    epochs = several_changes(gate, table, np.random.default_rng(seed))
    return gate, largest_loss_over_epochs(gate, epochs, n_rows, by)


@pytest.mark.parametrize("seed", range(8))
@pytest.mark.parametrize("bound", ["one row", "two rows", "two rows, one a day"])
def test_no_unit_loses_more_by_several_changes_and_new_days(
    ledger: Ledger, seed: int, bound: str
) -> None:
    """A row that one change takes away may come back by another, or on a later day."""
    by = RowsByLevel("day", 1) if "a day" in bound else None
    gate, loss = with_several_changes(ledger, seed, 1 if bound == "one row" else 2, by)
    assert loss <= spent(gate)
    check(ledger)


@pytest.mark.parametrize("forgets", ["earlier changes", "later days"])
def test_what_is_settled_too_early_is_convicted(
    ledger: Ledger, monkeypatch: pytest.MonkeyPatch, forgets: str
) -> None:
    """A row of the first days is taken away, and comes back by another change, or later."""

    def of_this_change(growth: Growth, periods: Sequence[Period]) -> tuple[tuple[int, int], ...]:
        spans = [(one.start, one.end) for one in periods]
        beyond = [] if forgets == "later days" else [(growth.horizon, growth.n_levels)]
        return tuple(sorted({*spans, *beyond}))

    monkeypatch.setattr(Growth, "unsettled_with", of_this_change)
    table = GrowingTable()
    gate = opened(ledger, table, 3)
    gate.advance(6, "owner")
    horizon = 6 if forgets == "later days" else N_DAYS
    gate.advance(horizon, "owner")
    epochs = [Epoch(horizon, frozenset(), 0)]
    buy(gate, rows(days(0)), 3)
    table.records = np.append(table.records, LATE, axis=0)
    gate.accept_changes(0, 3, "owner")
    epochs.append(Epoch(horizon, frozenset({(0, 3)}), 1))
    if forgets == "later days":
        gate.advance(N_DAYS, "owner")
        epochs.append(Epoch(N_DAYS, frozenset(), 1))
        buy(gate, rows(days(7)), 3)
    else:
        table.records = np.append(table.records, [[4, 1]], axis=0)
        gate.accept_changes(3, 6, "owner")
        epochs.append(Epoch(horizon, frozenset({(3, 6)}), 1))
        buy(gate, rows(days(4)), 3)
    assert largest_loss_over_epochs(gate, epochs, 1, None) == 6 > spent(gate)
    assert verify(entries(ledger)).problem is not None
