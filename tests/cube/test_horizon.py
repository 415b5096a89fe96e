"""A table cut at its horizon: the same rows, written on fewer levels, and back."""

import datetime as dt
from fractions import Fraction

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from hypothesis.extra.numpy import arrays
from numpy.typing import NDArray

from cube.axis import Axis, CategoryAxis, DateAxis, IntegerAxis, TimestampAxis
from cube.classes import tiled
from cube.encoding import decode_block, encode_block, fingerprint
from cube.horizon import Horizon, reach, spans, until
from cube.pieces import pieces_of
from cube.query import Factor, LinearQuery, Partition, QueryBlock, Term, counting
from cube.schema import Schema
from tests.support.cubes import dense_rows

N_DAYS, N_CITIES = 7, 3
NIGHT = dt.datetime(2025, 12, 31, 21)  # noqa: DTZ001 - levels have no zone
DAY = DateAxis(name="day", low=dt.date(2026, 1, 1), high=dt.date(2026, 1, N_DAYS))
CITY = CategoryAxis(name="city", values=("a", "b", "c"))
SCHEMA = Schema(table="orders", axes=(CITY, DAY), n_records_max=100, grows="day")
SMALL = st.integers(-3, 3)


def horizon(n_readable: int) -> Horizon:
    return Horizon("day", N_DAYS, n_readable)


def numbers(shape: tuple[int, ...]) -> st.SearchStrategy[NDArray[np.int64]]:
    return arrays(np.int64, shape, elements=SMALL)


@st.composite
def blocks(draw: st.DrawFn, n_days: int) -> QueryBlock:
    """A block over the cities and some days, in several forms."""
    factors: list[Factor] = []
    form = draw(st.sampled_from(["none", "day", "pieces", "both", "apart"]))
    if form in ("day", "apart"):
        factors.append(Factor(("day",), draw(numbers((n_days,)))))
    if form == "pieces":
        factors.append(Factor(("day",), pieces_of(draw(numbers((n_days,))))))
    if form == "both":
        factors.append(Factor(("city", "day"), draw(numbers((N_CITIES, n_days)))))
    if form == "apart":
        factors.append(Factor(("city",), draw(numbers((N_CITIES,)))))
    query = LinearQuery((Term(Fraction(1), tuple(factors)),)) + counting()
    groups = draw(st.sampled_from(["none", "city", "day", "both", "tiles"]))
    every = np.arange(N_CITIES * n_days, dtype=np.int64)
    partition = {
        "none": None,
        "city": Partition(("city",), np.array([0, -1, 1])),
        "day": Partition(("day",), np.arange(n_days) - 1) if n_days > 1 else None,
        "both": Partition(("city", "day"), every.reshape(N_CITIES, n_days)),
        "tiles": Partition(
            ("city", "day"),
            tiled(
                (pieces_of(np.arange(N_CITIES)), pieces_of(np.arange(n_days) // 3)),
                np.arange(N_CITIES * (1 + (n_days - 1) // 3)).reshape(N_CITIES, -1),
            ),
        ),
    }[groups]
    return QueryBlock(query, partition)


def coefficients(block: QueryBlock, n_days: int) -> NDArray[np.float64]:
    """The rows as coefficients of each city and day."""
    rows = dense_rows(block, {"city": N_CITIES, "day": n_days})
    found = np.array(rows, dtype=np.float64)
    return found.reshape(block.n_rows, N_CITIES, n_days)


@given(st.integers(1, N_DAYS), st.data())
def test_whole_rows_are_the_cut_ones_and_nothing_beyond(
    n_readable: int, data: st.DataObject
) -> None:
    block = data.draw(blocks(n_readable))
    whole = coefficients(horizon(n_readable).whole(block), N_DAYS)
    assert np.array_equal(whole[:, :, :n_readable], coefficients(block, n_readable))
    assert not whole[:, :, n_readable:].any()


@given(st.integers(1, N_DAYS), st.integers(0, N_DAYS), st.data())
def test_a_row_of_one_horizon_is_the_same_row_of_every_later_one(
    n_readable: int, n_more: int, data: st.DataObject
) -> None:
    earlier, later = horizon(n_readable), horizon(min(N_DAYS, n_readable + n_more))
    whole = earlier.whole(data.draw(blocks(n_readable)))
    cut = later.cut(whole)
    found = coefficients(cut, later.n_readable)
    assert np.array_equal(found, coefficients(whole, N_DAYS)[:, :, : later.n_readable])
    assert fingerprint(later.whole(cut)) == fingerprint(whole)  # so it can be raised


@given(st.integers(1, N_DAYS), st.data())
def test_the_reach_of_rows_is_where_they_end(n_readable: int, data: st.DataObject) -> None:
    whole = horizon(n_readable).whole(data.draw(blocks(n_readable)))
    found = reach(decode_block(encode_block(whole)), "day")
    touched = np.flatnonzero(coefficients(whole, N_DAYS).any(axis=(0, 1)))
    last = int(touched[-1]) + 1 if touched.size else 0
    assert found is not None if n_readable < N_DAYS else True
    assert last <= (N_DAYS if found is None else found) <= n_readable


def test_rows_beyond_the_horizon_are_on_no_cut_table() -> None:
    everything = QueryBlock(counting())
    assert reach(everything, "day") is None
    with pytest.raises(ValueError, match="beyond"):
        horizon(3).cut(everything)
    with pytest.raises(ValueError, match="beyond"):
        horizon(3).cut(horizon(4).whole(everything))


@pytest.mark.parametrize(
    "axis",
    [
        DAY,
        IntegerAxis(name="day", low=10, high=16),
        TimestampAxis(name="day", low=NIGHT, high=NIGHT + dt.timedelta(hours=6), step="hour"),
    ],
    ids=["days", "numbers", "hours"],
)
def test_a_cut_schema_has_the_first_levels(axis: Axis) -> None:
    schema = Schema(table="orders", axes=(CITY, axis), n_records_max=100, grows="day")
    cut = horizon(3).cut_schema(schema)
    assert cut.by_name["day"].levels == axis.levels[:3]
    assert cut.by_name["city"] is CITY
    assert until(axis, N_DAYS) == axis


@pytest.mark.parametrize("n_readable", [0, N_DAYS + 1])
def test_a_horizon_is_on_its_axis(n_readable: int) -> None:
    with pytest.raises(ValueError, match="readable"):
        horizon(n_readable)


def test_days_are_closed_by_months() -> None:
    axis = DateAxis(name="day", low=dt.date(2025, 12, 30), high=dt.date(2026, 12, 31))
    assert list(spans(axis, 0, 40)) == [(0, 2), (2, 33), (33, 40)]
    assert list(spans(axis, 40, 41)) == [(40, 41)]
    assert list(spans(IntegerAxis(name="n", low=0, high=9), 2, 7)) == [(2, 7)]


@pytest.mark.parametrize(("step", "a_day"), [("minute", 1440), ("hour", 24), ("day", 1)])
def test_moments_are_closed_by_months(step: str, a_day: int) -> None:
    low, high = dt.datetime(2025, 12, 30), dt.datetime(2026, 3, 31)  # noqa: DTZ001 - levels have no zone
    axis = TimestampAxis(name="at", low=low, high=high, step=step)
    whole = [(0, 2), (2, 33), (33, 40)]
    expected = [(start * a_day, end * a_day) for start, end in whole]
    assert list(spans(axis, 0, 40 * a_day)) == expected
    assert list(spans(axis, 2 * a_day - 1, 2 * a_day + 1)) == [
        (2 * a_day - 1, 2 * a_day),
        (2 * a_day, 2 * a_day + 1),
    ]
