"""An empty text is a level where a list of levels has it, whatever kind of file holds it."""

from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from cube.axis import CategoryAxis, IntegerAxis
from cube.schema import Schema
from proxy.sources.duckdb_source import DuckDbSource
from proxy.sources.location import SourceLocation

AGE = IntegerAxis(name="age", low=0, high=9, null=True)
TEXT = 'age,phrase\n1,a\n2,""\n"",""\n"3","b"\n4,\n'


def digest(path: Path, phrase: CategoryAxis) -> str:
    schema = Schema(table="searches", axes=(AGE, phrase), n_records_max=100)
    return DuckDbSource(schema, SourceLocation(path=path)).rows_fingerprint(b"key")


def parquet(path: Path, phrases: list[str | None]) -> Path:
    ages = pa.array([1, 2, None, 3, 4], pa.int64())
    pq.write_table(pa.table({"age": ages, "phrase": pa.array(phrases, pa.string())}), path)
    return path


@pytest.mark.parametrize(
    ("levels", "null", "same_as"),
    [
        (("", "a", "b"), True, ["a", "", "", "b", None]),
        (("", "a", "b"), False, ["a", "", "", "b", ""]),
        (("a", "b"), True, ["a", None, None, "b", None]),
    ],
    ids=["between quotes", "in any way where NULL is no level", "else it is NULL"],
)
def test_a_csv_file_has_the_rows_of_the_same_parquet_file(
    tmp_path: Path, levels: tuple[str, ...], null: bool, same_as: list[str | None]
) -> None:
    path = tmp_path / "searches.csv"
    path.write_text(TEXT)
    phrase = CategoryAxis(name="phrase", values=levels, null=null)
    assert digest(path, phrase) == digest(parquet(tmp_path / "searches.parquet", same_as), phrase)


def test_an_empty_text_may_stand_for_all_others(tmp_path: Path) -> None:
    path = tmp_path / "searches.csv"
    path.write_text(TEXT)
    phrase = CategoryAxis(name="phrase", values=("a",), other="", null=True)
    expected = parquet(tmp_path / "searches.parquet", ["a", "x", "", "b", None])
    assert digest(path, phrase) == digest(expected, phrase)
