"""How near a synthetic table is to rows that several holders have.

pairs            the mean total variation distance over all pairs of columns, from the holders' rows
cross_entropy    bits a row of those that were kept out: of the network itself, or, of rows without
                 one, of the network of degree 2 that they give
kl               the mean divergence, in bits, of pairs of columns of the rows that were kept out
accuracy         the mean of five classifiers that learn from synthetic rows and are tested on
                 the rows that were kept out; beside it, what always naming the largest class has
"""

from dataclasses import dataclass
from importlib.util import find_spec
from itertools import combinations
from typing import Any, Final

import numpy as np

from benchmarks.federation_seed import Floats, Holder, Network, Rows, greedy
from benchmarks.federation_tables import Table
from benchmarks.marginal_distance import counted, pairs_distance

HAS_CLASSIFIERS: Final = find_spec("sklearn") is not None  # of the extra `bench`
N_LEARNED: Final = 5_000  # synthetic rows that classifiers learn from
N_TESTED: Final = 5_000
REFERENCE_DEGREE: Final = 2  # of the network that stands for rows


@dataclass(frozen=True, slots=True)
class Scores:
    """The scores of one synthetic table; without classifiers an accuracy is NaN."""

    pairs: float
    cross_entropy: float
    kl: float
    accuracy: float = float("nan")


def scored(
    table: Table, synthetic: Rows, network: Network | None = None, *, learns: bool = False
) -> Scores:
    """The scores of synthetic rows, and of their network if there is one."""
    if not len(synthetic):
        synthetic = np.zeros((1, len(table.sizes)), dtype=np.int64)
    stands_for = network or greedy(Holder(synthetic, table.sizes), REFERENCE_DEGREE)
    return Scores(
        pairs_distance(table.train, synthetic, table.sizes),
        float(stands_for.bits(table.test).mean()),
        pairs_divergence(table.test, synthetic, table.sizes),
        accuracy(table, synthetic) if learns else float("nan"),
    )


def exact_cross_entropy(law: Floats, network: Network) -> float:
    """The expected ``-log2`` of a network's probability, in bits, under a law of all cells."""
    cells = np.stack(np.unravel_index(np.arange(law.size), law.shape), axis=1)
    return float(law.ravel() @ network.bits(cells))


def pairs_divergence(real: Rows, synthetic: Rows, sizes: tuple[int, ...]) -> float:
    """The mean Kullback-Leibler divergence of pairs, in bits, with a row added to each cell."""
    found = []
    for scope in combinations(range(len(sizes)), 2):
        wanted = counted(real, sizes, scope)
        shares = counted(synthetic, sizes, scope) + 1.0
        inside = wanted > 0
        law = wanted[inside] / wanted.sum()
        found.append(float((law * np.log2(law / (shares[inside] / shares.sum()))).sum()))
    return float(np.mean(found))


def accuracy(table: Table, learned: Rows) -> float:
    """The mean accuracy of the classifiers, of the rows that were kept out."""
    if not HAS_CLASSIFIERS:
        return float("nan")
    tested = table.test[:N_TESTED]
    rows = np.random.default_rng(0).permutation(learned)[:N_LEARNED]
    classes = rows[:, table.target]
    if np.unique(classes).size == 1:
        return float((tested[:, table.target] == classes[0]).mean())
    given, asked = (np.delete(one, table.target, axis=1) for one in (rows, tested))
    sizes = np.delete(np.array(table.sizes), table.target)
    return float(
        np.mean(
            [
                (model.fit(given, classes).predict(asked) == tested[:, table.target]).mean()
                for model in _classifiers(sizes)
            ]
        )
    )


def majority(table: Table) -> float:
    """How often the largest class of the holders' rows is right in those that were kept out."""
    largest = np.bincount(table.train[:, table.target]).argmax()
    return float((table.test[:, table.target] == largest).mean())


def _classifiers(sizes: Any) -> list[Any]:
    """Five kinds, at the defaults of their library but for the number of trees and steps."""
    from sklearn.ensemble import RandomForestClassifier  # noqa: PLC0415 - an extra
    from sklearn.linear_model import LogisticRegression  # noqa: PLC0415 - an extra
    from sklearn.naive_bayes import CategoricalNB  # noqa: PLC0415 - an extra
    from sklearn.neighbors import KNeighborsClassifier  # noqa: PLC0415 - an extra
    from sklearn.pipeline import make_pipeline  # noqa: PLC0415 - an extra
    from sklearn.preprocessing import OneHotEncoder  # noqa: PLC0415 - an extra
    from sklearn.tree import DecisionTreeClassifier  # noqa: PLC0415 - an extra

    levels = [np.arange(size) for size in sizes]
    encoder = OneHotEncoder(categories=levels)
    return [
        CategoricalNB(min_categories=sizes),
        DecisionTreeClassifier(random_state=0),
        RandomForestClassifier(n_estimators=30, random_state=0),
        KNeighborsClassifier(),
        make_pipeline(encoder, LogisticRegression(max_iter=30, tol=1e-2)),
    ]
