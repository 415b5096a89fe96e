"""SET, RESET and SHOW: what they say, and what is refused with the way out."""

from fractions import Fraction

import pytest

from cube.refusals import InvalidSql, InvalidTarget, Refused, TooLarge, UnknownName
from planner.sql.settings import (
    CLIENT_SETTINGS,
    ClientSetting,
    ResetAll,
    ResetSetting,
    SetSetting,
    ShowClientSetting,
    ShowSetting,
)
from planner.sql.statements import read_statement, read_text
from planner.sql.words import N_SETTINGS_MAX

HALF = SetSetting("half_width", Fraction(50))

# By the text: the refusal, and some of its words.
REFUSED: dict[str, tuple[type[Refused], str]] = {
    "SET tacit.half_widht = 5": (UnknownName, "Did you mean 'tacit.half_width'"),
    "SET half_width = 5": (UnknownName, "Did you mean 'tacit.half_width'"),
    "RESET tacit.halfwidth": (UnknownName, "tacit.half_width"),
    "SHOW work_memory": (UnknownName, "The settings are tacit.half_width"),
    "SET work_memory = 5": (UnknownName, "'work_memory'"),
    "SET tacit.half_width = much": (InvalidTarget, "tacit.half_width must be a decimal"),
    "SET tacit.half_width = 1, 2": (InvalidTarget, "one number, or DEFAULT"),
    "SET tacit.half_width = - '1'": (InvalidTarget, "one number, or DEFAULT"),
    "SET tacit.relative = half": (InvalidTarget, "tacit.relative must be a decimal number"),
    "SET tacit.fallback = 'guess'": (InvalidTarget, "guess is not a fallback"),
    "SET tacit.fallback = a, b": (InvalidTarget, "one word, or DEFAULT"),
    "SET tacit.half_width = - x": (InvalidTarget, "one number, or DEFAULT"),
    "SET tacit.half_width = E'a lot'": (InvalidTarget, "tacit.half_width must be a decimal"),
    "SET tacit.half_width = $$much$$": (InvalidTarget, "tacit.half_width must be a decimal"),
    "SET tacit.epsilon = 1e999999999": (InvalidTarget, "decimal number"),
    "SET tacit.half_width = 0x10": (InvalidTarget, "one number"),
    "SET tacit.half_width 5": (InvalidSql, "SET has a syntax error near 5"),
    "SET 'tacit.half_width' = 5": (InvalidSql, "SET has a syntax error near tacit.half_width = 5"),
    "SET": (InvalidSql, "near the end"),
    "SET tacit.": (InvalidSql, "near the end"),
    "RESET tacit.epsilon = 1": (InvalidSql, "RESET has a syntax error"),
    "RESET TIME ZONE 'UTC'": (InvalidSql, "RESET has a syntax error"),
    "SHOW ALL, tacit.epsilon": (InvalidSql, "SHOW has a syntax error"),
    "SET application_name = 'open": (InvalidSql, "may not be closed"),
    "SET tacit.epsilon = 1;" * (N_SETTINGS_MAX + 2): (TooLarge, "settings"),
    "SET search_path = " + "a, " * 1000: (TooLarge, "words and signs"),
}


@pytest.mark.parametrize(
    ("sql", "statements"),
    [
        ("SET tacit.half_width = 50", [HALF]),
        ("set SESSION Tacit.HALF_width to 50;", [HALF]),
        ("SET tacit.half_width = '50' ; ;", [HALF]),
        ('SET "tacit"."half_width"=+5e1', [HALF]),
        ("-- first\nSET/**/tacit . half_width/* ; */=50.0 -- ;", [HALF]),
        ("SET /* /* */ */ tacit.half_width = 50", [HALF]),
        ("SET tacit.epsilon = 0.1", [SetSetting("epsilon", Fraction(1, 10))]),
        ("SET LOCAL tacit.epsilon = 1", [SetSetting("epsilon", Fraction(1), is_local=True)]),
        ("SET LOCAL timezone = 'UTC'", [ClientSetting("timezone", "UTC", is_local=True)]),
        ("SET LOCAL timezone TO DEFAULT", [ClientSetting("timezone", None, is_local=True)]),
        ("SET TIME ZONE LOCAL", [ClientSetting("time zone")]),
        ("SET lock_timeout = -1", [ClientSetting("lock_timeout", "-1")]),
        ("SET tacit.confidence TO .9", [SetSetting("confidence", Fraction(9, 10))]),
        ("SET tacit.confidence = DEFAULT", [ResetSetting("confidence")]),
        ("RESET tacit.epsilon", [ResetSetting("epsilon")]),
        ("RESET ALL", [ResetAll()]),
        ("SHOW tacit.epsilon", [ShowSetting("epsilon")]),
        ("SHOW search_path", [ShowClientSetting("search_path")]),
        ("SHOW TRANSACTION ISOLATION LEVEL", [ShowClientSetting("transaction")]),
        ("SET application_name = 'it''s; here'", [ClientSetting("application_name", "it's; here")]),
        (
            "SET application_name = E'\\'; SELECT 1 --'",
            [ClientSetting("application_name", "'; SELECT 1 --")],
        ),
        ("SET application_name = $$;$$", [ClientSetting("application_name", ";")]),
        ("SET TIME ZONE 'Europe/Oslo'", [ClientSetting("time zone", "Europe/Oslo")]),
        (
            "SET TimeZone TO 'UTC'; SET search_path = \"$user\", public;",
            [ClientSetting("timezone", "UTC"), ClientSetting("search_path", "$user, public")],
        ),
        (
            "SET SESSION CHARACTERISTICS AS TRANSACTION READ ONLY",
            [ClientSetting("session characteristics", "AS TRANSACTION READ ONLY")],
        ),
        (
            "SET NAMES 'utf8'; RESET client_encoding",
            [ClientSetting("names", "utf8"), ClientSetting("client_encoding")],
        ),
        (
            "SET extra_float_digits = 3; SET tacit.half_width = 50;",
            [ClientSetting("extra_float_digits", "3"), HALF],
        ),
    ],
)
def test_settings_are_read_as_postgresql_would(sql: str, statements: list[object]) -> None:
    assert [found.statement for found in read_text(sql)] == statements


@pytest.mark.parametrize("name", sorted(CLIENT_SETTINGS))
def test_everything_that_clients_set_is_read(name: str) -> None:
    equals = " = " if " " not in name and name not in ("names", "transaction") else " "
    assert read_statement(f"SET {name}{equals}'anything'") == ClientSetting(name, "anything")
    assert read_statement(f"RESET {name}") == ClientSetting(name)
    assert read_statement(f"SHOW {name}") == ShowClientSetting(name)


@pytest.mark.parametrize("sql", REFUSED)
def test_what_is_no_setting_is_refused_with_the_way_out(sql: str) -> None:
    refusal, says = REFUSED[sql]
    with pytest.raises(refusal) as caught:
        read_text(sql)
    assert says in caught.value.explain()
