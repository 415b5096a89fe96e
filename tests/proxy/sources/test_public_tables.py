"""Public tables: how they are declared, read, checked and listed; types against DuckDB's own."""

import csv
import datetime as dt
from decimal import Decimal
from pathlib import Path
from typing import Any

import adbc_driver_flightsql.dbapi as flight_sql
import duckdb
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from cube.refusals import ConfigurationInvalid
from proxy.api.columns import arrow_type
from proxy.config.settings import Settings, load
from proxy.protocol import flight_sql_pb2 as sql
from proxy.sources.public import file as public_file
from proxy.sources.public import table as public_tables
from proxy.sources.public.file import PublicSettings, load_public_table, load_public_tables
from proxy.sources.public.table import Key, PublicTable, sql_type_of
from proxy.wire.flight.catalog import TYPE_NAME_KEY, Catalog, metadata_table, public_schema
from proxy.wire.server import start_server
from tests.support.config_files import GOOD
from tests.support.engine_fake import CannedEngine
from tests.support.examples import examples
from tests.support.serving import EverybodyLocal

CITIES = """city,country,code,people,area,coastal,founded
Oslo,Norway,0301,709037,480.7,true,1048-01-01
Rome,Italy,058091,2746984,1285,false,0753-04-21
"Aix, Old",France,13001,,186.1,FALSE,
"""


KEY_SAID = (
    'should be the name of a column, as "city", or a list of 1 to 32 names, as ["part", "supplier"]'
)


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    (tmp_path / "people.csv").write_text("age\n30\n")
    (tmp_path / "cities.csv").write_text(CITIES, encoding="utf-8")
    return tmp_path


def loaded(folder: Path, text: str) -> Settings:
    (folder / "tacit.toml").write_text(GOOD + text, encoding="utf-8")
    return load(folder / "tacit.toml")


def problems(folder: Path, text: str) -> list[str]:
    with pytest.raises(ConfigurationInvalid) as caught:
        loaded(folder, text)
    return caught.value.message.split("\n  ")[1:]


def from_csv(folder: Path, text: str, key: Key = None) -> PublicTable:
    path = folder / "public.csv"
    path.write_text(text, encoding="utf-8")
    return load_public_table(PublicSettings(name="t", path=path, key=key))


def from_parquet(folder: Path, data: pa.Table, key: Key = None) -> PublicTable:
    path = folder / "public.parquet"
    pq.write_table(data, path)
    return load_public_table(PublicSettings(name="t", path=path, key=key))


def refusal(folder: Path, content: str | pa.Table, key: Key = None) -> str:
    def read() -> PublicTable:
        if isinstance(content, str):
            return from_csv(folder, content, key)
        return from_parquet(folder, content, key)

    with pytest.raises(ConfigurationInvalid) as caught:
        read()
    return caught.value.explain()


# The declaration.


def test_a_public_table_is_declared_beside_the_private_ones(folder: Path) -> None:
    settings = loaded(folder, '[public.cities]\nsource = "cities.csv"\nkey = "city"\n')
    expected = PublicSettings(name="cities", path=folder / "cities.csv", key="city")
    assert settings.public == (expected,)
    assert [table.schema.table for table in settings.tables] == ["people"]
    assert loaded(folder, "").public == ()


def test_a_key_has_one_column_or_several(folder: Path) -> None:
    declared = '[public.cities]\nsource = "cities.csv"\nkey = '
    (one,) = loaded(folder, f'{declared}["country", "city"]').public
    assert one.key == ("country", "city")
    for wrong in ("[]", '[""]', "1", '["city", 1]', "{ city = 1 }", str(["city"] * 33)):
        (said,) = problems(folder, declared + wrong)
        assert said == f"public.cities.key: {KEY_SAID}"


def test_every_problem_of_a_declaration_is_listed(folder: Path) -> None:
    found = problems(
        folder,
        """
        [public.People]
        source = "cities.csv"
        [public.DATA_privacy]
        source = "cities.csv"
        [public.absent]
        source = "absent.csv"
        [public.other]
        source = "cities.duckdb"
        [public.OTHER]
        source = "cities.csv"
        kye = "city"
        [public.empty]
        key = ""
        """,
    )
    keys = "delimiter, decimal, encoding, header, source, key"
    assert found == [
        "public: two tables share a name (letter case does not count)",
        "public.People: is the name of a private table, too",
        "public.DATA_privacy: is a name that the server reserves for its own views",
        "public.absent.source: names no file",
        "public.other.source: should be a .csv or .parquet file",
        f"public.OTHER.kye: is not a known key; known keys are {keys}",
        f"public.empty.key: {KEY_SAID}",
        "public.empty.source: is missing",
    ]


def test_a_list_of_public_tables_is_no_declaration(folder: Path) -> None:
    (folder / "tacit.toml").write_text("public = [1]\n" + GOOD)
    with pytest.raises(ConfigurationInvalid, match=r"public: should hold tables"):
        load(folder / "tacit.toml")


# The file.


def test_the_type_of_a_csv_column_is_the_first_that_writes_all_of_its_fields(folder: Path) -> None:
    table = from_csv(folder, CITIES, key="CITY")
    assert table.key == "city"
    assert table.sql_types == {
        "city": "VARCHAR",
        "country": "VARCHAR",
        "code": "VARCHAR",  # a leading zero makes a code, not a number
        "people": "BIGINT",
        "area": "DOUBLE",
        "coastal": "BOOLEAN",
        "founded": "DATE",
    }
    assert table.data.to_pylist()[1:] == [
        {
            "city": "Rome",
            "country": "Italy",
            "code": "058091",
            "people": 2746984,
            "area": 1285.0,
            "coastal": False,
            "founded": dt.date(753, 4, 21),
        },
        {
            "city": "Aix, Old",
            "country": "France",
            "code": "13001",
            "people": None,
            "area": 186.1,
            "coastal": False,
            "founded": None,
        },
    ]


@pytest.mark.parametrize(
    ("fields", "sql_type"),
    [
        (["0", "-5", "999999999999999999"], "BIGINT"),
        (["9223372036854775808"], "VARCHAR"),
        (["1", "1.5", "-2e3"], "DOUBLE"),
        (["1e99", "0.1"], "DOUBLE"),
        (["1e400"], "VARCHAR"),
        (["1,5"], "VARCHAR"),
        (["1", "01"], "VARCHAR"),
        (["1", "x"], "VARCHAR"),
        (["true", "False"], "BOOLEAN"),
        (["true", "yes"], "VARCHAR"),
        (["1", "true"], "VARCHAR"),
        (["2020-02-29"], "DATE"),
        (["2021-02-29"], "VARCHAR"),
        (["2021-02-28", "2021-02-28 10:00"], "VARCHAR"),
        (["nan"], "VARCHAR"),
        (["", ""], "VARCHAR"),
        (["", "7"], "BIGINT"),
        ([" 7"], "VARCHAR"),
    ],
)
def test_csv_fields_of_a_kind_make_a_column_of_a_type(
    folder: Path, fields: list[str], sql_type: str
) -> None:
    path = folder / "public.csv"
    with path.open("w", newline="") as file:
        csv.writer(file).writerows([["c", "d"], *([field, "x"] for field in fields)])
    table = load_public_table(PublicSettings(name="t", path=path))
    assert table.sql_types["c"] == sql_type


@settings(max_examples=examples(40))
@given(
    rows=st.lists(
        st.tuples(
            st.none() | st.integers(-(10**17), 10**17),
            st.none() | st.floats(allow_nan=False, allow_infinity=False, width=32),
            st.none() | st.dates(),
            st.none() | st.booleans(),
            st.text(st.characters(codec="utf-8", exclude_categories=["Cc", "Cs"]), min_size=1),
        ),
        min_size=1,
        max_size=20,
    )
)
def test_what_a_csv_file_says_is_what_is_read(
    rows: list[tuple[Any, ...]], tmp_path_factory: Any
) -> None:
    path = tmp_path_factory.mktemp("round") / "t.csv"
    with path.open("w", newline="", encoding="utf-8") as file:
        writer = csv.writer(file)
        writer.writerow("abcde")
        writer.writerows([["" if value is None else value for value in row] for row in rows])
    table = load_public_table(PublicSettings(name="t", path=path))
    for name, written in zip("abcde", zip(*rows, strict=True), strict=True):
        found = table.data[name].to_pylist()
        if table.sql_types[name] == "VARCHAR":
            assert found == [None if value is None else str(value) for value in written]
        elif name != "e":  # text may look like anything
            assert found == list(written)


def test_a_parquet_file_keeps_its_types(folder: Path) -> None:
    data = pa.table(
        {
            "t": pa.array(["a", "b"], pa.string()),
            "i": pa.array([1, 2], pa.int32()),
            "u": pa.array([1, 2], pa.uint8()),
            "f": pa.array([1.5, None], pa.float32()),
            "m": pa.array([Decimal("1.25"), None], pa.decimal128(9, 2)),
            "d": pa.array([dt.date(2020, 1, 1), None], pa.date32()),
            "b": pa.array([True, False], pa.bool_()),
        }
    )
    table = from_parquet(folder, data, key="t")
    assert table.data.to_pylist() == data.to_pylist()
    assert list(table.sql_types.values()) == [
        "VARCHAR",
        "INTEGER",
        "UTINYINT",
        "FLOAT",
        "DECIMAL(9,2)",
        "DATE",
        "BOOLEAN",
    ]


@pytest.mark.parametrize(
    "sql_type", [*public_tables.TYPE_NAMES[:-1], "DECIMAL(9,2)", "DECIMAL(38,0)"]
)
def test_every_type_is_one_that_results_and_duckdb_call_the_same(sql_type: str) -> None:
    assert sql_type_of(arrow_type(sql_type)) == sql_type
    with duckdb.connect() as connection:
        found = connection.sql(f"SELECT CAST(NULL AS {sql_type}) AS c").to_arrow_table()
    assert sql_type_of(found.schema.field("c").type) == sql_type


@pytest.mark.parametrize(
    ("column", "named"),
    [
        (pa.array([0], pa.timestamp("us", tz="UTC")), "TIMESTAMP WITH TIME ZONE"),
        (pa.array([0], pa.timestamp("ns")), "TIMESTAMP_NS"),
        (pa.array([b"x"], pa.binary()), "BLOB"),
        (pa.array([[1]], pa.list_(pa.int64())), "BIGINT[]"),
        (pa.array([{"a": 1}]), "STRUCT"),
    ],
    ids=["with a zone", "nanoseconds", "binary", "list", "struct"],
)
def test_columns_of_other_types_are_refused_with_a_way_out(
    folder: Path, column: pa.Array, named: str
) -> None:
    said = refusal(folder, pa.table({"ok": ["a"], "odd": column}))
    assert f"public.t.columns.odd: is {named}" in said
    assert "cast it to one of VARCHAR, BOOLEAN, DATE" in said


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("a\n1\n1\n", "public.t.key: a holds a value twice"),
        ("a,b\n1,x\n,y\n", "public.t.key: a holds NULL"),
        ("b\n1\n", "public.t.key: the source has no column a"),
        ("a,A\n1,2\n", "distinct column names"),
        ("", "distinct column names"),
        ('a\n"open\n', "has a double quote that begins or ends inside of a field"),
        ("a,b\n1\n", "has lines with more fields than its first line, or with fewer"),
    ],
)
def test_a_file_that_is_not_what_it_is_declared_to_be_is_refused(
    folder: Path, text: str, said: str
) -> None:
    assert said in refusal(folder, text, key="a")


PAIRS = "part,seller,cost\n1,x,5\n1,y,6\n2,x,5\n"


def test_a_key_of_several_columns_has_each_combination_once(folder: Path) -> None:
    table = from_csv(folder, PAIRS, key=("SELLER", "part"))
    assert table.key == table.key_columns == ("seller", "part")
    for text, key, said in (
        (PAIRS, ("part", "cost", "PART"), "public.t.key: names part twice"),
        (PAIRS, ("part", "price"), "public.t.key: the source has no column price"),
        (PAIRS + "2,,7\n", ("part", "seller"), "public.t.key: seller holds NULL"),
        (PAIRS + "1,y,7\n", ("part", "seller"), "public.t.key: (part, seller) holds a combination"),
        (PAIRS, ("seller", "cost"), "public.t.key: (seller, cost) holds a combination"),
    ):
        assert said in refusal(folder, text, key=key)


def test_each_bad_file_is_told_of(folder: Path) -> None:
    declared = []
    for name in ("one", "two"):
        (folder / f"{name}.csv").write_text("a\n1\n1\n")
        declared.append(PublicSettings(name=name, path=folder / f"{name}.csv", key="a"))
    with pytest.raises(ConfigurationInvalid) as caught:
        load_public_tables(declared)
    assert "public.one.key" in caught.value.message
    assert "public.two.key" in caught.value.message


def test_size_is_limited_in_rows_and_bytes(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    for module in (public_tables, public_file):
        monkeypatch.setattr(module, "N_ROWS_MAX", 3)
    assert from_csv(folder, "a\n1\n2\n3\n").data.num_rows == 3
    assert "has more than 3 rows" in refusal(folder, "a\n1\n2\n3\n4\n")
    for module in (public_tables, public_file):
        monkeypatch.setattr(module, "N_BYTES_MAX", 7)
    assert "public.t.source: has more than 7 bytes" in refusal(folder, "a\n1\n2\n3\n")


def test_a_half_valid_public_table_cannot_be_made() -> None:
    data = pa.table({"a": [1, 1], "b": [1, None], "c": [1, 2]})
    assert PublicTable("t", "c", data).sql_types == dict.fromkeys("abc", "BIGINT")
    for name, key, rows in (
        ("data_privacy", None, data),
        ("", None, data),
        ("t", "a", data),
        ("t", "b", data),
        ("t", "d", data),
        ("t", ("a", "b"), data),
        ("t", ("c", "c"), data),
        ("t", (), data),
        ("t", None, pa.table({})),
        ("t", None, pa.table({"a": [1], "A": [2]})),
        ("t", None, pa.table({"a": [b"x"]})),
    ):
        with pytest.raises(ValueError, match=name or "''"):
            PublicTable(name, key, rows)


# The catalog.


def test_the_catalog_lists_public_tables_beside_private_ones(folder: Path) -> None:
    cities = from_csv(folder, CITIES, key="city")
    table = PublicTable("cities", cities.key, cities.data)
    server = start_server(
        CannedEngine(), "127.0.0.1:0", authenticator=EverybodyLocal(), public=(table,)
    )
    try:
        with flight_sql.connect(f"grpc://{server.address}", autocommit=True) as connection:
            names = connection.adbc_get_objects(depth="tables").read_all().to_pylist()
            listed = {
                schema["db_schema_name"]: [one["table_name"] for one in schema["db_schema_tables"]]
                for schema in names[0]["catalog_db_schemas"]
            }
            assert listed == {
                "public": ["ad_hoc", "cities", "people"],
                "data_privacy": [
                    "budgets",
                    "collections",
                    "domains",
                    "history",
                    "losses",
                    "streams",
                ],
            }
            columns = connection.adbc_get_table_schema("cities")
    finally:
        server.stop()
    assert columns.names == table.data.column_names
    assert columns.types == table.data.schema.types


def test_columns_carry_their_sql_types_and_only_the_key_is_not_null(folder: Path) -> None:
    schema = public_schema(from_csv(folder, CITIES, key="city"))
    assert [field.name for field in schema if not field.nullable] == ["city"]
    named = [field.metadata[TYPE_NAME_KEY.encode()].decode() for field in schema]
    assert named == ["VARCHAR", "VARCHAR", "VARCHAR", "BIGINT", "DOUBLE", "BOOLEAN", "DATE"]


def test_the_key_of_a_public_table_is_a_primary_key(folder: Path) -> None:
    catalog = Catalog((), (from_csv(folder, CITIES, key="city"),))
    (row,) = metadata_table(sql.CommandGetPrimaryKeys(table="t"), catalog).to_pylist()
    assert (row["table_name"], row["column_name"], row["key_sequence"]) == ("t", "city", 1)
    for command in (
        sql.CommandGetPrimaryKeys(table="u"),
        sql.CommandGetPrimaryKeys(table="t", catalog="other"),
        sql.CommandGetPrimaryKeys(table="t", db_schema="other"),
    ):
        assert metadata_table(command, catalog).num_rows == 0
    keyless = Catalog((), (from_csv(folder, CITIES),))
    assert metadata_table(sql.CommandGetPrimaryKeys(table="t"), keyless).num_rows == 0


def test_a_key_of_several_columns_is_a_primary_key_in_its_order(folder: Path) -> None:
    table = from_csv(folder, PAIRS, key=("seller", "part"))
    found = metadata_table(sql.CommandGetPrimaryKeys(table="t"), Catalog((), (table,))).to_pylist()
    told = [(row["column_name"], row["key_sequence"]) for row in found]
    assert told == [("seller", 1), ("part", 2)]
    assert [field.name for field in public_schema(table) if not field.nullable] == [
        "part",
        "seller",
    ]
