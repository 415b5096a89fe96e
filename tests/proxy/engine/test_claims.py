"""DP_PROBABILITY through the engine: closed forms, intervals, what it costs, and what is hidden."""

import math
import random
from collections.abc import Iterator
from dataclasses import replace
from fractions import Fraction
from pathlib import Path

import numpy as np
import pytest

from accountant.gate.opening import open_table
from accountant.ledger.opening import open_ledger
from accountant.noise.lattice_noise import SystemNoise
from inference.noise_law.law import law_of_noise
from inference.posterior import Posterior
from planner.decision import surer
from proxy.api.requests import LOCAL, QueryRequest
from proxy.engine.engine import Engine
from proxy.sources.duckdb_source import DuckDbSource
from proxy.sources.location import SourceLocation
from proxy.tables.private_table import ServedTable
from tests.support.private_history import DP, EVE, world
from tests.support.worlds import (
    DEFAULT,
    SCHEMA,
    people_engine,
    people_served,
    random_rows,
    write_csv,
)

ROWS = random_rows(300)


@pytest.fixture
def engine(tmp_path: Path) -> Iterator[Engine]:
    with people_engine(tmp_path, ROWS, budget=Fraction(1000)) as engine:
        yield engine


def row(engine: Engine, sql: str) -> dict[str, float]:
    (found,) = engine.answer(QueryRequest(sql=sql, caller=LOCAL)).data.to_pylist()
    return dict(found)


@pytest.mark.parametrize("offset", [-40.0, -5.5, 0.25, 7.0, 30.0])
def test_of_one_measurement_it_is_the_closed_form(engine: Engine, offset: float) -> None:
    """Laplace noise of scale h / ln 20, for a half-width h at 95 %; lattices change it by 1e-4."""
    clause = f"{DP}(half_width => 20, confidence => 0.95)"
    first = row(engine, f"{clause} COUNT(*) AS n, DP_INTERVAL_HIGH(n) AS high FROM people")
    scale = (first["high"] - first["n"]) / math.log(20)
    asked = f"{clause} COUNT(*) AS n, DP_PROBABILITY(n > {first['n'] + offset!r}) AS p FROM people"
    found = row(engine, asked)
    assert found["n"] == first["n"]
    tail = math.exp(-abs(offset) / scale) / 2
    assert found["p"] == pytest.approx(tail if offset > 0 else 1 - tail, abs=1e-4)


def test_the_ends_of_an_interval_cut_off_equal_parts(engine: Engine) -> None:
    """Of an average by draws: its width is searched for, so its interval is surer than 95 %.

    Its ends are quantiles of 400 draws, whose shares of the law vary by .0065.
    """
    tail = (1 - surer(0.95)) / 2
    ends = "DP_INTERVAL_LOW(a) AS low, DP_INTERVAL_HIGH(a) AS high"
    found = row(engine, f"{DP}(half_width => 3) AVG(age) AS a, {ends} FROM people")
    claims = (
        f"DP_PROBABILITY(a <= {found['low']!r}) AS p, DP_PROBABILITY(a > {found['high']!r}) AS q"
    )
    said = row(engine, f"{DP}(half_width => 3) AVG(age) AS a, {claims} FROM people")
    assert said["p"] == pytest.approx(tail, abs=0.012)
    assert said["q"] == pytest.approx(tail, abs=0.012)


def test_it_costs_what_its_answers_cost_and_nothing_once_they_are_known(engine: Engine) -> None:
    sql = f"{DP}(half_width => 15) DP_PROBABILITY(COUNT(*) > 100) AS p FROM people"
    first = engine.answer(QueryRequest(sql=sql, caller=LOCAL))
    assert first.receipt is not None
    assert first.receipt.epsilon_spent > 0
    assert first.receipt.columns == ()  # a probability has no interval
    claim = "DP_PROBABILITY(100 < COUNT(*)) AS p"
    asked = f"{DP}(half_width => 15) {claim}, COUNT(*) AS n FROM people"
    again = engine.answer(QueryRequest(sql=asked, caller=LOCAL))
    assert again.receipt is not None
    assert again.receipt.epsilon_spent == 0
    assert again.data.column("p").to_pylist() == first.data.column("p").to_pylist()


def test_a_claim_and_its_opposite_add_up(engine: Engine) -> None:
    claims = "DP_PROBABILITY(n > 90) AS p, DP_PROBABILITY(NOT n > 90) AS q"
    found = row(
        engine, f"{DP}(half_width => 25) COUNT(*) AS n, {claims} FROM people WHERE age < 40"
    )
    assert found["p"] + found["q"] == pytest.approx(1, abs=1e-9)


def test_of_a_hidden_history_it_is_that_of_the_interval_that_is_shown(tmp_path: Path) -> None:
    with world(tmp_path / "served", is_busy=True) as served:
        wide = f"{DP}(half_width => 40) COUNT(*) AS n, DP_INTERVAL_LOW(n) AS low FROM people"
        (shown,) = served.answer(QueryRequest(sql=wide, caller=EVE)).data.to_pylist()
        low = repr(shown["low"])
        claim = f"{DP}(half_width => 40) DP_PROBABILITY(COUNT(*) <= {low}) AS p FROM people"
        (found,) = served.answer(QueryRequest(sql=claim, caller=EVE)).data.to_pylist()
    assert found["p"] == pytest.approx(0.025, abs=0.002), "not that of the narrower count"


N_CLAIMS = 20_000
ODDS = 5.0  # deviations: below one in a million


def score(stated_scale: float, scales: np.ndarray, rng: np.random.Generator) -> float:
    """How far claims are from being true as often as stated, in deviations.

    The truth is 0, its estimate has noise of the given scales, and thresholds lie all over a range
    that is wide beside the noise. Noise that is wider than stated makes bold claims false.
    """
    noise = rng.laplace(0.0, scales, (N_CLAIMS, scales.size)).sum(axis=1)
    thresholds = rng.uniform(-12, 12, N_CLAIMS)
    law = law_of_noise(scales * stated_scale)
    stated = np.array(
        [Posterior(value, law).exceeds(end) for value, end in zip(noise, thresholds, strict=True)]
    )
    is_true = thresholds < 0
    bold = 2 * stated - 1
    deviation = math.sqrt(float((stated * (1 - stated) * bold**2).sum()))
    return float(((is_true - stated) * bold).sum()) / deviation


@pytest.mark.parametrize("scales", [np.array([1.0]), np.array([1.0, 0.5, 0.5])])
def test_claims_are_true_as_often_as_stated(scales: np.ndarray) -> None:
    rng = np.random.default_rng(random.SystemRandom().getrandbits(64))
    assert abs(score(1.0, scales, rng)) < ODDS
    assert score(1 / 1.3, scales, rng) < -ODDS, "noise 1.3 times as wide as stated"
    assert score(1.3, scales, rng) > ODDS


def test_of_two_subqueries_it_is_that_of_their_difference(engine: Engine) -> None:
    """By 10,000 draws: within .02 of the exact law of the difference but for one run in 10**4."""
    first = "(SELECT COUNT(*) FROM people WHERE age < 40)"
    second = "(SELECT COUNT(*) FROM people WHERE age >= 30)"
    for subquery in (first, second):  # both known to within 20; they share what they have in common
        engine.answer(QueryRequest(sql=f"{DP}(half_width => 20) {subquery} AS n", caller=LOCAL))
    drawn = f"{DP}(half_width => 20) DP_PROBABILITY({first} - {second} > {{}}) AS p"
    counts = "COUNT(*) FILTER (WHERE age < 40) - COUNT(*) FILTER (WHERE age >= 30)"
    exact = f"{DP}(half_width => 60) {counts} AS d, DP_PROBABILITY(d > {{}}) AS p FROM people"
    middle = row(engine, exact.format(0))["d"]
    for away in (-15.5, 0.25, 10.5):
        asked = row(engine, drawn.format(repr(middle + away)))
        assert asked["p"] == pytest.approx(
            row(engine, exact.format(repr(middle + away)))["p"], abs=0.02
        )


def test_of_two_tables_noises_are_independent(tmp_path: Path) -> None:
    """The difference has both scales; a count that is named twice does not differ from itself."""
    others = replace(SCHEMA, table="others")
    source = DuckDbSource(others, SourceLocation(path=write_csv(tmp_path / "others.csv", ROWS)))
    with (
        people_served(tmp_path, ROWS, budget=Fraction(1000)) as people,
        open_ledger(tmp_path / "others.ledger") as ledger,
    ):
        gate = open_table(ledger, others, Fraction(1000), source, SystemNoise())
        engine = Engine({"people": people, "others": ServedTable(others, DEFAULT, gate)})
        counts = ["(SELECT COUNT(*) FROM people)", "(SELECT COUNT(*) FROM others)"]
        asked = f"{DP}(half_width => 20) {counts[0]} AS a, {counts[1]} AS b"
        known = row(engine, asked)
        law = law_of_noise(np.full(2, 20 / math.log(20)))
        for away in (-12.5, 0.0, 9.0):
            end = known["a"] - known["b"] + away
            claim = f"DP_PROBABILITY({counts[0]} - {counts[1]} > {end!r}) AS p"
            found = row(engine, f"{DP}(half_width => 20) {claim}")
            assert found["p"] == pytest.approx(law.tail(away), abs=0.02)
        claim = f"DP_PROBABILITY({counts[0]} - {counts[0]} BETWEEN -0.5 AND 0.5) AS p"
        assert row(engine, f"{DP}(half_width => 20) {claim}")["p"] == 1
