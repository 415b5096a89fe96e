"""The Survey network beside bnlearn's published results: the same rows, scores and network."""

import pytest

from synthesis.networks.comparison import LinkCounts, class_distance, hamming_distance
from synthesis.networks.graph import Dag
from synthesis.networks.score import BicScore
from synthesis.networks.search import best_network, hill_climbed
from synthesis.networks.source import RowTables
from tests.support import survey_network, survey_rows
from tests.support.survey_network import NAMES, SURVEY

ROUNDED = 0.0005


@pytest.fixture(scope="module")
def score() -> BicScore:
    rows = survey_rows.published_rows()
    assert rows.shape == (500, 6)
    return BicScore(RowTables(survey_network.columns(), rows), degree=3)


def test_scores_are_the_published_ones(score: BicScore) -> None:
    with_arc = Dag(NAMES, SURVEY.arcs | {survey_rows.WITH_ARC})
    assert score.total(SURVEY) == pytest.approx(survey_rows.BIC, abs=ROUNDED)
    assert score.total(with_arc) == pytest.approx(survey_rows.BIC_WITH_ARC, abs=ROUNDED)
    assert score.total(survey_rows.FOUND) == pytest.approx(survey_rows.BIC_OF_FOUND, abs=ROUNDED)


def test_a_climb_finds_the_published_network_and_no_network_is_better(score: BicScore) -> None:
    climbed, best = hill_climbed(score).dag, best_network(score)
    assert climbed == survey_rows.FOUND
    assert class_distance(survey_rows.FOUND, best) == 0
    assert score.total(best) == pytest.approx(survey_rows.BIC_OF_FOUND, abs=ROUNDED)


def test_how_far_the_published_network_is_from_the_one_that_made_the_rows() -> None:
    """By hand: A - E, S - E and R - E are turned, O - T is missing, E - O and R - T are right."""
    found = survey_rows.FOUND
    assert hamming_distance(SURVEY, found) == 4
    assert LinkCounts.of(SURVEY, found) == LinkCounts(2, 3, 4, 21)
    # All six edges have a direction in the class of the one, and none in that of the other, a tree.
    assert class_distance(SURVEY, found) == 6
