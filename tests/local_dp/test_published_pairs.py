"""The published protocol for overlapping tables: its loss, its bias, and how that is undone.

What is built instead, one table for each respondent, is tested in estimates/test_collection.py.
"""

import math
from fractions import Fraction

import numpy as np
import pytest

from local_dp.channels.channel import eps_of_channel
from local_dp.channels.randomised_response import RandomisedResponse
from tests.support.collections_of_answers import NAMES, survey_joint
from tests.support.pair_protocol import Stage, channel_of, emitted, recovered, uniform_stages

TABLES = ("AERS", "AERT", "EORT")
SIZES = survey_joint().shape
STAGES = uniform_stages(NAMES, SIZES, TABLES)


def loss(keep: float) -> float:
    """Stages in turn: their losses add up."""
    return sum(math.log(1 + keep / ((1 - keep) * stage.least)) for stage in STAGES)


@pytest.mark.parametrize(("keep", "claimed", "lost"), [(0.5, 0.693, 5.70), (0.221, 0.25, 3.12)])
def test_three_tables_of_the_survey_lose_many_times_what_is_claimed(
    keep: float, claimed: float, lost: float
) -> None:
    assert [round(1 / stage.least) for stage in STAGES] == [24, 3, 2]
    assert -math.log(1 - keep) == pytest.approx(claimed, abs=5e-4)
    assert loss(keep) == pytest.approx(lost, abs=5e-3)


@pytest.mark.parametrize(
    ("keep", "claimed", "lost"), [("1/2", 0.693, 5.50), ("221/1000", 0.25, 2.75)]
)
def test_three_combinations_of_one_view_lose_the_sum_of_their_losses(
    keep: str, claimed: float, lost: float
) -> None:
    """A x R, E x O and S x T, each with a coin of its own."""
    of_each = [
        float(eps_of_channel(RandomisedResponse.uniform(n_cells, Fraction(keep)).matrix()))
        for n_cells in (6, 4, 6)
    ]
    assert sum(of_each) == pytest.approx(lost, abs=5e-3)
    assert sum(of_each) > 7 * claimed


def test_the_sum_of_losses_is_that_of_the_whole_channel() -> None:
    """Tables a b and b c, of two levels each: all 64 probabilities, with fakes of any kind."""
    half = Fraction(1, 2)
    equal = (
        Stage((0, 1), np.full((1, 1, 1), Fraction(1, 4))),
        Stage((2,), np.full((1, 1, 1), half)),
    )
    declared = math.log(1 + 4) + math.log(1 + 2)
    assert float(eps_of_channel(channel_of(equal, half, (2, 2, 2)))) == pytest.approx(declared)
    uneven = (
        Stage((0, 1), np.array([[1, 2], [3, 4]], dtype=object)[:, :, None] * Fraction(1, 10)),
        Stage((2,), np.array([[1, 3], [2, 2]], dtype=object)[None] * Fraction(1, 4)),
    )
    matrix = channel_of(uneven, half, (2, 2, 2))
    assert all(sum(row) == 1 for row in matrix)
    declared = math.log(1 + 10) + math.log(1 + 4)
    assert float(eps_of_channel(matrix)) <= declared + 1e-9
    # The law of what is sent is that of the matrix: the operators of the stages are these coins.
    shares = np.random.default_rng(1).dirichlet(np.ones(8))
    sent = emitted(shares.reshape(2, 2, 2), [floats(one) for one in uneven], 0.5)
    assert np.allclose(sent.ravel(), shares @ np.array(matrix, dtype=float), rtol=0, atol=1e-15)


def floats(stage: Stage) -> Stage:
    return Stage(stage.new, stage.fakes.astype(float))


@pytest.mark.parametrize(
    ("keep", "biases"), [(0.5, (0.0, 0.196, 0.365)), (0.221, (0.0, 0.306, 0.557))]
)
def test_the_published_estimator_is_biased_for_every_table_but_the_first(
    keep: float, biases: tuple[float, ...]
) -> None:
    """As many respondents as one likes: the sum of absolute errors of each table."""
    sent = emitted(survey_joint(), STAGES, keep)
    for table, bias in zip(TABLES, biases, strict=True):
        others = tuple(axis for axis, name in enumerate(NAMES) if name not in table)
        truth, seen = survey_joint().sum(axis=others), sent.sum(axis=others)
        naive = (seen - (1 - keep) / truth.size) / keep
        assert np.abs(naive - truth).sum() == pytest.approx(bias, abs=5e-4)


def test_undoing_the_stages_in_reverse_recovers_the_truth_and_forwards_does_not() -> None:
    rng = np.random.default_rng(2)
    stages = []
    for table, stage in zip(TABLES, STAGES, strict=True):
        axes = {NAMES.index(name) for name in table}
        shape = [size if axis in axes else 1 for axis, size in enumerate(SIZES)]
        fakes = rng.random(shape) + 0.1
        fakes /= fakes.sum(axis=stage.new, keepdims=True)
        stages.append(Stage(stage.new, fakes))
    sent = emitted(survey_joint(), stages, 0.3)
    assert sent.sum() == pytest.approx(1)
    found = recovered(sent, stages, 0.3)
    assert np.allclose(found, survey_joint(), rtol=0, atol=1e-14)
    assert not np.allclose(recovered(sent, stages[::-1], 0.3), survey_joint(), rtol=0, atol=1e-3)
