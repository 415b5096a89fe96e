"""Private views and the unit of privacy: what they give, what they refuse, what stays inside."""

import hashlib
from collections.abc import Callable
from fractions import Fraction
from pathlib import Path
from typing import Any

import duckdb
import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from accountant.ledger_file import open_ledger
from accountant.noise import SystemNoise
from accountant.opening import open_table
from cube.axis import Axis, CategoryAxis, IntegerAxis, MeasureAxis
from cube.refusals import ConfigurationInvalid, DataChanged, LedgerMismatch, SourceUnavailable
from cube.schema import Schema
from proxy.config import Settings, load
from proxy.sources.duckdb_source import DuckDbSource
from proxy.sources.location import PrivateView, SourceLocation

CANARY = "8675309"
AGE = IntegerAxis(name="age", low=0, high=120)
SPENT = MeasureAxis(name="spent", low=0, high=100, step=1)
VISITS = IntegerAxis(name="visits", low=0, high=5, other=-1)
PER_PERSON = """
SELECT id, any_value(CAST(age AS INTEGER)) AS age, count(orders.amount) AS visits,
       coalesce(sum(orders.amount), 0) AS spent
FROM people LEFT JOIN orders USING (id)
GROUP BY id -- one row a person
;
"""


@pytest.fixture
def shop(tmp_path: Path) -> Path:
    """People in a CSV file, their orders in a database file beside a table of something else."""
    (tmp_path / "people.csv").write_text(f"id,age,Name\na,30,{CANARY}\nb,41,x\nc,30,\n")
    with duckdb.connect(tmp_path / "shop.duckdb") as connection:
        connection.execute("CREATE TABLE orders (id VARCHAR, amount BIGINT)")
        connection.execute("INSERT INTO orders VALUES ('a', 70), ('a', 50), ('b', 7), ('b', 0)")
        connection.execute("CREATE TABLE other AS SELECT 1 AS one")
    return tmp_path


def view_of(folder: Path, sql: str = PER_PERSON, **changed: SourceLocation) -> PrivateView:
    sources = {
        "people": SourceLocation(path=folder / "people.csv"),
        "orders": SourceLocation(path=folder / "shop.duckdb", source_table="orders"),
    }
    return PrivateView(sql=sql, sources=tuple({**sources, **changed}.items()))


def schema_of(*axes: Axis, unit: str | None = None, n_records_max: int = 100) -> Schema:
    return Schema(table="people", axes=axes, n_records_max=n_records_max, unit=unit)


def refusal(schema: Schema, location: PrivateView | SourceLocation) -> str:
    with pytest.raises(ConfigurationInvalid) as caught:
        DuckDbSource(schema, location)
    assert caught.value.__suppress_context__ or caught.value.__context__ is None
    said = caught.value.explain()
    assert CANARY not in said
    return said


def rows(source: DuckDbSource, *scope: str) -> list[tuple[int, ...]]:
    found = source.measure(scope)
    stacked = np.column_stack([*found.levels, found.counts])
    return [tuple(row) for row in stacked.tolist()]


def test_a_view_is_counted_as_the_table_it_gives(shop: Path) -> None:
    source = DuckDbSource(schema_of(AGE, VISITS, SPENT, unit="ID"), view_of(shop))
    assert rows(source, "age", "visits", "spent") == [(30, 0, 0, 1), (30, 2, 100, 1), (41, 2, 7, 1)]
    assert rows(source, "age") == [(30, 2), (41, 1)]


def test_a_view_gives_what_duckdb_gives_on_the_same_files(tmp_path: Path) -> None:
    rng = np.random.default_rng(7)
    lines = [f"{rng.integers(0, 300)},{rng.integers(-20, 60)}" for _ in range(2000)]
    (tmp_path / "visits.csv").write_text("\n".join(["person,amount", *lines]))
    sql = (
        "SELECT person, count(*) AS visits, sum(CAST(amount AS BIGINT)) AS spent "
        "FROM visits GROUP BY ALL"
    )
    axes = (IntegerAxis(name="visits", low=0, high=30), SPENT)
    visits = SourceLocation(path=tmp_path / "visits.csv")
    view = PrivateView(sql=sql, sources=(("visits", visits),))
    found = rows(
        DuckDbSource(schema_of(*axes, unit="person", n_records_max=1000), view), "visits", "spent"
    )
    with duckdb.connect() as connection:
        connection.execute(f"CREATE VIEW visits AS FROM '{visits.path}'")
        expected = connection.execute(
            "SELECT visits, greatest(0, least(100, spent)) AS spent, count(*) "  # noqa: S608 - this test's own text
            f"FROM ({sql}) GROUP BY ALL ORDER BY ALL"
        ).fetchall()
    assert found == expected
    assert len(found) > 100


def test_two_tables_of_one_database_file_may_be_joined(shop: Path) -> None:
    other = SourceLocation(path=shop / "shop.duckdb", source_table="other")
    sql = "SELECT one AS age FROM other UNION ALL SELECT amount FROM orders WHERE amount = 7"
    source = DuckDbSource(schema_of(AGE), view_of(shop, sql, other=other))
    assert rows(source, "age") == [(1, 1), (7, 1)]


@pytest.mark.parametrize(
    "sql",
    [
        "SELECT 1 AS age; SELECT 2 AS age",
        "CREATE TABLE x AS SELECT 1 AS age",
        "COPY people TO 'copied.csv'",
        "SET threads = 4",
        "-- nothing",
    ],
)
def test_a_view_is_one_select(shop: Path, sql: str) -> None:
    said = refusal(schema_of(AGE), view_of(shop, sql))
    assert said.startswith("tables.people.view: is not one SELECT statement.")


@pytest.mark.parametrize(
    ("sql", "expected"),
    [
        (f"SELEC '{CANARY}'", "is no SQL that DuckDB can parse"),
        (
            f"SELECT {CANARY}::INTEGER + age AS age FROM nobody",  # noqa: S608 - a fixed text
            "names what its sources do not have",
        ),
        ("SELECT nothing AS age FROM people", "names what its sources do not have"),
        ("SELECT CAST(name AS DATE) AS age FROM people", "fails on the rows of its sources"),
        ("SELECT error(name) AS age FROM people", "fails on the rows of its sources"),
        ("SELECT 1 AS age, 2 AS AGE", "gives two columns of one name"),
        ("SELECT age FROM people", "is VARCHAR in the source, which does not fit"),
        ("SELECT 1 AS years", "the source has no such column"),
    ],
)
def test_a_view_that_fails_is_refused_by_stage_without_a_word_of_its_rows(
    shop: Path, sql: str, expected: str
) -> None:
    assert expected in refusal(schema_of(AGE), view_of(shop, sql))


def test_a_damaged_source_is_refused_without_a_word_of_it(shop: Path) -> None:
    (shop / "people.csv").write_text(f"id,age\na,1,{CANARY}\n")
    assert "fails on the rows" in refusal(schema_of(AGE), view_of(shop))
    (shop / "people.csv").write_bytes(b"\xff\xfe" + CANARY.encode())
    assert "is not what its name says" in refusal(schema_of(AGE), view_of(shop))
    (shop / "shop.duckdb").write_text(CANARY * 1000)
    (shop / "people.csv").write_text("id,age\na,1\n")
    assert "tables.people.sources: cannot be read" in refusal(schema_of(AGE), view_of(shop))
    (shop / "people.csv").unlink()
    assert "cannot be read" in refusal(schema_of(AGE), view_of(shop))


def test_a_view_reaches_its_own_files_and_nothing_else(shop: Path) -> None:
    secret = shop / "secret.csv"
    secret.write_text("age\n1\n")
    local_table = {"age": np.array([1])}
    assert local_table["age"].size == 1
    for sql in (
        f"FROM read_csv('{secret}')",
        f"FROM '{secret}'",
        f"SELECT 1 AS age FROM read_text('{secret}')",  # noqa: S608 - a path of this test
        f"SELECT 1 AS age FROM glob('{shop}/*')",  # noqa: S608 - a path of this test
        "SELECT 1 AS age FROM read_csv('https://localhost/a.csv')",
        "FROM local_table",
    ):
        assert "names what its sources do not have" in refusal(schema_of(AGE), view_of(shop, sql))
    people = shop / "people.csv"
    own = f"SELECT CAST(age AS INTEGER) AS age FROM '{people}'"  # noqa: S608 - a path of this test
    assert rows(DuckDbSource(schema_of(AGE), view_of(shop, own)), "age") == [(30, 2), (41, 1)]


def test_what_is_held_of_a_view_is_positions_of_declared_columns_only(shop: Path) -> None:
    source = DuckDbSource(schema_of(AGE, unit="id"), view_of(shop))
    assert source._connection.execute("SHOW ALL TABLES").fetchall()[0][2] == "cells"
    assert len(source._connection.execute("SHOW ALL TABLES").fetchall()) == 1
    assert CANARY not in repr(vars(source))
    for attempt in (f"FROM read_csv('{shop / 'people.csv'}')", f"ATTACH '{shop / 'shop.duckdb'}'"):
        with pytest.raises(duckdb.Error):
            source._connection.execute(attempt)
    (shop / "people.csv").unlink()
    assert rows(source, "age") == [(30, 2), (41, 1)]


def _fingerprint(schema: Schema, location: PrivateView, key: bytes = b"key") -> str:
    return DuckDbSource(schema, location).fingerprint(key)


def test_the_fingerprint_of_a_view_covers_its_text_its_files_and_its_rows(shop: Path) -> None:
    schema = schema_of(AGE, VISITS)
    known = _fingerprint(schema, view_of(shop))
    assert len(known) == 2 * hashlib.sha256().digest_size
    assert _fingerprint(schema, view_of(shop)) == known
    assert _fingerprint(schema, view_of(shop, f"\n{PER_PERSON} ")) == known
    assert _fingerprint(schema_of(VISITS, AGE), view_of(shop)) == known
    assert _fingerprint(schema, view_of(shop), b"other") != known
    assert _fingerprint(schema, view_of(shop, PER_PERSON.replace("30", "31") + "--")) != known
    assert _fingerprint(schema_of(AGE), view_of(shop)) != known
    beside = SourceLocation(path=shop / "shop.duckdb", source_table="other")
    assert _fingerprint(schema, view_of(shop, beside=beside)) != known
    with (shop / "people.csv").open("a") as file:
        file.write(",,\n")
    assert _fingerprint(schema, view_of(shop)) != known


def test_a_view_that_gives_other_rows_is_not_the_same_data(shop: Path) -> None:
    """Refined noise is the noise that was drawn only if the exact answer is what it was."""
    view = view_of(shop, "SELECT CAST(floor(random() * 2**20) AS BIGINT) AS age FROM range(20)")
    schema = schema_of(IntegerAxis(name="age", low=0, high=2**20 - 1))
    assert len({_fingerprint(schema, view) for _ in range(3)}) == 3
    with open_ledger(shop / "a.ledger") as ledger:
        open_table(ledger, schema, Fraction(1), DuckDbSource(schema, view), SystemNoise())
        with pytest.raises(DataChanged):
            open_table(ledger, schema, Fraction(1), DuckDbSource(schema, view), SystemNoise())


def test_a_view_under_a_second_name_is_given_no_second_budget(shop: Path) -> None:
    schema = schema_of(AGE, VISITS)
    other = Schema(table="others", axes=(VISITS, AGE), n_records_max=50, unit="id")
    with open_ledger(shop / "a.ledger") as ledger:
        source = DuckDbSource(schema, view_of(shop))
        open_table(ledger, schema, Fraction(1), source, SystemNoise())
        again = DuckDbSource(other, view_of(shop))
        with pytest.raises(LedgerMismatch, match="knows the data of others as people"):
            open_table(ledger, other, Fraction(1), again, SystemNoise())


def test_sums_of_doubles_are_the_same_each_time_a_view_runs(tmp_path: Path) -> None:
    """Threads add in another order each time: with two, six runs gave six different sums here."""
    rng = np.random.default_rng(11)
    table = pa.table({"person": rng.integers(0, 4, 200_000), "x": rng.random(200_000)})
    pq.write_table(table, tmp_path / "a.parquet", row_group_size=5000)
    sql = (
        "SELECT person, sum(x) AS total, CAST(hash(total) % 1048576 AS BIGINT) AS age "
        "FROM a GROUP BY person"
    )
    view = PrivateView(sql=sql, sources=(("a", SourceLocation(path=tmp_path / "a.parquet")),))
    schema = schema_of(IntegerAxis(name="age", low=0, high=2**20 - 1), unit="person")
    assert len({_fingerprint(schema, view) for _ in range(6)}) == 1


def test_a_source_that_changed_since_a_view_ran_has_no_fingerprint(shop: Path) -> None:
    source = DuckDbSource(schema_of(AGE), view_of(shop))
    with (shop / "people.csv").open("a") as file:
        file.write("d,1,\n")
    with pytest.raises(DataChanged):
        source.fingerprint(b"key")


def test_rows_that_cannot_be_read_for_the_fingerprint_are_not_quoted(shop: Path) -> None:
    source = DuckDbSource(schema_of(AGE), view_of(shop))
    source._connection.execute("DROP TABLE cells")
    with pytest.raises(SourceUnavailable) as caught:
        source.fingerprint(b"key")
    assert caught.value.__suppress_context__


def _as_csv(folder: Path, text: str) -> SourceLocation:
    (folder / "a.csv").write_text(text)
    return SourceLocation(path=folder / "a.csv")


def _as_parquet(folder: Path, text: str) -> SourceLocation:
    location = _as_csv(folder, text)
    path = folder / "a.parquet"
    with duckdb.connect() as connection:
        connection.execute(f"COPY (FROM '{location.path}') TO '{path}'")
    return SourceLocation(path=path)


@pytest.mark.parametrize("write", [_as_csv, _as_parquet])
@pytest.mark.parametrize(
    ("lines", "expected"),
    [
        (f"1,{CANARY}\n2,{CANARY}\n", "the source holds a value twice"),
        (f"1,{CANARY}\n2,\n", "the source holds NULL"),
        (f"1,{CANARY}\n500,{CANARY}\n", "the source holds a value twice"),
        (f"1,{CANARY}\n2,9\n3,11\n", None),
        ("", None),
    ],
    ids=["twice", "missing", "twice, one left out", "unique", "no rows"],
)
def test_each_unit_has_one_row_in_the_whole_source(
    tmp_path: Path,
    write: Callable[[Path, str], SourceLocation],
    lines: str,
    expected: str | None,
) -> None:
    location = write(tmp_path, f"age,Person\n{lines}" if lines else "age,Person\n1,2\n")
    schema = schema_of(AGE, unit="person")
    if expected is None:
        DuckDbSource(schema, location)
        return
    said = refusal(schema, location)
    assert f"tables.people.unit: {expected}" in said
    assert "a problem" in said


def test_an_absent_unit_is_listed_with_absent_columns(tmp_path: Path) -> None:
    said = refusal(schema_of(AGE, unit="person"), _as_csv(tmp_path, "a\n1\n"))
    assert "tables.people.columns.age: the source has no such column" in said
    assert "tables.people.unit: the source has no column person" in said


def test_a_unit_leaves_the_ledger_of_a_table_as_it_is(tmp_path: Path) -> None:
    """That nobody has two rows changes no coefficient: it may be checked from some day on."""
    location = _as_csv(tmp_path, "age,person\n1,2\n")
    with open_ledger(tmp_path / "a.ledger") as ledger:
        for unit in (None, "person"):
            schema = schema_of(AGE, unit=unit)
            open_table(ledger, schema, Fraction(1), DuckDbSource(schema, location), SystemNoise())


def configured(folder: Path, text: str) -> Settings:
    path = folder / "tacit.toml"
    path.write_text(
        f'[ledger]\npath = "a.ledger"\n[tables.people]\nbudget = "1"\nn_records_max = 9\n'
        f"half_width = 9\n{text}\n"
        '[tables.people.columns.age]\nkind = "integer"\nlow = 0\nhigh = 120\n'
    )
    return load(path)


def test_a_view_is_declared_by_its_text_and_its_sources(shop: Path) -> None:
    text = f'''unit = "id"
    view = """{PER_PERSON}"""
    [tables.people.sources]
    people = "people.csv"
    orders = {{file = "shop.duckdb", table = "orders"}}
    '''
    (table,) = configured(shop, text).tables
    assert table.location == PrivateView(
        sql=PER_PERSON.removeprefix("\n"), sources=view_of(shop).sources
    )
    assert table.schema.unit == "id"
    assert rows(DuckDbSource(table.schema, table.location), "age") == [(30, 2), (41, 1)]


def test_the_documented_configuration_loads_and_its_view_runs(tmp_path: Path) -> None:
    document = (Path(__file__).parents[2] / "docs" / "configuration.md").read_text()
    blocks = [part.split("```")[0] for part in document.split("```toml\n")[1:]]
    (tmp_path / "tacit.toml").write_text("\n".join(blocks))
    region = ["North", "East", "South"]
    pq.write_table(
        pa.table({"customer_id": [1, 2, 3], "region": region}), tmp_path / "customers.parquet"
    )
    pq.write_table(
        pa.table({"person_id": [1, 2], "sex": ["Male", "Female"], "pay": [149.0, 1e9]}),
        tmp_path / "people.parquet",
    )
    (tmp_path / "cities.csv").write_text("city,country\nOslo,Norway\nRome,Italy\n")
    with duckdb.connect(tmp_path / "shop.duckdb") as connection:
        connection.execute("CREATE TABLE orders AS SELECT 1 AS customer_id, 600.0 AS amount")
        connection.execute("INSERT INTO orders VALUES (1, 700.0), (3, 0.5)")
    settings = load(tmp_path / "tacit.toml")
    people, customers = settings.tables
    source = DuckDbSource(people.schema, people.location)
    assert rows(source, "sex", "pay") == [(0, 2000, 1), (1, 1, 1)]
    source = DuckDbSource(customers.schema, customers.location)
    scope = ("region", "n_orders", "spent")
    assert rows(source, *scope) == [(0, 2, 1000, 1), (1, 1, 1, 1), (2, 0, 0, 1)]
    assert [(public.name, public.key) for public in settings.public] == [("cities", "city")]


VIEW = 'view = "SELECT 1 AS age"'


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("", ["source: is missing"]),
        (VIEW, ["sources: should name the files of the view"]),
        (f"{VIEW}\nsources = {{}}", ["sources: should name the files of the view"]),
        (f"{VIEW}\nsources = 3", ["sources: should name the files of the view"]),
        (
            f'{VIEW}\nsource = "people.csv"\nsources = {{a = "people.csv"}}',
            ["view: stands beside source"],
        ),
        (f'{VIEW}\nsource = "people.csv"', ["view: stands", "sources: should name"]),
        ('source = "people.csv"\nsources = {a = "people.csv"}', ["sources: goes with view"]),
        (
            f'{VIEW}\nsource_table = "t"\nsources = {{a = "people.csv"}}',
            ["source_table: goes with source"],
        ),
        (f'{VIEW}\nsources = {{a = "absent.csv"}}', ["sources.a: names no file"]),
        (f'{VIEW}\nsources = {{a = "a.txt"}}', ["sources.a: should be a .csv or .parquet file"]),
        (f'{VIEW}\nsources = {{a = "shop.duckdb"}}', ["sources.a: should be a .csv"]),
        (f'{VIEW}\nsources = {{a = {{table = "t"}}}}', ["sources.a.file: is missing"]),
        (
            f'{VIEW}\nsources = {{a = {{file = "people.csv", tabel = "t"}}}}',
            ["sources.a.tabel: is"],
        ),
        (
            f"{VIEW}\nsources = {{a = 3, b = 4}}",
            ["sources.a.file: should", "sources.b.file: should"],
        ),
        (f'{VIEW}\nsources = {{a = "people.csv", A = "people.csv"}}', ["two sources share a name"]),
        ('view = " "\nsources = {a = "people.csv"}', ["a view is a SELECT"]),
        ('view = 3\nsources = {a = "people.csv"}', ["view: should be a valid string"]),
        ('source = "people.csv"\nunit = "AGE"', ["the unit AGE is also a column with levels"]),
        ('source = "people.csv"\nunit = ""', ["unit: string should have at least 1 character"]),
        ('source = "people.csv"\nunit = 3', ["unit: should be a valid string"]),
    ],
)
def test_a_view_or_unit_that_makes_no_sense_is_a_problem(
    shop: Path, text: str, expected: list[str]
) -> None:
    with pytest.raises(ConfigurationInvalid) as caught:
        configured(shop, text)
    _, *found = str(caught.value).split("\n  ")
    assert len(found) == len(expected)
    for problem, start in zip(sorted(found), sorted(expected), strict=True):
        assert problem.startswith((f"tables.people.{start}", f"tables.people: {start}"))


@pytest.mark.parametrize(
    "changed",
    [
        {"sql": ""},
        {"sources": ()},
        {"sources": (("", SourceLocation(path=Path("a.csv"))),)},
        {"sources": (("a\n", SourceLocation(path=Path("a.csv"))),)},
        {"sources": tuple((name, SourceLocation(path=Path("a.csv"))) for name in "aA")},
    ],
)
def test_a_view_checks_itself(changed: dict[str, Any]) -> None:
    good: dict[str, Any] = {
        "sql": "SELECT 1 AS age",
        "sources": (("a", SourceLocation(path=Path("a.csv"))),),
    }
    PrivateView(**good)
    with pytest.raises(ValueError, match=r"view|source"):
        PrivateView(**{**good, **changed})


def test_text_that_a_view_casts_may_be_of_any_kind(shop: Path) -> None:
    axes = (CategoryAxis(name="kind", values=("x", "y")), AGE)
    sql = "SELECT 'y'::ENUM('z', 'y') AS kind, CAST(sum(amount) AS HUGEINT) AS age FROM orders"
    assert rows(DuckDbSource(schema_of(*axes), view_of(shop, sql)), "kind", "age") == []
    wide = (axes[0], IntegerAxis(name="age", low=0, high=200))
    assert rows(DuckDbSource(schema_of(*wide), view_of(shop, sql)), "kind", "age") == [(1, 127, 1)]
