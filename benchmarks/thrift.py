"""What a sequence of requests costs a fresh table, with nothing between them and the served table.

Requests are linear queries with targets, bought as served ones are: history, planner, gate, noise
and a durable ledger. There is no SQL, and there are no records: what is bought follows from targets
and weights alone, so an empty table costs what a full one does.
"""

import tempfile
import time
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from fractions import Fraction
from pathlib import Path

import numpy as np
from threadpoolctl import threadpool_limits

from accountant.cost.history_cost import CostState
from accountant.cost.zcdp_account import GaussianAccount, constant_of
from accountant.gate.opening import open_table
from accountant.grouping import Grouping
from accountant.ledger.limits import Payer
from accountant.ledger.opening import open_ledger
from accountant.noise.lattice_noise import SystemNoise
from accountant.source import CellCounts, UnitCells
from cube.encoding import fingerprint
from cube.measurement import UNITS_PER_EPSILON, PlannedMeasurement
from cube.schema import Schema
from planner.measuring.candidates import Strategy
from planner.measuring.weights import LAPLACE, GaussianKind, GaussianOffer, NoiseKind
from planner.workload import Wanted
from proxy.tables.private_table import ServedTable

BUDGET = Fraction(10)


class NoRecords:
    """A private table without a record."""

    def fingerprint(self, key: bytes, like: str = "") -> str:  # noqa: ARG002 - a protocol
        """The same table every time."""
        return key.hex()

    def rows_fingerprint(self, key: bytes, like: str = "") -> str:  # noqa: ARG002 - a protocol
        """The same rows every time."""
        return key.hex()

    def measure(self, grouping: Grouping) -> CellCounts:
        """No occupied cell."""
        nothing = np.zeros(0, dtype=np.int64)
        return CellCounts(tuple(nothing for _ in grouping.scope), nothing)

    def measure_units(self, grouping: Grouping) -> UnitCells:
        """No unit."""
        nothing = np.zeros(0, dtype=np.int64)
        return UnitCells(tuple(nothing for _ in grouping.scope), nothing, nothing, nothing, nothing)


@dataclass(frozen=True, slots=True)
class Outcome:
    """What a sequence of requests came to.

    Parameters
    ----------
    epsilon : float
        The table's cost.
    n_paid, n_measurements : int
        Requests that were charged, and measured blocks.
    seconds : float
        Of processor time.
    slowest : float
        Of one request, in seconds of processor time.
    """

    epsilon: float
    n_paid: int
    n_measurements: int
    seconds: float
    slowest: float


def spent_on(
    schema: Schema,
    requests: Iterable[Sequence[Wanted]],
    strategy: Strategy,
    gaussian: GaussianOffer | None = None,
) -> Outcome:
    """Ask each request of a fresh table, one after another; its owner may offer Gaussian noise."""
    n_paid, slowest, begun = 0, 0.0, time.process_time()
    with (
        threadpool_limits(limits=1),  # as in the served process
        tempfile.TemporaryDirectory() as folder,
        open_ledger(Path(folder) / "thrift.ledger") as ledger,
    ):
        gate = open_table(ledger, schema, BUDGET, NoRecords(), SystemNoise())
        default = next(iter(requests))[0].target
        table = ServedTable(schema, default, gate, strategy, gaussian=gaussian)
        for wanted in requests:
            start = time.process_time()
            n_paid += table.acquire(wanted, Payer("benchmark"), None).epsilon > 0
            slowest = max(slowest, time.process_time() - start)
        budget = table.budget()
    seconds = time.process_time() - begun
    return Outcome(float(budget.spent), n_paid, budget.n_measurements, seconds, slowest)


def cache_per_cell(requests: Iterable[Sequence[Wanted]]) -> float:
    """What Laplace noise with an exact-match cache costs, cell by cell; nothing is bought.

    Where the largest cost of a cell is out of reach, a bound on it.
    """
    return float(_cached(requests, LAPLACE))


def gaussian_cache_per_cell(requests: Iterable[Sequence[Wanted]], offer: GaussianOffer) -> float:
    """The same of Gaussian noise, at the order that is best for what the owner expects."""
    terms = GaussianAccount().terms_for(offer.delta, offer.expected)
    return float(_cached(requests, GaussianKind(terms)) + constant_of(terms))


def _cached(requests: Iterable[Sequence[Wanted]], kind: NoiseKind) -> Fraction:
    """What each distinct block costs with one kind of noise, at the most that is asked of it."""
    distinct: dict[str, PlannedMeasurement] = {}
    for one in (one for wanted in requests for one in wanted):
        row, multiplier = one.block.primitive
        planned = kind.planned(row, kind.fresh(one.target, multiplier))
        known = distinct.setdefault(fingerprint(row), planned)
        if known.weight.units < planned.weight.units:
            distinct[fingerprint(row)] = planned
    cost = CostState().charged(list(distinct.values())).table_cost()
    return Fraction(cost.units, UNITS_PER_EPSILON)
