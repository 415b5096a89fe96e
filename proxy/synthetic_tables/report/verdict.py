"""What the report says first: expected distances, what the epsilon went to, and the verdict.

The expected distance of every pair of columns from the private one, from public values alone.

Of a measured pair it is what its noise does to a fitted table, tried out on the synthetic counts,
and what drawing rows does. Of any other pair it is known only if its distance from public numbers
was released, and may not be known at all. Where levels were counted together, what is off within
their groups is added, as if rows there were random in both tables. A distance is a total variation
distance over levels: the share of rows in the wrong place.

What the epsilon of a synthetic table went to: by kind of measurement, and by column.

Shares of one charge are those of the weights in it. The cost of a table is a sum only where its
measurements meet in a cell, so the shares are an account of purchases, not of any cell's cost.

What the report says first: whether the table can be used as it is, and if not, what is worst.

Bad, if the rows contradict what was measured by more than noise explains. Fair, if they do not, but
something that a reader may rely on was not measured, or with large noise. Good is what remains.
"""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from enum import StrEnum
from fractions import Fraction
from itertools import combinations
from typing import Final

import numpy as np

from accountant.ledger import Charge, ChargedBlock, ChargedChoice, ChargedDistance, ChargedGaussian
from accountant.ledger.history import Payment
from cube.measurement import UNITS_PER_EPSILON, Measurement
from cube.query import Partition, Scope
from cube.runtime import cached_property
from cube.statistic import GaussianCounts
from inference import counts_groups
from inference.noise_law import law_of_noises
from proxy.synthetic_tables.record import SyntheticRecord
from proxy.synthetic_tables.report.residuals import (
    CheckedTable,
    Drawing,
    Floats,
    Integers,
    MeasuredDistance,
    MeasuredTable,
    Standing,
    rows_in,
)
from synthesis import projected

N_TRIALS: Final = 3  # of the noise: each has thousands of counts, or is small
CONFIDENCE: Final = 0.95


@dataclass(frozen=True, slots=True)
class PairDistance:
    """What is expected of one pair.

    Parameters
    ----------
    is_measured : bool
        Whether its counts were measured, alone or with other columns.
    share : float, optional
        The expected distance, as a share of the rows; None if nothing tells it.
    half_width : float
        By how much the noise may have moved it, of a pair that was not measured.
    """

    scope: Scope
    is_measured: bool
    share: float | None = None
    half_width: float = 0.0

    @property
    def at_most(self) -> float:
        """The upper end of the interval; 1 if nothing tells it."""
        return 1.0 if self.share is None else min(1.0, self.share + self.half_width)


def pair_distances(
    checked: Sequence[CheckedTable],
    distances: Sequence[MeasuredDistance],
    levels: Mapping[str, Integers],
    *,
    drawing: Drawing,
    rng: np.random.Generator,
) -> dict[Scope, PairDistance]:
    """The expected distance of each pair of columns, in the order of the sorted names.

    Parameters
    ----------
    levels : mapping of str to (n_rows,) ndarray of int64
        The position of each synthetic row's level in each column.
    rng : numpy.random.Generator
        For trying out the noise of measured pairs; it sees no data.
    """
    found = {scope: PairDistance(scope, False) for scope in combinations(sorted(levels), 2)}
    for one in sorted(distances, key=lambda one: -one.scale):
        if one.scope in found:
            found[one.scope] = _told(one, drawing.scale * rows_in(one.partition, levels), levels)
    measured: dict[Scope, float] = {}
    for table in checked:
        for pair in combinations(table.scope, 2):
            share = _after_noise(table, pair, levels, drawing, rng)
            measured[pair] = min(share, measured.get(pair, share))
    return found | {pair: PairDistance(pair, True, share) for pair, share in measured.items()}


def mean_distance(pairs: Mapping[Scope, PairDistance]) -> float | None:
    """The mean over all pairs whose distance is told; None if none is."""
    shares = [one.share for one in pairs.values() if one.share is not None]
    return float(np.mean(shares)) if shares else None


def _told(one: MeasuredDistance, synthetic: Floats, levels: Mapping[str, Integers]) -> PairDistance:
    """The larger of the two tables' distances from the same public numbers.

    What the private table has beyond these numbers the synthetic one may lack, and the other way
    round. The two distances are apart by at most the sought one, and it is at most their sum.
    """
    n_rows = max(1.0, float(synthetic.sum()))
    own = float(np.abs(synthetic - one.reference).sum())
    law = law_of_noises(np.array([one.scale]), np.array([one.is_gaussian]))
    between = max(one.value, own) / (2 * n_rows)
    share = float(np.hypot(between, _within(one.partition, synthetic, levels)))
    return PairDistance(
        one.scope, False, min(1.0, share), law.half_width(CONFIDENCE) / (2 * n_rows)
    )


def _after_noise(
    table: CheckedTable,
    pair: Scope,
    levels: Mapping[str, Integers],
    drawing: Drawing,
    rng: np.random.Generator,
) -> float:
    """What the same noise and drawing would do to the synthetic counts, and what is beyond that."""
    counts, n_summed = _of_pair(table.measured, table.synthetic, pair)
    total = counts.sum()
    if not total > 0:
        return 1.0
    deviation = table.measured.deviation * n_summed**0.5
    variance = np.full((1, counts.size), deviation**2)
    far = []
    for _ in range(N_TRIALS):
        if table.measured.is_gaussian or n_summed > 1:
            noise = rng.normal(0.0, deviation, counts.size)
        else:
            noise = rng.laplace(0.0, table.measured.scale, counts.size)
        fitted = projected((counts + noise)[np.newaxis], np.array([total]), variance)[0]
        far.append(float(np.abs(fitted - counts).sum() / (2 * total)))
    drawn = drawing.expected(counts, len(pair)) / (2 * total)
    within = 0.0
    if table.scope == pair:
        within = _within(table.measured.partition, table.synthetic, levels)
    return min(1.0, float(np.sqrt(np.mean(far) ** 2 + drawn**2 + within**2)) + table.excess_share)


def _within(partition: Partition, counts: Floats, levels: Mapping[str, Integers]) -> float:
    """The share of rows that are off within the groups of a pair's levels.

    In a group of several cells, rows are as each column's levels are, independently; in the private
    table at best the same holds of the law that its rows come from. Two Poisson counts with mean
    ``e`` differ by about ``min(2 e, sqrt(4 e / pi))``.
    """
    labels = partition.labels
    shares = [
        np.bincount(levels[name], minlength=size)
        for name, size in zip(partition.axes, labels.shape, strict=True)
    ]
    weights = np.where(labels >= 0, np.multiply.outer(*shares).astype(np.float64), 0.0)
    groups = np.maximum(labels, 0)
    of_groups = np.bincount(groups.ravel(), weights.ravel(), counts.size)
    is_merged = np.bincount(groups.ravel(), minlength=counts.size) > 1
    scale = np.divide(counts, of_groups, out=np.zeros(counts.size), where=of_groups > 0)
    means = weights * (scale * is_merged)[groups]
    off = np.minimum(2 * means, np.sqrt(4 / np.pi * means)).sum()
    return float(off / (2 * max(1.0, counts.sum())))


def _of_pair(measured: MeasuredTable, counts: Floats, pair: Scope) -> tuple[Floats, int]:
    """The counts of a pair's cells, and how many measured ones are added up for each."""
    grid = measured.grid
    if len(measured.scope) == len(pair) or grid is None:
        return counts, 1
    others = tuple(axis for axis, name in enumerate(measured.scope) if name not in pair)
    sums = counts[grid].sum(axis=others)
    return sums.ravel(), grid.size // sums.size


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


JOINT_SHARE_BAD: Final = 0.02  # of the rows: a table of several columns beyond its limit by more
DISTANCE_GOOD: Final = 0.05  # of pairs; one that was not measured is no gap if surely below it


class Tone(StrEnum):
    """How the report begins."""

    GOOD = "good"
    FAIR = "fair"
    BAD = "bad"


@dataclass(frozen=True, eq=False)
class Verdict:
    """Everything that the report says about the table as a whole.

    Parameters
    ----------
    checked : sequence of CheckedTable
        Those furthest outside their noise first.
    pairs : mapping of sorted scope to PairDistance
        Every pair of columns.
    n_charges_since : int
        Charges to the private table since the synthetic one was made.
    """

    record: SyntheticRecord
    checked: Sequence[CheckedTable]
    pairs: Mapping[Scope, PairDistance]
    bought: Purchases
    n_charges_since: int = 0

    @cached_property
    def outside(self) -> list[CheckedTable]:
        """The measured tables that noise does not explain, the worst first."""
        return [one for one in self.checked if one.standing is Standing.OUTSIDE]

    @cached_property
    def near(self) -> list[CheckedTable]:
        """Those that miss their limits by little."""
        return [one for one in self.checked if one.standing is Standing.NEAR]

    @cached_property
    def contradicted(self) -> list[CheckedTable]:
        """Those outside for which the table is bad: of one column, or far outside."""
        return [
            one for one in self.outside if len(one.scope) == 1 or one.excess_share > JOINT_SHARE_BAD
        ]

    @cached_property
    def worst_columns(self) -> list[str]:
        """Columns that together are in every contradicted table, those in most of the excess first.

        If one column explains all of them, it alone is named.
        """
        left, named = list(self.contradicted), []
        while left:
            excess: dict[str, float] = {}
            for table in left:
                for name in table.scope:
                    excess[name] = excess.get(name, 0.0) + table.excess_share
            named.append(max(excess, key=lambda name: excess[name]))
            left = [table for table in left if named[-1] not in table.scope]
        return named

    @cached_property
    def not_measured(self) -> list[PairDistance]:
        """The pairs that were not measured, those expected to be furthest off first."""
        found = [one for one in self.pairs.values() if not one.is_measured]
        return sorted(found, key=lambda one: (one.share is None, -(one.share or 0.0)))

    @cached_property
    def open_pairs(self) -> list[PairDistance]:
        """Those of them that may be further off than anybody would want to overlook."""
        return [one for one in self.not_measured if one.at_most > DISTANCE_GOOD]

    @cached_property
    def not_checked(self) -> list[str]:
        """The columns for which no measured table could be compared with the rows."""
        seen = {name for one in self.checked for name in one.scope}
        return [name for name, _ in self.record.columns if name not in seen]

    @cached_property
    def n_told(self) -> int:
        """How many pairs have an expected distance."""
        return sum(one.share is not None for one in self.pairs.values())

    @property
    def expected(self) -> float | None:
        """The expected distance by pairs, over all pairs for which there is an estimate."""
        return mean_distance(self.pairs)

    @property
    def furthest_pair(self) -> PairDistance | None:
        """The pair that is expected to be furthest off."""
        told = [one for one in self.pairs.values() if one.share is not None]
        return max(told, key=lambda one: one.share or 0.0, default=None)

    @property
    def is_noisy(self) -> bool:
        """Whether too many rows are expected, or were found, to be in the wrong place."""
        found = self.record.evaluation
        if found is not None and (found.estimate <= DISTANCE_GOOD or not found.is_bound):
            return found.estimate > DISTANCE_GOOD
        return (self.expected or 0.0) > DISTANCE_GOOD

    @property
    def has_gaps(self) -> bool:
        """Whether something that a reader may rely on was not measured."""
        missing = self.open_pairs, self.not_checked, self.record.unknown, self.record.incomplete
        return any(missing)

    @property
    def tone(self) -> Tone:
        """How the report begins."""
        if self.contradicted or not self.checked:
            return Tone.BAD
        is_fair = self.outside or self.near or self.has_gaps or self.is_noisy
        return Tone.FAIR if is_fair else Tone.GOOD
