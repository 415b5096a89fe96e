"""The exponential mechanism: its law path by path, its loss on all small tables, and teeth."""

from collections.abc import Sequence
from itertools import combinations_with_replacement, product

import mpmath
import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from numpy.typing import NDArray
from scipy import stats

from accountant.exact import choices as choosing
from accountant.exact.choices import (
    SCORE_UNITS,
    Contingency,
    chosen,
    exponential,
    grid_scores,
    sensitivity,
)
from accountant.grouping import Grouping
from accountant.source import CellCounts
from cube.axis import IntegerAxis
from cube.measurement import Weight
from cube.query import Partition
from cube.schema import Schema
from cube.statistic import Choice, ChoiceCandidate, Score
from tests.support.branches import LeftOut, Path, law_of
from tests.support.examples import examples
from tests.support.fakes import KnownTable

N_COINS_WALKED = 60
N_SAMPLES = 10_000
P_VALUE_MIN = 1e-9  # a sound sampler fails one run in a billion
N_RECORDS_MAX = 4  # of the tables of which all neighbours are looked at


def schema_of(sizes: Sequence[int], n_records_max: int = 1000) -> Schema:
    axes = tuple(
        IntegerAxis(name=f"c{place}", low=0, high=size - 1) for place, size in enumerate(sizes)
    )
    return Schema(table="t", axes=axes, n_records_max=n_records_max)


def view(name: str, labels: Sequence[int]) -> Partition:
    return Partition((name,), np.array(labels, dtype=np.int64))


def mass(scores: Sequence[int], delta: int, weight: Weight) -> list[mpmath.mpf]:
    """The closed form."""
    rate = mpmath.mpf(weight.units) / 2**40 / (2 * delta)
    raw = [mpmath.exp(rate * (score - max(scores))) for score in scores]
    return [one / mpmath.fsum(raw) for one in raw]


@pytest.mark.parametrize(
    ("scores", "delta", "epsilon"),
    [([0], 1, 1.0), ([0, 5], 2, 1.0), ([3, -4, 3, 0], 1, 0.5), ([0, 40, 39], 1, 2.0)],
)
def test_a_candidate_is_taken_with_its_probability_exactly(
    monkeypatch: pytest.MonkeyPatch, scores: list[int], delta: int, epsilon: float
) -> None:
    """Given exact coins. A rejected proposal begins again from nothing: its path is left out."""

    def program(path: Path) -> int:
        n_proposals = n_coins = 0

        def proposal(below: int) -> int:
            nonlocal n_proposals
            n_proposals += 1
            if n_proposals > 1:
                raise LeftOut
            return path.choose([mpmath.mpf(1) / below] * below)

        def coin(numerator: int, denominator: int) -> bool:
            nonlocal n_coins
            n_coins += 1
            if n_coins > N_COINS_WALKED:
                raise LeftOut
            bias = mpmath.exp(-mpmath.mpf(numerator) / denominator)
            return path.choose([1 - bias, bias]) == 1

        monkeypatch.setattr(choosing, "randbelow", proposal)
        monkeypatch.setattr(choosing, "bernoulli_exp", coin)
        return exponential(scores, delta, weight)

    weight = Weight.at_least(epsilon)
    with mpmath.workdps(40):
        law = law_of(program)
        kept = mpmath.fsum(law.values())
        for place, expected in enumerate(mass(scores, delta, weight)):
            assert mpmath.almosteq(law[place] / kept, expected, 1e-30)


def drawn_p_value(drawn: NDArray[np.int64], claimed: Sequence[mpmath.mpf]) -> float:
    counts = np.bincount(drawn, minlength=len(claimed))
    expected = np.array([float(one) for one in claimed]) * drawn.size
    return float(stats.chisquare(counts, expected, sum_check=False).pvalue)


def test_what_is_drawn_has_the_law_and_a_wrong_one_would_show() -> None:
    """Wrong by the 2 of the mechanism, either way, and by a sensitivity 1.3 times too small."""
    scores, delta = [0, SCORE_UNITS, 5 * SCORE_UNITS, 9 * SCORE_UNITS], 2 * SCORE_UNITS
    weight = Weight.at_least(0.8)
    drawn = np.array([exponential(scores, delta, weight) for _ in range(N_SAMPLES)])
    assert drawn_p_value(drawn, mass(scores, delta, weight)) > P_VALUE_MIN
    for wrong in (delta // 2, 2 * delta, round(delta / 1.3)):
        assert drawn_p_value(drawn, mass(scores, wrong, weight)) < P_VALUE_MIN


def test_far_scores_and_many_candidates_are_no_trouble() -> None:
    weight = Weight.at_least(1)
    best = 2**40 * SCORE_UNITS
    assert exponential([0, -best, best], 1, weight) == 2
    assert exponential([0] * 5000 + [best] + [0] * 5000, SCORE_UNITS, weight) == 5000


BINARY = schema_of([2, 2, 2], N_RECORDS_MAX)
PAIRS = [
    ChoiceCandidate(0, (1,)),
    ChoiceCandidate(0, (2,)),
    ChoiceCandidate(1, (2,)),
    ChoiceCandidate(2, (0, 1)),
]
VIEWS = tuple(view(axis.name, [0, 1]) for axis in BINARY.axes)


def scores_of(
    choice: Choice, table: KnownTable, schema: Schema, monkeypatch: pytest.MonkeyPatch
) -> tuple[list[int], int]:
    """The scores, and the sensitivity, that the mechanism is called with."""
    called: list[tuple[list[int], int]] = []

    def take(scores: Sequence[int], delta: int, weight: Weight) -> int:  # noqa: ARG001 - a fake
        called.append((list(scores), delta))
        return 0

    with monkeypatch.context() as patch:
        patch.setattr(choosing, "exponential", take)
        chosen(choice, Weight.at_least(1), table.measure, schema)
    return called[0]


def loss(scores: Sequence[int], others: Sequence[int], delta: int, weight: Weight) -> mpmath.mpf:
    """The largest log-ratio of a candidate's probabilities."""
    before, after = mass(scores, delta, weight), mass(others, delta, weight)
    return max(abs(mpmath.log(one / other)) for one, other in zip(before, after, strict=True))


@pytest.mark.parametrize("score", Score)
def test_no_choice_loses_more_than_its_weight(
    monkeypatch: pytest.MonkeyPatch, score: Score
) -> None:
    """Over all tables of three binary columns and all their neighbours."""
    choice = Choice(score, VIEWS, tuple(PAIRS))
    told = {
        rows: scores_of(choice, KnownTable(BINARY, as_records(rows)), BINARY, monkeypatch)
        for n in range(N_RECORDS_MAX + 1)
        for rows in combinations_with_replacement(list(product((0, 1), repeat=3)), n)
    }
    pairs = [
        (scores, told[rows[:place] + rows[place + 1 :]][0], delta)
        for rows, (scores, delta) in told.items()
        for place in range(len(rows))
    ]
    assert len(pairs) > 1000
    for epsilon in (0.01, 1.0, 20.0):
        weight = Weight.at_least(epsilon)
        assert max(loss(*pair, weight) for pair in pairs) <= weight.exact


def as_records(rows: Sequence[tuple[int, ...]]) -> NDArray[np.int64]:
    return np.array(rows, dtype=np.int64).reshape(-1, 3)


@pytest.mark.parametrize(
    ("score", "rising", "falling", "share"),
    [
        (
            Score.DISTANCE,
            ([[9999, 0], [0, 0]], (1, 1)),  # a value that is new to child and parents
            ([[0, 99], [99, 9801]], (0, 0)),  # independent, with the record
            0.95,
        ),
        (Score.INFORMATION, ([[999, 0], [0, 0]], (1, 1)), ([[499, 0], [0, 500]], (0, 1)), 0.88),
        (Score.FULL_DEPENDENCE, ([[10, 0], [0, 5]], (1, 1)), ([[5, 2], [3, 5]], (0, 1)), 0.7),
    ],
)
def test_there_are_tables_that_lose_nearly_the_weight(
    score: Score,
    rising: tuple[list[list[int]], tuple[int, int]],
    falling: tuple[list[list[int]], tuple[int, int]],
    share: float,
) -> None:
    """One record lifts one candidate and lowers all others: half the scale would fail."""
    before, after = [], []
    for table, cell in (rising, *[falling] * 200):
        dense = np.array(table, dtype=np.int64)
        before.append(dense)
        after.append(dense.copy())
        after[-1][cell] += 1
    delta = sensitivity(score, int(after[0].sum()))
    scores, others = (grid_scores(score, map(contingency, side)) for side in (before, after))
    weight = Weight.at_least(1)
    assert share < loss(scores, others, delta, weight) <= 1
    assert loss(scores, others, delta // 2, weight) > 1


def contingency(dense: NDArray[np.int64]) -> Contingency:
    child, parents = np.indices(dense.shape)
    return Contingency.of(child.ravel(), [(parents.ravel(), dense.shape[1])], dense.ravel())


@settings(deadline=None, max_examples=examples(60))
@given(
    st.lists(st.tuples(st.integers(0, 4), st.integers(0, 3), st.integers(0, 2)), max_size=25),
    st.sampled_from([Score.DISTANCE, Score.INFORMATION]),
)
def test_candidates_see_columns_through_their_views(
    rows: list[tuple[int, int, int]], score: Score
) -> None:
    """A coarse view of a column is as if the column had been coarse."""
    schema = schema_of([5, 4, 3])
    coarse = [0, 0, 1, 1, 2]
    fine = KnownTable(schema, np.array(rows, dtype=np.int64).reshape(-1, 3))
    merged = [(coarse[one], other, another) for one, other, another in rows]
    other_schema = schema_of([3, 4, 3])
    other = KnownTable(other_schema, np.array(merged, dtype=np.int64).reshape(-1, 3))
    candidates = (ChoiceCandidate(0, (1,)), ChoiceCandidate(2, (0, 1)), ChoiceCandidate(1, (0, 2)))
    rest = (view("c1", range(4)), view("c2", range(3)))
    choice = Choice(score, (view("c0", coarse), *rest), candidates)
    plain = Choice(score, (view("c0", range(3)), *rest), candidates)
    with pytest.MonkeyPatch.context() as patch:
        assert scores_of(choice, fine, schema, patch) == scores_of(
            plain, other, other_schema, patch
        )
    assert fine.scopes_read == [("c0", "c1", "c2")]


def test_the_best_predicted_candidate_is_chosen() -> None:
    """Column 2 is column 0; 900 records leave no doubt."""
    rng = np.random.default_rng(3)
    records = rng.integers(0, 2, (900, 3))
    records[:, 2] = records[:, 0]
    table = KnownTable(schema_of([2, 2, 2]), records)
    for score in Score:
        choice = Choice(score, VIEWS, tuple(PAIRS))
        assert choice.candidates[
            chosen(choice, Weight.at_least(2), table.measure, table.schema)
        ] in (
            ChoiceCandidate(0, (2,)),
            ChoiceCandidate(2, (0, 1)),
        )


def test_no_choice_is_made_from_counts_of_no_possible_table() -> None:
    def read(grouping: Grouping) -> CellCounts:
        levels = tuple(np.array([1], dtype=np.int64) for _ in grouping.scope)
        return CellCounts(levels, np.array([1001], dtype=np.int64))

    choice = Choice(Score.DISTANCE, VIEWS, tuple(PAIRS))
    with pytest.raises(ValueError, match="the source") as raised:
        chosen(choice, Weight.at_least(1), read, schema_of([2, 2, 2]))
    assert not any(digit in str(raised.value) for digit in "0123456789")


def test_the_sensitivity_is_that_of_the_public_bound(monkeypatch: pytest.MonkeyPatch) -> None:
    table = KnownTable(schema_of([2, 2, 2], 5000), np.zeros((3, 3), dtype=np.int64))
    for score in Score:
        choice = Choice(score, VIEWS, tuple(PAIRS))
        delta = scores_of(choice, table, table.schema, monkeypatch)[1]
        assert delta == sensitivity(score, 5000)
