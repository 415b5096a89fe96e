"""Graphs and their classes: against all graphs of four columns, and published numbers of them."""

from collections import defaultdict

import pytest

from synthesis.networks.graph import Arc, Dag, EquivalenceClass, colliders, skeleton
from tests.support.all_dags import all_dags


def test_the_graphs_and_classes_are_as_many_as_published() -> None:
    """25 and 543 graphs (Robinson 1973), 11 and 185 classes (Gillispie & Perlman 2002)."""
    assert len(all_dags("abc")) == 25
    assert len({EquivalenceClass.of(dag) for dag in all_dags("abc")}) == 11
    assert len(all_dags("abcd")) == 543
    assert len({EquivalenceClass.of(dag) for dag in all_dags("abcd")}) == 185


def test_a_class_has_the_arcs_that_all_of_its_graphs_have() -> None:
    members = defaultdict(list)
    for dag in all_dags("abcd"):
        members[skeleton(dag), colliders(dag)].append(dag)
    for own in members.values():
        common = frozenset[Arc].intersection(*(dag.arcs for dag in own))
        open_ones = skeleton(own[0]) - {frozenset(arc) for arc in common}
        for dag in own:
            found = EquivalenceClass.of(dag)
            assert (found.directed, found.undirected) == (common, open_ones)


@pytest.mark.parametrize("arcs", [{("a", "b"), ("b", "c"), ("c", "a")}, {("a", "a")}, {("a", "z")}])
def test_what_is_no_such_graph_is_refused(arcs: set[Arc]) -> None:
    with pytest.raises(ValueError, match=r"cycle|unknown"):
        Dag(("a", "b", "c"), frozenset(arcs))


def test_each_column_comes_after_its_parents() -> None:
    dag = Dag(("a", "b", "c"), frozenset({("c", "a"), ("b", "c")}))
    assert dag.order() == ("b", "c", "a")
    assert dag.parents("a") == ("c",)
    with pytest.raises(ValueError, match="twice"):
        Dag(("a", "a"))
