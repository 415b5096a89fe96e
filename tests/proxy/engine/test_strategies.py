"""Strategies through a whole engine: promises kept, prices that follow from public things alone."""

import random
from collections.abc import Iterator
from fractions import Fraction
from pathlib import Path

import pytest

from cube.refusals import BudgetExhausted
from cube.target import AccuracyTarget
from planner.measuring.candidates import Strategy
from planner.workload import RequestedTarget
from proxy.api.requests import LOCAL, QueryRequest, QueryResult
from proxy.engine.engine import Engine
from tests.support.worlds import people_engine, random_rows

ROWS = random_rows(2000)
BUDGET = Fraction(50)
CITIES = ("Oslo", "Paris", "Rome")


def ask(engine: Engine, sql: str, half_width: float) -> QueryResult:
    """Answer a SELECT to within a half-width."""
    target = RequestedTarget(half_width=half_width, confidence=0.95)
    return engine.answer(QueryRequest(sql=sql, target=target))


def offers(engine: Engine, sql: str, half_width: float) -> list[dict[str, object]]:
    """The rows of EXPLAIN PRIVACY."""
    target = RequestedTarget(half_width=half_width, confidence=0.95)
    return list(engine.explain(QueryRequest(sql=sql, target=target)).data.to_pylist())


def spent(engine: Engine) -> Fraction:
    """The table's cost."""
    return engine.budgets(LOCAL)[0].spent


def questions(seed: int, n_questions: int) -> Iterator[tuple[str, float]]:
    """Mixed counts and sums with mixed targets."""
    draw = random.Random(seed)  # noqa: S311 - questions for a test
    for _ in range(n_questions):
        low = draw.randrange(90)
        conditions = draw.sample(
            [
                f"age BETWEEN {low} AND {low + draw.randrange(40)}",
                f"city = '{draw.choice(CITIES)}'",
                "member",
                f"visits >= {draw.randrange(12)}",
            ],
            k=draw.randrange(1, 3),
        )
        what = draw.choice(["COUNT(*)", "COUNT(*)", "SUM(visits)"])
        yield (
            f"SELECT {what} AS n FROM people WHERE {' AND '.join(conditions)}",  # noqa: S608 - ours
            draw.uniform(5, 60) * (10 if "SUM" in what else 1),
        )


@pytest.mark.parametrize("strategy", list(Strategy))
def test_every_answer_is_as_narrow_as_was_asked(tmp_path: Path, strategy: Strategy) -> None:
    with people_engine(tmp_path, ROWS, budget=BUDGET, strategy=strategy) as engine:
        for sql, half_width in questions(seed=1, n_questions=25):
            shown = sql.replace(
                "AS n", "AS n, DP_INTERVAL_LOW(n) AS low, DP_INTERVAL_HIGH(n) AS high"
            )
            (row,) = ask(engine, shown, half_width).data.to_pylist()
            assert row["high"] - row["low"] <= 2 * half_width * (1 + 1e-9)


@pytest.mark.parametrize("strategy", list(Strategy))
def test_prices_and_choices_do_not_depend_on_the_data(tmp_path: Path, strategy: Strategy) -> None:
    """The same questions of an empty table and of a full one, both with noise of their own."""
    seen = []
    for name, rows in (("full", ROWS), ("empty", [])):
        folder = tmp_path / name
        folder.mkdir()
        with people_engine(folder, rows, budget=BUDGET, strategy=strategy) as engine:
            told = []
            for sql, half_width in questions(seed=2, n_questions=20):
                told.append(offers(engine, sql, half_width))
                ask(engine, sql, half_width)
                told.append([{"spent": spent(engine)}])
        seen.append(told)
    assert seen[0] == seen[1]


@pytest.mark.parametrize("strategy", list(Strategy))
def test_what_is_explained_is_what_is_paid(tmp_path: Path, strategy: Strategy) -> None:
    with people_engine(tmp_path, ROWS, budget=BUDGET, strategy=strategy) as engine:
        for sql, half_width in questions(seed=3, n_questions=15):
            before = spent(engine)
            told = offers(engine, sql, half_width)
            assert spent(engine) == before
            (chosen,) = (row for row in told if row["chosen"])
            ask(engine, sql, half_width)
            assert float(spent(engine) - before) == chosen["epsilon"]


def test_buying_and_renting_together_cost_at_most_twice_the_rent(tmp_path: Path) -> None:
    with people_engine(tmp_path, ROWS, budget=BUDGET) as engine:
        rent = 0.0
        bought = set()
        for sql, half_width in questions(seed=4, n_questions=60):
            told = offers(engine, sql, half_width)
            narrow = [row["epsilon"] for row in told if row["candidate"] in {"query", "top_up"}]
            rent += min((value for value in narrow if isinstance(value, float)), default=0.0)
            bought |= {row["candidate"] for row in told if row["chosen"]}
            ask(engine, sql, half_width)
            assert float(spent(engine)) <= 2 * rent * (1 + 1e-9)
        assert bought & {"cells", "cuboid", "dyadic"}
        assert "query" in bought


def test_a_stricter_question_costs_the_difference(tmp_path: Path) -> None:
    sql = "SELECT COUNT(*) FROM people WHERE age < 30"
    with people_engine(tmp_path, ROWS, budget=BUDGET, strategy=Strategy.QUERY) as engine:
        for half_width in (80.0, 40.0, 20.0, 10.0):
            ask(engine, sql, half_width)
        step_by_step = spent(engine)
        for _ in range(100):
            ask(engine, sql, 10.0)
        assert spent(engine) == step_by_step
    other = tmp_path / "at_once"
    other.mkdir()
    with people_engine(other, ROWS, budget=BUDGET, strategy=Strategy.QUERY) as engine:
        ask(engine, sql, 10.0)
        # A search ends at most one part in 256 above the smallest weight.
        assert spent(engine) <= step_by_step <= spent(engine) * Fraction(129, 128)


def test_a_candidate_that_fits_is_taken_when_the_better_one_does_not(tmp_path: Path) -> None:
    counts = "SELECT COUNT(*) FROM people WHERE age <"
    with people_engine(tmp_path, ROWS, budget=Fraction(1)) as engine:
        refused = 0
        for sql in (f"{counts} {age}" for age in range(20, 90, 7)):
            left = engine.budgets(LOCAL)[0].left
            told = offers(engine, sql, 25.0)
            cheapest = min(float(str(row["epsilon"])) for row in told)
            try:
                ask(engine, sql, 25.0)
            except BudgetExhausted:
                refused += 1
                assert cheapest > left
            else:
                (chosen,) = (row for row in told if row["chosen"])
                assert chosen["fits_budget"]


def test_simultaneous_answers_share_the_doubt(tmp_path: Path) -> None:
    options = "OPTIONS(half_width => 30, confidence => 0.9, simultaneous => 4)"
    groups = "city, COUNT(*) FROM people GROUP BY city"
    with people_engine(tmp_path, ROWS, budget=BUDGET, strategy=Strategy.QUERY) as engine:
        sql = f"SELECT WITH DIFFERENTIAL_PRIVACY {options} {groups}"
        engine.answer(QueryRequest(sql=sql))
        together = spent(engine)
    other = tmp_path / "alone"
    other.mkdir()
    default = AccuracyTarget(half_width=30.0, confidence=0.975)
    with people_engine(
        other, ROWS, budget=BUDGET, strategy=Strategy.QUERY, default=default
    ) as engine:
        engine.answer(QueryRequest(sql=f"SELECT {groups}"))
        assert spent(engine) == together
