import gc
import weakref
from fractions import Fraction

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from cube.encoding import canonical_json, decode_block, encode_block, fingerprint
from cube.grid import Grid
from cube.query import Factor, LinearQuery, Partition, QueryBlock, Term, counting, rational_gcd
from tests.support.cubes import SIZES, blocks, dense_rows, queries


def indicator(axis: str, *values: int) -> Factor:
    return Factor((axis,), np.array(values, dtype=np.int64))


def test_a_multiple_of_a_count_shares_the_row_of_the_count() -> None:
    count = counting([indicator("a", 1, 0)])
    row, multiplier = (count.scaled(Fraction(2)) + LinearQuery((), Fraction(-10))).primitive()
    assert multiplier == 2
    assert row.constant == 0
    assert fingerprint(QueryBlock(row)) == fingerprint(QueryBlock(count))


def test_a_constant_query_is_its_own_row() -> None:
    row, multiplier = LinearQuery((), Fraction(7)).primitive()
    assert row.is_constant
    assert multiplier == 1


def test_terms_that_vanish_are_dropped() -> None:
    assert counting([indicator("a", 0, 0)]).is_constant
    assert counting().scaled(Fraction(0)).is_constant


def test_a_factor_that_is_the_same_everywhere_disappears() -> None:
    assert counting([indicator("a", 1, 1), indicator("b", 0, 1)]).scope == ("b",)
    assert counting([indicator("a", 3, 3)]).terms[0].scale == 3


def test_the_values_of_a_factor_cannot_be_changed_afterwards() -> None:
    values = np.array([1, 0], dtype=np.int64)
    factor = Factor(("a",), values)
    values[0] = 5
    assert factor.values[0] == 1
    with pytest.raises(ValueError, match="read-only"):
        factor.values[0] = 5


@pytest.mark.parametrize(
    ("axes", "values"),
    [
        ((), np.array(1)),
        (("b", "a"), np.ones((2, 2), dtype=np.int64)),
        (("a", "a"), np.ones((2, 2), dtype=np.int64)),
        (("a",), np.ones((2, 2), dtype=np.int64)),
        (("a",), np.array([2**40 + 1])),
    ],
)
def test_a_malformed_factor_is_refused(axes: tuple[str, ...], values: np.ndarray) -> None:
    with pytest.raises(ValueError, match=r"."):
        Factor(axes, values)


def test_a_factor_of_floats_is_refused() -> None:
    with pytest.raises(TypeError):
        Factor(("a",), np.array([0.5, 1.0]))


def test_a_float_scale_is_refused() -> None:
    with pytest.raises(TypeError):
        Term(0.5, ())  # type: ignore[arg-type]  # what the check is for


def test_factors_of_one_term_share_no_axis() -> None:
    with pytest.raises(ValueError, match="share an axis"):
        Term(Fraction(1), (indicator("a", 1, 0), indicator("a", 0, 1)))


def test_labels_that_skip_a_group_are_refused() -> None:
    with pytest.raises(ValueError, match="labels"):
        Partition(("a",), np.array([0, 2, -1]))
    with pytest.raises(ValueError, match="labels"):
        Partition(("a",), np.array([-2, 0, 1]))


@given(st.fractions(min_value=Fraction(1, 1000)), st.fractions(min_value=Fraction(1, 1000)))
def test_the_rational_gcd_divides_both_and_leaves_coprime_quotients(
    a: Fraction, b: Fraction
) -> None:
    divisor = rational_gcd(a, b)
    assert (a / divisor).denominator == (b / divisor).denominator == 1
    assert rational_gcd(a / divisor, b / divisor) == 1


@given(queries())
def test_a_query_is_its_multiplier_times_its_row_plus_its_constant(query: LinearQuery) -> None:
    row, multiplier = query.primitive()
    assert all(term.scale.denominator == 1 for term in row.terms)
    expected = [value * multiplier for value in dense_rows(QueryBlock(row))[0]]
    assert dense_rows(QueryBlock(query))[0] == expected


@given(queries(), queries())
def test_queries_add_cell_by_cell(first: LinearQuery, second: LinearQuery) -> None:
    total = dense_rows(QueryBlock(first + second))[0]
    parts = zip(dense_rows(QueryBlock(first))[0], dense_rows(QueryBlock(second))[0], strict=True)
    assert total == [a + b for a, b in parts]


@given(blocks())
def test_a_block_survives_the_ledger(block: QueryBlock) -> None:
    decoded = decode_block(encode_block(block))
    assert canonical_json(encode_block(decoded)) == canonical_json(encode_block(block))
    assert dense_rows(decoded) == dense_rows(block)


def test_naming_a_block_does_not_keep_it_alive() -> None:
    block = QueryBlock(counting([indicator("a", 1, 0)]))
    fingerprint(block)
    watched = weakref.ref(block)
    del block
    gc.collect()
    assert watched() is None


@given(blocks())
def test_a_grid_loses_nothing(block: QueryBlock) -> None:
    axes = tuple(sorted(SIZES))
    grid = Grid.undivided(axes, tuple(SIZES[name] for name in axes)).refined([block])
    small = grid.coefficients(block.query)
    back = small[np.ix_(*(classes.of_level for classes in grid.classes))]
    exact = dense_rows(QueryBlock(block.query))[0]
    assert np.allclose(back.ravel(), [float(value) for value in exact])
    assert grid.cell_sizes().sum() == np.prod(list(SIZES.values()))


@pytest.mark.parametrize(
    "damage",
    [
        {"terms": [{"scale": "1/0", "factors": []}], "constant": "0"},
        {
            "terms": [{"scale": "1", "factors": [{"axes": ["a"], "shape": [3], "runs": [2, 1]}]}],
            "constant": "0",
        },
        {"terms": [], "constant": "zero"},
    ],
)
def test_a_damaged_encoding_is_refused(damage: dict[str, object]) -> None:
    with pytest.raises((ValueError, KeyError, TypeError, ZeroDivisionError)):
        decode_block(damage)
