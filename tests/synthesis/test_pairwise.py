"""The method as a whole: what it buys, what it spends, and tables with nothing in them."""

from dataclasses import replace
from typing import Any

import numpy as np
import pytest

from cube.query import Scope
from synthesis.buckets import Buckets
from synthesis.choice import ONE_WAY_SHARE_MAX
from synthesis.drawing import draw_rows
from synthesis.model import PairTable, PairwiseModel, fit_model
from synthesis.pairwise import known_model, measured_model
from synthesis.sketch import Sketch
from synthesis.tables import Column, Floats, TableEstimate
from tests.support.made_up_rows import MadeUpRows, counted, distance
from tests.synthesis.test_drawing import COLUMNS, chain


def test_a_table_is_bought_within_its_budget_and_resembles_the_rows() -> None:
    rows = chain()
    model = measured_model(COLUMNS, rows, budget=1.0)
    assert rows.spent == pytest.approx(1.0)
    assert {("a", "b"), ("b", "c"), ("a", "d")} <= set(rows.pairs_bought)
    drawn = draw_rows(model, np.random.default_rng(1))
    assert len(drawn) == pytest.approx(6_000, abs=100)
    for pair in rows.pairs_bought:
        exact = rows.exact(*pair)
        independent = np.outer(exact.sum(axis=1), exact.sum(axis=0))
        assert distance(counted(COLUMNS, drawn, *pair), exact) < 0.05
        if pair in {("a", "b"), ("b", "c"), ("a", "d")}:
            assert distance(independent, exact) > 0.1


def test_what_is_known_well_is_not_bought_again() -> None:
    rows = chain(known=[("a", "b"), ("c",)])
    model = measured_model(COLUMNS, rows, budget=0.5)
    assert rows.counts_bought == 0.0
    assert set(rows.one_ways_bought) == {"d"}
    assert ("a", "b") not in rows.pairs_bought
    assert rows.spent == pytest.approx(0.5)
    drawn = draw_rows(model, np.random.default_rng(2))
    error = np.abs(counted(COLUMNS, drawn, "a", "b") - rows.exact("a", "b"))
    assert error.sum() < 0.01 * len(drawn)


def test_history_alone_makes_a_table_and_names_the_unknown_columns() -> None:
    rows = chain()
    sketch = Sketch.of(COLUMNS, rows.nearly_exact(("a", "b"), ("c",)))
    assert sketch.unknown == ("d",)
    drawn = draw_rows(fit_model(sketch), np.random.default_rng(3))
    assert rows.spent == 0.0
    assert np.abs(counted(COLUMNS, drawn, "a", "b") - rows.exact("a", "b")).max() <= 1
    assert np.bincount(drawn[:, 3]).tolist() == [1200] * 5


def test_nothing_known_at_all_is_a_table_without_rows() -> None:
    model = fit_model(Sketch.of(COLUMNS, []))
    assert draw_rows(model, np.random.default_rng(4)).shape == (0, 4)
    drawn = draw_rows(model, np.random.default_rng(4), n_rows=60)
    assert np.bincount(drawn[:, 0]).tolist() == [15] * 4


@pytest.mark.parametrize("seed", range(5))
def test_an_empty_table_is_synthesised(seed: int) -> None:
    rows = MadeUpRows(COLUMNS, np.empty((0, 4), dtype=np.int64), seed)
    model = measured_model(COLUMNS, rows, budget=1.0)
    drawn = draw_rows(model, np.random.default_rng(seed))
    assert len(drawn) < 1_000
    assert draw_rows(model, np.random.default_rng(seed), n_rows=50).shape == (50, 4)
    share = sum(rows.one_ways_bought.values()) / (1.0 - rows.counts_bought)
    assert ONE_WAY_SHARE_MAX / 2 < share < 1 + 1e-9


@pytest.mark.parametrize("total", [0.0, -50.0])
def test_a_total_of_nothing_gives_no_rows_and_uniform_ones_on_demand(total: float) -> None:
    tables = [
        TableEstimate(("a",), np.full(4, total / 4), np.array(1.0)),
        TableEstimate(("b",), np.full(5, total / 5), np.array(1.0)),
        TableEstimate(("a", "b"), np.full((4, 5), total / 20), np.array(1.0)),
    ]
    model = fit_model(Sketch.of(COLUMNS[:2], tables))
    assert model.total == 0.0
    assert draw_rows(model, np.random.default_rng(5)).shape == (0, 2)
    drawn = draw_rows(model, np.random.default_rng(5), n_rows=40)
    assert np.bincount(drawn[:, 0]).tolist() == [10] * 4


def test_columns_with_one_level_cost_no_pair() -> None:
    columns = (Column("a", 1), Column("b", 3), Column("c", 1))
    rows = np.zeros((90, 3), dtype=np.int64)
    rows[:, 1] = np.arange(90) % 3
    source = MadeUpRows(columns, rows)
    model = measured_model(columns, source, budget=20.0)
    assert not source.pairs_bought
    drawn = draw_rows(model, np.random.default_rng(6))
    assert not drawn[:, [0, 2]].any()
    assert len(drawn) == pytest.approx(90, abs=5)


def test_independent_columns_are_left_so() -> None:
    rng = np.random.default_rng(7)
    columns = (Column("a", 30), Column("b", 30))
    source = MadeUpRows(columns, rng.integers(0, 30, (3_000, 2)))
    model = measured_model(columns, source, budget=0.2)
    assert model.dependence(("a", "b")) == 0.0
    assert draw_rows(model, rng).shape[1] == 2


def test_tables_of_other_columns_or_sizes_are_refused() -> None:
    with pytest.raises(ValueError, match="levels of"):
        Sketch.of(COLUMNS, [TableEstimate(("a",), np.ones(3), np.array(1.0))])
    with pytest.raises(ValueError, match="same name"):
        Sketch.of([Column("a", 2), Column("a", 3)], [])
    with pytest.raises(ValueError, match="names a column that does not exist"):
        Sketch.of(COLUMNS, [TableEstimate(("z",), np.ones(3), np.array(1.0))])


def test_a_pair_improves_what_is_known_of_its_columns_and_of_the_total() -> None:
    rows = chain()
    vague = [
        TableEstimate((name,), rows.exact(name) + shift, np.array(400.0))
        for name, shift in (("a", 30.0), ("b", -20.0))
    ]
    model = fit_model(Sketch.of(COLUMNS[:2], [*vague, *rows.nearly_exact(("a", "b"))]))
    assert model.total == pytest.approx(6_000, abs=0.01)
    for name in ("a", "b"):
        assert np.allclose(model.shares[name] * model.total, rows.exact(name), atol=0.01)


def test_a_model_whose_parts_do_not_fit_is_refused() -> None:
    model = fit_model(Sketch.of(COLUMNS, chain().nearly_exact(("a", "b"), ("c",), ("d",))))
    changes: list[dict[str, Any]] = [
        {"total": -1.0},
        {"columns": (*COLUMNS[:3], Column("d", 6))},
        {"shares": {**model.shares, "a": np.full(4, 0.3)}},
        {"parts": {**model.parts, "b": np.full(5, 0.5)}},
        {"pairs": {("a", "b"): PairTable((plain(5), plain(4)), np.ones((5, 4)))}},
    ]
    for change in changes:
        with pytest.raises(ValueError, match=r"rows|levels|sum to 1|groups"):
            replace(model, **change)


@pytest.mark.parametrize("budget", [0.0, -1.0, float("inf"), float("nan")])
def test_a_budget_that_buys_nothing_is_refused_before_anything_is_measured(budget: float) -> None:
    rows = chain()
    with pytest.raises(ValueError, match="no table"):
        measured_model(COLUMNS, rows, budget=budget)
    with pytest.raises(ValueError, match="no table"):
        measured_model([], rows, budget=1.0)
    assert rows.spent == 0.0


def test_a_reference_has_the_total_and_is_independent() -> None:
    rows = chain()
    sketch = Sketch.of(COLUMNS, rows.nearly_exact(("a",), ("b",)))
    [candidate] = sketch.candidates
    reference = sketch.reference(candidate)
    exact = rows.exact("a", "b")
    assert np.allclose(
        reference, np.outer(exact.sum(axis=1), exact.sum(axis=0)) / exact.sum(), atol=0.01
    )


def test_a_second_table_adds_to_what_the_first_one_bought() -> None:
    rows = chain()
    first = measured_model(COLUMNS, rows, budget=0.2)
    spent = rows.spent
    again = known_model(COLUMNS, rows.known())
    assert again.total == first.total
    assert {pair: table.counts.tolist() for pair, table in again.pairs.items()} == {
        pair: table.counts.tolist() for pair, table in first.pairs.items()
    }
    assert rows.spent == spent
    bought = dict(rows.one_ways_bought)
    second = measured_model(COLUMNS, rows, budget=0.8)
    assert rows.spent == pytest.approx(1.0)
    assert all(rows.one_ways_bought[name] < 4 * price for name, price in bought.items())
    for pair in first.pairs:
        shares = [
            np.abs(
                model.pairs[pair].counts / model.total
                - over(model, pair, rows.exact(*pair)) / len(rows.rows)
            ).sum()
            for model in (first, second)
            if pair in model.pairs
        ]
        assert shares[-1] < max(shares[0], 0.05)


def over(model: PairwiseModel, pair: Scope, table: Floats) -> Floats:
    """An exact table over a model's buckets."""
    for axis, (name, groups) in enumerate(zip(pair, model.pairs[pair].groups, strict=True)):
        table = groups.summed(model.buckets[name].summed(table, axis), axis)
    return table


def plain(size: int) -> Buckets:
    """Every level by itself."""
    return Buckets(np.arange(size))


@pytest.mark.parametrize("seed", range(3))
def test_a_small_table_is_as_good_as_its_columns_alone(seed: int) -> None:
    """Scores of its pairs would be noise: none is bought, and columns get everything."""
    few = chain(n_rows=150, seed=seed)
    model = measured_model(COLUMNS, few, budget=0.1)
    assert not model.pairs
    assert few.spent == pytest.approx(0.1)
    assert sum(few.one_ways_bought.values()) == pytest.approx(0.1 - few.counts_bought)
