"""What is said of a learned network: support of arcs, certain directions, and its texts."""

import json

import numpy as np
import pytest

from synthesis.networks.graph import Dag
from synthesis.networks.learned import (
    LearnedArc,
    LearnedLaw,
    LearnedNetwork,
    Method,
    learned,
    network_dot,
    network_json,
)
from synthesis.networks.score import BicScore
from synthesis.networks.search import TooManyColumns
from synthesis.networks.source import MeasuredTables, NoisyCounts, RowTables
from tests.support import survey_network


def survey(degree: int) -> BicScore:
    counts = survey_network.joint() * 2e7
    source = MeasuredTables([NoisyCounts(survey_network.NAMES, counts, 0.0)])
    return BicScore(source, degree=degree)


def test_support_is_what_the_score_loses_without_an_arc() -> None:
    score = survey(2)
    found = learned(score, Method.EXACT)
    assert len(found.arcs) == 6
    assert found.score == pytest.approx(score.total(found.dag))
    for arc in found.arcs:
        without = Dag(found.dag.columns, found.dag.arcs - {(arc.parent, arc.child)})
        assert arc.support == pytest.approx(found.score - score.total(without), rel=1e-6)
        assert arc.support > 0
        assert arc.is_directed  # its two colliders say all directions


@pytest.mark.parametrize("method", Method)
def test_a_tree_tells_no_direction(method: Method) -> None:
    found = learned(survey(1), method)
    assert (found.method, found.degree, len(found.arcs)) == (method, 1, 5)
    assert not any(arc.is_directed for arc in found.arcs)


def test_the_texts_say_what_the_network_is() -> None:
    dag = Dag(("a", 'b"'), frozenset({("a", 'b"')}))
    arc = LearnedArc("a", 'b"', is_directed=False, support=2.5)
    law = LearnedLaw("a", (), np.ones(1))
    network = LearnedNetwork(dag, (arc,), Method.CHOW_LIU, 1, -7.0, 100.0, (law,))
    encoded = json.loads(json.dumps(network_json(network, {"a": ["x"], 'b"': ["y"]})))
    assert encoded["arcs"] == [{"from": "a", "to": 'b"', "directed": False, "support": 2.5}]
    assert encoded["levels"] == {"a": ["x"], 'b"': ["y"]}
    assert encoded["laws"] == [{"column": "a", "parents": [], "law": [1.0]}]
    assert '  "a" -> "b\\"" [dir=none];\n' in network_dot(network)


def test_too_many_columns_are_refused_by_name() -> None:
    names = tuple(f"x{place}" for place in range(17))
    pairs = [
        NoisyCounts((one, other), survey_network.joint().sum(axis=(0, 2, 3, 5)), 0.0)
        for place, one in enumerate(names)
        for other in names[place + 1 :]
    ]
    with pytest.raises(TooManyColumns):
        learned(BicScore(MeasuredTables(pairs), degree=1), Method.EXACT)


def test_laws_are_those_of_the_rows() -> None:
    """By hand: the shares of each column's levels among the rows with its parents' levels."""
    rows = survey_network.sampled(20_000, 3)
    found = learned(BicScore(RowTables(survey_network.columns(), rows), degree=3), Method.EXACT)
    names = found.dag.columns
    assert [one.column for one in found.laws] == list(names)
    for one in found.laws:
        assert one.parents == found.dag.parents(one.column)
        levels = tuple(size - 1 for size in one.shares.shape[:-1])
        own = rows[:, names.index(one.column)]
        chosen = np.ones(len(rows), dtype=bool)
        for name, level in zip(one.parents, levels, strict=True):
            chosen &= rows[:, names.index(name)] == level
        counted = np.bincount(own[chosen], minlength=one.shares.shape[-1]) / chosen.sum()
        np.testing.assert_allclose(one.shares[levels], counted, atol=1e-12)
