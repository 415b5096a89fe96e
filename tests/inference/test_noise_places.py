"""Noises of rows and of counts beside them, in the joint law of several answers."""

import numpy as np
import pytest

from cube.axis import CategoryAxis
from cube.measurement import Measurement, Weight
from cube.query import Partition, QueryBlock, counting
from inference.error_terms import FIRST_BESIDE, NoisePlaces
from inference.history import History
from inference.joint import draw_errors
from inference.posterior import Posterior
from inference.scaling import Scaling

CITY = CategoryAxis(name="city", values=("a", "b"))
BLOCK = QueryBlock(counting(), Partition(("city",), np.arange(2, dtype=np.int64)))
SCALING = Scaling(BLOCK, 1000)
N_DRAWS = 40_000


def measured(scale: float, supersedes: int | None = None) -> Measurement:
    return Measurement(BLOCK, Weight.at_least(1 / scale), 20, scale, (0, 0), supersedes)


ROWS = History()
ROWS.add([measured(2.0)])
BESIDE = (measured(4.0), measured(1.0, supersedes=0))
PLACES = NoisePlaces(ROWS, BESIDE)


def posteriors(place: int) -> tuple[Posterior, ...]:
    return tuple(SCALING.of_own(PLACES[place], place))


def drawn(*answers: Posterior) -> np.ndarray:
    return draw_errors(answers, PLACES, N_DRAWS, np.random.default_rng(3))


def test_places_of_counts_come_after_all_rows() -> None:
    assert len(PLACES) == 1
    assert PLACES[0] is ROWS[0]
    assert [PLACES[FIRST_BESIDE + place] for place in (0, 1)] == list(BESIDE)
    assert [PLACES.has(place) for place in (0, 1, FIRST_BESIDE + 1, FIRST_BESIDE + 2)] == [
        *(True, False),
        *(True, False),
    ]
    assert list(PLACES.earlier(FIRST_BESIDE + 1)) == [FIRST_BESIDE]
    assert list(PLACES.earlier(0)) == []


def test_counts_and_rows_have_independent_noise_of_their_scales() -> None:
    """In 40,000 draws a correlation is within .03 but for once in a billion."""
    (row, _), (count, other) = posteriors(0), posteriors(FIRST_BESIDE + 1)
    errors = drawn(row, count, other)
    deviations = errors.std(axis=1)
    assert deviations == pytest.approx(np.sqrt(2) * np.array([2.0, 1.0, 1.0]), rel=0.05)
    correlations = np.corrcoef(errors)
    assert np.abs(correlations - np.eye(3)).max() < 0.03


def test_one_count_that_two_answers_use_has_one_noise() -> None:
    (count, _), (again, _) = posteriors(FIRST_BESIDE + 1), posteriors(FIRST_BESIDE + 1)
    one, other = drawn(count, again)
    assert (one == other).all()


def test_a_count_before_its_raise_is_the_later_one_and_an_independent_jump() -> None:
    """The covariance is the variance of the later one."""
    (before, _), (after, _) = posteriors(FIRST_BESIDE), posteriors(FIRST_BESIDE + 1)
    one, other = drawn(before, after)
    assert np.cov(one, other)[0, 1] == pytest.approx(2 * 1.0**2, rel=0.15)
    assert np.corrcoef(one - other, other)[0, 1] == pytest.approx(0, abs=0.03)


def test_a_place_that_nothing_has_is_no_answer_of_this_history() -> None:
    (answer, _) = SCALING.of_own(BESIDE[0], FIRST_BESIDE + 7)
    with pytest.raises(ValueError, match="places"):
        drawn(answer)
    with pytest.raises(ValueError, match="places"):
        draw_errors([posteriors(FIRST_BESIDE)[0]], ROWS, 1, np.random.default_rng(3))
