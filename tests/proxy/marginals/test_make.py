"""Marginals through a whole engine: agreement, intervals, prices, what is refused and when."""

from collections.abc import Iterator
from fractions import Fraction
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from numpy.typing import NDArray

from accountant.noise.lattice_noise import NoiseSource
from cube.measurement import UNITS_PER_EPSILON
from cube.refusals import (
    BudgetExhausted,
    CostAboveCap,
    InvalidRequest,
    InvalidTarget,
    Refused,
    TooLarge,
    UnknownName,
)
from planner.workload import Consistency, RequestedTarget
from proxy.api.marginals import MadeMarginals, MarginalSet, MarginalsRequest
from proxy.api.requests import LOCAL, Caller, QueryRequest
from proxy.engine.engine import Engine
from tests.support.fakes import NoNoise
from tests.support.square_tables import TABLE, square_engine

SIZES = {"a": 3, "b": 2, "c": 4}
COUNTS = np.random.default_rng(3).integers(0, 60, (3, 2, 4))
AB, BC, A, TOTAL = ("a", "b"), ("b", "c"), ("a",), ()
AXES = {"a": 0, "b": 1, "c": 2}
Cells = dict[tuple[str, ...], NDArray[np.float64]]


def opened(
    folder: Path, noise: NoiseSource | None = None, budget: Fraction = Fraction(4000)
) -> Any:
    return square_engine(folder, SIZES, COUNTS, noise, budget=budget)


@pytest.fixture
def engine(tmp_path: Path) -> Iterator[Engine]:
    with opened(tmp_path) as found:
        yield found


def request(*sets: tuple[str, ...], **how: Any) -> MarginalsRequest:
    return MarginalsRequest(table=TABLE, sets=tuple(MarginalSet(one) for one in sets), **how)


def ask(engine: Engine, asked: MarginalsRequest, caller: Caller = LOCAL) -> MadeMarginals:
    *steps, made = engine.marginals(asked, caller)
    assert steps
    assert all(isinstance(step, str) for step in steps)
    assert isinstance(made, MadeMarginals)
    return made


def cells(made: MadeMarginals, column: str = "value") -> Cells:
    """The cells of each set as an array, the axes in the order of its columns."""
    found: Cells = {}
    rows = made.data.to_pylist()
    for number in sorted({row["marginal"] for row in rows}):
        own = [row for row in rows if row["marginal"] == number]
        columns = tuple(own[0]["columns"])
        shape = [SIZES[name] for name in columns]
        found[columns] = np.array([row[column] for row in own], dtype=np.float64).reshape(shape)
    return found


def truth(columns: tuple[str, ...]) -> NDArray[np.float64]:
    left_out = tuple(AXES[name] for name in AXES if name not in columns)
    sums = COUNTS.sum(axis=left_out)
    scope = sorted(columns)
    return np.transpose(sums, [scope.index(name) for name in columns]).astype(np.float64)


def spent(engine: Engine) -> Fraction:
    return engine.budgets(LOCAL)[0].spent


def n_entries(engine: Engine) -> int:
    return engine.budgets(LOCAL)[0].n_measurements


def agree(found: Cells) -> bool:
    ab, bc, a, total = found[AB], found[BC], found[A], found[TOTAL]
    return (
        np.allclose(ab.sum(1), a)
        and np.allclose(ab.sum(0), bc.sum(1))
        and np.allclose([a.sum(), bc.sum()], total)
    )


def test_without_noise_they_are_the_counts_whatever_the_consistency(tmp_path: Path) -> None:
    with opened(tmp_path, NoNoise()) as engine:
        for consistency in Consistency:
            asked = request(("b", "a"), BC, A, TOTAL, budget=Fraction(1), consistency=consistency)
            found = cells(ask(engine, asked))
            for columns, values in found.items():
                near = 0.5 if consistency is Consistency.GLOBAL else 1e-6
                assert values == pytest.approx(truth(columns), abs=near), (consistency, columns)


def test_measured_tables_disagree_and_reconciled_ones_agree(engine: Engine) -> None:
    sets = (AB, BC, A, TOTAL)
    made = {
        consistency: ask(engine, request(*sets, budget=Fraction(budget), consistency=consistency))
        for consistency, budget in (
            (Consistency.EXACT, 1),
            (Consistency.NONNEGATIVE, 0),
            (Consistency.GLOBAL, 0),
        )
    }
    assert all(agree(cells(one)) for one in made.values())
    assert min(values.min() for values in cells(made[Consistency.NONNEGATIVE]).values()) >= 0
    assert (made[Consistency.EXACT].misfit or 0) > 0


def test_agreement_is_free_and_leaves_nothing_in_the_ledger(engine: Engine) -> None:
    ask(engine, request(AB, BC, A, budget=Fraction(1)))
    paid, n_before = spent(engine), n_entries(engine)
    for consistency in Consistency:
        again = ask(engine, request(AB, BC, A, budget=Fraction(0), consistency=consistency))
        assert again.epsilon_spent == 0
        assert set(again.data.column("source").to_pylist()) == {"history"}
    assert (spent(engine), n_entries(engine)) == (paid, n_before)


def test_a_budget_is_spent_whole_and_on_large_tables_most(engine: Engine) -> None:
    made = ask(engine, request(BC, A, budget=Fraction(1)))
    assert 1 - Fraction(4, UNITS_PER_EPSILON) < made.epsilon_spent <= 1
    assert made.epsilon_spent == spent(engine)
    assert set(made.data.column("source").to_pylist()) == {"measured"}
    history = engine._tables[TABLE].history
    weights = {history[k].block.scope: float(history[k].weight.exact) for k in range(len(history))}
    assert weights[BC] / weights[A] == pytest.approx((8 / 3) ** (1 / 3))


def test_what_is_known_already_counts(engine: Engine) -> None:
    ask(engine, request(A, budget=Fraction(1)))
    made = ask(engine, request(A, BC, budget=Fraction(1, 10)))
    sources = {tuple(row["columns"]): row["source"] for row in made.data.to_pylist()}
    assert sources == {A: "history", BC: "measured"}


def test_each_set_meets_a_target_and_is_free_the_second_time(engine: Engine) -> None:
    target = RequestedTarget(half_width=12.0, confidence=0.9)
    made = ask(engine, request(AB, BC, A, TOTAL, target=target))
    assert made.epsilon_spent == spent(engine) > 0
    widths = cells(made, "standard_error")
    assert all((values > 0).all() for values in widths.values())
    low, high = cells(made, "low"), cells(made, "high")
    value = cells(made)
    for columns, ends in high.items():
        # Ends are cut at 0, so that those of a value far below it are further away.
        assert (ends - np.maximum(value[columns], 0)).max() <= 12.0 * (1 + 1e-6)
        assert (low[columns] >= 0).all()
    again = ask(engine, request(AB, BC, A, TOTAL, target=target))
    assert again.epsilon_spent == 0
    assert cells(again)[AB] == pytest.approx(value[AB])


@pytest.mark.parametrize("confidence", [0.05, 0.5, 0.99])
def test_a_target_holds_at_any_confidence(engine: Engine, confidence: float) -> None:
    target = RequestedTarget(half_width=5.0, confidence=confidence)
    made = ask(engine, request(AB, BC, A, TOTAL, target=target))
    rows = [row for row in made.data.to_pylist() if row["value"] > 0]  # others are clipped
    assert rows
    assert max(row["high"] - row["value"] for row in rows) <= 5.0 * (1 + 1e-6)


def test_reconciling_narrows_what_several_tables_know(engine: Engine) -> None:
    budget = Fraction(1)
    ask(engine, request(AB, BC, A, TOTAL, budget=budget, consistency=Consistency.RAW))
    exact = cells(ask(engine, request(AB, BC, A, TOTAL, budget=Fraction(0))), "standard_error")
    scale = 1 / float(budget)
    assert all(values.max() < 4 * np.sqrt(2) * scale for values in exact.values())


def test_the_intervals_hold_the_truth_as_often_as_they_say(tmp_path: Path) -> None:
    n_runs, held, n_cells = 120, 0, 0
    for run in range(n_runs):
        place = tmp_path / f"{run}"
        place.mkdir()
        with opened(place) as engine:
            target = RequestedTarget(confidence=0.8)
            made = ask(engine, request(AB, BC, A, TOTAL, budget=Fraction(1, 2), target=target))
            low, high = cells(made, "low"), cells(made, "high")
            for columns in low:
                inside = (low[columns] <= truth(columns)) & (truth(columns) <= high[columns])
                held += int(inside.sum())
                n_cells += inside.size
    # Cells of a run are dependent: 120 runs of some 8 independent ones, a deviation of .013.
    assert 0.73 < held / n_cells < 0.87


def test_a_public_total_is_what_all_tables_sum_to(engine: Engine) -> None:
    n_records = int(COUNTS.sum())
    for consistency in (Consistency.EXACT, Consistency.NONNEGATIVE, Consistency.GLOBAL):
        asked = request(
            AB, BC, TOTAL, budget=Fraction(1), consistency=consistency, public_total=n_records
        )
        found = cells(ask(engine, asked))
        assert [values.sum() for values in found.values()] == pytest.approx([n_records] * 3)


def test_a_table_nobody_measured_comes_from_a_model_without_an_interval(engine: Engine) -> None:
    ask(engine, request(A, ("c",), budget=Fraction(1)))
    for consistency in (Consistency.RAW, Consistency.EXACT, Consistency.GLOBAL):
        asked = request(("a", "c"), budget=Fraction(0), consistency=consistency)
        made = ask(engine, asked)
        assert set(made.data["source"].to_pylist()) == {"model"}
        assert made.data["low"].null_count == made.data["standard_error"].null_count == 12
        assert any("not measured" in note for note in made.notes)
        values = cells(made)["a", "c"]
        product = np.outer(values.sum(1), values.sum(0)) / values.sum()
        assert values == pytest.approx(product, rel=1e-5)


def test_clipped_tables_have_no_interval_and_say_so(engine: Engine) -> None:
    for consistency in (Consistency.NONNEGATIVE, Consistency.GLOBAL):
        asked = request(AB, A, budget=Fraction(1), consistency=consistency)
        made = ask(engine, asked)
        assert made.data["low"].null_count == made.data["high"].null_count == 9
        assert any("No cell has an interval" in note for note in made.notes)
        assert sum(note.startswith("Solver: ") for note in made.notes) == 1
        assert made.residual is not None


def test_what_sql_counted_is_known_to_marginals_and_the_other_way_round(engine: Engine) -> None:
    engine.answer(QueryRequest(sql="SELECT b, c, COUNT(*) FROM rows GROUP BY b, c"))
    made = ask(engine, request(BC, ("c",), budget=Fraction(0)))
    assert made.epsilon_spent == 0
    ask(engine, request(AB, budget=Fraction(1)))
    paid = spent(engine)
    release = engine.answer(QueryRequest(sql="SELECT a, b, COUNT(*) FROM rows GROUP BY a, b"))
    assert release.receipt is not None
    assert release.receipt.epsilon_spent == 0
    assert spent(engine) == paid


def test_raw_tables_with_a_target_are_those_of_sql(engine: Engine) -> None:
    target = RequestedTarget(half_width=9.0)
    asked = request(AB, target=target, consistency=Consistency.RAW)
    made = ask(engine, asked)
    release = engine.answer(
        QueryRequest(sql="SELECT a, b, COUNT(*) AS n FROM rows GROUP BY a, b", target=target)
    )
    assert cells(made)[AB].ravel().tolist() == release.data["n"].to_pylist()
    assert set(made.data["source"].to_pylist()) == {"measured"}
    assert set(ask(engine, asked).data["source"].to_pylist()) == {"history"}


@pytest.mark.parametrize(
    ("asked", "kind"),
    [
        (request(budget=Fraction(1)), InvalidRequest),
        (request(A, ("a",), budget=Fraction(1)), InvalidRequest),
        (request(("a", "b"), ("b", "a"), budget=Fraction(1)), InvalidRequest),
        (request(("a", "a"), budget=Fraction(1)), InvalidRequest),
        (request(("nobody",), budget=Fraction(1)), UnknownName),
        (request(A, budget=Fraction(2000)), InvalidTarget),
        (request(A, budget=Fraction(1), target=RequestedTarget(half_width=3.0)), InvalidTarget),
        (request(A, budget=Fraction(1), public_total=-1), InvalidRequest),
        (
            request(A, budget=Fraction(1), public_total=9, consistency=Consistency.RAW),
            InvalidRequest,
        ),
        (request(A, budget=Fraction(0)), InvalidRequest),
        (request(TOTAL, budget=Fraction(0)), InvalidRequest),
        (request(AB, budget=Fraction(0), consistency=Consistency.RAW), InvalidRequest),
        (
            MarginalsRequest(table=TABLE, sets=(MarginalSet(A, 0.0),), budget=Fraction(1)),
            InvalidRequest,
        ),
        (request(A, target=RequestedTarget(half_width=0.001)), CostAboveCap),
    ],
)
def test_what_cannot_be_made_is_refused_before_it_costs(
    engine: Engine, asked: MarginalsRequest, kind: type[Refused]
) -> None:
    if kind is CostAboveCap:
        capped = RequestedTarget(half_width=1.0, epsilon_cap=Fraction(1, 100))
        asked = request(A, target=capped)
    with pytest.raises(kind) as refused:
        ask(engine, asked)
    assert refused.value.hint or kind is UnknownName
    assert spent(engine) == 0


def test_a_table_that_may_not_be_seen_is_not_there(engine: Engine) -> None:
    stranger = Caller(LOCAL.payer, LOCAL.role, ("other",))
    with pytest.raises(UnknownName, match="There is no table"):
        ask(engine, request(A, budget=Fraction(1)), stranger)


def test_a_budget_that_is_gone_is_told_as_such(tmp_path: Path) -> None:
    with opened(tmp_path, budget=Fraction(1)) as engine:
        with pytest.raises(BudgetExhausted):
            ask(engine, request(A, budget=Fraction(2)))
        assert spent(engine) == 0


def test_tables_that_are_too_large_are_refused_before_they_cost(tmp_path: Path) -> None:
    sizes = {"a": 400, "b": 300, "c": 10}
    counts = np.zeros((400, 300, 10), dtype=np.int64)
    counts[0, 0, 0] = 5
    with square_engine(tmp_path, sizes, counts) as engine:
        with pytest.raises(TooLarge, match="cells"):
            ask(engine, request(AB, budget=Fraction(1)))
        asked = request(A, ("b",), ("c",), budget=Fraction(1), consistency=Consistency.GLOBAL)
        with pytest.raises(TooLarge, match="joint"):
            ask(engine, asked)
        assert spent(engine) == 0


def test_who_stops_listening_keeps_what_was_bought(engine: Engine) -> None:
    steps = engine.marginals(request(A, budget=Fraction(1)), LOCAL)
    for step in steps:
        if spent(engine):
            assert isinstance(step, str)
            break
    del steps
    assert ask(engine, request(A, budget=Fraction(0))).epsilon_spent == 0
