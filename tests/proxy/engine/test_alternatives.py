"""What would fit is found in few tries, however price follows width."""

import math
import random
from collections.abc import Callable
from fractions import Fraction
from pathlib import Path

import pytest

from cube.refusals import BudgetExhausted, CostAboveCap, Shortfall
from planner.workload import Fallback, RequestedTarget
from proxy.api.requests import QueryRequest
from proxy.engine.search import N_TRIED_MAX, fitting_factor
from tests.support.worlds import people_engine, random_rows


def shortfall(needed: float, left: float) -> Shortfall:
    return Shortfall(table="t", epsilon_needed=Fraction(needed), epsilon_left=Fraction(left))


def priced(
    price: Callable[[float], float], left: float, tried: list[float]
) -> Callable[[float], float | None]:
    def price_at(factor: float) -> float | None:
        tried.append(factor)
        epsilon = price(factor)
        return epsilon if epsilon <= left else None

    return price_at


@pytest.mark.parametrize("power", [1.0, 1.3, 2.0])
@pytest.mark.parametrize("lacking", [1.05, 1.5, 3.0, 12.0])
def test_what_fits_is_found_in_few_tries_and_is_little_wider_than_needed(
    power: float, lacking: float
) -> None:
    tried: list[float] = []
    price_at = priced(lambda factor: lacking / factor**power, 1.0, tried)
    factor = fitting_factor(price_at, shortfall(lacking, 1.0), 2.0**20)
    assert len(tried) <= N_TRIED_MAX
    exact = lacking ** (1 / power)
    assert exact <= factor <= 1.15 * exact


def test_what_costs_about_all_that_is_left_is_not_improved_upon() -> None:
    tried: list[float] = []
    price_at = priced(lambda factor: 3 / factor, 1.0, tried)
    assert fitting_factor(price_at, shortfall(3.0, 1.0), 2.0**20) == tried[0]
    assert len(tried) == 1


def test_nothing_fits_where_nothing_may_be_paid() -> None:
    tried: list[float] = []
    price_at = priced(lambda _: 2.0, 1.0, tried)
    assert math.isinf(fitting_factor(price_at, shortfall(2.0, 1.0), 2.0**20))
    assert len(tried) <= N_TRIED_MAX


def test_with_nothing_left_only_what_costs_nothing_fits() -> None:
    tried: list[float] = []
    price_at = priced(lambda factor: 0.0 if factor >= 5 else 1.0, 0.0, tried)
    factor = fitting_factor(price_at, shortfall(1.0, 0.0), 100.0)
    assert 5 <= factor <= 100
    assert len(tried) <= N_TRIED_MAX


def test_what_is_said_to_fit_is_answered(tmp_path: Path) -> None:
    sql = "SELECT COUNT(*) FROM people WHERE age < 30"
    with people_engine(tmp_path, random_rows(50), budget=Fraction(1, 10)) as engine:
        strict = QueryRequest(sql=sql, target=RequestedTarget(half_width=10.0))
        with pytest.raises(BudgetExhausted) as refused:
            engine.answer(strict)
        fitting = refused.value.shortfall.fitting
        assert fitting is not None
        assert fitting.half_width is not None
        target = RequestedTarget(half_width=fitting.half_width)
        assert engine.answer(QueryRequest(sql=sql, target=target)).receipt is not None


def test_on_a_long_history_what_is_said_to_fit_under_a_cap_is_answered_under_it(
    tmp_path: Path,
) -> None:
    draw = random.Random(5)  # noqa: S311 - statements, not noise
    n_tried = 0
    with people_engine(tmp_path, random_rows(50), budget=Fraction(100)) as engine:
        for _ in range(40):
            first = draw.randrange(80)
            measure = draw.choice(["COUNT(*)", "COUNT(*) / 2", "SUM(visits)"])
            rows = f"FROM people WHERE age BETWEEN {first} AND {first + 15}"
            sql = f"SELECT {measure} {rows}"
            cap = Fraction(draw.randrange(1, 20), 1000)
            strict = RequestedTarget(half_width=draw.choice([2.0, 5.0, 20.0]), epsilon_cap=cap)
            try:
                engine.answer(QueryRequest(sql=sql, target=strict))
            except CostAboveCap as refusal:
                fitting = refusal.shortfall.fitting
                if fitting is None or fitting.half_width is None:
                    continue
                n_tried += 1
                fits = RequestedTarget(half_width=fitting.half_width, epsilon_cap=cap)
                receipt = engine.answer(QueryRequest(sql=sql, target=fits)).receipt
                assert receipt is not None
                assert receipt.epsilon_spent <= cap
    assert n_tried >= 10


def test_each_column_has_its_price_and_the_width_that_falls_back_on_the_history(
    tmp_path: Path,
) -> None:
    sql = "SELECT city, COUNT(*) AS n, AVG(age) AS a FROM people GROUP BY city"
    with people_engine(tmp_path, random_rows(500)) as engine:
        engine.answer(QueryRequest(sql=sql))
        with pytest.raises(BudgetExhausted) as refused:
            engine.answer(QueryRequest(sql=sql, target=RequestedTarget(half_width=1e-3)))
        found = refused.value.shortfall
        free = QueryRequest(
            sql=sql, target=RequestedTarget(half_width=1e-3, fallback=Fallback.HISTORY)
        )
        receipt = engine.answer(free).receipt
    assert [one.answer for one in found.columns] == ["n", "a"]
    # What both rest on is the first one's; together they cost what the statement does, or more.
    assert sum(one.epsilon for one in found.columns) >= found.epsilon_needed
    assert receipt is not None
    for column, one in zip(receipt.columns, found.columns, strict=True):
        shown = max(high - low for low, high in zip(column.low, column.high, strict=True)) / 2
        assert one.free is not None
        assert shown <= one.free * (1 + 1e-6)
    assert "half_width of n " in refused.value.explain()
