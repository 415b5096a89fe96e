"""Private views and units as the configuration declares them, and what it may not say of them."""

from pathlib import Path

import duckdb
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from cube.refusals import ConfigurationInvalid
from cube.schema import RowsByLevel
from proxy.config.settings import Settings, load
from proxy.sources.duckdb_source import DuckDbSource
from proxy.sources.location import PrivateView
from tests.support.shop import PER_PERSON, rows, view_of, write_shop

SEVERAL = """source = "people.csv"
unit = "id"
rows_per_unit_max = 4
rows_per_unit_max_by"""
VIEW = 'view = "SELECT 1 AS age"'


@pytest.fixture
def shop(tmp_path: Path) -> Path:
    return write_shop(tmp_path)


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


def test_rows_of_a_unit_are_bounded_at_each_level_of_a_column(shop: Path) -> None:
    (table,) = configured(shop, f"{SEVERAL} = {{age = 2}}").tables
    assert table.schema.rows_per_unit_max_by == RowsByLevel("age", 2)
    (table,) = configured(shop, SEVERAL.rpartition("\n")[0]).tables
    assert table.schema.rows_per_unit_max_by is None


def test_the_documented_configuration_loads_and_its_view_runs(tmp_path: Path) -> None:
    document = (Path(__file__).parents[3] / "docs" / "configuration.md").read_text()
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
    offers = pa.table({"part": [1, 1], "supplier": [1, 2], "cost": [2.5, 3.0]})
    pq.write_table(offers, tmp_path / "offers.parquet")
    with duckdb.connect(tmp_path / "shop.duckdb") as connection:
        connection.execute("CREATE TABLE orders AS SELECT 1 AS customer_id, 600.0 AS amount")
        connection.execute("INSERT INTO orders VALUES (1, 700.0), (3, 0.5)")
    settings = load(tmp_path / "tacit.toml")
    people, customers = settings.tables
    source = DuckDbSource(people.schema, people.read_from)
    assert rows(source, "sex", "pay") == [(0, 2000, 1), (1, 1, 1)]
    source = DuckDbSource(customers.schema, customers.read_from)
    scope = ("region", "n_orders", "spent")
    assert rows(source, *scope) == [(0, 2, 1000, 1), (1, 1, 1, 1), (2, 0, 0, 1)]
    assert [(public.name, public.key) for public in settings.public] == [
        ("cities", "city"),
        ("offers", ("part", "supplier")),
    ]


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("", ["source: is missing"]),
        (VIEW, ["sources: should name the files of the view"]),
        (f"{VIEW}\nsources = {{}}", ["sources: should name the files of the view"]),
        (f"{VIEW}\nsources = 3", ["sources: should name the files of the view"]),
        (
            f'{VIEW}\nsource = "people.csv"\nsources = {{a = "people.csv"}}',
            ["view: is given beside source"],
        ),
        (f'{VIEW}\nsource = "people.csv"', ["view: is given", "sources: should name"]),
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
        ('view = " "\nsources = {a = "people.csv"}', ["a view must be a SELECT"]),
        ('view = 3\nsources = {a = "people.csv"}', ["view: should be a valid string"]),
        (
            'source = "people.csv"\nunit = "AGE"',
            ["the unit AGE must not also be a column with levels"],
        ),
        ('source = "people.csv"\nunit = ""', ["unit: string should have at least 1 character"]),
        ('source = "people.csv"\nunit = 3', ["unit: should be a valid string"]),
        (f"{SEVERAL} = 3", ["rows_per_unit_max_by: should be a valid dictionary"]),
        (f"{SEVERAL} = {{age = 0}}", ["rows_per_unit_max_by.age: should be greater"]),
        (f"{SEVERAL} = {{age = 1.5}}", ["rows_per_unit_max_by.age: should be a valid integer"]),
        (f"{SEVERAL} = {{age = 1, sex = 1}}", ["rows_per_unit_max_by: dictionary should have"]),
        (f"{SEVERAL} = {{day = 1}}", ["rows_per_unit_max_by names day, which is not a column"]),
        (f"{SEVERAL} = {{age = 4}}", ["rows_per_unit_max_by must be below rows_per_unit_max"]),
        (
            f"{SEVERAL} = {{age = 1}}".replace("= 4", "= 200"),
            ["rows_per_unit_max_by allows a unit 121 rows in total, over 121 levels of age"],
        ),
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
