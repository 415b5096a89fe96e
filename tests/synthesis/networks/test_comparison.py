"""Metrics of graphs and of shares: by hand, and against their definitions."""

import math

import numpy as np
import pytest
from scipy.spatial.distance import jensenshannon
from scipy.stats import entropy

from synthesis.networks.comparison import (
    LinkCounts,
    class_distance,
    count_error,
    cross_entropy,
    hamming_distance,
    js_distance,
    js_divergence,
    kl_divergence,
    link_shares,
    total_variation,
)
from synthesis.networks.graph import Dag, EquivalenceClass
from tests.support.all_dags import all_dags

NAMES = ("a", "b", "c")
TRUTH = Dag(NAMES, frozenset({("a", "b"), ("b", "c")}))
FOUND = Dag(NAMES, frozenset({("a", "b")}))


def test_what_was_missed_is_no_false_alarm() -> None:
    """Of 6 ordered pairs: one arc is found, one is missed, none is made up."""
    counts = LinkCounts.of(TRUTH, FOUND)
    assert counts == LinkCounts(1, 0, 1, 4)
    assert counts.sensitivity == 1 / 2  # precision, which is 1, if the two were swapped
    assert counts.specificity == 1
    assert counts.average_recall == 3 / 4
    assert counts.accuracy == 5 / 6
    assert LinkCounts.of(FOUND, TRUTH) == LinkCounts(1, 1, 0, 4)


def test_each_kind_of_error_has_its_own_count() -> None:
    """Of 6 ordered pairs: a to b is found, b to c is missed, a to c and c to b are made up.

    With the two kinds exchanged, as they are in print, sensitivity would be 1/3.
    """
    counts = LinkCounts.of(TRUTH, Dag(NAMES, frozenset({("a", "b"), ("a", "c"), ("c", "b")})))
    assert counts == LinkCounts(
        true_positives=1, false_positives=2, false_negatives=1, true_negatives=2
    )
    assert (counts.sensitivity, counts.specificity) == (1 / 2, 2 / 4)
    assert (counts.average_recall, counts.accuracy) == (1 / 2, 3 / 6)


def test_errors_of_counts_add_up_in_records() -> None:
    truth = np.array([[4.0, 1.0], [0.0, 5.0]])
    found = np.array([[3.0, 3.0], [-0.5, 5.0]])
    assert count_error(truth, found) == count_error(found, truth) == 1 + 2 + 0.5
    assert count_error(truth, truth) == 0
    # It sees that a total is wrong, which a distance of shares does not.
    assert count_error(truth, 2 * truth) == truth.sum()
    assert js_distance(truth, 2 * truth) == 0
    with pytest.raises(ValueError, match="shapes"):
        count_error(truth, np.ones(4))


@pytest.mark.parametrize("dag", [TRUTH, Dag(NAMES), Dag(("a",))])
def test_a_graph_is_all_that_it_should_be_beside_itself(dag: Dag) -> None:
    counts = LinkCounts.of(dag, dag)
    assert counts.sensitivity == counts.specificity == counts.accuracy == 1
    assert hamming_distance(dag, dag) == class_distance(dag, dag) == 0


def test_a_turned_arc_is_one_change() -> None:
    turned = Dag(NAMES, frozenset({("b", "a"), ("b", "c")}))
    assert hamming_distance(TRUTH, turned) == 1
    assert class_distance(TRUTH, turned) == 0
    collider = Dag(NAMES, frozenset({("a", "b"), ("c", "b")}))
    assert hamming_distance(TRUTH, collider) == 1
    assert class_distance(TRUTH, collider) == 2
    assert class_distance(collider, Dag(NAMES)) == 2
    assert hamming_distance(collider, TRUTH) == 1


def test_the_distance_of_classes_is_nothing_for_one_class_alone() -> None:
    for one in all_dags("abc"):
        for other in all_dags("abc"):
            is_same = EquivalenceClass.of(one) == EquivalenceClass.of(other)
            assert (class_distance(one, other) == 0) == is_same
            assert class_distance(one, other) == class_distance(other, one)


def test_graphs_of_other_columns_are_not_compared() -> None:
    for compare in (LinkCounts.of, hamming_distance, class_distance):
        with pytest.raises(ValueError, match="graphs over"):
            compare(TRUTH, Dag(("a", "b")))


def test_divergences_are_those_of_the_definition() -> None:
    rng = np.random.default_rng(1)
    for _ in range(20):
        p, q = rng.dirichlet(np.ones(6)), rng.dirichlet(np.ones(6))
        assert kl_divergence(p, q) == pytest.approx(float((p * np.log2(p / q)).sum()))
        assert js_distance(p, q) == pytest.approx(float(jensenshannon(p, q, base=2)))
        assert js_divergence(p, q) == pytest.approx(js_divergence(q, p))
        assert 0 < js_divergence(p, q) < 1
        assert js_divergence(p, p) == kl_divergence(p, p) == 0
        assert kl_divergence(p, 3 * p) == pytest.approx(0, abs=1e-12)


def test_the_cross_entropy_of_kept_out_rows_is_that_of_scipy() -> None:
    rng = np.random.default_rng(3)
    for _ in range(20):
        held_out, model = rng.integers(0, 30, (2, 8)).astype(np.float64)
        smoothed = (model + 0.5) / (model.sum() + 4)
        shares = held_out / held_out.sum()
        bits, divergence = cross_entropy(held_out, model)
        assert divergence == pytest.approx(float(entropy(shares, smoothed, base=2)))
        assert bits == pytest.approx(divergence + float(entropy(shares, base=2)))
    assert math.isfinite(cross_entropy(np.array([1.0, 0.0]), np.array([0.0, 5.0]))[0])
    with pytest.raises(ValueError, match="shapes"):
        cross_entropy(np.ones(2), np.ones(3))


def test_cells_of_zero_and_below_zero_are_handled() -> None:
    left, right = np.array([1.0, 0.0]), np.array([-3.0, 2.0])
    assert js_divergence(left, right) == js_distance(left, right) == 1
    assert kl_divergence(left, right) == math.inf
    with pytest.raises(ValueError, match="positive count"):
        js_divergence(left, np.array([-1.0, 0.0]))
    with pytest.raises(ValueError, match="shapes"):
        kl_divergence(left, np.ones(3))


def test_links_are_counted_over_a_set_of_graphs() -> None:
    """By hand: a - b in two of three graphs, once each way; b - c in all, always one way."""
    arcs = [{("a", "b"), ("b", "c")}, {("b", "a"), ("b", "c")}, {("b", "c")}]
    first, second = link_shares([Dag(NAMES, frozenset(one)) for one in arcs])
    assert (first.columns, first.n_forward, first.n_backward, first.share) == (("b", "c"), 3, 0, 1)
    assert (second.columns, second.n_forward, second.n_backward) == (("a", "b"), 1, 1)
    assert second.share == pytest.approx(2 / 3)
    assert link_shares([Dag(NAMES)]) == ()
    with pytest.raises(ValueError, match="must be a graph"):
        link_shares([])
    with pytest.raises(ValueError, match="graphs over"):
        link_shares([TRUTH, Dag(("a", "b"))])


def test_the_total_variation_is_the_largest_difference_of_an_event() -> None:
    """By brute force: over all sets of cells."""
    rng = np.random.default_rng(2)
    p, q = rng.dirichlet(np.ones(6)), rng.dirichlet(np.ones(6))
    events = np.array([[event >> cell & 1 for cell in range(6)] for event in range(64)])
    assert total_variation(p, 5 * q) == pytest.approx(float((events @ (p - q)).max()))
    assert total_variation(p, p) == 0
    with pytest.raises(ValueError, match="shapes"):
        total_variation(p, np.ones(3))
