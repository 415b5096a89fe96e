"""Measures rounded by arithmetic in SQL, against a search among the rounding points."""

import math
from bisect import bisect_right
from fractions import Fraction
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from cube.axis import MeasureAxis
from cube.schema import Schema
from proxy.sources.duckdb_source import DuckDbSource
from proxy.sources.location import SourceLocation
from tests.support.groupings import each

N_POINTS = 300
MEASURES = {
    "cents": (Fraction(0), Fraction(500), Fraction(1, 100)),
    "thirds": (Fraction(-1, 3), Fraction(1000), Fraction(1, 3)),
    "below zero": (Fraction(-250), Fraction(-1, 20), Fraction(1, 20)),
    "millions": (Fraction(10**9), Fraction(10**9 + 2 * 10**4), Fraction(1)),
    "tiny": (Fraction(0), Fraction(1, 10**6), Fraction(1, 10**9)),
    "two levels": (Fraction(0), Fraction(7), Fraction(7)),
}


def at_the_edges(axis: MeasureAxis) -> list[float]:
    """Some rounding points, each with the doubles beside it; bounds, zeros and the largest."""
    points = axis.rounding_points
    some = points[:: max(1, len(points) // N_POINTS)]
    ends = [float(axis.low), float(axis.high), points[0], points[-1]]
    beside = [math.nextafter(one, way) for one in (*some, *ends) for way in (-math.inf, math.inf)]
    largest = np.finfo(np.float64).max
    return [*some, *ends, *beside, 0.0, -0.0, 5e-324, -5e-324, float(largest), -float(largest)]


@pytest.mark.parametrize("name", MEASURES)
def test_a_value_is_in_the_level_whose_rounding_point_it_reaches(name: str, tmp_path: Path) -> None:
    low, high, step = MEASURES[name]
    axis = MeasureAxis(name="x", low=low, high=high, step=step)
    assert axis.rounding is not None, "by arithmetic, and not by a search"
    values = at_the_edges(axis)
    path = tmp_path / "values.parquet"
    pq.write_table(pa.table({"x": pa.array(values, pa.float64())}), path)
    schema = Schema(table="t", axes=(axis,), n_records_max=len(values))
    counts = DuckDbSource(schema, SourceLocation(path=path)).measure(each(schema, "x"))
    levels = [bisect_right(axis.rounding_points, value) for value in values]
    found = dict(zip(counts.levels[0].tolist(), counts.counts.tolist(), strict=True))
    assert found == {level: levels.count(level) for level in set(levels)}
