"""What was bought by tens of thousands of groups is read from, however many they are."""

from fractions import Fraction

import numpy as np
import pytest

from cube.axis import IntegerAxis
from cube.measurement import Measurement, Weight
from cube.query import N_GROUPS_MAX, Factor, Partition, QueryBlock, counting
from cube.schema import Schema
from inference.estimator import Estimator
from inference.posterior import Posterior


@pytest.mark.parametrize("n_towns", [30_000, N_GROUPS_MAX])
def test_sums_of_some_of_many_counted_groups_are_known(n_towns: int) -> None:
    """Values by adding up; half-widths by that of the sum of as many noises."""
    schema = Schema(
        table="t", axes=(IntegerAxis(name="town", low=0, high=n_towns - 1),), n_records_max=10**6
    )
    towns = np.arange(n_towns, dtype=np.int64)
    by_town = QueryBlock(counting(), Partition(("town",), towns))
    noisy = np.random.default_rng(2).integers(0, 50, n_towns)
    estimator = Estimator(schema)
    weight = Weight.at_least(Fraction(1, 2))
    estimator.add([Measurement(by_town, weight, 20, 2.0, tuple((noisy << 20).tolist()))])
    coarse = QueryBlock(counting(), Partition(("town",), towns // 100))
    rows = estimator.estimate(coarse, 0.95)
    sums = noisy.reshape(-1, 100).sum(axis=1)
    assert [one.value for one in rows if isinstance(one, Posterior)] == sums.tolist()
    is_seventh = (towns % 7 == 3).astype(np.int64)
    some = QueryBlock(counting([Factor(("town",), is_seventh)]))
    (one,) = estimator.estimate(some, 0.95)
    assert isinstance(one, Posterior)
    assert one.value == noisy[is_seventh > 0].sum()
    deviation = 2.0 * np.sqrt(2 * is_seventh.sum())
    # So many noises together are nearly Gaussian.
    assert one.half_width(0.95) == pytest.approx(1.96 * deviation, rel=0.01)
