"""`levels_from`: levels of a category from a public file, declared as if they were written."""

from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from cube.axis import CategoryAxis
from cube.refusals import LedgerMismatch
from proxy.bootstrap import build
from tests.support.config_files import GOOD, loaded, problems, write_people

CITIES = "city,region\nRome,South\nOslo,North\n,North\nRome,South\n007,North\n"
COLUMN = """
[tables.people.columns.city]
kind = "category"
levels_from = "cities.csv:city"
"""


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    (tmp_path / "cities.csv").write_text(CITIES)
    write_people(tmp_path)
    (tmp_path / "people.csv").write_text("age,city\n30,Rome\n")
    return tmp_path


def test_levels_are_the_texts_of_the_column_in_their_order(folder: Path) -> None:
    (table,) = loaded(folder, GOOD + COLUMN + 'other = "elsewhere"\n').tables
    assert table.schema.axes[1] == CategoryAxis(
        name="city", values=("Rome", "Oslo", "007"), other="elsewhere"
    )


def test_levels_may_be_those_of_a_parquet_file(folder: Path) -> None:
    pq.write_table(pa.table({"a:b": ["x", "y"]}), folder / "letters.parquet")
    text = GOOD + COLUMN.replace("cities.csv:city", "letters.parquet:a:b")
    assert problems(folder, text)  # the last colon divides
    pq.write_table(pa.table({"a b": ["x", "y"]}), folder / "letters.parquet")
    (table,) = loaded(folder, text.replace(":a:b", ":a b")).tables
    assert table.schema.axes[1].levels == ("x", "y")


@pytest.mark.parametrize(
    ("written", "said"),
    [
        ("cities.csv", "should be a file and its column"),
        (":city", "should be a file and its column"),
        ("absent.csv:city", "should name a .csv or .parquet file that exists"),
        ("tacit.toml:city", "should name a .csv or .parquet file that exists"),
        ("people.csv:city", "names the file of a private table; levels are public"),
        ("link.csv:city", "names the file of a private table; levels are public"),
        ("cities.csv:town", "town is not there in"),
        ("numbers.parquet:n", "n is BIGINT, not text in"),
        ("broken.csv:city", "is not text in utf-8"),
    ],
)
def test_what_gives_no_levels_is_a_problem_of_that_key(
    folder: Path, written: str, said: str
) -> None:
    (folder / "link.csv").symlink_to(folder / "people.csv")
    (folder / "broken.csv").write_bytes(b"city\n\xff\xfe\n")
    pq.write_table(pa.table({"n": [1]}), folder / "numbers.parquet")
    (found,) = problems(folder, GOOD + COLUMN.replace("cities.csv:city", written))
    assert found.startswith("tables.people.columns.city.levels_from: ")
    assert said in found


def test_levels_stand_in_one_place(folder: Path) -> None:
    both = COLUMN + 'levels = ["Rome"]\n'
    assert problems(folder, GOOD + both) == [
        "tables.people.columns.city.levels_from: is given beside levels; a column has only one"
    ]
    neither = COLUMN.replace('levels_from = "cities.csv:city"', "")
    assert problems(folder, GOOD + neither) == ["tables.people.columns.city.levels: is missing"]


def test_another_list_in_the_file_is_another_declaration(folder: Path) -> None:
    listed = COLUMN.replace('levels_from = "cities.csv:city"', 'levels = ["Rome", "Oslo", "007"]')
    build(loaded(folder, GOOD + COLUMN)).close()
    build(loaded(folder, GOOD + listed)).close()
    (folder / "cities.csv").write_text(CITIES + "Bern,South\n")
    with pytest.raises(LedgerMismatch):
        build(loaded(folder, GOOD + COLUMN)).close()
