"""Readings of a growing file: rows up to a horizon, and which rows of a unit are kept."""

import collections
import csv
import datetime as dt
from pathlib import Path

import numpy as np
import pytest

from cube.axis import DateAxis, IntegerAxis
from cube.refusals import ConfigurationInvalid
from cube.schema import Schema
from proxy.sources.location import SourceLocation
from proxy.sources.opening import GrowingFile
from tests.support.groupings import each

KEY = b"k" * 32
LOW, N_DAYS = dt.date(2026, 1, 1), 30
DAY = DateAxis(name="day", low=LOW, high=LOW + dt.timedelta(days=N_DAYS - 1))
AMOUNT = IntegerAxis(name="amount", low=0, high=99)
Row = tuple[int, int, int]  # unit, day, amount


def schema(n_rows: int) -> Schema:
    return Schema(
        table="orders",
        axes=(DAY, AMOUNT),
        n_records_max=10_000,
        unit="who",
        rows_per_unit_max=n_rows,
        grows="day",
    )


def rows_of(n_units: int = 40, seed: int = 1) -> list[Row]:
    rng = np.random.default_rng(seed)
    return [
        (unit, int(rng.integers(N_DAYS)), int(rng.integers(100)))
        for unit in range(n_units)
        for _ in range(int(rng.integers(12)))
    ]


def written(folder: Path, rows: list[Row]) -> SourceLocation:
    with (folder / "orders.csv").open("w", newline="") as file:
        writer = csv.writer(file)
        writer.writerow(["who", "day", "amount"])
        writer.writerows(
            (f"u{who}", LOW + dt.timedelta(days=day), amount) for who, day, amount in rows
        )
    return SourceLocation(path=folder / "orders.csv")


def cells(source: GrowingFile, horizon: int) -> dict[tuple[int, int], int]:
    found = source.read_up_to(horizon).measure(each(schema(3), "amount", "day"))
    amounts, days = (one.tolist() for one in found.levels)
    return dict(zip(zip(days, amounts, strict=True), found.counts.tolist(), strict=True))


def test_it_reads_the_rows_before_the_horizon_and_no_others(tmp_path: Path) -> None:
    rows = rows_of()
    source = GrowingFile(schema(20), written(tmp_path, rows), KEY)
    for horizon in (1, 9, N_DAYS):
        expected = collections.Counter((day, amount) for _, day, amount in rows if day < horizon)
        assert cells(source, horizon) == dict(expected)


@pytest.mark.parametrize("n_kept", [2, 5])
def test_what_is_kept_of_closed_days_does_not_depend_on_later_ones(
    tmp_path: Path, n_kept: int
) -> None:
    """Which rows are kept is found by brute force for the earliest days of each unit."""
    rows = rows_of()
    source = GrowingFile(schema(n_kept), written(tmp_path, rows), KEY)
    everything = cells(source, N_DAYS)
    digests = {n: source.read_up_to(n).period_fingerprint(0, 5, KEY) for n in (5, 17, N_DAYS)}
    assert len(set(digests.values())) == 1
    for horizon in (3, 11, 20):
        earlier = {cell: n for cell, n in everything.items() if cell[0] < horizon}
        assert cells(source, horizon) == earlier
    per_day: collections.Counter[int] = collections.Counter()
    for unit in {who for who, *_ in rows}:
        per_day.update(sorted(day for who, day, _ in rows if who == unit)[:n_kept])
    found: collections.Counter[int] = collections.Counter()
    for (day, _), n in everything.items():
        found[day] += n
    assert found == per_day


def test_a_late_row_changes_the_digest_of_its_period_alone(tmp_path: Path) -> None:
    rows = rows_of()
    source = GrowingFile(schema(20), written(tmp_path, rows), KEY)
    before = source.read_up_to(N_DAYS)
    written(tmp_path, [*rows, (3, 8, 1)])
    after = source.read_up_to(N_DAYS)
    spans = [(0, 8), (8, 9), (9, N_DAYS)]
    same = [
        before.period_fingerprint(*span, KEY) == after.period_fingerprint(*span, KEY)
        for span in spans
    ]
    assert same == [True, False, True]


def test_empty_periods_have_digests_of_their_own(tmp_path: Path) -> None:
    read = GrowingFile(schema(1), written(tmp_path, [(1, 0, 0)]), KEY).read_up_to(N_DAYS)
    found = {read.period_fingerprint(day, day + 1, KEY) for day in range(N_DAYS)}
    assert len(found) == N_DAYS
    assert read.period_fingerprint(3, 4, b"other") not in found


def test_the_order_of_the_file_does_not_matter(tmp_path: Path) -> None:
    rows = rows_of()
    source = GrowingFile(schema(2), written(tmp_path, rows), KEY)
    before = source.read_up_to(20).period_fingerprint(0, 20, KEY)
    rows = [rows[place] for place in np.random.default_rng(7).permutation(len(rows))]
    written(tmp_path, rows)
    assert source.read_up_to(20).period_fingerprint(0, 20, KEY) == before


def test_a_file_that_is_gone_says_so(tmp_path: Path) -> None:
    source = GrowingFile(schema(2), written(tmp_path, rows_of()), KEY)
    source.read_up_to(3)
    (tmp_path / "orders.csv").unlink()
    with pytest.raises(ConfigurationInvalid):
        source.read_up_to(4)


def test_the_same_file_is_the_same_data_under_any_name(tmp_path: Path) -> None:
    location = written(tmp_path, rows_of())
    one = GrowingFile(schema(2), location, KEY).fingerprint(KEY)
    written(tmp_path, rows_of(seed=2))
    other = Schema(table="others", axes=(DAY,), n_records_max=10, grows="day")
    assert GrowingFile(other, location, KEY).fingerprint(KEY) == one
    assert GrowingFile(schema(2), location, KEY).fingerprint(b"other") != one
