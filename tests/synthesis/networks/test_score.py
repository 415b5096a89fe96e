"""BIC: the textbook's on exact counts, and not misled by noise."""

import math
from itertools import combinations

import numpy as np
import pytest

from synthesis.networks.graph import EquivalenceClass
from synthesis.networks.score import BicScore, mutual_information, null_information
from synthesis.networks.source import MeasuredTables, NoisyCounts, RowTables, ShareTable
from synthesis.tables import Column
from tests.support import survey_network
from tests.support.all_dags import all_dags
from tests.support.survey_network import NAMES, SURVEY


def survey_score(n_rows: int, degree: int, seed: int = 3) -> BicScore:
    rows = survey_network.sampled(n_rows, seed)
    return BicScore(RowTables(survey_network.columns(), rows), degree=degree)


def textbook_bic(rows: np.ndarray, child: int, parents: list[int]) -> float:
    """ln L - (k / 2) ln n, a row after another."""
    sizes = survey_network.joint().shape
    counts: dict[tuple[int, ...], dict[int, int]] = {}
    for row in rows:
        seen = counts.setdefault(tuple(int(row[one]) for one in parents), {})
        seen[int(row[child])] = seen.get(int(row[child]), 0) + 1
    fit = sum(
        n * math.log(n / sum(seen.values())) for seen in counts.values() for n in seen.values()
    )
    n_free = (sizes[child] - 1) * math.prod(sizes[one] for one in parents)
    return float(fit - n_free * math.log(len(rows)) / 2)


def test_on_exact_counts_it_is_the_textbooks_score() -> None:
    rows = survey_network.sampled(400, 3)
    score = survey_score(400, degree=3)
    for child in range(6):
        others = [place for place in range(6) if place != child]
        for width in range(4):
            for parents in combinations(others, width):
                expected = textbook_bic(rows, child, list(parents))
                assert score.local(child, parents) == pytest.approx(expected, rel=1e-9)


def test_the_survey_network_has_as_many_free_shares_as_published() -> None:
    """The penalty alone: ln L of the same rows a thousand times is a thousand times as much."""
    rows = survey_network.sampled(100, 3)
    few, many = (
        BicScore(RowTables(survey_network.columns(), one), degree=2).total(SURVEY)
        for one in (rows, np.repeat(rows, 1000, axis=0))
    )
    n_free = 2 * (1000 * few - many) / (math.log(100_000) - 1000 * math.log(100))
    assert n_free == pytest.approx(survey_network.N_PARAMETERS)


def test_graphs_that_no_table_tells_apart_have_the_same_score() -> None:
    rows = survey_network.sampled(300, 7)[:, 2:]
    score = BicScore(RowTables(survey_network.columns()[2:], rows), degree=3)
    scores: dict[EquivalenceClass, list[float]] = {}
    for dag in all_dags("EORT"):
        scores.setdefault(EquivalenceClass.of(dag), []).append(score.total(dag))
    assert len(scores) == 185
    for own in scores.values():
        assert own == pytest.approx([own[0]] * len(own), rel=1e-9)


def test_mutual_information_by_its_definition() -> None:
    shares = np.random.default_rng(1).dirichlet(np.ones(24)).reshape(2, 3, 4)
    for axis in range(3):
        others = tuple(one for one in range(3) if one != axis)
        product = shares.sum(axis=others, keepdims=True) * shares.sum(axis=axis, keepdims=True)
        expected = (shares * np.log(shares / product)).sum()
        assert mutual_information(shares[np.newaxis], axis)[0] == pytest.approx(expected)


@pytest.mark.parametrize("scale", [5.0, 30.0, 120.0])
def test_what_noise_shows_of_independent_columns_is_known(scale: float) -> None:
    """The mean over 200 tables with Laplace noise, against the mean that each expects: 25 %."""
    rng = np.random.default_rng(8)
    law = np.outer([0.7, 0.2, 0.1], [0.4, 0.3, 0.2, 0.1])
    found, null = [], []
    for _ in range(200):
        counts = rng.multinomial(5000, law.ravel()) + rng.laplace(0, scale, 12)
        source = MeasuredTables([NoisyCounts(("a", "b"), counts.reshape(3, 4), 2 * scale**2)])
        table = source.table((0, 1))
        found.append(mutual_information(table.shares[np.newaxis], 0)[0])
        null.append(null_information(table, 0, rng))
    assert np.mean(null) == pytest.approx(np.mean(found), rel=0.25)
    # What rows without noise would show is far less, so the allowance is what makes the difference.
    assert np.mean(found) > 1.3 * 6 / (2 * 5000)


@pytest.mark.parametrize("scale", [10.0, 50.0, 200.0])
def test_noise_makes_no_arc_between_independent_columns(scale: float) -> None:
    """At most 4 of 100 tables score an arc above none; as if exact, most of them would."""
    rng = np.random.default_rng(11)
    sizes = (4, 8)
    law = np.outer(rng.dirichlet(np.full(4, 2.0)), rng.dirichlet(np.full(8, 2.0)))
    arcs = {"said": 0, "unsaid": 0}
    for _ in range(100):
        noisy = rng.multinomial(5000, law.ravel()) + rng.laplace(0, scale, 32)
        counts = noisy.reshape(sizes)
        for name, variance in (("said", 2 * scale**2), ("unsaid", 0.0)):
            score = BicScore(MeasuredTables([NoisyCounts(("a", "b"), counts, variance)]), degree=1)
            arcs[name] += score.local(0, (1,)) > score.local(0, ())
    assert arcs["said"] <= 4
    if scale > 10:
        assert arcs["unsaid"] >= 90


def test_rare_levels_make_no_arc_either_way_but_one() -> None:
    """Of 200 tables of independent columns: 3 arcs, and 25 or 42 by rules that look sufficient."""
    rng = np.random.default_rng(1)
    law = np.outer([0.95, 0.05], [0.25, 0.75])
    arcs = {"ours": 0, "mean taken off": 0, "fewer rows": 0}
    for _ in range(200):
        counts = (rng.multinomial(50_000, law.ravel()) + rng.laplace(0, 100, 4)).reshape(2, 2)
        score = BicScore(MeasuredTables([NoisyCounts(("a", "b"), counts, 20_000.0)]), degree=1)
        seen, n = score.information(0, (1,)), score.n_effective
        penalty = math.log(n) / (2 * n)
        arcs["ours"] += score.local(0, (1,)) > score.local(0, ())
        arcs["mean taken off"] += seen.found - max(0.0, seen.null - 1 / (2 * n)) > penalty
        arcs["fewer rows"] += seen.found > penalty
    assert arcs["ours"] <= 8
    assert arcs["mean taken off"] >= 15
    assert arcs["fewer rows"] >= 30


@pytest.mark.parametrize("scale", [3000.0, 100_000.0])
def test_noise_that_leaves_no_rows_hides_everything(scale: float) -> None:
    """At most 10 of 100 tables; the logarithm of so few rows, or of none, asks for less."""
    rng = np.random.default_rng(1)
    arcs = 0
    for _ in range(100):
        counts = rng.multinomial(20_000, [0.25] * 4) + rng.laplace(0, scale, 4)
        table = NoisyCounts(("a", "b"), counts.reshape(2, 2), 2 * scale**2)
        score = BicScore(MeasuredTables([table]), degree=1)
        assert score.n_effective < 50
        arcs += score.local(0, (1,)) > score.local(0, ())
    assert arcs <= 10


def test_a_dependence_that_noise_leaves_visible_is_scored() -> None:
    rng = np.random.default_rng(12)
    law = 0.7 * np.full((4, 4), 1 / 16) + 0.3 * np.eye(4) / 4
    arcs = 0
    for _ in range(50):
        counts = (rng.multinomial(5000, law.ravel()) + rng.laplace(0, 50, 16)).reshape(4, 4)
        score = BicScore(MeasuredTables([NoisyCounts(("a", "b"), counts, 5000.0)]), degree=1)
        arcs += score.local(1, (0,)) > score.local(1, ())
    assert arcs >= 47


def test_scores_are_about_the_rows_that_the_noisiest_table_leaves() -> None:
    counts = survey_network.joint().sum(axis=(3, 4, 5)) * 9000
    pairs = [
        NoisyCounts(("A", "S"), counts.sum(axis=2), 40.0),
        NoisyCounts(("A", "E"), counts.sum(axis=1), 40.0),
        NoisyCounts(("S", "E"), counts.sum(axis=0), 9000.0),
    ]
    score = BicScore(MeasuredTables(pairs), degree=1)
    assert score.n_effective == pytest.approx(9000 / (1 + 4))
    again = BicScore(MeasuredTables(pairs), degree=1)
    assert score.local(2, (0,)) == again.local(2, (0,))  # whatever was asked before


def test_the_bounds_on_parents_are_said() -> None:
    score = survey_score(100, degree=2)
    assert score.may_have(0, (1, 2))
    assert not score.may_have(0, (1, 2, 3))
    wide = [Column("a", 300), Column("b", 300)]
    assert not BicScore(RowTables(wide, np.zeros((3, 2), np.int64)), degree=1).may_have(0, (1,))
    with pytest.raises(ValueError, match="6 parents need tables of 7 columns"):
        survey_score(100, degree=6)
    assert isinstance(score.source.table((0,)), ShareTable)
    assert [one.name for one in score.columns] == list(NAMES)
