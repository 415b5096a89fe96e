"""A few of the random targets of `benchmarks.relative_targets`."""

import numpy as np

from benchmarks.relative_targets import SPEND_MAX, outcome, random_case

N_TARGETS = 12


def test_random_targets_cost_about_what_asking_at_once_costs() -> None:
    """A raise costs the exact difference, so that noise has little part in it.

    Of 480 targets one took more, at 1.46, as its search ended short of the target; that two of
    twelve do happens less than once in a thousand times.
    """
    rng = np.random.default_rng(4)
    found = [outcome(random_case(rng)) for _ in range(N_TARGETS)]
    assert sum(one.spend > SPEND_MAX for one in found) <= 1
    assert all(one.spend <= SPEND_MAX for one in found if one.was_met)
    assert all(one.again == 0 for one in found)
