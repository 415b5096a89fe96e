"""Errors as sums of independent parts: exact without raises, never too narrow with them."""

import math

import numpy as np
import pytest

from cube.measurement import Measurement, Weight
from cube.query import QueryBlock, counting
from inference.error_terms import ErrorTerms
from inference.history import History
from inference.joint import draw_errors, error_parts
from inference.noise_law.law import law_of_noise, law_of_noises
from inference.posterior import Posterior

TOTAL = QueryBlock(counting())


def bought(weight: float, supersedes: int | None = None) -> Measurement:
    paid = Weight.at_least(weight)
    scale = math.nextafter(1 / float(paid.exact), math.inf)
    return Measurement(TOTAL, paid, 20, scale, (0,), supersedes)


def resting_on(history: History, coefficients: dict[int, float]) -> Posterior:
    scales = [abs(share) * history[place].noise_scale for place, share in coefficients.items()]
    terms = ErrorTerms(
        np.array(list(coefficients), dtype=np.int64),
        np.zeros(len(coefficients), dtype=np.int64),
        np.array(list(coefficients.values())),
    )
    return Posterior(0.0, law_of_noise(np.array(scales)), terms=terms)


def test_without_raises_the_parts_are_the_noises() -> None:
    history = History()
    history.add([bought(0.5), bought(1.0)])
    answers = [resting_on(history, {0: 0.25, 1: 0.75}), resting_on(history, {1: -2.0})]
    coefficients, scales, is_gaussian = error_parts(answers, history)
    assert not is_gaussian.any()
    assert coefficients.toarray().tolist() == [[0.25, 0.75], [0.0, -2.0]]
    assert scales.tolist() == [history[0].noise_scale, history[1].noise_scale]


@pytest.mark.parametrize("shares", [(1.0, 0.0), (0.5, 0.5), (1.0, -1.0), (0.2, 0.8)])
def test_with_a_raise_an_interval_from_the_parts_covers(shares: tuple[float, float]) -> None:
    history = History()
    history.add([bought(0.5), bought(0.8, supersedes=0)])
    answers = [resting_on(history, {place: 1.0}) for place in (0, 1)]
    coefficients, scales, is_gaussian = error_parts(answers, history)
    law = law_of_noises(np.abs(np.array(shares) @ coefficients) * scales, is_gaussian)
    drawn = np.array(shares) @ draw_errors(answers, history, 40_000, np.random.default_rng(1))
    for confidence in (0.5, 0.9, 0.99):
        held = float((np.abs(drawn) <= law.half_width(confidence)).mean())
        # Of 40,000 draws, a share has a standard deviation of at most .0025.
        assert held > confidence - 0.01


def test_the_terms_of_every_answer_are_those_of_each() -> None:
    places, rows, coefficients = (
        np.array([7, 7, 9]),
        np.array([0, 1, 2]),
        np.array([1.0, -2.0, 0.5]),
    )
    together = ErrorTerms(places, rows, coefficients)
    used = [slice(0, 1), slice(1, 1), slice(1, 3)]
    for terms, own in zip(together.split(np.array([0, 1, 1, 3])), used, strict=True):
        alone = ErrorTerms(places[own], rows[own], coefficients[own])
        for part in ("place", "row", "coefficient"):
            one, other = getattr(terms, part), getattr(alone, part)
            assert one.dtype == other.dtype
            assert not one.flags.writeable
            assert one.base is None, "an answer keeps no other answer's array alive"
            np.testing.assert_array_equal(one, other)
    assert ErrorTerms(places[:0], rows[:0], coefficients[:0]).split(np.array([0])) == []
