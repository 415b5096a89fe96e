"""The example that is shipped: its public domain covers the public data set, to the last row."""

from pathlib import Path

import pytest

from proxy.config.settings import Settings, load
from proxy.sources.duckdb_source import DuckDbSource
from tests.support.groupings import each

N_RECORDS = 48_842  # published with the data set
N_OVER_50K = 11_687  # published: 23.93 % of the records
N_LEVELS = {
    "age": 74,
    "workclass": 9,
    "education": 16,
    "education_num": 16,
    "marital_status": 7,
    "occupation": 15,
    "relationship": 6,
    "race": 5,
    "sex": 2,
    "capital_gain": 100,
    "hours_per_week": 99,
    "native_country": 42,
    "income": 2,
}


@pytest.fixture(scope="module")
def settings() -> Settings:
    return load(Path(__file__).parents[2] / "examples" / "adult" / "tacit.toml")


def test_the_domain_is_the_published_one(settings: Settings) -> None:
    (table,) = settings.tables
    assert {axis.name: axis.size for axis in table.schema.axes} == N_LEVELS


def test_every_record_has_a_level_in_every_column(settings: Settings) -> None:
    (table,) = settings.tables
    source = DuckDbSource(table.schema, table.read_from)
    assert source.measure(each(table.schema)).counts.tolist() == [N_RECORDS]
    income = source.measure(each(table.schema, "income"))
    assert dict(zip(income.levels[0].tolist(), income.counts.tolist(), strict=True)) == {
        0: N_RECORDS - N_OVER_50K,
        1: N_OVER_50K,
    }
