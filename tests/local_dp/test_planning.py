"""Plans: the figures of the specification, and that what is planned is what comes out."""

import math
from fractions import Fraction

import numpy as np
import pytest

from cube.measurement import UNITS_PER_EPSILON
from cube.refusals import InvalidTarget
from local_dp.channels.choice import AnyChannel, best_channel
from local_dp.channels.local_hashing import LocalHashing
from local_dp.channels.randomised_response import RandomisedResponse
from local_dp.channels.unary_encoding import UnaryEncoding
from local_dp.estimates.shares import estimated
from local_dp.planning import (
    answers_needed,
    epsilon_units_needed,
    half_width,
    respondents_needed,
)
from tests.support.answering import simulated
from tests.support.collections_of_answers import survey_campaign

CHANNELS: list[AnyChannel] = [
    RandomisedResponse.uniform(4, Fraction(1, 3)),
    UnaryEncoding.for_epsilon(12, UNITS_PER_EPSILON),
    LocalHashing.for_epsilon(12, UNITS_PER_EPSILON),
]


@pytest.mark.parametrize(("keep", "expected"), [("1/2", 7_203), ("663/10000", 409_663)])
def test_the_numbers_of_answers_of_the_specification(keep: str, expected: int) -> None:
    """With z = 1.96, of which ours has more digits: 2e-5 apart."""
    channel = RandomisedResponse.uniform(4, Fraction(keep))
    assert answers_needed(channel, 0.02, share=0.25) == pytest.approx(expected, rel=1e-4)
    assert answers_needed(channel, 0.02) > expected


def test_the_published_rule_to_stop_tells_nothing_about_the_truth() -> None:
    """Two blocks agree to within its full width, 2 z sigma without p: always, or hardly ever.

    Without fakes 99.4 % agree whatever their size, so that it stops at once. With the fakes of p =
    .048 blocks are 20 times as far apart, and it does not stop. 4000 pairs: 4 standard errors.
    """
    rng = np.random.default_rng(3)
    z, share = 1.959964, 0.25
    for n in (100, 10_000):
        seen = rng.binomial(n, share, (4000, 2)) / n
        agree = np.abs(np.diff(seen)[:, 0]) < 2 * z * math.sqrt(share * (1 - share) / n)
        assert agree.mean() == pytest.approx(0.9944, abs=0.006)
        keep = 0.048
        apart = np.abs(np.diff(seen)[:, 0]) / keep
        assert (apart < 2 * z * math.sqrt(share * (1 - share) / n)).mean() < 0.2


@pytest.mark.parametrize("channel", CHANNELS, ids=repr)
def test_planned_widths_are_reached(channel: AnyChannel) -> None:
    """95 % of the errors of 60 trials and all cells are within the width; its 10 % are 2 errors.

    Of hashing, the plan is for a bound that is a few hundredths above.
    """
    share = 1 / channel.n_cells
    n = answers_needed(channel, 0.05, share=share)
    assert half_width(channel, n, share=share) <= 0.05 < half_width(channel, n - 1, share=share)
    rng = np.random.default_rng(1)
    truth = np.full(channel.n_cells, 1 / channel.n_cells)
    errors = [
        np.abs(estimated([simulated(channel, truth, n, rng)]).shares - truth) for _ in range(60)
    ]
    deviation = math.sqrt(float(np.mean(np.square(errors))))
    assert 1.96 * deviation == pytest.approx(0.05, rel=0.1)


@pytest.mark.parametrize(
    ("channel", "share"),
    [
        (best_channel(24, 3 * UNITS_PER_EPSILON), 0.5),
        (best_channel(24, 3 * UNITS_PER_EPSILON), 23 / 24),
        (best_channel(24, 2 * UNITS_PER_EPSILON), 23 / 24),
        (best_channel(6, UNITS_PER_EPSILON), 1.0),
        (LocalHashing.for_epsilon(24, 2 * UNITS_PER_EPSILON), 23 / 24),
    ],
    ids=lambda one: type(one).__name__ if not isinstance(one, float) else f"{one:.2f}",
)
def test_a_plan_holds_for_a_cell_with_a_large_share(channel: AnyChannel, share: float) -> None:
    """800 trials, of which 95 % at least: an error is .008, so below .925 with odds of .001.

    With the answers that equal shares would need, it is at most .89 for these channels and shares:
    .925 would be found with odds of .001 again.
    """
    shares = np.full(channel.n_cells, (1 - share) / (channel.n_cells - 1))
    shares[0] = share
    within = []
    for planned_for in (None, 1 / channel.n_cells):
        n, rng = answers_needed(channel, 0.03, share=planned_for), np.random.default_rng(5)
        errors = [
            abs(estimated([simulated(channel, shares, n, rng)]).shares[0] - share)
            for _ in range(800)
        ]
        within.append(np.mean(np.array(errors) <= 0.03))
    assert within[0] >= 0.925 > within[1]


def test_more_epsilon_and_fewer_cells_need_fewer_answers() -> None:
    needs = [
        [
            answers_needed(
                RandomisedResponse.for_epsilon((1,) * n_cells, int(epsilon * UNITS_PER_EPSILON)),
                0.02,
                share=0.1,
            )
            for epsilon in (0.1, 0.25, 0.5, 1, 2)
        ]
        for n_cells in (2, 4, 6, 24)
    ]
    assert all(row == sorted(row, reverse=True) for row in needs)
    assert all(list(column) == sorted(column) for column in zip(*needs, strict=True))


def test_a_plan_for_a_campaign_is_for_its_least_precise_combination() -> None:
    campaign = survey_campaign(UNITS_PER_EPSILON)
    n = respondents_needed(campaign, 0.03)
    widths = [
        half_width(one.channel, int(n * campaign.expected_share(place)))
        for place, one in enumerate(campaign.combinations)
    ]
    assert max(widths) == pytest.approx(0.03, rel=1e-3)
    # One combination each beats a third of epsilon for three of them.
    assert n < respondents_needed(survey_campaign(UNITS_PER_EPSILON, n_answered=3), 0.03)


@pytest.mark.parametrize("n_cells", [2, 9, 100])
def test_the_epsilon_that_is_needed_is_just_enough(n_cells: int) -> None:
    units = epsilon_units_needed(n_cells, 20_000, 0.02)
    assert half_width(best_channel(n_cells, units), 20_000) <= 0.02
    assert half_width(best_channel(n_cells, units * 999 // 1000), 20_000) > 0.02


@pytest.mark.parametrize("n_cells", [9, 24, 50])
@pytest.mark.parametrize("n_answers", [2000, 3000, 10_000, 20_000])
def test_it_is_the_least_although_another_kind_of_channel_is_less_precise(
    n_cells: int, n_answers: int
) -> None:
    """Of all epsilons in steps of .01, beginning at the first or at a later one."""
    enough = [
        step
        for step in range(10, 700)
        if half_width(best_channel(n_cells, step * UNITS_PER_EPSILON // 100), n_answers) <= 0.03
    ]
    for first in (10, 205, 230):
        least = min(step for step in enough if step >= first)
        units = epsilon_units_needed(
            n_cells, n_answers, 0.03, at_least=first * UNITS_PER_EPSILON // 100
        )
        assert least - 1 < units / UNITS_PER_EPSILON * 100 <= least


def test_targets_out_of_reach_are_refused() -> None:
    channel = CHANNELS[0]
    for ask in (
        lambda: half_width(channel, 0),
        lambda: half_width(channel, 10, confidence=1.0),
        lambda: half_width(channel, 10, share=1.5),
        lambda: answers_needed(channel, 0.0),
        lambda: epsilon_units_needed(4, 10, 0.001),
        lambda: epsilon_units_needed(4, 10, 2.0),
    ):
        with pytest.raises(InvalidTarget):
            ask()
