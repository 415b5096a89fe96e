"""Walks and copies of trees, held against sqlglot's own."""

import pytest
from sqlglot import exp

from planner.sql.nodes import children, copy_of, every_node, has_node, nodes_of
from planner.sql.query_tree import parse
from planner.sql.statements import read_query
from tests.sql.cases import cases

TREES = [
    parse(read_query(case.sql)).tree
    for case in cases("answered")[::6]
    if case.sql.startswith(("SELECT", "WITH"))
]


def placed(tree: exp.Expr) -> list[tuple[type, str | None, int | None, type, dict[str, object]]]:
    """What every node is, where it stands, and its meta data."""
    return [(type(n), n.arg_key, n.index, type(n.parent), n.meta) for n in every_node(tree)]


@pytest.mark.parametrize("tree", TREES)
def test_a_copy_is_that_of_sqlglot(tree: exp.Query) -> None:
    copy = copy_of(tree)
    assert copy == tree
    assert copy.sql("duckdb") == tree.sql("duckdb")
    assert placed(copy) == placed(tree.copy())


@pytest.mark.parametrize("tree", TREES)
def test_a_copy_shares_no_node_nor_list_with_the_original(tree: exp.Query) -> None:
    copy = copy_of(tree)
    own = {id(node) for node in every_node(tree)}
    assert own.isdisjoint(map(id, every_node(copy)))
    before = tree.sql()
    for node in every_node(copy):
        node.meta["seen"] = True
        for value in node.args.values():
            if isinstance(value, list):
                value.clear()
    assert tree.sql() == before
    assert not any("seen" in node.meta for node in every_node(tree))


@pytest.mark.parametrize("tree", TREES)
def test_walks_find_what_sqlglot_finds_in_its_order(tree: exp.Query) -> None:
    assert list(map(id, every_node(tree))) == list(map(id, tree.walk()))
    kinds = (exp.Column, exp.Literal)
    assert list(map(id, nodes_of(tree, *kinds))) == list(map(id, tree.find_all(*kinds)))
    assert list(map(id, children(tree))) == list(map(id, tree.iter_expressions()))
    assert has_node(tree, exp.Avg) == (tree.find(exp.Avg) is not None)
