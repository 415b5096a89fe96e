"""Coverage of the intervals of collections and of streams, at 95 %.

    python -m benchmarks.coverage_private [--quick]

Collections are simulated: each of the three channels, for 4, 24 and 500 cells. Streams twice: by
the exact law of what is released, and by drawing users, bits and noise anew, without that law; for
all of a universe, a sample of it, and buckets, where 1 %, 30 % and 90 % of places are occupied.
Each coverage has its standard error beside it: intervals of one collection share their answers, so
that its collections count, not its intervals. A deviation that is wrong by a tenth covers 92.2 or
96.9 %, which is outside of the bar.

Exact intervals of few answers, which cover at least what they say, are tested by enumeration
(tests/local_dp/estimates/test_answers.py), and have no bar above.
"""

import math
from dataclasses import dataclass
from fractions import Fraction
from itertools import product

import numpy as np
from numpy.typing import NDArray

from benchmarks.report import Bar, progress, run, wants_quick
from local_dp.channels.choice import AnyChannel
from streams.estimates import count_interval, ones_law
from streams.mechanism import Mechanism, best_mechanism
from streams.population import Buckets, Everyone, Population, Sample
from tests.support.covered_answers import CONFIDENCE, KINDS, SIZES, covered

LEAST, MOST = 0.94, 0.96
DENSITIES = (0.01, 0.3, 0.9)
KEY = bytes(range(16))
POPULATIONS: tuple[Population, ...] = (
    Everyone(5000),
    Sample(20_000, 2000, KEY),
    Buckets(2000, KEY),
)
N_COLLECTIONS = {4: 8000, 24: 2000, 500: 500}
N_RELEASES = 40_000
QUICK = 4  # times fewer


@dataclass(frozen=True)
class Coverage:
    """A coverage, and the standard error of its simulation."""

    what: str
    coverage: float
    standard_error: float

    def bar(self) -> Bar:
        """It lies within the bar, as it was found: no allowance is made for the error."""
        holds = LEAST <= self.coverage <= MOST
        return Bar(f"coverage, {self.what}, .94 to .96", self.coverage, CONFIDENCE, holds)


def of_collections(kind: type[AnyChannel], n_cells: int, n_trials: int) -> Coverage:
    """All intervals of many collections."""
    found = covered(kind, n_cells, n_trials=n_trials, seed=0)
    error = float(found.std()) / math.sqrt(n_trials)
    return Coverage(f"{kind.__name__}, {n_cells} cells", float(found.mean()), error)


def of_streams(
    population: Population, density: float, n_releases: int
) -> tuple[Coverage, Coverage]:
    """By the law, and of releases that are drawn."""
    mechanism = best_mechanism(Fraction(1), population.n_bits)
    n_users = round(population.users(density))
    holding = truly_held(population, mechanism, n_users)
    what = f"{type(population).__name__}, {density} of {population.n_bits} bits"
    law = ones_law(mechanism, population.n_bits, population.occupied(n_users))
    by_law = law.probability_at_most(holding[1]) - law.probability_at_most(holding[0] - 1)
    drawn = releases(population, mechanism, n_users, n_releases)
    held = (holding[0] <= drawn) & (drawn <= holding[1])
    share = float(held.mean())
    error = math.sqrt(share * (1 - share) / n_releases)
    return Coverage(f"{what}, by law", by_law, 0.0), Coverage(f"{what}, drawn", share, error)


def truly_held(population: Population, mechanism: Mechanism, n_users: int) -> tuple[int, int]:
    """The least and the greatest number of noisy ones whose interval holds the number of users.

    Intervals move up with what is released, so that those in between hold it as well.
    """

    def interval(ones: int) -> tuple[float, float]:
        found = count_interval(ones, population, mechanism, CONFIDENCE)
        return found.low, found.high

    middle = round(population.occupied(n_users).values.mean())
    centre = round(
        float(population.n_bits * mechanism.state.p0 + middle * mechanism.state.separation)
    )
    ends = []
    for step in (-1, 1):
        inside, beyond = (
            0,
            math.ceil(
                8
                * math.sqrt(
                    float(mechanism.variance_of_ones(population.n_bits)) + population.n_bits
                )
            ),
        )
        while beyond - inside > 1:
            tried = (inside + beyond) // 2
            low, high = interval(centre + step * tried)
            inside, beyond = (tried, beyond) if low <= n_users <= high else (inside, tried)
        ends.append(centre + step * inside)
    return ends[0], ends[1]


def releases(
    population: Population, mechanism: Mechanism, n_users: int, n: int
) -> NDArray[np.int64]:
    """Noisy numbers of ones, from users who are drawn: nothing of the law is used."""
    rng = np.random.default_rng(n_users)
    n_bits = population.n_bits
    match population:
        case Sample():
            occupied = rng.hypergeometric(n_users, population.universe - n_users, n_bits, n)
        case Buckets():
            occupied = np.array(
                [np.unique(rng.integers(0, n_bits, n_users)).size for _ in range(n)]
            )
        case _:
            occupied = np.full(n, n_users)
    ones = rng.binomial(occupied, float(mechanism.state.p1))
    ones += rng.binomial(n_bits - occupied, float(mechanism.state.p0))
    one, other = rng.geometric(float(1 - mechanism.output.alpha), (2, n))
    return np.asarray(ones + one - other)


def main() -> None:
    """Run the benchmark."""
    fewer = QUICK if wants_quick("coverage of collections' and streams' intervals") else 1
    found: list[Coverage] = []
    for kind, n_cells in product(KINDS, SIZES):
        found.append(of_collections(kind, n_cells, N_COLLECTIONS[n_cells] // fewer))
        progress(f"{found[-1]}")
    for population, density in product(POPULATIONS, DENSITIES):
        found += of_streams(population, density, N_RELEASES // fewer)
        progress(f"{found[-2]}, {found[-1]}")
    run({"coverages": [vars(one) for one in found]}, [one.bar() for one in found])


if __name__ == "__main__":
    main()
