"""Synthetic tables of several holders: the seeds' three ways, ours, `pairwise`, and FLAIM.

    python -m benchmarks.federation [--quick]

    networks    T1 and T2, 40,000 rows of 3 holders: cross entropy by epsilon, the seeds' and ours
    tables      Adult and Poker, divided in five ways: distance of pairs, cross entropy and
                divergence of a held-out fifth, accuracy of classifiers, bytes and rounds
    pairwise    3 and 10 holders beside one with all rows
    flaim       FLAIM and AugFLAIM beside `pairwise`, at the same epsilon and delta

Networks are learned for one row replaced by another, everything else for one row added or removed
(federation_ways.py). Noise here is a textbook generator's.

A bar that says *no worse* holds if the difference of two means is not above 0 by more than three of
its standard errors: its value is the difference less these, the largest over all epsilons. A bar
that says *at most* has them on its other side. Accuracies need the extra `bench`.
"""

import math
import os
import warnings
from collections.abc import Callable, Iterator, Mapping, Sequence
from concurrent.futures import ProcessPoolExecutor
from dataclasses import asdict, dataclass
from functools import cache
from itertools import product
from multiprocessing import get_context
from typing import Final, TypeAlias

import numpy as np
from threadpoolctl import threadpool_limits

from benchmarks import federation_tables as tables
from benchmarks.federation_flaim import DELTA, Variant, flaim
from benchmarks.federation_scores import (
    HAS_CLASSIFIERS,
    Scores,
    accuracy,
    exact_cross_entropy,
    majority,
    scored,
)
from benchmarks.federation_seed import WAYS, Holder, Sent, greedy, independent
from benchmarks.federation_tables import Division, Table, divided
from benchmarks.federation_ways import OURS, SEED, learned, pairwise_rows
from benchmarks.marginal_distance import pairs_distance
from benchmarks.report import Bar, progress, run, wants_quick

DEGREES: Final = (1, 2)
OF_SEED: Final = (0.01, 0.03, 0.1, 0.3, 1.0)  # epsilons of the seeds' figures of cross entropy
OF_TABLES: Final = (0.02, 0.1, 0.5, 2.0, 20.0)
OF_DIVISIONS: Final = (0.5, 2.0)
OF_PAIRWISE: Final = (0.1, 1.0, 5.0)
OF_FLAIM: Final = (0.1, 1.0, 5.0)
N_HOLDERS, MORE_HOLDERS = 3, 10
ERRORS: Final = 3.0  # standard errors
ROOT_MAX: Final = math.sqrt(N_HOLDERS) * 1.1
VARIANTS: Final = {
    "FLAIM": Variant(augmented=False, trusted_sum=False),
    "AugFLAIM": Variant(trusted_sum=False),
    "FLAIM, trusted sum": Variant(augmented=False),
    "AugFLAIM, trusted sum": Variant(),
}
NOT_HERE: Final = {
    "heart": "no package at hand has the Heart Disease data of the seeds",
    "diabetes": "no package at hand has the table of 130 hospitals (scikit-learn's is another)",
}

Found: TypeAlias = dict[tuple[object, ...], dict[str, float]]


@dataclass(frozen=True, slots=True)
class Sizes:
    """How often everything is run."""

    networks: int
    tables: int
    pairwise: int
    flaim: int
    kinds: tuple[Division, ...] = tuple(Division)
    epsilons: tuple[float, ...] = OF_TABLES


FULL: Final = Sizes(networks=24, tables=2, pairwise=4, flaim=2)
QUICK: Final = Sizes(
    networks=6, tables=1, pairwise=2, flaim=1, kinds=(Division.EQUAL,), epsilons=(0.5, 2.0)
)


@dataclass(frozen=True, slots=True)
class Task:
    """One run of one part, with the seed of its noise."""

    part: str
    table: str
    seed: int
    sizes: Sizes


@cache
def table_named(name: str) -> Table:
    """A table, made once in each process."""
    makers: Mapping[str, Callable[[], Table]] = {
        "adult": tables.adult,
        "adult, all levels": tables.adult_as_declared,
        "poker": tables.poker,
    }
    return makers[name]()


@cache
def parts_of(name: str, division: Division, n_holders: int, seed: int) -> list[Holder]:
    """The holders of a divided table, whose exact counts are kept."""
    table = table_named(name)
    parts = divided(table, division, n_holders, np.random.default_rng((seed, 1)))
    return [Holder(rows, table.sizes) for rows in parts]


def done(task: Task) -> Found:
    """The figures of a task."""
    warnings.filterwarnings("ignore")  # of classifiers that did not converge
    parts: Mapping[str, Callable[[Task, np.random.Generator], Found]] = {
        "networks": networks,
        "tables": of_tables,
        "pairwise": pairwise,
        "flaim": of_flaim,
    }
    with threadpool_limits(limits=1):
        return parts[task.part](task, np.random.default_rng((task.seed, len(task.table))))


def networks(task: Task, rng: np.random.Generator) -> Found:
    """Cross entropy of networks of rows from a known law."""
    law = {"T1": tables.tree_network, "T2": tables.degree_two_network}[task.table]()
    table = tables.of_network(task.table, law, tables.N_SEEDS_ROWS, rng)
    found: Found = {}
    for n_holders, epsilons in ((N_HOLDERS, OF_SEED), (MORE_HOLDERS, (0.1,))):
        parts = divided(table, Division.EQUAL, n_holders, rng)
        holders = [Holder(rows, table.sizes) for rows in parts]
        for degree, epsilon, way, whose in product(DEGREES, epsilons, WAYS, (SEED, OURS)):
            network = learned(table, holders, whose, way, degree, epsilon, rng).network
            key = (task.table, n_holders, degree, epsilon, way, whose)
            found[key] = {"cross_entropy": exact_cross_entropy(law, network)}
    whole = Holder(table.train, table.sizes)
    baselines = {"not private, k = 1": greedy(whole, 1), "not private, k = 2": greedy(whole, 2)}
    baselines["independent"] = independent(whole)
    for name, network in baselines.items():
        found[task.table, name] = {"cross_entropy": exact_cross_entropy(law, network)}
    return found


def of_tables(task: Task, rng: np.random.Generator) -> Found:
    """All scores of all ways on a table, by how it is divided."""
    table = table_named(task.table)
    found: Found = {}
    for division, n_holders in _divisions(task.sizes):
        holders = parts_of(task.table, division, n_holders, task.seed)
        is_main = division is Division.EQUAL and n_holders == N_HOLDERS
        for epsilon in task.sizes.epsilons if is_main else OF_DIVISIONS:
            key = (task.table, division, n_holders, epsilon)
            for degree, way, whose in product(DEGREES, WAYS, (SEED, OURS)):
                one = learned(table, holders, whose, way, degree, epsilon, rng)
                drawn = one.network.drawn(len(table.train), rng)
                scores = scored(table, drawn, one.network, learns=is_main)
                found[*key, way, degree, whose] = _numbers(scores, one.sent)
            rows, sent = pairwise_rows(table, holders, epsilon / 2, rng)
            found[*key, "pairwise"] = _numbers(scored(table, rows, learns=is_main), sent)
    whole = Holder(table.train, table.sizes)
    for name, network in (("independent", independent(whole)), ("not private", greedy(whole, 2))):
        drawn = network.drawn(len(table.train), rng)
        found[task.table, name] = asdict(scored(table, drawn, network, learns=True))
    found[task.table, "the rows themselves"] = {"accuracy": accuracy(table, table.train)}
    found[task.table, "the largest class"] = {"accuracy": majority(table)}
    return found


def _divisions(sizes: Sizes) -> Iterator[tuple[Division, int]]:
    for division in sizes.kinds:
        yield division, N_HOLDERS
        if division is Division.EQUAL and len(sizes.kinds) > 1:
            yield division, MORE_HOLDERS


def _numbers(scores: Scores, sent: Sent) -> dict[str, float]:
    return {**asdict(scores), "bytes": float(sent.n_bytes), "rounds": float(sent.n_rounds)}


def pairwise(task: Task, rng: np.random.Generator) -> Found:
    """The method `pairwise` with one holder, three and ten."""
    table = table_named(task.table)
    found: Found = {}
    of = {1: Division.CENTRAL, N_HOLDERS: Division.EQUAL, MORE_HOLDERS: Division.EQUAL}
    for (n_holders, division), epsilon in product(of.items(), OF_PAIRWISE):
        holders = parts_of(task.table, division, n_holders, task.seed)
        rows, sent = pairwise_rows(table, holders, epsilon, rng)
        found[task.table, epsilon, n_holders] = {
            "pairs": pairs_distance(table.train, rows, table.sizes),
            "bytes": float(sent.n_bytes),
            "rounds": float(sent.n_rounds),
        }
    return found


def of_flaim(task: Task, rng: np.random.Generator) -> Found:
    """FLAIM, AugFLAIM and `pairwise` on two divisions."""
    table = table_named(task.table)
    found: Found = {}
    for division, epsilon in product((Division.CLASS, Division.EQUAL), OF_FLAIM):
        holders = parts_of(task.table, division, N_HOLDERS, task.seed)
        made = {
            "pairwise, delta": pairwise_rows(table, holders, epsilon, rng, gaussian=True),
            "pairwise, pure": pairwise_rows(table, holders, epsilon, rng),
            **{
                name: flaim(holders, table.columns, epsilon, rng, variant)
                for name, variant in VARIANTS.items()
            },
        }
        for name, (rows, sent) in made.items():
            found[task.table, division, epsilon, name] = {
                "pairs": pairs_distance(table.train, rows, table.sizes),
                "bytes": float(sent.n_bytes),
                "rounds": float(sent.n_rounds),
            }
    return found


@dataclass(frozen=True, slots=True)
class Mean:
    """The mean of some runs, and its standard error."""

    mean: float
    error: float

    @classmethod
    def of(cls, values: Sequence[float]) -> "Mean":
        """Of one run, an error of 0."""
        error = np.std(values, ddof=1) / math.sqrt(len(values)) if len(values) > 1 else 0.0
        return cls(float(np.mean(values)), float(error))

    def __sub__(self, other: "Mean") -> "Mean":
        return Mean(self.mean - other.mean, math.hypot(self.error, other.error))

    def over(self, other: "Mean") -> "Mean":
        """The ratio, its error to first order."""
        ratio = self.mean / other.mean
        parts = math.hypot(self.error / self.mean, other.error / other.mean)
        return Mean(ratio, ratio * parts)

    @property
    def at_least(self) -> float:
        """What it is above, but for chance."""
        return self.mean - ERRORS * self.error

    @property
    def at_most(self) -> float:
        """What it is below, but for chance."""
        return self.mean + ERRORS * self.error


Means: TypeAlias = Mapping[tuple[object, ...], Mapping[str, Mean]]


def averaged(runs: Sequence[Found]) -> Means:
    """The mean of every figure over the runs that have it."""
    values: dict[tuple[object, ...], dict[str, list[float]]] = {}
    for one in runs:
        for key, numbers in one.items():
            for name, number in numbers.items():
                if not math.isnan(number):
                    values.setdefault(key, {}).setdefault(name, []).append(number)
    return {
        key: {name: Mean.of(found) for name, found in numbers.items()}
        for key, numbers in values.items()
    }


def seed_bars(means: Means) -> Iterator[Bar]:
    """Each way beside the seeds' own: cross entropy of T1 and T2, accuracy of the tables."""
    for name, degree, way in product(("T1", "T2"), DEGREES, WAYS):
        worse = [
            _difference(means, (name, N_HOLDERS, degree, epsilon, way), "cross_entropy").at_least
            for epsilon in OF_SEED
        ]
        title = f"{way}, {name}, k = {degree}: bits more than the seed's, no worse"
        yield Bar(title, max(worse), 0.0, max(worse) <= 0)
    for name, degree, way in product(("adult", "poker"), DEGREES, WAYS):
        wanted = (name, Division.EQUAL, N_HOLDERS)
        keys = ((*wanted, one, way, degree) for one in OF_TABLES)
        learned_from = [key for key in keys if "accuracy" in means.get((*key, OURS), {})]
        if learned_from:
            found = [_difference(means, key, "accuracy") for key in learned_from]
            errors = math.sqrt(sum(one.error**2 for one in found)) / len(found)
            less = Mean(-float(np.mean([one.mean for one in found])), errors).at_least
            title = f"{way}, {name}, k = {degree}: mean accuracy less than the seed's, no worse"
            yield Bar(title, less, 0.0, less <= 0)


def _difference(means: Means, key: tuple[object, ...], figure: str) -> Mean:
    return means[*key, OURS][figure] - means[*key, SEED][figure]


def pairwise_bars(means: Means) -> Iterator[Bar]:
    """Three holders beside one."""
    for name in ("adult", "adult, all levels", "poker"):
        found = [
            means[name, one, N_HOLDERS]["pairs"].over(means[name, one, 1]["pairs"]).at_most
            for one in OF_PAIRWISE
        ]
        title = f"pairwise, {name}, 3 holders: distance over that of one, at most"
        yield Bar(title, max(found), ROOT_MAX, max(found) <= ROOT_MAX)


def flaim_bars(means: Means) -> Iterator[Bar]:
    """By class, `pairwise` beside the better of FLAIM and AugFLAIM; each holder adds its noise."""
    for name, epsilon in product(("adult", "poker"), OF_FLAIM):
        key = (name, Division.CLASS, epsilon)
        own = means[*key, "pairwise, delta"]["pairs"]
        best = min(
            (means[*key, one]["pairs"] for one in ("FLAIM", "AugFLAIM")), key=lambda one: one.mean
        )
        more = (own - best).at_least
        title = f"pairwise, {name} by class, epsilon {epsilon:g}: distance less FLAIM's, no worse"
        yield Bar(title, more, 0.0, more <= 0)


def _tasks(sizes: Sizes) -> list[Task]:
    found = [Task("tables", name, seed, sizes) for seed in range(sizes.tables)
             for name in ("adult", "poker")]  # fmt: skip
    found += [Task("flaim", name, seed, sizes) for seed in range(sizes.flaim)
              for name in ("adult", "poker")]  # fmt: skip
    found += [Task("pairwise", name, seed, sizes) for seed in range(sizes.pairwise)
              for name in ("adult", "adult, all levels", "poker")]  # fmt: skip
    found += [Task("networks", name, seed, sizes) for seed in range(sizes.networks)
              for name in ("T1", "T2")]  # fmt: skip
    return found


def main() -> None:
    """Run everything, and print figures and bars."""
    sizes = QUICK if wants_quick("Synthetic tables of several holders.") else FULL
    tasks = _tasks(sizes)
    runs: dict[str, list[Found]] = {task.part: [] for task in tasks}
    workers = min(len(tasks), os.cpu_count() or 1)
    with ProcessPoolExecutor(workers, mp_context=get_context("spawn")) as pool:
        for number, (task, found) in enumerate(zip(tasks, pool.map(done, tasks), strict=True), 1):
            runs[task.part].append(found)
            progress(f"{number} of {len(tasks)}: {task.part}, {task.table}, run {task.seed + 1}")
    means = {part: averaged(found) for part, found in runs.items()}
    figures = {
        part: {
            ", ".join(map(str, key)): {name: asdict(one) for name, one in numbers.items()}
            for key, numbers in found.items()
        }
        for part, found in means.items()
    }
    told = {
        "runs": {part: getattr(sizes, part) for part in runs},
        "delta_of_flaim": DELTA,
        "classifiers": HAS_CLASSIFIERS,
        "not_here": NOT_HERE,
    }
    both = {**means["networks"], **means["tables"]}
    bars = [*seed_bars(both), *pairwise_bars(means["pairwise"]), *flaim_bars(means["flaim"])]
    run({**told, **figures}, bars)


if __name__ == "__main__":
    main()
