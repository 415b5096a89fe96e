"""What a purchase promised holds ever after: though the history grows, and though nobody remembers.

An estimator combines a limited number of rows, and rows that are bought later may take the places
of those that an earlier answer rested on. In one process its answer is remembered; here it is not.
"""

from collections.abc import Sequence

import numpy as np
import pytest

from cube.measurement import Measurement
from cube.query import Partition, QueryBlock, counting
from inference import estimator as of_estimators
from inference.block_estimates import widest
from inference.blue import combined_rows as module
from inference.estimator import Estimator
from inference.memory import BYTES_A_TERM, N_KEPT, EstimatorMemory
from tests.inference.test_estimator import CONFIDENCE, N_CELLS, SCHEMA, measured
from tests.support.cubes import SIZES

COUNTS = np.arange(N_CELLS) % 7
ASKED = ("a",)


def by(*names: str) -> QueryBlock:
    shape = tuple(SIZES[name] for name in names)
    return QueryBlock(counting(), Partition(names, np.arange(np.prod(shape)).reshape(shape)))


@pytest.fixture
def history(monkeypatch: pytest.MonkeyPatch) -> list[Measurement]:
    """Cells that rest on a precise total, and then tables that crowd the total out."""
    monkeypatch.setattr(module, "N_WORKING_ROWS_MAX", 20)
    monkeypatch.setattr(module, "N_RELATED_ROWS_MAX", 0)
    return [
        measured(QueryBlock(counting()), COUNTS, 1.0),
        measured(by("a", "b"), COUNTS, 0.05),
        measured(by("a", "c"), COUNTS, 0.001),
        measured(by("a", "d"), COUNTS, 0.001),
    ]


def begun_with(measurements: Sequence[Measurement]) -> Estimator:
    estimator = Estimator(SCHEMA)
    estimator.add(measurements)
    return estimator


def width(estimator: Estimator, half_width: float = 0.0) -> float:
    return widest(estimator.estimate(by(*ASKED), CONFIDENCE, half_width), CONFIDENCE)


def test_an_estimator_that_begins_with_a_history_keeps_what_was_promised(
    history: list[Measurement],
) -> None:
    promised = width(begun_with(history[:2]))
    forgetful = begun_with(history)
    assert width(forgetful.fork()) > 1.01 * promised  # the limits do crowd the total out
    assert width(forgetful, promised) <= promised * (1 + 1e-12)


def test_so_does_a_snapshot_of_it(history: list[Measurement]) -> None:
    promised = width(begun_with(history[:2]))
    assert width(begun_with(history).snapshot(), promised) <= promised * (1 + 1e-12)


def test_one_that_saw_the_history_grow_remembers_and_looks_back_to_nothing(
    history: list[Measurement], monkeypatch: pytest.MonkeyPatch
) -> None:
    estimator = begun_with(history[:1])
    estimator.add(history[1:2])
    promised = width(estimator)
    monkeypatch.setattr(of_estimators, "_begun", None)
    estimator.add(history[2:])
    assert width(estimator) <= promised * (1 + 1e-12)


def test_an_earlier_history_is_asked_only_where_the_present_one_does_not_do(
    history: list[Measurement], monkeypatch: pytest.MonkeyPatch
) -> None:
    estimator = begun_with(history)
    enough = 2 * width(estimator.fork())
    monkeypatch.setattr(of_estimators, "_begun", None)
    assert width(estimator, enough) <= enough


def test_one_that_began_with_nothing_looks_back_to_nothing(
    history: list[Measurement], monkeypatch: pytest.MonkeyPatch
) -> None:
    """A table that is opened for the first time: its first purchase is no history of before."""
    estimator = begun_with([])
    estimator.add(history)
    monkeypatch.setattr(of_estimators, "_begun", None)
    assert width(estimator) > 0


def test_a_later_beginning_goes_on_from_an_earlier_one(history: list[Measurement]) -> None:
    """Estimates of each beginning are those of an estimator that was begun with it."""
    everything = [*history, *history[1:3], history[0]]
    present = begun_with(everything)
    earlier = present._earlier
    for place in (1, 4, 2, 3, 1):
        found = list(earlier.estimates(present.history, [place], by("a"), CONFIDENCE, 0.0))
        alone = begun_with(everything[: place + 1]).fork()
        expected = alone.estimate(by("a"), CONFIDENCE, 0.0)
        assert widest(found[0], CONFIDENCE) == pytest.approx(widest(expected, CONFIDENCE), rel=1e-9)


def test_earlier_histories_have_a_fifth_of_the_memory() -> None:
    memory = EstimatorMemory(1000 * 2**20)
    each = memory.of_earlier(N_KEPT)
    shares = 2 * memory.workspaces + memory.n_terms * BYTES_A_TERM + N_KEPT * each.n_bytes
    assert 0.99 * memory.n_bytes < shares <= memory.n_bytes
