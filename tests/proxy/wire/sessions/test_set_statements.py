"""The text of settings: SET, RESET and SHOW, what is left as it was written, what is refused."""

import re
from fractions import Fraction
from pathlib import Path

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from cube.refusals import InvalidSql, InvalidTarget, Refused, TooLarge, UnknownName, UnsupportedSql
from proxy.wire.sessions.sessions import HEADERS
from proxy.wire.sessions.set_statements import (
    IGNORED,
    N_SETTINGS_MAX,
    SETTING_NAMES,
    Ignored,
    ResetAll,
    Set,
    Show,
    split_settings,
)

HALF = Set("half_width", Fraction(50))


@pytest.mark.parametrize(
    ("sql", "commands"),
    [
        ("SET tacit.half_width = 50", [HALF]),
        ("set SESSION Tacit.HALF_width to 50;", [HALF]),
        ("SET tacit.half_width = '50' ; ;", [HALF]),
        ('SET "tacit"."half_width"=+5e1', [HALF]),
        ("-- first\nSET/**/tacit . half_width/* ; */=50.0 -- ;", [HALF]),
        ("SET tacit.epsilon = 0.1", [Set("epsilon", Fraction(1, 10))]),
        ("SET tacit.confidence TO .9", [Set("confidence", Fraction(9, 10))]),
        ("SET tacit.confidence = DEFAULT", [Set("confidence", None)]),
        ("RESET tacit.epsilon", [Set("epsilon", None)]),
        ("RESET ALL", [ResetAll()]),
        ("SHOW tacit.epsilon", [Show("epsilon")]),
        ("SET application_name = 'it''s; here'", [Ignored()]),
        ("SET TIME ZONE 'Europe/Oslo'", [Ignored()]),
        ("SET TimeZone TO 'UTC'; SET search_path = \"$user\", public;", [Ignored(), Ignored()]),
        ("SET SESSION CHARACTERISTICS AS TRANSACTION READ ONLY", [Ignored()]),
        ("SET NAMES 'utf8'; RESET client_encoding", [Ignored(), Ignored()]),
        ("SET extra_float_digits = 3; SET tacit.half_width = 50;", [Ignored(), HALF]),
    ],
)
def test_settings_are_read_as_postgresql_would(sql: str, commands: list[object]) -> None:
    assert split_settings(sql) == (tuple(commands), "")


@pytest.mark.parametrize("name", sorted(IGNORED))
def test_everything_on_the_list_of_what_is_ignored_is_ignored(name: str) -> None:
    equals = " = " if " " not in name and name not in ("names", "transaction") else " "
    assert split_settings(f"SET {name}{equals}'anything'") == ((Ignored(),), "")


@pytest.mark.parametrize(
    "statement",
    [
        "SELECT COUNT(*) FROM people",
        "  SELECT ';' -- SET tacit.half_width = 1",
        "EXPLAIN PRIVACY SELECT 1",
        "SELECT 1; SET tacit.half_width = 50",
        "settle; everything",
        '"set" tacit.half_width = 50',
        "'set'",
        "",
        ";",
        "/* /* SET */ SET tacit.half_width = 50 */",
    ],
)
def test_anything_else_is_left_as_it_was_written(statement: str) -> None:
    assert split_settings(statement) == ((), statement)
    if statement.strip("; "):
        assert split_settings(f"SET tacit.half_width = 50; {statement}") == (
            (HALF,),
            statement.lstrip(),
        )


@pytest.mark.parametrize(
    ("sql", "refusal", "says"),
    [
        ("SET LOCAL tacit.half_width = 5", UnsupportedSql, "there are no"),
        ("SET tacit.half_widht = 5", UnknownName, "Did you mean 'tacit.half_width'"),
        ("SET half_width = 5", UnknownName, "Did you mean 'tacit.half_width'"),
        ("RESET tacit.everything", UnknownName, "tacit.half_width"),
        ("SHOW work_mem", UnknownName, "Settings here are tacit.half_width"),
        ("SHOW search_path", UnsupportedSql, "has no effect"),
        ("SET ROLE admin", UnknownName, "'role'"),
        ("SET tacit.half_width = much", InvalidTarget, "tacit.half_width must be a decimal"),
        ("SET tacit.half_width = 1, 2", InvalidTarget, "one number, or DEFAULT"),
        ("SET tacit.half_width = - '1'", InvalidTarget, "one number, or DEFAULT"),
        ("SET tacit.epsilon = 1e999999999", InvalidTarget, "decimal number"),
        ("SET tacit.half_width = 0x10", InvalidTarget, "one number"),
        ("SET tacit.half_width 5", InvalidSql, "SET does not parse near 5"),
        ("SET", InvalidSql, "near the end"),
        ("SET tacit.", InvalidSql, "near the end"),
        ("RESET tacit.epsilon = 1", InvalidSql, "RESET does not parse"),
        ("SHOW ALL, tacit.epsilon", InvalidSql, "SHOW does not parse"),
        ("SHOW tacit.epsilon; SELECT 1", UnsupportedSql, "SHOW is answered alone"),
        ("SET tacit.epsilon = 1; SHOW tacit.epsilon", UnsupportedSql, "SHOW is answered alone"),
        ("SET application_name = 'open", InvalidSql, "may be left open"),
        ("SET application_name = E'\\'; SELECT 1 --'", InvalidSql, "read as words"),
        ("SET application_name = $$;$$", InvalidSql, "read as words"),
        ("SET /* /* */ */ tacit.epsilon = 1", InvalidSql, "read as words"),
        ("SET tacit.epsilon = 1;" * (N_SETTINGS_MAX + 1), TooLarge, "settings"),
        ("SET search_path = " + "a, " * 1000, TooLarge, "words and signs"),
    ],
)
def test_what_is_no_setting_is_refused_with_the_way_out(
    sql: str, refusal: type[Refused], says: str
) -> None:
    with pytest.raises(refusal) as caught:
        split_settings(sql)
    assert says in caught.value.explain()


@given(st.text(alphabet="sSeEtT .;=-/*'\"$0159\\tacithlfwd_\n", max_size=60))
@example("set" + "/*" * 30)
def test_any_text_at_all_is_read_or_refused(tail: str) -> None:
    for sql in (tail, f"SET {tail}", f"SET tacit.half_width = 5;{tail}"):
        try:
            commands, rest = split_settings(sql)
        except Refused:
            continue
        assert sql.endswith(rest)
        assert commands or rest == sql


@given(st.lists(st.sampled_from(["/*a*/", "-- b\n", " ", "/* * / */", "/*", "*/"]), max_size=3000))
def test_long_runs_of_comments_are_read_once(gaps: list[str]) -> None:
    sql = "".join(gaps) + "SELECT 1"
    try:
        commands, rest = split_settings(sql)
    except Refused:
        return
    assert (commands, rest) == ((), sql)


def test_what_is_ignored_is_documented_and_nothing_else_is() -> None:
    text = (Path(__file__).parents[4] / "docs" / "sessions.md").read_text()
    (paragraph,) = re.findall(
        r"as there is\nnothing to show: (.*?)\.\nEvery other", text, re.DOTALL
    )
    assert {name.lower() for name in re.findall(r"`([^`]+)`", paragraph)} == IGNORED
    for name, header in zip(SETTING_NAMES, HEADERS, strict=True):
        assert f"| `tacit.{name}` | `{header}` |" in text
