"""Learners: against SciPy's trees, all graphs of four columns, each other, the Survey network."""

from itertools import combinations, pairwise

import numpy as np
import pytest
from scipy.sparse.csgraph import minimum_spanning_tree

from synthesis.networks.comparison import class_distance, hamming_distance
from synthesis.networks.graph import Dag, skeleton
from synthesis.networks.score import BicScore
from synthesis.networks.search import (
    TooManyColumns,
    best_network,
    chow_liu,
    hill_climbed,
    pair_information,
)
from synthesis.networks.source import MeasuredTables, NoisyCounts, RowTables
from synthesis.tables import Column
from tests.support import survey_network
from tests.support.all_dags import all_dags
from tests.support.survey_network import SURVEY

N_ROWS = 50_000
MARRIED = {frozenset("AS"), frozenset("OR")}  # what a climb adds if it turned a collider early
WEAK = {frozenset("SE"), frozenset("ER"), frozenset("OT")}  # of at most .002 nats in the network


def made_up_rows(n_columns: int, n_rows: int, seed: int) -> tuple[list[Column], np.ndarray]:
    """Columns of 2 or 3 levels, each drawn given two of those before it, or alone."""
    rng = np.random.default_rng(seed)
    sizes = rng.integers(2, 4, n_columns)
    codes = np.zeros((n_rows, n_columns), dtype=np.int64)
    for place, size in enumerate(sizes):
        given = rng.choice(place, min(place, int(rng.integers(0, 3))), replace=False)
        classes = np.zeros(n_rows, dtype=np.int64)
        for other in given:
            classes = classes * sizes[other] + codes[:, other]
        laws = rng.dirichlet(np.ones(size), int(classes.max()) + 1)
        codes[:, place] = (rng.random(n_rows)[:, None] > laws.cumsum(axis=1)[classes]).sum(axis=1)
    codes = np.minimum(codes, sizes - 1)
    return [Column(f"x{place}", int(size)) for place, size in enumerate(sizes)], codes


def score_of(n_columns: int, n_rows: int, seed: int, degree: int) -> BicScore:
    return BicScore(RowTables(*made_up_rows(n_columns, n_rows, seed)), degree=degree)


def noisy_survey(scale: float, width: int, seed: int) -> MeasuredTables:
    """Every table of so many columns of `N_ROWS` rows, with Laplace noise."""
    rng = np.random.default_rng(seed)
    rows = RowTables(survey_network.columns(), survey_network.sampled(N_ROWS, seed))
    tables = []
    for places in combinations(range(6), width):
        counts = rows.table(places).shares * N_ROWS
        noise = rng.laplace(0, scale, counts.shape)
        names = tuple(survey_network.NAMES[place] for place in places)
        tables.append(NoisyCounts(names, counts + noise, 2 * scale**2))
    return MeasuredTables(tables)


@pytest.mark.parametrize("seed", range(5))
def test_the_tree_is_the_one_of_the_largest_sum(seed: int) -> None:
    score = score_of(9, 2000, seed, degree=1)
    weights = pair_information(score)
    alone = np.array([score.local(one, ()) for one in range(9)])
    helps = np.zeros((9, 9), dtype=bool)
    for a, b in combinations(range(9), 2):
        helps[a, b] = score.local(b, (a,)) > alone[b]
    assert (np.triu(weights)[~helps] > 0).any()  # more than chance alone is not enough
    found = {frozenset(arc) for arc in chow_liu(score).arcs}
    heaviest = minimum_spanning_tree(np.triu(np.where(helps, -weights, 0.0))).toarray()
    expected = {frozenset((f"x{a}", f"x{b}")) for a, b in np.argwhere(heaviest)}
    assert found == expected


def test_the_tree_of_pairs_of_one_size_is_that_of_mutual_information() -> None:
    rng = np.random.default_rng(3)
    turned = rng.random((4000, 6)) < [0.5, 0.1, 0.2, 0.3, 0.2, 0.1]
    rows = np.cumsum(turned, axis=1) % 2
    score = BicScore(RowTables([Column(f"x{one}", 2) for one in range(6)], rows), degree=1)
    weights = np.zeros((6, 6))
    for a, b in combinations(range(6), 2):
        weights[a, b] = score.information(a, (b,)).found
    heaviest = minimum_spanning_tree(-weights).toarray()
    expected = {frozenset((f"x{a}", f"x{b}")) for a, b in np.argwhere(heaviest)}
    assert skeleton(chow_liu(score)) == expected
    assert len(expected) == 5


def test_columns_of_which_nothing_is_seen_stay_alone() -> None:
    shares = np.full((2, 2), 0.25)
    pairs = [
        NoisyCounts(("a", "b"), 1000 * shares, 10.0),
        NoisyCounts(("a", "c"), 1000 * shares, 10.0),
        NoisyCounts(("b", "c"), np.array([[450.0, 50.0], [50.0, 450.0]]), 10.0),
    ]
    score = BicScore(MeasuredTables(pairs), degree=1)
    assert skeleton(chow_liu(score)) == {frozenset("bc")}


@pytest.mark.parametrize("seed", range(6))
def test_a_climb_only_rises_to_where_no_change_helps(seed: int) -> None:
    score = score_of(7, 800, seed, degree=3)
    climb = hill_climbed(score)
    assert all(later > earlier for earlier, later in pairwise(climb.scores))
    assert climb.scores[-1] == pytest.approx(score.total(climb.dag))
    names = climb.dag.columns
    for a in names:
        for b in names:
            for arcs in (climb.dag.arcs - {(a, b)}, climb.dag.arcs - {(a, b)} | {(b, a)}):
                try:
                    changed = Dag(names, arcs)
                except ValueError:
                    continue
                if all(len(changed.parents(name)) <= 3 for name in names):
                    assert score.total(changed) <= score.total(climb.dag) + 1e-6


def test_a_climb_begins_where_it_is_told_to() -> None:
    score = score_of(6, 800, 1, degree=2)
    top = hill_climbed(score).dag
    assert list(hill_climbed(score, top).scores) == pytest.approx([score.total(top)])
    full = Dag(top.columns, frozenset(combinations(top.columns, 2)))
    with pytest.raises(ValueError, match="more than 2 parents"):
        hill_climbed(score, full)
    with pytest.raises(ValueError, match="the graph has the columns"):
        hill_climbed(score, Dag(("a",)))


@pytest.mark.parametrize("seed", range(4))
@pytest.mark.parametrize("degree", [1, 2, 3])
def test_the_best_network_is_the_best_of_all_543(seed: int, degree: int) -> None:
    columns, codes = made_up_rows(4, 300, seed)
    columns = [Column(name, one.size) for name, one in zip("abcd", columns, strict=True)]
    score = BicScore(RowTables(columns, codes), degree=degree)
    allowed = [
        dag for dag in all_dags("abcd") if all(len(dag.parents(one)) <= degree for one in "abcd")
    ]
    best = best_network(score)
    assert best in allowed
    assert score.total(best) == pytest.approx(max(map(score.total, allowed)))


@pytest.mark.parametrize("seed", range(8))
def test_the_best_network_is_at_least_as_good_as_a_climb_and_a_climb_as_nothing(seed: int) -> None:
    score = score_of(8, 500, seed, degree=3)
    best, climbed = (score.total(one) for one in (best_network(score), hill_climbed(score).dag))
    nothing = score.total(Dag(tuple(one.name for one in score.columns)))
    assert best >= climbed - 1e-6
    assert climbed >= nothing


def test_too_many_columns_are_refused() -> None:
    with pytest.raises(TooManyColumns, match=r"17 columns are too many.* at most 16"):
        best_network(score_of(17, 50, 1, degree=1))


@pytest.mark.parametrize("seed", range(3))
def test_the_survey_network_is_found_again_but_for_what_is_too_weak_to_see(seed: int) -> None:
    rows = survey_network.sampled(N_ROWS, seed)
    score = BicScore(RowTables(survey_network.columns(), rows), degree=2)
    best, climbed = best_network(score), hill_climbed(score).dag
    assert skeleton(best) <= skeleton(SURVEY)
    assert skeleton(climbed) <= skeleton(SURVEY) | MARRIED
    for found in (best, climbed):
        assert skeleton(SURVEY) - skeleton(found) <= WEAK
    assert score.total(best) >= score.total(SURVEY) - 1e-6
    assert skeleton(chow_liu(score)) <= skeleton(SURVEY)


def test_the_law_of_the_network_itself_gives_its_class() -> None:
    """Twenty million rows that are exactly as the law has them: nothing is too weak to see."""
    counts = survey_network.joint() * 2e7
    score = BicScore(MeasuredTables([NoisyCounts(survey_network.NAMES, counts, 0.0)]), degree=3)
    assert class_distance(SURVEY, best_network(score)) == 0
    assert hamming_distance(SURVEY, hill_climbed(score).dag) <= 6


@pytest.mark.parametrize("width", [2, 3])
def test_noise_hides_arcs_and_makes_none(width: int) -> None:
    """Every table with noise of scale 20 and then 400: a true skeleton, and then less of it."""
    n_found = []
    for scale in (20.0, 400.0):
        edges = set()
        for seed in range(4):
            score = BicScore(noisy_survey(scale, width, seed), degree=width - 1)
            for found in (best_network(score), hill_climbed(score).dag):
                assert len(skeleton(found) - skeleton(SURVEY)) <= (1 if width > 2 else 0)
                edges |= {(seed, edge) for edge in skeleton(found) & skeleton(SURVEY)}
        n_found.append(len(edges))
    assert n_found[0] > n_found[1]
