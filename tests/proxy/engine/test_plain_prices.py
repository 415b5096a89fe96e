"""What plain Laplace would have cost, held against tables that nobody asked before.

A table that answers by rows alone, without a history, is plain Laplace: what it is charged for one
statement, search and all, is the price that the tally should name for the same answer. That is
computed by the gate, from what was bought, and shares nothing with the tally.
"""

from fractions import Fraction
from pathlib import Path

import pytest

from cube.measurement import UNITS_PER_EPSILON
from cube.refusals import TargetNotReached
from planner.measuring.candidates import Strategy
from proxy.api.requests import LOCAL, QueryRequest
from proxy.engine.engine import Engine
from tests.support.worlds import people_engine, random_rows

ROWS = random_rows(2000)
DP = "SELECT WITH DIFFERENTIAL_PRIVACY OPTIONS"
STATEMENTS = (
    "SELECT city, COUNT(*) AS n FROM people GROUP BY city",
    "SELECT SUM(visits) AS s FROM people",
    f"{DP}(half_width => 0.5) AVG(visits) AS a FROM people",
    f"{DP}(half_width => 3) AVG(age) AS a FROM people WHERE member",
    f"{DP}(relative => 0.05) COUNT(*) AS n FROM people WHERE city = 'Rome'",
    f"{DP}(half_width => 3) VARIANCE(visits) AS v FROM people",
    f"{DP}(half_width => 3) MEDIAN(age) AS m FROM people",
)
NEAR = 0.02  # a search that raises its rows may be charged a little for rounding
AGAIN = 0.25  # what is known already is asked for by what it seems to be, and that has noise


def answered(engine: Engine, sql: str) -> None:
    engine.answer(QueryRequest(sql=sql, caller=LOCAL))


def plain(engine: Engine) -> tuple[float, float, tuple[int, ...]]:
    """The plain prices of free and paid answers that were counted, and their widths."""
    (tally,) = engine.usage._counts.values()
    engine.usage._counts.clear()
    units = tally.plain_units_free, tally.plain_units_paid
    free, paid = (float(Fraction(one, UNITS_PER_EPSILON)) for one in units)
    return free, paid, tally.widths


def spent(engine: Engine) -> float:
    return float(engine.budgets(LOCAL)[0].spent)


@pytest.mark.parametrize("sql", STATEMENTS)
def test_an_answer_costs_plainly_what_a_table_without_a_history_is_charged(
    sql: str, tmp_path: Path
) -> None:
    with people_engine(tmp_path, ROWS, budget=Fraction(100), strategy=Strategy.QUERY) as engine:
        answered(engine, sql)
        free, paid, widths = plain(engine)
        assert paid == pytest.approx(spent(engine), rel=NEAR)
        assert free == 0
        assert widths[0] == widths[-1] == 0, "none much narrower than was bought, none wider"
        answered(engine, f"{sql} ")
        free, again, _ = plain(engine)
        assert again == 0
        assert free == pytest.approx(paid, rel=AGAIN), "the same, though it was free"


def test_a_statement_that_misses_its_target_gave_no_answer(tmp_path: Path) -> None:
    sql = f"{DP}(half_width => 0.001, fallback => 'error') AVG(age) AS a FROM people"
    with people_engine(tmp_path, ROWS, budget=Fraction(3)) as engine:
        with pytest.raises(TargetNotReached):
            answered(engine, sql)
        assert spent(engine) > 0
        assert not engine.usage._counts
