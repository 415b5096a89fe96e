"""What the epsilon of a synthetic table went to: by kind of measurement, and by column.

Shares of one charge are those of the weights in it. The cost of a table is a sum only where its
measurements meet in a cell, so the shares are an account of purchases, not of any cell's cost.
"""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from enum import StrEnum
from fractions import Fraction

from accountant.ledger.charged import (
    ChargedBlock,
    ChargedChoice,
    ChargedDistance,
    ChargedGaussian,
)
from accountant.ledger.entries import Charge
from accountant.ledger.history.payments import Payment
from cube.measurement import UNITS_PER_EPSILON, Measurement
from cube.query import Scope
from cube.statistic import GaussianCounts
from inference.history import counts_groups
from proxy.synthetic_tables.record import SyntheticRecord


class Kind(StrEnum):
    """What was bought."""

    ROWS = "the number of rows"
    COLUMNS = "counts of single columns"
    SCORES = "scores, to choose what to count"
    PAIRS = "counts of pairs"
    LARGER = "counts of three columns or more"
    OTHER = "other queries"
    EVALUATION = "the evaluation of the rows"


@dataclass(frozen=True, slots=True)
class Purchases:
    """Epsilon by kind, and by column: each column of a count has an equal part of it.

    Parameters
    ----------
    by_kind : tuple of (Kind, float)
        Without the kinds that took nothing.
    by_column : tuple of (str, float)
        In the order of the columns. What concerns no single column is in none.
    is_of_table : bool
        Whether this is what was charged for the synthetic table; otherwise it is everything that
        the private table's history had cost when it was made.
    """

    by_kind: tuple[tuple[Kind, float], ...]
    by_column: tuple[tuple[str, float], ...]
    is_of_table: bool

    @property
    def total(self) -> float:
        """All of it, in epsilon."""
        return sum(amount for _, amount in self.by_kind)


def purchases(
    record: SyntheticRecord, payments: Sequence[Payment], measurements: Sequence[Measurement]
) -> Purchases:
    """What the charges for a synthetic table bought; or all charges, if they are not told apart.

    Parameters
    ----------
    record : SyntheticRecord
    payments : sequence of Payment
        Of the private table, from its first on.
    measurements : sequence of Measurement
        From the first on.
    """
    until = payments[: record.n_charges]
    evaluation = Fraction(0) if record.evaluation is None else record.evaluation.epsilon_spent
    mine = _adding_up(until, record.epsilon_spent - evaluation)
    by_kind = dict.fromkeys(Kind, 0.0)
    by_kind[Kind.EVALUATION] = float(evaluation)
    by_column = {name: 0.0 for name, _ in record.columns}
    for payment in until if mine is None else mine:
        parts = list(_parts(payment.charge, measurements))
        of_all = sum(amount for *_, amount in parts)
        for scope, kind, amount in parts:
            epsilon = float(payment.units * amount / of_all) / UNITS_PER_EPSILON
            by_kind[kind] += epsilon
            for name in by_column.keys() & set(scope):
                by_column[name] += epsilon / len(scope)
    spent = tuple((kind, amount) for kind, amount in by_kind.items() if amount)
    return Purchases(spent, tuple(by_column.items()), mine is not None)


def _adding_up(payments: Sequence[Payment], epsilon: Fraction) -> Sequence[Payment] | None:
    """The last payments, if they add up to an epsilon."""
    units, wanted = 0, epsilon * UNITS_PER_EPSILON
    if not wanted:
        return ()
    for n_last in range(1, len(payments) + 1):
        units += payments[-n_last].units
        if units >= wanted:
            return payments[-n_last:] if units == wanted else None
    return None


def _parts(
    charge: Charge, measurements: Sequence[Measurement]
) -> Iterator[tuple[Scope, Kind, Fraction]]:
    """The scope, the kind and the weight of everything in a charge."""
    for block in charge.blocks:
        scope = block.block.scope
        kind = _kind(scope) if counts_groups(block.block) else Kind.OTHER
        yield scope, kind, _added(block, measurements)
    for one in charge.statistics:
        if isinstance(one, ChargedDistance):
            yield one.distance.block.scope, Kind.SCORES, one.noise.weight.exact
        elif isinstance(one, ChargedGaussian):
            scope = one.statistic.block.scope
            is_counts = isinstance(one.statistic, GaussianCounts)
            yield scope, _kind(scope) if is_counts else Kind.SCORES, one.noise.rho.exact
        elif isinstance(one, ChargedChoice):
            yield (), Kind.SCORES, one.weight.exact


def _added(block: ChargedBlock, measurements: Sequence[Measurement]) -> Fraction:
    """The weight that was added, or the precision."""
    if block.is_gaussian:
        return block.precision.exact
    weight = block.laplace_noise.weight.exact
    before = None if block.raised_from is None else measurements[block.raised_from]
    return weight if before is None else weight - before.laplace_weight.exact


def _kind(scope: Scope) -> Kind:
    return (Kind.ROWS, Kind.COLUMNS, Kind.PAIRS, Kind.LARGER)[min(len(scope), 3)]
