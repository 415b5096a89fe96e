"""Three statistics of visits, from whole streams: error, coverage, loss, and the published form.

The users who came at least 5 times, those who came exactly 3 times, and the sum of visits up to 10
of each. Beside ours stands the form that is published for a density: bits of 1/2 and
``1/2 + epsilon / 4``, half of epsilon for the state, and Laplace noise for what a user moves the
true statistic by. Its loss is found by walking; it is shown once as printed, and once with the
noise that keeps what it promises. Part of `pan_private`.
"""

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from fractions import Fraction
from itertools import product
from pathlib import Path
from time import process_time
from typing import Final

import numpy as np
from numpy.typing import NDArray

from streams.arrivals import Arrivals
from streams.counters import CounterMechanism, best_counter_mechanism
from streams.population import Everyone
from streams.visit_epoch import CellState, VisitEpoch
from streams.visit_estimates import Statistic, at_least, exactly, visits_up_to
from tests.support.counted_visits import LOOK, RELEASE, WalkedCounter, largest_ratio

N_USERS: Final = 10_000
LEVELS: Final = 10
EPSILONS: Final = (1, 2)
CONFIDENCE: Final = 0.95
STATISTICS: Final = {
    "at least 5 visits": at_least(5, LEVELS),
    "exactly 3 visits": exactly(3, LEVELS),
    "visits up to 10": visits_up_to(LEVELS, LEVELS),
}
N_INTERVALS: Final = 20  # that are computed as a whole, and compared


@dataclass(frozen=True)
class StatisticErrors:
    """One statistic at one epsilon; errors are root mean squares for a user, so of a share or mean.

    `published_loss` is what the published form loses, where it promises `epsilon`.
    """

    statistic: str
    epsilon: float
    truth: float
    ours: float
    measured: float
    coverage: float
    published: float
    published_loss: float
    published_corrected: float


def errors_of_visits(n_streams: int, folder: Path) -> list[StatisticErrors]:
    """All statistics at all epsilons, of streams that are run: state file, arrivals, release."""
    rng = np.random.default_rng(17)  # of the streams; what protects them is the system's
    visits = rng.negative_binomial(1, 0.25, N_USERS)
    ids = rng.permutation(np.repeat(np.arange(N_USERS), visits))
    found = []
    for epsilon in EPSILONS:
        mechanism = best_counter_mechanism(Fraction(epsilon), N_USERS, LEVELS)
        epoch = VisitEpoch("benchmark", str(epsilon), Everyone(N_USERS), mechanism)
        released = []
        for number in range(n_streams):
            state = epoch.created(folder / f"visits-{epsilon}-{number}")
            epoch.observe(state, Arrivals(ids))
            released.append(epoch.released(state).visits())
            state.erase()
        for name, statistic in STATISTICS.items():
            truth = int(statistic.weights[np.minimum(visits, LEVELS)].sum())
            estimates = [one.estimate(statistic) for one in released]
            errors = np.array([one.n_users for one in estimates]) - truth
            is_covered = []
            for place, one in enumerate(estimates):
                law = one.sum_law(truth)
                outer = (1 - CONFIDENCE) / 2
                at_most = law.probability_at_most(one.noisy_sum)
                at_least_so = 1 - law.probability_at_most(one.noisy_sum - 1)
                is_covered.append(min(at_most, at_least_so) > outer)
                if place < N_INTERVALS:
                    interval = one.interval(CONFIDENCE)
                    if is_covered[-1] != (interval.low <= truth <= interval.high):
                        raise RuntimeError("an interval differs from the test that it inverts")
            printed = PublishedForm(statistic, epsilon / 2)
            found.append(
                StatisticErrors(
                    statistic=name,
                    epsilon=epsilon,
                    truth=truth / N_USERS,
                    ours=estimates[0].law.gaussian / N_USERS,
                    measured=math.sqrt(float(np.mean(errors**2))) / N_USERS,
                    coverage=float(np.mean(is_covered)),
                    published=printed.error(printed.printed_rate),
                    published_loss=printed.loss(printed.printed_rate),
                    published_corrected=printed.error(printed.private_rate(epsilon)),
                )
            )
    return found


@dataclass(frozen=True)
class PublishedForm:
    """A statistic by the bits and the noise that are published for a density.

    Parameters
    ----------
    statistic : Statistic
    epsilon : float
        Of the state, and as much of the release.
    """

    statistic: Statistic
    epsilon: float

    @property
    def signal(self) -> float:
        """By how much presence raises the mean of a bit."""
        return self.epsilon / 4

    @property
    def printed_rate(self) -> float:
        """The rate of the noise for a unit of the signed sum.

        The true statistic moves by its largest weight, so the noise of its mean is of scale ``w /
        (epsilon n)``; a unit of the sum moves the mean by ``levels / (2 signal n)``.
        """
        weight = max(map(abs, self.statistic.values))
        return self.epsilon * LEVELS / (2 * self.signal * weight)

    def private_rate(self, epsilon: float) -> float:
        """The largest rate with which state and release lose `epsilon`: by the largest move."""
        state = -math.log(1 - 2 * self.signal)
        sums = [step * sign for step in self.statistic.steps for sign in (-1, 1)]
        return (epsilon - state) / (max(sums) - min(sums))

    def error(self, rate: float) -> float:
        """The root mean squared error of the mean over users; an absent user's bit is a coin.

        The variance of a cell is at most the mean square of its step, and nearly that.
        """
        squares = sum(step**2 for step in self.statistic.steps) / LEVELS
        of_sum = N_USERS * squares + 2 / rate**2
        return LEVELS / (2 * self.signal * N_USERS) * math.sqrt(of_sum)

    def loss(self, rate: float) -> float:
        """What a look and the release lose, by walking numbers of visits before and after it."""
        p1 = 0.5 + self.signal
        steps = self.statistic.steps
        outputs = np.arange(-8, 9) / 4
        most = 0.0
        lives = range(LEVELS + 1)
        for c, b in product(range(LEVELS), (0, 1)):
            of_state = [0.5 if v <= c else (p1 if b else 1 - p1) for v in lives]
            laws = []
            for after in lives:
                here = steps[(c + after) % LEVELS]
                ones = float(b) if c + after < LEVELS else p1
                laws.append(
                    ones * np.exp(-rate * np.abs(outputs - here))
                    + (1 - ones) * np.exp(-rate * np.abs(outputs + here))
                )
            seen = np.array(laws)
            ratio = float((seen.max(axis=0) / seen.min(axis=0)).max())
            most = max(most, ratio * max(of_state) / min(of_state))
        return math.log(most)


def walked_losses() -> list[dict[str, float]]:
    """What is built loses, by walking all lives: of the state alone, and of all that is seen."""
    found = []
    for levels, n_releases, moments in (
        (2, 1, (LOOK, RELEASE)),
        (3, 1, (LOOK, RELEASE)),
        (2, 2, (RELEASE, LOOK, RELEASE)),
    ):
        for epsilon in EPSILONS:
            mechanism = best_counter_mechanism(Fraction(epsilon), 1000, levels, n_releases)
            state = largest_ratio(WalkedCounter(mechanism, (LOOK,)), levels + 1)
            walked = largest_ratio(WalkedCounter(mechanism, moments), 1 + (n_releases == 1))
            found.append(
                {
                    "levels": levels,
                    "releases": n_releases,
                    "declared": epsilon,
                    "walked": math.log(walked),
                    "of_state": math.log(state),
                    # Of who took even odds that a user came, after a look at the state.
                    "conviction": float(state / (1 + state)),
                }
            )
    return found


def visits_a_second(folder: Path, n_visits: int) -> float:
    """Processor time, of ids that are there already; calls of 65,536."""
    mechanism: CounterMechanism = best_counter_mechanism(Fraction(1), N_USERS, LEVELS)
    state = CellState.created(folder / "visits", 100_000, mechanism, bytes(32))
    ids: NDArray[np.int64] = np.random.default_rng(0).integers(0, 100_000, n_visits)
    started = process_time()
    for some in np.array_split(ids, max(1, n_visits // 2**16)):
        state.visit(some)
    rate = n_visits / (process_time() - started)
    state.erase()
    return rate


def widest_miss(rows: Sequence[StatisticErrors], of: Callable[[StatisticErrors], float]) -> float:
    """The largest distance of a figure from what it is to be."""
    return max(abs(of(row)) for row in rows)
