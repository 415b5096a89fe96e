"""Generated SQL is answered as DuckDB answers it on known records, or refused; nothing else."""

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from cube.refusals import Refused, TooLarge
from tests.planner.people import block_of, check_against, database, planner
from tests.support.examples import examples

PLANNER = planner()
DATABASE = database()
QUICK = settings(
    max_examples=examples(250),
    deadline=None,
    suppress_health_check=[HealthCheck.too_slow],
    database=None,
)

INTEGERS = st.sampled_from(["age", "score", "(age + score)", "(age * 2 - 1)", "ABS(score)"])
SMALL = st.integers(-4, 20).map(str)
COMPARISONS = st.sampled_from(["<", "<=", ">", ">="])


def simple_conditions() -> st.SearchStrategy[str]:
    return st.one_of(
        st.builds("{} {} {}".format, INTEGERS, COMPARISONS, SMALL),
        st.builds("({0} + 1) = {1}".format, INTEGERS, SMALL),
        st.builds("{} BETWEEN {} AND {}".format, INTEGERS, SMALL, SMALL),
        st.builds("age IN ({}, 3, NULL)".format, st.integers(0, 19)),
        st.builds("sex {} 'male'".format, st.sampled_from(["=", "<>", "IS DISTINCT FROM"])),
        st.builds(
            "city LIKE '{}'".format, st.sampled_from(["O%", "%e%", "_slo", "a%c", "%", "__"])
        ),
        st.builds("income {} {}".format, COMPARISONS, st.sampled_from(["-5", "51", "2e3"])),
        st.sampled_from(["income >= 10", "income < 20.5", "income IS NULL", "income <> -1"]),
        st.builds("joined {} DATE '2020-02-{:02d}'".format, COMPARISONS, st.integers(1, 9)),
        st.builds("EXTRACT(day FROM joined) > {}".format, st.integers(1, 31)),
        st.sampled_from(["member", "member IS NULL", "NOT member", "TRUE", "1 = 0", "NULL"]),
    )


CONDITIONS = st.recursive(
    simple_conditions(),
    lambda inner: st.one_of(
        st.builds("({} AND {})".format, inner, inner),
        st.builds("({} OR {})".format, inner, inner),
        st.builds("NOT ({})".format, inner),
        st.builds("CASE WHEN {} THEN {} ELSE {} END".format, inner, inner, inner),
    ),
    max_leaves=5,
)
SUMMANDS = st.recursive(
    st.one_of(INTEGERS, SMALL, st.sampled_from(["0.25", "1.5", "age / 4", "LENGTH(city)"])),
    lambda inner: st.one_of(
        st.builds("({} + {})".format, inner, inner),
        st.builds("({} - {})".format, inner, inner),
        st.builds("({} * {})".format, inner, inner),
        st.builds("(- {})".format, inner),
        st.builds("COALESCE({}, {})".format, inner, inner),
        st.builds("CASE WHEN {} THEN {} END".format, simple_conditions(), inner),
        st.builds("CASE WHEN {} THEN {} ELSE 0 END".format, simple_conditions(), inner),
        st.builds("CASE WHEN {} THEN {} ELSE {} END".format, simple_conditions(), inner, inner),
    ),
    max_leaves=4,
)
AGGREGATES = st.one_of(
    st.just("COUNT(*)"),
    st.builds("COUNT({})".format, SUMMANDS),
    st.builds("SUM({})".format, SUMMANDS),
    st.builds("COUNT(*) FILTER (WHERE {})".format, CONDITIONS),
    st.builds("SUM({}) FILTER (WHERE {})".format, SUMMANDS, CONDITIONS),
)
ANSWERS = st.recursive(
    AGGREGATES,
    lambda inner: st.one_of(
        st.builds("({} + {})".format, inner, inner),
        st.builds("({} - {})".format, inner, inner),
        st.builds("({} * {})".format, SMALL, inner),
        st.builds("({} / 8.0)".format, inner),
        st.builds("(10 - {})".format, inner),
    ),
    max_leaves=3,
)
KEYS = st.one_of(
    st.sampled_from(["sex", "city", "age", "score", "member", "joined", "UPPER(sex)"]),
    st.sampled_from(["age > 5", "age + score", "DATE_TRUNC('month', joined)", "income >= 10"]),
    st.builds("CASE WHEN {} THEN 'in' END".format, simple_conditions()),
)


@st.composite
def selects(draw: st.DrawFn) -> str:
    keys = draw(st.lists(KEYS, max_size=2, unique=True))
    answers = draw(st.lists(ANSWERS, min_size=1, max_size=2))
    where = draw(st.none() | CONDITIONS)
    sql = f"SELECT {', '.join([*keys, *answers])} FROM people"  # noqa: S608 - SQL is the test input
    if where is not None:
        sql += f" WHERE {where}"
    if keys:
        sql += f" GROUP BY {', '.join(str(place + 1) for place in range(len(keys)))}"
    return sql


@QUICK
@given(selects())
def test_generated_queries_are_answered_as_duckdb_answers_them(sql: str) -> None:
    try:
        workload = PLANNER.plan(sql)
    except TooLarge:
        return
    except Refused as refusal:
        # All that is generated is linear; only a key without a column is refused for what it is.
        assert "groups by no column" in refusal.message or "2**40" in refusal.message  # noqa: PT017
        return
    check_against(DATABASE, sql, workload)


VOCABULARY = (
    "SELECT FROM WHERE GROUP BY COUNT SUM MAX ( ) ( ) * , . ; + - / % = <> < > || ' \" :: [ ] "
    "people age sex city income joined AND OR NOT NULL IS IN LIKE BETWEEN CASE WHEN THEN ELSE END "
    "FILTER OVER DISTINCT AS n 1 0 -1 1e400 1e-400 'male' '' DATE INTERVAL 'day' CAST INT UNION "
    "EXPLAIN PRIVACY WITH DIFFERENTIAL_PRIVACY OPTIONS => half_width epsilon DP_COST JOIN ON "
    "ORDER LIMIT HAVING RANDOM() NOW() EXTRACT TRUE $1 ? @ # ~ -- /* */ \\ é \u200b 👋"
)
WORDS = st.sampled_from(VOCABULARY.split(" "))


@QUICK
@given(st.lists(WORDS, max_size=12), st.booleans())
def test_any_words_are_answered_or_refused(words: list[str], after_select: bool) -> None:
    sql = " ".join((["SELECT COUNT(*) FROM people WHERE"] if after_select else []) + words)
    try:
        PLANNER.plan(sql)
    except Refused as refusal:
        assert refusal.explain()  # noqa: PT017 - a refusal is one of the two right outcomes


@QUICK
@given(st.text(max_size=200), st.booleans())
def test_any_text_is_answered_or_refused(text: str, inside_a_literal: bool) -> None:
    quoted = text.replace("'", "''")
    sql = f"SELECT COUNT(*) FROM people WHERE UPPER(sex) = '{quoted}'" if inside_a_literal else text  # noqa: S608 - SQL is the test input
    try:
        PLANNER.plan(sql)
    except Refused as refusal:
        assert refusal.explain()  # noqa: PT017 - a refusal is one of the two right outcomes


@QUICK
@given(st.text("ab%_\\.*\n", max_size=6), st.text("ab%_\\.*\n", max_size=6))
def test_like_matches_what_a_textbook_matcher_matches(subject: str, pattern: str) -> None:
    sql = f"SELECT COUNT(*) FROM people WHERE '{subject}' LIKE '{pattern}'"  # noqa: S608 - SQL is the test input
    try:
        matches = not block_of(PLANNER.plan(sql)).query.is_constant
    except Refused:
        assert (len(pattern) - len(pattern.rstrip("\\"))) % 2 == 1
        return
    assert matches == _like(subject, pattern)


def _like(subject: str, pattern: str) -> bool:
    """LIKE by definition, one character at a time."""
    if not pattern:
        return not subject
    if pattern[0] == "%":
        return any(_like(subject[start:], pattern[1:]) for start in range(len(subject) + 1))
    if not subject:
        return False
    if pattern[0] == "\\":
        return subject[0] == pattern[1] and _like(subject[1:], pattern[2:])
    return pattern[0] in ("_", subject[0]) and _like(subject[1:], pattern[1:])


def test_the_comparison_with_duckdb_has_teeth() -> None:
    workload = PLANNER.plan("SELECT COUNT(*) FROM people WHERE age > 5")
    with pytest.raises(AssertionError):
        check_against(DATABASE, "SELECT COUNT(*) FROM people WHERE age > 6", workload)
