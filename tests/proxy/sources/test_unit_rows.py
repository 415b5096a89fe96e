"""One row for each unit: DuckDB says the same, no bound changes it, and what varies is refused."""

from collections import Counter
from pathlib import Path
from typing import Any

import duckdb
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from cube.axis import CategoryAxis, IntegerAxis, MeasureAxis
from cube.refusals import ConfigurationInvalid
from cube.schema import Schema
from proxy.sources.bounding import RowsRead
from proxy.sources.duckdb_source import DuckDbSource
from proxy.sources.location import PrivateView, SourceLocation, UnitRows
from tests.support.examples import examples
from tests.support.groupings import each

KEY = b"k" * 32
CANARY = "8675309"
AGE = IntegerAxis(name="age", low=0, high=9)
CITY = CategoryAxis(name="city", values=("Oslo", "Bergen"), null=True)
CITIES = ("Oslo", "Bergen", "", "Voss")  # the last has no level
TYPES = {"person": "BIGINT", "age": "BIGINT", "city": "VARCHAR", "shop": "VARCHAR"}
SHOP = CategoryAxis(name="shop", values=("a", "b"))

UNITS = st.dictionaries(
    st.integers(1, 9),
    st.tuples(
        st.integers(-1, 9), st.sampled_from(CITIES), st.lists(st.sampled_from("abc"), min_size=1)
    ),
    min_size=1,
)
Units = dict[int, tuple[int, str, list[str]]]  # an age and a city, and the shops of a unit's rows

ONCE = settings(
    deadline=None,
    max_examples=examples(25),
    suppress_health_check=[HealthCheck.function_scoped_fixture],
)


def write(folder: Path, lines: list[str]) -> SourceLocation:
    path = folder / "orders.csv"
    path.write_text("\n".join(["person,age,city,shop", *lines]) + "\n")
    return SourceLocation(path=path)


def lines_of(units: Units) -> list[str]:
    return [
        f"{who},{age},{city},{shop}" for who, (age, city, shops) in units.items() for shop in shops
    ]


def units_schema(*axes: Any) -> Schema:
    return Schema(table="orders.units", axes=axes or (AGE, CITY), n_records_max=100, unit="person")


def counted(location: SourceLocation | PrivateView, *axes: Any) -> Counter[tuple[int, ...]]:
    """How often each cell has a unit."""
    schema = units_schema(*axes)
    source = DuckDbSource(schema, UnitRows(of=location), RowsRead(KEY))
    found = source.measure(each(schema, *sorted(schema.by_name)))
    cells = zip(*(column.tolist() for column in found.levels), strict=True)
    return Counter(dict(zip(cells, found.counts.tolist(), strict=True)))


@ONCE
@given(UNITS)
def test_each_unit_is_there_once_with_what_all_of_its_rows_say(
    tmp_path: Path, units: Units
) -> None:
    """By DuckDB on the same file; a unit whose city or age has no level is left out."""
    location = write(tmp_path, lines_of(units))
    with duckdb.connect() as connection:
        rows = connection.read_csv(location.path, header=True, na_values="", dtype=TYPES)
        each = rows.aggregate("person, any_value(age) AS age, any_value(city) AS city", "person")
        found = each.filter("age >= 0 AND (city IS NULL OR city <> 'Voss')")
        place = "CASE city WHEN 'Oslo' THEN 0 WHEN 'Bergen' THEN 1 ELSE 2 END AS place"
        expected = found.aggregate(f"age, {place}, count(*)", "age, city").fetchall()
    assert counted(location) == Counter({(age, city): n for age, city, n in expected})


@ONCE
@given(UNITS, st.integers(2, 4), st.randoms(use_true_random=False))
def test_neither_a_bound_nor_the_order_of_rows_changes_it(
    tmp_path: Path, units: Units, n_rows: int, shuffling: Any
) -> None:
    """Rows that a bound, or a level that is missing, leaves out of the other table count here."""
    lines = lines_of(units)
    whole = counted(write(tmp_path, lines))
    shuffling.shuffle(lines)
    assert counted(write(tmp_path, lines)) == whole
    seen: Counter[str] = Counter()
    fewer = []
    for line in lines:
        who = line.split(",")[0]
        seen[who] += 1
        if seen[who] <= n_rows:
            fewer.append(line)
    assert counted(write(tmp_path, fewer)) == whole


@ONCE
@given(UNITS, st.integers(-1, 9), st.sampled_from(CITIES))
def test_another_unit_adds_one_to_one_cell_at_most(
    tmp_path: Path, units: Units, age: int, city: str
) -> None:
    before = counted(write(tmp_path, lines_of(units)))
    after = counted(write(tmp_path, lines_of({**units, 99: (age, city, ["a"] * 7)})))
    has_levels = age >= 0 and city != "Voss"
    assert after - before == Counter({(age, [*CITIES].index(city)): 1} if has_levels else {})
    assert not before - after


def refused(location: SourceLocation, *axes: Any) -> str:
    with pytest.raises(ConfigurationInvalid) as caught:
        counted(location, *axes)
    said = caught.value.explain()
    assert CANARY not in said
    return said


@pytest.mark.parametrize("cities", [("Oslo", "Bergen"), ("Oslo", ""), ("Oslo", CANARY)])
def test_an_attribute_that_varies_is_named_and_nothing_of_it(
    tmp_path: Path, cities: tuple[str, str]
) -> None:
    """NULL differs from a level, and so does what has none."""
    lines = ["1,3,Oslo,a", "2,3,Oslo,a"]
    lines += [f"{CANARY},3,{city},a" for city in cities]
    said = refused(write(tmp_path, lines))
    assert "tables.orders.per_unit: city is not the same in all rows of some unit" in said
    assert "age" not in said


def test_what_no_level_tells_apart_does_not_vary(tmp_path: Path) -> None:
    """Two values that `other` stands for; two that have no level; numbers that are rounded."""
    other = CategoryAxis(name="city", values=("Oslo",), other="elsewhere")
    rounded = MeasureAxis(name="age", low=0, high=10, step=5)
    location = write(tmp_path, ["1,4.9,Voss,a", "1,5.1,Hamar,b", "2,77,Oslo,a", "2,99,Oslo,a"])
    assert counted(location, other) == Counter({(1,): 1, (0,): 1})
    assert counted(location, CITY) == Counter({(0,): 1})
    assert counted(location, rounded, other) == Counter({(1, 1): 1, (2, 0): 1})


def test_a_row_that_is_about_nobody_is_refused(tmp_path: Path) -> None:
    assert "tables.orders.units" not in refused(write(tmp_path, [",3,Oslo,a"]))
    assert "the source holds NULL" in refused(write(tmp_path, [",3,Oslo,a", "1,3,Oslo,a"]))


def test_of_a_view_it_is_the_units_of_its_rows(tmp_path: Path) -> None:
    location = write(tmp_path, ["1,3,Oslo,a", "1,3,Oslo,b", "2,4,Bergen,b", "3,5,Oslo,a"])
    sql = "SELECT person, CAST(age AS BIGINT) AS age, city FROM o WHERE shop = 'b'"
    view = PrivateView(sql=sql, sources=(("o", location),))
    assert counted(view) == Counter({(3, 0): 1, (4, 1): 1})


def test_it_is_known_as_the_same_data_as_the_rows(tmp_path: Path) -> None:
    """So that a ledger gives them no second budget; what is served of them is not the same."""
    location = write(tmp_path, ["1,3,Oslo,a", "1,3,Oslo,b"])
    rows = Schema(
        table="orders", axes=(AGE, CITY, SHOP), n_records_max=9, unit="person", rows_per_unit_max=2
    )
    of_rows = DuckDbSource(rows, location, RowsRead(KEY))
    of_units = DuckDbSource(units_schema(), UnitRows(of=location), RowsRead(KEY))
    assert of_rows.fingerprint(KEY) == of_units.fingerprint(KEY)
    assert of_rows.rows_fingerprint(KEY) != of_units.rows_fingerprint(KEY)
