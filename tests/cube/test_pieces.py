"""Pieces against the arrays they stand for."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from numpy.typing import NDArray

from cube.classes import tiled
from cube.encoding import decode_block, encode_block, fingerprint
from cube.pieces import decoded_pieces, magnitudes, pieces_at, pieces_of, runs_of
from cube.query import N_NARROW_LEVELS_MAX, Factor, Partition, QueryBlock, counting

WIDE = N_NARROW_LEVELS_MAX + 100
stretches = st.lists(
    st.tuples(st.integers(1, 40), st.integers(-5, 5), st.integers(-3, 3), st.integers(-2, 2)),
    min_size=1,
    max_size=6,
)


def vector(parts: list[tuple[int, int, int, int]]) -> NDArray[np.int64]:
    """Stretches of polynomials: length, value, slope and bend of each."""
    steps = [np.arange(length, dtype=np.int64) for length, *_ in parts]
    pairs = zip(parts, steps, strict=True)
    return np.concatenate([v + b * p + c * p * (p - 1) // 2 for (_, v, b, c), p in pairs])


def wide(parts: list[tuple[int, int, int, int]]) -> NDArray[np.int64]:
    """The same, among many levels."""
    values = vector(parts)
    return np.concatenate([values, np.arange(WIDE - values.size, dtype=np.int64)])


@given(stretches)
def test_pieces_are_the_values_they_were_made_of(parts: list[tuple[int, int, int, int]]) -> None:
    values = vector(parts)
    pieces = pieces_of(values)
    places = np.arange(values.size, dtype=np.int64)
    assert pieces.dense().tolist() == pieces.at(places).tolist() == values.tolist()
    assert pieces.ends == (values.min(), values.max())
    assert pieces.common_divisor == np.gcd.reduce(values)
    assert pieces.first_nonzero == next((one for one in values.tolist() if one), 0)
    again = pieces_at(pieces.starts, pieces.differences, pieces.size)
    assert again.content == pieces.content
    assert runs_of(values).dense().tolist() == values.tolist()


@given(stretches)
def test_magnitudes_are_exact_unless_a_piece_is_concave(
    parts: list[tuple[int, int, int, int]],
) -> None:
    values = vector(parts)
    found, exact = magnitudes(pieces_of(values))
    assert (found.dense() >= np.abs(values)).all()
    assert int(found.dense().max()) == int(np.abs(values).max())
    if exact:
        assert found.dense().tolist() == np.abs(values).tolist()
    for piece, _, _ in found:
        assert piece[2] >= 0


def test_the_levels_of_a_measure_and_their_squares_are_one_piece() -> None:
    levels = np.arange(500_001, dtype=np.int64)
    for values in (levels, (2 * levels - 500_000) ** 2, 3 * levels - 7):
        assert pieces_of(values).n_pieces == 1
    capped = pieces_of(np.minimum(levels, 100_000))
    assert capped.n_pieces == 2
    assert pieces_of((levels > 1000).astype(np.int64)).degree == 0


@given(stretches)
def test_a_block_reads_back_as_it_was_written(parts: list[tuple[int, int, int, int]]) -> None:
    block = QueryBlock(counting([Factor(("m",), wide(parts))])).primitive[0]
    encoded = encode_block(block)
    again = decode_block(encoded)
    assert encode_block(again) == encoded
    assert fingerprint(again) == fingerprint(block)
    before, after = (one.query.terms[0].factors[0].values for one in (block, again))
    assert before.tolist() == after.tolist()


def test_an_array_of_runs_is_found_again_by_its_pieces() -> None:
    """What a ledger recorded in runs is the same row as what is written in pieces now."""
    values = np.arange(60, dtype=np.int64)
    block = QueryBlock(counting([Factor(("m",), values)]))
    (factor,) = encode_block(block)["terms"][0]["factors"]
    assert factor["pieces"] == [[60, 0, 1, 0]]
    runs = [number for value in range(60) for number in (1, value)]
    written = {"axes": ["m"], "shape": [60], "runs": runs}
    old = {"terms": [{"scale": "1", "factors": [written]}], "constant": "0"}
    assert fingerprint(decode_block(old)) == fingerprint(block)


@pytest.mark.parametrize(
    "listed",
    [[[5, 1]], [[0, 1], [6, 2]], [[6, 1, 2]], [[6, 1, 2**41, 0]], [[6, 1, 0, 2**21]], []],
)
def test_what_is_no_list_of_pieces_is_refused(listed: list[list[int]]) -> None:
    with pytest.raises(ValueError, match=r"piece|differences|lengths|inhomogeneous"):
        decoded_pieces(listed, 6)


@given(st.lists(st.integers(-1, 2), min_size=24, max_size=24))
def test_tiles_are_the_array_they_were_made_of(numbers: list[int]) -> None:
    values = np.array(numbers, dtype=np.int64).reshape(4, 6)
    along = tuple(runs_of(np.arange(size, dtype=np.int64)) for size in values.shape)
    tiles = tiled(along, values)
    assert tiles.dense().tolist() == values.tolist()
    rows, columns = (np.array(one) for one in ([0, 3, 2], [5, 0, 1]))
    assert tiles.at((rows, columns)).tolist() == values[rows, columns].tolist()
    turned = values[::-1][:, ::-1]
    assert tiled(along, turned).dense().tolist() == turned.tolist()


def test_groups_over_a_wide_column_and_another_read_back() -> None:
    amounts = runs_of(np.repeat(np.arange(3), [WIDE - 200, 100, 100]))
    cities = runs_of(np.arange(4, dtype=np.int64))
    labels = np.arange(12, dtype=np.int64).reshape(3, 4)
    block = QueryBlock(counting(), Partition(("amount", "city"), tiled((amounts, cities), labels)))
    encoded = encode_block(block)
    again = decode_block(encoded)
    assert fingerprint(again) == fingerprint(block)
    assert again.partition is not None
    assert block.partition is not None
    assert again.partition.labels.tolist() == block.partition.labels.tolist()
    assert len(str(encoded)) < 400
