"""Estimates of a block as arrays say what each row's posterior says, to the last bit."""

import math
from dataclasses import replace

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from inference import block_estimates
from inference.block_estimates import (
    BlockPosteriors,
    all_known,
    half_widths,
    intervals,
    n_terms,
    narrowest,
    standard_deviations,
    unknown,
    widest,
)
from inference.error_terms import ErrorTerms
from inference.noise_law.law import law_of_noise
from inference.posterior import NotEstimable

LAWS = tuple(
    law_of_noise(np.array(scales), gaussian=gaussian)
    for scales, gaussian in (([2.0], 0.0), ([1.0, 3.0], 0.0), ([], 1.5), ([], 0.0))
)
FINITE = st.floats(-1e6, 1e6)
CONFIDENCES = st.sampled_from([0.5, 0.9, 0.95, 0.999])


@st.composite
def posteriors(draw: st.DrawFn) -> BlockPosteriors:
    n = draw(st.integers(0, 6))
    n_noises = draw(st.lists(st.integers(0, 3), min_size=n, max_size=n))
    ends = np.cumsum([0, *n_noises])
    total = int(ends[-1])
    law_of = draw(st.lists(st.integers(0, len(LAWS) - 1), min_size=n, max_size=n))
    found = draw(st.lists(FINITE, min_size=n, max_size=n))
    widenings = draw(st.lists(st.sampled_from([0.0, 1e-6, 0.25]), min_size=n, max_size=n))
    return BlockPosteriors(
        values=np.array(found, dtype=np.float64),
        laws=LAWS,
        law_of=np.array(law_of, dtype=np.int64),
        lattice_widenings=np.array(widenings, dtype=np.float64),
        low=draw(st.sampled_from([-math.inf, 0.0])),
        high=draw(st.sampled_from([math.inf, 10.0])),
        terms=ErrorTerms(np.full(total, 3), np.arange(total), np.ones(total)),
        ends=ends.astype(np.int64),
    )


@given(posteriors(), CONFIDENCES)
def test_all_rows_together_say_what_each_says_by_itself(
    rows: BlockPosteriors, confidence: float
) -> None:
    each = tuple(rows)
    assert len(each) == len(rows)
    assert [one.value for one in each] == rows.values.tolist()
    widths = [one.half_width(confidence) for one in each]
    assert rows.half_widths(confidence).tolist() == widths == half_widths(each, confidence).tolist()
    ends = [one.interval(confidence) for one in each]
    low, high = intervals(rows, confidence)
    assert list(zip(low.tolist(), high.tolist(), strict=True)) == ends
    assert rows.standard_deviations().tolist() == [one.standard_deviation for one in each]
    assert [one.terms.row.tolist() for one in each] == [
        list(range(start, end)) for start, end in zip(rows.ends[:-1], rows.ends[1:], strict=True)
    ]
    assert (n_terms(rows), widest(rows, confidence)) == (n_terms(each), max(widths, default=0.0))


@given(posteriors())
def test_a_row_is_one_object_whenever_it_is_looked_at(rows: BlockPosteriors) -> None:
    assert all(one is other for one, other in zip(rows, rows, strict=True))
    assert list(map(id, rows)) == [id(rows.__getitem__(place)) for place in range(len(rows))]
    assert rows[:2] == tuple(rows)[:2]
    assert all_known([rows]) is rows
    assert all_known([rows, rows]) == (*rows, *rows)
    assert all_known([rows, unknown("nothing", 1)]) is None


@given(posteriors(), CONFIDENCES, st.data())
def test_the_narrower_of_each_row_is_taken(
    rows: BlockPosteriors, confidence: float, data: st.DataObject
) -> None:
    n = len(rows)
    places = data.draw(st.lists(st.integers(0, len(LAWS) - 1), min_size=n, max_size=n))
    other = replace(rows, law_of=np.array(places, dtype=np.int64))
    found = narrowest(rows, other, confidence)
    for one, first, second in zip(found, rows, other, strict=True):
        is_first = first.half_width(confidence) <= second.half_width(confidence)
        assert one is (first if is_first else second)
    nothing = unknown("nothing is known", n)
    assert narrowest(nothing, rows, confidence) == (rows if n else nothing)
    assert narrowest(rows, nothing, confidence) is rows
    assert half_widths(nothing, confidence).tolist() == [math.inf] * n
    assert standard_deviations(nothing).tolist() == [math.inf] * n
    assert all(isinstance(one, NotEstimable) for one in nothing)


def test_estimates_of_several_lengths_are_not_compared() -> None:
    with pytest.raises(ValueError, match="different numbers of rows"):
        narrowest(unknown("a", 1), unknown("b", 3), 0.95)


@pytest.mark.parametrize(
    ("change", "said"),
    [
        ({"values": np.array([math.nan])}, "finite"),
        ({"values": np.zeros(2)}, "each row needs"),
        ({"lattice_widenings": np.array([-1.0])}, "negative"),
        ({"low": 1.0, "high": 0.0}, "range"),
        ({"ends": np.array([0, 0])}, "belong to one row"),
    ],
)
def test_what_no_posterior_may_be_no_block_may_be(change: dict[str, object], said: str) -> None:
    rows = BlockPosteriors(
        values=np.array([1.0]),
        laws=LAWS[:1],
        law_of=np.array([0]),
        lattice_widenings=np.array([0.0]),
        low=0.0,
        high=5.0,
        terms=ErrorTerms(np.array([0]), np.array([0]), np.ones(1)),
        ends=np.array([0, 1]),
    )
    assert block_estimates.values(rows).tolist() == [1.0]
    with pytest.raises(ValueError, match=said):
        replace(rows, **change)  # type: ignore[arg-type]
