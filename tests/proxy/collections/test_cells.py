"""The cells of a collection: shares with intervals, within the time that a call may take."""

import numpy as np
import pytest

from cube.pace import paced
from cube.refusals import TooSlow
from proxy.collections.cells import estimated_shares
from tests.support.respondents import campaign_of, collected, true_rows
from tests.support.steps import Counted

CAMPAIGN = campaign_of(2)


def test_cells_are_worked_out_at_the_pace_of_the_call() -> None:
    rng = np.random.default_rng(1)
    estimates = collected(CAMPAIGN, true_rows(CAMPAIGN, 3000, rng), rng)
    names = ("education", "years")
    pace = Counted(10**6)
    with paced(pace):
        cells = estimated_shares(estimates, names, 0.95)
    assert len(cells) == 12
    assert sum(one.share for one in cells) == pytest.approx(1, abs=1e-9)
    n_steps = 10**6 - pace.n_left
    assert n_steps > len(cells)
    for n_allowed in range(0, n_steps, 7):
        with paced(Counted(n_allowed)), pytest.raises(TooSlow):
            estimated_shares(estimates, names, 0.95)
