"""A shop's people and orders in two files, views over them, and what a source makes of those."""

from pathlib import Path

import duckdb
import numpy as np
import pytest

from accountant.grouping import Grouping
from cube.axis import Axis, IntegerAxis, MeasureAxis
from cube.pieces import SIZE_MAX
from cube.refusals import ConfigurationInvalid
from cube.schema import Schema
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


def write_shop(folder: Path) -> Path:
    """People in a CSV file, their orders in a database file beside a table of something else."""
    (folder / "people.csv").write_text(f"id,age,Name\na,30,{CANARY}\nb,41,x\nc,30,\n")
    with duckdb.connect(folder / "shop.duckdb") as connection:
        connection.execute("CREATE TABLE orders (id VARCHAR, amount BIGINT)")
        connection.execute("INSERT INTO orders VALUES ('a', 70), ('a', 50), ('b', 7), ('b', 0)")
        connection.execute("CREATE TABLE other AS SELECT 1 AS one")
    return folder


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
    """The cells of some columns with their counts, in order."""
    names = tuple(sorted(scope))
    found = source.measure(Grouping.of_each(names, [SIZE_MAX] * len(names)))
    levels = dict(zip(names, found.levels, strict=True))
    stacked = np.column_stack([*(levels[name] for name in scope), found.counts])
    return sorted(tuple(row) for row in stacked.tolist())
