"""A file of statements through the whole engine: shown for nothing, bought once, free after."""

from fractions import Fraction
from pathlib import Path

import pytest

from cube.refusals import (
    BudgetExhausted,
    CostAboveCap,
    InvalidRequest,
    InvalidSql,
    InvalidTarget,
    Refused,
    UnsupportedSql,
)
from planner.measuring.weights import GaussianOffer
from planner.sql.statements import Query, read_file
from planner.workload import RequestedTarget
from proxy.api.requests import LOCAL, BatchRequest, QueryRequest
from proxy.config.sharing import Sharing
from proxy.engine.batch import LAPLACE_ONLY, SOLVED_BY
from tests.support.worlds import people_engine, random_rows

STATEMENTS = (
    "SELECT city, COUNT(*) AS n FROM people GROUP BY city",
    "SELECT COUNT(*) AS n FROM people WHERE city = 'Oslo' OR city IS NULL",
    "SELECT WITH DIFFERENTIAL_PRIVACY OPTIONS(half_width => 10) 2 * COUNT(*) - 5 AS n FROM people",
    "SELECT COUNT(*) AS n FROM people WHERE city IN ('Oslo', 'Rome')",
)
FILE = ";\n".join(STATEMENTS) + "; -- done; really\n"
ROWS = random_rows(300)


def test_a_file_is_cut_at_semicolons_outside_quotes_and_comments() -> None:
    assert read_file(FILE) == tuple(map(Query, STATEMENTS))
    assert read_file("SELECT ';' ;; /* ; */ SELECT 2") == (Query("SELECT ';'"), Query("SELECT 2"))
    for empty in ("", " ; ;", "-- nothing"):
        with pytest.raises(InvalidSql):
            read_file(empty)


def test_a_plan_is_free_to_see_then_bought_once_and_every_statement_free_after_it(
    tmp_path: Path,
) -> None:
    with people_engine(tmp_path, ROWS) as engine:
        seen = engine.plan_batch(BatchRequest(sql=FILE))
        assert engine.budgets(LOCAL)[0].spent == 0
        bought = engine.plan_batch(BatchRequest(sql=FILE, buy=True))
        assert bought.epsilon == seen.epsilon == engine.budgets(LOCAL)[0].spent > 0
        for row in bought.data.to_pylist():
            assert row["half_width_promised"] <= row["half_width_wanted"]
        for sql in STATEMENTS:
            release = engine.answer(QueryRequest(sql=sql))
            assert release.receipt is not None
            assert release.receipt.epsilon_spent == 0
        again = engine.plan_batch(BatchRequest(sql=FILE, buy=True))
        assert again.epsilon == 0
        assert again.n_measurements == 0


def test_what_a_plan_promises_on_top_of_a_history_is_kept(tmp_path: Path) -> None:
    """With a precise row about, least variance and the narrowest interval differ."""
    with people_engine(tmp_path, ROWS, budget=Fraction(50)) as engine:
        for half_width in (20.0, 8.0):
            target = RequestedTarget(half_width=half_width)
            sql = "SELECT COUNT(*) FROM people WHERE age >= 65"
            engine.answer(QueryRequest(sql=sql, target=target))
        statements = (
            "SELECT COUNT(*) AS n FROM people WHERE age < 30",
            (
                "SELECT WITH DIFFERENTIAL_PRIVACY OPTIONS(half_width => 12, simultaneous => 2) "
                "member, COUNT(*) AS n FROM people GROUP BY member"
            ),
            "SELECT COUNT(*) AS n FROM people WHERE age BETWEEN 20 AND 60",
        )
        told = engine.plan_batch(BatchRequest(sql="; ".join(statements), buy=True))
        for sql, row in zip(statements, told.data.to_pylist(), strict=True):
            assert row["half_width_promised"] <= row["half_width_wanted"]
            release = engine.answer(QueryRequest(sql=sql))
            assert release.receipt is not None
            assert release.receipt.columns[0].source == "history"


def test_a_batch_costs_less_than_its_statements_one_by_one(tmp_path: Path) -> None:
    with people_engine(tmp_path, ROWS) as engine:
        together = engine.plan_batch(BatchRequest(sql=FILE)).epsilon
        for sql in STATEMENTS:
            engine.answer(QueryRequest(sql=sql))
        assert together < engine.budgets(LOCAL)[0].spent


@pytest.mark.parametrize(
    ("sql", "refusal"),
    [
        ("SELECT COUNT(*) FROM people; SELECT COUNT(*) FRM people", Refused),
        (
            "SELECT COUNT(*) FROM people; EXPLAIN PRIVACY SELECT COUNT(*) FROM people",
            InvalidRequest,
        ),
        ("SELECT COUNT(*) FROM people; DROP TABLE people", UnsupportedSql),
        (
            "SELECT WITH DIFFERENTIAL_PRIVACY OPTIONS(half_width => 1e-9) COUNT(*) FROM people",
            InvalidTarget,
        ),
    ],
)
def test_one_bad_statement_refuses_the_batch_and_nothing_is_charged(
    tmp_path: Path, sql: str, refusal: type[Refused]
) -> None:
    with people_engine(tmp_path, ROWS) as engine:
        with pytest.raises(refusal):
            engine.plan_batch(BatchRequest(sql=sql, buy=True))
        assert engine.budgets(LOCAL)[0].spent == 0


def test_caps_and_budgets_refuse_the_whole_plan(tmp_path: Path) -> None:
    with people_engine(tmp_path, ROWS, budget=Fraction(1, 100)) as engine:
        with pytest.raises(BudgetExhausted):
            engine.plan_batch(BatchRequest(sql=FILE, buy=True))
        target = RequestedTarget(half_width=1000.0, epsilon_cap=Fraction(1, 10_000))
        with pytest.raises(CostAboveCap):
            engine.plan_batch(BatchRequest(sql=STATEMENTS[0], target=target, buy=True))
        assert engine.budgets(LOCAL)[0].spent == 0


@pytest.mark.parametrize(
    ("is_offered", "sharing", "is_said"),
    [
        (True, Sharing.SHARED, True),
        (False, Sharing.SHARED, False),
        (True, Sharing.PRIVATE, False),  # there, single statements have Laplace noise as well
    ],
)
def test_a_plan_says_that_it_buys_laplace_noise_where_single_statements_may_not(
    tmp_path: Path, is_offered: bool, sharing: Sharing, is_said: bool
) -> None:
    offer = GaussianOffer(Fraction(1, 10**9), Fraction(1), is_declared=True)
    request = BatchRequest(sql="SELECT city, COUNT(*) AS n FROM people GROUP BY city", buy=True)
    with people_engine(
        tmp_path,
        random_rows(3000),
        budget=Fraction(4),
        gaussian=offer if is_offered else None,
        sharing=sharing,
    ) as engine:
        bought = engine.plan_batch(request)
        kinds = {one.is_gaussian for one in engine._tables["people"].gate.measurements()}
        again = engine.plan_batch(request)
    assert bought.n_measurements
    assert kinds == {False}
    assert bought.notes == ((SOLVED_BY, LAPLACE_ONLY) if is_said else (SOLVED_BY,))
    if sharing is Sharing.SHARED:
        assert (again.n_measurements, again.notes) == (0, ())
