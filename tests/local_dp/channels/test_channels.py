"""Channels: their privacy by enumeration, the published figures, and what their counts estimate."""

import math
from fractions import Fraction
from itertools import product
from random import Random

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from cube.exponential import exp_below
from cube.measurement import UNITS_PER_EPSILON
from local_dp.channels.channel import Floats, eps_of_channel, ratio_of_channel
from local_dp.channels.choice import AnyChannel, best_channel
from local_dp.channels.local_hashing import LocalHashing
from local_dp.channels.randomised_response import RandomisedResponse
from local_dp.channels.unary_encoding import UnaryEncoding
from tests.support.published_protocol import floored_weights

# The keep-probabilities of the thesis, and the true epsilon of each for 2, 4, 6, 16, 18, 24 cells.
TRUE_EPSILONS = {
    "0.009": (0.018, 0.036, 0.053, 0.136, 0.151, 0.197),
    "0.048": (0.096, 0.184, 0.264, 0.592, 0.646, 0.793),
    "0.095": (0.191, 0.351, 0.488, 0.986, 1.061, 1.258),
    "0.139": (0.280, 0.498, 0.677, 1.276, 1.362, 1.584),
    "0.221": (0.449, 0.758, 0.994, 1.712, 1.809, 2.055),
    "0.295": (0.608, 0.983, 1.256, 2.041, 2.144, 2.402),
    "0.500": (1.099, 1.609, 1.946, 2.833, 2.944, 3.219),
}
KEEPS = {  # of an epsilon, for 2, 4, 6 and 24 cells
    "0.1": (0.0500, 0.0256, 0.0172, 0.0044),
    "0.25": (0.1244, 0.0663, 0.0452, 0.0117),
    "0.5": (0.2449, 0.1395, 0.0976, 0.0263),
    "1": (0.4621, 0.3005, 0.2226, 0.0668),
    "2": (0.7616, 0.6150, 0.5157, 0.2102),
}
SMALL: list[AnyChannel] = [
    RandomisedResponse.uniform(4, Fraction(1, 3)),
    RandomisedResponse((1, 3, 2), Fraction(2, 7)),
    UnaryEncoding(4, Fraction(1, 4)),
    UnaryEncoding(5, Fraction(3, 16)),
    LocalHashing(7, 3, Fraction(1, 2)),
    LocalHashing(8, 2, Fraction(1, 5)),
    LocalHashing(4, 5, Fraction(2, 3)),
]


def units(epsilon: str) -> int:
    return int(Fraction(epsilon) * UNITS_PER_EPSILON)


@pytest.mark.parametrize("keep", TRUE_EPSILONS)
def test_keep_probabilities_have_the_epsilons_of_the_specification(keep: str) -> None:
    for n_cells, expected in zip((2, 4, 6, 16, 18, 24), TRUE_EPSILONS[keep], strict=True):
        channel = RandomisedResponse.uniform(n_cells, Fraction(keep))
        assert float(eps_of_channel(channel.matrix())) == pytest.approx(expected, abs=5.001e-4)
        assert ratio_of_channel(channel.matrix()) == channel.ratio


@pytest.mark.parametrize("epsilon", KEEPS)
def test_epsilons_have_the_keep_probabilities_of_the_specification(epsilon: str) -> None:
    for n_cells, expected in zip((2, 4, 6, 24), KEEPS[epsilon], strict=True):
        channel = RandomisedResponse.for_epsilon((1,) * n_cells, units(epsilon))
        assert float(channel.keep) == pytest.approx(expected, abs=5.001e-5)


def test_two_fair_coins_lose_the_logarithm_of_three() -> None:
    lost = eps_of_channel(RandomisedResponse.uniform(2, Fraction(1, 2)).matrix())
    assert math.log(3) <= float(lost) <= math.log(3) + 2**-39


@pytest.mark.parametrize("channel", SMALL, ids=repr)
def test_the_ratio_is_that_of_the_whole_matrix(channel: AnyChannel) -> None:
    assert channel.ratio == ratio_of_channel(channel.matrix())


@given(
    st.integers(2, 6),
    st.integers(units("0.001"), units("6")),
    st.lists(st.integers(1, 50), min_size=9, max_size=9),
)
@settings(max_examples=25)
def test_no_channel_loses_more_than_it_was_asked_to(
    n_cells: int, epsilon_units: int, weights: list[int]
) -> None:
    channels: list[AnyChannel] = [
        RandomisedResponse.for_epsilon(tuple(weights[:n_cells]), epsilon_units),
        UnaryEncoding.for_epsilon(n_cells, epsilon_units),
        LocalHashing.for_epsilon(n_cells, epsilon_units),
    ]
    for channel in channels:
        assert channel.ratio <= exp_below(epsilon_units)
        # Nor much less: the rounding of probabilities is below a millionth of epsilon.
        assert math.log(channel.ratio) > epsilon_units / UNITS_PER_EPSILON * (1 - 1e-3)
    for channel in channels[:2]:
        assert ratio_of_channel(channel.matrix()) == channel.ratio


def test_the_published_protocol_is_convicted() -> None:
    """Its epsilon is infinite once min-max normalisation has set a cell of the table to 0."""
    observed = [Fraction(count, 18) for count in (9, 6, 1, 2)]
    keep = Fraction(1, 2)
    renewed = [(share - (1 - keep) * Fraction(1, 4)) / keep for share in observed]
    assert min(renewed) < 0  # so that the protocol normalises
    least, most = min(renewed), max(renewed)
    table = [(cell - least) / (most - least) for cell in renewed]
    fakes = [cell / sum(table) for cell in table]  # it could not be drawn from otherwise
    published = [
        [(1 - keep) * fake + keep * (cell == true) for cell, fake in enumerate(fakes)]
        for true in range(4)
    ]
    assert ratio_of_channel(published) == math.inf
    assert eps_of_channel(published) == math.inf
    # And with a table that has no zero, what it claims is far below what it loses.
    for keep_text, n_cells in product(TRUE_EPSILONS, (2, 4, 6, 24)):
        channel = RandomisedResponse.uniform(n_cells, Fraction(keep_text))
        claimed = -math.log(1 - float(channel.keep))
        assert float(eps_of_channel(channel.matrix())) > 1.5 * claimed


def test_hybrid_of_geometric_rows_is_convicted() -> None:
    """K = 4, alpha = 1/2: it claims ln 2; all pairs of rows give ln 8, and ln 20 with p = 1/2."""
    half = Fraction(1, 2)
    ends = {0: Fraction(2, 3), 3: Fraction(2, 3)}
    geometric = [
        [ends.get(r, Fraction(1, 3)) * half ** abs(i - r) for r in range(4)] for i in range(4)
    ]
    assert ratio_of_channel(geometric) == 8
    hybrid = [
        [half * entry + half * (i == r) for r, entry in enumerate(row)]
        for i, row in enumerate(geometric)
    ]
    assert ratio_of_channel(hybrid) == 20
    for keep, lost in ((Fraction(1, 10), 2.23), (Fraction(1, 4), 2.48)):
        mixed = [
            [(1 - keep) * entry + keep * (i == r) for r, entry in enumerate(row)]
            for i, row in enumerate(geometric)
        ]
        assert float(eps_of_channel(mixed)) == pytest.approx(lost, abs=0.005)


@pytest.mark.parametrize(
    ("matrix", "error"),
    [
        ([], ValueError),
        ([[Fraction(1)], [Fraction(1, 2), Fraction(1, 2)]], ValueError),
        ([[Fraction(1, 2), Fraction(1, 3)]], ValueError),
        ([[Fraction(3, 2), Fraction(-1, 2)]], ValueError),
        ([[0.5, 0.5]], TypeError),
    ],
)
def test_what_is_no_channel_is_refused(matrix: list[list[Fraction]], error: type) -> None:
    with pytest.raises(error):
        ratio_of_channel(matrix)


def test_an_answer_that_is_never_given_costs_nothing() -> None:
    half = Fraction(1, 2)
    assert ratio_of_channel([[half, half, 0], [half, half, 0]]) == 1  # type: ignore[list-item]


def test_numbers_that_hide_nothing_are_refused() -> None:
    half = Fraction(1, 2)
    for weights, keep in (
        ((1, 0), half),
        ((1, 1), Fraction(1)),
        ((1, 1), Fraction(0)),
        ((1,), half),
    ):
        with pytest.raises(ValueError, match=r"weight|probability|cells"):
            RandomisedResponse(weights, keep)
    with pytest.raises(TypeError):
        RandomisedResponse((1, 1), 0.5)  # type: ignore[arg-type]
    for noise in (Fraction(0), half, Fraction(1, 3)):
        with pytest.raises(ValueError, match="noise"):
            UnaryEncoding(3, noise)
    for n_buckets in (1, 4, 257):
        with pytest.raises(ValueError, match="prime"):
            LocalHashing(3, n_buckets, half)


@pytest.mark.parametrize("channel", SMALL, ids=repr)
def test_an_answer_outside_the_channel_is_none(channel: AnyChannel) -> None:
    beyond = 1 << channel.n_cells if isinstance(channel, UnaryEncoding) else channel.n_tallies
    assert channel.tallies_of(beyond - 1)
    for answer in (-1, beyond):
        with pytest.raises(ValueError, match="an answer"):
            channel.tallies_of(answer)


def law_of_tallies(channel: AnyChannel, true: int) -> list[tuple[float, Floats]]:
    """Every answer to a true cell: its probability, and the tallies it makes."""
    found = []
    for answer, probability in enumerate(channel.matrix()[true]):
        tally = np.zeros(channel.n_tallies)
        tally[list(channel.tallies_of(answer))] = 1
        found.append((float(probability), tally))
    return found


@pytest.mark.parametrize("channel", SMALL, ids=repr)
def test_estimates_are_unbiased_with_the_stated_covariance(channel: AnyChannel) -> None:
    """By enumeration of all answers, with no simulation: for shares that are all different."""
    shares = np.arange(1.0, channel.n_cells + 1)
    shares /= shares.sum()
    cells = np.eye(channel.n_cells)
    pairs = [cells[:, one] + cells[:, other] for one in range(len(cells)) for other in range(one)]
    # Variances of all cells and of all sums of two say what every covariance is.
    queries = np.column_stack(
        [cells, *pairs, np.arange(channel.n_cells), np.ones(channel.n_cells)]
    ).astype(float)
    laws = [law_of_tallies(channel, true) for true in range(channel.n_cells)]
    weights = np.array([share * p for share, law in zip(shares, laws, strict=True) for p, _ in law])
    tallies = np.array([tally for law in laws for _, tally in law])
    assert np.allclose(weights @ tallies, channel.rates(shares), rtol=0, atol=1e-12)
    answers = tallies @ channel.contributions(queries) + channel.constants(queries)
    assert np.allclose(weights @ answers, shares @ queries, rtol=0, atol=1e-12)
    values = np.arange(1.0, channel.n_tallies + 1) ** 2
    assert np.allclose(
        channel.adjoint(values),
        [sum(p * float(tally @ values) for p, tally in law) for law in laws],
    )
    assert np.allclose([channel.inverted(tally) for tally in tallies] @ queries, answers)
    centred = answers - weights @ answers
    thirds = channel.moments(queries, channel.rates(shares))[1]
    assert isinstance(channel, UnaryEncoding) or np.allclose(
        thirds, weights @ np.abs(centred) ** 3, atol=1e-9
    )
    covariance = (centred * weights[:, None]).T @ centred
    assert np.allclose(
        channel.variances(queries, channel.rates(shares)), np.diag(covariance), atol=1e-10
    )


@pytest.mark.parametrize("channel", SMALL, ids=repr)
def test_typical_variance_is_the_mean_at_equal_shares(channel: AnyChannel) -> None:
    rates = channel.rates(np.full(channel.n_cells, 1 / channel.n_cells))
    mean = channel.variances(np.eye(channel.n_cells), rates).mean()
    # Of hashes nearly: cells on one line of digits collide together.
    near = 0.25 if isinstance(channel, LocalHashing) else 1e-12
    if isinstance(channel, RandomisedResponse) and len(set(channel.weights)) > 1:
        equal = RandomisedResponse.uniform(channel.n_cells, channel.keep)
        assert channel.typical_variance == equal.typical_variance
        return
    assert channel.typical_variance == pytest.approx(mean, rel=near)


@given(st.sampled_from([2, 3, 5, 7]), st.integers(2, 60), st.randoms(use_true_random=False))
@settings(max_examples=40)
def test_the_transform_adds_up_what_hashing_puts_together(
    n_buckets: int, n_cells: int, random: Random
) -> None:
    channel = LocalHashing(n_cells, n_buckets, Fraction(1, 2))
    counts = np.array([random.randrange(9) for _ in range(channel.n_tallies)], dtype=float)
    places = np.array(
        [
            [seed * n_buckets + channel.hashed(cell, seed) for seed in range(channel.n_seeds)]
            for cell in range(n_cells)
        ]
    )
    assert np.allclose(channel.supports(counts), counts[places].sum(axis=1), atol=1e-8)


@pytest.mark.parametrize(("n_cells", "n_buckets"), [(27, 3), (20, 5), (16, 2), (10, 7)])
def test_two_cells_collide_for_one_seed_in_each_bucket_number(n_cells: int, n_buckets: int) -> None:
    channel = LocalHashing(n_cells, n_buckets, Fraction(1, 2))
    for one, other in product(range(n_cells), repeat=2):
        if one < other:
            collisions = sum(
                channel.hashed(one, seed) == channel.hashed(other, seed)
                for seed in range(channel.n_seeds)
            )
            assert collisions * n_buckets == channel.n_seeds


@pytest.mark.parametrize("n_cells", [100, 10_000, 65_536])
@pytest.mark.parametrize("epsilon", ["0.1", "0.5", "1", "2", "3", "4"])
def test_primes_cost_less_than_three_percent_of_the_variance(n_cells: int, epsilon: str) -> None:
    """Beside the best number of buckets, prime or not."""
    gain = math.exp(float(epsilon)) - 1
    best = min((gain + buckets) ** 2 / (buckets - 1) for buckets in range(2, 300))
    found = LocalHashing.for_epsilon(n_cells, units(epsilon)).n_buckets
    assert (gain + found) ** 2 / (found - 1) < 1.03 * best


def test_unary_encoding_has_its_published_variance() -> None:
    """4 e / (e - 1)**2 for a rare cell at epsilon 1, whatever the number of cells."""
    channel = UnaryEncoding.for_epsilon(500, units("1"))
    rare = np.zeros(500)
    rare[0] = 1.0
    expected = 4 * math.e / (math.e - 1) ** 2
    one = np.zeros((500, 1))
    one[7] = 1.0
    assert channel.variances(one, channel.rates(rare))[0] == pytest.approx(expected, rel=5e-3)


@pytest.mark.parametrize("epsilon", ["0.5", "1", "2", "3"])
def test_for_rare_cells_unary_encoding_is_better_beyond_three_exponentials_and_two(
    epsilon: str,
) -> None:
    crossing = 3 * math.exp(float(epsilon)) + 2
    for n_cells in (math.floor(crossing), math.ceil(crossing)):
        keep = RandomisedResponse.for_epsilon((1,) * n_cells, units(epsilon)).keep
        fake = float((1 - keep) / n_cells)
        response = fake * (1 - fake) / float(keep) ** 2
        noise = float(UnaryEncoding.for_epsilon(n_cells, units(epsilon)).noise)
        unary = noise * (1 - noise) / (0.5 - noise) ** 2
        assert (response < unary) == (n_cells < crossing)


@pytest.mark.parametrize("epsilon", ["0.1", "0.5", "1", "2", "4"])
@pytest.mark.parametrize("n_cells", [2, 4, 9, 24, 100, 500, 1500])
def test_the_best_channel_has_the_least_mean_variance(n_cells: int, epsilon: str) -> None:
    chosen = best_channel(n_cells, units(epsilon))
    others: list[AnyChannel] = [RandomisedResponse.for_epsilon((1,) * n_cells, units(epsilon))]
    if n_cells <= 1024:
        others.append(UnaryEncoding.for_epsilon(n_cells, units(epsilon)))
    assert all(chosen.typical_variance <= other.typical_variance for other in others)
    assert chosen.ratio <= exp_below(units(epsilon))


@given(
    st.lists(st.floats(-0.5, 1.5), min_size=2, max_size=12),
    st.fractions(Fraction(1, 100), 1, max_denominator=100),
)
def test_a_floored_table_has_no_cell_below_its_floor(shares: list[float], floor: Fraction) -> None:
    weights = floored_weights(np.array(shares), floor)
    channel = RandomisedResponse(weights, Fraction(1, 2))
    if floor < 1:  # of which rounding up leaves nothing to follow
        assert Fraction(min(weights), sum(weights)) >= floor / len(shares)
    assert min(weights) >= 1
    assert channel.n_cells == len(shares)
