"""`tacit init`: drafts that say what is missing, and what was looked at."""

import datetime as dt
import tomllib
from pathlib import Path
from typing import Any

import duckdb
import pytest

from cube.axis import TimestampAxis
from cube.refusals import ConfigurationInvalid
from proxy.cli import app as cli
from proxy.config.settings import load
from proxy.sources.duckdb_source import DuckDbSource
from tests.support.groupings import each
from tests.support.postgres import PostgresServer

CANARY = "8675309"
ROWS = f"""\
name,age,pay,member,born,seen,"an ""odd"" name"
Ada {CANARY},36,1.5,true,1815-12-10,2020-01-01 10:00:00,x
Grace,85,2.25,false,1906-12-09,2020-01-02 11:00:00,
"""


@pytest.fixture
def people(tmp_path: Path) -> Path:
    path = tmp_path / "people.csv"
    path.write_text(ROWS)
    return path


def drafted(people: Path, *options: str) -> Path:
    output = people.parent / "tacit.toml"
    with pytest.raises(SystemExit) as ended:
        cli.main(["init", str(people), "--table", "people", "-o", str(output), *options])
    assert not ended.value.code
    return output


def columns_of(path: Path) -> dict[str, Any]:
    columns: dict[str, Any] = tomllib.loads(path.read_text())["tables"]["people"]["columns"]
    return columns


def test_a_draft_holds_names_and_types_and_nothing_of_the_rows(people: Path) -> None:
    output = drafted(people)
    text = output.read_text()
    assert columns_of(output) == {
        "name": {"kind": "category"},
        "age": {"kind": "integer"},
        "pay": {"kind": "measure"},
        "member": {"kind": "boolean"},
        "born": {"kind": "date"},
        "seen": {"kind": "timestamp"},
        'an "odd" name': {"kind": "category"},
    }
    assert "What was looked at: the names and types" in text
    for value in (CANARY, "Grace", "85", "36", "2.25", "1815", "1906"):
        assert value not in text


def test_loading_a_draft_lists_exactly_what_is_missing(people: Path) -> None:
    with pytest.raises(ConfigurationInvalid) as caught:
        load(drafted(people))
    _, *listed = caught.value.message.split("\n  ")
    assert listed == [
        f"tables.people.{key}: is missing"
        for key in (
            "n_records_max",
            "columns.name.levels",
            "columns.age.low",
            "columns.age.high",
            "columns.pay.low",
            "columns.pay.high",
            "columns.born.low",
            "columns.born.high",
            "columns.seen.low",
            "columns.seen.high",
            "columns.seen.step",
            'columns."an "odd" name".levels',
        )
    ]


def test_reading_levels_says_that_it_is_not_private_and_serves_every_row(people: Path) -> None:
    output = drafted(people, "--read-levels-from-data", "--n-records-max", "10")
    assert "NOT PRIVATE" in output.read_text()
    (table,) = load(output).tables
    assert DuckDbSource(table.schema, table.read_from).measure(
        each(table.schema)
    ).counts.tolist() == [2]
    columns = columns_of(output)
    assert columns["age"] == {"kind": "integer", "low": 35, "high": 85}
    assert columns['an "odd" name'] == {"kind": "category", "levels": ["x"], "null": True}
    assert columns["pay"] == {"kind": "measure", "low": 1.5, "high": 2.3, "step": 0.01}
    born = columns["born"]
    assert (born["low"].isoformat(), born["high"].isoformat()) == ("1815-01-01", "1906-12-31")
    first, last = dt.date(2020, 1, 1), dt.date(2020, 12, 31)
    assert columns["seen"] == {"kind": "timestamp", "low": first, "high": last, "step": "hour"}


def test_moments_with_a_zone_are_drafted_with_one_and_unserved_types_are_said(
    tmp_path: Path,
) -> None:
    path = tmp_path / "people.duckdb"
    with duckdb.connect(path) as connection:
        connection.execute(
            "CREATE TABLE people AS SELECT TIMESTAMPTZ '2020-01-01 10:00:00Z' AS a, "
            "TIMESTAMP_NS '1900-02-03 04:05:06' AS b, TIME '10:00' AS c"
        )
    output = drafted(path, "--read-levels-from-data", "--n-records-max", "10")
    assert "a TIME column cannot be served" in output.read_text()
    (table,) = load(output).tables
    zoned, early = table.schema.axes
    assert isinstance(zoned, TimestampAxis)
    assert isinstance(early, TimestampAxis)
    assert (zoned.time_zone, early.time_zone) == ("UTC", None)
    assert DuckDbSource(table.schema, table.read_from).measure(
        each(table.schema)
    ).counts.tolist() == [1]


def test_levels_are_left_open_where_there_are_none_or_far_too_many(tmp_path: Path) -> None:
    path = tmp_path / "people.csv"
    lines = "".join(f"key {row},,{row * 10**13}\n" for row in range(1001))
    path.write_text("a,b,c\n" + lines)
    columns = columns_of(drafted(path, "--read-levels-from-data"))
    assert columns == {
        "a": {"kind": "category"},
        "b": {"kind": "category"},
        "c": {"kind": "integer"},
    }


def test_a_constant_or_infinite_number_still_makes_a_measure(tmp_path: Path) -> None:
    path = tmp_path / "people.duckdb"
    with duckdb.connect(path) as connection:
        connection.execute("CREATE TABLE people AS SELECT 2.5::DOUBLE AS a, 'inf'::DOUBLE AS b")
        connection.execute("INSERT INTO people VALUES ('nan', 'nan')")
    columns = columns_of(drafted(path, "--read-levels-from-data"))
    assert columns == {
        "a": {"kind": "measure", "low": 2.4, "high": 2.6, "step": 0.01},
        "b": {"kind": "measure"},
    }


def test_levels_with_quotes_and_control_characters_come_back_as_they_were(tmp_path: Path) -> None:
    levels = sorted(["it's", 'say "so"', "back\\slash", "tab\t", "line\nfeed", "\x7f", "é", "😀"])
    path = tmp_path / "people.duckdb"
    with duckdb.connect(path) as connection:
        connection.execute('CREATE TABLE people ("é [x].\\y" VARCHAR)')
        connection.executemany("INSERT INTO people VALUES (?)", [[level] for level in levels])
    (column,) = columns_of(drafted(path, "--read-levels-from-data")).items()
    assert column == ("é [x].\\y", {"kind": "category", "levels": levels})


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        (["absent.csv", "-o", "new.toml"], "cannot be read"),
        (["people.txt", "-o", "new.toml"], "must be a .csv, .tsv, .parquet or .duckdb file"),
        (["people.csv", "-o", "people.csv"], "exists already"),
        (["people.csv", "-o", "absent/new.toml"], "cannot be written"),
    ],
)
def test_a_draft_that_cannot_be_is_refused_in_a_line(
    people: Path,
    arguments: list[str],
    said: str,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    monkeypatch.chdir(people.parent)
    with pytest.raises(SystemExit) as ended:
        cli.main(["init", *arguments, "--table", "people"])
    assert ended.value.code == 1
    shown = capsys.readouterr().err
    assert shown.startswith("error [configuration_invalid]: ")
    assert said in shown
    assert people.read_text() == ROWS


def test_what_would_not_be_served_is_not_drafted(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    path = tmp_path / "people.duckdb"
    with duckdb.connect(path) as connection:
        connection.execute("CREATE VIEW people AS SELECT 1 AS a")
    with pytest.raises(SystemExit):
        cli.main(["init", str(path), "--table", "people"])
    assert "people is a view" in capsys.readouterr().err


def test_a_draft_proposes_a_unit_by_its_name_and_the_sections_around(tmp_path: Path) -> None:
    path = tmp_path / "tickets.csv"
    path.write_text("ticket_id,fine,lot id\n1,35.5,3\n2,12.25,4\n")
    output = tmp_path / "tacit.toml"
    with pytest.raises(SystemExit) as ended:
        cli.main(["init", str(path), "--table", "tickets", "-o", str(output)])
    assert not ended.value.code
    drafted_file = tomllib.loads(output.read_text())
    table = drafted_file["tables"]["tickets"]
    assert table["unit"] == "ticket_id"
    assert list(table["columns"]) == ["fine", "lot id"]
    assert drafted_file["server"] == {"listen": "127.0.0.1:31337"}
    for section in ("# [public.cities]", "# allow_anonymous = true", "# relative = 0.02"):
        assert section in output.read_text()
    assert "35" not in output.read_text()


def test_rows_in_postgresql_that_cannot_be_read_are_a_clear_error(
    tmp_path: Path,
    postgres_server: PostgresServer,
    capsys: pytest.CaptureFixture[str],
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """A row that fails amid the others."""
    monkeypatch.chdir(tmp_path)
    with postgres_server.connect() as connection:
        connection.execute(
            f"CREATE VIEW fails AS SELECT '{CANARY}' AS name, 1 / (50000 - i) AS age "  # noqa: S608 - of this test
            "FROM generate_series(1, 90000) AS t(i)"
        )
    for table, said in (("fails", "reading a row fails"),):
        output = tmp_path / f"{table}.toml"
        draft = ["init", postgres_server.location(), "--table", table, "-o", str(output)]
        with pytest.raises(SystemExit) as ended:
            cli.main([*draft, "--read-levels-from-data"])
        told = capsys.readouterr().err
        assert ended.value.code
        assert said in " ".join(told.split())
        assert "Traceback" not in told
        assert CANARY not in told
        assert not output.exists()
        with pytest.raises(SystemExit) as ended:
            cli.main(draft)
        assert not ended.value.code
    assert {path.suffix for path in tmp_path.iterdir()} == {".toml"}  # nothing was put beside


def test_a_table_in_postgresql_is_drafted_as_the_same_rows_in_a_file_are(
    people: Path, postgres_server: PostgresServer, capsys: pytest.CaptureFixture[str]
) -> None:
    """The oracle is the draft of the file; the types are PostgreSQL's own."""
    with postgres_server.connect() as connection:
        connection.execute(
            "CREATE TABLE people (name text, age bigint, pay float8, member boolean, born date,"
            ' seen timestamp, "an ""odd"" name" varchar(9))'
        )
        connection.execute(
            "INSERT INTO people VALUES (%s, 36, 1.5, true, '1815-12-10', '2020-01-01 10:00', 'x'),"
            " ('Grace', 85, 2.25, false, '1906-12-09', '2020-01-02 11:00', NULL)",
            (f"Ada {CANARY}",),
        )
    location = postgres_server.location()
    for options in ((), ("--read-levels-from-data",)):
        of_file = columns_of(drafted(people, *options))
        output = people.parent / f"database{len(options)}.toml"
        with pytest.raises(SystemExit) as ended:
            cli.main(["init", location, "--table", "people", "-o", str(output), *options])
        assert not ended.value.code
        assert columns_of(output) == of_file
        assert (CANARY in output.read_text()) == bool(options)
        assert tomllib.loads(output.read_text())["tables"]["people"]["source"] == location
        (people.parent / "tacit.toml").unlink()
    for wrong, said in (
        (location.replace("owner", "owner:secret"), "holds a password"),
        (postgres_server.location("absent"), "cannot be read"),
    ):
        with pytest.raises(SystemExit) as ended:
            cli.main(["init", wrong, "--table", "people", "-o", str(people.parent / "no.toml")])
        told = capsys.readouterr().err
        assert ended.value.code
        assert said in " ".join(told.split())
        assert "secret" not in told
