"""The columns that a workload's queries need, read by the planner that would answer them."""

import pytest

from cube.refusals import InvalidRequest, InvalidSql, PrivateRows, Refused, TooLarge, UnknownName
from planner.planner import workload_scopes
from tests.planner.people import SCHEMA


@pytest.mark.parametrize(
    ("text", "scopes"),
    [
        ("SELECT COUNT(*) FROM people GROUP BY sex", [("sex",)]),
        ("select avg(age) from people where member group by SEX;", [("age", "member", "sex")]),
        (
            "SELECT COUNT(*) FROM people GROUP BY CUBE(sex, city)",
            [("City",), ("City", "sex"), ("sex",)],
        ),
        (
            "SELECT COUNT(*) FROM people; SELECT COUNT(*), AVG(score) FROM people GROUP BY sex",
            [("score", "sex"), ("sex",)],
        ),
        (
            "SELECT MEDIAN(age) FROM people; /* again */ SELECT COUNT(*) FROM people GROUP BY age",
            [("age",), ("age",)],
        ),
        (
            (
                "SELECT WITH DIFFERENTIAL_PRIVACY OPTIONS(half_width => 1) "
                "COUNT(*) AS n FROM people WHERE joined > DATE '2020-02-01' AND score + age > 5 "
                "GROUP BY member HAVING n > 3 ORDER BY n"
            ),
            [("age", "joined", "member", "score")],
        ),
    ],
)
def test_columns_are_those_of_the_linear_queries(text: str, scopes: list[tuple[str, ...]]) -> None:
    assert list(workload_scopes(text, SCHEMA)) == scopes


@pytest.mark.parametrize(
    ("text", "refusal", "words"),
    [
        ("SELECT COUNT(*) FROM people; SELECT * FROM people", PrivateRows, "Statement 2 of the"),
        ("SELECT COUNT(*) FROM orders", UnknownName, "no table orders"),
        ("SELECT COUNT(*) FROM people GROUP BY height", UnknownName, "Statement 1 of the"),
        ("SELECT 1", InvalidRequest, "does not read people"),
        ("SELECT COUNT(*) FROM people", InvalidRequest, "uses no columns"),
        (" ; -- nothing", InvalidRequest, "no statement"),
        ("SELECT COUNT(*) FROM people;" * 101, TooLarge, "Keep the most important statements"),
        (f"SELECT {' ' * 64 * 1024} 1", TooLarge, "The workload has"),
        ("SELECT 'open", InvalidSql, "quote"),
        ("DELETE FROM people", Refused, "Statement 1 of the workload"),
    ],
)
def test_what_could_not_be_asked_of_the_table_is_refused(
    text: str, refusal: type[Refused], words: str
) -> None:
    with pytest.raises(refusal) as caught:
        workload_scopes(text, SCHEMA)
    assert words in caught.value.explain()
    assert caught.value.hint
