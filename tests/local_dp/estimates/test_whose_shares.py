"""Of whom intervals hold: variances are a population's, and more than respondents need."""

import numpy as np
import pytest

from cube.query import Partition, QueryBlock, counting
from tests.support.respondents import Rows, campaign_of, collected, true_rows

N = 1000
N_COLLECTIONS = 450
OFF = 4.5 * (2 / N_COLLECTIONS) ** 0.5  # of a variance, as a part of it: odds of 7e-6


@pytest.mark.parametrize("size", [1, 2])
def test_respondents_vary_less_by_the_variance_of_what_they_said(size: int) -> None:
    """Epsilon 8, where nearly all of the error is who was asked what.

    The same people are asked again: the variance of a count of theirs is what was said, less
    ``N x (1 - x)``. Others of their population are asked: it is what was said.
    """
    rng = np.random.default_rng(size)
    campaign = campaign_of(8)
    names = ("grade", "member")[:size]
    labels = np.arange(3 * size).reshape((3, 2)[:size])
    block = QueryBlock(counting(), Partition(names, labels))
    crowd = true_rows(campaign, 400_000, rng)
    people = {name: levels[:N] for name, levels in crowd.items()}

    def first(rows: Rows) -> float:
        """The share of the first group."""
        return float(np.mean(np.all([rows[name] == 0 for name in names], axis=0)))

    of_people, of_crowd, said = [], [], []
    for _ in range(N_COLLECTIONS):
        own = collected(campaign, people, rng).answer(block)[0]
        of_people.append(own.value - N * first(people))
        said.append(own.law.gaussian**2)
        drawn = rng.integers(400_000, size=N)
        others = {name: levels[drawn] for name, levels in crowd.items()}
        of_crowd.append(collected(campaign, others, rng).answer(block)[0].value - N * first(crowd))
    share = first(people)
    stated = np.mean(said)
    of_those = stated - N * share * (1 - share)
    assert of_those < 0.8 * stated
    assert np.var(of_people) == pytest.approx(of_those, rel=OFF)
    assert np.var(of_crowd) == pytest.approx(stated, rel=OFF)
    assert abs(np.mean(of_people)) < 4.5 * (of_those / N_COLLECTIONS) ** 0.5
