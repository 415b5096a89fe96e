"""The evaluation of a synthetic table: what it estimates, what it costs, and when there is none."""

from collections.abc import Iterator
from fractions import Fraction
from itertools import combinations
from pathlib import Path

import numpy as np
import pyarrow as pa
import pytest
from numpy.typing import NDArray

from accountant.ledger.limits import Payer
from cube.refusals import CostAboveCap
from planner.sql.synthetic_statements import CreateSynthetic
from planner.workload import RequestedTarget
from proxy.api.requests import QueryRequest
from proxy.engine.engine import Engine
from proxy.synthetic_tables.evaluation import (
    N_GROUPS,
    N_PAIRS_MAX,
    N_PAIRS_MIN,
    evaluated,
    grouped,
    n_compared,
)
from proxy.synthetic_tables.models import decoded
from proxy.synthetic_tables.request import Progress
from proxy.tables.private_table import ServedTable
from synthesis.tables import Column
from tests.support.made_up_rows import distance
from tests.support.synthesis import AXES, N_ROWS, served_staff, staff
from tests.support.synthetic import ANN, MAKE, TWO_COLUMNS, asked, refused, spent, synthetic_engine

PAYER = Payer("ann")
MUCH = Fraction(100)  # with it, a mean of distances has noise of 5e-6
LITTLE = Fraction(1, 100)  # with it, of .045
N_REPEATED = 100
N_OUTSIDE_MAX = 21  # of 100 intervals at .95: more by a chance of 4e-9, or 1e-7 of .94
# A count with it costs about 8.6, of a budget of 10 from which a table for 1 was bought.
NEARLY_ALL = "SELECT WITH DIFFERENTIAL_PRIVACY OPTIONS(half_width => 0.35)"


@pytest.fixture
def table(tmp_path: Path) -> Iterator[ServedTable]:
    with served_staff(tmp_path, budget=Fraction(300)) as table:
        yield table


def mean_distance(rows: NDArray[np.int64]) -> float:
    """Over all pairs of columns, between rows and the private ones, as textbooks have it."""
    return float(
        np.mean(
            [
                distance(pair_table(rows, one, other), pair_table(staff(), one, other))
                for one, other in combinations(range(len(AXES)), 2)
            ]
        )
    )


def pair_table(rows: NDArray[np.int64], one: int, other: int) -> NDArray[np.float64]:
    counts = np.zeros((AXES[one].size, AXES[other].size))
    np.add.at(counts, (rows[:, one], rows[:, other]), 1.0)
    return counts


def independent(n_rows: int = N_ROWS) -> NDArray[np.int64]:
    """Rows with the private columns' own counts, and nothing else."""
    rng = np.random.default_rng(7)
    rows = np.column_stack([rng.permutation(column) for column in staff().T])
    return rows[:n_rows]


def test_an_evaluation_is_the_mean_distance_of_pairs(table: ServedTable) -> None:
    rows = independent()
    before = table.gate.budget().spent
    found = evaluated(table, PAYER, AXES, _values(rows), n_rows=N_ROWS, epsilon=MUCH, seed=1)
    assert found.estimate == pytest.approx(mean_distance(rows), abs=1e-4)
    assert mean_distance(rows) > 0.1
    assert 0 < found.half_width < 1e-4
    assert (found.n_pairs, found.n_pairs_all) == (10, 10)
    assert found.epsilon_spent == table.gate.budget().spent - before
    assert Fraction(999, 1000) * MUCH < found.epsilon_spent <= MUCH


def test_rows_like_the_private_ones_are_close(table: ServedTable) -> None:
    found = evaluated(table, PAYER, AXES, _values(staff()), n_rows=N_ROWS, epsilon=MUCH, seed=1)
    assert found.estimate == pytest.approx(0.0, abs=1e-4)


def test_fewer_rows_are_compared_by_their_shares(table: ServedTable) -> None:
    rows = independent(1000)
    found = evaluated(table, PAYER, AXES, _values(rows), n_rows=N_ROWS, epsilon=MUCH, seed=1)
    assert found.estimate == pytest.approx(mean_distance(rows), abs=0.002)


def test_intervals_hold_as_often_as_they_say(table: ServedTable) -> None:
    rows = independent()
    values, truth = _values(rows), mean_distance(rows)
    found = [
        evaluated(table, PAYER, AXES, values, n_rows=N_ROWS, epsilon=LITTLE, seed=seed)
        for seed in range(N_REPEATED)
    ]
    misses = np.array([abs(one.estimate - truth) for one in found])
    widths = np.array([one.half_width for one in found])
    assert int((misses > widths).sum()) <= N_OUTSIDE_MAX
    assert int((misses > widths / 3).sum()) > N_OUTSIDE_MAX, (
        "intervals of a third of that are found out"
    )


@pytest.mark.parametrize(
    ("n_columns", "n_rows", "epsilon", "n"),
    [
        (1, 1000, 1.0, 1),
        (2, 1000, 1.0, 1),
        (10, 100, 0.05, N_PAIRS_MIN),
        (13, 48_842, 0.05, 69),
        (100, 48_842, 1.0, N_PAIRS_MAX),
    ],
)
def test_as_many_pairs_are_compared_as_noise_allows(
    n_columns: int, n_rows: int, epsilon: float, n: int
) -> None:
    assert n_compared(n_columns, n_rows, Fraction(epsilon)) == n


def test_wide_columns_are_compared_in_groups() -> None:
    rng = np.random.default_rng(3)
    levels = np.minimum(rng.geometric(0.01, 20_000), 999)
    ordered = grouped(levels, Column("x", 1001, 1000))
    assert (np.diff(ordered[:1000]) >= 0).all()
    assert ordered[1000] == ordered[:1000].max() + 1  # NULL is by itself
    assert ordered.max() + 1 <= N_GROUPS + 1
    assert np.array_equal(np.unique(ordered), np.arange(ordered.max() + 1))
    shares = np.bincount(ordered[levels]) / levels.size
    assert shares.max() < 3 / N_GROUPS
    unordered = grouped(levels, Column("x", 1001, 0))
    assert np.bincount(unordered).max() == 1001 - (N_GROUPS - 1)
    counts = np.bincount(levels, minlength=1001)
    assert counts[unordered == N_GROUPS - 1].max() <= counts[unordered < N_GROUPS - 1].min()


# In SQL.


def test_an_evaluation_is_bought_beside_the_table_and_told_everywhere(engine: Engine) -> None:
    order = f"{MAKE} WITH (epsilon => 1, evaluate => 0.5, {TWO_COLUMNS})"
    steps = asked(engine, f"EXPLAIN PRIVACY {order}")
    assert (steps[-1]["step"], steps[-1]["epsilon"]) == ("evaluating the rows", 0.5)
    assert sum(float(str(step["epsilon"])) for step in steps) == pytest.approx(1.5)
    assert spent(engine) == 0
    (row,) = asked(engine, order, ANN)
    assert "(1 of 1 pairs)" in str(row["evaluated"])
    assert row["incomplete"] == ""
    assert row["epsilon_spent"] == pytest.approx(float(spent(engine)))
    assert 1.49 < spent(engine) <= Fraction(3, 2)
    (listed,) = asked(engine, "SELECT evaluated, options FROM data_privacy.synthetic_tables")
    assert listed["evaluated"] == row["evaluated"]
    assert "evaluate => 0.5" in str(listed["options"])


def test_other_rows_of_the_model_are_not_evaluated(engine: Engine) -> None:
    asked(engine, f"{MAKE} WITH (epsilon => 1, evaluate => 0.5, {TWO_COLUMNS})", ANN)
    again = engine.synthetic.resample(ANN, "s", "again", None, 7)
    assert again.evaluation is None
    assert again.evaluate == 0


def test_a_table_of_the_history_is_evaluated_too(engine: Engine) -> None:
    asked(engine, "SELECT city, COUNT(*) AS n FROM people GROUP BY city")
    before = spent(engine)
    (row,) = asked(engine, f"{MAKE} WITH (evaluate => 0.5, columns => (city))")
    assert row["evaluated"]
    assert spent(engine) - before == Fraction(str(row["epsilon_spent"])) <= Fraction(1, 2)


def test_what_cannot_be_paid_together_is_not_begun(tmp_path: Path) -> None:
    with synthetic_engine(tmp_path, budget=Fraction(1)) as engine:
        order = f"{MAKE} WITH (epsilon => 1, evaluate => 0.1, {TWO_COLUMNS})"
        assert refused(engine, order).code == "budget_exhausted"
        assert spent(engine) == 0
        cap = QueryRequest(sql=order, target=RequestedTarget(epsilon_cap=Fraction(21, 20)))
        with pytest.raises(CostAboveCap):
            engine.answer(cap)


def test_a_table_is_kept_if_its_evaluation_is_refused_after_all(engine: Engine) -> None:
    def others_spend(step: Progress) -> None:
        if step.name == "evaluating the rows":
            asked(engine, f"{NEARLY_ALL} COUNT(*) FROM people")

    order = CreateSynthetic(
        name="s",
        table="people",
        epsilon=Fraction(1),
        evaluate=Fraction(1),
        columns=("city", "member"),
    )
    record = engine.synthetic.create(ANN, order, others_spend)
    assert record.evaluation is None
    assert record.incomplete.startswith("The rows were not evaluated:")
    assert record.epsilon_spent <= 1
    assert asked(engine, "SELECT COUNT(*) AS n FROM s")


def _values(rows: NDArray[np.int64]) -> pa.Table:
    return decoded(AXES, rows.astype(np.int32), np.random.default_rng(0))
