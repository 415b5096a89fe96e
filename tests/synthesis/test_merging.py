"""Joined models beside the mixture they stand for, computed by hand or by brute force."""

from itertools import combinations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from numpy.typing import NDArray

from cube.query import Scope
from synthesis.buckets import Buckets
from synthesis.merging import distances, drawn_levels, merged_model
from synthesis.model import PairTable, PairwiseModel
from synthesis.privbayes.network import (
    Attribute,
    BayesianNetwork,
    Node,
    Parent,
    grouped_attribute,
)
from synthesis.strata import StratifiedModel
from synthesis.tables import Column, Floats
from tests.support.networks import GOLDEN, joint

RNG = np.random.default_rng
NAMES = ("A", "B", "C", "D")


def network(seed: int, total: float, order: tuple[str, ...] = NAMES) -> BayesianNetwork:
    """Two or three classes of each of four columns, each of which depends on the two before it."""
    draw = RNG(seed)
    sizes = dict(zip(NAMES, (2, 3, 2, 3), strict=True))
    nodes, laws = [], []
    for place, name in enumerate(order):
        parents = order[max(0, place - 2) : place]
        nodes.append(Node(name, tuple(map(Parent, parents)), 2))
        shape = [sizes[one] for one in parents]
        laws.append(draw.dirichlet(np.ones(sizes[name]), size=shape or None))
    attributes = tuple(Attribute.plain(name, sizes[name]) for name in NAMES)
    return BayesianNetwork(attributes, tuple(nodes), tuple(laws), total)


def pairwise(seed: int, total: float, *, coarse: bool = False) -> PairwiseModel:
    """Columns a, b, c of 3, 4 and 2 levels; the levels of b in two buckets if it is coarse."""
    draw = RNG(seed)
    columns = (Column("a", 3), Column("b", 4), Column("c", 2))
    table = draw.dirichlet(np.ones(12)).reshape(3, 4)
    b_labels = np.array([0, 1, 1, 0]) if coarse else np.arange(4)
    buckets = {
        "a": Buckets(np.arange(3)),
        "b": Buckets(b_labels),
        "c": Buckets(np.arange(2)),
    }
    ab = buckets["b"].summed(table, 1)
    levels = table.sum(axis=0)
    groups_b = Buckets(np.arange(buckets["b"].n_buckets))
    pairs: dict[Scope, PairTable] = {
        ("a", "b"): PairTable((buckets["a"], groups_b), total * ab, 3.0)
    }
    return PairwiseModel(
        columns=columns,
        buckets=buckets,
        total=total,
        shares={"a": ab.sum(axis=1), "b": ab.sum(axis=0), "c": draw.dirichlet(np.ones(2))},
        pairs=pairs,
        parts={"a": np.ones(3), "b": levels / levels_of(levels, b_labels), "c": np.ones(2)},
    )


def levels_of(levels: Floats, labels: NDArray[np.int64]) -> Floats:
    return np.asarray(np.bincount(labels, weights=levels)[labels])


def level_table(model: PairwiseModel) -> Floats:
    """The shares of (a, b) over levels, by the definition."""
    found = np.zeros((3, 4))
    table = model.pairs["a", "b"]
    for a, b in np.ndindex(3, 4):
        bucket = int(model.buckets["b"].labels[b])
        found[a, b] = table.counts[a, int(table.groups[1].labels[bucket])] * model.parts["b"][b]
    return np.asarray(found / model.total)


def test_disjoint_parts_of_a_known_law_are_joined_to_it() -> None:
    """Its rows with A = 1, and those with A = 0, in proportion: exactly the law itself."""
    halves = []
    for value, share in enumerate((0.8, 0.2)):
        first = np.eye(2)[value]
        laws = (first, *GOLDEN.conditionals[1:])
        halves.append(BayesianNetwork(GOLDEN.attributes, GOLDEN.nodes, laws, 10_000 * share))
    merged = merged_model(halves, [one.total for one in halves], RNG(1))
    assert isinstance(merged, BayesianNetwork)
    assert np.abs(joint(merged) - joint(GOLDEN)).max() < 1e-9
    assert merged.total == pytest.approx(10_000)


@pytest.mark.parametrize("by_rows", [False, True])
def test_weights_matter(by_rows: bool) -> None:
    one, other = network(1, 40_000.0), network(2, 40_000.0)
    for weights, expected in (([1, 0], joint(one)), ([0, 1], joint(other))):
        merged = merged_model([one, other], weights, RNG(3), by_rows=by_rows)
        assert isinstance(merged, BayesianNetwork)
        assert np.abs(joint(merged) - expected).sum() / 2 < (0.02 if by_rows else 1e-9)


@given(
    seeds=st.lists(st.integers(0, 1000), min_size=2, max_size=4, unique=True),
    weights=st.lists(st.floats(0.1, 10), min_size=4, max_size=4),
    data=st.data(),
)
@settings(max_examples=25, deadline=None)
def test_with_all_parents_a_network_is_the_mixture(
    seeds: list[int], weights: list[float], data: st.DataObject
) -> None:
    """Of any networks, in any order of their columns and with any weights."""
    orders = [tuple(data.draw(st.permutations(NAMES))) for _ in seeds]
    parts = [network(seed, 1000.0, order) for seed, order in zip(seeds, orders, strict=True)]
    own = np.array(weights[: len(parts)])
    merged = merged_model(parts, own.tolist(), RNG(1), degree=3)
    assert isinstance(merged, BayesianNetwork)
    mixture = np.tensordot(own / own.sum(), np.stack([joint(one) for one in parts]), 1)
    assert np.abs(joint(merged) - mixture).max() < 1e-9
    assert max(distances(parts, own.tolist(), merged, RNG(2)).values()) < 1e-9


def test_exact_tables_are_nearer_to_the_mixture_than_drawn_rows() -> None:
    parts = [network(seed, 2000.0) for seed in (1, 2, 3)]
    mean = {
        by_rows: np.mean(
            list(
                distances(
                    parts,
                    [1, 1, 1],
                    merged_model(parts, [1, 1, 1], RNG(4), by_rows=by_rows),
                    RNG(5),
                ).values()
            )
        )
        for by_rows in (False, True)
    }
    assert mean[False] < mean[True]


@given(
    seeds=st.tuples(st.integers(0, 999), st.integers(1000, 1999)),
    share=st.floats(0.01, 0.99),
    coarse=st.tuples(st.booleans(), st.booleans()),
)
@settings(max_examples=25, deadline=None)
def test_pairwise_models_are_joined_table_by_table(
    seeds: tuple[int, int], share: float, coarse: tuple[bool, bool]
) -> None:
    one, other = (
        pairwise(seed, 500.0 + seed, coarse=own) for seed, own in zip(seeds, coarse, strict=True)
    )
    merged = merged_model([one, other], [share, 1 - share], RNG(1))
    assert isinstance(merged, PairwiseModel)
    assert merged.total == pytest.approx(one.total + other.total)
    expected = share * level_table(one) + (1 - share) * level_table(other)
    if coarse[0] == coarse[1]:
        assert merged.buckets["b"].n_buckets == one.buckets["b"].n_buckets
    groups = [own.labels for own in merged.pairs["a", "b"].groups]
    labels = [groups[0], groups[1][merged.buckets["b"].labels]]
    summed = np.zeros(merged.pairs["a", "b"].counts.shape)
    np.add.at(summed, np.ix_(*labels), expected)
    assert merged.pairs["a", "b"].counts / merged.total == pytest.approx(summed, abs=1e-9)
    mixed_c = share * one.shares["c"] + (1 - share) * other.shares["c"]
    assert merged.shares["c"] == pytest.approx(mixed_c)
    noise = np.hypot(share * 3 / one.total, (1 - share) * 3 / other.total)
    assert merged.pairs["a", "b"].noise / merged.total == pytest.approx(noise)


def test_a_pair_that_one_model_has_no_table_of_is_that_of_its_rows() -> None:
    one, other = pairwise(1, 1000.0), pairwise(2, 1000.0)
    lacking = PairwiseModel(one.columns, one.buckets, one.total, one.shares, {}, one.parts)
    merged = merged_model([lacking, other], [1, 1], RNG(1))
    assert isinstance(merged, PairwiseModel)
    independent = np.outer(one.shares["a"], one.shares["b"])
    expected = (independent + level_table(other)) / 2
    found = merged.pairs["a", "b"].counts / merged.total
    assert np.abs(found - expected).sum() / 2 < 0.01


def test_models_by_class_are_joined_class_by_class() -> None:
    """A model that has no row in a class says nothing of it."""
    columns = (Column("t", 2), Column("a", 3), Column("b", 4), Column("c", 2))

    def by_class(seed: int, totals: tuple[float, float]) -> StratifiedModel:
        models: dict[tuple[int, ...], PairwiseModel] = {
            (place,): pairwise(seed + place, one) for place, one in enumerate(totals)
        }
        return StratifiedModel(columns, ("t",), models)

    one, other = by_class(1, (300.0, 100.0)), by_class(5, (100.0, 0.0))
    merged = merged_model([one, other], [1, 3], RNG(1))
    assert isinstance(merged, StratifiedModel)
    assert merged.total == pytest.approx(500.0)
    first = merged.models[0,].total / merged.total
    assert first == pytest.approx(0.25 * 0.75 + 0.75)
    only = merged.models[1,].pairs["a", "b"].counts / merged.models[1,].total
    assert only == pytest.approx(level_table(one.models[1,]))


def test_models_of_two_kinds_are_joined_by_their_rows() -> None:
    one = pairwise(1, 5000.0)
    law = (one.shares["a"], one.shares["b"], one.shares["c"])
    sizes = {"a": 3, "b": 4, "c": 2}
    other = BayesianNetwork(
        tuple(Attribute.plain(name, size) for name, size in sizes.items()),
        tuple(Node(name) for name in sizes),
        law,
        5000.0,
    )
    merged = merged_model([one, other], [1, 1], RNG(1))
    assert isinstance(merged, BayesianNetwork)
    assert max(distances([one, other], [1, 1], merged, RNG(2)).values()) < 0.01
    assert drawn_levels(merged, RNG(3), 10).shape == (10, 3)


@pytest.mark.parametrize("weights", [[1], [0, 0], [-1, 2], [float("nan"), 1], [float("inf"), 1]])
def test_weights_that_are_none_are_refused(weights: list[float]) -> None:
    with pytest.raises(ValueError, match="weight"):
        merged_model([GOLDEN, GOLDEN], weights, RNG(1))


def test_other_columns_are_refused() -> None:
    with pytest.raises(ValueError, match="same columns"):
        merged_model([GOLDEN, network(1, 10.0)], [1, 1], RNG(1))


def test_coarser_views_stay_where_all_networks_have_them() -> None:
    city = grouped_attribute("city", [[0, 0, 1, 1]])
    parts = []
    for seed in (1, 2):
        law = RNG(seed).dirichlet(np.ones(4))
        given_group = RNG(seed).dirichlet(np.ones(2), size=2)
        nodes = (Node("city"), Node("b", (Parent("city", 1),), 1))
        attributes = (city, Attribute.plain("b", 2))
        parts.append(BayesianNetwork(attributes, nodes, (law, given_group), 8.0))
    merged = merged_model(parts, [1, 1], RNG(1), degree=1)
    assert isinstance(merged, BayesianNetwork)
    assert merged.attribute("city") is city


def test_every_pair_of_columns_is_compared() -> None:
    merged = merged_model([GOLDEN, GOLDEN], [1, 1], RNG(1))
    assert set(distances([GOLDEN], [1], merged, RNG(1))) == set(combinations("ABCD", 2))
