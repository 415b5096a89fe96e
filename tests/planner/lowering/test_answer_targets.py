"""Defaults by kind: what a sum is asked for where nobody says, in the unit of the sum."""

from fractions import Fraction

import pytest

from cube.axis import BooleanAxis, IntegerAxis, MeasureAxis
from cube.schema import Schema
from cube.target import AccuracyTarget, SumTarget
from planner.planner import Planner
from planner.workload import Answer, Part, RequestedTarget

COUNTS = AccuracyTarget(half_width=500.0, confidence=0.95)
SHOP = Schema(
    table="shop",
    axes=(
        BooleanAxis(name="churned"),
        IntegerAxis(name="orders", low=0, high=50),
        MeasureAxis(name="revenue", low=0, high=5000, step=1),
        MeasureAxis(name="spent", low=-100, high=50, step=Fraction(1, 2)),
    ),
    n_records_max=60_000,
)
FLOOR = 0.05 * 2 * 500  # in records


def part_of(sql: str, requested: RequestedTarget | None = None, **sums: SumTarget) -> Part:
    planner = Planner({"shop": SHOP}, {"shop": COUNTS}, sums={"shop": sums})
    (part,) = planner.plan(sql, requested or RequestedTarget()).parts
    return part


def answer_of(sql: str, requested: RequestedTarget | None = None, **sums: SumTarget) -> Answer:
    (answer,) = part_of(sql, requested, **sums).answers
    return answer


@pytest.mark.parametrize(
    "count",
    [
        "COUNT(*)",
        "SUM(1)",
        "SUM(CASE WHEN churned THEN 1 ELSE 0 END)",
        "COUNT(*) FILTER (WHERE churned) - COUNT(*)",
    ],
)
def test_a_count_has_the_half_width_of_its_table(count: str) -> None:
    part = part_of(f"SELECT {count} FROM shop")  # noqa: S608 - fixed
    (answer,) = part.answers
    assert answer.relative is None
    assert part.aggregates[0].target == COUNTS
    assert not part.is_searched


@pytest.mark.parametrize(
    ("summed", "largest"),
    [
        ("SUM(revenue)", 5000),
        ("SUM(CASE WHEN churned THEN revenue END)", 5000),
        ("SUM(revenue) / 100", 50),
        ("SUM(spent)", 100),
        ("SUM(orders)", 50),
        ("SUM(revenue) - SUM(spent)", 5100),
    ],
)
def test_an_undeclared_sum_is_relative_with_a_floor_from_public_bounds(
    summed: str, largest: float
) -> None:
    part = part_of(f"SELECT {summed} FROM shop")  # noqa: S608 - fixed
    (answer,) = part.answers
    assert answer.relative == pytest.approx(0.05)
    assert answer.width_floor == pytest.approx(FLOOR * largest)
    assert part.aggregates[0].target.half_width == pytest.approx(60_000 * largest * 0.05 / 1.05)
    assert part.is_searched


def test_a_declared_fraction_and_size_are_those_of_its_sums() -> None:
    declared = SumTarget(relative=0.02, at_least=1e6)
    answer = answer_of("SELECT SUM(revenue) FROM shop", revenue=declared)
    assert answer.relative == 0.02
    assert answer.width_floor == pytest.approx(2e4)
    in_hundreds = answer_of("SELECT SUM(revenue) / 100 FROM shop", revenue=declared)
    assert in_hundreds.width_floor == pytest.approx(200)


def test_a_declared_fraction_alone_has_a_floor_from_public_bounds() -> None:
    answer = answer_of("SELECT SUM(revenue) FROM shop", revenue=SumTarget(relative=0.02))
    assert answer.relative == 0.02
    assert answer.width_floor == pytest.approx(0.02 * 2 * 500 * 5000)


def test_a_declared_half_width_is_met_without_a_search() -> None:
    part = part_of("SELECT SUM(revenue) FROM shop", revenue=SumTarget(half_width=1e5))
    assert part.answers[0].relative is None
    assert part.aggregates[0].target.half_width == pytest.approx(1e5)
    assert not part.is_searched


def test_of_several_measures_the_strictest_default_holds() -> None:
    wide, narrow = SumTarget(half_width=1e6), SumTarget(half_width=10.0)
    answer = part_of("SELECT SUM(revenue) + SUM(spent) FROM shop", revenue=wide, spent=narrow)
    assert answer.aggregates[0].target.half_width == pytest.approx(10 * 5100 / 100)


def test_what_the_statement_says_holds_for_counts_and_sums_alike() -> None:
    asked = RequestedTarget(half_width=70.0)
    part = part_of("SELECT COUNT(*), SUM(revenue) FROM shop", asked)
    assert [one.target.half_width for one in part.aggregates] == [70.0, 70.0]
    asked = RequestedTarget(relative=0.1, at_least=300.0)
    part = part_of("SELECT COUNT(*), SUM(revenue) FROM shop", asked)
    assert [(one.relative, one.width_floor) for one in part.answers] == [(0.1, 30.0)] * 2


def test_counts_keep_their_half_width_beside_a_sum() -> None:
    part = part_of("SELECT COUNT(*), SUM(revenue) FROM shop")
    assert [one.relative for one in part.answers] == [None, 0.05]
    assert part.aggregates[0].target.half_width == COUNTS.half_width


@pytest.mark.parametrize("revenue", [None, SumTarget(half_width=5e4), SumTarget(half_width=5e5)])
def test_an_average_rests_on_a_sum_and_a_count_as_wide_as_its_tables_counts(
    revenue: SumTarget | None,
) -> None:
    declared = {} if revenue is None else {"revenue": revenue}
    part = part_of("SELECT AVG(revenue) FROM shop", None, **declared)
    assert part.answers[0].relative is None
    widths = [one.target.half_width for one in part.aggregates]
    assert widths == [500 * 2500, 500]
    asked = part_of("SELECT AVG(revenue) FROM shop", RequestedTarget(half_width=9.0), **declared)
    assert [one.target.half_width for one in asked.aggregates] == widths


def test_a_sum_that_is_shown_is_not_asked_more_closely_to_sort_by_it() -> None:
    shown = part_of("SELECT churned, SUM(revenue) AS s FROM shop GROUP BY 1")
    by_sum = part_of("SELECT churned, SUM(revenue) FROM shop GROUP BY 1 ORDER BY SUM(revenue)")
    assert by_sum.aggregates[0].target == shown.aggregates[0].target


@pytest.mark.parametrize(
    "declared",
    [
        {},
        {"half_width": 5.0, "relative": 0.1},
        {"at_least": 5.0},
        {"half_width": -1.0},
        {"relative": 1.0},
        {"relative": 0.1, "at_least": 0.0},
    ],
)
def test_a_declaration_that_makes_no_sense_is_refused(declared: dict[str, float]) -> None:
    with pytest.raises(ValueError, match=r"half_width|relative|at_least"):
        SumTarget(**declared)
