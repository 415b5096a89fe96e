"""How much of a budget one-way tables should get, on tables not used to choose the rule.

    python -m benchmarks.synthesis_share [--quick]

Rows of random Bayesian networks of many sizes: columns, levels, rows, strength of dependence. Each
is synthesised at fixed shares and at the share of the rule (`synthesis.choice.one_way_share`), from
the same seeds. Regret is by how much the rule's error exceeds that of the best fixed share, chosen
with hindsight for that very table; a single share for all tables is measured beside it.

The noise is a textbook generator's: no private table is near.
"""

from dataclasses import dataclass
from unittest.mock import patch

import numpy as np
from numpy.typing import NDArray
from threadpoolctl import threadpool_limits

from benchmarks.marginal_distance import pairs_distance
from benchmarks.report import Bar, progress, run, wants_quick
from synthesis import choice
from synthesis.choice import LAPLACE, one_way_share
from synthesis.drawing import draw_rows
from synthesis.pairwise import measured_model
from synthesis.tables import Column
from tests.support.made_up_rows import MadeUpRows

SHARES = (0.05, 0.1, 0.15, 0.25, 0.4, 0.55, 0.75, 0.9)
EPSILONS = (0.1, 0.3, 1.0)
N_RUNS = 3  # of each table at each share: their mean is compared
N_COLUMNS = (4, 20)
N_LEVELS = (2, 64)
N_ROWS = (2_000, 100_000)
N_PARENTS_MAX = 2
N_COMBINATIONS_MAX = 1_000  # of parents' levels, each of which has a law of its own
STRENGTHS = (0.1, 0.5, 2.0)  # of a law about its column's base: the smaller, the stronger
REGRET_MEAN_MAX = 0.10


@dataclass(frozen=True, slots=True)
class MadeUpTable:
    """Rows, and what is public about them."""

    columns: tuple[Column, ...]
    rows: NDArray[np.int64]

    @property
    def sizes(self) -> list[int]:
        """The levels of each column."""
        return [column.size for column in self.columns]


def made_up(rng: np.random.Generator) -> MadeUpTable:
    """Rows of a random Bayesian network: sizes even in their logarithms, up to two parents each."""
    n_rows = int(np.exp(rng.uniform(*np.log(N_ROWS))))
    n_columns = int(rng.integers(*N_COLUMNS, endpoint=True))
    least, most = np.log(N_LEVELS)
    sizes = np.exp(rng.uniform(least, most, n_columns)).astype(np.int64)
    rows = np.empty((n_rows, n_columns), dtype=np.int64)
    for place, size in enumerate(sizes.tolist()):
        parents = rng.permutation(place)[: int(rng.integers(N_PARENTS_MAX, endpoint=True))]
        while np.prod(sizes[parents]) > N_COMBINATIONS_MAX:
            parents = parents[1:]
        given = np.zeros(n_rows, dtype=np.int64)
        for parent in parents:
            given = given * sizes[parent] + rows[:, parent]
        rows[:, place] = _drawn(given, int(np.prod(sizes[parents])), size, rng)
    columns = tuple(Column(f"c{place:02d}", size) for place, size in enumerate(sizes.tolist()))
    return MadeUpTable(columns, rows)


def _drawn(
    given: NDArray[np.int64], n_combinations: int, size: int, rng: np.random.Generator
) -> NDArray[np.int64]:
    """A level for each row, by a law of its own for each combination of its parents."""
    base = 1 / np.arange(1, size + 1) ** rng.uniform(0, 1.5)
    shape = rng.choice(STRENGTHS) * size * rng.permutation(base) / base.sum()
    weights = rng.gamma(shape, size=(n_combinations, size)) + 1e-12
    ends = np.cumsum(weights, axis=1)
    thresholds = rng.random(given.size) * ends[given, -1]
    return np.asarray((ends[given] < thresholds[:, np.newaxis]).sum(axis=1), dtype=np.int64)


def errors(table: MadeUpTable, epsilon: float) -> tuple[float, NDArray[np.float64]]:
    """The mean error of a table at the rule's share, and at each of the fixed ones."""
    by_rule = _mean_error(table, epsilon)
    fixed = []
    for share in SHARES:
        # Between equal limits the rule has no choice.
        with patch.multiple(choice, ONE_WAY_SHARE_MIN=share, ONE_WAY_SHARE_MAX=share):
            fixed.append(_mean_error(table, epsilon))
    return by_rule, np.array(fixed)


def _mean_error(table: MadeUpTable, epsilon: float) -> float:
    return float(np.mean([_error(table, epsilon, seed) for seed in range(N_RUNS)]))


def _error(table: MadeUpTable, epsilon: float, seed: int) -> float:
    measurer = MadeUpRows(table.columns, table.rows, seed)
    model = measured_model(table.columns, measurer, budget=epsilon)
    rows = draw_rows(model, np.random.default_rng(seed), n_rows=len(table.rows))
    return pairs_distance(table.rows, rows, table.sizes)


def regrets(table: MadeUpTable, epsilon: float) -> NDArray[np.float64]:
    """By how much the rule's error, then each fixed share's, exceeds that of the best share."""
    by_rule, fixed = errors(table, epsilon)
    share = one_way_share(np.array(table.sizes), len(table.rows), epsilon, LAPLACE)
    found: NDArray[np.float64] = np.array([by_rule, *fixed]) / fixed.min() - 1
    progress(
        f"epsilon {epsilon}, {table.rows.shape}: share {share:.2f} for an error of {by_rule:.4f}, "
        f"best {SHARES[int(fixed.argmin())]}, regret {found[0]:.3f}"
    )
    return found


def main() -> None:
    """Make tables up, synthesise each at every share, and report the regrets."""
    quick = wants_quick("Regret of the share of one-way tables on made-up tables.")
    threadpool_limits(limits=1)
    n_tables = 4 if quick else 24
    made = [made_up(np.random.default_rng(seed)) for seed in range(n_tables)]
    figures: dict[str, object] = {"n_tables": n_tables, "n_runs": N_RUNS}
    bars = []
    for epsilon in EPSILONS:
        found = np.array([regrets(table, epsilon) for table in made])
        mean = found.mean(axis=0).tolist()
        figures[f"epsilon {epsilon}"] = {
            "regret_mean": mean[0],
            "regret_median": float(np.median(found[:, 0])),
            "regret_max": float(found[:, 0].max()),
            "regret_mean_of_one_share_for_all": dict(zip(map(str, SHARES), mean[1:], strict=True)),
        }
        bars.append(
            Bar(f"mean regret of the rule, epsilon {epsilon}", mean[0],
                REGRET_MEAN_MAX, mean[0] <= REGRET_MEAN_MAX)
        )  # fmt: skip
    run(figures, bars)


if __name__ == "__main__":
    main()
