"""Answers given again as they were given before, and when they are not."""

from fractions import Fraction

import numpy as np

from cube.axis import IntegerAxis
from cube.measurement import Measurement, Weight
from cube.query import Factor, LinearQuery, QueryBlock, Term
from cube.schema import Schema
from inference.block_estimates import widest
from inference.estimator import Estimator

N_LEVELS = 64
SCHEMA = Schema(
    table="t", axes=(IntegerAxis(name="a", low=0, high=N_LEVELS - 1),), n_records_max=1000
)
CONFIDENCE = 0.9


def level(place: int) -> QueryBlock:
    """The number of records on one level."""
    values = np.zeros(N_LEVELS, np.int64)
    values[place] = 1
    return QueryBlock(LinearQuery((Term(Fraction(1), (Factor(("a",), values),)),)))


def bought(place: int, value: int = 7, weight: float = 0.5) -> Measurement:
    return Measurement(level(place), Weight.at_least(weight), 0, 1 / weight, (value,))


def known(n_measurements: int) -> Estimator:
    estimator = Estimator(SCHEMA)
    estimator.add([bought(place) for place in range(n_measurements)])
    return estimator


def test_an_answer_is_given_again_until_something_is_measured() -> None:
    estimator = known(20)
    rows = estimator.estimate(level(3), CONFIDENCE)
    wanted = (level(3), CONFIDENCE, widest(rows, CONFIDENCE))
    assert estimator.recalled([wanted], 20) == [rows]
    assert estimator.recalled([wanted], 21) is None, "measured, though not taken in yet"


def test_an_answer_that_is_too_wide_is_not_given_again() -> None:
    estimator = known(20)
    width = widest(estimator.estimate(level(3), CONFIDENCE), CONFIDENCE)
    assert estimator.recalled([(level(3), CONFIDENCE, 0.999 * width)], 20) is None
    assert estimator.recalled([(level(3), 0.95, 100 * width)], 20) is None, "never asked"
    assert estimator.recalled([(level(30), CONFIDENCE, 100 * width)], 20) is None, "never asked"


def test_answers_are_given_again_only_together() -> None:
    """Of two moments they may rest on one row at two weights, whose noise is partly the same."""
    estimator = known(20)
    first, second = (level(3), CONFIDENCE, 100.0), (level(4), CONFIDENCE, 100.0)
    estimator.estimate(level(3), CONFIDENCE)
    estimator.add([bought(20)])
    rows = estimator.estimate(level(4), CONFIDENCE)
    assert estimator.recalled([second], 21) == [rows]
    assert estimator.recalled([first, second], 21) is None
