"""OPTIONS in comments mean what OPTIONS mean, wherever the comment stands."""

import pytest

from cube.refusals import InvalidSql, InvalidTarget
from planner.sql.options import MANNER, REQUESTED
from planner.sql.query_tree import parse
from planner.sql.statements import Explain, Query, read_text
from planner.workload import Fallback, RequestedTarget

WIDE = RequestedTarget(half_width=50.0, confidence=0.9)


def requested(sql: str) -> RequestedTarget:
    """What the one query of a text asks for."""
    (found,) = read_text(sql)
    statement = found.statement
    query = statement.of if isinstance(statement, Explain) else statement
    assert isinstance(query, Query)
    target = parse(query).tree.meta.get(REQUESTED, RequestedTarget())
    assert isinstance(target, RequestedTarget)
    return target


@pytest.mark.parametrize(
    "sql",
    [
        "/*+ tacit(half_width=50, confidence=0.9) */ SELECT COUNT(*) FROM t",
        "SELECT /*+ tacit(half_width => 50, confidence => 0.9) */ COUNT(*) FROM t",
        "SELECT COUNT(*) FROM t /*+TACIT ( half_width = 50 , confidence = .9 )*/",
        "SELECT COUNT(*) FROM t; /*+ tacit(half_width=50, confidence=0.9) */",
        "SELECT COUNT(*) /* why */ FROM t -- so\n/*+ tacit(half_width=5e1,confidence=0.9) */ ;",
        "/*+ tacit(half_width=50) */ SELECT a FROM t\n UNION /*+ tacit(confidence=0.9) */ SELECT 1",
        "EXPLAIN /*+ tacit(half_width=50, confidence=0.9) */ SELECT COUNT(*) FROM t",
        "/*+ tacit(half_width=50, confidence=0.9) */ EXPLAIN SELECT COUNT(*) FROM t",
        "WITH c AS (SELECT $1 /*+ tacit(half_width=50, confidence=0.9) */, $2) SELECT a FROM c",
    ],
)
def test_a_comment_is_read_wherever_it_stands(sql: str) -> None:
    assert requested(sql) == WIDE


@pytest.mark.parametrize(
    "sql",
    [
        "SELECT '/*+ tacit(half_width=50) */' FROM t",
        "SELECT 1 FROM t -- /*+ tacit(half_width=50) */",
        "SELECT 1 FROM t /* tacit(half_width=50) */",
        "SELECT 1 FROM t /*+ IndexScan(t) */",
        "SELECT 1 FROM t /*+ tacitly(x) */",
        'SELECT "/*+ tacit(half_width=50) */" FROM t',
        "SELECT $$/*+ tacit(half_width=50) */$$ FROM t",
    ],
)
def test_what_is_not_such_a_comment_is_nothing(sql: str) -> None:
    assert requested(sql) == RequestedTarget()


def test_options_in_the_text_go_before_the_comment() -> None:
    sql = (
        "SELECT WITH DIFFERENTIAL_PRIVACY OPTIONS(half_width => 5, epsilon => 0.5) COUNT(*) FROM t "
        "/*+ tacit(half_width=50, confidence=0.9, epsilon=0.25, fallback='history') */"
    )
    target = requested(sql)
    assert (target.half_width, target.confidence) == (5.0, 0.9)
    assert target.epsilon_cap == 0.25, "of two caps the smaller one"
    assert target.fallback is Fallback.HISTORY


def test_each_statement_has_its_own_comments() -> None:
    sql = (
        "SELECT 1 /*+ tacit(half_width=1) */; /*+ tacit(half_width=2) */ SELECT 2; SELECT 3;\n"
        "/*+ tacit(half_width=4) */\nSELECT 4 /* x */; SELECT 5; /*+ tacit(half_width=5) */"
    )
    widths = []
    for _, statement in read_text(sql):
        assert isinstance(statement, Query)
        target = parse(statement).tree.meta.get(REQUESTED, RequestedTarget())
        widths.append(target.half_width)
    assert widths == [1.0, 2.0, None, 4.0, 5.0]


def test_other_options_go_with_the_statement_too() -> None:
    query = Query("SELECT MIN(a) FROM t /*+ tacit(extremes='noisy', consistency=exact) */")
    manner = parse(query).tree.meta[MANNER]
    assert manner.noisy_extremes
    assert manner.consistency == "exact"


@pytest.mark.parametrize(
    "comment",
    [
        *("tacit", "tacit()x", "tacit(half_width)", "tacit(half_width=)", "tacit(half_width=1"),
        *("tacit half_width=1", "tacit(half_width=1 confidence=1)", "tacit('a'=1)", "tacit(=1)"),
        *("tacit(a=1;b=2)", "tacit(a='1)", "tacit(half_width=(1))"),
    ],
)
def test_what_cannot_be_read_is_refused(comment: str) -> None:
    with pytest.raises(InvalidSql, match=r"The comment /\*\+ tacit"):
        requested(f"SELECT 1 /*+ {comment} */ FROM t")  # noqa: S608 - read only


@pytest.mark.parametrize(
    "options", ["half_widht=1", "half_width=1, half_width=2", "half_width='1'", "confidence=on"]
)
def test_options_are_checked_as_those_in_the_text(options: str) -> None:
    with pytest.raises(InvalidTarget):
        requested(f"SELECT 1 /*+ tacit({options}) */ FROM t")  # noqa: S608 - read only
