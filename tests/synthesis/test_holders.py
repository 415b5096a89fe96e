"""Networks of several holders: what each pays for, and how close each way comes."""

from fractions import Fraction

import numpy as np
import pytest

from synthesis.holders import HoldersSettings, Structure, federated_network
from synthesis.privbayes.network import draw_rows
from tests.support.networks import GOLDEN, KnownRecords, joint

NAMES = ["A", "B", "C", "D"]


@pytest.mark.parametrize("structure", Structure)
def test_without_noise_the_golden_joint_law_is_found(structure: Structure) -> None:
    rows = draw_rows(GOLDEN, np.random.default_rng(3), n_rows=100_000).astype(np.int64)
    holders = [KnownRecords(NAMES, part) for part in np.array_split(rows, 3)]
    network = federated_network(
        GOLDEN.attributes,
        holders,
        [float(one.n_records) for one in holders],
        np.random.default_rng(5),
        budget=Fraction(1_000_000),
        structure=structure,
        settings=HoldersSettings(degree=2),
    )
    assert np.abs(joint(network) - joint(GOLDEN)).sum() / 2 < 0.01
    assert network.total == pytest.approx(100_000)
