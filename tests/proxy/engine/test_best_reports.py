"""Best reports under priors that a SELECT gives: earlier answers, public rows, and what is refused.

Reports are compared with brute force over the two laws of noise.
"""

import math
from collections.abc import Iterator
from dataclasses import replace
from fractions import Fraction
from pathlib import Path

import numpy as np
import pytest

from cube.refusals import CostAboveCap, InvalidRequest, Refused, TooLarge, UnknownName
from inference.noise_law.law import law_of_noise
from inference.posterior import Posterior
from inference.remap import CountPrior, PowerLoss
from planner.belief import Belief, PriorSelect, loss_named
from proxy.api.requests import LOCAL, Caller, QueryRequest
from proxy.engine.best_reports import prior_of_answer, reported
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
                    served._best_reports(HIDDEN_FROM).prior(select, "another", HIDDEN_FROM)
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
