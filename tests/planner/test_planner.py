"""The planner's face: targets, columns, groups, limits, and being asked by many at once."""

import threading
from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace
from fractions import Fraction

import numpy as np
import pytest

from cube.axis import CategoryAxis, IntegerAxis, NumericAxis
from cube.refusals import (
    InvalidSql,
    InvalidTarget,
    Refused,
    TextPosition,
    TooLarge,
    UnsupportedSql,
)
from cube.schema import Schema
from cube.target import AccuracyTarget
from planner.planner import Planner
from planner.workload import ColumnKind, OutputColumn, RequestedTarget, Workload
from tests.planner.people import SCHEMA, TARGET, block_of, part_of, planner

WIDE = Schema(
    table="wide",
    axes=(
        *(IntegerAxis(name=f"i{place}", low=0, high=199) for place in range(5)),
        IntegerAxis(name="key", low=0, high=999_999),
        CategoryAxis(name="color", values=("red", "green")),
        NumericAxis(name="height", edges=tuple(float(edge) for edge in range(101))),
    ),
    n_records_max=10**6,
)
FROM_WIDE = " FROM wide"
MANY_TERMS = [f"COUNT(*) FILTER (WHERE i{p % 5} = {p // 5})" for p in range(300)]
MANY_LEVELS = [f"COUNT(*) FILTER (WHERE key = {p})" for p in range(40)]


@pytest.fixture(scope="module")
def people() -> Planner:
    return planner()


@pytest.fixture(scope="module")
def wide() -> Planner:
    return Planner({"wide": WIDE}, {"wide": TARGET})


def target_of(workload: Workload) -> AccuracyTarget:
    """What the one aggregate of a statement is asked to, with the cap on its cost."""
    part = part_of(workload)
    (aggregate,) = part.aggregates
    return replace(aggregate.target, epsilon_cap=part.epsilon_cap)


def test_options_go_before_the_request_and_that_before_the_default(people: Planner) -> None:
    sql = (
        "SELECT WITH DIFFERENTIAL_PRIVACY OPTIONS(half_width => 2.5, epsilon = 0.1) COUNT(*)"
        " FROM people"
    )
    requested = RequestedTarget(half_width=3.0, confidence=0.8, epsilon_cap=Fraction(1))
    assert target_of(people.plan(sql, requested)) == AccuracyTarget(
        half_width=2.5, confidence=0.8, epsilon_cap=Fraction(1, 10)
    )
    assert target_of(people.plan("SELECT COUNT(*) FROM people", requested)) == AccuracyTarget(
        half_width=3.0, confidence=0.8, epsilon_cap=Fraction(1)
    )
    assert target_of(people.plan("SELECT COUNT(*) FROM people")) == TARGET


@pytest.mark.parametrize(
    "requested",
    [
        RequestedTarget(half_width=float("nan")),
        RequestedTarget(half_width=float("inf")),
        RequestedTarget(half_width=0.0),
        RequestedTarget(half_width=-3.0),
        RequestedTarget(confidence=float("nan")),
        RequestedTarget(confidence=0.0),
        RequestedTarget(confidence=1.0),
        RequestedTarget(confidence=95.0),
        RequestedTarget(epsilon_cap=Fraction(-1)),
    ],
)
def test_a_target_out_of_range_is_refused(people: Planner, requested: RequestedTarget) -> None:
    with pytest.raises(InvalidTarget):
        people.plan("SELECT COUNT(*) FROM people", requested)


def test_explain_privacy_plans_the_same(people: Planner) -> None:
    explained = people.plan("explain privacy SELECT COUNT(*) FROM people;")
    (asked,) = part_of(people.plan("SELECT COUNT(*) FROM people")).aggregates
    assert part_of(explained).aggregates[0].sql == asked.sql == "COUNT(*)"
    assert part_of(explained).aggregates[0].target == asked.target


@pytest.mark.parametrize("sql", ["SET tacit.epsilon = 1", "DROP SYNTHETIC TABLE s", "BEGIN"])
def test_only_queries_are_planned(people: Planner, sql: str) -> None:
    verb, *_ = sql.split()
    with pytest.raises(UnsupportedSql, match=f"Only SELECT is supported, not {verb}"):
        people.plan(sql)


def test_the_columns_are_those_of_the_select_list(people: Planner) -> None:
    workload = people.plan(
        "SELECT COUNT(*) AS n, dp_interval_low(n), DP_INTERVAL_HIGH(N) AS high, sex,"
        ' DP_COST("Sum"), SUM(age) AS "Sum", DP_SOURCE(n), COUNT(*), COUNT(*) + 1'
        " FROM people GROUP BY sex"
    )
    assert part_of(workload).columns == (
        OutputColumn("n", ColumnKind.ANSWER, 0),
        OutputColumn("dp_interval_low", ColumnKind.LOW, 0),
        OutputColumn("high", ColumnKind.HIGH, 0),
        OutputColumn("sex", ColumnKind.KEY, 0),
        OutputColumn("dp_cost", ColumnKind.COST, 1),
        OutputColumn("Sum", ColumnKind.ANSWER, 1),
        OutputColumn("dp_source", ColumnKind.SOURCE, 0),
        OutputColumn("count", ColumnKind.ANSWER, 2),
        OutputColumn("?column?", ColumnKind.ANSWER, 3),
    )


def test_groups_come_in_the_order_of_their_keys_with_null_last(people: Planner) -> None:
    workload = people.plan("SELECT COUNT(*) FROM people GROUP BY sex, age % 3, sex")
    text, remainder = part_of(workload).keys
    assert (text.sql_type, remainder.sql_type) == ("VARCHAR", "BIGINT")
    assert text.values == ("female",) * 4 + ("male",) * 4 + (None,) * 4
    assert remainder.values == (0, 1, 2, None) * 3


def test_every_answer_of_a_group_by_has_the_same_partition(people: Planner) -> None:
    workload = people.plan("SELECT COUNT(*), SUM(age), SUM(score) FROM people GROUP BY sex")
    blocks = [block_of(workload, place) for place in range(3)]
    assert len({id(block.partition) for block in blocks}) == 1
    assert [block.n_rows for block in blocks] == [3, 3, 3]


def test_a_bin_is_shown_as_its_lower_edge(people: Planner) -> None:
    workload = people.plan("SELECT income, COUNT(*) FROM people GROUP BY income")
    assert part_of(workload).keys[0].values == (-1.0, 0.0, 10.0, 20.5, None)


def test_no_possible_group_is_no_row(people: Planner) -> None:
    part = part_of(people.plan("SELECT sex, COUNT(*) FROM people WHERE age > 200 GROUP BY sex"))
    assert part.n_rows == 0
    assert part.keys[0].values == ()
    assert part.aggregates[0].blocks == ()
    assert part.aggregates[0].is_constant


def test_a_sum_is_half_itself_times_two(people: Planner) -> None:
    one = block_of(people.plan("SELECT SUM(age) / 2 FROM people WHERE member"))
    other = people.plan("SELECT SUM(0.25 * age) FILTER (WHERE member) FROM people")
    row, multiplier = one.query.primitive()
    other_row, other_multiplier = block_of(other).query.primitive()
    assert (multiplier, other_multiplier) == (Fraction(1, 2), Fraction(1, 4))
    for factor, same in zip(row.terms[0].factors, other_row.terms[0].factors, strict=True):
        assert np.array_equal(factor.values, same.values)


def test_doubles_that_need_more_than_twenty_six_bits_are_rounded_to_that(people: Planner) -> None:
    query = block_of(people.plan("SELECT SUM(SQRT(age)) FROM people")).query
    (term,) = query.terms
    weights = [float(term.scale * int(value)) for value in term.factors[0].values[:20]]
    assert np.allclose(weights, np.sqrt(np.arange(20)), rtol=0, atol=2.0**-23)
    assert term.bound.denominator.bit_count() == 1


def test_the_same_text_gives_the_same_plan(people: Planner) -> None:
    sql = "SELECT COUNT(*) FROM people WHERE age > 7"
    assert people.plan(sql) is people.plan(sql)
    assert people.plan(sql) is not people.plan(sql, RequestedTarget(half_width=1.0))


def test_what_was_least_recently_planned_is_planned_again_once_memory_is_full() -> None:
    planner = Planner({"wide": WIDE}, {"wide": TARGET}, n_bytes_max=2**18)
    sql = f"SELECT COUNT(*) AS n{FROM_WIDE} WHERE i0 = 7"
    first = planner.plan(sql)
    assert planner.plan(sql) is first
    for level in range(199):
        planner.plan(f"SELECT COUNT(*) AS n{FROM_WIDE} WHERE i1 = {level}")
    again = planner.plan(sql)
    assert again is not first
    assert [part.columns for part in again.parts] == [part.columns for part in first.parts]


def test_conditions_on_many_columns_stay_apart(wide: Planner) -> None:
    where = " AND ".join(f"i{place} < 100" for place in range(5))
    query = block_of(wide.plan(f"SELECT COUNT(*) FROM wide WHERE {where}")).query  # noqa: S608 - SQL is the test input
    assert [factor.axes for factor in query.terms[0].factors] == [(f"i{p}",) for p in range(5)]


@pytest.mark.parametrize(
    ("sql", "fragment"),
    [
        ("SELECT COUNT(*) FROM wide WHERE i0 + i1 + i2 + i3 > 5", "i0, i1, i2, i3"),
        ("SELECT COUNT(*) FROM wide WHERE i0 < i1 AND i1 < i2 AND i2 < i3", "i0, i1, i2, i3"),
        ("SELECT key, COUNT(*) FROM wide GROUP BY key", "1000000 groups"),
        ("SELECT key, i0, COUNT(*) FROM wide GROUP BY 1, 2", "200000000 groups"),
        ("SELECT i0, i1, i2, i3, COUNT(*) FROM wide WHERE i0 < 2 GROUP BY 1, 2, 3, 4", "groups"),
        ("SELECT i0 + i1, i1 + i2, COUNT(*) FROM wide GROUP BY 1, 2", "i0, i1, i2"),
        ("SELECT COUNT(*) * 1e999999999 FROM wide", "1e999999999"),
        ("SELECT WITH DIFFERENTIAL_PRIVACY OPTIONS(epsilon => 1e-999999999) 1 FROM wide", "1e-99"),
        ("SELECT " + "9999999999 * " * 100 + "COUNT(*) FROM wide", "9999999999"),
        ("SELECT " + " + ".join(f"SUM(i0 * {p})" for p in range(900)) + FROM_WIDE, "too deeply"),
        ("SELECT " + " + ".join(MANY_TERMS) + FROM_WIDE, "300 different terms"),
        ("SELECT " + " + ".join(MANY_LEVELS) + FROM_WIDE, "16777216 combinations"),
    ],
)
def test_limits_are_stated(wide: Planner, sql: str, fragment: str) -> None:
    with pytest.raises(Refused) as refusal:
        wide.plan(sql)
    assert isinstance(refusal.value, TooLarge | UnsupportedSql)
    assert fragment in refusal.value.message


def test_a_few_groups_of_a_large_key_are_answered(wide: Planner) -> None:
    workload = wide.plan("SELECT key, COUNT(*) FROM wide WHERE key IN (5, 999999, 17) GROUP BY key")
    assert part_of(workload).keys[0].values == (5, 17, 999999)


@pytest.mark.parametrize(
    ("sql", "error"),
    [
        ("SELECT COUNT(*) FROM people WHERE sex = '" + "x" * 2**20 + "'", TooLarge),
        ("SELECT " + "(" * 100_000 + "1" + ")" * 100_000 + " FROM people", TooLarge),
        ("SELECT " + "(" * 20_000 + "1" + ")" * 20_000 + " FROM people", TooLarge),
        ("SELECT " + "(" * 25_000, TooLarge),
        ("SELECT " + "CASE WHEN 1 = " * 4_000, TooLarge),
        ("SELECT " + "f(" * 31, TooLarge),
        ("SELECT COUNT(*) FROM people WHERE " + "NOT " * 4_000 + "member", TooLarge),
        ("SELECT " + "- " * 8_000 + "COUNT(*) FROM people", TooLarge),
        ("SELECT COUNT(*)" + " + COUNT(*)" * 1_500 + " FROM people", TooLarge),
        ("SELECT COUNT(*) FROM people WHERE age" + " + age" * 2_000 + " > 1", Refused),
        ("SELECT COUNT(*) FROM people WHERE age IN (" + "1, " * 20_000 + "1)", TooLarge),
        ("SELECT COUNT(*) FROM people WHERE age IN (" + "1, " * 2_000 + "1)", None),
        ("SELECT COUNT(*) FROM people WHERE " + "age > 1 AND " * 500 + "member", None),
        ("SELECT COUNT(*) FROM people WHERE sex = '\ud800'", InvalidSql),
        ("SELECT COUNT(*) FROM people WHERE sex = '\0'", InvalidSql),
        ("", InvalidSql),
        (" ; -- nothing\n", InvalidSql),
        ("SELECT COUNT(*) FROM people WHERE sex = 'male", InvalidSql),
        ("SELECT COUNT(*) FROM people /* open", InvalidSql),
        ("SELECT COUNT(*) FROM people; SELECT COUNT(*) FROM people", UnsupportedSql),
    ],
    ids=lambda value: (
        value[:40].encode("ascii", "replace").decode() if isinstance(value, str) else None
    ),
)
def test_hostile_text_gets_a_clear_answer(
    people: Planner, sql: str, error: type[Refused] | None
) -> None:
    if error is None:
        assert part_of(people.plan(sql)).n_rows == 1
        return
    with pytest.raises(error) as refusal:
        people.plan(sql)
    assert len(refusal.value.explain()) < 600


def test_where_a_text_stops_parsing_is_said(people: Planner) -> None:
    with pytest.raises(InvalidSql) as refusal:
        people.plan("SELECT COUNT(*)\nFROM people WHERE age > )")
    assert refusal.value.position == TextPosition(2, 25)
    assert "near ) (line 2, column 25)." in refusal.value.explain()


def test_many_threads_get_what_one_gets() -> None:
    shared = planner()
    counts = "SELECT sex, COUNT(*) FROM people WHERE age > {} GROUP BY sex"
    texts = [counts.format(age) for age in range(9)]
    start = threading.Barrier(4)

    def ask(_: int) -> list[int]:
        start.wait()
        plans = [shared.plan(text) for text in texts]
        return [int(block_of(plan).query.terms[0].bound) for plan in plans]

    with ThreadPoolExecutor(4) as pool:
        answers = list(pool.map(ask, range(4)))
    assert answers == [[1] * len(texts)] * 4


def test_every_table_needs_a_default_target() -> None:
    with pytest.raises(ValueError, match="default"):
        Planner({"people": SCHEMA}, {})


def test_a_table_is_found_among_several() -> None:
    both = Planner({"people": SCHEMA, "wide": WIDE}, {"people": TARGET, "wide": TARGET})
    assert both.plan("SELECT COUNT(*) FROM main.WIDE AS w WHERE w.color = 'red'").tables == (
        "wide",
    )
    assert both.plan('SELECT COUNT(*) FROM "people"').tables == ("people",)
