"""WIDTH_BUCKET against its definition in fractions, on every level and at every edge."""

from fractions import Fraction
from math import floor

import numpy as np
import pytest

from cube.axis import IntegerAxis, MeasureAxis, NumericAxis
from cube.refusals import Refused, UnsupportedSql
from cube.schema import Schema
from cube.target import AccuracyTarget
from planner.domain.scratchpad import Scratchpad
from planner.meaning.moments import N_BUCKETS_MAX
from planner.planner import Planner
from tests.planner.domain.test_polynomials import scalar
from tests.planner.people import part_of

CENTS = MeasureAxis(name="x", low=-1, high=3, step=Fraction(1, 100), null=True)
WHOLE = IntegerAxis(name="n", low=-3, high=20)
BINS = NumericAxis(name="b", edges=(0.0, 1.0, 2.5, 4.0))
SCHEMA = Schema(table="t", axes=(CENTS, WHOLE, BINS), n_records_max=10)
SCRATCHPAD = Scratchpad({"t": SCHEMA})
PLANNER = Planner({"t": SCHEMA}, {"t": AccuracyTarget(half_width=5.0, confidence=0.95)})


def bucket(value: Fraction, low: Fraction, high: Fraction, count: int) -> int:
    """By definition, as in PostgreSQL."""
    if value < low:
        return 0
    return count + 1 if value >= high else int((value - low) * count / (high - low)) + 1


@pytest.mark.parametrize("count", [1, 3, 7, 10, 100])
@pytest.mark.parametrize(("low", "high"), [("0", "2"), ("-0.25", "2.9"), ("0.07", "0.29")])
def test_equal_buckets(low: str, high: str, count: int) -> None:
    found = SCRATCHPAD.evaluate(scalar(f"WIDTH_BUCKET(x, {low}, {high}, {count})"), table="t")
    levels = [Fraction(place, 100) for place in range(-100, 301)]
    expected = [bucket(level, Fraction(low), Fraction(high), count) for level in levels]
    assert found.values[:-1].tolist() == expected
    assert found.null.tolist() == [False] * len(levels) + [True]


def test_given_thresholds() -> None:
    found = SCRATCHPAD.evaluate(scalar("WIDTH_BUCKET(n, ARRAY[0, 2.5, 10])"), table="t")
    expected = np.searchsorted([0, 2.5, 10], np.arange(-3, 21), side="right")
    assert found.values.tolist() == expected.tolist()


def test_bins_are_bucketed_at_their_edges() -> None:
    workload = PLANNER.plan(
        "SELECT WIDTH_BUCKET(b, ARRAY[1, 2.5]) AS k, COUNT(*) FROM t GROUP BY 1"
    )
    assert part_of(workload).keys[0].values == (0, 1, 2)
    with pytest.raises(UnsupportedSql, match="splits its bin"):
        PLANNER.plan("SELECT COUNT(*) FROM t WHERE WIDTH_BUCKET(b, ARRAY[1, 2]) = 1")


@pytest.mark.parametrize(
    "written",
    [
        *("0, 10, 0", "10, 0, 5", f"0, 1, {N_BUCKETS_MAX + 1}", "0, 1, 2.5", "n, 10, 5"),
        *("ARRAY[3, 1]", "ARRAY[1, n]"),
    ],
)
def test_buckets_are_numbers_in_order(written: str) -> None:
    with pytest.raises(Refused, match="limits that are numbers"):
        PLANNER.plan(f"SELECT COUNT(*) FROM t WHERE WIDTH_BUCKET(n, {written}) = 1")  # noqa: S608 - the test's


@pytest.mark.parametrize("divisor", ["0.05", "0.3", "-0.02", "3", "0.125"])
def test_decimals_are_divided_as_decimals(divisor: str) -> None:
    found = SCRATCHPAD.evaluate(scalar(f"FLOOR(x / ({divisor}))"), table="t")
    exact = [Fraction(place, 100) / Fraction(divisor) for place in range(-100, 301)]
    if Fraction(divisor).numerator % 3:  # a reciprocal that is a decimal
        assert found.values[:-1].tolist() == [floor(one) for one in exact]
    else:
        assert np.allclose(found.values[:-1].astype(float), [floor(one) for one in exact], atol=1)


@pytest.mark.parametrize(
    ("written", "meant"),
    [
        ("x > '0.075' OR x > 2", "x > 0.075 OR x > 2"),
        ("NOT x BETWEEN '-0.005' AND '1.995'", "NOT x BETWEEN -0.005 AND 1.995"),
        ("COALESCE(x <= '123456789.5', FALSE)", "x IS NOT NULL"),
    ],
)
def test_numbers_between_quotes_are_not_rounded(written: str, meant: str) -> None:
    one, other = (SCRATCHPAD.evaluate(scalar(sql), table="t") for sql in (written, meant))
    assert one.values[~one.null].tolist() == other.values[~other.null].tolist()
