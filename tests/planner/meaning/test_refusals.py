"""What has no meaning, or none that is computed here, is refused with its reason."""

import pytest

from cube.refusals import UnsupportedSql
from planner.domain.scratchpad import Scratchpad
from planner.sql.query_tree import parse
from planner.sql.statements import Query
from tests.planner.people import SCHEMA

# By expression, words of the reason.
REFUSED = {
    "age::numeric(50, 2)": "more than 38 digits",
    "member::float8": "which PostgreSQL does not",
    "(0.1 ^ 2)::text": "are not computed",
    "INTERVAL '1 foo'": "is no interval",
    "INTERVAL '1 day' * 2.5 * score / 3.5": "neither a constant nor a whole number",
    "joined + age::bigint": "days are an integer",
    "sex + 1": "is no number",
    "SQRT(joined)": "is no number",
    "score::float8 % 2": "remainder of doubles",
    "ROUND(2.5, 'x' || 'y')": "whole number of digits",
    "score & 1.5": "bits of whole numbers",
    "~ (score * 1.5)": "bits of whole numbers",
    "age = '7.0'": "is no bigint",
    "member AND age": "no condition",
    "CASE WHEN member THEN sex ELSE age END": "beside each other",
    "LENGTH(age)": "is no text",
    "age || joined": "joins no text",
    "LEFT(sex, 1.5)": "is no whole number",
    "SUBSTRING(sex, 2, -1)": "negative length",
    "LPAD(sex, age::int)": "no constant",
    "SPLIT_PART(sex, ',', 0)": "place that is a constant",
    "OVERLAY(sex PLACING 'x' FROM 0)": "before the first",
    "TRANSLATE(sex, sex, 'x')": "is no literal",
    "STRPOS(sex, 'o', 1, 2)": "more arguments",
    "REGEXP_LIKE(sex, 'a', 'n')": "flags",
    "DATE_TRUNC('day', joined, 'UTC')": "in a time zone",
    "INTERVAL score DAY": "is no constant",
    "CHR(0)": "is no character",
    r"sex LIKE 'a\'": "ends with its escape",
    "sex LIKE 'a' ESCAPE 'ab'": "more than one character",
    r"sex SIMILAR TO 'a\'": "ends with its escape",
    "sex SIMILAR TO '[[:alpha:]]'": "named class",
    "sex SIMILAR TO 'a{x'": "no number of times",
    "sex SIMILAR TO '[a'": "not closed",
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
    r"REGEXP_REPLACE(sex, 'a', '\x')": "backslash alone",
    "TO_CHAR(joined, sex)": "is no literal",
    "TO_CHAR(INTERVAL '1 day', 'DD')": "writes an interval",
    "TO_CHAR(sex, 'YYYY')": "no moment and of no number",
    "TO_CHAR(joined, 'XYZ')": "in its pattern",
    "TO_CHAR(age, 'RN')": "in its pattern",
    "TO_CHAR(age, 'FM')": "no place for a digit",
    "TO_CHAR(age, 'PL9')": "has a sign",
    "DATE_TRUNC('day', joined) AT TIME ZONE 'EST'": "names no time zone",
    "AGE(age, joined)": "is no moment",
    "JUSTIFY_DAYS(joined)": "is of no interval",
    "joined + MAKE_INTERVAL()": "has no parts",
    "joined + MAKE_INTERVAL(days => 1.5)": "is no whole number",
    "joined + MAKE_INTERVAL(days => 3000000000)": "is no whole number",
    "joined + 3000000000": "days are an integer",
    "INTERVAL '1 month' * 3000000000": "interval out of range",
    "score | NULLIF(1, 0.5)": "bits of whole numbers",
    "(joined, joined, joined) OVERLAPS (joined, joined)": "no pair of stretches",
}


@pytest.mark.parametrize(("sql", "reason"), REFUSED.items())
def test_it_is_refused_with_a_reason(sql: str, reason: str) -> None:
    with pytest.raises(UnsupportedSql, match=reason):
        refused(sql)


def refused(sql: str) -> None:
    """Evaluate an expression on levels."""
    tree = parse(Query(f"SELECT {sql}")).tree.selects[0]
    Scratchpad({"people": SCHEMA}).evaluate(tree, table="people")
