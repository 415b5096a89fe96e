"""How well rows agree with the tables that they were drawn from.

Tables of pairs may contradict each other, because each has its own noise; then no rows agree with
all of them. What is missed is compared with the noise of the table itself.
"""

from collections.abc import Mapping

import numpy as np

from cube.query import Scope
from synthesis.model import PairwiseModel
from synthesis.tables import Integers


def missed(model: PairwiseModel, drawn: Mapping[str, Integers]) -> dict[Scope, float]:
    """The L1 distance of each pair's counts in rows from its table, as a share of the rows.

    Parameters
    ----------
    model : PairwiseModel
    drawn : mapping of str to (n_rows,) ndarray of int64
        The bucket of each row in each column.
    """
    found = {}
    for scope, table in model.pairs.items():
        first, second = (
            groups.labels[drawn[name]] for name, groups in zip(scope, table.groups, strict=True)
        )
        n_first, n_second = table.counts.shape
        counts = np.bincount(first * n_second + second, minlength=n_first * n_second)
        total = max(float(table.counts.sum()), 1.0)
        shares = counts.reshape(table.counts.shape) / max(first.size, 1)
        found[scope] = float(np.abs(shares - table.counts / total).sum())
    return found


def excess(model: PairwiseModel, drawn: Mapping[str, Integers]) -> float:
    """By how much the worst table is missed beyond its own noise, as a share of the rows."""
    beyond = (
        distance - model.pairs[scope].noise / max(model.total, 1.0)
        for scope, distance in missed(model, drawn).items()
    )
    return max(beyond, default=0.0)
