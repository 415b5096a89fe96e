"""The configuration file: what loads, and that everything wrong with it is said at once."""

from fractions import Fraction
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from cube.refusals import ConfigurationInvalid
from cube.schema import Neighbours
from cube.target import AccuracyTarget
from planner.measuring.weights import GaussianOffer
from proxy.config.budgets import parse_epsilon
from proxy.config.ledger import LedgerSettings
from proxy.config.settings import load
from proxy.config.sharing import Sharing
from proxy.sources.location import SourceLocation
from tests.support.config_files import GOOD, loaded, problems, write_people


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    return write_people(tmp_path)


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
    known = "confidence, neighbours, strategy, delta, expected_epsilon, history, preview, columns"
    assert any(problem.endswith(known) for problem in found if "typo" in problem)


@pytest.mark.parametrize(
    ("server", "expected"),
    [
        ('listen = "0.0.0.0:1"', "server.listen: is not loopback, so tls_certificate"),
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
        ('"people.csv"', '"nowhere/"', "source"),
        ('"people.csv"', '"*.parquet"', "source"),
        ('"people.csv"', '"*.csv"\nsource_table = "t"', "source"),
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


@pytest.mark.parametrize(
    ("value", "delta"),
    [("1e-9", Fraction(1, 10**9)), ('"1e-9"', Fraction(1, 10**9)), ("0", None), ("0.0", None)],
)
def test_a_delta_is_what_is_written_and_none_is_offered_for_0(
    folder: Path, value: str, delta: Fraction | None
) -> None:
    (table,) = loaded(folder, GOOD.replace("budget =", f"delta = {value}\nbudget =")).tables
    assert (table.gaussian and table.gaussian.delta) == delta


@pytest.mark.parametrize(
    ("line", "expected", "is_declared"),
    [("", Fraction(3, 8), False), ('expected_epsilon = "0.3"', Fraction(3, 10), True)],
)
def test_a_delta_is_for_what_is_expected_to_be_spent(
    folder: Path, line: str, expected: Fraction, is_declared: bool
) -> None:
    text = GOOD.replace("budget =", f"delta = 1e-9\n{line}\nbudget =")
    (table,) = loaded(folder, text).tables
    assert table.gaussian == GaussianOffer(Fraction(1, 10**9), expected, is_declared)


@pytest.mark.parametrize(
    ("line", "said"),
    [
        ('delta = 1e-9\nexpected_epsilon = "0"', "should be a positive decimal"),
        ('delta = 1e-9\nexpected_epsilon = "2"', "should be at most the budget"),
        ('expected_epsilon = "0.3"', "is for a table with a delta"),
    ],
)
def test_what_is_expected_needs_a_delta_and_fits_the_budget(
    folder: Path, line: str, said: str
) -> None:
    (problem,) = problems(folder, GOOD.replace("budget =", f"{line}\nbudget ="))
    assert problem.startswith(f"tables.people.expected_epsilon: {said}")


@pytest.mark.parametrize("value", ["0.5", "-1e-9", "true", '"small"', "1e-40", "[]"])
def test_a_delta_is_small_and_positive(folder: Path, value: str) -> None:
    (problem,) = problems(folder, GOOD.replace("budget =", f"delta = {value}\nbudget ="))
    assert problem.startswith("tables.people.delta: should be 0, or from 1e-30 to 1e-5")


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


def test_no_tables_and_no_columns_are_problems(folder: Path) -> None:
    assert problems(folder, '[ledger]\npath = "x"\n[tables]')[0].startswith("tables: ")
    text = GOOD.split("[tables.people.columns.age]", maxsplit=1)[0]
    assert problems(folder, text) == ["tables.people.columns: is missing"]
    assert problems(folder, text + "columns = {}") == [
        "tables.people.columns: should hold at least one column"
    ]


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


def test_no_problem_hides_behind_another(folder: Path) -> None:
    text = GOOD.replace('"people.csv"', '"absent.csv"').replace("budget", "bugdet")
    text += '[tables.people.columns.AGE]\nkind = "boolean"\n'
    found = problems(folder, text)
    assert [problem.split(": ")[0] for problem in found] == [
        "tables.people.source",
        "tables.people.bugdet",
        "tables.people.budget",
        "tables.people",
    ]


@pytest.mark.parametrize("sharing", list(Sharing))
def test_a_history_is_shared_or_private(folder: Path, sharing: Sharing) -> None:
    text = GOOD.replace("budget =", f'history = "{sharing}"\nbudget =')
    (table,) = loaded(folder, text).tables
    assert table.sharing is sharing
    (table,) = loaded(folder, GOOD).tables
    assert table.sharing is Sharing.SHARED
    (problem,) = problems(folder, text.replace(sharing, "secret"))
    assert problem == "tables.people.history: should be one of shared, private"
