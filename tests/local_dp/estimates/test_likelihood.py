"""The likeliest shares: golden vectors, a general solver, exact solutions, and how far it came."""

from fractions import Fraction

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy.optimize import LinearConstraint, brentq, minimize

from cube.measurement import UNITS_PER_EPSILON
from cube.pace import Deadline, paced
from cube.refusals import TooSlow
from local_dp.channels.channel import Floats
from local_dp.channels.choice import AnyChannel
from local_dp.channels.local_hashing import LocalHashing
from local_dp.channels.randomised_response import RandomisedResponse
from local_dp.channels.unary_encoding import UnaryEncoding
from local_dp.estimates import likelihood
from local_dp.estimates.likelihood import iterated_bayes, likeliest
from local_dp.estimates.shares import Tally, estimated
from tests.support.answering import simulated

# The geometric matrix of the thesis, K = 4 and alpha = 1/2, mixed with the truth by a fair coin: a
# channel that is not ours, but a known test of inversion and of iterated Bayes.
ENDS = (2 / 3, 1 / 3, 1 / 3, 2 / 3)
HYBRID = 0.5 * np.eye(4) + 0.5 * np.array(
    [[ENDS[r] * 0.5 ** abs(i - r) for r in range(4)] for i in range(4)]
)
CHANNELS: list[AnyChannel] = [
    RandomisedResponse((1, 3, 2, 2), Fraction(1, 3)),
    UnaryEncoding(4, Fraction(1, 4)),
    LocalHashing(4, 3, Fraction(1, 2)),
]


def by_bayes(observed: Floats) -> Floats:
    maps = [(observed, lambda shares: shares @ HYBRID, lambda values: HYBRID @ values)]
    return iterated_bayes(4, 10**6, maps).shares


def test_golden_vectors_of_reconstruction() -> None:
    truth = np.array([0.4, 0.3, 0.2, 0.1])
    seen = truth @ HYBRID
    assert np.allclose(seen, [0.40417, 0.25417, 0.18333, 0.15833], rtol=0, atol=5e-6)
    assert np.allclose(by_bayes(seen), truth, rtol=0, atol=1e-6)
    # The thesis solves with rows where columns belong.
    transposed = np.linalg.solve(HYBRID, seen)
    assert np.allclose(transposed, [0.4470, 0.2326, 0.1549, 0.1405], rtol=0, atol=5e-5)
    assert transposed.sum() == pytest.approx(0.975, abs=5e-4)
    assert np.linalg.cond(HYBRID) == pytest.approx(1.8, abs=0.05)  # no reason to be inaccurate
    inside = np.array([0.38, 0.27, 0.17, 0.18])
    expected = [0.3662, 0.3293, 0.1747, 0.1298]
    assert np.allclose(np.linalg.solve(HYBRID.T, inside), expected, rtol=0, atol=5e-5)
    assert np.allclose(by_bayes(inside), expected, rtol=0, atol=5e-5)
    border = np.array([0.83, 0.11, 0.03, 0.03])
    raw = [0.9898, 0.0447, -0.0207, -0.0138]
    assert np.allclose(np.linalg.solve(HYBRID.T, border), raw, rtol=0, atol=5e-5)
    assert np.allclose(by_bayes(border), [0.9666, 0.0334, 0, 0], rtol=0, atol=5e-5)


@given(
    st.lists(st.integers(0, 40), min_size=4, max_size=4).filter(lambda counts: sum(counts) > 0),
    st.integers(0, 6),
)
def test_no_shares_are_likelier_by_more_than_the_gap(counts: list[int], n_rounds: int) -> None:
    """However early iteration ends; against plain steps of iterated Bayes, hundreds of them."""
    n, observed = sum(counts), np.array(counts) / sum(counts)
    maps = [(observed, lambda shares: shares @ HYBRID, lambda values: HYBRID @ values)]
    with pytest.MonkeyPatch.context() as patched:
        patched.setattr(likelihood, "N_STEPS_MAX", 3 * n_rounds + 3)
        found = iterated_bayes(4, n, maps)
    assert found.shares.min() >= 0
    assert found.shares.sum() == pytest.approx(1)

    def logarithm(shares: Floats) -> float:
        return n * float(observed @ np.log(shares @ HYBRID))

    plain, equal = np.full(4, 0.25), np.full(4, 0.25)
    for _ in range(600):
        plain *= HYBRID @ (observed / (plain @ HYBRID))
    assert logarithm(plain) - logarithm(found.shares) <= found.gap + 1e-9 * n
    assert logarithm(found.shares) >= logarithm(equal) - 1e-12 * n


def test_iteration_has_an_end_and_says_how_far_it_came(monkeypatch: pytest.MonkeyPatch) -> None:
    channel = LocalHashing.for_epsilon(1100, UNITS_PER_EPSILON)
    truth = np.random.default_rng(7).dirichlet(np.full(1100, 0.5))
    tally = estimated([simulated(channel, truth, 20_000, np.random.default_rng(8))])
    gaps = []
    for work in (1e5, 1e6):
        monkeypatch.setattr(likelihood, "WORK_MAX", work)
        gaps.append(likeliest(tally).gap)
    assert gaps[0] > 2 * gaps[1]
    assert gaps[1] > likelihood.GAP_ENOUGH


def test_time_that_is_over_ends_it() -> None:
    tally = estimated([Tally(CHANNELS[2], 27, np.ones(27, dtype=np.int64))])
    with paced(Deadline(0.0)), pytest.raises(TooSlow):
        likeliest(tally)


@pytest.mark.parametrize("channel", CHANNELS, ids=repr)
@pytest.mark.parametrize("truth", [(0.4, 0.3, 0.2, 0.1), (1.0, 0.0, 0.0, 0.0)])
def test_the_likeliest_shares_are_those_of_a_general_solver(
    channel: AnyChannel, truth: tuple[float, ...]
) -> None:
    rng = np.random.default_rng(1)
    tally = simulated(channel, np.array(truth), 3000, rng)
    likely = likeliest(estimated([tally]))
    found = likely.shares
    assert (likely.gap == 0) == (not isinstance(channel, LocalHashing))
    assert likely.gap <= likelihood.GAP_ENOUGH

    def loss(shares: Floats) -> float:
        rates = channel.rates(shares)
        clear = 0.0 if channel.is_categorical else (1 - tally.rates) @ np.log(1 - rates)
        return -float(tally.rates @ np.log(rates) + clear)

    best = minimize(
        loss,
        np.full(4, 0.25),
        bounds=[(0.0, 1.0)] * 4,
        constraints=LinearConstraint(np.ones(4), 1, 1),
        method="SLSQP",
        options={"ftol": 1e-14},
    )
    assert loss(found) <= best.fun + 1e-9
    assert np.allclose(found, best.x, rtol=0, atol=1e-3)


@given(
    st.lists(st.integers(0, 30), min_size=2, max_size=7).filter(lambda counts: sum(counts) > 0),
    st.data(),
)
def test_likeliest_of_randomised_response_fills_up_to_the_fakes(
    counts: list[int], data: st.DataObject
) -> None:
    """Rates are the counts over a constant, but not below those of fakes, and iteration agrees."""
    weight = st.integers(1, 5)
    weights = data.draw(st.lists(weight, min_size=len(counts), max_size=len(counts)))
    channel = RandomisedResponse(tuple(weights), Fraction(1, 4))
    tally = Tally(channel, sum(counts), np.array(counts))
    found = likeliest(estimated([tally]))
    fakes = channel.rates(np.zeros(len(counts)))

    def filled(constant: float) -> Floats:
        return np.asarray(np.maximum(tally.rates / constant, fakes))

    rates = filled(brentq(lambda constant: float(filled(constant).sum()) - 1, 1e-3, 100.0))
    assert found.gap == 0
    assert np.allclose(found.shares, (rates - fakes) / 0.25, rtol=0, atol=1e-9)
    by_steps = iterated_bayes(
        len(counts), sum(counts), [(tally.rates, channel.rates, channel.adjoint)]
    )

    def logarithm(shares: Floats) -> float:
        return sum(counts) * float(tally.rates @ np.log(channel.rates(shares)))

    behind = logarithm(found.shares) - logarithm(by_steps.shares)
    assert -1e-9 <= behind <= by_steps.gap + 1e-9


def test_bits_are_not_put_together_with_other_answers() -> None:
    tallies = [simulated(one, np.full(4, 0.25), 50, np.random.default_rng(1)) for one in CHANNELS]
    with pytest.raises(ValueError, match="unary encoding"):
        likeliest(estimated(tallies))
    both = likeliest(estimated([tallies[0], tallies[2]]))
    assert both.shares.sum() == pytest.approx(1)
    assert both.gap <= likelihood.GAP_ENOUGH
