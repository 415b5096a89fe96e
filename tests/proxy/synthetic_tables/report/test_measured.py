"""What was measured, read from a real gate: counts by partition, distances, and what they cost."""

from collections.abc import Iterator
from dataclasses import replace
from fractions import Fraction
from pathlib import Path

import numpy as np
import pytest

from accountant.ledger.limits import Payer
from cube.measurement import Weight
from cube.query import Partition, QueryBlock, counting
from cube.statistic import Distance, GaussianNoisyCounts, PlannedStatistic
from inference.history import History
from proxy.synthetic_tables.evaluation import scored
from proxy.synthetic_tables.make import make
from proxy.synthetic_tables.models import levels_of
from proxy.synthetic_tables.report.compare import compare
from proxy.synthetic_tables.report.make import judged
from proxy.synthetic_tables.report.residuals import (
    Drawing,
    MeasuredTable,
    checked_tables,
    measured_distances,
    measured_tables,
    rows_in,
)
from proxy.synthetic_tables.report.verdict import (
    Kind,
    Purchases,
    mean_distance,
    pair_distances,
    purchases,
)
from proxy.synthetic_tables.request import Method
from proxy.tables.private_table import ServedTable
from tests.proxy.synthetic_tables.report.test_make import REQUEST, record_of
from tests.support.synthesis import AXES, N_ROWS, served_staff, staff

ANN = Payer("ann")
NAMES = [axis.name for axis in AXES]
TRUE = {axis.name: staff()[:, place] for place, axis in enumerate(AXES)}
NEARLY_EXACT = Weight.at_least(100.0)


@pytest.fixture
def table(tmp_path: Path) -> Iterator[ServedTable]:
    with served_staff(tmp_path, Fraction(1000)) as table:
        yield table


def buy(table: ServedTable, axes: tuple[str, ...], labels: np.ndarray) -> None:
    table.buy_tables({Partition(axes, labels): NEARLY_EXACT}, ANN, epsilon_cap=None)


def test_each_partition_is_there_as_it_was_measured(table: ServedTable) -> None:
    merged = np.arange(20 * 2).reshape(20, 2) // 3  # no product of groups of levels
    buy(table, ("age", "senior"), merged)
    buy(table, ("job",), np.array([0, 1, 2, -1, -1]))
    job, both = measured_tables(table.snapshot().history, [], NAMES)
    assert (job.scope, both.scope) == (("job",), ("age", "senior"))
    for one in (job, both):
        assert one.values == pytest.approx(one.counted(TRUE), abs=1)
        assert one.scale == pytest.approx(0.01, rel=0.01)
        assert one.grid is None
    assert job.counted(TRUE).sum() < N_ROWS, "rows in no group are not counted"
    assert measured_tables(table.snapshot().history, [], ["job"])[0].scope == ("job",)
    assert not measured_tables(table.snapshot().history, [], ["age", "pay"])


def test_a_product_of_groups_has_a_grid_of_them() -> None:
    labels = 3 * np.array([0, 0, 1])[:, np.newaxis] + np.array([0, 1, 2, 1])
    one = MeasuredTable(Partition(("a", "b"), labels), np.zeros(6), 1.0)
    assert one.grid is not None
    assert one.grid.tolist() == [[0, 1, 2], [3, 4, 5]]
    assert [levels.tolist() for levels in one.levels_in(np.array([1]))] == [[0, 1], [1, 3]]


def test_counts_beside_the_history_have_gaussian_noise() -> None:
    block = QueryBlock(counting(), Partition(("a",), np.arange(2)))
    [one] = measured_tables(History(), [GaussianNoisyCounts(block, np.ones(2), 3.0)], ["a"])
    assert one.is_gaussian
    assert one.deviation == pytest.approx(3.0)


def test_no_value_is_made_of_what_does_not_fit() -> None:
    halves = Partition(("a",), np.arange(2))
    with pytest.raises(ValueError, match="2 groups"):
        MeasuredTable(halves, np.zeros(3), 1.0)
    with pytest.raises(ValueError, match="positive"):
        MeasuredTable(halves, np.zeros(2), 0.0)


def test_a_distance_that_was_bought_tells_how_far_a_pair_is(table: ServedTable) -> None:
    """Rows whose ages were shuffled, held against a distance from independence, nearly exact."""
    by = np.arange(20 * 2).reshape(20, 2)
    partition = Partition(("age", "senior"), by)
    ages, seniors = (np.bincount(TRUE[name]) for name in ("age", "senior"))
    reference = np.rint(np.outer(ages, seniors) / N_ROWS).astype(np.int64)
    asked = Distance(QueryBlock(counting(), partition), tuple(reference.ravel().tolist()))
    table.ask_statistics([PlannedStatistic(asked, NEARLY_EXACT)], ANN, epsilon_cap=None)
    [told] = measured_distances(table.snapshot().charges.released, NAMES)
    far = float(np.abs(rows_in(partition, TRUE) - reference.ravel()).sum())
    assert told.value == pytest.approx(far, abs=1)
    rng = np.random.default_rng(1)
    shuffled = TRUE | {"age": rng.permutation(TRUE["age"])}
    pairs = pair_distances([], [told], shuffled, drawing=Drawing(), rng=rng)
    found = pairs["age", "senior"]
    assert not found.is_measured
    assert found.share == pytest.approx(far / (2 * N_ROWS), rel=0.01)
    assert found.half_width < 0.001
    assert pairs["age", "job"].share is None
    assert pairs["age", "job"].at_most == 1.0
    assert mean_distance(pairs) == found.share
    assert not measured_distances(table.snapshot().charges.released, ["age"])


def test_what_is_expected_of_a_measured_pair_is_what_its_noise_does() -> None:
    """Of 200 counts of 25 rows, fitted tables miss the truth by what is expected, on average."""
    rng = np.random.default_rng(2)
    levels = {"a": np.repeat(np.arange(20), 250), "b": np.tile(np.arange(10), 500)}
    partition = Partition(("a", "b"), np.arange(200).reshape(20, 10))
    expected = []
    for _ in range(40):
        values = rows_in(partition, levels) + rng.laplace(0.0, 5.0, 200)
        checked = checked_tables(
            [MeasuredTable(partition, values, 5.0)], levels, n_rows=5000.0, drawing=Drawing()
        )
        [found] = pair_distances(checked, [], levels, drawing=Drawing(), rng=rng).values()
        assert found.is_measured
        expected.append(found.share)
    # Noise takes few counts of 25 below 0: each is off by the scale, 5 rows, or a little less; by
    # drawing, half of a Poisson count's deviation from 25
    expectation = np.hypot(5, 0.5 * np.sqrt(2 / np.pi * 25)) / (2 * 25)
    mean = np.mean([one for one in expected if one is not None])
    assert mean == pytest.approx(expectation, rel=0.05)


def test_within_merged_levels_rows_are_random() -> None:
    """Two draws of the same law over 40 by 30 levels, of which one knows 4 by 3 groups exactly."""
    rng = np.random.default_rng(5)
    true, drawn = (
        {"a": rng.integers(0, 40, 30_000), "b": rng.integers(0, 30, 30_000)} for _ in "12"
    )
    cells = 3 * (np.arange(40) // 10)[:, np.newaxis] + np.arange(30) // 10
    partition = Partition(("a", "b"), cells)
    table = MeasuredTable(partition, rows_in(partition, drawn), 0.01)
    checked = checked_tables([table], drawn, n_rows=30_000.0, drawing=Drawing())
    found = pair_distances(checked, [], drawn, drawing=Drawing(), rng=rng)["a", "b"].share
    levels = Partition(("a", "b"), np.arange(1200).reshape(40, 30))
    truly = np.abs(rows_in(levels, true) - rows_in(levels, drawn)).sum() / 60_000
    assert found == pytest.approx(truly, rel=0.1)


def test_a_pair_of_a_larger_table_is_as_noisy_as_the_sums_are() -> None:
    rng = np.random.default_rng(3)
    sizes = {"a": 4, "b": 3, "c": 50}
    levels = {name: rng.integers(0, size, 60_000) for name, size in sizes.items()}
    partition = Partition(("a", "b", "c"), np.arange(600).reshape(4, 3, 50))
    table = MeasuredTable(partition, rows_in(partition, levels) + rng.laplace(0, 5.0, 600), 5.0)
    checked = checked_tables([table], levels, n_rows=60_000.0, drawing=Drawing())
    found = pair_distances(checked, [], levels, drawing=Drawing(), rng=rng)
    deviation = 5.0 * np.sqrt(2 * 50)  # of each of the 12 sums, 50 noises each
    share = found["a", "b"].share
    assert share is not None
    assert share == pytest.approx(12 * np.sqrt(2 / np.pi) * deviation / 120_000, rel=0.6)


def bought(table: ServedTable, method: Method = Method.PAIRWISE) -> tuple[Purchases, float]:
    made = make(table, replace(REQUEST, method=method), ANN)
    charges = table.snapshot().charges
    found = purchases(record_of(made), charges.payments, charges.measurements)
    return found, float(made.epsilon_spent)


@pytest.mark.parametrize("method", Method)
def test_all_that_was_spent_is_told_by_kind(table: ServedTable, method: Method) -> None:
    buy(table, ("senior",), np.arange(2))
    found, spent = bought(table, method)
    assert found.is_of_table, "what was bought before is not in it"
    assert found.total == pytest.approx(spent)
    of_columns = sum(amount for _, amount in found.by_column)
    assert of_columns == pytest.approx(
        sum(amount for kind, amount in found.by_kind if kind not in {Kind.ROWS, Kind.SCORES}),
        abs=dict(found.by_kind).get(Kind.SCORES, 0.0) + 1e-9,
    )


def test_gaussian_noise_is_told_by_kind_too(table: ServedTable) -> None:
    table.delta = Fraction(1, 10**9)
    made = make(table, replace(REQUEST, epsilon=Fraction(9), delta=table.delta), ANN)
    charges = table.snapshot().charges
    found = purchases(record_of(made), charges.payments, charges.measurements)
    assert found.total == pytest.approx(float(made.epsilon_spent))
    assert {Kind.COLUMNS, Kind.PAIRS, Kind.SCORES} <= set(dict(found.by_kind))


def test_an_evaluation_is_told_by_itself(table: ServedTable) -> None:
    request = replace(REQUEST, evaluate=Fraction(1, 5))
    made = scored(table, request, ANN, make(table, request, ANN), lambda _: None)
    record = replace(record_of(made), evaluate=request.evaluate, evaluation=made.evaluation)
    levels = levels_of(AXES, made.rows)
    comparison = compare(levels, [], total=None, confidence=0.95)
    verdict = judged(table, record, levels, comparison)
    assert verdict.n_charges_since == 0
    assert verdict.bought.is_of_table
    assert verdict.bought.total == pytest.approx(float(made.epsilon_spent))
    assert dict(verdict.bought.by_kind)[Kind.EVALUATION] == pytest.approx(0.2)


def test_charges_that_do_not_add_up_to_it_are_told_together(table: ServedTable) -> None:
    made = make(table, REQUEST, ANN)
    charges = table.snapshot().charges
    record = replace(record_of(made), epsilon_spent=made.epsilon_spent / 3)
    found = purchases(record, charges.payments, charges.measurements)
    assert not found.is_of_table
    assert found.total == pytest.approx(float(made.epsilon_spent))


def test_a_table_from_history_alone_bought_nothing(table: ServedTable) -> None:
    buy(table, ("senior",), np.arange(2))
    made = make(table, replace(REQUEST, epsilon=Fraction(0)), ANN)
    charges = table.snapshot().charges
    found = purchases(record_of(made), charges.payments, charges.measurements)
    assert (found.by_kind, found.total) == ((), 0)
    assert levels_of(AXES, made.rows).keys() == TRUE.keys()


def test_fewer_rows_are_as_far_off_as_draws_are() -> None:
    """A tenth of 20,000 rows over 100 cells, against all of them; noise is next to nothing."""
    rng = np.random.default_rng(4)
    levels = {name: rng.integers(0, 10, 20_000) for name in ("a", "b")}
    kept = rng.choice(20_000, 2_000, replace=False)
    few = {name: of_row[kept] for name, of_row in levels.items()}
    partition = Partition(("a", "b"), np.arange(100).reshape(10, 10))
    true = rows_in(partition, levels)
    checked = checked_tables(
        [MeasuredTable(partition, true, 0.01)],
        few,
        n_rows=20_000.0,
        drawing=Drawing(10.0, is_independent=True),
    )
    found = pair_distances(checked, [], few, drawing=Drawing(10.0, is_independent=True), rng=rng)[
        "a", "b"
    ].share
    truly = np.abs(10 * rows_in(partition, few) - true).sum() / 40_000
    assert found == pytest.approx(truly, rel=0.3)
