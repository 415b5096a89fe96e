"""An epoch that counts visits: what it notes, what it releases, and what it refuses."""

from fractions import Fraction
from pathlib import Path

import numpy as np
import pytest

from cube.refusals import InvalidRequest
from streams.arrivals import Arrivals
from streams.counters import best_counter_mechanism
from streams.epoch import Epoch
from streams.mechanism import best_mechanism
from streams.population import Buckets, Everyone
from streams.visit_epoch import VisitEpoch
from streams.visit_estimates import at_least, visits_up_to

N_USERS, LEVELS = 3000, 4
MECHANISM = best_counter_mechanism(Fraction(8), N_USERS, LEVELS)
EPOCH = VisitEpoch("visits", "all", Everyone(N_USERS), MECHANISM, ("paid",))
DEVIATIONS = 6  # odds of one in 500 million


def test_each_event_is_a_visit_of_the_estimators_that_count_it(tmp_path: Path) -> None:
    state = EPOCH.created(tmp_path / "state")
    ids = np.repeat(np.arange(N_USERS), np.arange(N_USERS) % 3)  # 0, 1 or 2 visits
    EPOCH.observe(state, Arrivals(ids, where={"paid": ids % 3 == 2}))
    EPOCH.observe(state, Arrivals(ids[ids % 3 == 1], where={"paid": True}))
    done = EPOCH.released(state)
    assert done.released(state) is done, "a second release is the first"
    state.erase()
    for predicate, truth in ((None, 4000), ("paid", 3000)):
        sums = done.visits(predicate).estimate(visits_up_to(LEVELS, LEVELS))
        assert abs(sums.n_users - truth) < DEVIATIONS * sums.law.gaussian
        assert DEVIATIONS * sums.law.gaussian < 900, "another estimator's number is seen"
        twice = done.visits(predicate).estimate(at_least(2, LEVELS))
        assert abs(twice.n_users - (2000 if predicate is None else 1000)) < 700
    assert abs(done.count().n_users - 2000) < 700
    with pytest.raises(InvalidRequest, match="is over"):
        done.observe(state, Arrivals(ids))


def test_each_release_draws_noise_of_its_own(tmp_path: Path) -> None:
    state = EPOCH.created(tmp_path / "state")
    assert len(EPOCH.noisy_numbers(state)) == 2 * LEVELS
    found = {EPOCH.noisy_numbers(state) for _ in range(20)}
    state.close()
    assert len(found) > 1


def test_what_cannot_be_counted_is_refused(tmp_path: Path) -> None:
    state = EPOCH.created(tmp_path / "state")
    before = (tmp_path / "state").read_bytes()
    ids = np.array([1, 2])
    for wrong, said in (
        (Arrivals(ids, present=False), "without departures"),
        (Arrivals(ids, where={"old": True}), "with this predicate"),
        (Arrivals(np.array([1, N_USERS])), "outside the universe"),
    ):
        with pytest.raises(InvalidRequest, match=said):
            EPOCH.observe(state, wrong)
    assert (tmp_path / "state").read_bytes() == before
    bits = Epoch("a", "all", Everyone(10), best_mechanism(Fraction(1), 10))
    with pytest.raises(TypeError, match="state of bits"):
        bits.observe(state, Arrivals(ids))
    other = bits.created(tmp_path / "bits")
    with pytest.raises(TypeError, match="state of cells"):
        EPOCH.observe(other, Arrivals(ids))
    other.close()
    state.close()
    with pytest.raises(ValueError, match="not released"):
        EPOCH.visits()
    with pytest.raises(ValueError, match="buckets"):
        VisitEpoch("a", "all", Buckets(10, bytes(16)), MECHANISM)
    with pytest.raises(ValueError, match="for each level"):
        VisitEpoch("a", "all", Everyone(10), MECHANISM, noisy=(1,))
