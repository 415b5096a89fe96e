"""A table answered from history is tested with the noise that it has there."""

import math

import numpy as np
import pytest

from cube.axis import IntegerAxis
from cube.measurement import Measurement, Weight
from cube.query import Partition, QueryBlock, counting
from cube.schema import Schema
from inference.estimator import Estimator
from inference.independence.chi_square import Decision, independence_test, table_from_history
from inference.noise_law.law import law_of_noise
from inference.posterior import Posterior

SHAPE = (3, 2)
LATTICE_BITS = 20
N_RECORDS = 5000
SCHEMA = Schema(
    table="t",
    axes=(IntegerAxis(name="x", low=0, high=2), IntegerAxis(name="y", low=0, high=1)),
    n_records_max=10 * N_RECORDS,
)
CELLS = QueryBlock(counting(), Partition(("x", "y"), np.arange(6).reshape(SHAPE)))
X_TOTALS = QueryBlock(counting(), Partition(("x",), np.arange(3)))
INDEPENDENT = np.outer([0.5, 0.3, 0.2], [0.55, 0.45])
DEPENDENT = INDEPENDENT + 0.05 * np.array([[1, -1], [-1, 1], [0, 0]])
N_DRAWS = 40_000


def bought(
    block: QueryBlock, exact: np.ndarray, epsilon: float, rng: np.random.Generator
) -> Measurement:
    weight = Weight.at_least(epsilon)
    scale = math.nextafter(1 / float(weight.exact), math.inf)
    noisy = exact.ravel() + rng.laplace(0, scale, exact.size)
    steps = tuple(int(value) for value in np.rint(np.ldexp(noisy, LATTICE_BITS)))
    return Measurement(block, weight, LATTICE_BITS, scale, steps)


def asked(probabilities: np.ndarray, rng: np.random.Generator) -> tuple[list[Posterior], Estimator]:
    """The cells of a table, of which the cells and one margin were bought."""
    exact = rng.multinomial(N_RECORDS, probabilities.ravel()).reshape(SHAPE)
    estimator = Estimator(SCHEMA)
    estimator.add([bought(CELLS, exact, 0.1, rng), bought(X_TOTALS, exact.sum(axis=1), 0.3, rng)])
    found = [row for row in estimator.estimate(CELLS, 0.95) if isinstance(row, Posterior)]
    return found, estimator


def test_the_noise_drawn_is_the_noise_of_the_answers_shared_parts_included() -> None:
    rng = np.random.default_rng(0)
    cells, estimator = asked(INDEPENDENT, rng)
    noisy, noise = table_from_history(cells, estimator.history, SHAPE)
    assert noisy.ravel().tolist() == [cell.value for cell in cells]
    drawn = noise.draw(N_DRAWS, rng)
    # The relative standard error of a deviation is .006 and less here: these are 8 of them.
    np.testing.assert_allclose(drawn.std(axis=0), noise.scales, rtol=0.05)
    # Two cells of one margin that is better known than they are: what one has too much, the other
    # has too little. Without the shared measurement they would not depend on each other.
    correlation = np.corrcoef(drawn[:, 0, 0], drawn[:, 0, 1])[0, 1]
    assert correlation < -0.3
    assert abs(np.corrcoef(drawn[:, 0, 0], drawn[:, 1, 1])[0, 1]) < 0.04


def rejection_rate(probabilities: np.ndarray, n_trials: int) -> float:
    rng = np.random.default_rng(1)
    rejected = 0
    for _ in range(n_trials):
        cells, estimator = asked(probabilities, rng)
        noisy, noise = table_from_history(cells, estimator.history, SHAPE)
        outcome = independence_test(noisy, noise, generator=rng, n_replicates=99)
        rejected += outcome.decision is Decision.REJECTED
    return rejected / n_trials


def test_answers_from_history_keep_the_level_and_show_dependence() -> None:
    # At level .05 and 400 trials, 2.7 standard deviations on either side.
    assert 0.02 <= rejection_rate(INDEPENDENT, 400) <= 0.08
    assert rejection_rate(DEPENDENT, 20) > 0.9


def test_answers_that_do_not_fill_the_table_are_refused() -> None:
    cells, estimator = asked(INDEPENDENT, np.random.default_rng(2))
    with pytest.raises(ValueError, match="fill"):
        table_from_history(cells, estimator.history, (2, 2))


def test_an_answer_without_noise_is_refused() -> None:
    _, estimator = asked(INDEPENDENT, np.random.default_rng(3))
    exact = [Posterior(0.0, law_of_noise(np.empty(0)))] * 6
    with pytest.raises(ValueError, match="positive, finite scale"):
        table_from_history(exact, estimator.history, SHAPE)
