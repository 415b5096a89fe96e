"""The configuration file: what loads, and that everything wrong with it is said at once."""

import datetime as dt
from fractions import Fraction
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from cube.axis import (
    BooleanAxis,
    CategoryAxis,
    DateAxis,
    IntegerAxis,
    MeasureAxis,
    NumericAxis,
)
from cube.refusals import ConfigurationInvalid
from cube.schema import Neighbours
from cube.target import AccuracyTarget
from proxy.config import Settings, load, parse_epsilon
from proxy.config_axes import read_axis
from proxy.config_ledger import LedgerSettings
from proxy.config_problems import Problems
from proxy.sources.location import SourceLocation

GOOD = """\
[ledger]
path = "people.ledger"
[tables.people]
source = "people.csv"
budget = "1.5"
n_records_max = 1000
half_width = 20
[tables.people.columns.age]
kind = "integer"
low = 0
high = 120
"""
ALL_KINDS = """
[tables.people.columns.city]
kind = "category"
levels = ["Oslo", "Rome"]
other = "elsewhere"
null = true
[tables.people.columns.income]
kind = "numeric"
edges = [0, 1.5, 10]
other = -1
[tables.people.columns."is member"]
kind = "boolean"
null = true
[tables.people.columns.born]
kind = "date"
low = 1900-01-01
high = 2020-12-31
other = 1800-01-01
[tables.people.columns.pay]
kind = "measure"
low = -0.5
high = 1e3
step = 0.1
null = true
"""


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    (tmp_path / "people.csv").write_text("age\n30\n")
    return tmp_path


def loaded(folder: Path, text: str) -> Settings:
    path = folder / "tacit.toml"
    path.write_text(text, encoding="utf-8")
    return load(path)


def problems(folder: Path, text: str) -> list[str]:
    with pytest.raises(ConfigurationInvalid) as caught:
        loaded(folder, text)
    heading, *listed = caught.value.message.split("\n  ")
    expected = "a problem" if len(listed) == 1 else f"{len(listed)} problems"
    assert heading == f"{folder / 'tacit.toml'} has {expected}:"
    return listed


def test_a_short_file_is_filled_in_with_defaults(folder: Path) -> None:
    settings = loaded(folder, GOOD)
    (table,) = settings.tables
    assert settings.server.listen == "127.0.0.1:31337"
    assert settings.server.tls is None
    assert settings.ledger == LedgerSettings(path=folder / "people.ledger")
    assert table.schema.table == "people"
    assert table.schema.neighbours is Neighbours.ADD_REMOVE
    assert table.location == SourceLocation(path=folder / "people.csv")
    assert table.schema.unit is None
    assert table.budget == Fraction(3, 2)
    assert table.default == AccuracyTarget(half_width=20, confidence=0.95)


def test_every_kind_of_column_becomes_its_axis(folder: Path) -> None:
    (table,) = loaded(folder, GOOD + ALL_KINDS).tables
    assert table.schema.axes == (
        IntegerAxis(name="age", low=0, high=120),
        CategoryAxis(name="city", values=("Oslo", "Rome"), other="elsewhere", null=True),
        NumericAxis(name="income", edges=(0.0, 1.5, 10.0), other=-1.0),
        BooleanAxis(name="is member", null=True),
        DateAxis(
            name="born",
            low=dt.date(1900, 1, 1),
            high=dt.date(2020, 12, 31),
            other=dt.date(1800, 1, 1),
        ),
        MeasureAxis(name="pay", low=Fraction(-1, 2), high=1000, step=Fraction(1, 10), null=True),
    )


def test_all_problems_are_listed_at_once_each_with_its_key(folder: Path) -> None:
    text = """
    surprise = 1
    [server]
    listen = "somewhere"
    tls_key = "no.pem"
    port = 1
    [tables.people]
    source = "absent.csv"
    budget = "1/3"
    half_width = 0
    confidence = 1.0
    neighbours = "everyone"
    typo = true
    [tables.people.columns.a]
    low = 0
    [tables.people.columns.b]
    kind = "integer"
    low = 9
    high = 3
    [tables.people.columns."c d"]
    kind = "category"
    levels = ["x", 1, "x"]
    leves = []
    [tables.people.columns.e]
    kind = "shape"
    [tables.other]
    columns = 3
    """
    found = problems(folder, text)
    keys = [problem.split(": ")[0] for problem in found]
    assert sorted(keys) == sorted(
        [
            "surprise",
            "ledger",
            *("server.port", "server.listen", "server.tls_certificate", "server.tls_key"),
            "tables.people.source",
            *(f"tables.people.{key}" for key in ("n_records_max", "typo", "neighbours")),
            *(f"tables.people.{key}" for key in ("budget", "half_width", "confidence")),
            "tables.people.columns.a.kind",
            "tables.people.columns.b",
            'tables.people.columns."c d".levels.1',
            'tables.people.columns."c d".leves',
            "tables.people.columns.e.kind",
            *(f"tables.other.{key}" for key in ("source", "budget", "n_records_max", "half_width")),
            "tables.other.columns",
        ]
    )
    assert "tables.people.columns.b: low 9 is above high 3" in found
    known = "half_width, confidence, neighbours, strategy, columns"
    assert any(problem.endswith(known) for problem in found if "typo" in problem)


@pytest.mark.parametrize(
    ("server", "expected"),
    [
        ('listen = "0.0.0.0:1"', "server.listen: is not loopback, which needs tls_certificate"),
        ('listen = "db.example:1"', "server.listen: is not loopback"),
        ('listen = "[::]:1"', "server.listen: is not loopback"),
        ('listen = "127.0.0.1"', "server.listen: should be host:port"),
        ('listen = "127.0.0.1:65536"', "server.listen: should be host:port"),
        ('tls_certificate = "people.csv"', "server.tls_key: is missing"),
        ("listen = 31337", "server.listen: should be a valid string"),
    ],
)
def test_a_server_that_cannot_be_is_a_problem(folder: Path, server: str, expected: str) -> None:
    (problem,) = problems(folder, f"[server]\n{server}\n{GOOD}")
    assert problem.startswith(expected)


@pytest.mark.parametrize("listen", ["localhost:0", "127.8.8.8:1", "[::1]:31337"])
def test_loopback_needs_no_certificate(folder: Path, listen: str) -> None:
    assert loaded(folder, f'[server]\nlisten = "{listen}"\n{GOOD}').server.listen == listen


def test_a_certificate_opens_the_server_to_the_network(folder: Path) -> None:
    for name in ("a.pem", "b.pem"):
        (folder / name).write_text("")
    text = '[server]\nlisten="0.0.0.0:1"\ntls_certificate="a.pem"\ntls_key="b.pem"\n'
    tls = loaded(folder, text + GOOD).server.tls
    assert tls is not None
    assert (tls.certificate, tls.key) == (folder / "a.pem", folder / "b.pem")


def test_the_environment_overrides_the_server_and_nothing_else(
    folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("TACIT_SERVER__LISTEN", "127.0.0.1:4")
    monkeypatch.setenv("TACIT_LEDGER__PATH", "elsewhere")
    monkeypatch.setenv("TACIT_TABLES__PEOPLE__BUDGET", "99")
    monkeypatch.setenv("BUDGET", "99")
    settings = loaded(folder, f'[server]\nlisten = "127.0.0.1:3"\n{GOOD}')
    assert settings.server.listen == "127.0.0.1:4"
    assert settings.ledger == LedgerSettings(path=folder / "people.ledger")
    assert settings.tables[0].budget == Fraction(3, 2)
    monkeypatch.setenv("TACIT_SERVER__LISTEN", "0.0.0.0:4")
    assert problems(folder, GOOD)[0].startswith("server.listen: is not loopback")


@pytest.mark.parametrize(
    ("old", "new", "key"),
    [
        ('"people.csv"', '"people.txt"', "source"),
        ('"people.csv"', '"people.duckdb"', "source"),
        ('"people.csv"', '"people.csv"\nsource_table = "t"', "source"),
        ('"people.csv"', '"."', "source"),
        ("n_records_max = 1000", "n_records_max = 0", "n_records_max"),
        ("n_records_max = 1000", "n_records_max = 1e3", "n_records_max"),
        ("n_records_max = 1000", "n_records_max = true", "n_records_max"),
        ("half_width = 20", "half_width = nan", "half_width"),
        ("half_width = 20", "half_width = inf", "half_width"),
        ("half_width = 20", 'half_width = "20"', "half_width"),
        ("high = 120", "high = 99999999999", "columns.age"),
        ("high = 120", "high = 120\nother = 7", "columns.age"),
        ("high = 120", "high = 120.0", "columns.age.high"),
        ("high = 120", "high = 120\nnull = 1", "columns.age.null"),
    ],
)
def test_one_wrong_value_is_one_problem(folder: Path, old: str, new: str, key: str) -> None:
    (problem,) = problems(folder, GOOD.replace(old, new))
    assert problem.startswith(f"tables.people.{key}: ")


@pytest.mark.parametrize("value", ["0", '"0"', "-1", '"-1"', "true", "nan", "inf", '"1e3"', "[]"])
def test_a_budget_is_a_positive_decimal(folder: Path, value: str) -> None:
    (problem,) = problems(folder, GOOD.replace('"1.5"', value))
    assert problem.startswith("tables.people.budget: should be a positive decimal")


@given(st.integers(1, 10**9), st.integers(0, 6))
def test_a_budget_is_exactly_what_is_written(digits: int, places: int) -> None:
    exact = Fraction(digits, 10**places)
    text = f"{digits // 10**places}.{digits % 10**places:0{places}d}" if places else str(digits)
    for value in (text, float(text)):
        assert parse_epsilon(value) == (exact if exact <= 4096 else None)


def test_tables_may_not_share_a_name(folder: Path) -> None:
    text = GOOD + GOOD.split("\n", 2)[2].replace("tables.people", "tables.People")
    assert problems(folder, text) == [
        "tables: two tables share a name (letter case does not count)"
    ]


def test_columns_may_not_share_a_name(folder: Path) -> None:
    text = GOOD + '[tables.people.columns.AGE]\nkind = "boolean"\n'
    assert "two columns share a name" in problems(folder, text)[0]


def test_no_tables_and_no_columns_are_problems(folder: Path) -> None:
    assert problems(folder, '[ledger]\npath = "x"\n[tables]')[0].startswith("tables: ")
    text = GOOD.split("[tables.people.columns.age]", maxsplit=1)[0]
    assert problems(folder, text) == ["tables.people.columns: is missing"]
    assert problems(folder, text + "columns = {}") == [
        "tables.people.columns: should hold at least one column"
    ]


@pytest.mark.parametrize("path", [".", "absent/x.ledger"])
def test_a_ledger_lies_in_a_directory_that_exists(folder: Path, path: str) -> None:
    (problem,) = problems(folder, GOOD.replace("people.ledger", path))
    assert problem.startswith("ledger.path: ")


SHARED = GOOD.replace(
    'path = "people.ledger"', 'url = "postgresql://tacit@localhost/money"\nkey = "shared.key"'
)


def test_a_ledger_may_lie_in_a_database_that_servers_share(folder: Path) -> None:
    ledger = loaded(folder, SHARED).ledger
    url = "postgresql://tacit@localhost/money"
    assert ledger == LedgerSettings(url=url, key=folder / "shared.key")
    assert ledger.location == url
    assert loaded(folder, GOOD).ledger.location == str(folder / "people.ledger")


def test_a_server_may_sign_how_far_its_ledger_has_come(folder: Path) -> None:
    text = SHARED.replace("key =", 'signing_key = "owner.pem"\nsigned_head = "head.json"\nkey =')
    ledger = loaded(folder, text).ledger
    assert (ledger.signing_key, ledger.signed_head) == (folder / "owner.pem", folder / "head.json")


@pytest.mark.parametrize(
    ("old", "new", "expected"),
    [
        ('key = "shared.key"', "", "ledger.key: is missing"),
        ('key = "shared.key"', 'key = "absent/shared.key"', "ledger.key: should be a file"),
        ("key =", 'path = "x.ledger"\nkey =', "ledger.url: stands beside path"),
        ("key =", 'signing_key = "owner.pem"\nkey =', "ledger.signed_head: is missing"),
        ("key =", 'signed_head = "head.json"\nkey =', "ledger.signing_key: is missing"),
        ("tacit@localhost", "tacit:hush@localhost", "ledger.url: holds a password"),
        ("postgresql:", "mysql:", "ledger.url: should be postgresql://"),
        ("/money", "", "ledger.url: should name one database"),
        ("/money", "/money?sslmode=disable&password=hush", "ledger.url: has an option"),
        (
            "localhost/money",
            "db.example/money?sslmode=prefer",
            "ledger.url: is not on this machine",
        ),
    ],
)
def test_a_shared_ledger_that_cannot_be_is_a_problem(
    folder: Path, old: str, new: str, expected: str
) -> None:
    (problem,) = problems(folder, SHARED.replace(old, new))
    assert problem.startswith(expected)
    assert "hush" not in problem


def test_a_ledger_is_somewhere_and_a_file_has_its_key_beside_it(folder: Path) -> None:
    (problem,) = problems(folder, GOOD.replace('path = "people.ledger"', ""))
    assert problem.startswith("ledger.path: is missing")
    (problem,) = problems(folder, GOOD.replace("path =", 'key = "k"\npath ='))
    assert problem.startswith("ledger.key: goes with url")


def refusal(path: Path) -> str:
    with pytest.raises(ConfigurationInvalid) as caught:
        load(path)
    return caught.value.explain()


def test_what_is_no_toml_file_is_refused(tmp_path: Path) -> None:
    path = tmp_path / "tacit.toml"
    assert "There is no file" in refusal(path)
    assert "tacit init" in refusal(path)
    assert "is a directory" in refusal(tmp_path)
    path.write_bytes(b"a = '\xff'")
    assert "not UTF-8" in refusal(path)
    path.write_text("a = 1\nb = \n")
    assert "not valid TOML" in refusal(path)
    assert "line 2" in refusal(path)
    path.write_text("a = " + "[" * 100_000)
    assert "nested too deeply" in refusal(path)


@given(
    st.recursive(
        st.one_of(st.none(), st.booleans(), st.integers(), st.floats(), st.text(), st.dates()),
        lambda inner: st.one_of(
            st.lists(inner, max_size=3),
            st.dictionaries(
                st.one_of(
                    st.sampled_from(
                        [
                            "kind",
                            "low",
                            "high",
                            "step",
                            "levels",
                            "edges",
                            "other",
                            "null",
                            "columns",
                        ]
                    ),
                    st.text(max_size=3),
                ),
                inner,
                max_size=4,
            ),
        ),
        max_leaves=8,
    ),
    st.sampled_from(["category", "integer", "numeric", "boolean", "date", "measure", None]),
)
def test_any_value_in_a_column_is_an_axis_or_a_problem(value: Any, kind: str | None) -> None:
    if isinstance(value, dict) and kind is not None:
        value["kind"] = kind
    found = Problems(Path("x"))
    axis = read_axis("column", value, ("columns", "column"), found)
    if axis is None:
        with pytest.raises(ConfigurationInvalid):
            found.raise_if_any()
    else:
        assert axis.size >= 1


def test_no_problem_hides_behind_another(folder: Path) -> None:
    text = GOOD.replace('"people.csv"', '"absent.csv"').replace("budget", "bugdet")
    text += '[tables.people.columns.AGE]\nkind = "boolean"\n'
    found = problems(folder, text)
    assert [problem.split(": ")[0] for problem in found] == [
        "tables.people.bugdet",
        "tables.people.budget",
        "tables.people.source",
        "tables.people",
    ]
