"""What is stated of others' frequency oracles, by enumeration, and at exactly its epsilon."""

import math
from itertools import combinations

import numpy as np
import pytest

from benchmarks.local_dp import laws
from benchmarks.local_dp_peers import Stated, stated, subset_selection
from cube.measurement import UNITS_PER_EPSILON
from local_dp.channels.choice import best_channel


def test_the_stated_variance_of_direct_answers_is_that_of_the_same_channel() -> None:
    for n_cells, epsilon in ((4, 0.5), (4, 4.0), (24, 4.0)):
        channel = best_channel(n_cells, int(epsilon * UNITS_PER_EPSILON))
        for shares in laws(n_cells).values():
            ours = channel.variances(np.eye(n_cells), channel.rates(shares)).mean()
            assert stated(n_cells, epsilon)["direct"].variance(shares) == pytest.approx(ours)


def loss(oracle: Stated) -> float:
    """Of a bit for each cell, with coins of their own."""
    true, other = oracle.true, oracle.other
    return math.log(true / other * (1 - other) / (1 - true))


@pytest.mark.parametrize("epsilon", [0.5, 1.0, 2.0, 4.0])
def test_each_loses_exactly_its_epsilon(epsilon: float) -> None:
    of = stated(24, epsilon)
    assert loss(of["unary"]) == pytest.approx(epsilon)
    assert loss(of["optimised unary"]) == pytest.approx(epsilon)
    assert math.log(of["direct"].true / of["direct"].other) == pytest.approx(epsilon)
    n_buckets = round(1 / of["local hashing"].other)
    in_bucket = of["local hashing"].true
    assert math.log(in_bucket / ((1 - in_bucket) / (n_buckets - 1))) == pytest.approx(epsilon)


def test_subset_selection_is_as_enumerated() -> None:
    """Subsets with the true cell are exp(epsilon) times as likely as those without."""
    n_cells, epsilon = 6, 1.0
    oracle = subset_selection(n_cells, epsilon)
    found = []
    for size in (1, 2):
        subsets = list(combinations(range(n_cells), size))
        weights = [math.exp(epsilon * (0 in subset)) for subset in subsets]
        has = [
            sum(w for w, subset in zip(weights, subsets, strict=True) if cell in subset)
            for cell in (0, 1)
        ]
        found.append((has[0] / sum(weights), has[1] / sum(weights)))
    assert any((oracle.true, oracle.other) == pytest.approx(one) for one in found)
