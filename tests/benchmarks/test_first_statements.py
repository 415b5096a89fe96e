"""The benchmark of first statements compares with the right numbers."""

import math
from dataclasses import replace
from pathlib import Path

import duckdb
import numpy as np
import pytest

from benchmarks.first_asked import COUNT, KINDS, Asked, average, first_statements
from benchmarks.first_peers import Reached, Scale, price_of
from benchmarks.first_statements import beside, session
from benchmarks.first_tables import TABLES, filled_in, write_table
from benchmarks.interval_coverage import coverage, coverage_bar
from benchmarks.shop import exact_engine
from proxy.api.requests import QueryRequest
from proxy.config.settings import load

LOANS = TABLES[0]
EXACT = (
    "count",
    "groups",
    "sum",
    "sum by group",
    "people",
    "average",
    "several by group",
    "series",
)


@pytest.mark.slow
def test_answers_without_noise_are_the_true_ones(tmp_path: Path) -> None:
    """So conditions, clamps and keys mean the same to the engine and to DuckDB."""
    rng = np.random.default_rng(3)
    settings = load(write_table(LOANS, tmp_path, rng, 20_000))
    with exact_engine(settings, tmp_path) as engine, duckdb.connect() as exact:
        exact.execute(f"CREATE TABLE loans AS {LOANS.clamped(tmp_path)}")
        for kind in EXACT:
            asked = first_statements(LOANS, rng, 2, list(KINDS).index(kind))
            for one in (asked[0], replace(asked[0], where="annual_income >= 60000")):
                result = engine.answer(QueryRequest(sql=one.sql))
                shown = beside(one, result, exact.sql(one.exact_sql).to_arrow_table())
                assert shown
                told = [number for number in shown if not math.isnan(number.value)]
                assert len(told) >= 0.8 * len(shown)  # a small group's average is NULL
                for number in told:
                    assert number.value == pytest.approx(number.truth, rel=1e-6, abs=0.01)
                assert sum(x.n_rows for x in shown if x.column == 1) == _n_rows(exact, one.where)


def _n_rows(exact: duckdb.DuckDBPyConnection, where: str) -> int:
    (found,) = exact.table("loans").filter(where or "true").count("*").fetchall()
    return int(found[0])


def test_a_session_spends_what_its_answers_say_and_no_more_than_its_budget() -> None:
    found = session(LOANS, 300, (1, 300, 14), 2)  # begins with a count
    assert found.costs[0][0].sql == "SELECT COUNT(*) AS v1 FROM loans"
    assert 0 < found.costs[0][1] <= found.spent <= 1
    assert len(found.reached) + len(found.refused) == len(found.costs) == len(found.seconds) == 2


def test_a_draft_without_a_place_for_a_column_is_noticed() -> None:
    with pytest.raises(ValueError, match="no place"):
        filled_in(LOANS, "[tables.loans.columns.grade]\nkind = 'category'\n")


def test_intervals_that_fail_together_make_coverage_less_certain() -> None:
    """Of ten sessions of a hundred, five miss a tenth; or each misses a twentieth."""
    together = coverage([[True] * 90 + [False] * 10, [True] * 100] * 5)
    spread = coverage([[True] * 95 + [False] * 5] * 10)
    assert together.share == spread.share == pytest.approx(0.95)
    normal = 3.2905267  # with probability .999
    assert spread.margin == pytest.approx(normal * math.sqrt(0.95 * 0.05 / 1000))
    of_t = 4.7809126  # with nine degrees of freedom
    assert together.margin == pytest.approx(of_t * math.sqrt(10 / 9 * 10 * 25) / 1000)


@pytest.mark.parametrize(("share", "is_fine"), [(0.95, True), (0.90, False), (1.0, False)])
def test_a_wrong_coverage_is_noticed(share: float, is_fine: bool) -> None:
    n_held = round(share * 400)
    found = coverage([[True] * n_held + [False] * (400 - n_held)] * 5)
    assert found.is_fine == coverage_bar(found).holds == is_fine


def test_others_pay_for_the_widths_that_were_reached() -> None:
    """A count that is 3 / epsilon wide; an average by the first terms of its quotient."""
    count = Asked("count", "loans", (), (COUNT,))
    reached = Reached(count, 0.0, (((30.0, 1000.0, math.nan),),))
    assert price_of(reached, Scale(2.0, (3.0,))) == pytest.approx(2.0 * 0.1)
    asked = Asked("average", "loans", (), (average(LOANS.numbers[0]),))
    total, divisor, factor = 12_000.0, 1000.0, 0.5
    worst = 1e-4  # of both parts, added as squares
    above = (total + worst * 105 / factor) / divisor - total / divisor
    below = total / (divisor - worst * 3 / factor) - total / divisor
    width = math.hypot(above, below) / worst
    reached = Reached(asked, 0.0, (((width, total / divisor, divisor),),))
    assert price_of(reached, Scale(3.0, (105.0, 3.0))) == pytest.approx(3.0 * factor, rel=1e-4)
