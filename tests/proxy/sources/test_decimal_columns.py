"""Columns of decimals, against fractions: bins and measures are of the decimals that were written.

A double tells 15 digits apart, and these have up to 38: a value just below an edge or a tie is
below it.
"""

import math
from collections import Counter
from decimal import Context, Decimal
from fractions import Fraction
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from cube.axis import Axis, MeasureAxis, NumericAxis
from cube.schema import Schema
from proxy.sources.duckdb_source import DuckDbSource
from proxy.sources.location import SourceLocation
from tests.support.groupings import each

TYPES = [(4, 2), (9, 3), (18, 2), (18, 18), (30, 20), (38, 0), (38, 18), (38, 37)]
EDGES = {
    "written": (-1.5, 0.0, 0.3, 0.5, 1.25, 3.0),
    "finer than the column": (0.001, 0.002, 0.004, 0.3, 0.3001),
    "beyond every decimal": (-1e300, -1e25, 0.1, 7e22, 1e60),
    "all below": (-1e60, -1e50),
    "all above": (1e50, 1e60),
}
MEASURES = {
    "cents": (Fraction(0), Fraction(3), Fraction(1, 100)),
    "tenths from a third digit": (Fraction(5, 1000), Fraction(3005, 1000), Fraction(1, 10)),
    "thirds": (Fraction(-1), Fraction(2), Fraction(1, 3)),
    "below zero": (Fraction(-5, 2), Fraction(-1, 2), Fraction(1, 4)),
    "whole": (Fraction(-3), Fraction(699_997), Fraction(7)),
}


def decimals(precision: int, places: int, near: list[Fraction]) -> list[int]:
    """Values in units of the last digit: beside what may be cut at, the extremes, and some more."""
    most = 10**precision - 1
    rng = np.random.default_rng(precision * 100 + places)
    beside = [math.floor(one * 10**places) + by for one in near for by in (-1, 0, 1, 2)]
    scattered = [int(x * 10**places) for x in rng.uniform(-3, 4, size=100)]
    every = [*beside, *scattered, 0, most, -most]
    return [one for one in every if abs(one) <= most]


def counted(axis: Axis, values: list[int], kind: tuple[int, int], folder: Path) -> dict[int, int]:
    """How many of the values the source counts at each level."""
    precision, places = kind
    exact = Context(prec=38)
    numbers = [Decimal(value).scaleb(-places, exact) for value in values]
    path = folder / "values.parquet"
    pq.write_table(pa.table({"x": pa.array(numbers, pa.decimal128(precision, places))}), path)
    schema = Schema(table="t", axes=(axis,), n_records_max=len(values))
    counts = DuckDbSource(schema, SourceLocation(path=path)).measure(each(schema, "x"))
    return dict(zip(counts.levels[0].tolist(), counts.counts.tolist(), strict=True))


@pytest.mark.parametrize("kind", TYPES, ids=str)
@pytest.mark.parametrize("name", EDGES)
def test_a_decimal_is_in_the_bin_whose_written_edges_are_around_it(
    name: str, kind: tuple[int, int], tmp_path: Path
) -> None:
    axis = NumericAxis(name="x", edges=EDGES[name], null=True)
    edges = [Fraction(repr(edge)) for edge in axis.edges]
    values = decimals(*kind, near=[edge for edge in edges if abs(edge) < 10**30])
    expected: Counter[int] = Counter()
    for value in values:
        exact = Fraction(value, 10 ** kind[1])
        if edges[0] <= exact <= edges[-1]:
            expected[min(sum(edge <= exact for edge in edges), len(edges) - 1) - 1] += 1
    assert counted(axis, values, kind, tmp_path) == expected


# With 37 digits behind the point there is no room for what is computed: these are read as doubles.
@pytest.mark.parametrize("kind", TYPES[:-1], ids=str)
@pytest.mark.parametrize("name", MEASURES)
def test_a_decimal_is_rounded_to_the_nearest_level_and_up_if_it_is_between_two(
    name: str, kind: tuple[int, int], tmp_path: Path
) -> None:
    low, high, step = MEASURES[name]
    axis = MeasureAxis(name="x", low=low, high=high, step=step)
    n_levels = int((high - low) / step) + 1
    ties = [low + step * place - step / 2 for place in range(0, n_levels + 1, n_levels // 20 + 1)]
    values = decimals(*kind, near=[low, high, *ties])
    expected = Counter(
        min(
            max(math.floor((Fraction(value, 10 ** kind[1]) - low) / step + Fraction(1, 2)), 0),
            n_levels - 1,
        )
        for value in values
    )
    assert counted(axis, values, kind, tmp_path) == expected
