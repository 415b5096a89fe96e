"""The terms of answers against noise that is known, and against the scales of their laws."""

import math
from fractions import Fraction

import numpy as np
import pytest
from hypothesis import assume, given
from hypothesis import strategies as st

from cube.axis import IntegerAxis
from cube.measurement import Measurement, Weight
from cube.query import Factor, LinearQuery, Partition, QueryBlock, counting
from cube.schema import Schema
from inference import memory as answers_module
from inference.block_estimates import RowEstimates
from inference.error_terms import NO_TERMS, ErrorTerms
from inference.estimator import Estimator
from inference.memory import NEVER_ASKED, RecalledAnswer, RecalledAnswers
from inference.posterior import NotEstimable, Posterior
from inference.scaling import Scaling, posteriors_of
from tests.support.cubes import SIZES, blocks, dense_rows, partitions

SCHEMA = Schema(
    table="t",
    axes=tuple(IntegerAxis(name=name, low=0, high=size - 1) for name, size in SIZES.items()),
    n_records_max=10_000,
)
N_CELLS = int(np.prod(list(SIZES.values())))
COUNTS = np.random.default_rng(7).integers(0, 50, size=N_CELLS)
CONFIDENCE = 0.9
LATTICE_BITS = 10
SCALE_ROUNDING = 1e-8  # of a law's scales: rounded up by a billionth, less dust


def bought(
    block: QueryBlock, weight: float, rng: np.random.Generator, supersedes: int | None = None
) -> Measurement:
    """A measurement of the counts, with noise that `noise_in` finds again."""
    paid = Weight.at_least(weight)
    noise = rng.integers(-(2**16), 2**16, size=block.n_rows).tolist()
    return Measurement(
        block=block,
        weight=paid,
        lattice_bits=LATTICE_BITS,
        noise_scale=math.nextafter(1 / float(paid.exact), math.inf),
        lattice_values=tuple(
            int(truth * 2**LATTICE_BITS) + one
            for truth, one in zip(truths(block), noise, strict=True)
        ),
        supersedes=supersedes,
    )


def truths(block: QueryBlock) -> list[Fraction]:
    return [
        sum((a * int(n) for a, n in zip(row, COUNTS, strict=True)), block.query.constant)
        for row in dense_rows(block)
    ]


def noise_in(measurement: Measurement) -> list[float]:
    exact = truths(measurement.block)
    return [float(v) - float(t) for v, t in zip(measurement.values, exact, strict=True)]


def ways(estimator: Estimator, asked: QueryBlock) -> list[RowEstimates]:
    """The posteriors of a block by each way there is: alone, together, as sums of groups."""
    measured, _ = asked.primitive
    scaling = Scaling(asked, SCHEMA.n_records_max)
    workspace = estimator._combined.workspace(measured)
    return [
        estimator._alone(measured, scaling),
        estimator._together(measured, workspace, scaling, CONFIDENCE),
        *(posteriors_of(reading, scaling) for reading in estimator._groups.readings(measured)),
        *(
            posteriors_of(reading, scaling)
            for reading in [estimator._groups.of_margins(measured)]
            if reading is not None
        ),
    ]


def check_terms(estimator: Estimator, rows: RowEstimates, asked: QueryBlock) -> None:
    """Terms times known noise are ``value - truth``, and their sizes are the law's scales."""
    history = estimator.history
    for row, truth in zip(rows, truths(asked), strict=True):
        if not isinstance(row, Posterior):
            continue
        terms = row.terms
        used = [history[place] for place in terms.place.tolist()]
        noise = [noise_in(one)[i] for one, i in zip(used, terms.row.tolist(), strict=True)]
        error = float(terms.coefficient @ noise)
        assert row.value - float(truth) == pytest.approx(error, rel=1e-7, abs=1e-6)
        sizes = np.sort(np.abs(terms.coefficient) * [one.noise_scale for one in used])
        np.testing.assert_allclose(np.sort(row.law.scales), sizes, rtol=SCALE_ROUNDING)


@st.composite
def histories(draw: st.DrawFn) -> tuple[list[QueryBlock], QueryBlock]:
    """Rows to measure, and a query: any, or the difference of two of the rows times a number."""
    counted = partitions().map(lambda partition: QueryBlock(counting(), partition))
    rows = [
        block.primitive[0]
        for block in draw(st.lists(st.one_of(counted, blocks()), min_size=2, max_size=4))
    ]
    first, second = rows[0].query, rows[1].query
    factor = Fraction(draw(st.integers(-3, 3).filter(bool)), 2)
    difference = QueryBlock(
        (first + second.scaled(Fraction(-1))).scaled(factor),
        draw(st.sampled_from([rows[0].partition, rows[1].partition, None])),
    )
    asked = draw(st.one_of(st.just(difference), st.just(rows[0]), blocks()))
    assume(not any(block.query.is_constant for block in (*rows, asked)))
    return rows, asked


@given(
    histories(),
    st.lists(st.sampled_from([0.25, 1.0]), min_size=4, max_size=4),
    st.integers(0, 2**32 - 1),
)
def test_every_way_to_estimate_names_the_noises_of_its_answer(
    history: tuple[list[QueryBlock], QueryBlock], weights: list[float], seed: int
) -> None:
    """Before and after raises, in place and in a fork that its origin knows nothing of."""
    rng = np.random.default_rng(seed)
    rows, asked = history
    first = [bought(row, weight, rng) for row, weight in zip(rows, weights, strict=False)]
    estimator = Estimator(SCHEMA)
    estimator.add(first)
    kept = estimator.estimate(asked, CONFIDENCE)
    fork = estimator.fork()
    fork.add([bought(rows[0], 2.0, rng, supersedes=0)])
    found = [(fork, way) for way in ways(fork, asked)]
    found += [(estimator, way) for way in (kept, *ways(estimator, asked))]
    estimator.add([bought(rows[0], 2.0, rng, supersedes=0)])
    estimator.add([bought(rows[0], 4.0, rng, supersedes=len(first))])
    found += [(estimator, way) for way in ways(estimator, asked)]
    for origin, posteriors in found:
        check_terms(origin, posteriors, asked)


def test_each_way_to_estimate_occurs_in_these_tests() -> None:
    rng = np.random.default_rng(3)
    groups = QueryBlock(counting(), Partition(("a",), np.arange(3)))
    some = counting([Factor(("a",), np.array([1, 2, 0]))])
    asked = QueryBlock(some.scaled(Fraction(-3, 2)) + LinearQuery((), Fraction(7)))
    estimator = Estimator(SCHEMA)
    estimator.add([bought(groups, 1.0, rng), bought(asked.primitive[0], 0.25, rng)])
    named = []
    for rows in ways(estimator, asked):
        check_terms(estimator, rows, asked)
        (row,) = rows
        assert isinstance(row, Posterior)
        noises = zip(row.terms.place.tolist(), row.terms.row.tolist(), strict=True)
        named.append(dict(zip(noises, row.terms.coefficient.round(9).tolist(), strict=True)))
    alone, together, read_on_a = named
    assert alone == {(1, 0): -1.5}
    assert read_on_a == {(0, 0): -1.5, (0, 1): -3.0}
    # Variances 5 of the reading and 16 of the row itself: the reading weighs 16 / 21.
    assert together == {
        (1, 0): round(-1.5 * 5 / 21, 9),
        (0, 0): round(-1.5 * 16 / 21, 9),
        (0, 1): round(-3.0 * 16 / 21, 9),
    }


def test_a_constant_has_no_terms() -> None:
    constant = QueryBlock(LinearQuery((), Fraction(3)))
    (row,) = Estimator(SCHEMA).estimate(constant, CONFIDENCE)
    assert isinstance(row, Posterior)
    assert row.terms is NO_TERMS
    assert row.terms.place.size == 0


def test_terms_are_copied_and_locked() -> None:
    place, row, coefficient = np.array([0, 1]), np.array([2, 3]), np.array([0.5, -1.0])
    terms = ErrorTerms(place, row, coefficient)
    place[0], row[0], coefficient[0] = 9, 9, 9.0
    assert (terms.place[0], terms.row[0], terms.coefficient[0]) == (0, 2, 0.5)
    with pytest.raises(ValueError, match="read-only"):
        terms.coefficient[0] = 1.0
    assert terms.times(-2.0).coefficient.tolist() == [-1.0, 2.0]


def test_terms_that_do_not_belong_together_are_refused() -> None:
    two, one = np.array([0, 1]), np.array([1.0])
    with pytest.raises(ValueError, match="must have one shape"):
        ErrorTerms(two, two, one)
    with pytest.raises(ValueError, match="must have one shape"):
        ErrorTerms(two[:, np.newaxis], two[:, np.newaxis], one[:, np.newaxis])
    with pytest.raises(TypeError, match="int64"):
        ErrorTerms(two, two.astype(np.float64), np.array([1.0, 2.0]))
    with pytest.raises(TypeError, match="float64"):
        ErrorTerms(two, two, two)


def answer_with(n_terms: int) -> RecalledAnswer:
    law = Estimator(SCHEMA).estimate(QueryBlock(LinearQuery((), Fraction(3))), CONFIDENCE)
    assert isinstance(law[0], Posterior)
    places = np.zeros(n_terms, dtype=np.int64)
    row = Posterior(0.0, law[0].law, terms=ErrorTerms(places, places, np.ones(n_terms)))
    return RecalledAnswer((row, NotEstimable("not asked")), is_narrowest=True, n_seen=0)


def test_answers_are_forgotten_by_their_number_and_by_their_size(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(answers_module, "N_ANSWERS_MAX", 3)
    monkeypatch.setattr(answers_module, "N_TERMS_A_ROW", 0)
    answers, small = RecalledAnswers(10), answer_with(1)
    for asked in ("a", "b", "c"):
        answers.keep(asked, small)
    answers.keep("a", answers.get("a"))
    answers.keep("d", small)
    assert answers.get("b") is NEVER_ASKED
    assert answers.get("a") is small
    answers.keep("e", answer_with(9))
    assert len(answers) == 2  # 1 + 9 terms are as many as there may be
    answers.keep("e", answer_with(3))
    answers.keep("f", answer_with(6))
    assert len(answers) == 3
    answers.keep("g", answer_with(11))
    assert len(answers) == 1  # the one in use is kept, whatever its size
    assert answers.get("g").n_terms == 11


def test_the_memory_of_a_row_besides_its_terms_is_counted() -> None:
    """Of many rows of one term each, most of the memory is not in the terms."""
    assert answer_with(3).n_terms == 3 + answers_module.N_TERMS_A_ROW * len(answer_with(3).rows)
