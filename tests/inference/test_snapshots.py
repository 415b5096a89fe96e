"""A snapshot of an estimator answers from its own history, however the estimator grows later."""

import gc
import weakref
from concurrent.futures import ThreadPoolExecutor
from itertools import cycle, islice

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from cube.measurement import Measurement
from cube.query import Factor, QueryBlock, counting
from inference.block_estimates import RowEstimates
from inference.estimator import Estimator
from inference.history import History
from inference.posterior import NotEstimable, Posterior
from tests.inference.test_estimator import CONFIDENCE, N_CELLS, SCHEMA, measured, whole
from tests.support.cubes import blocks

COUNTS = np.arange(N_CELLS) % 7

histories = st.lists(
    st.tuples(
        blocks(whole=True).filter(lambda block: not block.query.is_constant),
        st.sampled_from([0.01, 0.1, 1.0]),
    ),
    min_size=2,
    max_size=8,
)


def bought(history: list[tuple[QueryBlock, float]]) -> list[Measurement]:
    return [measured(whole(block), COUNTS, weight) for block, weight in history]


def of(measurements: list[Measurement]) -> Estimator:
    estimator = Estimator(SCHEMA)
    estimator.add(measurements)
    return estimator


def assert_same(found: RowEstimates, expected: RowEstimates) -> None:
    for one, other in zip(found, expected, strict=True):
        assert isinstance(one, NotEstimable) == isinstance(other, NotEstimable)
        if isinstance(one, Posterior) and isinstance(other, Posterior):
            assert one.value == pytest.approx(other.value, rel=1e-6, abs=1e-6)
            assert one.half_width(CONFIDENCE) == pytest.approx(
                other.half_width(CONFIDENCE), rel=1e-6, abs=1e-9
            )
            assert max(one.terms.place, default=0) == max(other.terms.place, default=0)


@settings(deadline=None)
@given(history=histories, asked=st.lists(blocks(), min_size=1, max_size=3), data=st.data())
def test_what_is_learnt_after_a_snapshot_is_not_in_it(
    history: list[tuple[QueryBlock, float]], asked: list[QueryBlock], data: st.DataObject
) -> None:
    everything = bought(history)
    n_seen = data.draw(st.integers(1, len(everything) - 1))
    estimator = of(everything[:n_seen])
    for block in asked:
        estimator.estimate(block, CONFIDENCE)  # in workspaces that the snapshot will share
    snapshot = estimator.snapshot()
    estimator.add(everything[n_seen:])
    for block in asked:
        estimator.estimate(block, CONFIDENCE)
    further = of(everything[:n_seen])
    for block in [*asked, *(one.block for one in everything[n_seen:])]:
        assert_same(
            snapshot.fork().estimate(block, CONFIDENCE), further.estimate(block, CONFIDENCE)
        )


@settings(deadline=None)
@given(history=histories, asked=st.lists(blocks(), min_size=1, max_size=3))
def test_what_a_snapshot_learns_is_not_in_the_estimator(
    history: list[tuple[QueryBlock, float]], asked: list[QueryBlock]
) -> None:
    first, *rest = bought(history)
    estimator = of([first])
    for block in asked:
        estimator.estimate(block, CONFIDENCE)
    snapshot = estimator.snapshot()
    snapshot.add(rest)
    for block in asked:
        snapshot.estimate(block, CONFIDENCE)
    for block in asked:
        assert_same(
            estimator.fork().estimate(block, CONFIDENCE), of([first]).estimate(block, CONFIDENCE)
        )


@settings(deadline=None)
@given(history=histories, asked=st.lists(blocks(), min_size=1, max_size=3), data=st.data())
def test_what_a_snapshot_finds_to_be_related_says_nothing_of_a_longer_history(
    history: list[tuple[QueryBlock, float]], asked: list[QueryBlock], data: st.DataObject
) -> None:
    everything = bought(history)
    n_seen = data.draw(st.integers(1, len(everything) - 1))
    estimator = of(everything[:n_seen])
    snapshot = estimator.snapshot()
    estimator.add(everything[n_seen:])
    for block in asked:
        snapshot.estimate(block, CONFIDENCE)
    whole_history = of(everything)
    for block in asked:
        assert_same(
            estimator.estimate(block, CONFIDENCE), whole_history.estimate(block, CONFIDENCE)
        )


def test_what_a_snapshot_answered_is_recalled() -> None:
    block = QueryBlock(counting())
    estimator = of([measured(block, COUNTS, 1.0)])
    snapshot = estimator.snapshot()
    rows = snapshot.estimate(block, CONFIDENCE)
    assert estimator.recalled([(block, CONFIDENCE, 1e9)], 1) is None
    estimator.remember([(block, CONFIDENCE)], snapshot)
    assert estimator.recalled([(block, CONFIDENCE, 1e9)], 1) == [rows]


def test_snapshots_are_asked_in_other_threads_while_the_estimator_goes_on() -> None:
    draw = np.random.default_rng(3)
    queries = [
        QueryBlock(
            counting([Factor((name,), draw.integers(0, 2, size) | np.eye(size)[0].astype(int))])
        )
        for name, size in islice(cycle(SIZES_OF), 60)
    ]
    everything = [measured(block, COUNTS, 0.5) for block in queries]
    estimator = of(everything[:1])

    def asked(snapshot: Estimator) -> list[RowEstimates]:
        return [snapshot.estimate(block, CONFIDENCE) for block in queries]

    running = []
    with ThreadPoolExecutor(4) as pool:
        for n_seen in range(2, len(everything)):
            running.append((n_seen - 1, pool.submit(asked, estimator.snapshot())))
            estimator.add([everything[n_seen - 1]])
            for block in queries[:5]:
                estimator.estimate(block, CONFIDENCE)
        for n_seen, one in running[::7]:
            alone = of(everything[:n_seen])
            for found, block in zip(one.result(timeout=120), queries, strict=True):
                assert_same(found, alone.estimate(block, CONFIDENCE))
        for _, one in running:
            one.result(timeout=120)


SIZES_OF = [(axis.name, axis.size) for axis in SCHEMA.axes]


def test_an_estimator_that_nobody_holds_is_gone_at_once() -> None:
    """Or what it kept would stay in memory until the collector finds it, beyond every limit."""
    measurements = bought([(QueryBlock(counting()), 0.1)])
    gc.collect()
    gc.disable()
    try:
        estimator = of(measurements)
        forked, snapshot = estimator.fork(), estimator.snapshot()
        snapshot.estimate(measurements[0].block, CONFIDENCE)
        held = [weakref.ref(one) for one in (estimator, forked, snapshot)]
        del estimator, forked, snapshot
        assert [one() for one in held] == [None, None, None]
    finally:
        gc.enable()


def test_copies_of_a_history_grow_apart() -> None:
    """Against histories that share nothing: what one adds is in no other."""
    rng = np.random.default_rng(8)
    row = QueryBlock(counting([Factor(("a",), np.array([0, 1, 1], dtype=np.int64))]))
    either = [QueryBlock(counting()), row]
    grown: list[tuple[History, list[Measurement]]] = [(History(), [])]
    for _ in range(40):
        history, contents = grown[int(rng.integers(len(grown)))]
        if rng.random() < 0.4:
            grown.append((history.copy(), contents.copy()))
            continue
        block = either[int(rng.integers(2))]
        further = [measured(block, COUNTS, float(rng.choice([0.01, 0.1])))]
        history.add(further)
        contents.extend(further)
    for history, contents in grown:
        alone = History()
        alone.add(contents)
        scopes = sorted(alone.n_rows)
        assert dict(history.n_rows) == dict(alone.n_rows)
        assert list(history.in_use(scopes)) == list(alone.in_use(scopes))
        assert history.partition_scopes == alone.partition_scopes
        for scope in alone.partition_scopes:
            assert list(history.partition_places(scope)) == list(alone.partition_places(scope))
            assert history.last_on(scope) == alone.last_on(scope)
        for one in either:
            assert history.most_precise(one) == alone.most_precise(one)
