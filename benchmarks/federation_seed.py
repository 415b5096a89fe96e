"""The three ways of the seeds to learn a network from several holders, as they publish them.

    statistics    every table of k + 1 columns, each holder's with noise (000, Algorithm 3.5)
    votes         each holder votes for a column and its parents, by the exponential mechanism; the
                  tables of the winners follow (3.6)
    models        each holder learns and sends a network of its own; rows drawn from all of them
                  make one (3.7)

Neighbours differ by one row replaced by another, and every holder's number of rows is public. The
published details are kept: a holder sets its negative counts to 0, sums are divided by the number
of rows, one is added to each cell. What broke privacy is corrected: the choice has its ``exp``, its
sensitivity is that of the holder's own number of rows in the base of the score, and every set of
parents has exactly ``min(k, columns before)`` columns. Of the published sets that hold a smaller
one, the first is used.

Noise is a textbook generator's, for comparisons alone.
"""

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field
from itertools import combinations
from math import comb, log
from typing import Final, TypeAlias

import numpy as np
from numpy.typing import NDArray

from benchmarks.marginal_distance import counted
from synthesis.privbayes.network import drawn_classes

STRUCTURE_SHARE: Final = 0.5  # of a budget, as the seeds have it
N_BINARY: Final = 2
N_BYTES: Final = 8  # of a number

Floats: TypeAlias = NDArray[np.float64]
Rows: TypeAlias = NDArray[np.int64]
Family: TypeAlias = tuple[int, tuple[int, ...]]  # a column and its parents, ascending


@dataclass(frozen=True, eq=False)
class Network:
    """Columns after their parents, with the law of each.

    Parameters
    ----------
    families : tuple of Family
    laws : tuple of (n_levels of parent, ..., n_levels of child) ndarray of float64
    """

    families: tuple[Family, ...]
    laws: tuple[Floats, ...]

    def bits(self, rows: Rows) -> Floats:
        """``-log2`` of the probability of each row."""
        found = np.zeros(len(rows))
        with np.errstate(divide="ignore"):
            for (child, parents), law in zip(self.families, self.laws, strict=True):
                found -= np.log2(law)[tuple(rows[:, place] for place in (*parents, child))]
        return found

    def drawn(self, n_rows: int, rng: np.random.Generator) -> Rows:
        """Rows that follow it."""
        rows = np.zeros((n_rows, len(self.families)), dtype=np.int64)
        for (child, parents), law in zip(self.families, self.laws, strict=True):
            of_row = np.zeros(n_rows, dtype=np.int64)
            for place, size in zip(parents, law.shape, strict=False):
                of_row = of_row * size + rows[:, place]
            of_parents = law.reshape(-1, law.shape[-1])
            rows[:, child] = drawn_classes(of_parents, of_row, rng.random(n_rows))
        return rows

    @property
    def n_cells(self) -> int:
        """The numbers in its laws."""
        return sum(law.size for law in self.laws)


@dataclass(frozen=True)
class Sent:
    """What one way sends: bytes of all holders together, and rounds of questions."""

    n_bytes: int
    n_rounds: int


@dataclass(eq=False)
class Holder:
    """Exact counts of one holder's rows, kept once they are counted."""

    rows: Rows
    sizes: tuple[int, ...]
    known: dict[tuple[int, ...], Floats] = field(default_factory=dict)
    scores: dict[Family, float] = field(default_factory=dict)

    def counts(self, scope: tuple[int, ...]) -> Floats:
        """The table of some columns, in the order of the scope, which ascends."""
        if scope not in self.known:
            shape = [self.sizes[place] for place in scope]
            flat = counted(self.rows, self.sizes, scope)
            self.known[scope] = flat.astype(np.float64).reshape(shape)
        return self.known[scope]

    def information(self, family: Family) -> float:
        """The mutual information of a column and its parents, in nats."""
        if family not in self.scores:
            self.scores[family] = information(self.counts, family, len(self.rows))
        return self.scores[family]


def information(table: Callable[[tuple[int, ...]], Floats], family: Family, n_rows: float) -> float:
    """``sum p ln(p / (p_x p_parents))`` for ``p = table / n_rows``, whatever it sums to."""
    child, parents = family
    scope = tuple(sorted((child, *parents)))
    joint = np.moveaxis(table(scope), scope.index(child), -1) / n_rows
    flat = joint.reshape(-1, joint.shape[-1])
    product = np.outer(flat.sum(axis=1), flat.sum(axis=0))
    inside = flat > 0
    return float((flat[inside] * np.log(flat[inside] / product[inside])).sum())


def sensitivity(n_rows: int, *, is_binary: bool) -> float:
    """The most by which one replaced row moves mutual information, in nats (000, Lemma 3.1)."""
    n = n_rows
    if is_binary:
        return log(n) / n + (n - 1) / n * log(n / (n - 1))
    return 2 / n * log((n + 1) / 2) + (n - 1) / n * log((n + 1) / (n - 1))


def of_choice(n_rows: int, candidates: Sequence[Family], sizes: Sequence[int]) -> float:
    """The sensitivity for one choice: the largest of its candidates'."""
    are_binary = (
        sizes[child] == N_BINARY or np.prod([sizes[place] for place in parents]) == N_BINARY
        for child, parents in candidates
    )
    return sensitivity(n_rows, is_binary=all(are_binary))


def grown(
    n_columns: int, degree: int, choose: Callable[[list[Family]], Family]
) -> tuple[Family, ...]:
    """The families of a network that starts with the first column."""
    families: list[Family] = [(0, ())]
    while len(families) < n_columns:
        before = sorted(child for child, _ in families)
        left = [place for place in range(n_columns) if place not in before]
        sets = list(combinations(before, min(degree, len(before))))
        families.append(choose([(child, parents) for child in left for parents in sets]))
    return tuple(families)


def fitted(
    families: Sequence[Family], table: Callable[[tuple[int, ...]], Floats], added: float = 1.0
) -> Network:
    """The laws of tables of counts, with a number added to each cell."""
    laws = []
    for child, parents in families:
        scope = tuple(sorted((child, *parents)))
        joint = np.moveaxis(table(scope), scope.index(child), -1) + added
        sums = joint.sum(axis=-1, keepdims=True)
        even = np.full_like(joint, 1 / joint.shape[-1])
        laws.append(np.divide(joint, sums, out=even, where=sums > 0))
    return Network(tuple(families), tuple(laws))


def greedy(holder: Holder, degree: int) -> Network:
    """Without noise: the baseline, and the last step of the third way."""
    families = grown(len(holder.sizes), degree, lambda found: max(found, key=holder.information))
    return fitted(families, holder.counts)


def independent(holder: Holder) -> Network:
    """Exact columns by themselves: the baseline without any dependence."""
    return fitted([(place, ()) for place in range(len(holder.sizes))], holder.counts)


def by_statistics(
    holders: Sequence[Holder], degree: int, epsilon: float, rng: np.random.Generator
) -> tuple[Network, Sent]:
    """Noisy tables of all sets of k + 1 columns, and the best network of them."""
    sizes = holders[0].sizes
    n_columns, n_rows = len(sizes), sum(len(one.rows) for one in holders)
    scale = 2 * comb(n_columns, degree + 1) / epsilon
    tables = {
        scope: _summed(holders, scope, scale, rng)
        for scope in combinations(range(n_columns), degree + 1)
    }
    smaller: dict[tuple[int, ...], Floats] = {}

    def table(scope: tuple[int, ...]) -> Floats:
        if scope in tables:
            return tables[scope]
        if scope not in smaller:
            whole = next(one for one in tables if set(scope) <= set(one))
            others = tuple(axis for axis, place in enumerate(whole) if place not in scope)
            smaller[scope] = tables[whole].sum(axis=others)
        return smaller[scope]

    families = grown(
        n_columns,
        degree,
        lambda found: max(found, key=lambda family: information(table, family, n_rows)),
    )
    n_cells = sum(one.size for one in tables.values())
    return fitted(families, table), Sent(N_BYTES * n_cells * len(holders), 1)


def by_votes(
    holders: Sequence[Holder], degree: int, epsilon: float, rng: np.random.Generator
) -> tuple[Network, Sent]:
    """Each holder's vote counts the same, whatever its size; ties are drawn."""
    sizes = holders[0].sizes
    n_columns = len(sizes)
    step = STRUCTURE_SHARE * epsilon / (n_columns - 1)

    def choose(candidates: list[Family]) -> Family:
        votes = np.zeros(len(candidates))
        for holder in holders:
            votes[_exponential(holder, candidates, step, rng)] += 1
        best = np.flatnonzero(votes == votes.max())
        return candidates[int(rng.choice(best))]

    families = grown(n_columns, degree, choose)
    scale = 2 * n_columns / ((1 - STRUCTURE_SHARE) * epsilon)
    network = fitted(families, lambda scope: _summed(holders, scope, scale, rng))
    n_bytes = N_BYTES * (network.n_cells + n_columns - 1) * len(holders)
    return network, Sent(n_bytes, n_columns)


def by_models(
    holders: Sequence[Holder], degree: int, epsilon: float, rng: np.random.Generator
) -> tuple[Network, Sent]:
    """One network of each holder; the network of rows that are drawn from all of them."""
    networks = [own_network(one, degree, epsilon, rng) for one in holders]
    rows = [
        network.drawn(len(one.rows), rng) for network, one in zip(networks, holders, strict=True)
    ]
    numbers = sum(one.n_cells + len(one.families) for one in networks)
    together = Holder(np.concatenate(rows), holders[0].sizes)
    return greedy(together, degree), Sent(N_BYTES * numbers, 1)


def own_network(holder: Holder, degree: int, epsilon: float, rng: np.random.Generator) -> Network:
    """PrivBayes as the seeds have it (000, Algorithms 3.2 and 3.3)."""
    n_columns = len(holder.sizes)
    step = STRUCTURE_SHARE * epsilon / (n_columns - 1)
    families = grown(n_columns, degree, lambda found: found[_exponential(holder, found, step, rng)])
    scale = 2 * n_columns / ((1 - STRUCTURE_SHARE) * epsilon)
    return fitted(families, lambda scope: _summed([holder], scope, scale, rng), added=0.0)


WAYS: Final = {"statistics": by_statistics, "votes": by_votes, "models": by_models}


def _exponential(
    holder: Holder, candidates: list[Family], epsilon: float, rng: np.random.Generator
) -> int:
    """A place, with a probability proportional to ``exp(epsilon * score / (2 * sensitivity))``."""
    scores = np.array([holder.information(family) for family in candidates])
    moved = of_choice(len(holder.rows), candidates, holder.sizes)
    return int(np.argmax(epsilon * scores / (2 * moved) + rng.gumbel(size=scores.size)))


def _summed(
    holders: Sequence[Holder], scope: tuple[int, ...], scale: float, rng: np.random.Generator
) -> Floats:
    """The sum of noisy counts, none of them negative."""
    noisy: Iterator[Floats] = (
        np.maximum(counts + rng.laplace(0.0, scale, counts.shape), 0.0)
        for counts in (one.counts(scope) for one in holders)
    )
    summed: Floats = np.add.reduce(list(noisy))
    return summed
