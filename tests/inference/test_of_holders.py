"""Rows that each holder of a federated table has measured, if too much is known to combine it."""

from collections.abc import Sequence

import numpy as np
import pytest

from accountant.noise import LatticeNoise
from cube.holders import Holders
from cube.measurement import Measurement, Weight
from cube.query import Factor, Partition, QueryBlock, counting, restricted
from inference import Estimator, History, NotEstimable, Posterior, half_widths, pooled
from inference.blue.workspaces import Workspace
from tests.support.federated import federated_schema

NAMES = ("north", "south", "east")
SCHEMA = federated_schema({"a": 4, "b": 3}, NAMES)
HOLDERS = Holders("holder", len(NAMES))
BY_A = QueryBlock(counting(), Partition(("a",), np.arange(4)))
WEIGHTS = (0.5, 0.25, 1.0)
DRAW = np.random.default_rng(2)
VALUES = DRAW.integers(0, 1000, size=(len(NAMES), 4))


@pytest.fixture
def _nothing_is_combined(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(Workspace, "estimate", lambda _self, _block: None)
    monkeypatch.setattr(Workspace, "is_apart", lambda _self, _block: False)


def measured(block: QueryBlock, weight: float, values: Sequence[int]) -> Measurement:
    noise = LatticeNoise.for_weight(Weight.at_least(weight))
    steps = tuple(int(one) << noise.lattice_bits for one in values)
    return Measurement(block, noise.weight, noise.lattice_bits, noise.noise_scale, steps)


def history(levels: Sequence[int]) -> list[Measurement]:
    return [measured(HOLDERS.of_holder(BY_A, k), WEIGHTS[k], VALUES[k].tolist()) for k in levels]


def estimated(block: QueryBlock, measurements: Sequence[Measurement]) -> list[Posterior]:
    estimator = Estimator(SCHEMA)
    estimator.add(measurements)
    rows = estimator.estimate(block, 0.95)
    assert all(isinstance(one, Posterior) for one in rows)
    return [one for one in rows if isinstance(one, Posterior)]


@pytest.mark.usefixtures("_nothing_is_combined")
def test_the_sum_of_holders_is_known_with_the_law_of_the_sum() -> None:
    """Of 10**6 sums of three Laplace variables, the share within the half-width is off by .001."""
    rows = estimated(BY_A, history((0, 1, 2)))
    assert [row.value for row in rows] == VALUES.sum(axis=0).tolist()
    scales = [1 / Weight.at_least(one).exact for one in WEIGHTS]
    drawn = np.abs(sum(DRAW.laplace(0, float(one), size=10**6) for one in scales))
    for width in half_widths(rows, 0.95):
        assert abs((drawn <= width).mean() - 0.95) < 0.002


@pytest.mark.usefixtures("_nothing_is_combined")
def test_some_holders_are_a_sum_too() -> None:
    block = restricted(BY_A, "holder", np.array([1, 0, 1]))
    rows = estimated(block, history((0, 2)))
    assert [row.value for row in rows] == (VALUES[0] + VALUES[2]).tolist()


@pytest.mark.usefixtures("_nothing_is_combined")
@pytest.mark.parametrize("factor", [(1, 2, 1), (-1, 1, 1)])
def test_other_sums_are_not_read_so(factor: tuple[int, ...]) -> None:
    """Also not if the rows of one holder in lowest terms are those of the others."""
    twice = QueryBlock(counting([Factor(("holder",), np.array(factor))]), BY_A.partition)
    estimator = Estimator(SCHEMA)
    estimator.add(history((0, 1, 2)))
    assert all(isinstance(one, NotEstimable) for one in estimator.estimate(twice, 0.95))


@pytest.mark.usefixtures("_nothing_is_combined")
def test_one_holder_that_lacks_it_leaves_it_unknown() -> None:
    estimator = Estimator(SCHEMA)
    estimator.add(history((0, 1)))
    assert all(isinstance(one, NotEstimable) for one in estimator.estimate(BY_A, 0.95))


def test_some_holders_are_pooled_without_the_others() -> None:
    found = History()
    found.add(history((0, 2)))
    assert not len(pooled(found, HOLDERS))
    some = pooled(found, HOLDERS, (2, 0))
    assert some[0].values.tolist() == (VALUES[0] + VALUES[2]).tolist()
    assert some[0].noise_scale == pytest.approx(float(np.hypot(1 / WEIGHTS[0], 1 / WEIGHTS[2])))
    assert pooled(found, HOLDERS, (0,))[0].values.tolist() == VALUES[0].tolist()
    assert not len(pooled(found, HOLDERS, (0, 1)))


def of(a: Sequence[int], b: Sequence[int]) -> QueryBlock:
    """The records with some levels."""
    factors = [Factor(("a",), np.array(a)), Factor(("b",), np.array(b))]
    return QueryBlock(counting(factors))


ASKED = (
    of((1, 0, 0, 1), (1, 1, 0)),
    of((0, 1, 1, 0), (1, 1, 0)),
    of((1, 1, 1, 1), (1, 1, 0)),
    of((1, 0, 0, 1), (0, 1, 1)),
    BY_A,
    QueryBlock(counting()),
)


@pytest.mark.parametrize("seed", range(12))
def test_what_is_read_as_a_sum_is_what_all_rows_together_say(
    seed: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The oracle combines all rows, of every holder, also where none says more than the sum."""
    draw = np.random.default_rng(seed)
    bought = [ASKED[place] for place in draw.permutation(len(ASKED))[:3]]
    measurements = [
        measured(HOLDERS.of_holder(one, k), float(draw.uniform(0.2, 1)), [7 * k + 1] * one.n_rows)
        for one in bought
        for k in range(len(NAMES))
    ]
    read, combined = Estimator(SCHEMA), Estimator(SCHEMA)
    read.add(measurements)
    combined.add(measurements)
    n_read = sum(read._is_alone(one.primitive[0]) for one in bought)
    found = [read.estimate(one, 0.95) for one in ASKED]
    monkeypatch.setattr(Estimator, "_is_alone", lambda _self, _block: False)
    for one, rows in zip(ASKED, found, strict=True):
        oracle = combined.estimate(one, 0.95)
        assert half_widths(rows, 0.95) == pytest.approx(half_widths(oracle, 0.95), rel=1e-6)
        for row, other in zip(rows, oracle, strict=True):
            assert isinstance(row, Posterior) == isinstance(other, Posterior)
            if isinstance(row, Posterior) and isinstance(other, Posterior):
                assert row.value == pytest.approx(other.value, rel=1e-6)
    assert n_read == {0: 3, 4: 0}.get(seed, n_read)  # both ways are tried
