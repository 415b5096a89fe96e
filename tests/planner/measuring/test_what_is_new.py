"""What a dashboard that is refreshed daily costs, against closed forms of the noise of sums."""

import math
from collections.abc import Iterator
from fractions import Fraction
from functools import cache

import numpy as np
import pytest
from scipy.integrate import quad
from scipy.optimize import brentq
from scipy.stats import gamma, norm

from benchmarks.growing_table import GrowingTable, growing_table
from benchmarks.thrift import spent_on
from cube.axis import CategoryAxis, IntegerAxis
from cube.encoding import fingerprint
from cube.query import Factor, Partition, QueryBlock, counting
from cube.schema import Schema
from cube.target import AccuracyTarget
from inference.block_estimates import widest
from planner.measuring.candidates import Strategy
from planner.measuring.choose import _quantile
from planner.workload import Wanted

N_DAYS = 40
N_BEFORE = 10  # days that can be read at first
N_CITIES = 3
TARGET = AccuracyTarget(half_width=1000.0, confidence=0.95)
PLAIN = math.log(20) / 1000  # the weight of one measurement within 1000
TOTAL = QueryBlock(counting())
BY_CITY = QueryBlock(counting(), Partition(("city",), np.arange(N_CITIES)))
IN_A_CITY = QueryBlock(counting([Factor(("city",), np.array([0, 1, 0]))]))


def schema(n_days: int, *, grows: bool = True) -> Schema:
    axes = (
        CategoryAxis(name="city", values=("a", "b", "c")),
        IntegerAxis(name="day", low=0, high=n_days - 1),
    )
    return Schema(table="t", axes=axes, n_records_max=10**6, grows="day" if grows else None)


def by_day(n_days: int, width: int = 1) -> QueryBlock:
    return QueryBlock(counting(), Partition(("day",), np.arange(n_days) // width))


@pytest.fixture(params=[Strategy.AUTO, Strategy.QUERY])
def grown(request: pytest.FixtureRequest) -> Iterator[GrowingTable]:
    """A table that was bought nothing of."""
    strategy: Strategy = request.param
    with growing_table(schema(N_DAYS), TARGET, strategy, Fraction(100), N_BEFORE) as found:
        yield found


def days(grown: GrowingTable, n_days: int) -> Iterator[int]:
    """The number of levels on each of some days; the table is advanced to it."""
    for n_levels in range(N_BEFORE, N_BEFORE + n_days):
        grown.advance(n_levels)
        yield n_levels


@cache
def quantile_of_sum(n_terms: int, confidence: float) -> float:
    """Of a sum of Laplace variables: a normal one whose variance is a gamma variable, doubled."""

    def within(half_width: float) -> float:
        def density(half: float) -> float:
            inside = 2 * norm.cdf(half_width / math.sqrt(2 * half)) - 1
            return float(inside * gamma.pdf(half, n_terms))

        middle = float(n_terms)
        found = quad(density, 0, middle, limit=200)[0] + quad(density, middle, np.inf, limit=200)[0]
        return found - confidence

    return float(brentq(within, 0.1, 20 * math.sqrt(n_terms)))


@pytest.mark.parametrize("n_terms", [1, 2, 7, 32])
def test_the_half_width_of_a_sum_of_stretches(n_terms: int) -> None:
    assert _quantile(n_terms, 0.95) == pytest.approx(quantile_of_sum(n_terms, 0.95), rel=1e-6)


@pytest.mark.parametrize("block", [TOTAL, BY_CITY, IN_A_CITY])
def test_a_total_of_every_day_costs_what_a_power_of_two_of_stretches_do(
    grown: GrowingTable, block: QueryBlock
) -> None:
    """The weight at which N stretches are within the target, N = 1, 2, 4, 4, 8, .., 16."""
    for n_asked, _ in enumerate(days(grown, 10), start=1):
        found = grown.acquire([Wanted(block, TARGET)])
        n_stretches = 1 << (n_asked - 1).bit_length()
        expected = quantile_of_sum(n_stretches, 0.95) / 1000
        assert float(grown.spent) == pytest.approx(expected, rel=1e-4)
        assert float(grown.spent) <= math.sqrt(2 * n_asked) * PLAIN
        is_quiet = n_asked > 2 and n_asked - 1 & n_asked - 2
        assert (found == 0) == bool(is_quiet)


def test_a_table_that_does_not_grow_is_offered_no_stretches() -> None:
    """The same rows as conditions on a column are bought as ever, each by itself."""
    blocks = [
        QueryBlock(counting([Factor(("day",), (np.arange(N_DAYS) < end).astype(np.int64))]))
        for end in (10, 11, 12)
    ]
    still = schema(N_DAYS, grows=False)
    found = spent_on(still, [[Wanted(block, TARGET)] for block in blocks], Strategy.QUERY)
    assert found.n_measurements == len(blocks)
    assert found.epsilon == pytest.approx(len(blocks) * PLAIN, rel=1e-5)


def test_of_groups_by_day_only_the_new_days_are_measured(grown: GrowingTable) -> None:
    """A cell is in one group: 12 days cost what the first costs."""
    for n_levels in days(grown, 12):
        found = grown.acquire([Wanted(by_day(n_levels), TARGET)])
        assert float(grown.spent) == pytest.approx(PLAIN, rel=1e-5)
        assert (found > 0) == (n_levels == N_BEFORE)
        if n_levels > N_BEFORE:
            (one,) = grown.measurements[-1:]
            assert one.block.n_rows == 1


def test_the_last_of_groups_by_week_is_a_sum_of_days(grown: GrowingTable) -> None:
    """The days of a week cost the root of their number; the weeks before cost nothing again.

    The second week is asked for when it is partly over, as a row beside the first.
    """
    for n_levels in days(grown, 15):
        grown.acquire([Wanted(by_day(n_levels, width=7), TARGET)])
    assert float(grown.spent) <= PLAIN + quantile_of_sum(4, 0.95) / 1000 * 1.001


def test_a_total_is_read_from_days_that_were_measured_as_well(grown: GrowingTable) -> None:
    fine = AccuracyTarget(half_width=1000 / 6, confidence=0.95)
    grown.acquire([Wanted(by_day(N_BEFORE), fine)])
    assert grown.acquire([Wanted(TOTAL, TARGET)]) == 0


def test_a_finer_target_raises_the_stretches_that_there_are(grown: GrowingTable) -> None:
    for _ in days(grown, 4):
        grown.acquire([Wanted(TOTAL, TARGET)])
    n_blocks = len({fingerprint(one.block) for one in grown.measurements})
    finer = AccuracyTarget(half_width=900.0, confidence=0.95)
    found = grown.acquire([Wanted(TOTAL, finer)])
    assert 0 < float(found) < PLAIN
    assert len({fingerprint(one.block) for one in grown.measurements}) == n_blocks


def test_where_headroom_is_more_than_is_left_as_many_stretches_as_there_are_are_raised(
    grown: GrowingTable,
) -> None:
    for n_levels in days(grown, 5):
        if n_levels == N_BEFORE + 4:
            enough = quantile_of_sum(5, 0.95) / 1000 * 1.001
            wanted = Wanted(
                TOTAL,
                AccuracyTarget(
                    half_width=1000.0, confidence=0.95, epsilon_cap=Fraction(enough) - grown.spent
                ),
            )
        else:
            wanted = Wanted(TOTAL, TARGET)
        grown.acquire([wanted])
    assert float(grown.spent) == pytest.approx(quantile_of_sum(5, 0.95) / 1000, rel=1e-4)


def test_what_is_answered_is_as_narrow_as_was_asked(grown: GrowingTable) -> None:
    """Several statements that share cells; every answer is looked at after it was bought."""
    blocks = [TOTAL, BY_CITY, IN_A_CITY]
    for n_levels in days(grown, 7):
        for block in [*blocks, by_day(n_levels, width=3)]:
            grown.acquire([Wanted(block, TARGET)])
            known = grown.known(Wanted(block, TARGET))
            assert widest(known, TARGET.confidence) <= TARGET.half_width


def test_several_aggregates_of_one_statement_are_bought_beside_each_other(
    grown: GrowingTable,
) -> None:
    for _ in days(grown, 5):
        wanted = [Wanted(TOTAL, TARGET), Wanted(IN_A_CITY, TARGET)]
        grown.acquire(wanted)
        assert all(
            widest(grown.known(one), TARGET.confidence) <= TARGET.half_width for one in wanted
        )
    assert float(grown.spent) <= 2 * quantile_of_sum(8, 0.95) / 1000 * 1.001
