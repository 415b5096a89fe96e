"""Networks of randomised answers beside columns by themselves: which is nearer to the population.

    python -m benchmarks.answered_networks [--quick]

Collections of populations whose law is known (`tests.support.populations`), in pairs or triples.
Of each, a synthetic table is made by privbayes at its default degree, and one at degree 0. Figures
are the mean total variation of the law of all columns from the population's, and how many parents
all columns have together. A network is worse than none where its mean excess is above 0 by more
than three standard errors and `EXCESS_MAX`: at `FALSE_ODDS`, a network has a parent by chance.
"""

import math
from dataclasses import asdict, dataclass

import numpy as np

from benchmarks.report import Bar, progress, run, wants_quick
from tests.support.populations import LAWS, asked, distance, n_arcs, network_of

DEGREE = 3
N_RUNS, QUICK_N_RUNS = 20, 5
N_ERRORS = 3.0
EXCESS_MAX = 0.005
GAINED = -0.03  # where dependences are strong
STRONG = 4  # an epsilon at which they are seen
CASES = (  # law, columns asked together, epsilon, respondents
    ("survey", 2, 1, 5_000),
    ("survey", 2, 1, 20_000),
    ("survey", 3, 1, 20_000),
    ("survey", 3, 2, 20_000),
    ("survey", 3, 4, 20_000),
    ("independent", 2, 1, 5_000),
    ("independent", 2, 2, 20_000),
    ("independent", 3, 1, 20_000),
    ("independent", 3, 4, 20_000),
    ("wide chain", 2, 1, 20_000),
    ("wide chain", 2, 4, 20_000),
    ("wide chain", 2, 4, 100_000),
    ("chain of bits", 2, 1, 5_000),
    ("chain of bits", 2, 2, 20_000),
    ("chain of bits", 3, 1, 20_000),
    ("chain of bits", 3, 4, 20_000),
    ("parity", 3, 1, 5_000),
    ("parity", 3, 2, 20_000),
    ("adult", 2, 1, 5_000),
    ("adult", 2, 1, 20_000),
    ("adult", 2, 4, 20_000),
    ("adult", 3, 1, 20_000),
    ("adult", 3, 2, 20_000),
    ("adult", 3, 4, 20_000),
)


@dataclass(frozen=True, slots=True)
class Compared:
    """Mean distances of a case, and their difference with its standard error."""

    law: str
    width: int
    epsilon: int
    n_respondents: int
    network: float
    no_parents: float
    excess: float
    error: float
    n_parents: float

    @property
    def name(self) -> str:
        """The case in words."""
        kind = f"{self.law}, {self.width} columns, epsilon {self.epsilon}"
        return f"{kind}, {self.n_respondents} respondents"


def compared(law: str, width: int, epsilon: int, n: int, n_runs: int) -> Compared:
    """A case, over so many collections."""
    true, found, parents = LAWS[law](), [], []
    for seed in range(n_runs):
        table = asked(true, width, epsilon, n, seed)
        network = network_of(table, DEGREE, seed)
        found.append((distance(network, true), distance(network_of(table, 0, seed), true)))
        parents += n_arcs([network])
    both = np.array(found)
    excess = both[:, 0] - both[:, 1]
    return Compared(
        law=law,
        width=width,
        epsilon=epsilon,
        n_respondents=n,
        network=float(both[:, 0].mean()),
        no_parents=float(both[:, 1].mean()),
        excess=float(excess.mean()),
        error=float(excess.std(ddof=1)) / math.sqrt(n_runs),
        n_parents=float(np.mean(parents)),
    )


def main() -> None:
    """Compare every case."""
    n_runs = QUICK_N_RUNS if wants_quick(__doc__ or "") else N_RUNS
    rows, bars = [], []
    for case in CASES:
        one = compared(*case, n_runs)
        rows.append(one)
        progress(f"{one.name}: {one.network:.3f}, without parents {one.no_parents:.3f}")
        worst = max(EXCESS_MAX, N_ERRORS * one.error)
        bars.append(Bar(f"{one.name}: excess", one.excess, worst, one.excess <= worst))
        if one.epsilon >= STRONG and one.law in {"survey", "chain of bits", "adult"}:
            bars.append(Bar(f"{one.name}: gain", one.excess, GAINED, one.excess <= GAINED))
    run({"cases": [asdict(one) for one in rows], "n_runs": n_runs}, bars)


if __name__ == "__main__":
    main()
