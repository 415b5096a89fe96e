"""Rows read from the same rows on other intervals, against brute force and dense least squares."""

import math
from collections.abc import Iterator, Mapping, Sequence

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from numpy.typing import NDArray

from accountant.noise.lattice_noise import LatticeNoise
from cube.axis import CategoryAxis, IntegerAxis
from cube.measurement import Measurement, Weight
from cube.query import Factor, Partition, QueryBlock, counting
from cube.schema import Schema
from inference.block_estimates import widest
from inference.blue.stretches import StretchesReader, on_stretch, stretches_of
from inference.estimator import Estimator
from inference.history import History
from inference.posterior import Posterior
from tests.support.examples import examples

N_DAYS, N_CITIES = 8, 3
DAYS = IntegerAxis(name="day", low=0, high=N_DAYS - 1)
CITIES = CategoryAxis(name="city", values=("a", "b", "c"))
SCHEMA = Schema(table="t", axes=(DAYS, CITIES), n_records_max=1000, grows="day")
STILL = Schema(table="t", axes=(DAYS, CITIES), n_records_max=1000)
BY_CITY = QueryBlock(counting(), Partition(("city",), np.arange(N_CITIES)))
TOTAL = QueryBlock(counting())
TABLE = np.random.default_rng(19).integers(0, 50, size=(N_CITIES, N_DAYS))

Interval = tuple[int, int]
INTERVALS = st.tuples(st.integers(0, N_DAYS - 1), st.integers(1, N_DAYS)).filter(
    lambda one: one[0] < one[1]
)


def up_to(block: QueryBlock, interval: Interval) -> QueryBlock:
    return on_stretch(block, "day", N_DAYS, *interval)


def by_day(width: int, first: int = 0) -> QueryBlock:
    """The count of each city and interval of so many days; the days before the first in none."""
    days = np.arange(N_DAYS) // width
    labels = np.add.outer(np.arange(N_CITIES) * N_DAYS, days)
    labels[:, :first] = -1
    used = np.unique(labels[labels >= 0])
    numbers = np.where(labels >= 0, np.searchsorted(used, labels), -1)
    return QueryBlock(counting(), Partition(("city", "day"), numbers))


def on_cells(block: QueryBlock) -> NDArray[np.float64]:
    """The rows of a block over the cells of city and day, (n_rows, 3, 8)."""
    inside = np.ones((N_CITIES, N_DAYS))
    for term in block.query.terms:
        for factor in term.factors:
            inside *= factor.values if factor.axes == ("day",) else factor.values[:, np.newaxis]
    if block.partition is None:
        return inside[np.newaxis]
    labels = block.partition.labels
    if block.partition.axes == ("city",):
        labels = np.repeat(labels[:, np.newaxis], N_DAYS, axis=1)
    if block.partition.axes == ("day",):
        labels = np.repeat(labels[np.newaxis], N_CITIES, axis=0)
    rows = labels == np.arange(block.n_rows)[:, np.newaxis, np.newaxis]
    found: NDArray[np.float64] = rows * inside
    return found


def measured(block: QueryBlock, epsilon: float, supersedes: int | None = None) -> Measurement:
    """A measurement whose values are the true ones: its noise happens to be 0."""
    noise = LatticeNoise.for_weight(Weight.at_least(epsilon))
    truth = (on_cells(block) * TABLE).sum(axis=(1, 2))
    values = tuple(int(one) << noise.lattice_bits for one in truth)
    return Measurement(
        block, noise.weight, noise.lattice_bits, noise.noise_scale, values, supersedes
    )


def reader_of(known: Sequence[Measurement]) -> StretchesReader:
    history, reader = History(), StretchesReader("day", N_DAYS)
    history.add(known)
    reader.take_in(history)
    return reader


def least_noisy(
    known: Mapping[Interval, float], asked: Interval, passed: frozenset[int] = frozenset()
) -> float:
    """The least variance of a chain, from all ways without a place twice."""
    start, end = asked
    if start == end:
        return 0.0
    found = math.inf
    for (first, last), variance in known.items():
        for here, there in ((first, last), (last, first)):
            if here == start and there not in passed:
                rest = least_noisy(known, (there, end), passed | {start})
                found = min(found, variance + rest)
    return found


@settings(deadline=None, max_examples=examples(200))
@given(st.dictionaries(INTERVALS, st.sampled_from([0.25, 0.5, 1.0, 2.0]), max_size=7), INTERVALS)
def test_the_chain_is_the_least_noisy_of_all(
    weights: dict[Interval, float], asked: Interval
) -> None:
    known = {one: measured(up_to(BY_CITY, one), weight) for one, weight in weights.items()}
    reading = reader_of(list(known.values())).read(up_to(BY_CITY, asked))
    least = least_noisy({one: had.noise_scale**2 for one, had in known.items()}, asked)
    if math.isinf(least):
        assert reading is None
        return
    assert reading is not None
    assert reading.is_covered.all()
    assert reading.variances == pytest.approx(np.full(N_CITIES, least))


def _terms(known: Sequence[Measurement]) -> Iterator[tuple[int, int, NDArray[np.float64], float]]:
    for place, one in enumerate(known):
        for row, cells in enumerate(on_cells(one.block)):
            yield place, row, cells.ravel(), one.noise_scale**2


HISTORIES = st.lists(
    st.tuples(
        st.one_of(
            INTERVALS.map(lambda one: up_to(BY_CITY, one)),
            st.sampled_from([by_day(1), by_day(1, first=5), by_day(2), by_day(3, first=3)]),
        ),
        st.sampled_from([0.25, 0.5, 1.0, 2.0]),
    ),
    min_size=1,
    max_size=6,
)
ASKED = st.one_of(
    INTERVALS.map(lambda one: up_to(BY_CITY, one)),
    st.sampled_from([by_day(1), by_day(2), by_day(4), by_day(1, first=6)]),
)


@settings(deadline=None, max_examples=examples(200))
@given(HISTORIES, ASKED)
def test_a_reading_adds_up_to_the_rows_and_no_combination_of_all_rows_is_narrower_than_the_best(
    bought: list[tuple[QueryBlock, float]], asked: QueryBlock
) -> None:
    """Coefficients give each cell of a row once; dense least squares bounds the variance."""
    known = [measured(block, weight) for block, weight in bought]
    reading = reader_of(known).read(asked)
    if reading is None:
        return
    terms = list(_terms(known))
    column = {(place, row): number for number, (place, row, _, _) in enumerate(terms)}
    rows = np.array([cells for *_, cells, _ in terms])
    deviations = np.sqrt([variance for *_, variance in terms])
    coefficients = np.zeros((asked.n_rows, len(terms)))
    for row, share, place, used in zip(
        reading.row, reading.coefficient, reading.noise_place, reading.noise_row, strict=True
    ):
        coefficients[row, column[int(place), int(used)]] += share
    wanted = on_cells(asked).reshape(asked.n_rows, -1)
    truth = wanted @ TABLE.ravel()
    values = np.bincount(reading.row, reading.coefficient * reading.value, asked.n_rows)
    for row in np.flatnonzero(reading.is_covered):
        assert np.array_equal(coefficients[row] @ rows, wanted[row])
        assert values[row] == truth[row]  # exactly: no noise was drawn
        # With noises of variance 1, the best combination is the solution of least norm.
        best, *_ = np.linalg.lstsq((rows / deviations[:, np.newaxis]).T, wanted[row], rcond=None)
        assert reading.variances[row] >= best @ best * (1 - 1e-9)


@pytest.mark.parametrize("n_stretches", [1, 2, 5, 8])
def test_where_there_is_one_way_the_chain_is_the_best_of_all_combinations(
    n_stretches: int,
) -> None:
    ends = np.linspace(0, N_DAYS, n_stretches + 1).astype(int).tolist()
    weights = [1.0 + place / 2 for place in range(n_stretches)]
    known = [
        measured(up_to(BY_CITY, (start, end)), weight)
        for start, end, weight in zip(ends, ends[1:], weights, strict=False)
    ]
    reading = reader_of(known).read(BY_CITY)
    assert reading is not None
    rows = np.array([cells / math.sqrt(variance) for *_, cells, variance in _terms(known)])
    for row, wanted in enumerate(on_cells(BY_CITY)):
        best, *_ = np.linalg.lstsq(rows.T, wanted.ravel(), rcond=None)
        assert reading.variances[row] == pytest.approx(best @ best)


def test_days_that_were_counted_one_by_one_add_up_to_any_stretch() -> None:
    reading = reader_of([measured(by_day(1), 1.0)]).read(up_to(BY_CITY, (2, 7)))
    assert reading is not None
    assert reading.row.size == N_CITIES * 5
    values = np.bincount(reading.row, reading.coefficient * reading.value)
    assert values.tolist() == TABLE[:, 2:7].sum(axis=1).tolist()


def test_groups_are_told_by_their_cells_whatever_their_numbers_are() -> None:
    backwards = QueryBlock(counting(), Partition(("city",), np.arange(N_CITIES)[::-1].copy()))
    known = [
        measured(up_to(backwards, (0, 5)), 1.0),
        measured(by_day(1, first=5), 1.0),
    ]
    reading = reader_of(known).read(BY_CITY)
    assert reading is not None
    values = np.bincount(reading.row, reading.coefficient * reading.value)
    assert values.tolist() == TABLE.sum(axis=1).tolist()


def test_a_day_that_was_never_counted_is_not_covered_and_the_others_are() -> None:
    before = by_day(1).partition
    assert before is not None
    labels = before.labels.copy()
    labels[:, -1] = -1
    used = np.unique(labels[labels >= 0])
    earlier = QueryBlock(
        counting(),
        Partition(("city", "day"), np.where(labels >= 0, np.searchsorted(used, labels), -1)),
    )
    reading = reader_of([measured(earlier, 1.0)]).read(by_day(1))
    assert reading is not None
    uncovered = np.flatnonzero(~reading.is_covered)
    partition = by_day(1).partition
    assert partition is not None
    assert uncovered.tolist() == partition.labels[:, -1].tolist()


def test_a_raised_measurement_takes_the_place_of_the_one_before_also_in_forks() -> None:
    first = measured(up_to(TOTAL, (0, 5)), 1.0)
    history, reader = History(), StretchesReader("day", N_DAYS)
    history.add([first])
    reader.take_in(history)
    fork, longer = reader.forked(), history.copy()
    longer.add([measured(up_to(TOTAL, (0, 5)), 2.0, supersedes=0)])
    fork.take_in(longer)
    places = []
    for one in (reader, fork):
        reading = one.read(up_to(TOTAL, (0, 5)))
        assert reading is not None
        places.append(reading.noise_place.tolist())
    assert places == [[0], [1]]


WEEKENDS = np.array([0, 1, 1, 0, 0, 1, 1, 0], dtype=np.int64)
BOTH = Factor(("city", "day"), np.eye(N_CITIES, N_DAYS, dtype=np.int64))
TWICE = Factor(("day",), np.arange(N_DAYS, dtype=np.int64))


@pytest.mark.parametrize(
    "block",
    [
        QueryBlock(counting([Factor(("day",), WEEKENDS)])),
        QueryBlock(counting([BOTH])),
        QueryBlock(counting([TWICE])),
        QueryBlock(counting() + counting([Factor(("day",), WEEKENDS)])),
        QueryBlock(counting(), Partition(("day",), WEEKENDS)),
        QueryBlock(counting().scaled(counting().terms[0].scale * 0)),
    ],
)
def test_what_is_about_no_interval_has_no_stretch(block: QueryBlock) -> None:
    assert stretches_of(block, "day", N_DAYS) == ()
    assert reader_of([measured(up_to(TOTAL, (0, 5)), 1.0)]).read(block) is None


def test_the_known_part_ends_at_the_last_day_that_is_reached() -> None:
    known = [
        measured(up_to(TOTAL, (0, 3)), 1.0),
        measured(up_to(TOTAL, (3, 5)), 1.0),
        measured(up_to(TOTAL, (6, 7)), 1.0),
    ]
    reader = reader_of(known)
    (asked,) = reader.stretches_of(TOTAL)
    chain = reader.known_part(asked)
    assert [(link.measured.stretch.start, link.measured.stretch.end) for link in chain] == [
        (0, 3),
        (3, 5),
    ]
    (later,) = reader.stretches_of(up_to(TOTAL, (2, 7)))
    assert reader.known_part(later) == ()


@settings(deadline=None, max_examples=examples(60))
@given(HISTORIES, ASKED)
def test_on_a_table_that_grows_no_estimate_is_wider_and_what_is_forecast_is_found(
    bought: list[tuple[QueryBlock, float]], asked: QueryBlock
) -> None:
    known = [measured(block, weight) for block, weight in bought]
    grows, still = Estimator(SCHEMA), Estimator(STILL)
    grows.add(known[:-1])
    still.add(known)
    forecast = grows.fork()
    forecast.add(known[-1:])
    foreseen = widest(forecast.estimate(asked, 0.95), 0.95)
    grows.add(known[-1:])
    found = grows.estimate(asked, 0.95)
    assert widest(found, 0.95) == foreseen
    for one, other in zip(found, still.estimate(asked, 0.95), strict=True):
        assert widest([one], 0.95) <= widest([other], 0.95)
        if isinstance(one, Posterior):
            assert one.terms.place.size
