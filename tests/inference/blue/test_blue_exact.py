"""The best linear unbiased estimate against exact rational arithmetic, and what must not change it.

The oracle solves the optimality conditions in fractions: slow, small and beyond doubt.
"""

from collections.abc import Sequence
from dataclasses import replace
from fractions import Fraction

import numpy as np
import pytest
from hypothesis import assume, given, settings
from hypothesis import strategies as st
from numpy.typing import NDArray

from inference.blue.blue import Combination, OnlineBlue

Rational = Fraction | int

# Xiao and Xiong's example, equations 11 to 14; the query is x1 + x3.
EXAMPLE_ROWS = [
    [1, 1, 0, 0],
    [0, 0, 1, 1],
    [0, 0, 0, 1],
    [0, 0, 1, 0],
    [0, 1, 0, 1],
    [2, 1, 0, 0],
    [0, 0, 2, -1],
    [0, -1, 0, 1],
]
EXAMPLE_WEIGHTS = [Fraction(k, 40) for k in (2, 4, 2, 4, 4, 1, 1, 4)]
EXAMPLE_QUERY = [1, 0, 1, 0]
EXAMPLE_COEFFICIENTS = [
    Fraction(31, 65),
    Fraction(39, 107),
    Fraction(-7, 214),
    Fraction(53, 107),
    Fraction(-3478, 6955),
    Fraction(17, 65),
    Fraction(15, 214),
    Fraction(1658, 6955),
]
EXAMPLE_VARIANCE = Fraction(771240, 1391)


def exact_blue(
    rows: Sequence[Sequence[Rational]], weights: Sequence[Rational], query: Sequence[Rational]
) -> tuple[list[Fraction], Fraction] | None:
    """Coefficients and half-variance of a query over cells; None if it is not estimable.

    Least ``sum (a/w)**2`` with ``a @ rows = query`` has the optimality conditions
    ``a_i / w_i**2 + rows_i . multiplier = 0`` beside the constraint.
    """
    system: list[list[Fraction]] = []
    for i, row in enumerate(rows):
        own = [Fraction(0)] * len(rows)
        own[i] = 1 / Fraction(weights[i]) ** 2
        system.append([*own, *map(Fraction, row), Fraction(0)])
    for j, wanted in enumerate(query):
        column = [Fraction(row[j]) for row in rows]
        system.append([*column, *[Fraction(0)] * len(query), Fraction(wanted)])
    solution = solve_exactly(system)
    if solution is None:
        return None
    scaled = [a / Fraction(w) for a, w in zip(solution, weights, strict=False)]
    return solution[: len(rows)], sum((b * b for b in scaled), Fraction(0))


def solve_exactly(augmented: list[list[Fraction]]) -> list[Fraction] | None:
    """One solution of a linear system, free unknowns 0; None if it has none."""
    n_unknowns = len(augmented[0]) - 1
    pivots: list[int] = []
    for column in range(n_unknowns):
        place = len(pivots)
        found = next((i for i in range(place, len(augmented)) if augmented[i][column] != 0), None)
        if found is None:
            continue
        augmented[place], augmented[found] = augmented[found], augmented[place]
        pivot = [entry / augmented[place][column] for entry in augmented[place]]
        for i, row in enumerate(augmented):
            if i != place and row[column] != 0:
                augmented[i] = [a - row[column] * b for a, b in zip(row, pivot, strict=True)]
        augmented[place] = pivot
        pivots.append(column)
    if any(row[-1] != 0 for row in augmented[len(pivots) :]):
        return None
    solution = [Fraction(0)] * n_unknowns
    for row, column in zip(augmented, pivots, strict=False):
        solution[column] = row[-1]
    return solution


def matrix(rows: Sequence[Sequence[Rational]]) -> NDArray[np.float64]:
    return np.array([[float(entry) for entry in row] for row in rows])


def vector(entries: Sequence[Rational]) -> NDArray[np.float64]:
    return np.array([float(entry) for entry in entries])


def test_the_papers_example_has_its_coefficients_and_the_corrected_variance() -> None:
    blue = OnlineBlue(np.ones(4))
    blue.add(matrix(EXAMPLE_ROWS), vector(EXAMPLE_WEIGHTS))
    combination = blue.combine(matrix([EXAMPLE_QUERY]))
    np.testing.assert_allclose(
        combination.coefficients[0], vector(EXAMPLE_COEFFICIENTS), rtol=1e-13, atol=1e-15
    )
    assert 2 * combination.half_variance[0] == pytest.approx(float(EXAMPLE_VARIANCE), rel=1e-13)
    assert combination.estimable[0]
    assert combination.residual[0] < 1e-14


def test_the_oracle_itself_gives_the_papers_example() -> None:
    assert exact_blue(EXAMPLE_ROWS, EXAMPLE_WEIGHTS, EXAMPLE_QUERY) == (
        EXAMPLE_COEFFICIENTS,
        EXAMPLE_VARIANCE / 2,
    )


class Case:
    """A small history over atoms, in exact numbers, and how to hand it over in pieces."""

    def __init__(
        self,
        rows: list[list[int]],
        weights: list[Fraction],
        sizes: list[int],
        query: list[int],
        cuts: list[int],
    ) -> None:
        self.rows, self.weights, self.sizes, self.query = rows, weights, sizes, query
        self.cuts = sorted({*(cut for cut in cuts if cut < len(rows)), 0, len(rows)})

    def __repr__(self) -> str:
        return f"Case({self.rows}, {self.weights}, {self.sizes}, {self.query}, {self.cuts})"

    def blue(self) -> OnlineBlue:
        """The history, added in blocks."""
        blue = OnlineBlue(vector(self.sizes))
        for first, last in zip(self.cuts, self.cuts[1:], strict=False):
            blue.add(matrix(self.rows[first:last]), vector(self.weights[first:last]))
        return blue

    def combine(self) -> Combination:
        return self.blue().combine(matrix([self.query]))


weights_wide = st.builds(
    lambda mantissa, exponent: Fraction(mantissa) * Fraction(2) ** exponent,
    st.integers(1, 7),
    st.integers(-12, 6),
)


@st.composite
def cases(draw: st.DrawFn) -> Case:
    n_atoms, n_rows = draw(st.integers(1, 6)), draw(st.integers(1, 7))
    entry = st.sampled_from([0, 0, 0, 1, 1, 1, -1, 2, 5])
    row = st.lists(entry, min_size=n_atoms, max_size=n_atoms)
    rows = draw(st.lists(row, min_size=n_rows, max_size=n_rows))
    factors = draw(st.lists(st.integers(-2, 2), min_size=n_rows, max_size=n_rows))
    spanned = [sum(f * r[j] for f, r in zip(factors, rows, strict=True)) for j in range(n_atoms)]
    return Case(
        rows,
        draw(st.lists(weights_wide, min_size=n_rows, max_size=n_rows)),
        draw(st.lists(st.integers(1, 10**12), min_size=n_atoms, max_size=n_atoms)),
        draw(st.one_of(st.just(spanned), row)),
        draw(st.lists(st.integers(1, n_rows), max_size=2)),
    )


def assert_same(one: Combination, other: Combination, weights: Sequence[Rational]) -> None:
    """Equal up to rounding: coefficients in units of the noise they let in, beside all of it.

    The variance is flat at its minimum, so coefficients are determined to half as many digits.
    """
    assert one.estimable.tolist() == other.estimable.tolist()
    np.testing.assert_allclose(one.half_variance, other.half_variance, rtol=1e-9)
    let_in = (one.coefficients - other.coefficients) / vector(weights)
    estimable = one.estimable
    allowed = 1e-6 * np.sqrt(other.half_variance[estimable])
    assert np.all(np.abs(let_in[estimable]).max(axis=1) <= allowed)


@settings(deadline=None)
@given(cases())
def test_it_is_estimable_and_optimal_exactly_when_rational_arithmetic_says_so(case: Case) -> None:
    """Weights spread over six orders, atoms over twelve, rows in blocks, many of them dependent."""
    expected = exact_blue(case.rows, case.weights, case.query)
    combination = case.combine()
    assert bool(combination.estimable[0]) == (expected is not None)
    if expected is None:
        assert combination.half_variance[0] == np.inf
        assert combination.residual[0] == max(map(abs, case.query))
        assert not combination.coefficients.any()
        return
    coefficients, half_variance = expected
    exact = replace(
        combination,
        coefficients=vector(coefficients)[np.newaxis],
        half_variance=np.array([float(half_variance)]),
    )
    assert_same(combination, exact, case.weights)
    assert combination.residual[0] <= 1e-12 * max(1, *map(abs, case.query))


@settings(deadline=None)
@given(cases())
def test_the_coefficients_reproduce_the_query_and_their_variance(case: Case) -> None:
    combination = case.combine()
    left = combination.coefficients @ matrix(case.rows) - matrix([case.query])
    assert combination.residual[0] == pytest.approx(np.abs(left).max(), abs=1e-12)
    if combination.estimable[0]:
        half_variance = np.square(combination.coefficients[0] / vector(case.weights)).sum()
        assert combination.half_variance[0] == pytest.approx(half_variance, rel=1e-12)


@settings(deadline=None)
@given(cases(), st.data())
def test_another_row_never_raises_a_variance(case: Case, data: st.DataObject) -> None:
    blue = case.blue()
    before = blue.combine(matrix([case.query]))
    n_atoms = len(case.query)
    row = data.draw(st.lists(st.integers(-3, 3), min_size=n_atoms, max_size=n_atoms))
    blue.add(matrix([row]), vector([data.draw(weights_wide)]))
    after = blue.combine(matrix([case.query]))
    assert after.estimable[0] or not before.estimable[0]
    assert after.half_variance[0] <= before.half_variance[0] * (1 + 1e-9)


@settings(deadline=None)
@given(cases(), st.data())
def test_raising_a_weight_equals_having_measured_at_it_and_never_hurts(
    case: Case, data: st.DataObject
) -> None:
    blue = case.blue()
    before = blue.combine(matrix([case.query]))
    place = data.draw(st.integers(0, len(case.rows) - 1))
    case.weights[place] *= data.draw(st.sampled_from([Fraction(1), Fraction(9, 8), Fraction(1000)]))
    blue.raise_weights(np.array([place]), np.array([float(case.weights[place])]))
    after = blue.combine(matrix([case.query]))
    assert np.all(after.half_variance <= before.half_variance * (1 + 1e-9))
    assert_same(after, case.combine(), case.weights)


@settings(deadline=None)
@given(cases(), st.data())
def test_cutting_atoms_changes_no_answer(case: Case, data: st.DataObject) -> None:
    blue = case.blue()
    before = blue.combine(matrix([case.query]))
    n_pieces = [data.draw(st.integers(1, 3)) for _ in case.sizes]
    pieces = np.repeat(np.arange(len(case.sizes)), n_pieces)
    parents = np.array(data.draw(st.permutations(pieces.tolist())), dtype=np.int64)
    blue.split(parents, vector(case.sizes)[parents] / np.array(n_pieces)[parents])
    assert blue.n_atoms == parents.size
    assert_same(blue.combine(matrix([case.query])[:, parents]), before, case.weights)


@settings(deadline=None)
@given(cases(), st.data())
def test_rows_added_after_a_cut_are_rows_over_the_pieces(case: Case, data: st.DataObject) -> None:
    """Half the history before the cut, half after it, against all of it on the pieces."""
    parents = np.repeat(np.arange(len(case.sizes)), 2)
    sizes = vector(case.sizes)[parents] / 2
    fine = matrix(case.rows)[:, parents]
    late = data.draw(st.integers(0, len(case.rows)))
    fine[late:, 0] += 1.0
    whole = OnlineBlue(sizes)
    whole.add(fine, vector(case.weights))
    blue = OnlineBlue(vector(case.sizes))
    blue.add(matrix(case.rows)[:late], vector(case.weights)[:late])
    blue.split(parents, sizes)
    blue.add(fine[late:], vector(case.weights)[late:])
    query = np.ones((1, len(case.rows))) @ fine
    assert_same(blue.combine(query), whole.combine(query), case.weights)


@settings(deadline=None)
@given(cases(), st.data())
def test_the_order_of_rows_and_atoms_does_not_matter(case: Case, data: st.DataObject) -> None:
    before = case.combine()
    rows = np.array(data.draw(st.permutations(range(len(case.rows)))))
    atoms = np.array(data.draw(st.permutations(range(len(case.sizes)))))
    blue = OnlineBlue(vector(case.sizes)[atoms])
    blue.add(matrix(case.rows)[rows][:, atoms], vector(case.weights)[rows])
    after = blue.combine(matrix([case.query])[:, atoms])
    before.coefficients[:] = before.coefficients[:, rows]
    assert_same(after, before, [case.weights[row] for row in rows])


@settings(deadline=None)
@given(cases())
def test_one_by_one_equals_all_at_once_equals_refreshed(case: Case) -> None:
    single, whole = OnlineBlue(vector(case.sizes)), OnlineBlue(vector(case.sizes))
    for row, weight in zip(case.rows, case.weights, strict=True):
        single.add(matrix([row]), vector([weight]))
    whole.add(matrix(case.rows), vector(case.weights))
    assert single.rank == whole.rank
    query = matrix([case.query])
    assert_same(single.combine(query), whole.combine(query), case.weights)
    single.refresh()
    assert single.rank == whole.rank
    assert_same(single.combine(query), whole.combine(query), case.weights)


@settings(deadline=None)
@given(cases())
def test_measuring_everything_again_halves_every_variance(case: Case) -> None:
    blue = case.blue()
    before = blue.combine(matrix([case.query]))
    assume(bool(before.estimable[0]))
    rank = blue.rank
    blue.add(matrix(case.rows), vector(case.weights))
    after = blue.combine(matrix([case.query]))
    assert blue.rank == rank
    assert after.half_variance[0] == pytest.approx(before.half_variance[0] / 2, rel=1e-9)


@settings(deadline=None)
@given(cases(), st.data())
def test_queries_asked_together_are_answered_as_if_alone(case: Case, data: st.DataObject) -> None:
    blue = case.blue()
    n_atoms = len(case.query)
    more = data.draw(
        st.lists(st.lists(st.integers(-3, 3), min_size=n_atoms, max_size=n_atoms), max_size=4)
    )
    queries = matrix([case.query, *more, *case.rows])
    together = blue.combine(queries)
    for place, query in enumerate(queries):
        alone = blue.combine(query[np.newaxis])
        assert alone.estimable[0] == together.estimable[place]
        assert alone.half_variance[0] == pytest.approx(together.half_variance[place], rel=1e-9)
