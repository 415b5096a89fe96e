"""Numbers of levels lie between their ends as often as is said, and are shown only if near enough.

The noise of 20,000 rows of levels is drawn, and the ends are compared with the levels that there
are. The share of rows whose ends err is the error probability to within 0.01, but for one run in a
hundred thousand; with a noise that is a fifth larger than is said it is not.
"""

import math

import numpy as np
import pytest

from accountant.noise.lattice_noise import SystemNoise
from inference.noise_law.law import law_of_noise
from planner.level_summary import LevelStatistic, LevelSummary
from planner.workload import RequestedTarget
from proxy.api.requests import QueryRequest
from proxy.engine.answers.results import LevelCounts, LevelLaw
from tests.sql import world
from tests.support.fakes import KnownTable

N_ROWS, N_LEVELS, CONFIDENCE, SEED = 20_000, 20, 0.95, 5
# How many records each level has. Half of them are empty; of the others, some have one record.
SOME = np.array([0, 1, 0, 2, 0, 5, 0, 9, 0, 30] * 2, dtype=np.float64)
NOBODY, ONE_EACH = np.zeros(N_LEVELS), np.ones(N_LEVELS)


def counted(truth: np.ndarray, scale: float, *, said: float | None = None) -> LevelCounts:
    """Noisy counts of the levels in each row, with noise of a scale, or of one that is said."""
    noise = np.random.default_rng(SEED).laplace(scale=scale, size=(N_ROWS, N_LEVELS))
    law = law_of_noise(np.array([scale if said is None else said]))
    every = np.ones(noise.shape, dtype=np.bool_)
    return LevelCounts(truth + noise, lambda at: np.full(noise.shape, law.half_width(at)), every)


def law(levels: LevelCounts, adds: np.ndarray) -> LevelLaw:
    return LevelLaw(levels, adds, CONFIDENCE, np.zeros(len(levels.counts), dtype=np.bool_))


def share_outside(truth: np.ndarray, levels: LevelCounts, adds: np.ndarray) -> float:
    """How often the number of levels, or their sum, is outside of its ends."""
    low, high = law(levels, adds).interval(CONFIDENCE)
    number = float(adds[truth > 0].sum())
    return float(((number < low) | (number > high)).mean())


@pytest.mark.parametrize("scale", [0.05, 0.15, 1.0, 8.0])
@pytest.mark.parametrize("truth", [SOME, NOBODY, ONE_EACH])
@pytest.mark.parametrize("adds", [np.ones(N_LEVELS), np.arange(-9.0, 11.0)])
def test_the_ends_hold_the_number_as_often_as_is_said(
    truth: np.ndarray, adds: np.ndarray, scale: float
) -> None:
    assert share_outside(truth, counted(truth, scale), adds) <= 1 - CONFIDENCE + 0.01


@pytest.mark.parametrize(("truth", "scale"), [(NOBODY, 8.0), (ONE_EACH, 0.15)])
def test_the_error_probability_is_used_up_by_each_end(truth: np.ndarray, scale: float) -> None:
    """Empty levels err by being found, and levels with one record by not being possible."""
    ones = np.ones(N_LEVELS)
    found = share_outside(truth, counted(truth, scale), ones)
    assert found == pytest.approx(1 - CONFIDENCE, abs=0.015)
    larger = counted(truth, scale, said=scale / 1.2)
    assert share_outside(truth, larger, ones) > 1 - CONFIDENCE + 0.03


def test_a_count_of_many_noises_errs_as_often_as_is_said() -> None:
    """Their sum is nearly normal: where little is asked of it, it is beyond a Laplace bound."""
    scales, n_levels, confidence = np.full(30, 2.0), 2, 0.6
    noise = np.random.default_rng(SEED).laplace(scale=2.0, size=(N_ROWS, n_levels, 30)).sum(axis=2)
    law = law_of_noise(scales)
    every = np.ones(noise.shape, dtype=np.bool_)
    levels = LevelCounts(noise, lambda at: np.full(noise.shape, law.half_width(at)), every)
    share = float(levels.found(confidence).any(axis=1).mean())
    assert share == pytest.approx(1 - 0.8**2, abs=0.015)  # each of the two errs with 0.2
    assert share <= 1 - confidence


def test_a_number_that_is_shown_misses_half_of_the_levels_at_most() -> None:
    for truth in (SOME, ONE_EACH, np.full(N_LEVELS, 60.0)):
        for scale in (1.0, 8.0):
            values = law(counted(truth, scale), np.ones(N_LEVELS)).values
            shown = values[~np.isnan(values)]
            n_far = int((2 * shown < np.count_nonzero(truth)).sum())
            assert n_far <= (1 - CONFIDENCE + 0.01) * N_ROWS


def test_what_is_shown_is_inside_of_its_interval_at_every_confidence() -> None:
    found = law(counted(SOME, 0.15), np.arange(-9.0, 11.0))
    is_shown = ~np.isnan(found.values)
    assert is_shown.any()
    for confidence in (0.3, 0.8, CONFIDENCE, 0.999):
        low, high = found.interval(confidence)
        assert (low <= high).all()
        assert (low <= found.values)[is_shown].all()
        assert (found.values <= high)[is_shown].all()


def test_counts_without_noise_are_known() -> None:
    low, high = law(counted(SOME, 1e-9), np.ones(N_LEVELS)).interval(CONFIDENCE)
    assert set(low) == set(high) == {10.0}


def test_rows_of_which_something_is_unknown_have_no_value_and_end_at_all_levels() -> None:
    lost = np.arange(N_ROWS) % 2 == 0
    found = law(counted(SOME, 0.05), np.ones(N_LEVELS)).hidden(lost)
    low, high = found.interval(CONFIDENCE)
    assert np.isnan(found.values[lost]).all()
    assert set(low[lost]) == {0.0}
    assert set(high[lost]) == {float(N_LEVELS)}
    assert (low[~lost] > 0).all()


def test_a_summary_without_levels_is_of_nothing() -> None:
    summary = LevelSummary(0, LevelStatistic.COUNT, (), (), "BIGINT")
    found = LevelLaw.of(summary, LevelCounts.of(summary, (), 2), CONFIDENCE)
    assert found.values.tolist() == [0.0, 0.0]
    assert [end.tolist() for end in found.interval(CONFIDENCE)] == [[0.0, 0.0]] * 2


@pytest.mark.parametrize("half_width", [2, 12])
@pytest.mark.parametrize(
    "sql",
    [
        "SELECT age, COUNT(DISTINCT city) AS n FROM patients GROUP BY age",
        "SELECT age, COUNT(*) AS n FROM (SELECT DISTINCT age, city FROM patients) AS t GROUP BY 1",
    ],
)
def test_an_engine_answers_with_ends_that_hold(
    tmp_path_factory: pytest.TempPathFactory, sql: str, half_width: float
) -> None:
    """By age, with real noise: each group's number against the rows in plain sight."""
    names = [axis.name for axis in world.SCHEMA.axes]
    age, city = names.index("age"), names.index("city")
    truth: dict[object, set[int]] = {}
    for row in world.positions().tolist():
        truth.setdefault(world.SCHEMA.by_name["age"].levels[row[age]], set()).add(row[city])
    source = KnownTable(world.SCHEMA, world.positions())
    with world.patients_engine(tmp_path_factory.mktemp("ends"), source, SystemNoise()) as engine:
        target = RequestedTarget(half_width=half_width)
        found = engine.answer(QueryRequest(sql=sql, target=target))
    assert found.receipt is not None
    (column,) = found.receipt.columns
    rows = list(zip(found.data.to_pylist(), column.low, column.high, strict=True))
    assert len(rows) > 70
    held = [low <= len(truth.get(row["age"], ())) <= high for row, low, high in rows]
    # At 0.95 each, of 73 groups: fewer than this once in a million runs.
    assert sum(held) >= 0.95 * len(rows) - 5 * math.sqrt(0.95 * 0.05 * len(rows))
    assert all(row["n"] is None or low <= row["n"] <= high for row, low, high in rows)
