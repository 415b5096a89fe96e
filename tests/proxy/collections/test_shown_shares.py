"""Shares that are shown: all at once within their width, and the likeliest ones."""

from collections.abc import Sequence
from fractions import Fraction

import numpy as np
import pytest
from scipy.special import ndtri

from cube.refusals import InvalidRequest, InvalidTarget
from local_dp.campaign import Campaign
from local_dp.channels.channel import Floats
from local_dp.estimates.collection import CollectionEstimates
from local_dp.estimates.likelihood import likeliest
from local_dp.estimates.shares import Tally, estimated
from proxy.collections.table import estimated_shares, likeliest_shares
from tests.support.answering import simulated
from tests.support.campaigns import hashing, survey

NAMES = ("education", "region")


def answered(
    campaign: Campaign, truths: Sequence[Floats], n: int, rng: np.random.Generator
) -> CollectionEstimates:
    """So many answers to each combination, of populations with these shares."""
    tallies = {
        place: [simulated(one.channel, truth, n, rng)]
        for place, (one, truth) in enumerate(zip(campaign.combinations, truths, strict=True))
    }
    return CollectionEstimates(campaign, tallies, n * len(tallies))


def test_all_shares_at_once_are_within_their_width() -> None:
    """12 cells of a combination, 300 trials: .92 at least, missed with odds of .02; seeded.

    The width that single intervals have would hold all cells in about half of them.
    """
    campaign = survey(epsilon=Fraction(3))
    rng = np.random.default_rng(3)
    joint = rng.dirichlet(np.full(24, 1.0)).reshape(3, 4, 2)  # education, region, smokes
    axes = {"education": 0, "region": 1, "smokes": 2}
    truths = [
        joint.sum(axis=tuple(axes[name] for name in axes if name not in one.scope)).ravel()
        for one in campaign.combinations
    ]
    truth = joint.sum(axis=2).ravel()
    n_together = n_single = 0
    for _ in range(300):
        found = estimated_shares(answered(campaign, truths, 3000, rng), NAMES, 0.95)
        errors = np.abs([one.share for one in found] - truth)
        n_together += bool(errors.max() <= max(one.half_width_together for one in found))
        n_single += all(
            one.low <= share <= one.high for one, share in zip(found, truth, strict=True)
        )
    assert n_together >= 276
    assert n_single < 240


def test_the_width_of_all_is_by_bonferroni() -> None:
    """A normal law's: the quantile at confidence .95 of one cell in 4, by hand."""
    campaign = hashing()
    truth = np.array([0.4, 0.3, 0.2, 0.1])
    rng = np.random.default_rng(1)
    estimates = answered(campaign, [truth], 200_000, rng)
    shares = estimated_shares(estimates, ["region"], 0.95)
    assert {one.method for one in shares} == {"normal"}
    for one in shares:
        single = (one.high - one.low) / 2
        together = single * ndtri(1 - 0.05 / 8) / ndtri(0.975)
        assert one.half_width_together == pytest.approx(together, rel=1e-6)


def test_the_likeliest_shares_of_a_combination_and_of_its_attributes() -> None:
    campaign = survey()
    rng = np.random.default_rng(5)
    n_cells = [one.channel.n_cells for one in campaign.combinations]
    truths = [np.eye(size)[0] for size in n_cells]  # where inversion is negative
    estimates = answered(campaign, truths, 400, rng)
    (place,) = campaign.covering(NAMES)
    found = likeliest_shares(estimates, ["region", "education"])
    assert (found.combination, found.n_answers, found.gap) == (NAMES, 400, 0.0)
    shares = np.array([share for _, share in found.cells])
    expected = likeliest(estimated(estimates.tallies[place])).shares
    assert np.array_equal(shares, expected)
    assert shares.min() == 0
    assert min(one.share for one in estimated_shares(estimates, NAMES, 0.95)) < 0
    levels = [levels for levels, _ in found.cells]
    assert levels[:5] == [("none", 1), ("none", 2), ("none", 3), ("none", 4), ("school", 1)]
    # Of one attribute, those of the more precise of the two combinations that have it, summed.
    alone = likeliest_shares(estimates, ["education"])
    assert alone.combination == ("education", "smokes")
    (place,) = campaign.covering(alone.combination)
    summed = likeliest(estimated(estimates.tallies[place])).shares.reshape(3, 2).sum(axis=1)
    assert [share for _, share in alone.cells] == pytest.approx(summed.tolist())


def test_likeliest_shares_by_hashing_say_how_far_they_came() -> None:
    estimates = answered(
        hashing(), [np.array([0.4, 0.3, 0.2, 0.1])], 2000, np.random.default_rng(2)
    )
    found = likeliest_shares(estimates, ["region"])
    assert 0 < found.gap <= 1e-6
    assert sum(share for _, share in found.cells) == pytest.approx(1)


def test_likeliest_shares_refuse_what_unbiased_ones_refuse() -> None:
    nobody = CollectionEstimates(survey(), {}, 0)
    for names in (["income"], [], ["education"]):
        with pytest.raises(InvalidRequest) as ours:
            likeliest_shares(nobody, names)
        with pytest.raises(InvalidRequest) as theirs:
            estimated_shares(nobody, names, 0.95)
        assert (ours.value.message, ours.value.hint) == (theirs.value.message, theirs.value.hint)
    one = {0: [Tally.of_answers(survey().combinations[0].channel, [0])]}
    with pytest.raises(InvalidRequest, match="together"):
        likeliest_shares(CollectionEstimates(survey(), one, 1), ["education", "region", "smokes"])


@pytest.mark.parametrize("confidence", [0.0, 1.0, -1.0, float("nan"), 1 - 2.0**-53])
def test_a_confidence_that_leaves_nothing_for_each_cell_is_refused(confidence: float) -> None:
    estimates = answered(hashing(), [np.full(4, 0.25)], 10, np.random.default_rng(1))
    with pytest.raises(InvalidTarget):
        estimated_shares(estimates, ["region"], confidence)
