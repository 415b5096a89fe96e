"""OPTIONS(decide => ..) and comparisons through the engine: what they cost, and what is said."""

from collections.abc import Iterator
from fractions import Fraction
from pathlib import Path

import pytest

from cube.refusals import TargetNotReached
from proxy.api.requests import LOCAL, QueryRequest, QueryResult
from proxy.engine.engine import Engine
from tests.support.private_history import DP
from tests.support.worlds import people_engine, random_rows

N_ROWS = 20_000
ROWS = random_rows(N_ROWS)


@pytest.fixture
def engine(tmp_path: Path) -> Iterator[Engine]:
    with people_engine(tmp_path, ROWS, budget=Fraction(1000)) as engine:
        yield engine


def asked(engine: Engine, sql: str) -> QueryResult:
    return engine.answer(QueryRequest(sql=sql, caller=LOCAL))


def price(engine: Engine, sql: str) -> float:
    result = asked(engine, sql)
    assert result.receipt is not None
    return float(result.receipt.epsilon_spent)


def test_a_claim_far_from_the_truth_costs_a_small_part(tmp_path: Path) -> None:
    prices = {}
    claims = {
        "far": f"{DP}(decide => 0.99) DP_PROBABILITY(COUNT(*) > 1000) AS p FROM people",
        "near": f"{DP}(decide => 0.99) DP_PROBABILITY(COUNT(*) > 19800) AS p FROM people",
        "width": f"{DP}(half_width => 20) COUNT(*) AS n FROM people",
    }
    for name, sql in claims.items():
        (tmp_path / name).mkdir()
        with people_engine(tmp_path / name, ROWS) as fresh:
            prices[name] = price(fresh, sql)
            assert price(fresh, f"{sql} ") == 0, "once it is decided, it is free"
    assert 0 < prices["far"] < prices["near"] / 10 < prices["width"] / 10


@pytest.mark.parametrize(
    ("claim", "holds"),
    [
        ("COUNT(*) > 5000", True),
        ("COUNT(*) FILTER (WHERE member) > COUNT(*) FILTER (WHERE NOT member)", False),
        ("AVG(age) > 20", True),
        ("AVG(age) FILTER (WHERE member) BETWEEN 20 AND 90", True),
        ("NOT SUM(visits) > 1000", False),
        ("COUNT(*) FILTER (WHERE member) / COUNT(*)::float < 0.7", True),
    ],
)
def test_claims_of_all_kinds_are_decided(engine: Engine, claim: str, holds: bool) -> None:
    result = asked(engine, f"{DP}(decide => 0.9999) DP_PROBABILITY({claim}) AS p FROM people")
    (p,) = result.data.column("p").to_pylist()
    assert p > 0.99 if holds else p < 0.01
    assert result.receipt is not None
    assert not result.receipt.warnings


def test_what_is_not_decided_at_the_last_width_is_said_or_refused(engine: Engine) -> None:
    """About the noisy answer itself, whose probability is one half."""
    known = asked(engine, f"{DP}(half_width => 100) COUNT(*) AS n FROM people")
    limit = round(known.data.to_pylist()[0]["n"])
    claim = f"DP_PROBABILITY(n > {limit}) AS p FROM people"
    sql = f"{DP}(decide => 0.99, half_width => 100) COUNT(*) AS n, {claim}"
    result = asked(engine, sql)
    assert result.receipt is not None
    (warning,) = result.receipt.warnings
    assert f"DP_PROBABILITY(n > {limit}) is not decided." in warning
    strict = sql.replace("decide =>", "fallback => 'error', decide =>")
    with pytest.raises(TargetNotReached, match="is not decided") as refused:
        asked(engine, strict)
    assert "A larger epsilon" in str(refused.value.hint)


def test_its_looks_cost_no_more_than_the_half_width_at_once(engine: Engine, tmp_path: Path) -> None:
    claim = f"DP_PROBABILITY(COUNT(*) > {N_ROWS}) AS p FROM people"
    decided = price(engine, f"{DP}(decide => 0.99, half_width => 50, confidence => 0.99) {claim}")
    rest = price(engine, f"{DP}(half_width => 50, confidence => 0.99) COUNT(*) AS n FROM people")
    (tmp_path / "fresh").mkdir()
    with people_engine(tmp_path / "fresh", ROWS, budget=Fraction(10)) as fresh:
        at_once = price(fresh, f"{DP}(half_width => 50, confidence => 0.99) COUNT(*) FROM people")
    assert decided > 0
    assert decided + rest == pytest.approx(at_once, rel=0.01)


@pytest.mark.parametrize(
    "sql",
    [
        "SELECT COUNT(*) > 2000 AS b FROM people",
        "SELECT city FROM people GROUP BY city HAVING COUNT(*) > 500",
        "SELECT member, CASE WHEN COUNT(*) > 500 THEN 'many' END AS k FROM people GROUP BY member",
    ],
)
def test_comparisons_alone_are_decided_without_being_told(engine: Engine, sql: str) -> None:
    result = asked(engine, sql)
    assert result.receipt is not None
    assert result.receipt.epsilon_spent < Fraction(1, 50)
    assert result.data.num_rows > 0


@pytest.mark.parametrize(
    "sql",
    [
        "SELECT COUNT(*) AS n, COUNT(*) > 2000 AS b FROM people",
        "SELECT city FROM people GROUP BY city HAVING COUNT(*) > 500 ORDER BY COUNT(*)",
        "SELECT CASE WHEN COUNT(*) > 500 THEN COUNT(*) END AS k FROM people",
        f"{DP}(half_width => 20) COUNT(*) > 2000 AS b FROM people",
        "SELECT city, age, visits, COUNT(*) > 1 AS many_groups FROM people GROUP BY 1, 2, 3",
    ],
)
def test_what_else_is_read_has_its_own_width(tmp_path: Path, sql: str) -> None:
    with people_engine(tmp_path, ROWS, budget=Fraction(10)) as engine:
        assert price(engine, sql) > 0.09


def test_a_comparison_near_its_limit_is_said_to_be_unsure(engine: Engine) -> None:
    """The limit is the noisy count: each side is as likely."""
    (n,) = asked(engine, f"{DP}(half_width => 20) COUNT(*) AS n FROM people").data["n"].to_pylist()
    sql = f"{DP}(half_width => 20) COUNT(*) > {n - 0.001!r} AS b FROM people"
    result = asked(engine, sql)
    assert result.receipt is not None
    (note,) = result.receipt.caveats
    assert "compares a noisy value, and is right with a probability of 0.5" in note


def test_certainty_is_that_of_the_claim(engine: Engine) -> None:
    sql = "city, COUNT(*) AS n, DP_PROBABILITY(n > 3990) AS p, COUNT(*) > 3990 AS b FROM people"
    shown = asked(engine, f"{DP}(certainty => true, half_width => 60) {sql} GROUP BY city")
    for row in shown.data.to_pylist():
        assert row["dp_certain"] == pytest.approx(row["p"] if row["b"] else 1 - row["p"])
        assert row["dp_certain"] >= 0.5
    inner = f"SELECT * FROM ({DP}(certainty => true) COUNT(*) > 5 AS b FROM people) AS x"  # noqa: S608
    assert asked(engine, inner).data.column_names == ["b"], "nothing is added inside"


def test_the_order_of_the_first_rows_has_its_certainty(engine: Engine) -> None:
    sql = "city, COUNT(*) AS n FROM people GROUP BY city ORDER BY n DESC LIMIT 2"
    shown = asked(engine, f"{DP}(certainty => true, half_width => 200) {sql}")
    first, second = shown.data.column("dp_certain_order").to_pylist()
    assert first > 0.99, "Oslo has twice as many people"
    assert second < 0.99, "the others have as many"


@pytest.mark.parametrize("method", ["convolution", "monte_carlo"])
def test_the_law_that_is_named_is_used_and_told(engine: Engine, method: str) -> None:
    asked(engine, f"{DP}(half_width => 40) city, member, COUNT(*) AS n FROM people GROUP BY 1, 2")
    ends = "COUNT(*) AS n, DP_INTERVAL_LOW(n) AS low, DP_PROBABILITY(n > 4000) AS p"
    sql = f"{DP}(half_width => 2000{{}}) city, {ends} FROM people GROUP BY city ORDER BY city"
    exact = asked(engine, sql.format(""))
    other = asked(engine, sql.format(f", posterior => '{method}'"))
    assert other.receipt is not None
    assert any(f"computed by {method}" in note for note in other.receipt.notes)
    error = 1e-9 if method == "convolution" else 0.007
    for one, same in zip(exact.data.to_pylist(), other.data.to_pylist(), strict=True):
        assert same["n"] == one["n"]
        assert same["p"] == pytest.approx(one["p"], abs=error)
        assert same["low"] == pytest.approx(one["low"], abs=1e-3 if method != "monte_carlo" else 20)
    plan = asked(engine, f"EXPLAIN {sql.format(f', posterior => {method!r}')}")
    assert set(plan.data.column("posterior").to_pylist()) == {method}
