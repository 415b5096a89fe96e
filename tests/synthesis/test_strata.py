"""A model for each class of a target: its classes, the rows it draws, itself as JSON."""

from dataclasses import replace
from itertools import product

import numpy as np
import pytest

from cube.query import N_FACTOR_CELLS_MAX
from synthesis.known import KnownEstimates, Stratum
from synthesis.model import PairwiseModel
from synthesis.pairwise import NO_WISHES, Wishes, known_model
from synthesis.strata import (
    N_STRATA_MAX,
    ClassTables,
    StratifiedModel,
    compared_groups,
    draw_stratified_rows,
    hides_all,
    known_strata,
    measured_strata,
    scopes_of,
    strata_json,
    strata_model_of,
    strata_of,
    without_noise_between,
)
from synthesis.tables import Column, TableEstimate
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


LAWS = np.array([[0.4, 0.3, 0.2, 0.1], [0.1, 0.2, 0.3, 0.4]])
SHARES = np.array([0.75, 0.25])


def of_classes(
    laws: np.ndarray, n_rows: float, scale: float, n_columns: int, rng: np.random.Generator
) -> list[KnownEstimates]:
    """What is known of two classes, whose columns all have the law of the class."""
    known = []
    for law, share in zip(laws, SHARES, strict=True):
        tables = [
            TableEstimate(
                (f"x{place}",),
                n_rows * share * law + rng.laplace(0, scale, law.size),
                np.array(2 * scale**2),
            )
            for place in range(n_columns)
        ]
        known.append(KnownEstimates(tuple(tables), n_rows=n_rows * share))
    return known


def test_what_noise_shows_is_what_it_is_expected_to_show() -> None:
    """By simulation, of independent columns: the mean of 4,000 tables is known to 2 %.

    A mean that weighs classes alike, and not by their sizes, would show a quarter more.
    """
    rng = np.random.default_rng(1)
    law = np.tile([0.4, 0.3, 0.2, 0.1], (2, 1))
    tables = []
    for _ in range(4000):
        values = 10_000 * SHARES[:, np.newaxis] * law + rng.laplace(0, 50, (2, 4))
        tables.append(ClassTables(values, np.full((2, 4), 5000.0), SHARES))
    shown = [one.shown for one in tables]
    assert np.mean(shown) == pytest.approx(tables[0].expected, rel=0.06)
    assert tables[0].expected == 4
    assert np.std(shown) == pytest.approx(tables[0].spread, rel=0.25)
    alike = [SHARES[:, np.newaxis] * one.values.sum(axis=0) for one in tables]
    of_alike = [
        (np.square(one.values - mean) / 5000).sum() for one, mean in zip(tables, alike, strict=True)
    ]
    assert np.mean(of_alike) > 1.2 * 4


def test_classes_that_noise_alone_tells_apart_have_one_law() -> None:
    """Of 100 sets of ten columns, noise alone tells 8 or so apart: 20 and more have odds of 1e-4.

    With noise that is thought to be half of what it is, nearly all sets are told apart.
    """
    rng = np.random.default_rng(2)
    columns = [Column(f"x{place}", 4) for place in range(10)]
    same = LAWS[[0, 0]]
    n_apart = n_apart_of_wrong = 0
    for _ in range(100):
        known = of_classes(same, 10_000, 400.0, 10, rng)
        totals = np.array([7500.0, 2500.0])
        tables = [
            ClassTables.of([one.tables[place] for one in known], totals / totals.sum())
            for place in range(10)
        ]
        n_apart += not hides_all(tables)
        wrong = [replace(one, variances=one.variances / 4) for one in tables]
        n_apart_of_wrong += not hides_all(wrong)
    assert n_apart < 20
    assert n_apart_of_wrong > 75
    hidden = without_noise_between(columns, of_classes(same, 10_000, 4_000.0, 10, rng))
    for place in range(10):
        one, other = (one_of(f"x{place}", own) for own in hidden)
        np.testing.assert_allclose(one / one.sum(), other / other.sum())


def test_classes_that_differ_by_more_than_noise_are_left_as_they_are() -> None:
    rng = np.random.default_rng(3)
    columns = [Column(f"x{place}", 4) for place in range(4)]
    known = of_classes(LAWS, 10_000, 100.0, 4, rng)
    for one, other in zip(known, without_noise_between(columns, known), strict=True):
        assert one is other
    pair = TableEstimate(("x0", "x1"), np.ones((4, 4)), np.array(1e6))
    hidden = of_classes(LAWS[[0, 0]], 10_000, 4_000.0, 4, rng)
    with_pair = [replace(one, tables=(*one.tables, pair)) for one in hidden]
    for one, other in zip(with_pair, without_noise_between(columns, with_pair), strict=True):
        assert one is other  # a pair was worth a table: not everything is noise


def test_a_law_of_all_classes_has_the_variance_that_is_said() -> None:
    """By simulation: 4,000 tables, so that a variance is known to 7 % or better."""
    rng = np.random.default_rng(6)
    variances = np.full((2, 3), 5000.0)
    made = [
        ClassTables(one, variances, SHARES).pooled() for one in rng.laplace(0, 50, (4000, 2, 3))
    ]
    for place in range(2):
        found = np.var([one[place][0] for one in made], axis=0)
        np.testing.assert_allclose(found, made[0][place][1], rtol=0.2)


def test_levels_are_compared_in_few_groups() -> None:
    counts = np.array([5.0, 5.0, -3.0, 50.0, 5.0, 5.0, 20.0, 5.0, 5.0])
    ordered = compared_groups(counts, Column("x", 9, n_ordered=9))
    assert (np.diff(ordered) >= 0).all()
    assert ordered.max() < 6
    plain = compared_groups(counts, Column("x", 9))
    assert plain[3] == 0
    assert plain[6] == 1
    assert (np.bincount(plain) == [1, 1, 1, 1, 1, 4]).all()
    table = ClassTables(np.ones((2, 9)), np.ones((2, 9)), SHARES).merged(plain)
    assert table.values.tolist() == [[1, 1, 1, 1, 1, 4]] * 2
    assert table.variances.tolist() == table.values.tolist()
    assert compared_groups(counts[:4], Column("x", 4)).tolist() == [0, 1, 2, 3]


def one_of(name: str, known: KnownEstimates) -> np.ndarray:
    return next(table.values for table in known.tables if table.scope == (name,))


def test_a_target_that_noise_hides_keeps_its_own_law_and_is_independent() -> None:
    """A target of which nothing depends, at a budget that leaves nothing but noise of it.

    Rows are drawn by one law, up to rounding; with the noise of each class, laws would differ by
    a quarter and more.
    """
    rng = np.random.default_rng(5)
    names = [f"x{place}" for place in range(3)]
    columns = (Column("t", 2), *(Column(name, 4) for name in names))
    known = without_noise_between(columns[1:], of_classes(LAWS[[0, 0]], 10_000, 1_500.0, 3, rng))
    models: dict[tuple[int, ...], PairwiseModel] = {
        (level,): known_model(columns[1:], one) for level, one in enumerate(known)
    }
    drawn = draw_stratified_rows(
        StratifiedModel(columns, ("t",), models), np.random.default_rng(4), n_rows=20_000
    )
    for place in (1, 2, 3):
        laws = [np.bincount(drawn[drawn[:, 0] == t, place], minlength=4) for t in range(2)]
        assert distance(*(one / one.sum() for one in laws)) < 0.02
