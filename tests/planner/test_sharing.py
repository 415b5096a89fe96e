"""What statements have in common is worked out once, and what one may ask never depends on others.

The oracle is a planner that has seen no other statement.
"""

from collections.abc import Sequence

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from cube.query import LinearQuery
from cube.refusals import OutsideDomain, Refused, TooLarge
from planner.domain.relations import Columns, PublicRelation
from planner.planner import Planner
from planner.workload import RequestedTarget
from tests.planner.people import SCHEMA, TARGET, block_of, part_of, planner
from tests.support.examples import examples

CITIES = ("Oslo", "Berlin")  # people can be from the first alone
RELATION = PublicRelation("cities", ("city",))
CONDITIONS = (
    *("age >= 3", "3 <= age", "age < 12", "12 > age", "age BETWEEN 3 AND 11", "age IN (3, 4)"),
    *("age = 3", "(age) = 3", "age <> 3", "age = '3'", "age > 3.5", "age >= -2", "score = -2"),
    *("sex = 'male'", "sex IN ('male')", "sex < 'male'", "\"City\" = 'Oslo'", "sex = 'females'"),
    *(
        "income < 10",
        "income >= 20.5",
        "income = 10",
        "income < 11",
        "spend > 3",
        "(spend) > 3",
        "age = 99",
    ),
)


def asked_of(fresh: Planner, sql: str) -> tuple[object, ...]:
    """A statement's query, or the text of its refusal."""
    try:
        query = block_of(fresh.plan(sql)).query
    except Refused as refusal:
        return (refusal.code, str(refusal))
    return (query.constant, *terms_of(query))


def terms_of(query: LinearQuery) -> list[tuple[object, ...]]:
    return [
        (term.scale, [(factor.axes, factor.values.tolist()) for factor in term.factors])
        for term in query.terms
    ]


@settings(deadline=None, max_examples=examples(12))
@given(st.lists(st.lists(st.sampled_from(CONDITIONS), min_size=1, max_size=3), max_size=6))
def test_a_statement_means_the_same_whatever_was_asked_before(asked: list[list[str]]) -> None:
    used = planner()
    for conditions in asked:
        sql = f"SELECT COUNT(*) FROM people WHERE {' AND '.join(conditions)}"  # noqa: S608 - a test's own text
        assert asked_of(used, sql) == asked_of(planner(), sql)


def public_cities(_sql: str, _names: Sequence[str]) -> Columns:
    return {"city": ("VARCHAR", CITIES)}


def test_a_public_value_that_is_no_level_stays_a_mistake_where_it_is_written() -> None:
    used = Planner({"people": SCHEMA}, {"people": TARGET}, [RELATION], (), public_cities)
    read = 'SELECT COUNT(*) FROM people WHERE "City" IN (SELECT city FROM cities)'
    written = "SELECT COUNT(*) FROM people WHERE \"City\" IN ('Oslo', 'Berlin')"
    assert terms_of(block_of(used.plan(read)).query)
    with pytest.raises(OutsideDomain):
        used.plan(written)
    assert terms_of(block_of(used.plan(read + " AND TRUE")).query)


@pytest.mark.parametrize("condition", ["(spend) > 3", "((3)) < spend", "NOT spend <= 3"])
def test_a_measure_is_the_same_condition_however_it_is_written(condition: str) -> None:
    used = planner()
    plain = used.plan("SELECT COUNT(*) FROM people WHERE spend > 3")
    other = used.plan(f"SELECT COUNT(*) FROM people WHERE {condition}")  # noqa: S608 - the test's
    assert terms_of(block_of(plain).query) == terms_of(block_of(other).query)


def test_what_was_evaluated_before_counts_against_the_limit_again(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    used = planner()
    both = "SELECT COUNT(*) FROM people WHERE age > 3 AND score > 1"
    used.plan(both)
    monkeypatch.setattr(
        "planner.domain.allowance.N_PLAN_CELLS_MAX", 25
    )  # 21 ages or 7 scores, not both
    with pytest.raises(TooLarge):
        used.plan(both + " AND age > 3")
    used.plan("SELECT COUNT(*) AS n FROM people WHERE age > 3")


@pytest.mark.parametrize(
    ("one", "other"),
    [
        ("COUNT(*)", "3 - 2 * COUNT(*)"),
        ("COUNT(*)", "SUM(CASE WHEN TRUE THEN 4 END)"),
        ("SUM(age)", "SUM(age) / 2.0"),
        ("sex, COUNT(*)", "sex, COUNT(*) / 2.0"),
    ],
)
def test_statements_that_ask_the_same_rows_ask_one_block(one: str, other: str) -> None:
    used = planner()
    rest = " FROM people WHERE age >= 3 AND age < 12" + " GROUP BY sex" * one.startswith("sex")
    first = used.plan(f"SELECT {one}{rest}")
    second = used.plan(
        f"SELECT {other}{rest}".replace("age >= 3 AND age < 12", "age BETWEEN 3 AND 11"),
        RequestedTarget(half_width=3.0),
    )
    blocks = [part_of(workload).aggregates[0].blocks[0] for workload in (first, second)]
    assert blocks[0].primitive[0] is blocks[1].primitive[0]


def test_rows_that_differ_are_different_blocks() -> None:
    used = planner()
    counts = "SELECT COUNT(*) FROM people WHERE age >= "
    ages = [block_of(used.plan(counts + str(age))) for age in range(1, 9)]
    assert len({block.primitive[0] for block in ages}) == len(ages)
    for age, block in enumerate(ages, start=1):
        (factor,) = block.primitive[0].query.terms[0].factors
        assert np.flatnonzero(factor.values).tolist() == list(range(age, 20))
