"""Extracts on disk: the same cells as in memory, opened again if nothing has changed, encrypted.

The oracle is the source in memory of the same file.
"""

import os
import signal
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from cube.axis import CategoryAxis, IntegerAxis
from cube.refusals import ConfigurationInvalid, SourceUnavailable
from cube.schema import Schema
from proxy.sources import extract_file, reading
from proxy.sources.bounding import RowsRead
from proxy.sources.duckdb_source import DuckDbSource
from proxy.sources.extract import cells_on_disk
from proxy.sources.extract import cells_on_disk as order_on_disk
from proxy.sources.extract_file import ExtractPlace, make_extract, open_extract
from proxy.sources.location import Location, SourceFiles, SourceLocation, UnitRows
from tests.support.groupings import each

KEY = b"k" * 32
READ = RowsRead(KEY)
CANARY = "an unlikely town"
N_ROWS = 20_000
TOWN = CategoryAxis(name="town", values=("Oslo", "Bergen", CANARY), other="else")
AGE = IntegerAxis(name="age", low=0, high=129, null=True)
WIDE = IntegerAxis(name="wide", low=0, high=100_000)


def schema_of(**more: object) -> Schema:
    return Schema(table="people", axes=(TOWN, AGE, WIDE), n_records_max=N_ROWS, **more)  # type: ignore[arg-type]


@pytest.fixture(autouse=True)
def small_and_settled(monkeypatch: pytest.MonkeyPatch) -> None:
    """Many groups and pieces of few rows; files count as written long ago."""
    monkeypatch.setattr(cells_on_disk, "N_ROWS_A_GROUP", 3000)
    monkeypatch.setattr(order_on_disk, "N_ROWS_A_PIECE", 1000)
    monkeypatch.setattr(extract_file, "SETTLED_NS", -(10**18))


@pytest.fixture
def people(tmp_path: Path) -> SourceLocation:
    return SourceLocation(path=write(tmp_path / "people.parquet", 1))


@pytest.fixture
def place(tmp_path: Path) -> ExtractPlace:
    return ExtractPlace(tmp_path / "extracts", KEY)


def write(path: Path, seed: int) -> Path:
    rng = np.random.default_rng(seed)
    towns = np.array(["Oslo", "Bergen", CANARY, "Voss"])[rng.integers(4, size=N_ROWS)]
    ages = pa.array(rng.integers(130, size=N_ROWS), mask=rng.random(N_ROWS) < 0.1)
    who = [f"unit {number}" for number in rng.integers(5000, size=N_ROWS)]
    wide = (rng.random(N_ROWS) ** 3 * 100_000).astype(int)
    table = pa.table({"town": towns, "age": ages, "wide": wide, "who": who})
    pq.write_table(table, path)
    return path


@pytest.fixture
def readings(monkeypatch: pytest.MonkeyPatch) -> Iterator[list[Location]]:
    """The locations that were read, in turn."""
    found: list[Location] = []

    def read_into(*given: object) -> object:
        found.append(given[2])  # type: ignore[arg-type]
        return reading.read_into(*given)  # type: ignore[arg-type]

    monkeypatch.setattr(extract_file, "read_into", read_into)
    return iter([found])


@pytest.mark.parametrize(
    "more",
    [{}, {"unit": "who", "rows_per_unit_max": 3}],
    ids=["rows", "units"],
)
def test_an_extract_has_the_cells_that_memory_has(
    more: dict[str, object], people: SourceLocation, place: ExtractPlace
) -> None:
    schema = schema_of(**more)
    on_disk = open_extract(place, schema, people, READ)
    in_memory = DuckDbSource(schema, people, READ)
    for source in (on_disk, open_extract(place, schema, people, READ)):
        assert source.rows_fingerprint(KEY) == in_memory.rows_fingerprint(KEY)
        assert source.fingerprint(KEY) == in_memory.fingerprint(KEY)
        for scope in ((), ("town",), ("wide",), ("age", "town"), ("age", "town", "wide")):
            found, expected = (one.measure(each(schema, *scope)) for one in (source, in_memory))
            assert counts(found) == counts(expected)
    if more:
        units, same = (one.measure_units(each(schema, "town")) for one in (on_disk, in_memory))
        assert np.array_equal(np.sort(units.digests), np.sort(same.digests))
        assert units.units.max() + 1 == np.unique(units.digests).size


def counts(found: object) -> dict[tuple[int, ...], int]:
    levels = [array.tolist() for array in found.levels]  # type: ignore[attr-defined]
    cells = zip(*levels, strict=True) if levels else [()]
    return dict(zip(cells, found.counts.tolist(), strict=True))  # type: ignore[attr-defined]


def test_one_row_for_each_unit_is_kept_as_well(tmp_path: Path, place: ExtractPlace) -> None:
    path = tmp_path / "visits.parquet"
    pq.write_table(pa.table({"who": ["a", "a", "b"], "town": ["Oslo", "Oslo", "Bergen"]}), path)
    schema = Schema(table="visits.units", axes=(TOWN,), n_records_max=9, unit="who")
    found = open_extract(place, schema, UnitRows(of=SourceLocation(path=path)), READ)
    assert counts(found.measure(each(schema, "town"))) == {(0,): 1, (1,): 1}


def test_it_is_read_again_only_if_something_has_changed(
    people: SourceLocation, place: ExtractPlace, readings: Iterator[list[Location]]
) -> None:
    (read,) = readings
    schema = schema_of()
    first = open_extract(place, schema, people, READ)
    assert open_extract(place, schema, people, READ).fingerprint(KEY) == first.fingerprint(KEY)
    assert len(read) == 1
    open_extract(place, schema, people, READ, known_rows="other rows")
    assert len(read) == 2
    fewer = Schema(table="people", axes=(TOWN, AGE), n_records_max=N_ROWS)
    open_extract(place, fewer, people, READ)
    assert len(read) == 3
    open_extract(ExtractPlace(place.folder, b"j" * 32), fewer, people, READ)
    assert len(read) == 4
    open_extract(place, schema, people, READ)
    write(people.path, 2)
    other = open_extract(place, schema, people, READ)
    assert len(read) == 6
    assert other.rows_fingerprint(KEY) != first.rows_fingerprint(KEY)
    make_extract(place, schema, people, READ, is_kept=False)
    assert counts(first.measure(each(schema))) == {(): N_ROWS}  # the old one is still open
    open_extract(place, schema, people, READ)
    assert len(read) == 7  # by what was not kept


def test_a_file_that_was_just_written_is_not_believed_to_stay(
    people: SourceLocation,
    place: ExtractPlace,
    readings: Iterator[list[Location]],
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    (read,) = readings
    monkeypatch.setattr(extract_file, "SETTLED_NS", 10**18)
    for _ in range(2):
        open_extract(place, schema_of(), people, READ)
    assert len(read) == 2


def test_any_byte_that_is_changed_is_noticed(people: SourceLocation, place: ExtractPlace) -> None:
    schema = schema_of()
    open_extract(place, schema, people, READ)
    path = place.path("people")
    content = path.read_bytes()
    expected = counts(DuckDbSource(schema, people, READ).measure(each(schema, "town", "wide")))
    rng = np.random.default_rng(3)
    for at in [0, 20, len(content) - 1, len(content) - 40, *rng.integers(len(content), size=40)]:
        changed = bytearray(content)
        changed[at] ^= 1
        path.write_bytes(changed)
        try:
            source = open_extract(place, schema, people, READ)
            found = [counts(source.measure(each(schema, "town", "wide")))]
        except SourceUnavailable as refusal:
            assert refusal.explain() == "The private table could not be read."  # noqa: PT017
            continue
        assert found == [expected]
    path.write_bytes(content[:-1000])
    assert open_extract(place, schema, people, READ).rows_fingerprint(KEY)


def test_nothing_is_on_disk_in_the_clear_and_nobody_else_may_read(
    people: SourceLocation, place: ExtractPlace
) -> None:
    schema = schema_of(unit="who", rows_per_unit_max=3)
    open_extract(place, schema, people, READ)
    assert place.folder.stat().st_mode & 0o077 == 0
    for path in place.folder.iterdir():
        assert path.stat().st_mode & 0o077 == 0
        content = path.read_bytes()
        assert CANARY.encode() not in content
        assert b"unit 1" not in content
        assert b"axis_" not in content


def test_a_folder_of_files_is_the_file_of_all_their_rows(
    tmp_path: Path, place: ExtractPlace
) -> None:
    folder = tmp_path / "days"
    folder.mkdir()
    for seed in (1, 2):
        write(folder / f"{seed}.parquet", seed)
    (folder / "_SUCCESS.parquet").write_text("not one")
    whole = tmp_path / "whole.parquet"
    pq.write_table(pa.concat_tables(pq.read_table(folder / f"{n}.parquet") for n in (1, 2)), whole)
    schema = Schema(table="people", axes=(TOWN, AGE, WIDE), n_records_max=2 * N_ROWS)
    several = SourceFiles(folder=folder, pattern="*.parquet")
    found = DuckDbSource(schema, several)
    expected = DuckDbSource(schema, SourceLocation(path=whole))
    assert found.rows_fingerprint(KEY) == expected.rows_fingerprint(KEY)
    before = found.fingerprint(KEY)
    assert open_extract(place, schema, several, READ).fingerprint(KEY) == before
    (folder / "2.parquet").rename(folder / "3.parquet")
    assert DuckDbSource(schema, several).fingerprint(KEY) != before
    pq.write_table(pa.table({"town": ["Oslo"], "age": [1]}), folder / "4.parquet")
    with pytest.raises(ConfigurationInvalid, match=r"4\.parquet does not have the columns"):
        DuckDbSource(schema, several)


WRITER = """
import sys
from pathlib import Path
from proxy.sources.extract import chunks
from tests.proxy.sources import test_extracts as tests
write_all, n_written = chunks.write_all, 0
def slowly(*given):
    global n_written
    n_written += 1
    if n_written == 4:
        print("writing", flush=True)
        sys.stdin.read()
    write_all(*given)
chunks.write_all = slowly
place = tests.ExtractPlace(Path(sys.argv[1]), tests.KEY)
location = tests.SourceLocation(path=Path(sys.argv[2]))
tests.cells_on_disk.N_ROWS_A_GROUP = 3000
tests.open_extract(place, tests.schema_of(), location, tests.READ)
"""


def test_a_process_that_is_killed_while_it_writes_leaves_nothing_that_is_believed(
    people: SourceLocation, place: ExtractPlace
) -> None:
    with subprocess.Popen(  # noqa: S603 - this interpreter
        [sys.executable, "-c", WRITER, str(place.folder), str(people.path)],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        env={**os.environ, "PYTHONPATH": os.getcwd()},  # noqa: PTH109 - as it is
    ) as writer:
        assert writer.stdout is not None
        assert writer.stdout.readline() == b"writing\n"
        writer.send_signal(signal.SIGKILL)
        writer.wait()
    assert not place.path("people").exists()
    assert place.path("people").with_suffix(".part").exists()
    found = open_extract(place, schema_of(), people, READ)
    assert counts(found.measure(each(schema_of()))) == {(): N_ROWS}
    assert not place.path("people").with_suffix(".part").exists()
