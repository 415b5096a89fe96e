"""The parts of the benchmark of federated synthesis: laws, scales and metrics that it stands on."""

from fractions import Fraction
from itertools import combinations
from math import log, log1p, sqrt

import numpy as np
import pytest
from scipy.stats import chisquare, kstest, laplace

from accountant.exact.choices import Contingency, grid_scores
from benchmarks.federation import Mean, seed_bars
from benchmarks.federation_flaim import DELTA, Variant, flaim, rho_of
from benchmarks.federation_holders import RowsHolder, SummedHolders, score_of, summed_cost
from benchmarks.federation_scores import exact_cross_entropy, pairs_divergence
from benchmarks.federation_seed import (
    WAYS,
    Holder,
    _summed,
    by_votes,
    greedy,
    independent,
    sensitivity,
)
from benchmarks.federation_tables import (
    Division,
    Table,
    degree_two_network,
    divided,
    entropy,
    of_network,
    poker,
    poker_classes,
    tree_network,
)
from benchmarks.federation_ways import learned, pairwise_rows
from benchmarks.marginal_distance import pairs_distance
from cube.statistic import Choice, ChoiceCandidate, Score
from synthesis import TableEstimate, known_sketch
from synthesis.privbayes import plain_attribute

ODDS = 1e-6


def tree(seed: int = 0, n_rows: int = 40_000) -> Table:
    return of_network("T1", tree_network(), n_rows, np.random.default_rng(seed))


def thirds(table: Table, seed: int = 0) -> list[Holder]:
    parts = divided(table, Division.EQUAL, 3, np.random.default_rng(seed))
    return [Holder(part, table.sizes) for part in parts]


def test_the_two_networks_have_the_seeds_entropy() -> None:
    for law in (tree_network(), degree_two_network()):
        assert law.sum() == pytest.approx(1)
        assert entropy(law) == pytest.approx(5.12, abs=1e-8)


@pytest.mark.parametrize(
    ("law", "alone", "of_one", "of_two"),
    [(tree_network(), 7.2599, 5.1200, 5.1200), (degree_two_network(), 7.4947, 5.547, 5.20)],
)
def test_networks_without_noise_have_the_cross_entropies_of_the_specification(
    law: np.ndarray, alone: float, of_one: float, of_two: float
) -> None:
    table = of_network("T", law, 40_000, np.random.default_rng(1))
    whole = Holder(table.train, table.sizes)
    assert exact_cross_entropy(law, independent(whole)) == pytest.approx(alone, abs=0.003)
    assert exact_cross_entropy(law, greedy(whole, 1)) == pytest.approx(of_one, abs=0.005)
    assert exact_cross_entropy(law, greedy(whole, 2)) == pytest.approx(of_two, abs=0.05)


def test_hands_have_the_classes_of_the_rules() -> None:
    suits = np.array([[0, 0, 0, 0, 0], [0, 1, 2, 3, 0]])
    ranks = {
        9: (0, [0, 9, 10, 11, 12]),
        8: (0, [4, 5, 6, 7, 8]),
        7: (1, [3, 3, 3, 3, 9]),
        6: (1, [3, 3, 3, 9, 9]),
        5: (0, [1, 3, 5, 7, 9]),
        4: (1, [12, 0, 11, 9, 10]),
        3: (1, [3, 3, 3, 8, 9]),
        2: (1, [3, 3, 8, 8, 9]),
        1: (1, [3, 3, 7, 8, 9]),
        0: (1, [1, 3, 5, 7, 9]),
    }
    for wanted, (of_suit, of_rank) in ranks.items():
        assert poker_classes(suits[of_suit][None], np.array([of_rank])) == [wanted]
    low = poker_classes(suits[1][None], np.array([[0, 1, 2, 3, 4]]))
    around = poker_classes(suits[1][None], np.array([[12, 0, 1, 2, 3]]))
    assert low == [4]
    assert around == [0]


def test_dealt_hands_are_hands_with_the_odds_of_the_rules() -> None:
    table = poker(30_000)
    rows = np.concatenate([table.train, table.test])
    cards = rows[:, :10:2] * 13 + rows[:, 1:10:2]
    assert all((cards[:, a] != cards[:, b]).all() for a, b in combinations(range(5), 2))
    wanted = np.array([1_302_540, 1_098_240, 123_552, 54_912, 10_200, 5_108, 3_744, 664])
    found = np.bincount(rows[:, 10], minlength=10)
    found = np.array([*found[:7], found[7:].sum()])
    assert chisquare(found, wanted / wanted.sum() * len(rows)).pvalue > ODDS


def test_every_division_keeps_the_rows() -> None:
    table = poker(2_000)
    rng = np.random.default_rng(3)
    for division in Division:
        parts = divided(table, division, 3, rng)
        lost = len(table.train) - sum(map(len, parts))
        assert min(map(len, parts)) >= 2
        assert lost == 0 if division not in {Division.CLASS, Division.ATTRIBUTE} else lost < 10
    assert [len(part) for part in divided(table, Division.CENTRAL, 3, rng)] == [len(table.train)]
    for part in divided(table, Division.CLASS, 3, rng):
        assert np.unique(part[:, table.target]).size == 1


@pytest.mark.parametrize(
    ("n_rows", "binary", "general"),
    [(303, 0.0319587, 0.0573325), (25_000, 6.42092e-4, 1.204187e-3)],
)
def test_information_moves_by_what_the_lemma_says(
    n_rows: int, binary: float, general: float
) -> None:
    assert sensitivity(n_rows, is_binary=True) / log(2) == pytest.approx(binary, rel=1e-5)
    assert sensitivity(n_rows, is_binary=False) / log(2) == pytest.approx(general, rel=1e-5)


def test_holders_that_clip_raise_every_empty_cell_by_half_the_scale_each() -> None:
    empty = Holder(np.zeros((0, 2), dtype=np.int64), (150, 150))
    noisy = _summed([empty] * 3, (0, 1), 100.0, np.random.default_rng(1))
    assert noisy.mean() == pytest.approx(3 * 100 / 2, rel=0.03)


def test_without_noise_the_seeds_ways_are_the_network_without_noise() -> None:
    table = tree()
    wanted = exact_cross_entropy(tree_network(), greedy(Holder(table.train, table.sizes), 1))
    rng = np.random.default_rng(0)
    for way in WAYS.values():
        network, _ = way(thirds(table), 1, 1e6, rng)
        assert exact_cross_entropy(tree_network(), network) == pytest.approx(wanted, abs=0.002)


@pytest.mark.slow
def test_the_seeds_ways_are_ordered_as_published() -> None:
    """At an epsilon of .3 statistics are nearest, and with two parents they are worse."""
    holders, rng = thirds(tree()), np.random.default_rng(0)

    def mean(way: str, degree: int, epsilon: float) -> float:
        found = [
            exact_cross_entropy(tree_network(), WAYS[way](holders, degree, epsilon, rng)[0])
            for _ in range(12)
        ]
        return float(np.mean(found))

    assert mean("statistics", 1, 0.3) < min(mean("votes", 1, 0.3), mean("models", 1, 0.3))
    assert 5.12 < mean("statistics", 1, 0.1) < 5.6 < mean("statistics", 2, 0.1) < 6.6


def test_one_holder_votes_as_the_exponential_mechanism_chooses() -> None:
    """Of two candidates for the second column, by their odds."""
    rng = np.random.default_rng(2)
    first = rng.integers(2, size=400)
    rows = np.column_stack([first, np.where(rng.random(400) < 0.7, first, 1 - first)])
    rows = np.column_stack([rows, rng.integers(2, size=400)])
    holder = Holder(rows, (2, 2, 2))
    epsilon = 4.0
    scores = np.array([holder.information((child, (0,))) for child in (1, 2)])
    weights = np.exp(epsilon / 4 * scores / (2 * sensitivity(400, is_binary=True)))
    chosen = [by_votes([holder], 1, epsilon, rng)[0].families[1][0] for _ in range(1_000)]
    found = np.bincount(chosen, minlength=3)[1:]
    assert chisquare(found, 1_000 * weights / weights.sum()).pvalue > ODDS


def test_the_score_by_floats_is_the_accountants() -> None:
    counts = np.random.default_rng(0).integers(0, 50, (3, 6))
    child, parents = np.nonzero(counts)
    table = Contingency(child, parents, counts[child, parents])
    for score in (Score.DISTANCE, Score.INFORMATION):
        (wanted,) = grid_scores(score, [table])
        assert score_of(score, counts.astype(float)) == pytest.approx(wanted, abs=2)


def test_a_holder_adds_up_what_it_spends_and_its_noise_has_the_scale() -> None:
    table = tree(n_rows=3_000)
    attributes = [plain_attribute(column) for column in table.columns]
    views = tuple(one.views[0] for one in attributes)
    holder = Holder(table.train, table.sizes)
    measurer = RowsHolder(holder, table.columns, np.random.default_rng(0))
    budget = Fraction(1, 10)
    found = measurer.tables([(views[6], views[0])] * 500, budget)
    noise = np.array(found) - holder.counts((0, 6)).T
    assert kstest(noise.ravel(), laplace(scale=10).cdf).pvalue > ODDS
    assert kstest(noise.ravel(), laplace(scale=13).cdf).pvalue < ODDS
    candidates = (ChoiceCandidate(1, (0,)), ChoiceCandidate(6, (0,)))
    choice = Choice(Score.DISTANCE, views, candidates)
    scores = np.array(
        [score_of(choice.score, holder.counts((0, child)).T) / 2**20 for child in (1, 6)]
    )
    weights = np.exp(float(budget) / 10 * (scores - scores.max()) / (2 * 2))
    chosen = [measurer.choose(choice, budget / 10) for _ in range(1_000)]
    expected = 1_000 * weights / weights.sum()
    assert chisquare(np.bincount(chosen, minlength=2), expected).pvalue > ODDS
    assert measurer.spent == 500 * budget + 1_000 * budget / 10


@pytest.mark.parametrize("gaussian", [False, True])
def test_sums_of_holders_have_the_noise_that_is_planned(*, gaussian: bool) -> None:
    table = tree(n_rows=3_000)
    holders = thirds(table)
    exact = Holder(table.train, table.sizes).counts((6,))
    rng = np.random.default_rng(0)

    def bought() -> TableEstimate:
        measurer = SummedHolders(holders, table.columns, rng, gaussian=gaussian)
        measurer.one_ways({"c06": 0.04})
        measurer.one_ways({"c06": 0.06})
        assert measurer.spent == pytest.approx(0.1)
        (one,) = measurer.known().tables
        return one

    noise = np.array([bought().values - exact for _ in range(1_500)])
    assert np.var(noise) == pytest.approx(float(bought().variance[0]), rel=0.15)
    cost = summed_cost(3, gaussian=gaussian)
    wanted = cost.deviation / 0.1**cost.power
    assert np.abs(noise).mean() == pytest.approx(wanted, rel=0.06)


def test_summed_scores_are_never_below_the_distance_of_the_sum() -> None:
    table = poker(3_000)
    whole = Holder(table.train, table.sizes)
    for division in (Division.EQUAL, Division.CLASS):
        parts = divided(table, division, 3, np.random.default_rng(0))
        holders = [Holder(part, table.sizes) for part in parts]
        measurer = SummedHolders(holders, table.columns, np.random.default_rng(0))
        measurer.count(1e6)
        measurer.one_ways({column.name: 1e6 for column in table.columns})
        sketch = known_sketch(table.columns, measurer.known())
        scores = measurer.scores(sketch, 1e9)
        for candidate, score in zip(sketch.candidates, scores.tolist(), strict=True):
            counts = whole.counts(tuple(int(name[1:]) for name in candidate.scope))
            for axis, groups in enumerate(candidate.groups):
                counts = groups.summed(counts, axis)
            distance = np.abs(counts - sketch.reference(candidate)).sum()
            assert score > distance - 0.01 * len(table.train)


def test_rho_is_what_epsilon_and_delta_allow() -> None:
    assert rho_of(1.0, 1e-5) == pytest.approx(0.0306, abs=1e-3)
    for epsilon in (0.1, 1.0, 10.0):
        rho = rho_of(epsilon, DELTA)
        orders = 1 + np.geomspace(1e-3, 1e6, 4_000)
        deltas = (
            (orders - 1) * (orders * rho - epsilon)
            - np.log(orders - 1)
            + orders * np.array([log1p(-1 / one) for one in orders.tolist()])
        )
        assert deltas.min() == pytest.approx(log(DELTA), rel=1e-3)
        assert rho + 2 * sqrt(rho * log(1 / DELTA)) >= epsilon


@pytest.mark.slow
def test_flaim_with_a_large_budget_has_the_pairs() -> None:
    table = tree(n_rows=1_000)
    rng = np.random.default_rng(0)
    rows, sent = flaim(thirds(table), table.columns, 1e3, rng, Variant(trusted_sum=False))
    apart = independent(Holder(table.train, table.sizes)).drawn(1_000, rng)
    found = pairs_distance(table.train, rows, table.sizes)
    assert found < 0.5 * pairs_distance(table.train, apart, table.sizes)
    assert sent.n_rounds == 11


def test_our_statistics_find_the_most_likely_tree() -> None:
    """That of T2 by information; the one by distance from independence has 5.60 bits."""
    law, rng = degree_two_network(), np.random.default_rng(0)
    table = of_network("T2", law, 40_000, rng)
    for _ in range(4):  # each starts with another column
        network = learned(table, thirds(table), "ours", "statistics", 1, 20.0, rng).network
        assert exact_cross_entropy(law, network) == pytest.approx(5.547, abs=0.01)


@pytest.mark.slow
def test_ours_and_pairwise_stay_within_their_budgets_and_learn() -> None:
    table, rng = tree(n_rows=20_000), np.random.default_rng(0)
    for way in WAYS:
        network = learned(table, thirds(table), "ours", way, 1, 20.0, rng).network
        assert 5.11 < exact_cross_entropy(tree_network(), network) < 5.3
    rows, _ = pairwise_rows(table, thirds(table), 20.0, rng)
    assert pairs_distance(table.train, rows, table.sizes) < 0.01


def test_divergence_is_zero_of_the_same_law_and_as_defined() -> None:
    rows = np.array([[0, 0]] * 6 + [[1, 1]] * 2)
    other = np.array([[0, 0]] * 4 + [[1, 1]] * 4)
    law, shares = np.array([6, 2]) / 8, np.array([5, 5]) / 12
    wanted = float((law * np.log2(law / shares)).sum())
    assert pairs_divergence(rows, other, (2, 2)) == pytest.approx(wanted)
    many = np.repeat(rows, 10_000, axis=0)
    assert pairs_divergence(rows, many, (2, 2)) == pytest.approx(0, abs=1e-3)


def test_a_bar_fails_for_what_is_worse_by_more_than_chance() -> None:
    def means(more: float) -> dict[tuple[object, ...], dict[str, Mean]]:
        return {
            (name, 3, degree, epsilon, way, whose): {
                "cross_entropy": Mean(6.0 + more * (whose == "ours"), 0.01)
            }
            for name in ("T1", "T2")
            for degree in (1, 2)
            for epsilon in (0.01, 0.03, 0.1, 0.3, 1.0)
            for way in WAYS
            for whose in ("seed", "ours")
        }

    assert all(bar.holds for bar in seed_bars(means(0.04)))
    assert not any(bar.holds for bar in seed_bars(means(0.05)))
