"""The page of refusals leaves none out."""

import ast
from itertools import pairwise

import pytest

from cube.refusals import Refused, TextPosition, UnknownName
from planner.sql.messages import position
from planner.sql.query_tree import parse
from planner.sql.statements import Query
from tests.sql import refusal_list
from tests.sql.refusal_list import CLASSES
from tests.support.refusals import SHORTFALL, kinds_of_refusal


@pytest.fixture(scope="module")
def page() -> str:
    return refusal_list.document()


def test_every_code_is_on_the_page_with_a_refusal(page: str) -> None:
    sections = page.split("\n## ")[1:]
    assert {section.split("\n", 1)[0] for section in sections} == {
        kind.code for kind in CLASSES.values()
    }
    assert all("```" in section for section in sections)


def test_all_classes_of_refusal_are_listed() -> None:
    codes = {kind.code for kind in kinds_of_refusal() if kind is not Refused}
    assert {kind.code for kind in CLASSES.values()} == codes


def test_every_refusal_in_the_source_is_found_by_its_words() -> None:
    found = [*refusal_list.templates(), *refusal_list.numbered()]
    assert {one.code for one in found} == {kind.code for kind in CLASSES.values()}
    assert len(found) >= 130
    said = "age / 0 divides by zero."
    assert any(one.pattern.fullmatch(said) for one in found)
    assert any(one.pattern.fullmatch(SHORTFALL.limit_text) for one in found)
    assert not any(one.pattern.fullmatch("No reason.") for one in found)


def test_words_are_read_with_what_fills_them() -> None:
    call = 'TooLarge(f"{shown(key)} has {n} of {N_SHOWN} {self.axis.name}.", hint="Ask" " less.")'
    tree = ast.parse(call, mode="eval").body
    assert isinstance(tree, ast.Call)
    (template,) = refusal_list.template(tree, __name__)
    assert template.message == "<key> has <n> of 7 <name>."
    assert template.hint == "Ask less."
    assert template.pattern.fullmatch("age + 1 has 9 of 7 x.")


N_SHOWN = 7
SQL = """SELECT p.age, 'it''s', "Blood Type", COUNT(*) FILTER (WHERE x = 12.5), 'two
lines', b, $1, -- a remark; 'not a string
  c, é, d\tAS e FROM t WHERE f IN (1.5, g) GROUP BY h"""


def test_a_position_stands_before_the_way_out() -> None:
    refusal = UnknownName("t has no column x.", hint="It has y.", position=TextPosition(2, 8))
    assert refusal.explain() == "t has no column x (line 2, column 8). It has y."
    assert refusal.message == "t has no column x."
    assert UnknownName("There is no x.").explain() == "There is no x."


def test_positions_are_where_the_words_stand() -> None:
    placed = [node for node in parse(Query(SQL)).tree.walk() if "start" in node.meta]
    lines = SQL.split("\n")
    for node in placed:
        start = node.meta["start"]
        assert position(node) == TextPosition(node.meta["line"], node.meta["col"])
        before = "\n".join(lines[: node.meta["line"] - 1])
        begins = len(before) + (node.meta["line"] > 1) + node.meta["col"] - 1
        assert begins == start, node
    assert [node.meta["line"] for node in placed if node.name == "c"] == [3]
    assert len(placed) >= 15
    starts = sorted(node.meta["start"] for node in placed)
    assert all(one < other for one, other in pairwise(starts))
