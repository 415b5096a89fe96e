"""The estimator against dense linear algebra on every cell of a small cube."""

import math
from dataclasses import replace
from fractions import Fraction

import numpy as np
import pytest
from hypothesis import assume, given, settings
from hypothesis import strategies as st

from cube.axis import IntegerAxis
from cube.encoding import fingerprint
from cube.measurement import Measurement, Weight
from cube.query import Factor, LinearQuery, Partition, QueryBlock, counting
from cube.schema import Schema
from inference.blue import combined_rows as combined_module
from inference.blue import workspaces as workspace_module
from inference.blue.workspaces import Workspace, relevant_rows
from inference.estimator import Estimator
from inference.history import History
from inference.memory import EstimatorMemory
from inference.noise_law.law import law_of_noise
from inference.posterior import NotEstimable, Posterior
from inference.scaling import coefficient_range, without_dust
from tests.support.cubes import SIZES, blocks, dense_rows
from tests.support.examples import examples

SCHEMA = Schema(
    table="t",
    axes=tuple(IntegerAxis(name=name, low=0, high=size - 1) for name, size in SIZES.items()),
    n_records_max=10_000,
)
N_CELLS = int(np.prod(list(SIZES.values())))
CONFIDENCE = 0.9
LATTICE_BITS = 10


def measured(block: QueryBlock, counts: np.ndarray, weight: float, noise: int = 0) -> Measurement:
    """A measurement whose noise is known: `noise` lattice steps on every row."""
    paid = Weight.at_least(weight)
    exact = [
        sum(value * int(n) for value, n in zip(row, counts, strict=True))
        for row in dense_rows(block)
    ]
    return Measurement(
        block=block,
        weight=paid,
        lattice_bits=LATTICE_BITS,
        noise_scale=float(1 / paid.exact) * (1 + 1e-12),
        lattice_values=tuple(int(value) * 2**LATTICE_BITS + noise for value in exact),
    )


def whole(block: QueryBlock) -> QueryBlock:
    return block.primitive[0]


@given(
    history=st.lists(
        st.tuples(blocks(), st.sampled_from([0.01, 0.1, 1.0])), min_size=1, max_size=6
    ),
    asked=blocks(),
    counts=st.lists(st.integers(0, 50), min_size=N_CELLS, max_size=N_CELLS).map(np.array),
)
@settings(deadline=None, max_examples=examples(150))
def test_without_noise_an_estimate_is_the_truth_and_as_precise_as_least_squares(
    history: list[tuple[QueryBlock, float]], asked: QueryBlock, counts: np.ndarray
) -> None:
    bought = [
        measured(whole(block), counts, weight)
        for block, weight in history
        if not block.query.is_constant
    ]
    estimator = Estimator(SCHEMA)
    estimator.add(bought)
    rows = np.array([row for one in bought for row in dense_rows(one.block)], dtype=float)
    rows = rows.reshape(-1, N_CELLS)
    weights = np.array([1 / one.noise_scale for one in bought for _ in range(one.block.n_rows)])
    for row, estimate in zip(dense_rows(asked), estimator.estimate(asked, CONFIDENCE), strict=True):
        wanted = np.array([float(value) for value in row])
        solution, *_ = np.linalg.lstsq(rows.T * weights, wanted, rcond=1e-10)
        determined = np.allclose(rows.T @ (weights * solution), wanted, atol=1e-7)
        assert isinstance(estimate, Posterior) == determined
        if isinstance(estimate, Posterior):
            truth = float(wanted @ counts + asked.query.constant)
            assert estimate.value == pytest.approx(truth, abs=1e-6 * (1 + abs(truth)))
            # The narrower of two estimates may be the measured row itself.
            best = np.sqrt(2 * np.sum(solution**2))
            assert estimate.standard_deviation >= best * (1 - 1e-6) - 1e-9
            low, high = estimate.interval(CONFIDENCE)
            assert low <= truth + 1e-6
            assert high >= truth - 1e-6


@given(asked=blocks())
@settings(deadline=None)
def test_nothing_is_known_before_anything_is_measured(asked: QueryBlock) -> None:
    for row, estimate in zip(
        dense_rows(asked), Estimator(SCHEMA).estimate(asked, CONFIDENCE), strict=True
    ):
        assert isinstance(estimate, Posterior) == (not any(row))


@given(asked=blocks())
@settings(deadline=None)
def test_the_public_range_holds_every_coefficient(asked: QueryBlock) -> None:
    low, high = coefficient_range(asked.query)
    exact = dense_rows(QueryBlock(asked.query))[0]
    assert low <= min(exact)
    assert max(exact) <= high


@given(
    large=st.lists(st.floats(0.1, 10), min_size=1, max_size=3),
    small=st.lists(st.floats(1e-16, 1e-14), min_size=1, max_size=3),
)
def test_leaving_out_dust_never_narrows_an_interval(large: list[float], small: list[float]) -> None:
    scales = np.array([*small, *large])
    kept = without_dust(scales)
    assert kept.sum() == pytest.approx(scales.sum(), rel=1e-15, abs=0)
    # The inequality behind it, with something large enough to be seen in the place of dust.
    one, *others = sorted(large, reverse=True)
    for confidence in (0.1, 0.5, 0.95):
        apart = law_of_noise(np.array([0.05, one, *others])).half_width(confidence)
        together = law_of_noise(np.array([one + 0.05, *others])).half_width(confidence)
        assert together >= apart * (1 - 1e-9)


def test_workspaces_are_forgotten_when_they_hold_too_much(monkeypatch: pytest.MonkeyPatch) -> None:
    counts = np.ones(N_CELLS)
    low, high, both = (
        [
            QueryBlock(counting([Factor((name,), np.array([*row, *[0] * (SIZES[name] - 2)]))]))
            for name in SIZES
        ]
        for row in ((1, 0), (0, 2), (1, 2))
    )
    monkeypatch.setattr(combined_module, "N_WORKING_CELLS_MAX", 1)
    answers = []
    for limit in (2**30, 1):
        estimator = Estimator(SCHEMA, EstimatorMemory(limit))
        estimator.add([measured(whole(block), counts, 1.0) for block in (*low, *high)])
        answers.append([estimator.estimate(block, CONFIDENCE)[0] for block in both])
        assert len(estimator._combined._workspaces) == (len(SIZES) if limit > 1 else 1)
    first, second = answers
    for one, other in zip(first, second, strict=True):
        assert isinstance(one, Posterior)
        assert isinstance(other, Posterior)
        assert one.interval(CONFIDENCE) == other.interval(CONFIDENCE)


@settings(deadline=None, max_examples=examples(150))
@given(
    history=st.lists(blocks(whole=True), max_size=5),
    asked=blocks(whole=True),
    is_raised=st.booleans(),
)
def test_what_stands_apart_is_known_from_its_own_measurement_as_from_everything(
    history: list[QueryBlock], asked: QueryBlock, is_raised: bool
) -> None:
    """Whether that was told by cuts or by algebra, before a first measurement or a raise."""
    assume(not any(block.query.is_constant for block in (*history, asked)))
    counts = np.zeros(N_CELLS)
    asked = whole(asked)
    bought = [measured(whole(block), counts, 0.5) for block in history]
    assume(all(fingerprint(one.block) != fingerprint(asked) for one in bought))
    estimator = Estimator(SCHEMA)
    estimator.add(bought + [measured(asked, counts, 0.1)] * is_raised)
    before = estimator.estimate(asked, CONFIDENCE)
    if not estimator.stands_apart(asked, CONFIDENCE):
        return
    own = measured(asked, counts, 0.25)
    if is_raised:
        own = replace(own, supersedes=len(bought))
    assert is_raised == any(isinstance(row, Posterior) for row in before)
    foreseen = estimator.with_measured(asked, CONFIDENCE, own)
    estimator.add([own])
    found = estimator.estimate(asked, CONFIDENCE)
    # And from nothing, with no shortcut: every row of the history in one dense problem.
    rows = np.array([row for one in (*bought, own) for row in dense_rows(one.block)], dtype=float)
    scales = np.array([one.noise_scale for one in (*bought, own) for _ in range(one.block.n_rows)])
    for place, row in enumerate(dense_rows(asked)):
        solution, *_ = np.linalg.lstsq(rows.T / scales, np.array(row, dtype=float), rcond=1e-10)
        best = np.sqrt(2 * np.sum(solution**2))
        for posterior in (foreseen[place], found[place]):
            assert isinstance(posterior, Posterior)
            assert posterior.standard_deviation == pytest.approx(best, rel=1e-6)


def test_groups_stand_apart_by_algebra_where_cuts_say_nothing() -> None:
    counts = np.zeros(N_CELLS)
    square = np.array([[1, 0, 0, 1], [0, 1, 1, 0], [1, 1, 0, 0]])  # over two axes: many cuts
    known = [QueryBlock(counting([Factor(("a", "b"), np.roll(square, n, axis=1))])) for n in (0, 1)]
    groups = QueryBlock(
        counting([Factor(("a",), np.array([1, 0, 1]))]), Partition(("c",), np.arange(2))
    )
    total = QueryBlock(counting([Factor(("a",), np.array([1, 0, 1]))]))
    for others, is_apart in ((known, True), ([*known, total], False)):
        estimator = Estimator(SCHEMA)
        estimator.add([measured(block, counts, 1.0) for block in others])
        rows = estimator.estimate(groups, CONFIDENCE)
        assert all(isinstance(row, NotEstimable) for row in rows)
        assert estimator.stands_apart(groups, CONFIDENCE) is is_apart


def test_a_total_is_read_from_the_groups_and_a_group_from_total_and_rest() -> None:
    counts = np.arange(N_CELLS)
    groups = QueryBlock(counting(), Partition(("a",), np.arange(3)))
    estimator = Estimator(SCHEMA)
    estimator.add([measured(groups, counts, 0.5)])
    (total,) = estimator.estimate(QueryBlock(counting()), CONFIDENCE)
    assert isinstance(total, Posterior)
    assert total.value == pytest.approx(counts.sum())
    assert total.standard_deviation == pytest.approx(np.sqrt(3 * 2) / 0.5, rel=1e-6)


def test_the_same_row_measured_twice_is_averaged_by_precision() -> None:
    counts = np.ones(N_CELLS)
    total = QueryBlock(counting())
    estimator = Estimator(SCHEMA)
    step = 2**LATTICE_BITS
    estimator.add([measured(total, counts, 1.0, noise=8 * step), measured(total, counts, 2.0)])
    (estimate,) = estimator.estimate(total, CONFIDENCE)
    assert isinstance(estimate, Posterior)
    assert estimate.value == pytest.approx(N_CELLS + 8 / 5, rel=1e-6)


def test_a_multiple_and_a_constant_move_the_whole_posterior() -> None:
    counts = np.ones(N_CELLS)
    estimator = Estimator(SCHEMA)
    estimator.add([measured(QueryBlock(counting()), counts, 1.0)])
    shifted = QueryBlock(counting().scaled(Fraction(-2)) + LinearQuery((), Fraction(10)))
    (estimate,) = estimator.estimate(shifted, CONFIDENCE)
    assert isinstance(estimate, Posterior)
    assert estimate.value == pytest.approx(10 - 2 * N_CELLS)
    assert estimate.high == 10
    assert estimate.low == 10 - 2 * SCHEMA.n_records_max


def test_a_query_that_cuts_an_atom_is_a_value_not_an_exception() -> None:
    estimator = Estimator(SCHEMA)
    estimator.add([measured(QueryBlock(counting()), np.ones(N_CELLS), 1.0)])
    half = counting([Factor(("a",), np.array([1, 0, 0]))])
    (estimate,) = estimator.estimate(QueryBlock(half), CONFIDENCE)
    assert isinstance(estimate, NotEstimable)


def test_more_rows_than_a_workspace_holds_are_still_read_one_by_one() -> None:
    """10,000 groups pass the limits of joint estimation; their own measurement answers them."""
    axes = (IntegerAxis(name="x", low=0, high=9999),)
    schema = Schema(table="wide", axes=axes, n_records_max=10)
    groups = QueryBlock(counting(), Partition(("x",), np.arange(10_000)))
    paid = Weight.at_least(1.0)
    estimator = Estimator(schema)
    values = tuple(range(10_000))
    estimator.add([Measurement(groups, paid, 0, 1.0, values)])
    estimates = estimator.estimate(groups, CONFIDENCE)
    assert [row.value for row in estimates if isinstance(row, Posterior)] == list(values)


def test_relevant_rows_are_added_by_relevance_up_to_the_limits() -> None:
    n_rows = {("a", "b"): 10, ("c",): 10, ("d", "e"): 10, (): 1, ("a",): 0}
    n_classes = {"a": 10, "b": 10, "c": 10, "d": 10, "e": 1000}

    def axes(scope: tuple[str, ...], n_cells_max: int, n_rows_max: int = 100) -> tuple[str, ...]:
        return relevant_rows(
            scope, n_rows, n_classes, n_cells_max=n_cells_max, n_rows_max=n_rows_max
        ).axes

    assert axes(("a",), 10**9) == ("a", "b", "c", "d", "e")
    assert axes(("a",), 1000) == ("a", "b", "c")
    assert axes(("a",), 100) == ("a", "b")
    assert axes(("z",), 1) == ("z",)
    assert axes(("a",), 10**9, n_rows_max=5) == ("a", "b")
    assert axes(("a",), 10**9, n_rows_max=21) == ("a", "b", "c")


def raised(earlier: Measurement, place: int, weight: float, noise: int) -> Measurement:
    """The same rows, measured more precisely, off by `noise` lattice steps."""
    paid = Weight.at_least(weight)
    return Measurement(
        block=earlier.block,
        weight=paid,
        lattice_bits=earlier.lattice_bits,
        noise_scale=math.nextafter(1 / float(paid.exact), math.inf),
        lattice_values=tuple(value + noise for value in earlier.lattice_values),
        supersedes=place,
    )


@given(st.lists(blocks(), min_size=1, max_size=3), blocks(), st.data())
def test_raising_a_measurement_is_having_measured_it_like_that(
    history: list[QueryBlock], asked: QueryBlock, data: st.DataObject
) -> None:
    """In place, after a restart, and in a fork: all as if only the last measurements were made."""
    counts = np.arange(N_CELLS)
    first = [measured(block.primitive[0], counts, 1.0) for block in history]
    place = data.draw(st.integers(0, len(first) - 1))
    last = raised(first[place], place, 2.0, noise=3)
    online, restarted, fresh = Estimator(SCHEMA), Estimator(SCHEMA), Estimator(SCHEMA)
    online.add(first)
    before = online.estimate(asked, CONFIDENCE)
    fork = online.fork()
    fork.add([last])
    what_if = fork.estimate(asked, CONFIDENCE)
    assert online.estimate(asked, CONFIDENCE) == before
    online.add([last])
    restarted.add([*first, last])
    fresh.add([*first[:place], *first[place + 1 :], replace(last, supersedes=None)])
    expected = fresh.estimate(asked, CONFIDENCE)
    for found in (
        what_if,
        online.estimate(asked, CONFIDENCE),
        restarted.estimate(asked, CONFIDENCE),
    ):
        for one, other in zip(found, expected, strict=True):
            assert isinstance(one, Posterior) == isinstance(other, Posterior)
            if isinstance(one, Posterior) and isinstance(other, Posterior):
                assert one.value == pytest.approx(other.value, rel=1e-9, abs=1e-9)
                assert one.half_width(CONFIDENCE) == pytest.approx(other.half_width(CONFIDENCE))


def test_what_was_known_once_is_not_lost_when_other_rows_are_combined(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """The total follows from groups on one column, until rows on another take their room."""
    monkeypatch.setattr(combined_module, "N_WORKING_ROWS_MAX", 4)
    counts = np.arange(N_CELLS)
    groups = QueryBlock(
        counting([Factor(("d",), np.array([1, 0, 1]))]), Partition(("a",), np.arange(3))
    )
    rest = QueryBlock(
        counting([Factor(("d",), np.array([0, 1, 0]))]), Partition(("a",), np.arange(3))
    )
    total = QueryBlock(counting())
    estimator = Estimator(SCHEMA)
    estimator.add([measured(block, counts, 1.0) for block in (groups, rest)])
    (before,) = estimator.estimate(total, CONFIDENCE)
    assert isinstance(before, Posterior)
    other = QueryBlock(counting([Factor(("c",), np.array([1, 0]))]))
    estimator.add([measured(other, counts, 1.0)])
    (after,) = estimator.estimate(total, CONFIDENCE)
    assert isinstance(after, Posterior)
    assert after.half_width(CONFIDENCE) <= before.half_width(CONFIDENCE)
    restarted = Estimator(SCHEMA)
    restarted.add([measured(block, counts, 1.0) for block in (groups, rest, other)])
    assert isinstance(restarted.estimate(total, CONFIDENCE)[0], NotEstimable)


def test_a_raised_measurement_that_was_left_out_is_taken_in(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    block = QueryBlock(counting(), Partition(("a",), np.arange(3)))
    first = measured(block, np.arange(N_CELLS), 1.0)
    history = History()
    history.add([first, raised(first, 0, 2.0, noise=0), raised(first, 1, 4.0, noise=0)])
    workspace = Workspace(("a",), (3,))
    monkeypatch.setattr(workspace_module, "N_VALUES_MAX", 2)
    workspace.add(history, [0])
    assert workspace.values.size == 0
    monkeypatch.undo()
    workspace.add(history, [1])
    workspace.add(history, [2])
    assert workspace.values.size == 3
    assert np.all(workspace.noise_scales == history[2].noise_scale)
    assert list(history.in_use([("a",)])) == [2]
    assert history.n_rows == {("a",): 3}
