"""A federated table: answers over holders, their budgets, and holders that fail in every way."""

from collections.abc import Callable, Iterator
from dataclasses import replace
from fractions import Fraction
from pathlib import Path

import numpy as np
import pytest
from numpy.typing import NDArray

from accountant.auditor.compare import compared
from accountant.auditor.verify import verify
from accountant.gate import Told
from accountant.ledger import BudgetSet
from accountant.ledger.history import StalePlan
from accountant.ledger.stores.sqlite_store import SqliteStore
from cube.holders import Holders
from cube.measurement import PlannedMeasurement, Weight
from cube.query import QueryBlock, counting
from cube.refusals import BudgetExhausted, CostAboveCap, DataChanged, SourceUnavailable, UnknownName
from inference import Posterior
from planner.workload import RequestedTarget, Wanted
from proxy.api import (
    LOCAL,
    BatchRequest,
    MadeMarginals,
    MarginalSet,
    MarginalsRequest,
    QueryRequest,
    QueryResult,
)
from tests.support.federated import Federation, federated_engine
from tests.support.square_tables import DEFAULT, square_engine

SIZES = {"a": 4, "b": 3, "c": 5}
NAMES = ("north", "south", "east")
RNG = np.random.default_rng(40)
COUNTS: dict[str, NDArray[np.int64]] = {
    name: RNG.integers(0, most, size=tuple(SIZES.values())).astype(np.int64)
    for name, most in zip(NAMES, (400, 50, 900), strict=True)
}
HOLDERS = Holders("holder", len(NAMES))
TOTAL = np.sum(list(COUNTS.values()), axis=0)
LAST = (
    "SELECT WITH DIFFERENTIAL_PRIVACY OPTIONS(half_width=7) COUNT(*) AS n FROM rows WHERE c = 'c4'"
)
BY_A = "SELECT a, COUNT(*) AS n FROM rows GROUP BY a ORDER BY a"


@pytest.fixture
def federation(tmp_path: Path) -> Iterator[Federation]:
    with federated_engine(tmp_path, SIZES, COUNTS) as found:
        yield found


def ask(federation: Federation, sql: str) -> QueryResult:
    return federation.engine.answer(QueryRequest(sql=sql, caller=LOCAL))


def numbers(result: QueryResult) -> list[float]:
    return [float(row["n"]) for row in result.data.to_pylist()]


def assert_all_agree(federation: Federation) -> None:
    """Every ledger passes its audit; receipts, values and charges are those of the holders."""
    held = dict(zip(NAMES, federation.ledgers, strict=True))
    for ledger in (federation.ledger, *held.values()):
        verdict = verify(ledger.entries())
        assert verdict.problem is None
        assert all(one.recomputed <= one.spent for one in verdict.tables)
    found = compared(
        federation.ledger.entries(), {name: one.entries() for name, one in held.items()}
    )
    assert not found.problems
    assert not found.n_elsewhere
    spent = {one.ledger: one.epsilon for one in found.holders}
    for name, of_holder in zip(NAMES, federation.spent(), strict=True):
        assert spent.get(name, 0) == of_holder


def test_answers_are_those_of_all_rows_within_their_intervals(federation: Federation) -> None:
    """Of 12 half-widths at 95 % each, 2 or more miss by twice their size once in 10**4 runs."""
    found = ask(federation, BY_A)
    (column,) = found.receipt.columns if found.receipt else ()
    assert abs(np.array(numbers(found)) - TOTAL.sum(axis=(1, 2))).max() < 3 * 30
    again = ask(federation, BY_A)
    assert again.receipt is not None
    assert again.receipt.epsilon_spent == 0
    assert numbers(again) == numbers(found)
    assert column is not None


def test_ledgers_that_contradict_each_other_are_found(federation: Federation) -> None:
    ask(federation, BY_A)
    ask(federation, LAST)
    ours = list(federation.ledger.entries())
    of_each = zip(NAMES, federation.ledgers, strict=True)
    theirs = {name: list(one.entries()) for name, one in of_each}
    assert_all_agree(federation)
    assert compared(ours, {}).n_elsewhere == 6
    south = theirs["south"]
    measured = next(one for one in south if one.kind == "measurement")
    for old, new in (("[[", "[[1"), ('"charge":', '"charge":1')):
        changed = [
            replace(one, body=one.body.replace(old, new, 1)) if one is measured else one
            for one in south
        ]
        assert compared(ours, {**theirs, "south": changed}).problems
    charge = next(one for one in south if one.kind == "charge")
    without = [one for one in south if one is not charge]
    assert "has no charge for it" in compared(ours, {"south": without}).problems[0]
    other = [replace(one, digest="0" * 64) for one in south]
    assert "does not hold the head" in compared(ours, {"south": other}).problems[0]


def test_it_costs_less_than_sqrt_of_the_holders_times_a_central_table(
    federation: Federation, tmp_path: Path
) -> None:
    """One weight at each holder; the sum of three Laplace variables has lighter tails than one."""
    ask(federation, BY_A)
    (tmp_path / "central").mkdir()
    with square_engine(tmp_path / "central", SIZES, TOTAL) as engine:
        made = engine.answer(QueryRequest(sql=BY_A, caller=LOCAL))
    central = made.receipt.epsilon_spent if made.receipt else Fraction(0)
    spent = federation.spent()
    assert len(set(spent)) == 1
    assert central < spent[0] < central * Fraction(1.7321)
    assert federation.table.gate.budget().spent == spent[0]


def test_half_as_wide_costs_the_difference(federation: Federation) -> None:
    wide, narrow = (LAST.replace("=7", f"={width}") for width in (14, 7))
    ask(federation, wide)
    before = federation.spent()[0]
    ask(federation, narrow)
    after = federation.spent()[0]
    assert after < 2.02 * before


def test_the_axis_of_the_holders_is_no_column_unless_it_is_public(
    federation: Federation, tmp_path: Path
) -> None:
    with pytest.raises(UnknownName):
        ask(federation, "SELECT holder, COUNT(*) AS n FROM rows GROUP BY holder")
    (tmp_path / "public").mkdir()
    with federated_engine(tmp_path / "public", SIZES, COUNTS, holders_public=True) as public:
        found = ask(
            public, "SELECT holder, COUNT(*) AS n FROM rows GROUP BY holder ORDER BY 2 DESC"
        )
        assert [row["holder"] for row in found.data.to_pylist()] == ["east", "north", "south"]
        one = ask(public, "SELECT COUNT(*) AS n FROM rows WHERE holder = 'south'")
        assert abs(numbers(one)[0] - COUNTS["south"].sum()) < 120
        assert one.receipt is not None
        assert one.receipt.epsilon_spent == 0


def test_one_holder_down_is_named_and_nobody_is_charged(federation: Federation) -> None:
    federation.holders.down = {1}
    with pytest.raises(SourceUnavailable, match="south"):
        ask(federation, BY_A)
    assert federation.spent() == [0, 0, 0]
    assert federation.table.gate.budget().spent == 0
    federation.holders.down = set()
    assert len(numbers(ask(federation, BY_A))) == 4


def fail_once(federation: Federation, name: str) -> None:
    """The holder charges and measures, and its reply is lost."""
    failed: list[Told] = []

    def lose(told: Told) -> Told:
        level = NAMES.index(name)
        is_its = any(
            told.values == one.lattice_values
            for _, one in federation.holders.gates[level].history.for_others.answers.pairs
        )
        if is_its and not failed:
            failed.append(told)
            raise SourceUnavailable(f"The reply of {name} was lost.")
        return told

    federation.holders.change = lose


@pytest.mark.parametrize("name", NAMES)
def test_a_reply_that_is_lost_is_told_again_and_paid_once(
    federation: Federation, name: str
) -> None:
    fail_once(federation, name)
    with pytest.raises(SourceUnavailable, match=name):
        ask(federation, BY_A)
    assert len(federation.table.gate.history.pending) == 1
    spent = federation.spent()
    assert len(numbers(ask(federation, BY_A))) == 4
    assert federation.spent() == spent
    assert not federation.table.gate.history.pending
    assert_all_agree(federation)


def test_asking_a_holder_that_stays_down_writes_nothing(federation: Federation) -> None:
    fail_once(federation, "south")
    with pytest.raises(SourceUnavailable):
        ask(federation, BY_A)
    federation.holders.down = {1}
    n_entries, _ = federation.table.position
    for _ in range(5):
        with pytest.raises(SourceUnavailable):
            ask(federation, BY_A)
    assert federation.table.position[0] == n_entries
    federation.holders.down = set()
    assert len(numbers(ask(federation, BY_A))) == 4
    assert_all_agree(federation)


def test_all_holders_are_charged_for_in_one_write(
    federation: Federation, monkeypatch: pytest.MonkeyPatch
) -> None:
    commits: list[SqliteStore] = []
    commit = SqliteStore._commit

    def noted(store: SqliteStore) -> None:
        commits.append(store)
        commit(store)

    monkeypatch.setattr(SqliteStore, "_commit", noted)
    ask(federation, BY_A)
    assert len(federation.table.gate.payments()) == len(NAMES)
    n_written = sum(store is federation.ledger._store for store in commits)
    assert n_written <= 1 + len(NAMES)  # all charges; what each holder measured, when it has come


def test_each_part_is_decided_on_those_before_it_and_a_refusal_ends_it(
    federation: Federation,
) -> None:
    gate = federation.table.gate
    rows = HOLDERS.split(QueryBlock(counting()))
    parts = [((PlannedMeasurement(one, Weight.at_least(0.25)),), ()) for one in rows]
    twice = [*parts, *parts]
    units = parts[0][0][0].weight.units
    # Rows of other holders add nothing to the cost; the same rows again add as much once more.
    payments, refusal = gate.charge_each(twice, LOCAL.payer, epsilon_cap=Fraction(1, 3))
    assert [one.units for one in payments] == [units, 0, 0]
    assert isinstance(refusal, CostAboveCap)
    assert gate.history.units_spent == units
    stale, refusal = gate.charge_each(parts, LOCAL.payer, epsilon_cap=None, n_read=10**6)
    assert not stale
    assert isinstance(refusal, StalePlan)
    assert gate.history.units_spent == units
    assert gate.complete_pending() == len(NAMES)
    assert_all_agree(federation)


def _more(told: Told) -> Told:
    return replace(told, values=tuple((*row, 0) for row in told.values))


def _less(told: Told) -> Told:
    return replace(told, values=told.values[1:])


def _no_receipt(told: Told) -> Told:
    return replace(told, head_entry=told.entry)


def _no_head(told: Told) -> Told:
    return replace(told, head="deadbeef")


def _statistics(told: Told) -> Told:
    return replace(told, released=(1,))


@pytest.mark.parametrize("nonsense", [_more, _less, _no_receipt, _no_head, _statistics])
def test_nonsense_is_refused_by_name_and_paid_once(
    federation: Federation, nonsense: Callable[[Told], Told]
) -> None:
    federation.holders.change = nonsense
    with pytest.raises(SourceUnavailable, match="answered something else"):
        ask(federation, BY_A)
    spent = federation.spent()
    federation.holders.change = lambda told: told
    assert len(numbers(ask(federation, BY_A))) == 4
    assert federation.spent() == spent
    assert_all_agree(federation)


def test_a_holder_with_less_left_gives_what_it_has(tmp_path: Path) -> None:
    budgets = [Fraction(10), Fraction(1, 10), Fraction(10)]
    with federated_engine(tmp_path, SIZES, COUNTS, budgets=budgets) as federation:
        assert len(numbers(ask(federation, BY_A))) == 4
        spent = federation.spent()
        assert Fraction(9, 100) < spent[1] <= Fraction(1, 10)
        assert spent[0] == spent[2] > spent[1]
        assert_all_agree(federation)


def test_a_holder_with_nothing_left_is_named(tmp_path: Path) -> None:
    budgets = [Fraction(10), Fraction(1, 10**6), Fraction(10)]
    with federated_engine(tmp_path, SIZES, COUNTS, budgets=budgets) as federation:
        with pytest.raises(BudgetExhausted, match="south"):
            ask(federation, BY_A)
        assert federation.spent() == [0, 0, 0]


def test_what_a_holder_spends_in_between_is_refused_and_given_up(federation: Federation) -> None:
    """It is refused after the coordinator has charged: nothing waits for it for ever."""
    south = federation.holders.gates[1]

    def nothing_is_left(level: int) -> None:
        if level == 1:
            federation.ledgers[1].append("rows", lambda _history: BudgetSet(Fraction(1, 10**6)))

    federation.holders.before = nothing_is_left
    with pytest.raises(BudgetExhausted, match="south"):
        ask(federation, BY_A)
    assert not federation.table.gate.history.pending
    assert south.budget().spent == 0
    assert len(federation.table.gate.history.measurements) == 2
    assert "charge_given_up" in {entry.kind for entry in federation.ledger.entries()}
    assert_all_agree(federation)


ANY = "SELECT WITH DIFFERENTIAL_PRIVACY OPTIONS(holders => 'any') COUNT(*) AS n FROM rows"


def test_any_holders_answer_from_those_that_can_and_say_so(federation: Federation) -> None:
    federation.holders.down = {2}
    found = ask(federation, ANY)
    assert abs(numbers(found)[0] - COUNTS["north"].sum() - COUNTS["south"].sum()) < 3 * 30
    assert found.receipt is not None
    assert any("1 of 3" in note for note in found.receipt.warnings)
    spent = federation.spent()
    assert spent[2] == 0
    federation.holders.down = set()
    whole = ask(federation, ANY)
    assert abs(numbers(whole)[0] - TOTAL.sum()) < 3 * 30
    assert whole.receipt is not None
    assert not whole.receipt.warnings
    assert federation.spent()[0] <= spent[0] * Fraction(3, 2)


def test_any_holders_are_named_where_they_are_public(tmp_path: Path) -> None:
    with federated_engine(tmp_path, SIZES, COUNTS, holders_public=True) as federation:
        federation.holders.down = {0, 2}
        found = ask(federation, ANY)
        assert found.receipt is not None
        assert any(note.endswith("north, east.") for note in found.receipt.warnings)
        federation.holders.down = {0, 1, 2}
        with pytest.raises(SourceUnavailable):
            ask(federation, ANY.replace("COUNT(*)", "SUM(CASE a WHEN 'a1' THEN 2 END)"))


def test_a_batch_keeps_its_promises(federation: Federation) -> None:
    statements = (
        BY_A,
        "SELECT b, COUNT(*) AS n FROM rows GROUP BY b",
        "SELECT COUNT(*) AS n FROM rows WHERE c IN ('c1', 'c2')",
        "SELECT COUNT(*) AS n FROM rows WHERE c = 'c1' AND a = 'a2'",
    )
    target = RequestedTarget(half_width=20.0)
    plan = BatchRequest(sql=";".join(statements), target=target, buy=True, caller=LOCAL)
    report = federation.engine.plan_batch(plan)
    assert report.is_bought
    assert federation.spent() == [report.epsilon] * 3
    for sql in statements:
        request = QueryRequest(sql=sql, target=target, caller=LOCAL)
        found = federation.engine.answer(request)
        assert found.receipt is not None
        assert found.receipt.epsilon_spent == 0
    assert_all_agree(federation)


def test_marginals_have_the_half_widths_of_sums_of_noises(federation: Federation) -> None:
    """Reconciled pairs: the same law as a sum of three Laplace variables per cell gives."""
    target = RequestedTarget(half_width=25.0)
    sets = (MarginalSet(("a", "b")), MarginalSet(("b", "c")))
    request = MarginalsRequest(table="rows", sets=sets, target=target)
    *_, made = federation.engine.marginals(request, LOCAL)
    assert isinstance(made, MadeMarginals)
    rows = [row for row in made.data.to_pylist() if row["marginal"] == 1]
    assert made.epsilon_spent == federation.spent()[0]
    widths = {(row["high"] - row["low"]) / 2 for row in rows}
    assert max(widths) <= 25.0 * (1 + 1e-5)
    again = federation.engine.marginals(request, LOCAL)
    assert [one.epsilon_spent for one in again if isinstance(one, MadeMarginals)] == [0]


def test_holders_join_and_leave_with_a_generation(tmp_path: Path) -> None:
    """What was bought before answers AS OF that day, of the holders of that day."""
    with federated_engine(tmp_path, SIZES, COUNTS) as federation:
        ask(federation, BY_A)
    fewer = {name: COUNTS[name] for name in ("north", "east")}
    with pytest.raises(DataChanged), federated_engine(tmp_path, SIZES, fewer):
        pass
    with federated_engine(tmp_path, SIZES, fewer, renewed=True) as federation:
        found = ask(federation, BY_A)
        without = np.sum(list(fewer.values()), axis=0).sum(axis=(1, 2))
        assert abs(np.array(numbers(found)) - without).max() < 3 * 30
        assert found.receipt is not None
        assert found.receipt.epsilon_spent > 0
        history = federation.table.gate.history
        assert history.generations.number == 2
        before = federation.table.earlier(0, "rows before")
        assert before.extent.schema.by_name["holder"].levels == NAMES
        earlier = before.look([Wanted(QueryBlock(counting()), DEFAULT)])[0][0]
        assert isinstance(earlier, Posterior)
        assert abs(earlier.value - TOTAL.sum()) < 6 * 30


def test_people_at_several_holders_lose_the_sum(tmp_path: Path) -> None:
    with federated_engine(tmp_path, SIZES, COUNTS, overlap=True) as federation:
        found = ask(federation, BY_A)
        assert found.receipt is not None
        spent = federation.spent()
        assert found.receipt.epsilon_spent == sum(spent) == 3 * spent[0]
        assert any("several holders" in note for note in found.receipt.notes)
        made = federation.table.gate.budget()
        assert made.spent == sum(spent)
        (verdict,) = verify(federation.ledger.entries()).tables
        assert verdict.recomputed == made.spent
        assert_all_agree(federation)


def test_a_holder_that_cannot_answer_is_not_asked_where_something_is_known(
    federation: Federation,
) -> None:
    """The rows of each holder are as good a plan as the query; they must not be those of all."""
    ask(federation, ANY)
    before = federation.spent()
    federation.holders.down = {2}
    found = ask(federation, ANY.replace("(holders", "(half_width => 10, holders"))
    assert found.receipt is not None
    assert any("1 of 3" in note for note in found.receipt.warnings)
    assert [now > then for now, then in zip(federation.spent(), before, strict=True)] == [
        *(True, True),
        False,
    ]


@pytest.mark.parametrize("overlap", [False, True])
def test_units_with_several_rows_cost_as_many_times(tmp_path: Path, overlap: bool) -> None:
    budgets = [Fraction(10), Fraction(1), Fraction(10)]
    made = federated_engine(
        tmp_path, SIZES, COUNTS, budgets=budgets, overlap=overlap, rows_per_unit=4
    )
    with made as federation:
        found = ask(federation, LAST.replace("=7", "=20"))
        assert found.receipt is not None
        spent = federation.spent()
        assert spent[1] <= 1
        weight = federation.holders.gates[0].history.measurements[0].weight.exact
        assert spent[0] == 4 * weight
        assert found.receipt.epsilon_spent == (sum(spent) if overlap else max(spent))
        assert_all_agree(federation)
