"""Best reports under priors that a SELECT gives: earlier answers, public rows, and what is refused.

Reports are compared with brute force over the two laws of noise.
"""

import math
from collections.abc import Iterator
from dataclasses import replace
from fractions import Fraction
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from cube.refusals import CostAboveCap, InvalidRequest, Refused, TooLarge, UnknownName
from inference.noise_law.law import law_of_noise
from inference.posterior import Posterior
from inference.remap import CountPrior, PowerLoss
from planner.belief import Belief, PriorSelect, loss_named
from planner.sql import parameter_of
from proxy.api.requests import LOCAL, Caller, QueryRequest
from proxy.engine.answers.best_values import reported
from proxy.engine.best_reports import prior_of_answer
from proxy.engine.engine import Engine
from tests.support.private_history import DP, world
from tests.support.private_history import EVE as HIDDEN_FROM
from tests.support.synthetic import EVE, MAKE, TWO_COLUMNS, spent, synthetic_engine

OF_PEOPLE = f"{DP}(half_width => 8) COUNT(*) AS n FROM people WHERE city = 'Oslo'"
OF_STAFF = f"{DP}(half_width => 12) COUNT(*) AS n FROM staff WHERE city = 'Oslo'"


@pytest.fixture
def engine(tmp_path: Path) -> Iterator[Engine]:
    with synthetic_engine(tmp_path, budget=Fraction(1000)) as engine:
        yield engine


def answer(engine: Engine, sql: str, caller: Caller = LOCAL) -> float:
    data = engine.answer(QueryRequest(sql=sql, caller=caller)).data
    return float(data["n"][0].as_py())


def scale(engine: Engine, table: str) -> float:
    """Of the only measurement of a table."""
    return engine._tables[table].history[0].noise_scale


@pytest.mark.parametrize("loss", ["absolute", "squared", "zero_one"])
def test_an_earlier_answer_is_a_prior_by_the_law_of_its_noise(engine: Engine, loss: str) -> None:
    """The report of least loss where each count is weighed by both laws, tried one by one."""
    earlier = answer(engine, OF_STAFF)
    paid = spent(engine, "staff")
    belief = Belief(PriorSelect(OF_STAFF), loss_named(loss, None))
    found, release = engine.best_report(QueryRequest(sql=OF_PEOPLE), belief)
    assert spent(engine, "staff") == paid
    assert release.receipt is not None
    assert release.receipt.epsilon_spent == spent(engine) > 0
    around = np.arange(max(0, int(min(earlier, found.answer)) - 150), int(earlier) + 400)
    logs = -np.abs(around - earlier) / scale(engine, "staff")
    logs -= np.abs(around - found.answer) / scale(engine, "people")
    law = np.exp(logs - logs.max())
    law /= law.sum()
    apart = np.abs(around[:, None] - around[None, :]).astype(np.float64)
    losses = {"absolute": apart, "squared": apart**2, "zero_one": (apart > 0).astype(np.float64)}
    expected = law @ losses[loss]
    assert found.value == around[int(expected.argmin())]
    assert found.expected_loss == pytest.approx(float(expected.min()), rel=1e-4)


def test_the_earlier_answer_pulls_the_report_towards_it(engine: Engine) -> None:
    earlier = answer(engine, OF_STAFF)
    belief = Belief(PriorSelect(OF_STAFF), PowerLoss(2))
    found, _ = engine.best_report(QueryRequest(sql=OF_PEOPLE), belief)
    low, high = sorted((earlier, found.answer))
    assert math.floor(low) <= found.value <= math.ceil(high)
    assert found.low <= found.value <= found.high
    assert found.probability >= found.confidence == 0.95


def test_a_prior_is_never_bought(engine: Engine) -> None:
    belief = Belief(PriorSelect(OF_STAFF), PowerLoss(1))
    with pytest.raises(InvalidRequest, match="does not know"):
        engine.best_report(QueryRequest(sql=OF_PEOPLE), belief)
    assert spent(engine) == spent(engine, "staff") == 0


@pytest.mark.parametrize(
    ("prior", "refusal", "says"),
    [
        (OF_PEOPLE, InvalidRequest, "as the count is"),
        ("SELECT COUNT(*) AS n FROM people WHERE city = 'Rome'", InvalidRequest, "as the count is"),
        ("SELECT COUNT(*) AS n FROM s", InvalidRequest, "not public"),
        ("SELECT country FROM cities", InvalidRequest, "no count with a weight"),
        ("SELECT nothing FROM cities", UnknownName, "nothing"),
        ("SELECT city, COUNT(*) AS n FROM staff GROUP BY city", Refused, "exactly one count"),
        ("SELECT SUM(age) AS n FROM staff", Refused, "exactly one count"),
    ],
)
def test_what_is_no_independent_prior_is_refused_unpaid(
    engine: Engine, prior: str, refusal: type[Exception], says: str
) -> None:
    """Answers of the same table share its noise, and so do synthetic rows that were made of it."""
    engine.answer(QueryRequest(sql=f"{MAKE} WITH (epsilon => 1, {TWO_COLUMNS})"))
    paid = spent(engine)
    with pytest.raises(refusal, match=says):
        engine.best_report(QueryRequest(sql=OF_PEOPLE), Belief(PriorSelect(prior), PowerLoss(1)))
    assert spent(engine) == paid


def test_public_rows_are_a_prior(engine: Engine) -> None:
    select = "SELECT LENGTH(country) AS n FROM cities"  # 6 and 5
    found, _ = engine.best_report(
        QueryRequest(sql=OF_PEOPLE), Belief(PriorSelect(select), PowerLoss(1))
    )
    assert found.value in {5, 6}


def test_a_table_that_is_not_open_gives_no_prior(engine: Engine) -> None:
    answer(engine, OF_PEOPLE)
    belief = Belief(PriorSelect(OF_PEOPLE), PowerLoss(1))
    with pytest.raises(UnknownName):
        engine.best_report(QueryRequest(sql=OF_STAFF, caller=EVE), belief)


def test_a_hidden_history_gives_no_prior_for_nothing(tmp_path: Path) -> None:
    """The refusal is the same whatever others asked: its price is that of a fresh measurement."""
    refused = []
    for is_busy in (False, True):
        with world(tmp_path / f"{is_busy}", is_busy=is_busy) as served:
            for table in served._tables:
                select = PriorSelect(f"SELECT COUNT(*) AS n FROM {table}")  # noqa: S608 - its own name
                with pytest.raises(CostAboveCap) as caught:
                    served._best_reports(served._visible_to(HIDDEN_FROM)).prior(
                        select, "another", HIDDEN_FROM
                    )
                refused.append(str(caught.value))
    assert len(set(refused)) == len(refused) / 2


def test_the_prior_of_an_answer_is_the_law_of_its_noise() -> None:
    estimate = Posterior(20.3, law_of_noise(np.array([2.0])))
    found = prior_of_answer(estimate)
    weights = np.exp(-np.abs(np.arange(1001) - 20.3) / 2.0)
    weights /= weights.sum()
    np.testing.assert_allclose(found.masses, weights[: found.counts[-1] + 1], atol=1e-8)
    assert math.fsum(found.probabilities) == pytest.approx(1)
    assert prior_of_answer(replace(estimate, high=7.0)).counts[-1] == 7


def test_an_answer_of_which_too_little_is_known_is_no_prior() -> None:
    with pytest.raises(TooLarge, match="10000 counts"):
        prior_of_answer(Posterior(5e5, law_of_noise(np.array([1000.0]))))


def test_a_prior_that_is_a_select_must_be_answered_first() -> None:
    belief = Belief(PriorSelect("SELECT 1"), PowerLoss(1))
    with pytest.raises(TypeError, match="answered before"):
        reported(Posterior(1.0, law_of_noise(np.array([1.0]))), belief, 0.95)


def test_counts_of_probability_0_are_allowed_in_a_prior() -> None:
    belief = Belief(CountPrior((0, 3, 5), (0.0, 1.0, 0.0)), PowerLoss(1.5))
    found = reported(Posterior(4.0, law_of_noise(np.array([1.0]))), belief, 0.95)
    assert (found.value, found.low, found.high, found.probability) == (3, 3, 3, 1.0)


def table(engine: Engine, sql: str, caller: Caller = LOCAL) -> list[dict[str, Any]]:
    rows: list[dict[str, Any]] = engine.answer(
        QueryRequest(sql=sql, caller=caller)
    ).data.to_pylist()
    return rows


LIST = "((380, 0.2), (400, 0.3), (425, 0.1), (500, 0.4))"


@pytest.mark.parametrize("exponent", [1.0, 1.5, 2.0, 4.0])
def test_each_group_has_the_report_of_least_loss(engine: Engine, exponent: float) -> None:
    """Every whole number between the prior's ends is tried, in each group."""
    best = f"DP_BEST(n, loss => 'power', power => {exponent}, prior => {LIST}) AS b"
    sql = f"{DP}(half_width => 60) city, COUNT(*) AS n, {best} FROM people GROUP BY city"
    found = table(engine, sql)
    counts, weights = np.array([380, 400, 425, 500]), np.array([0.2, 0.3, 0.1, 0.4])
    reports = np.arange(380, 501)
    losses = np.abs(counts[:, None] - reports[None, :]).astype(np.float64) ** exponent
    assert len(found) == 4
    for row in found:
        law = weights * np.exp(-np.abs(counts - row["n"]) / scale(engine, "people"))
        assert row["b"] == reports[int((law @ losses / law.sum()).argmin())]


def test_it_is_free_beside_its_count_and_the_same_again(engine: Engine) -> None:
    count = "COUNT(*) AS n FROM people WHERE member"
    first = engine.answer(QueryRequest(sql=f"SELECT {count}"))
    paid = spent(engine)
    sql = f"SELECT DP_BEST(n, prior => {LIST}) AS b, {count}"
    again = [engine.answer(QueryRequest(sql=sql)) for _ in range(2)]
    assert spent(engine) == paid
    assert again[0].data.equals(again[1].data)
    assert again[0].data.column("n").equals(first.data.column("n"))
    assert again[0].receipt is not None
    assert [one.name for one in again[0].receipt.columns] == ["n"]  # a report has no interval


def test_a_report_alone_costs_what_its_count_costs(engine: Engine) -> None:
    sql = f"{DP}(half_width => 9) DP_BEST(COUNT(*), prior => {LIST}) AS b FROM people WHERE member"
    explained = engine.explain(QueryRequest(sql=sql))
    assert spent(engine) == 0
    release = engine.answer(QueryRequest(sql=sql))
    assert release.receipt is not None
    assert release.receipt.epsilon_spent == explained.epsilon == spent(engine) > 0


def test_in_sql_an_earlier_answer_is_a_prior_and_is_read_anew(engine: Engine) -> None:
    """The second answer about the staff is nearly exact: so is the report for the people."""
    answer(engine, OF_STAFF)
    narrow = OF_STAFF.replace("12", "0.2")
    sql = OF_PEOPLE.replace(
        " AS n", f" AS n, DP_BEST(COUNT(*), loss => 'squared', prior => ({OF_STAFF})) AS b"
    )
    (first,) = table(engine, sql)
    belief = Belief(PriorSelect(OF_STAFF), PowerLoss(2))
    reported_, _ = engine.best_report(QueryRequest(sql=OF_PEOPLE), belief)
    assert first["b"] == reported_.value
    exact = answer(engine, narrow)
    (second,) = table(engine, sql)
    assert second["n"] == first["n"]
    assert abs(second["b"] - exact) <= 1


@pytest.mark.parametrize(
    ("prior", "refusal"),
    [
        (f"({OF_STAFF})", InvalidRequest),
        (f"({OF_PEOPLE})", InvalidRequest),
        ("(SELECT country FROM cities)", InvalidRequest),
        ("(SELECT nothing FROM cities)", UnknownName),
        ("'no statement'", Refused),
    ],
)
def test_in_sql_a_prior_that_is_none_is_refused_unpaid(
    engine: Engine, prior: str, refusal: type[Exception]
) -> None:
    sql = f"{DP}(half_width => 9) DP_BEST(COUNT(*), prior => {prior}) AS b FROM people"
    with pytest.raises(refusal):
        table(engine, sql)
    with pytest.raises(refusal):
        engine.explain(QueryRequest(sql=sql))
    assert spent(engine) == spent(engine, "staff") == 0


def test_a_prior_of_many_rows_in_many_groups_is_refused_unpaid(engine: Engine) -> None:
    prior = "(SELECT k FROM generate_series(1, 2000) AS s(k))"
    best = f"age, visits, DP_BEST(COUNT(*), prior => {prior}) AS b"
    with pytest.raises(TooLarge, match="262144"):
        table(engine, f"{DP}(half_width => 9) {best} FROM people GROUP BY age, visits")
    assert spent(engine) == 0


def test_reports_of_a_hidden_history_do_not_show_it(tmp_path: Path) -> None:
    """They are those of the accuracy that was asked for, whatever is known."""
    for is_busy in (False, True):
        with world(tmp_path / f"{is_busy}", is_busy=is_busy) as served:
            best = "DP_BEST(n, loss => 'zero_one', prior => ((0, 0.9), (100000, 0.1))) AS b"
            sql = f"{DP}(half_width => 40) COUNT(*) AS n, {best} FROM people"
            (found,) = table(served, sql, HIDDEN_FROM)
            assert found["b"] in {0, 100_000}


def test_synthetic_rows_and_clipped_counts_have_no_reports(engine: Engine) -> None:
    clause = "SELECT WITH DIFFERENTIAL_PRIVACY OPTIONS(consistency => 'nonnegative')"
    best = f"city, COUNT(*) AS n, DP_BEST(n, prior => {LIST}) AS b"
    found = table(engine, f"{clause} {best} FROM people GROUP BY ROLLUP(city)")
    assert [row["b"] for row in found] == [None] * 5
    engine.answer(QueryRequest(sql=f"{MAKE} WITH (epsilon => 1, {TWO_COLUMNS})"))
    asked = f"{DP}(half_width => 1, epsilon => 0, fallback => 'model')"
    found = table(engine, f"{asked} {best} FROM people WHERE member GROUP BY city")
    assert [(row["n"] is None, row["b"]) for row in found] == [(False, None)] * 4


@pytest.mark.parametrize(
    ("prior", "values"),
    [
        ("((?, 0.5), (?, 0.5))", (7, 7000)),
        ("((?, 0.5), (?, 0.5))", ("7", "7000")),
        ("(SELECT k FROM (VALUES (7), (7000), (9000)) AS t(k) WHERE k <> ?)", (9000,)),
    ],
)
def test_values_of_parameters_may_be_in_a_prior(
    engine: Engine, prior: str, values: tuple[int | str, ...]
) -> None:
    """Also as text: so a client sends what it is told no number's type of."""
    sql = f"{DP}(half_width => 9) DP_BEST(COUNT(*), prior => {prior}) AS b FROM people"
    assert len(engine.describe(QueryRequest(sql=sql)).parameters) == len(values)
    parameters = tuple(parameter_of(one, "") for one in values)
    (found,) = engine.answer(QueryRequest(sql=sql, parameters=parameters)).data.to_pylist()
    assert found["b"] in {7, 7_000}
