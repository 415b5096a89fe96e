"""What has no meaning, or none that is computed here, is refused with its reason."""

import pytest

from cube.refusals import UnsupportedSql
from planner.domain.scratchpad import Scratchpad
from planner.sql.query_tree import parse
from planner.sql.statements import Query
from tests.planner.people import SCHEMA

# By expression, words of the reason.
REFUSED = {
    "age::numeric(50, 2)": "needs 1 to 38 digits",
    "member::float8": "which PostgreSQL does not",
    "(0.1 ^ 2)::text": "cannot be converted to text",
    "INTERVAL '1 foo'": "is not a valid interval",
    "INTERVAL '1 day' * 2.5 * score / 3.5": "neither constant nor whole",
    "joined + age::bigint": "days must be an integer",
    "sex + 1": "a number is needed",
    "SQRT(joined)": "a number is needed",
    "score::float8 % 2": "remainder of doubles",
    "ROUND(2.5, 'x' || 'y')": "whole number of digits",
    "score & 1.5": "needs whole numbers",
    "~ (score * 1.5)": "needs whole numbers",
    "age = '7.0'": "is not a valid bigint",
    "member AND age": "a condition is needed",
    "CASE WHEN member THEN sex ELSE age END": "mixes",
    "LENGTH(age)": "a text is needed",
    "age || joined": "neither is a text",
    "LEFT(sex, 1.5)": "is not a 32-bit integer",
    "SUBSTRING(sex, 2, -1)": "negative length",
    "LPAD(sex, age::int)": "needs a constant length",
    "SPLIT_PART(sex, ',', 0)": "constant position other than 0",
    "OVERLAY(sex PLACING 'x' FROM 0)": "before the first",
    "TRANSLATE(sex, sex, 'x')": "is not a literal",
    "STRPOS(sex, 'o', 1, 2)": "too many arguments",
    "REGEXP_LIKE(sex, 'a', 'n')": "flags",
    "DATE_TRUNC('day', joined, 'UTC')": "time zone as its third argument",
    "INTERVAL score DAY": "is not a constant",
    "CHR(0)": "is not the code of a character",
    r"sex LIKE 'a\'": "ends with its escape",
    "sex LIKE 'a' ESCAPE 'ab'": "more than one character",
    r"sex SIMILAR TO 'a\'": "ends with its escape",
    "sex SIMILAR TO '[[:alpha:]]'": "named class",
    "sex SIMILAR TO 'a{x'": "does not begin a number of repetitions",
    "sex SIMILAR TO '[a'": "without a closing",
    "sex ~ '(?i)a'": "regular expression",
    "sex ~ '(a'": "regular expression",
    "sex ~ 'a)'": "regular expression",
    "sex ~ 'a(?=b)'": "regular expression",
    "sex ~ '*a'": "regular expression",
    "sex ~ 'a{x'": "regular expression",
    "sex ~ 'a**'": "regular expression",
    r"sex ~ '\ma'": "regular expression",
    "sex ~ '[a'": "regular expression",
    "sex ~ '[[:foo:]]'": "regular expression",
    "REGEXP_REPLACE(sex, 'a|b', 'x')": "regular expression",
    "REGEXP_REPLACE(sex, '(ab)*', 'x')": "regular expression",
    "REGEXP_REPLACE(sex, 'a', 'x', 'n')": "flags",
    r"REGEXP_REPLACE(sex, 'a', '\x')": "single backslash",
    "TO_CHAR(joined, sex)": "is not a literal",
    "TO_CHAR(INTERVAL '1 day', 'DD')": "formats an interval",
    "TO_CHAR(sex, 'YYYY')": "needs a date, a timestamp or a number",
    "TO_CHAR(joined, 'XYZ')": "in its pattern",
    "TO_CHAR(age, 'RN')": "in its pattern",
    "TO_CHAR(age, 'FM')": "needs a pattern with 1 to 30 digits",
    "TO_CHAR(age, 'PL9')": "unsupported sign",
    "DATE_TRUNC('day', joined) AT TIME ZONE 'EST'": "named by its region",
    "AGE(age, joined)": "a date or timestamp is needed",
    "JUSTIFY_DAYS(joined)": "needs an interval",
    "joined + MAKE_INTERVAL()": "has no arguments",
    "joined + MAKE_INTERVAL(days => 1.5)": "is not a 32-bit integer",
    "joined + MAKE_INTERVAL(days => 3000000000)": "is not a 32-bit integer",
    "joined + 3000000000": "days must be an integer",
    "INTERVAL '1 month' * 3000000000": "too long for an interval",
    "score | NULLIF(1, 0.5)": "needs whole numbers",
    "(joined, joined, joined) OVERLAPS (joined, joined)": "two pairs of ends",
}


@pytest.mark.parametrize(("sql", "reason"), REFUSED.items())
def test_it_is_refused_with_a_reason(sql: str, reason: str) -> None:
    with pytest.raises(UnsupportedSql, match=reason):
        refused(sql)


def refused(sql: str) -> None:
    """Evaluate an expression on levels."""
    tree = parse(Query(f"SELECT {sql}")).tree.selects[0]
    Scratchpad({"people": SCHEMA}).evaluate(tree, table="people")
