"""Notices say what the receipt says, rounded so that no interval looks narrower than it is."""

import math
from dataclasses import replace
from fractions import Fraction

import pytest

from proxy.api.receipts import notice_lines
from proxy.api.requests import BudgetStatus, ColumnReceipt, LimitStatus, Receipt

BUDGET = BudgetStatus("people", Fraction(4), Fraction(1), 3)


def column(
    low: tuple[float, ...], high: tuple[float, ...], source: str = "measured"
) -> ColumnReceipt:
    return ColumnReceipt("n", 0.9, Fraction(1, 8), source, low, high)


def receipt(*columns: ColumnReceipt) -> Receipt:
    return Receipt("people", Fraction(1, 8), columns, BUDGET, ("Groups were chosen.",))


def test_a_receipt_is_told_in_lines() -> None:
    assert notice_lines(receipt(column((10.0, 0.0), (20.0, 40.0)))) == (
        "people: epsilon 0.125 spent, 3 left.",
        "n: half-width 5 to 20 at confidence 0.9, from measured.",
        "Groups were chosen.",
    )


def test_what_is_left_is_what_the_caller_may_still_spend() -> None:
    limit = LimitStatus("analyst:ann", "day", Fraction(2), Fraction(3, 2), None)
    per_query = replace(limit, limit=None, per_query=Fraction(1, 10))
    told = replace(receipt(), budget=replace(BUDGET, limits=(limit, per_query)))
    assert notice_lines(told)[0] == "people: epsilon 0.125 spent, 0.5 left."


@pytest.mark.parametrize("width", [1.0, 1.2345, 12_344.0, 0.000123456, 999.9, 1e-12, 98765432.1])
def test_a_half_width_is_rounded_upwards(width: float) -> None:
    line = notice_lines(receipt(column((-width,), (width,))))[1]
    told = float(line.split()[2])
    assert width <= told <= 1.01 * width


@pytest.mark.parametrize(("low", "high"), [(-math.inf, math.inf), (math.nan, math.nan)])
def test_rows_without_an_interval_are_not_counted(low: float, high: float) -> None:
    told = notice_lines(receipt(column((low,), (high,), "model")))
    assert told[1] == "n: no interval, from model."
    assert "half-width 1 at" in notice_lines(receipt(column((low, 0.0), (high, 2.0))))[1]
