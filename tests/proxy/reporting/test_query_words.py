"""What was charged for, in SQL: made of the query's coefficients and the declaration alone."""

import datetime as dt
from collections.abc import Callable
from fractions import Fraction

import numpy as np
import pytest

from cube.axis import (
    Axis,
    BooleanAxis,
    CategoryAxis,
    DateAxis,
    IntegerAxis,
    MeasureAxis,
    NumericAxis,
)
from cube.encoding import declare
from cube.query import Factor, LinearQuery, Partition, QueryBlock, Term, counting
from cube.schema import Schema
from proxy.reporting.declared import DeclaredTable, query_text

AXES: tuple[Axis, ...] = (
    IntegerAxis(name="age", low=17, high=90, other=-1),
    BooleanAxis(name="churned"),
    CategoryAxis(name="city", values=tuple(f"c{n}" for n in range(9)), null=True),
    CategoryAxis(name="sex", values=("F", "M", "d'or")),
    DateAxis(name="since", low=dt.date(2024, 1, 1), high=dt.date(2024, 12, 31)),
    NumericAxis(name="hours", edges=(0.0, 20.0, 40.0, 99.0)),
    MeasureAxis(
        name="revenue", low=Fraction(-5), high=Fraction(5000), step=Fraction(1, 100), null=True
    ),
)
DECLARED = DeclaredTable.parse(
    declare(Schema(table="shop", axes=AXES, n_records_max=1000), version="1")
)
BY_NAME = {axis.name: axis for axis in AXES}


def where(name: str, test: Callable[[object], bool]) -> Factor:
    """A condition, by what it says of each level."""
    return Factor(
        (name,), np.array([test(level) for level in BY_NAME[name].levels], dtype=np.int64)
    )


def weight(name: str, value: Callable[[Fraction], Fraction]) -> Factor:
    """Numbers of levels, as whole multiples of a ten-thousandth; NULL counts nothing."""
    levels = (0 if level is None else value(Fraction(str(level))) for level in BY_NAME[name].levels)
    return Factor((name,), np.array([int(level * 10_000) for level in levels], dtype=np.int64))


def by(name: str, group: Callable[[object], int]) -> Partition:
    return Partition((name,), np.array([group(level) for level in BY_NAME[name].levels]))


def each(name: str) -> Partition:
    return Partition((name,), np.arange(BY_NAME[name].size, dtype=np.int64))


def text(*factors: Factor, groups: Partition | None = None) -> str:
    return query_text(QueryBlock(counting(factors), groups), DECLARED)


ADULT = where("age", lambda age: 30 <= age <= 40)  # type: ignore[operator]


@pytest.mark.parametrize(
    ("said", "factors", "groups"),
    [
        ("COUNT(*)", (), None),
        ("COUNT(*) WHERE age BETWEEN 30 AND 40 GROUP BY sex", (ADULT,), each("sex")),
        ("COUNT(*) WHERE age = 33", (where("age", lambda age: age == 33),), None),
        ("COUNT(*) WHERE age <= 30", (where("age", lambda age: 17 <= age <= 30),), None),  # type: ignore[operator]
        (
            "COUNT(*) WHERE (age <= 30 OR age = -1)",
            (where("age", lambda age: age <= 30),),  # type: ignore[operator]
            None,
        ),
        ("COUNT(*) WHERE age <> -1", (where("age", lambda age: age != -1),), None),
        ("COUNT(*) WHERE sex = 'd''or'", (where("sex", lambda sex: sex == "d'or"),), None),
        ("COUNT(*) WHERE sex IN ('F', 'M')", (where("sex", lambda sex: sex in {"F", "M"}),), None),
        (
            "COUNT(*) WHERE city IN ('c0', 'c1', 'c2', 'c3', 2 more) GROUP BY churned",
            (where("city", lambda city: city is not None and str(city) < "c6"),),
            each("churned"),
        ),
        ("COUNT(*) WHERE city IS NULL", (where("city", lambda city: city is None),), None),
        ("COUNT(*) WHERE city IS NOT NULL", (where("city", lambda city: city is not None),), None),
        ("COUNT(*) WHERE churned = true", (where("churned", bool),), None),
        (
            "COUNT(*) WHERE since >= '2024-07-01' GROUP BY since (2 groups)",
            (where("since", lambda day: day >= dt.date(2024, 7, 1)),),  # type: ignore[operator]
            by("since", lambda day: int(day.month == 12)),  # type: ignore[attr-defined]
        ),
        ("SUM(revenue) GROUP BY sex", (weight("revenue", lambda x: x),), each("sex")),
        ("SUM(revenue * revenue)", (weight("revenue", lambda x: x * x),), None),
        (
            "SUM(revenue) WHERE revenue >= 1000 AND age BETWEEN 30 AND 40",
            (weight("revenue", lambda x: x * (x >= 1000)), ADULT),
            None,
        ),
        (
            "SUM(revenue) WHERE revenue <= 50",
            (weight("revenue", lambda x: x * (x <= 50)),),
            None,
        ),
        ("SUM(weight of age)", (weight("age", lambda x: x**3 / 100),), None),
        (
            "COUNT(*) WHERE sex IN ('F', 'M') GROUP BY sex",
            (),
            by("sex", lambda sex: ["F", "M", "d'or"].index(str(sex)) if sex != "d'or" else -1),
        ),
    ],
)
def test_a_query_is_said_in_sql(
    said: str, factors: tuple[Factor, ...], groups: Partition | None
) -> None:
    condition = "revenue >= 1000 AND age"
    if condition in said:  # factors are in the order of their axes
        said = "SUM(revenue) WHERE age BETWEEN 30 AND 40 AND revenue >= 1000"
    assert text(*factors, groups=groups) == said


def test_bins_are_said_by_their_edges() -> None:
    hours = [np.array(kept, dtype=np.int64) for kept in ([1, 1, 0], [0, 1, 0], [0, 1, 1])]
    said = [text(Factor(("hours",), one)) for one in hours]
    assert said == [
        "COUNT(*) WHERE hours < 40",
        "COUNT(*) WHERE hours >= 20 AND hours < 40",
        "COUNT(*) WHERE hours >= 20 AND hours <= 99",
    ]


def test_what_hangs_together_is_said_by_its_number() -> None:
    both = Factor(("churned", "sex"), np.array([[1, 0, 0], [0, 1, 1]]))
    assert text(both) == "COUNT(*) WHERE (churned, sex) in 3 of 6 combinations"
    groups = Partition(("churned", "sex"), np.arange(6).reshape(2, 3))
    assert text(groups=groups) == "COUNT(*) GROUP BY churned, sex"


def test_a_sum_of_several_aggregates_names_each() -> None:
    terms = (
        Term(Fraction(1), (ADULT,)),
        Term(Fraction(-1, 2), (weight("revenue", lambda x: x),)),
    )
    said = query_text(QueryBlock(LinearQuery(terms), each("sex")), DECLARED)
    assert said == (
        "1 * COUNT(*) FILTER (WHERE age BETWEEN 30 AND 40) + -5000 * SUM(revenue) GROUP BY sex"
    )


def test_without_a_declaration_columns_are_named_alone() -> None:
    said = query_text(QueryBlock(counting((ADULT,)), each("sex")), None)
    assert said == "COUNT(*) WHERE (age) in 11 of 75 levels GROUP BY sex"
