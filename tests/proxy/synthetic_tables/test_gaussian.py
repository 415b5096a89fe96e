"""Synthetic tables measured with Gaussian noise: what they cost, what is kept, what is refused."""

from collections.abc import Iterator
from dataclasses import replace
from fractions import Fraction
from pathlib import Path

import numpy as np
import pytest

from accountant.ledger.charged import ChargedGaussian
from accountant.ledger.limits import Payer
from cube.measurement import UNITS_PER_EPSILON
from cube.query import Partition, QueryBlock, counting
from cube.refusals import BudgetExhausted, InvalidRequest
from cube.target import AccuracyTarget
from inference.posterior import Posterior
from planner.workload import Wanted
from proxy.config.memory import SyntheticLimits
from proxy.engine.engine import Engine
from proxy.synthetic_tables.make import make, preview
from proxy.synthetic_tables.measurers import known_now
from proxy.synthetic_tables.request import MadeTable, Method, SynthesisRequest
from proxy.synthetic_tables.store import SyntheticStore
from proxy.tables.private_table import ServedTable
from synthesis.tables import Column
from tests.support.gaussian import with_gaussian_noise
from tests.support.made_up_rows import distance
from tests.support.synthesis import SCHEMA, served_staff, staff
from tests.support.synthetic import asked

ANN = Payer("ann")
BILLIONTH = Fraction(1, 10**9)
ONE = SynthesisRequest(table="staff", epsilon=Fraction(1), seed=3, delta=BILLIONTH)
NOTHING = SynthesisRequest(table="staff", epsilon=Fraction(0), seed=3)


@pytest.fixture
def table(tmp_path: Path) -> Iterator[ServedTable]:
    with served_staff(tmp_path) as table:
        table.delta = BILLIONTH
        yield table


def spent(table: ServedTable) -> Fraction:
    return table.gate.budget().spent


def error(made: MadeTable, *names: str) -> float:
    """The distance of a pair of category or whole-number columns from the rows."""
    found, real = np.zeros(SCHEMA.sizes(names)), np.zeros(SCHEMA.sizes(names))
    columns = []
    for name in names:
        places = {value: place for place, value in enumerate(SCHEMA.by_name[name].levels)}
        columns.append(np.array([places[value] for value in made.rows[name].to_pylist()]))
    np.add.at(found, tuple(columns), 1.0)
    order = [axis.name for axis in SCHEMA.axes]
    np.add.at(real, tuple(staff()[:, order.index(name)] for name in names), 1.0)
    return distance(found, real)


def test_it_costs_what_was_asked_and_resembles_the_rows(table: ServedTable) -> None:
    made = make(table, ONE, ANN)
    assert made.epsilon_spent == spent(table)
    assert Fraction(99, 100) < spent(table) <= 1
    assert error(made, "age", "senior") < 0.1
    history = table.gate.history
    assert history.units_spent == history.gaussian.units + history.units_of_rows
    assert history.cost.table_cost().units == history.units_of_rows, "counts are paid by cells"
    assert len(history.measurements) > len(SCHEMA.axes)
    assert all(one.is_gaussian for one in history.measurements)
    charged = [one for payment in table.gate.payments() for one in payment.charge.statistics]
    assert all(isinstance(one, ChargedGaussian) for one in charged)


def test_what_was_told_is_found_by_the_next_table_and_by_one_for_nothing(
    table: ServedTable,
) -> None:
    make(table, ONE, ANN)
    before = spent(table)
    free = make(table, NOTHING, ANN)
    assert spent(table) == before
    assert free.unknown == ()
    assert error(free, "age", "senior") < 0.1
    assert free.rows.num_rows == pytest.approx(len(staff()), abs=200)
    known = known_now(table, [Column("age", 20)])
    assert known.n_rows == pytest.approx(len(staff()), abs=200)


def test_a_second_table_buys_more_for_the_same(table: ServedTable) -> None:
    first = table.gate.history.gaussian
    make(table, ONE, ANN)
    once = table.gate.history.gaussian
    make(table, replace(ONE, seed=4), ANN)
    twice = table.gate.history.gaussian
    assert first.terms is None
    assert twice.terms == once.terms
    assert twice.rho_units - once.rho_units > 1.5 * once.rho_units
    assert spent(table) <= 2


def test_it_uses_what_the_history_has_and_pays_beside_it(table: ServedTable) -> None:
    make(table, replace(ONE, delta=None), ANN)
    pure = table.gate.history.units_of_rows
    make(table, ONE, ANN)
    history = table.gate.history
    assert history.units_of_rows > pure
    assert {one.is_gaussian for one in history.measurements} == {False, True}
    units = history.units_of_rows + history.gaussian.units
    assert spent(table) == Fraction(units, UNITS_PER_EPSILON) <= 2


def test_sql_is_answered_from_what_was_counted(table: ServedTable) -> None:
    """Without another purchase, within a half-width that is promised with 0.999999."""
    make(table, ONE, ANN)
    before = spent(table)
    block = QueryBlock(counting(), Partition(("age",), np.arange(20, dtype=np.int64)))
    target = AccuracyTarget(half_width=1000.0, confidence=0.999999)
    [rows] = table.snapshot().estimates([Wanted(block, target)])
    exact = np.bincount(staff()[:, [axis.name for axis in SCHEMA.axes].index("age")], minlength=20)
    for row, count in zip(rows, exact.tolist(), strict=True):
        assert isinstance(row, Posterior)
        low, high = row.interval(1 - 1e-10)  # twenty of them: .999999 would fail too often
        assert low <= count <= high
        low, high = row.interval(target.confidence)
        assert high - low < 2 * target.half_width
    assert spent(table) == before


def test_counts_of_an_older_ledger_beside_its_history_are_still_used(table: ServedTable) -> None:
    by_age = QueryBlock(counting(), Partition(("age",), np.arange(20, dtype=np.int64)))
    told = with_gaussian_noise(by_age, QueryBlock(counting()))
    table.ask_statistics(told, ANN, epsilon_cap=None)
    known = known_now(table, [Column("age", 20)])
    assert known.n_rows == pytest.approx(len(staff()), abs=200)
    assert [one.scope for one in known.tables] == [("age",)]
    assert len(table.gate.measurements()) == 0


def test_the_preview_says_what_each_step_costs(table: ServedTable) -> None:
    steps = preview(table, ONE)
    assert spent(table) == 0
    assert float(sum(step.epsilon for step in steps)) == pytest.approx(1, abs=1e-6)
    assert steps[1].name == "opening Gaussian noise"
    assert 0.3 < steps[1].epsilon < 0.6
    make(table, ONE, ANN)
    again = preview(table, ONE)
    assert again[1].epsilon == 0, "it is paid for once"


@pytest.mark.parametrize(
    ("request_", "offered", "said"),
    [
        (ONE, None, "its owner offers no delta"),
        (replace(ONE, delta=2 * BILLIONTH), BILLIONTH, "another delta"),
        (replace(ONE, method=Method.PRIVBAYES), BILLIONTH, "takes no delta"),
    ],
)
def test_a_delta_that_is_not_offered_is_refused(
    table: ServedTable, request_: SynthesisRequest, offered: Fraction | None, said: str
) -> None:
    table.delta = offered
    for act in (lambda: make(table, request_, ANN), lambda: preview(table, request_)):
        with pytest.raises(InvalidRequest, match=said):
            act()
    assert spent(table) == 0


def test_a_delta_that_the_ledger_does_not_have_is_refused(table: ServedTable) -> None:
    make(table, ONE, ANN)
    table.delta = 2 * BILLIONTH  # its owner thought better of it: too late
    with pytest.raises(InvalidRequest, match="accounts for its Gaussian noise with another delta"):
        make(table, replace(ONE, delta=2 * BILLIONTH), ANN)


def test_what_cannot_be_paid_is_refused_before_anything_is_paid(tmp_path: Path) -> None:
    with served_staff(tmp_path, budget=Fraction(1, 2)) as table:
        table.delta = BILLIONTH
        with pytest.raises(BudgetExhausted):
            make(table, ONE, ANN)
        assert spent(table) == 0


def test_in_sql_a_delta_is_an_option_and_the_table_says_so(
    table: ServedTable, tmp_path: Path
) -> None:
    store = SyntheticStore(tmp_path / "synthetic", SyntheticLimits())
    engine = Engine({"staff": table}, (), store=store)
    make_it = "CREATE SYNTHETIC TABLE s FROM staff WITH (epsilon => 1, delta => 1e-9, rows => 500)"
    asked(engine, f"EXPLAIN PRIVACY {make_it}")
    assert spent(table) == 0
    asked(engine, make_it)
    assert Fraction(99, 100) < spent(table) <= 1
    (row,) = asked(engine, "SELECT options FROM data_privacy.synthetic_tables")
    assert str(row["options"]).startswith("epsilon => 1, delta => 1e-09, method => 'pairwise'")
    table.delta = None
    with pytest.raises(InvalidRequest, match="its owner offers no delta"):
        asked(engine, make_it.replace("TABLE s", "TABLE r"))


@pytest.mark.parametrize("target", [("senior",), ("job",), ("job", "senior")])
def test_classes_of_a_target_share_what_scores_cost_and_stay_within_the_epsilon(
    table: ServedTable, target: tuple[str, ...]
) -> None:
    """Scores with Gaussian noise cost every row; classes may be too small to be scored at all."""
    made = make(table, replace(ONE, target=target), ANN)
    assert made.epsilon_spent == spent(table) <= 1
    assert not made.incomplete
    small = make(table, replace(ONE, epsilon=Fraction(1, 50), target=target), ANN)
    assert small.epsilon_spent <= Fraction(1, 50)
    assert not small.incomplete
