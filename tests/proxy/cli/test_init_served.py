"""What `tacit init` drafts of odd files `serve` takes, or `init` says what is in the way."""

import csv
import datetime as dt
import io
import tempfile
from collections.abc import Callable
from pathlib import Path

import duckdb
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from accountant.ledger.stores.postgres_location import PostgresLocation
from cube.refusals import ConfigurationInvalid
from proxy.cli.draft.configuration import draft
from proxy.cli.draft.levels import Seen, found_levels
from proxy.cli.draft.text_file import ToldFormat
from proxy.config.settings import load
from proxy.sources.duckdb_source import DuckDbSource
from proxy.sources.location import PostgresRows, SourceLocation
from tests.support.groupings import each
from tests.support.postgres import PostgresServer

TEXTS = st.text(st.characters(codec="utf-8", exclude_characters="\0"), max_size=8)
NAMES = st.one_of(
    st.sampled_from(
        ["id", "customer_id", "Käufer", "a b", "x.y", 'say "so"', "SELECT", "2019", "ä;ö"]
    ),
    st.text(st.characters(codec="utf-8", exclude_characters="\0"), min_size=1, max_size=70),
)
VALUES: dict[str, Callable[[], st.SearchStrategy[str]]] = {
    "text": lambda: TEXTS,
    "whole": lambda: st.integers(-(10**12), 10**12).map(str),
    "few": lambda: st.integers(1, 5).map(str),
    "real": lambda: st.decimals(-(10**6), 10**6, places=3).map(str),
    "wide": lambda: st.floats(allow_nan=False, allow_infinity=False, width=32).map(str),
    "money": lambda: st.decimals(0, 10**5, places=2).map(str),
    "code": lambda: st.integers(0, 999).map(lambda n: f"{n:05}"),
    "day": lambda: st.dates().map(str),
    "moment": lambda: st.datetimes(dt.datetime(1900, 1, 1), dt.datetime(2100, 1, 1)).map(  # noqa: DTZ001
        lambda one: one.isoformat(sep=" ", timespec="seconds")
    ),
    "flag": lambda: st.sampled_from(["true", "false"]),
    "empty": lambda: st.just(""),
}


@st.composite
def tables(draw: st.DrawFn) -> tuple[list[str], list[list[str]]]:
    names = draw(st.lists(NAMES, min_size=1, max_size=4, unique_by=str.casefold))
    kinds = [draw(st.sampled_from(sorted(VALUES))) for _ in names]
    row = st.tuples(*(st.one_of(VALUES[kind](), st.just("")) for kind in kinds))
    return names, [list(one) for one in draw(st.lists(row, min_size=1, max_size=6))]


def served(folder: Path, text: str) -> int:
    """How many rows `serve` has of a draft."""
    config = folder / "tacit.toml"
    config.write_text(text, encoding="utf-8")
    (table,) = load(config).tables
    source = DuckDbSource(table.schema, table.read_from)
    return int(source.measure(each(table.schema, table.schema.axes[0].name)).counts.sum())


@pytest.mark.slow
@given(
    tables(),
    st.sampled_from(",;\t|~"),
    st.sampled_from(["utf-8", "utf-16", "utf-8-sig"]),
    st.sampled_from(["\n", "\r\n"]),
    st.booleans(),
)
@settings(max_examples=60, deadline=None, suppress_health_check=list(HealthCheck))
def test_a_draft_of_a_text_file_is_served_or_says_what_is_in_the_way(
    table: tuple[list[str], list[list[str]]],
    delimiter: str,
    encoding: str,
    end: str,
    has_header: bool,
) -> None:
    names, rows = table
    out = io.StringIO()
    writer = csv.writer(out, delimiter=delimiter, lineterminator=end, quoting=csv.QUOTE_ALL)
    writer.writerows([names, *rows] if has_header else rows)
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        path = folder / "a.csv"
        path.write_bytes(out.getvalue().encode(encoding))
        told = ToldFormat(delimiter=delimiter, header=has_header, decimal=".")
        made = draft(
            SourceLocation(path=path),
            source="a.csv",
            table="people",
            told=told,
            n_records_max=100,
            read_levels=True,
        )
        try:
            n_rows = served(folder, made.text)
        except ConfigurationInvalid as refusal:
            # Only what the draft leaves open, or out of which nothing is left, is in the way.
            said = refusal.message
            assert (
                made.left_open
                or "holds NULL" in said
                or "a value twice" in said
                or ("people.columns" in said and "is missing" in said)
            ), said
        else:
            assert n_rows <= len(rows)


@pytest.mark.parametrize(
    ("sql", "kinds"),
    [
        (
            "SELECT DECIMAL '12.50' AS price, 3::UTINYINT AS stars, 2::HUGEINT AS h",
            "measure integer integer",
        ),
        ("SELECT '2024-01-01'::DATE AS d, 'infinity'::DATE AS e", "date date"),
        ("SELECT 'a'::ENUM('a', 'b') AS e, true AS t", "category boolean"),
        ("SELECT 40000::INTEGER AS loan_amount, 4::INTEGER AS n_loans", "measure integer"),
        ("SELECT 5000000000::BIGINT AS phone_total, 1 AS a", "measure integer"),
    ],
)
def test_types_of_a_database_are_drafted_as_they_are_served(
    tmp_path: Path, sql: str, kinds: str
) -> None:
    path = tmp_path / "a.duckdb"
    with duckdb.connect(path) as connection:
        connection.execute(f"CREATE TABLE people AS {sql}")
    location = SourceLocation(path=path, source_table="people")
    made = draft(location, source="a.duckdb", table="people", n_records_max=9, read_levels=True)
    assert [line.split('"')[1] for line in made.text.splitlines() if line.startswith("kind")] == (
        kinds.split()
    )
    if not made.left_open:
        assert served(tmp_path, made.text) == 1


def test_the_key_of_a_table_in_postgresql_and_a_licence_are_proposed_as_units(
    postgres_server: PostgresServer,
) -> None:
    with postgres_server.connect() as connection:
        connection.execute("CREATE TABLE trips (trip text PRIMARY KEY, fare int, city text)")
        connection.execute("CREATE TABLE rides (license_number text, fare numeric(8, 2))")
        connection.execute("CREATE TABLE pairs (a int, b int, PRIMARY KEY (a, b))")

    def text(table: str) -> str:
        server = PostgresLocation.parse(postgres_server.location(), "")
        rows = PostgresRows(server=server, table=table)
        return draft(rows, source="x", table=table).text

    assert 'unit = "trip"' in text("trips")
    assert "It is the PRIMARY KEY of trips" in text("trips")
    assert 'unit = "license_number"' in text("rides")
    assert "\nunit" not in text("pairs")


def test_bounds_that_are_read_fit_what_they_are_of() -> None:
    for low, high, lines in (
        (1998, 2024, ["low = 1995", "high = 2025"]),
        (1, 5, ["low = 1", "high = 5"]),
        (17, 90, ["low = 10", "high = 90"]),
        (-412, 388, ["low = -500", "high = 400"]),
        (7, 7, ["low = 7", "high = 7"]),
    ):
        seen = Seen("a", is_text=False, low=low, high=high)
        assert found_levels(seen, "integer") == lines
    seen = Seen("a", is_text=False, low=12.5, high=4873.22, is_whole=False)
    assert found_levels(seen, "measure")[:2] == ["low = 0.00", "high = 5000.00"]
