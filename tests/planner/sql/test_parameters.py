"""Bind parameters: values become literals of the tree, whatever they hold."""

import datetime as dt
from decimal import Decimal
from fractions import Fraction

import pytest
from sqlglot import exp

from cube.refusals import InvalidSql, TooLarge
from planner.sql.messages import DIALECT
from planner.sql.parameters import Parameter, ParameterKind, parameter_of, parameters_in
from planner.sql.query_tree import parse
from planner.sql.statements import Query


def bound(sql: str, *values: object) -> str:
    tree = parse(Query(sql), tuple(parameter_of(value) for value in values)).tree
    return tree.sql(dialect=DIALECT)


@pytest.mark.parametrize(
    ("value", "shown"),
    [
        (7, "7"),
        (-7, "(-7)"),
        (0.1, "0.1"),
        (-1e-7, "(-1e-07)"),
        (Decimal("-1.50"), "(-1.50)"),
        (Decimal("1E+3"), "1000"),
        ("it's -- ; DROP", "'it''s -- ; DROP'"),
        (True, "TRUE"),
        (False, "FALSE"),
        (None, "NULL"),
        (dt.date(2024, 2, 29), "CAST('2024-02-29' AS DATE)"),
        (dt.datetime(2024, 2, 29, 12, 30), "CAST('2024-02-29 12:30:00' AS TIMESTAMP)"),  # noqa: DTZ001
        (dt.time(12, 30, 0, 5), "CAST('12:30:00.000005' AS TIME)"),
        (
            dt.datetime(2024, 2, 29, 1, tzinfo=dt.timezone(dt.timedelta(hours=2))),
            "CAST('2024-02-28 23:00:00' AS TIMESTAMP)",
        ),
    ],
)
def test_a_value_is_the_literal_that_it_would_be_written_as(value: object, shown: str) -> None:
    assert bound("SELECT COUNT(*) FROM t WHERE x > ?", value).endswith(f"x > {shown}")


def test_marks_are_numbered_as_they_stand_wherever_they_are() -> None:
    sql = "WITH s AS (SELECT ? AS a FROM t WHERE b = ?) SELECT a, ? FROM s WHERE c = ? LIMIT ?"
    assert bound(sql, *range(1, 6)) == (
        "WITH s AS (SELECT 1 AS a FROM t WHERE b = 2) SELECT a, 3 FROM s WHERE c = 4 LIMIT 5"
    )
    assert bound("SELECT CAST(? AS INT), ?::date, '?' FROM t", 1, "2024-01-01") == (
        "SELECT CAST(1 AS INT), CAST('2024-01-01' AS DATE), '?' FROM t"
    )


def test_a_number_may_stand_in_several_places_and_a_name_too() -> None:
    assert bound("SELECT $2, $1, $2 FROM t", 5, 6) == "SELECT 6, 5, 6 FROM t"
    named = (parameter_of(6, "last"), parameter_of(5, "first"))
    tree = parse(Query("SELECT :first, :last, :first FROM t"), named).tree
    assert tree.sql(dialect=DIALECT) == "SELECT 5, 6, 5 FROM t"


def test_a_name_that_is_a_number_is_none() -> None:
    sent = tuple(parameter_of(value, str(place)) for place, value in enumerate((5, 6)))
    tree = parse(Query("SELECT ?, ? FROM t"), sent).tree
    assert tree.sql(dialect=DIALECT) == "SELECT 5, 6 FROM t"


def test_the_parameters_of_a_text_are_counted_once_each() -> None:
    assert parameters_in(parse(Query("SELECT $3 FROM t WHERE a = $1")).tree) == ("1", "2", "3")
    assert parameters_in(parse(Query("SELECT ?, ? FROM t")).tree) == ("1", "2")
    assert parameters_in(parse(Query("SELECT :a FROM t WHERE b = :a")).tree) == ("a",)


@pytest.mark.parametrize(
    ("sql", "values", "said"),
    [
        ("SELECT ? FROM t", (1, 2), "has 1 parameters, but 2 values were sent"),
        ("SELECT ?, ? FROM t", (1,), "has 2 parameters, but 1 values were sent"),
        ("SELECT 1 FROM t", (1,), "has 0 parameters"),
        ("SELECT :a FROM t", (1,), "No value was sent for the parameter a"),
    ],
)
def test_values_that_do_not_fit_are_refused(
    sql: str, values: tuple[object, ...], said: str
) -> None:
    with pytest.raises(InvalidSql, match=said):
        bound(sql, *values)


@pytest.mark.parametrize("value", [b"bytes", [1], float("nan"), float("inf"), Fraction(1, 3)])
def test_a_value_that_is_no_literal_is_refused(value: object) -> None:
    with pytest.raises(InvalidSql, match="A parameter of type"):
        parameter_of(value)


@pytest.mark.parametrize("number", ["1000", "2000000000", "9" * 5000])
def test_a_large_number_makes_no_long_list(number: str) -> None:
    with pytest.raises(TooLarge, match="more than 999 parameters"):
        parameters_in(parse(Query(f"SELECT ${number} FROM t")).tree)  # noqa: S608 - digits


def test_values_are_limited_as_texts_are() -> None:
    with pytest.raises(TooLarge):
        bound("SELECT ? FROM t", "x" * 70_000)
    with pytest.raises(TooLarge):
        bound("SELECT ? FROM t", *range(2000))


def test_values_that_compare_equal_are_told_apart() -> None:
    assert len({parameter_of(1), parameter_of(1.0), parameter_of(True)}) == 3
    assert parameter_of(1, "a") == Parameter(ParameterKind.NUMBER, "1", "a")
    assert isinstance(parameter_of(None).literal, exp.Null)
