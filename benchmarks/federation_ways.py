"""Every way to make a synthetic table of several holders' rows, called alike.

Networks are about one row replaced by another, as the seeds have it, and so are their epsilons.
Ours are about one row added or removed, for which the same guarantee costs half: they get half.
The numbers of rows are public to both.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from fractions import Fraction
from typing import Final

import numpy as np

from benchmarks.federation_flaim import DELTA, rho_of
from benchmarks.federation_holders import RowsHolder, SummedHolders, summed_cost
from benchmarks.federation_seed import WAYS, Holder, Network, Rows, Sent
from benchmarks.federation_tables import Table
from synthesis.drawing import draw_rows
from synthesis.holders import HoldersSettings, Smoothing, Structure, federated_network
from synthesis.pairwise import measured_model
from synthesis.privbayes import BayesianNetwork, plain_attribute

REPLACED: Final = 2  # a row replaced is one removed and one added
N_UNITS: Final = 10**6  # of an epsilon
SPENT_MAX: Final = 1 + 1e-9  # of a budget in floating point
SEED, OURS = "seed", "ours"


@dataclass(frozen=True, eq=False)
class Learned:
    """A network, and what was sent for it."""

    network: Network
    sent: Sent


def learned(  # noqa: PLR0913, PLR0917 - a cell of the table of figures
    table: Table,
    holders: Sequence[Holder],
    whose: str,
    way: str,
    degree: int,
    epsilon: float,
    rng: np.random.Generator,
) -> Learned:
    """A network by one of the three ways, the seeds' or ours."""
    if whose == SEED:
        return Learned(*WAYS[way](holders, degree, epsilon, rng))
    budget = Fraction(epsilon).limit_denominator(N_UNITS) / REPLACED
    measurers = [RowsHolder(one, table.columns, rng) for one in holders]
    found = federated_network(
        [plain_attribute(column) for column in table.columns],
        measurers,
        [len(one.rows) for one in holders],
        rng,
        budget=budget,
        structure=Structure(way),
        settings=HoldersSettings(
            degree=degree,
            n_rows=float(sum(len(one.rows) for one in holders)),
            smoothing=Smoothing.DEVIATION,
        ),
    )
    if max(one.spent for one in measurers) > budget:
        raise RuntimeError("a holder spent more than its budget")
    n_rounds = 1 if way == Structure.MODELS else max(one.n_rounds for one in measurers)
    n_bytes = sum(one.n_bytes for one in measurers)
    network = as_network(found, sum(len(one.rows) for one in holders))
    return Learned(network, Sent(n_bytes, n_rounds))


def as_network(found: BayesianNetwork, n_rows: int) -> Network:
    """A network with columns by their places, and with one row added to each cell of its laws.

    The seeds' networks have that row; without it a network whose share is 0 where a row is has no
    cross entropy. Every combination of parents is taken to have as many rows as any other.
    """
    places = {one.name: place for place, one in enumerate(found.attributes)}
    families, laws = [], []
    for node, law in zip(found.nodes, found.conditionals, strict=True):
        parents = [places[parent.column] for parent in node.parents]
        order = np.argsort(parents).tolist()
        rows_of_one = n_rows / (law.size / law.shape[-1])
        added = (law * rows_of_one + 1) / (rows_of_one + law.shape[-1])
        families.append((places[node.child], tuple(parents[at] for at in order)))
        laws.append(np.transpose(added, [*order, len(order)]))
    return Network(tuple(families), tuple(laws))


def pairwise_rows(
    table: Table,
    holders: Sequence[Holder],
    epsilon: float,
    rng: np.random.Generator,
    *,
    gaussian: bool = False,
) -> tuple[Rows, Sent]:
    """Rows by the method `pairwise`, for one row added or removed.

    With Gaussian noise, the guarantee has the delta that FLAIM has.
    """
    budget = 2 * rho_of(epsilon, DELTA) if gaussian else epsilon
    measurer = SummedHolders(holders, table.columns, rng, gaussian=gaussian)
    cost = summed_cost(len(holders), gaussian=gaussian)
    model = measured_model(table.columns, measurer, budget=budget, cost=cost)
    if measurer.spent > budget * SPENT_MAX:
        raise RuntimeError("a holder spent more than its budget")
    return np.asarray(draw_rows(model, rng), dtype=np.int64), measurer.sent
