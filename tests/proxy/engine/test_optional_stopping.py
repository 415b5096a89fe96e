"""Searches: which answers are cut with less doubt, and that two thirds of it are little enough."""

from collections.abc import Iterator
from fractions import Fraction
from pathlib import Path

import numpy as np
import pytest
from numpy.typing import NDArray

from planner.decision import TAILS, surer
from planner.planner import Planner
from proxy.api.requests import LOCAL, QueryRequest, QueryResult
from proxy.engine.answers.formula_widths import RelativeTarget
from proxy.engine.engine import Engine
from proxy.engine.targets import N_ROUNDS_MAX
from tests.support.worlds import DEFAULT, SCHEMA, people_engine, random_rows

DP = "SELECT WITH DIFFERENTIAL_PRIVACY OPTIONS"
FROM = "AS n FROM people WHERE city = 'Oslo'"


@pytest.fixture
def engine(tmp_path: Path) -> Iterator[Engine]:
    with people_engine(tmp_path, random_rows(2000), budget=Fraction(20)) as engine:
        yield engine


@pytest.mark.parametrize(
    ("sql", "is_searched"),
    [
        (f"SELECT COUNT(*) {FROM}", False),
        (f"{DP}(half_width => 9) COUNT(*) {FROM}", False),
        (f"{DP}(half_width => 9, simultaneous => 3) SUM(visits) {FROM}", False),
        (f"SELECT AVG(age) {FROM}", False),
        (f"{DP}(half_width => 9) AVG(age) {FROM}", True),
        (f"{DP}(relative => 0.1) COUNT(*) {FROM}", True),
        (f"{DP}(relative => 0.1) AVG(age) {FROM}", True),
        (f"{DP}(relative => 0.1, at_least => 1) SUM(age) / COUNT(*) {FROM}", True),
        # The first width is narrow enough for any answer, and nothing is decided on one.
        (f"{DP}(relative => 0.1, at_least => 99000) COUNT(*) {FROM}", False),
    ],
)
def test_a_search_is_what_noisy_values_may_stop(sql: str, is_searched: bool) -> None:
    planner = Planner({"people": SCHEMA}, {"people": DEFAULT})
    (part,) = planner.plan(sql).parts
    assert part.is_searched is is_searched
    wanted = surer(part.confidence) if is_searched else part.confidence
    assert {one.target.confidence for one in part.aggregates} == {wanted}
    assert part.cut_at(part.confidence) == wanted


def ask(engine: Engine, sql: str) -> QueryResult:
    return engine.answer(QueryRequest(sql=sql))


def half_width(release: QueryResult) -> float:
    assert release.receipt is not None
    (column,) = release.receipt.columns
    assert column.confidence in {0.95, surer(0.95)}
    return (column.high[0] - column.low[0]) / 2


def test_what_is_bought_at_once_is_neither_dearer_nor_wider(engine: Engine) -> None:
    fixed = ask(engine, f"{DP}(half_width => 50) COUNT(*) {FROM}")
    assert fixed.receipt is not None
    # A Laplace answer of so wide an interval costs log(1 / doubt) / half_width.
    assert float(fixed.receipt.epsilon_spent) == pytest.approx(np.log(20) / 50, rel=0.02)
    assert half_width(fixed) == pytest.approx(50, rel=0.02)


def test_a_search_shows_the_confidence_named_and_cuts_with_less_doubt(engine: Engine) -> None:
    searched = ask(engine, f"{DP}(relative => 0.1) COUNT(*) {FROM}")
    assert searched.receipt is not None
    assert searched.receipt.columns[0].confidence == 0.95
    spent = engine.budgets(LOCAL)[0].spent
    sure = ask(engine, f"{DP}(half_width => 5000, confidence => {surer(0.95)}) COUNT(*) {FROM}")
    assert half_width(sure) == pytest.approx(half_width(searched))
    plain = ask(engine, f"{DP}(half_width => 5000) COUNT(*) {FROM}")
    assert half_width(plain) < half_width(searched)
    assert engine.budgets(LOCAL)[0].spent == spent


# The search for one count, with noise in the continuous limit.

N_SEARCHES = 200_000
# Of 200 000 searches 10 000 may miss, give or take 97; twenty cases are looked at, and six of those
# are passed by chance less than once in 10**7.
MISSES_ERROR_MAX = 6 * 97 / N_SEARCHES
STARTS = (0.5, 0.7, 0.9, 1.0, 1.1, 1.3, 2.0, 4.0, 40.0)  # of the truth, in first widths / relative
FAR_STARTS = (0.001, 0.01, 0.1, 0.3)
TRUTH = 1000.0

Floats = NDArray[np.float64]


def refined(coarse: Floats, scale: Floats, finer: Floats, rng: np.random.Generator) -> Floats:
    """Laplace noise of smaller scales, given coarser noise that is that plus something fresh."""
    size, rate, finer_rate = np.abs(coarse), 1 / scale, 1 / finer
    excess, joint = finer_rate - rate, finer_rate + rate
    kept = (finer / scale) ** 2
    at_it = kept * np.exp(-size * finer_rate)
    beyond = (1 - kept) * rate / 2 * np.exp(-size * finer_rate) / joint
    across = (1 - kept) * rate / 2 * np.exp(-size * rate) / joint
    below = (1 - kept) * rate / 2 * np.exp(-size * rate) * -np.expm1(-size * excess) / excess
    u = rng.random(size.size) * (at_it + beyond + across + below)
    step = rng.exponential(1 / joint)
    inside = -np.log1p(rng.random(size.size) * np.expm1(-size * excess)) / excess
    drawn = np.select(
        [u < at_it, u < at_it + beyond, u < at_it + beyond + across],
        [size, size + step, -step],
        inside,
    )
    return np.where(coarse >= 0, drawn, -drawn)


def misses(relative: float, start: float, cut_at: float) -> float:
    """The share of searches whose last interval does not hold the truth."""
    rng = np.random.default_rng(7)
    n_scales = -np.log(1 - cut_at)  # of noise, in a half-width
    scale = np.full(N_SEARCHES, TRUTH * relative / start / n_scales)
    noise = rng.laplace(0, scale)
    target = RelativeTarget(relative, floor=relative)  # of an answer of one
    for _ in range(N_ROUNDS_MAX):
        width, answer = scale * n_scales, TRUTH + noise
        wide = ~target.is_met(answer, width)
        if not wide.any():
            break
        finer = np.where(wide, target.next_widths(answer, width) / n_scales, scale)
        noise[wide] = refined(noise[wide], scale[wide], finer[wide], rng)
        scale = finer
    return float(np.mean(np.abs(noise) > scale * n_scales))


def test_noise_that_is_refined_has_its_law() -> None:
    rng = np.random.default_rng(3)
    scale, finer = np.full(N_SEARCHES, 3.0), np.full(N_SEARCHES, 1.0)
    found = np.abs(refined(rng.laplace(0, scale), scale, finer, rng))
    for quantile in (0.5, 0.9, 0.99):
        error = 6 * np.sqrt(quantile * (1 - quantile) / N_SEARCHES)
        assert abs(np.mean(found < -np.log(1 - quantile)) - quantile) < error


@pytest.mark.parametrize("doubt", [0.05, 0.1])
@pytest.mark.parametrize("relative", [0.05, 0.2, 0.5, 0.95])
def test_a_search_misses_no_more_often_than_it_says(relative: float, doubt: float) -> None:
    worst = max(misses(relative, start, surer(1 - doubt)) for start in STARTS)
    assert worst <= doubt + MISSES_ERROR_MAX
    # Nor is it much too careful: no more than half the doubt is left.
    assert worst >= doubt / 2


@pytest.mark.parametrize("doubt", [0.05, 0.1])
@pytest.mark.parametrize("relative", [0.05, 0.2, 0.5])
def test_a_search_that_begins_far_from_its_end_misses_no_more_often(
    relative: float, doubt: float
) -> None:
    """Every round is one more look; a relative target near 1 is not held so far (threat_model)."""
    worst = max(misses(relative, start, surer(1 - doubt)) for start in FAR_STARTS)
    assert worst <= doubt + MISSES_ERROR_MAX


@pytest.mark.parametrize("relative", [0.05, 0.2, 0.5, 0.95])
def test_the_check_has_teeth(relative: float) -> None:
    """With all of the doubt in each round, as for a width chosen before, too many searches miss."""
    worst = max(misses(relative, start, 0.95) for start in STARTS)
    assert worst > 0.05 + MISSES_ERROR_MAX


def test_the_price_of_a_search_is_less_than_a_quarter_more() -> None:
    for confidence in (0.9, 0.95, 0.99):
        more = np.log(1 - surer(confidence)) / np.log(1 - confidence)
        assert more < 1.18
    assert Fraction(3, 2) == TAILS
