"""Queries as trees: what is taken off them, and what is refused before planning."""

import pytest
from sqlglot import exp
from sqlglot.tokenizer_core import Token

from cube.refusals import InvalidSql, Refused, TooLarge, UnsupportedSql
from planner.sql import words
from planner.sql.options import REQUESTED
from planner.sql.query_tree import N_NESTED_MAX, parse
from planner.sql.statements import Query, read_query, read_text
from planner.workload import RequestedTarget


def test_options_are_taken_off_and_kept_beside_their_select() -> None:
    sql = "SELECT WITH DIFFERENTIAL_PRIVACY OPTIONS(half_width => 5) COUNT(*) FROM (SELECT 1 AS x)"
    found = parse(Query(sql))
    assert found.has_subqueries
    assert found.tree.meta[REQUESTED] == RequestedTarget(half_width=5.0)
    assert found.tree.args.get("hint") is None


def test_parentheses_around_a_query_and_explain_before_it_are_not_in_its_tree() -> None:
    for sql in ("SELECT 1", "((SELECT 1))", "EXPLAIN PRIVACY SELECT 1", "(SELECT 1) ;"):
        found = parse(read_query(sql))
        assert isinstance(found.tree, exp.Select)
        assert not found.has_subqueries
        assert found.tree.sql() == "SELECT 1"


@pytest.mark.parametrize(
    ("sql", "refusal", "position"),
    [
        ("SELECT COUNT(* FROM t", InvalidSql, "line 1, column 16"),
        ("EXPLAIN PRIVACY\nSELECT COUNT(* FROM t", InvalidSql, "line 2, column 16"),
        ("(1)", UnsupportedSql, "line 1, column 2"),
        (f"SELECT {'(' * N_NESTED_MAX}(1", TooLarge, f"line 1, column {8 + N_NESTED_MAX}"),
        (f"SELECT a{'[1]' * 9}", TooLarge, "line 1, column 33"),
    ],
)
def test_what_is_no_tree_is_pointed_at(sql: str, refusal: type[Refused], position: str) -> None:
    with pytest.raises(refusal) as caught:
        parse(read_query(sql))
    assert str(caught.value.position) == position


def test_a_text_is_cut_into_words_once_for_its_reader_and_its_parser(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """What is cut for both is timed by nobody: other analysts wait meanwhile."""
    cut: list[str] = []
    cutting = words._words

    def counted(sql: str) -> list[Token]:
        cut.append(sql)
        return cutting(sql)

    monkeypatch.setattr(words, "_words", counted)
    texts = ["SELECT 1 AS once", "EXPLAIN PRIVACY SELECT 2 AS once -- a remark"]
    trees = []
    for sql in texts:
        read_text(sql)
        trees.append(parse(read_query(sql)).tree)
    assert cut == texts
    assert [parse(read_query(sql)).tree for sql in texts] == trees
    assert cut == texts * 2  # words go to one parser, which may keep them
