"""A formula's interval that rests on nothing but how accurate its parts were asked for."""

import math
from dataclasses import dataclass, field
from itertools import pairwise

import numpy as np
import pytest
from numpy.typing import NDArray

from inference.noise_law.law import AskedLaw, law_of_noise
from inference.posterior import Posterior
from proxy.engine.answers.simulation import N_PARTS_MAX, box_errors

CONFIDENCE = 0.9
N_TRIALS = 4000
MISSED_MAX = 0.1 + 4 * (0.09 / N_TRIALS) ** 0.5  # four standard errors


def part(half_width: float, value: float = 0.0) -> list[Posterior]:
    return [Posterior(value, AskedLaw(half_width, CONFIDENCE))]


def test_the_corners_and_the_middle_are_among_the_points() -> None:
    errors = box_errors([part(3.0), part(5.0)], CONFIDENCE, 20, np.random.default_rng(1))
    assert errors is not None
    assert errors.shape == (2, 20)
    each = [one[0].half_width(0.95) for one in (part(3.0), part(5.0))]
    for signs in ((1, 1), (1, -1), (-1, 1), (-1, -1), (0, 0), (0, 1)):
        corner = np.array(signs) * each
        assert np.isclose(errors, corner[:, None]).all(axis=0).any()
    assert (np.abs(errors) <= np.array(each)[:, None]).all()


def test_too_many_parts_have_no_box() -> None:
    parts = [part(1.0)] * (N_PARTS_MAX + 1)
    assert box_errors(parts, CONFIDENCE, 10, np.random.default_rng(1)) is None


@dataclass(frozen=True)
class BoundedFromBelow:
    """The law of a release of a stream whose buckets are nearly all full."""

    scales: NDArray[np.float64] = field(default_factory=lambda: np.empty(0))
    gaussian: float = 1.0
    tail_error: float = 0.0

    def tail(self, z: float) -> float:
        return 0.5 if z > 0 else 1.0

    def half_width(self, _confidence: float) -> float:
        return math.inf


def test_the_middle_of_an_infinite_part_is_its_estimate() -> None:
    endless = [Posterior(0.0, BoundedFromBelow())]
    errors = box_errors([endless, part(5.0)], CONFIDENCE, 20, np.random.default_rng(1))
    assert errors is not None
    assert not np.isnan(errors).any()
    assert (errors[0] == 0).any()
    assert np.isinf(errors[0][errors[0] != 0]).all()


@pytest.mark.parametrize("shared", [1.0, -1.0, 0.0])
def test_it_covers_a_difference_whatever_its_parts_have_in_common(shared: float) -> None:
    """The worst is an error of one part that is the other's, the other way round."""
    draw = np.random.default_rng(7)
    half_width = law_of_noise(np.array([10.0])).half_width(CONFIDENCE)
    points = box_errors([part(half_width)] * 2, CONFIDENCE, 9, draw)
    assert points is not None
    widest = (points[0] - points[1]).max()
    first, other = draw.laplace(0, 10.0, (2, N_TRIALS))
    second = shared * first if shared else other
    assert np.mean(np.abs(first - second) > widest) <= MISSED_MAX


def test_more_confidence_is_a_larger_box() -> None:
    found = [
        box_errors([part(1.0), part(1.0)], confidence, 9, np.random.default_rng(1))
        for confidence in (0.8, 0.9, 0.99)
    ]
    widths = [points.max() for points in found if points is not None]
    assert len(widths) == len(found)
    assert all(one < following for one, following in pairwise(widths))
