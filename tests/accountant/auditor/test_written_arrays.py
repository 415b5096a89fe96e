"""Arrays as a ledger writes them: the auditor reads what the server wrote, in every form."""

import numpy as np
import pytest
from numpy.typing import NDArray

from accountant.auditor.rows import BlockReader, Curve, Tiled
from cube.classes import tiled
from cube.encoding import decode_block, encode_block, fingerprint
from cube.pieces import runs_of
from cube.query import Factor, Partition, QueryBlock, counting

WIDE = 10_000
EVERY = np.arange(WIDE, dtype=np.int64)
BINS = tiled(
    (runs_of(np.arange(4, dtype=np.int64)), runs_of(EVERY // 40)),
    np.arange(1000, dtype=np.int64).reshape(4, 250),
)
ARRAYS: dict[str, NDArray[np.int64]] = {
    "levels": EVERY[:100],
    "levels of a wide axis": EVERY,
    "squares of a wide axis": EVERY**2,
    "a condition": (EVERY > 321).astype(np.int64),
    "days of the week": EVERY[:1826] % 7,
    "from a level on": np.maximum(EVERY - 500, 0),
}


@pytest.mark.parametrize("name", ARRAYS)
def test_a_factor_is_read_as_it_was_written(name: str) -> None:
    values = ARRAYS[name]
    block = QueryBlock(counting([Factor(("x",), values)]))
    written = encode_block(block)
    assert fingerprint(decode_block(written)) == fingerprint(block)
    (term,) = BlockReader().block(written).share.terms
    numbers = term.arrays[0].numbers
    dense = numbers.dense() if isinstance(numbers, Curve) else numbers
    assert np.array_equal(np.asarray(dense) * int(term.scale), values)


@pytest.mark.parametrize("groups", [EVERY[:2000], EVERY, EVERY // 7 % 5])
def test_groups_are_read_as_they_were_written(groups: NDArray[np.int64]) -> None:
    block = QueryBlock(counting(), Partition(("x",), groups))
    written = encode_block(block)
    decoded = decode_block(written).partition
    assert decoded is not None
    assert np.array_equal(decoded.labels, groups)
    assert BlockReader().block(written).n_rows == int(groups.max()) + 1


def test_groups_over_two_axes_are_read_at_every_pair_of_levels() -> None:
    block = QueryBlock(counting(), Partition(("city", "x"), BINS))
    written = encode_block(block)
    assert decode_block(written).partition is not None
    labels = BlockReader().labels(written["partition"])
    assert isinstance(labels.numbers, Tiled)
    places = np.ix_(np.arange(4), EVERY)
    assert np.array_equal(labels.at(places), BINS.dense())


def test_numbered_levels_are_a_few_numbers_in_a_ledger() -> None:
    for groups in (EVERY[:2000], EVERY):
        written = encode_block(QueryBlock(counting(), Partition(("x",), groups)))
        assert written["partition"]["pieces"] == [[groups.size, 0, 1, 0]]
