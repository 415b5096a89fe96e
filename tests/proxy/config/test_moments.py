"""Days and moments of a configuration, as TOML writes them and between quotes."""

import datetime as dt
from pathlib import Path
from typing import Any

import pytest

from cube.axis import Axis
from cube.refusals import ConfigurationInvalid
from proxy.config.columns import GrowsSection, LevelFiles, grows_section, read_axis
from proxy.sources.problems import Problems

DAYS = {"low": dt.date(2026, 1, 1), "high": dt.date(2026, 12, 31), "other": dt.date(1970, 1, 1)}
MOMENTS = {
    "low": dt.datetime(2026, 1, 1, 6),  # noqa: DTZ001 - levels have no zone
    "high": dt.date(2026, 12, 31),
    "other": dt.datetime(1970, 1, 1),  # noqa: DTZ001
}
COLUMNS: list[dict[str, Any]] = [
    {"kind": "date", **DAYS},
    {"kind": "timestamp", "step": "hour", **MOMENTS},
]


def read(column: dict[str, Any]) -> tuple[Axis | None, Problems]:
    found = Problems("tacit.toml")
    axis = read_axis("day", column, ("columns", "day"), found, LevelFiles(Path()))
    return axis, found


@pytest.mark.parametrize("column", COLUMNS)
def test_between_quotes_they_are_the_same(column: dict[str, Any]) -> None:
    written = {
        key: value.isoformat() if isinstance(value, dt.date) else value
        for key, value in column.items()
    }
    assert written != column
    axis, found = read(column)
    found.raise_if_any()
    assert axis is not None
    assert axis == read(written)[0]


@pytest.mark.parametrize("column", COLUMNS)
@pytest.mark.parametrize(
    "value", ["2026", "01.12.2026", "2026-13-01", "2026-1-1", "", 20260101, True]
)
def test_nothing_is_guessed(column: dict[str, Any], value: Any) -> None:
    axis, found = read(column | {"low": value})
    assert axis is None
    with pytest.raises(ConfigurationInvalid, match=r"low: should be a day"):
        found.raise_if_any()


def closed_through(value: Any) -> GrowsSection | None:
    found = Problems("tacit.toml")
    return grows_section({"axis": "day", "closed_through": value}, ("tables", "t"), found)


@pytest.mark.parametrize(
    ("written", "meant"),
    [
        ("2026-10-31", dt.date(2026, 10, 31)),
        ("2026-10-31T23:00", dt.datetime(2026, 10, 31, 23)),  # noqa: DTZ001
        (dt.date(2026, 10, 31), dt.date(2026, 10, 31)),
        (12, 12),
    ],
)
def test_the_last_closed_level(written: Any, meant: dt.date | int) -> None:
    section = closed_through(written)
    assert section is not None
    assert section.closed_through == meant


@pytest.mark.parametrize("value", ["October", "12", 1.5, True, "31/10/2026"])
def test_what_is_no_level_is_a_problem(value: Any) -> None:
    assert closed_through(value) is None
