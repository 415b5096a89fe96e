"""A model for each class of a target: its classes, the rows it draws, itself as JSON."""

from dataclasses import replace
from itertools import product

import numpy as np
import pytest

from cube.query import N_FACTOR_CELLS_MAX
from synthesis.known import Stratum
from synthesis.pairwise import NO_WISHES, Wishes
from synthesis.strata import (
    N_STRATA_MAX,
    StratifiedModel,
    draw_stratified_rows,
    known_strata,
    measured_strata,
    scopes_of,
    strata_json,
    strata_model_of,
    strata_of,
)
from synthesis.tables import Column
from tests.support.made_up_rows import MadeUpRows, counted, distance

COLUMNS = (Column("a", 4), Column("t", 2), Column("b", 5), Column("u", 3))
OTHERS = (COLUMNS[0], COLUMNS[2])


def rows_of(n_rows: int = 12_000, seed: int = 1) -> np.ndarray:
    """In one class a and b rise together, in the other one falls as the other rises."""
    rng = np.random.default_rng(seed)
    a, t, u = rng.integers(0, 4, n_rows), rng.random(n_rows) < 0.3, rng.integers(0, 3, n_rows)
    b = np.where(t, a + (u == 2), 4 - a)
    return np.stack([a, t, b, u], axis=1).astype(np.int64)


def measurers(rows: np.ndarray, target: tuple[str, ...]) -> dict[Stratum, MadeUpRows]:
    names = [column.name for column in COLUMNS]
    others = [one for one in COLUMNS if one.name not in target]
    kept = [names.index(one.name) for one in others]
    found: dict[Stratum, MadeUpRows] = {}
    for stratum in strata_of(COLUMNS, target):
        inside = np.all([rows[:, names.index(name)] == level for name, level in stratum], axis=0)
        found[stratum] = MadeUpRows(others, rows[inside][:, kept], len(found))
    return found


def measured(rows: np.ndarray, target: tuple[str, ...] = ("t", "u")) -> StratifiedModel:
    return measured_strata(COLUMNS, measurers(rows, target), budget=2.0, wishes=NO_WISHES)


def test_strata_are_all_combinations_of_the_target_s_levels() -> None:
    assert strata_of(COLUMNS, ("t", "u")) == tuple(
        (("t", t), ("u", u)) for t, u in product(range(2), range(3))
    )
    assert strata_of(COLUMNS, ()) == ()
    assert strata_of((Column("a", 4), Column("z", N_STRATA_MAX + 1)), ("z",)) == ()
    assert strata_of(COLUMNS[:1], ("a",)) == (), "nothing to draw but the target"


def test_each_class_spends_the_budget_and_has_its_own_relations() -> None:
    rows = rows_of()
    of_class = measurers(rows, ("t", "u"))
    model = measured_strata(COLUMNS, of_class, budget=2.0, wishes=NO_WISHES)
    assert all(1.8 - 1e-9 <= one.spent <= 2.0 + 1e-9 for one in of_class.values())
    drawn = draw_stratified_rows(model, np.random.default_rng(2))
    assert len(drawn) == round(model.total) == pytest.approx(len(rows), abs=50)
    for scope in (("a", "t"), ("t", "u"), ("a", "b", "t")):
        found, exact = counted(COLUMNS, drawn, *scope), counted(COLUMNS, rows, *scope)
        assert distance(found, exact) < 0.04
    pairs_alone = counted(COLUMNS, rows, "a", "b")
    assert distance(counted(COLUMNS, rows, "a", "b", "t").sum(axis=2), pairs_alone) == 0


def test_any_number_of_rows_may_be_drawn_in_random_order() -> None:
    model = measured(rows_of(2_000))
    for n_rows in (0, 1, 5_000):
        assert draw_stratified_rows(model, np.random.default_rng(3), n_rows=n_rows).shape == (
            n_rows,
            4,
        )
    first, again = (draw_stratified_rows(model, np.random.default_rng(4)) for _ in range(2))
    assert np.array_equal(first, again)
    classes = first[:, 1]
    assert np.abs(np.diff(classes)).sum() > 0.3 * len(classes), "not one class after the other"


def test_a_model_is_the_same_from_its_text() -> None:
    model = measured(rows_of(2_000))
    again = strata_model_of(strata_json(model))
    first, second = (draw_stratified_rows(one, np.random.default_rng(5)) for one in (model, again))
    assert np.array_equal(first, second)
    with pytest.raises(ValueError, match="kind"):
        strata_model_of({"kind": "pairwise"})


def test_what_is_known_of_every_class_makes_a_table_for_nothing() -> None:
    rows = rows_of()
    of_class = measurers(rows, ("t",))
    assert known_strata(COLUMNS, of_class) is None
    bought = measured_strata(COLUMNS, of_class, budget=1.0, wishes=NO_WISHES)
    spent = [one.spent for one in of_class.values()]
    known = known_strata(COLUMNS, of_class)
    assert known is not None
    assert known.total == bought.total
    assert [one.spent for one in of_class.values()] == spent
    assert ("a", "t") in set(scopes_of(known))
    assert ("a", "b", "t") in set(scopes_of(known))


def test_columns_with_a_stratum_s_axis_are_counted_together_only_if_all_fit() -> None:
    wide = [Column("x", 3_000), Column("y", 1_000)]
    rng = np.random.default_rng(6)
    rows = MadeUpRows(wide, rng.integers(0, 1_000, (500, 2)))
    assert 3_000 * 1_000 <= N_FACTOR_CELLS_MAX < 2 * 3_000 * 1_000
    columns = (*wide, Column("t", 2))
    both: dict[Stratum, MadeUpRows] = {(("t", level),): rows for level in range(2)}
    measured_strata(columns, both, budget=20.0, wishes=Wishes())
    assert not rows.pairs_bought


def test_models_of_other_classes_or_columns_are_refused() -> None:
    model = measured(rows_of(2_000))
    first = next(iter(model.models))
    changes = [
        {"target": ()},
        {"models": {first: model.models[first]}},
        {"columns": COLUMNS[:3]},
    ]
    for change in changes:
        with pytest.raises(ValueError, match=r"target|class|columns"):
            replace(model, **change)  # type: ignore[arg-type]  # each is wrong on purpose
