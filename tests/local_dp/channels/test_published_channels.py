"""Channels of the literature beside ours: one that an optimisation ruins, and the best there is."""

import math
from fractions import Fraction
from itertools import permutations

import numpy as np
import pytest
from scipy.optimize import linprog

from cube.measurement import UNITS_PER_EPSILON
from local_dp.channels.channel import ratio_of_channel
from local_dp.channels.randomised_response import RandomisedResponse

HALF = Fraction(1, 2)


def test_an_answer_that_the_optimised_hybrid_gives_for_one_cell_alone_proves_it() -> None:
    """Its matrix has a column of zeros; mixed with the truth, the column is one probability."""
    optimised = [[Fraction(n, 12) for n in row] for row in ([8, 3, 1, 0], [4, 6, 2, 0])] * 2
    hybrid = [
        [HALF * entry + HALF * (i == r) for r, entry in enumerate(row)]
        for i, row in enumerate(optimised)
    ]
    assert math.isfinite(ratio_of_channel([[*row[:2], row[2] + row[3]] for row in hybrid]))
    assert ratio_of_channel(hybrid) == math.inf


@pytest.mark.parametrize(("epsilon", "kept"), [(0.5, 0.3547), (1.0, 0.4754)])
def test_no_channel_of_four_cells_is_right_more_often_than_randomised_response(
    epsilon: float, kept: float
) -> None:
    """Over all matrices of the epsilon, by linear programming: equal priors, right or wrong."""
    n = 4
    pairs = [(i, j, r) for i, j in permutations(range(n), 2) for r in range(n)]
    bounds = np.zeros((len(pairs), n, n))
    for place, (i, j, r) in enumerate(pairs):
        bounds[place, i, r], bounds[place, j, r] = 1.0, -math.exp(epsilon)
    rows = np.repeat(np.eye(n), n, axis=1)
    best = linprog(
        -np.eye(n).ravel(),
        A_ub=bounds.reshape(len(pairs), -1),
        b_ub=np.zeros(len(pairs)),
        A_eq=rows,
        b_eq=np.ones(n),
    )
    right = -float(best.fun or math.nan) / n
    assert right == pytest.approx(kept, abs=5e-5)
    channel = RandomisedResponse.for_epsilon((1,) * n, int(epsilon * UNITS_PER_EPSILON))
    ours = float(channel.keep + (1 - channel.keep) / n)
    assert ours == pytest.approx(right, abs=1e-7)
