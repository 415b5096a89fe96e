"""The picture of a network: places of its columns, heads of its arcs."""

import re
import xml.etree.ElementTree as ET

import pytest

from synthesis.networks.graph import Dag
from synthesis.networks.learned import LearnedArc, LearnedNetwork, Method

chart = pytest.importorskip("proxy.cli.shared.charts", exc_type=ImportError)


def network(columns: str, arcs: str, *, is_directed: bool = True) -> LearnedNetwork:
    """Columns of one letter, and arcs of two."""
    pairs = [(one[0], one[1]) for one in arcs.split()]
    dag = Dag(tuple(columns), frozenset(pairs))
    found = tuple(LearnedArc(*pair, is_directed=is_directed, support=5.0) for pair in pairs)
    return LearnedNetwork(dag, found, Method.EXACT, 2, 0.0, 1.0, ())


def test_children_stand_below_their_parents_and_nobody_in_one_place() -> None:
    drawn = network("abcdefg", "ab bc ac de dc ef")
    places = chart.layered(drawn)
    assert len(set(places.values())) == 7
    for parent, child in drawn.dag.arcs:
        assert places[child][1] < places[parent][1]


def paths(svg: bytes) -> list[str]:
    root = ET.fromstring(svg)  # noqa: S314 - drawn here
    return [one.attrib["d"] for one in root.iter("{http://www.w3.org/2000/svg}path")]


def ys(path: str) -> list[float]:
    """How far down the points of a path are."""
    return [float(y) for y in re.findall(r"[\d.]+ ([\d.]+)", path)]


def test_an_arc_has_a_head_at_its_childs_box_if_its_direction_is_known() -> None:
    with_heads, without = (
        paths(chart.network_svg(network("ab", "ab", is_directed=one))) for one in (True, False)
    )
    assert len(with_heads) == len(without) + 1
    head = [ys(one) for one in with_heads if one not in without]
    boxes = [ys(one) for one in without if one.strip().endswith("z") and set(one) & set("CQ")]
    top = min(max(boxes, key=max))  # of the child's box
    assert len(boxes) == 2
    assert all(max(one) <= top + 1 for one in head)  # it would be hidden behind the box


def test_a_network_without_arcs_and_names_that_are_markup_are_drawn() -> None:
    svg = chart.network_svg(network("<&$", ""))
    root = ET.fromstring(svg)  # noqa: S314 - drawn here
    texts = {one.text for one in root.iter("{http://www.w3.org/2000/svg}text")}
    assert texts == {"<", "&", "$"}
