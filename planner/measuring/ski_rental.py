"""Keeps the evidence for ski rental: the rows bought one by one, and at which horizon.

Earlier horizons: what a block was when it was bought, on a table that has grown since.

A table is cut at its horizon. When the horizon moves, a measurement of all levels becomes a
measurement of the earlier levels. As evidence for the questions of analysts, it still counts as one
of all levels. A whole scope that was counted then was a wide purchase. A total up to that day is no
sign that the days before it will be asked for again, since today's total needs the new ones.

The ledger's charges come in order, so the horizon at each of them is, as far as any charge shows,
the last level that anything bought so far is about. On a table that does not grow, blocks do not
change.

Whether to buy every cell of a scope, or only the row that is asked for, is the ski-rental problem
(Karlin et al. 1988, "Competitive snoopy caching"). The rent of a scope is what the table's cost
would fall by, had the rows on the scope not been bought: rows that never met in the most expensive
cell cost nothing, and save nothing if they are replaced. Rows with Laplace noise and rows with
Gaussian noise are rent alike, as they cost one sum. A wide purchase replaces most rows; those with
less noise than it has stay rented.

What a wide purchase may cost follows from the rent of the rows that it would have answered, and
from what speaks for its scope (`Evidence`). At which weight it is priced is in `savings.py`.

Proved: as long as all queries are on one scope whose cells may be counted whole, at most three
times the rent is spent: the rent of the rows that were bought, and of the rows that a wide purchase
replaced. A wide purchase costs at most the row that was due, or twice what that row and others
that it would have answered add to the table's cost; these are replaced, so that no row is counted
for two purchases. What they add telescopes: cells raise the cost of all cells alike, so the largest
sum of narrow rows is what it would be without any. That is proved of looking back at every row;
of many rows that each add little, it is looked back at steps (`is_due`), which puts a purchase off
until there is about a sixteenth more. On many scopes at once it is measured:
`benchmarks/thrift_mix.py` and `dashboard_day.py` put `auto` beside `query`.

Everything is computed again from the ledger's charges, so a restart forgets nothing.
"""

import math
from collections import Counter, defaultdict
from collections.abc import Sequence
from dataclasses import dataclass
from fractions import Fraction
from functools import cached_property
from typing import TypeAlias

from accountant.cost import rows_in_block, units_per_square
from accountant.ledger import Charge, ChargedBlock
from cube.encoding import fingerprint
from cube.horizon import Horizon, reach
from cube.measurement import (
    UNITS_PER_EPSILON,
    UNITS_PER_PRECISION,
    GaussianTerms,
    PlannedMeasurement,
    Precision,
    Weight,
)
from cube.query import QueryBlock, Scope
from cube.schema import Schema
from inference import counts_groups
from planner.measuring.candidates import families


@dataclass(frozen=True, slots=True, eq=False)
class BoughtBlock:
    """A block as it was bought.

    Parameters
    ----------
    block : QueryBlock
        On the earlier levels; a block that cannot count a whole scope is left unchanged.
    schema : Schema
        The table's schema with the levels up to this horizon.
    is_past : bool
        Whether it was about everything up to a horizon that has moved since.
    """

    block: QueryBlock
    schema: Schema
    is_past: bool = False


class Horizons:
    """The horizons of a table's charges, one after another.

    Parameters
    ----------
    schema : Schema
        As the table is now.
    """

    def __init__(self, schema: Schema) -> None:
        self._schema = schema
        self._reached = 0

    def copy(self) -> "Horizons":
        """A copy that does not change when this one does."""
        other = Horizons(self._schema)
        other._reached = self._reached
        return other

    def as_bought(self, blocks: Sequence[QueryBlock]) -> list[BoughtBlock]:
        """The blocks of the next charge."""
        axis = self._schema.grows
        if axis is None or not blocks:  # a charge for statistics alone
            return [BoughtBlock(block, self._schema) for block in blocks]
        size = self._schema.by_name[axis].size
        ends = [reach(block, axis) or size for block in blocks]
        self._reached = max([self._reached, *ends])
        if self._reached == size:
            return [BoughtBlock(block, self._schema) for block in blocks]
        then = Horizon(axis, size, self._reached)
        schema = then.cut_schema(self._schema)
        return [
            BoughtBlock(
                then.cut(block) if _may_be_wide(block, axis) else block,
                schema,
                is_past=end == self._reached,
            )
            for block, end in zip(blocks, ends, strict=True)
        ]


def _may_be_wide(block: QueryBlock, axis: str) -> bool:
    """Whether a block has no condition but on the axis: only then it may count all of a scope."""
    factors = (factor for term in block.query.terms for factor in term.factors)
    return all(factor.axes == (axis,) for factor in factors)


# After so many purchases on a scope, half of its rent is taken to come again: on one scope of many,
# and on the only one. Measured with `benchmarks/dashboard_day.py` and `paper_section6.py`.
N_DOUBTED = 3
N_DOUBTED_ALONE = 1
N_DIGITS_OF_STEP = 5


@dataclass(frozen=True)
class RentedRows:
    """A block that was paid for.

    Parameters
    ----------
    block : QueryBlock
    units : int
        The weight that was paid for since the last wider purchase, in units of 2**-40 epsilon; of
        Gaussian noise, the precision.
    weight_units : int
        The weight or precision that the block has in all.
    terms : GaussianTerms, optional
        Of Gaussian noise, those of the table.
    rows_per_unit : int
        The most records of one unit of the table that the block can be about.
    """

    block: QueryBlock
    units: int
    weight_units: int
    terms: GaussianTerms | None = None
    rows_per_unit: int = 1

    @property
    def paid(self) -> PlannedMeasurement:
        """The block with what was paid for."""
        weight = Weight(self.units) if self.terms is None else Precision(self.units)
        return PlannedMeasurement(self.block, weight, terms=self.terms)

    @property
    def inverse_variance(self) -> Fraction:
        """Of its noise."""
        return _inverse_variance(self.weight_units, is_gaussian=self.terms is not None)

    @cached_property
    def most_units(self) -> int:
        """At least what it added to the table's cost, in units of 2**-40 epsilon."""
        # The coefficients of measured rows are whole
        bound = self.rows_per_unit * int(self.block.query.bound)
        if self.terms is None:
            return self.units * bound
        return math.ceil(units_per_square(self.paid.precision, self.terms) * bound**2)


def _inverse_variance(units: int, *, is_gaussian: bool) -> Fraction:
    """Of noise with a weight, or a precision."""
    if is_gaussian:
        return Fraction(2 * units, UNITS_PER_PRECISION)
    return Fraction(units, UNITS_PER_EPSILON) ** 2 / 2


_Rented: TypeAlias = tuple[str, bool]  # a block's fingerprint, and whether its noise is Gaussian


class SkiRental:
    """The rows rented on one table, scope by scope.

    Parameters
    ----------
    schema : Schema
    """

    def __init__(self, schema: Schema) -> None:
        self._schema = schema
        self._levels: dict[tuple[Scope, tuple[int, ...]], dict[str, bool]] = {}
        self._n_charges = 0
        self._weights: dict[_Rented, int] = {}  # of each block, the weight that it was raised to
        self._n_purchases: Counter[Scope] = Counter()
        self._rented: dict[Scope, dict[_Rented, RentedRows]] = {}
        self._horizons = Horizons(schema)

    def copy(self) -> "SkiRental":
        """A copy that does not change when this one does."""
        other = SkiRental(self._schema)
        other._n_charges, other._weights = self._n_charges, self._weights.copy()
        other._n_purchases = self._n_purchases.copy()
        other._rented = {scope: rows.copy() for scope, rows in self._rented.items()}
        other._horizons = self._horizons.copy()
        return other

    @property
    def n_charges(self) -> int:
        """The number of charges taken in."""
        return self._n_charges

    @property
    def scopes(self) -> tuple[Scope, ...]:
        """The scopes on which rows are rented."""
        return tuple(sorted(self._rented))

    def add(self, charges: Sequence[Charge]) -> None:
        """Take in charges, in order."""
        for charge in charges:
            self._n_charges += 1
            then = self._horizons.as_bought([one.block for one in charge.blocks])
            wide, rows = [], []
            for one, bought in zip(charge.blocks, then, strict=True):
                if self._is_finest(bought) is not None:
                    wide.append((one, bought))
                elif not bought.is_past:
                    rows.append(one)
            self._redeem(wide)
            for one in rows:
                self._rent(one, charge.terms if one.is_gaussian else None)

    def on(self, scope: Scope) -> tuple[RentedRows, ...]:
        """The rows rented within a scope; wide purchases of smaller scopes are not among them."""
        axes = frozenset(scope)
        return tuple(
            rows
            for one, blocks in self._rented.items()
            if axes.issuperset(one)
            for rows in blocks.values()
        )

    def _rent(self, charged: ChargedBlock, terms: GaussianTerms | None) -> None:
        scope, name = charged.block.scope, _name_of(charged)
        paid, held = self._raised(charged)
        rows = self._rented.setdefault(scope, {})
        before = rows[name].units if name in rows else 0
        schema = self._schema
        rows_per_unit = rows_in_block(
            charged.block, schema.rows_per_unit_max_by, schema.rows_per_unit_max
        )
        rows[name] = RentedRows(charged.block, before + paid, held, terms, rows_per_unit)
        self._n_purchases[scope] += 1

    def _raised(self, charged: ChargedBlock) -> tuple[int, int]:
        """What was paid for a block now, and what is held of it from now on."""
        name = _name_of(charged)
        before = self._weights.get(name, 0) if charged.raised_from is not None else 0
        if charged.is_gaussian:  # a raise is charged with its further precision alone
            held = before + charged.precision.units
        else:
            held = charged.laplace_noise.weight.units
        self._weights[name] = held
        return held - before, held

    def _is_finest(self, bought: BoughtBlock) -> bool | None:
        """Whether a block is the finest of a wide purchase; None if it is no part of any."""
        block, schema = bought.block, bought.schema
        if not counts_groups(block):
            return None
        name = block.scope, schema.sizes(block.scope)
        known = self._levels.get(name)
        if known is None:
            known = self._levels[name] = {
                fingerprint(one): place == 0
                for blocks in families(block.scope, schema)
                for place, one in enumerate(blocks)
            }
        return known.get(fingerprint(block))

    def n_purchases(self, scope: Scope) -> int:
        """How often was paid for rows within a scope, or for a scope within it as a whole."""
        axes = frozenset(scope)
        return sum(n for one, n in self._n_purchases.items() if axes.issuperset(one))

    def _redeem(self, wide: Sequence[tuple[ChargedBlock, BoughtBlock]]) -> None:
        """Rows are replaced by wide purchases, but not those with less noise than all of these."""
        paid: defaultdict[Scope, Fraction] = defaultdict(Fraction)
        for one, bought in wide:
            _, held = self._raised(one)
            paid[bought.block.scope] += _inverse_variance(held, is_gaussian=one.is_gaussian)
        for scope in (bought.block.scope for _, bought in wide if self._is_finest(bought)):
            self._n_purchases[scope] += 1
            axes = frozenset(scope)
            for within in [within for within in self._rented if axes.issuperset(within)]:
                rows = self._rented.pop(within)
                kept = {
                    name: one for name, one in rows.items() if one.inverse_variance > paid[scope]
                }
                if kept:
                    self._rented[within] = kept


def _name_of(charged: ChargedBlock) -> _Rented:
    return fingerprint(charged.block), charged.is_gaussian


def rent_at_most(rented: Sequence[RentedRows]) -> Fraction:
    """At least what rows can have added to the table's cost."""
    return Fraction(sum(one.most_units for one in rented), UNITS_PER_EPSILON)


def is_due(before: int, now: int) -> bool:
    """Whether a number passes a step: one has come where it differs in its first binary digits.

    Steps are a sixteenth to a thirty-second of the number apart; the first numbers are all steps.

    >>> [n for n in range(100) if is_due(n, 1)][-6:]
    [79, 83, 87, 91, 95, 99]
    """
    return _step(before) != _step(before + now)


def _step(number: int) -> tuple[int, int]:
    """How many digits follow the first ones, and these."""
    n_following = max(0, number.bit_length() - N_DIGITS_OF_STEP)
    return n_following, number >> n_following


@dataclass(frozen=True)
class Evidence:
    """What speaks for a wide purchase on a scope.

    Parameters
    ----------
    rent_now : Fraction
        The price of the row that is due.
    n_purchases : int
        How often was paid for rows on the scope, or for the scope as a whole.
    share : Fraction
        At most 1: the part of the table's cost that is paid for the scope.
    """

    rent_now: Fraction
    n_purchases: int
    share: Fraction

    @classmethod
    def of(
        cls,
        rent_now: Fraction,
        n_purchases: int,
        *,
        rent: Fraction,
        held: Fraction,
        of_table: Fraction,
    ) -> "Evidence":
        """The evidence from the rent of earlier rows and the cost of the whole scope so far."""
        due = of_table + rent_now
        share = min(Fraction(1), (rent_now + rent + held) / due) if due else Fraction(1)
        return cls(rent_now, n_purchases, share)

    def worth(self, rent: Fraction, *, is_all: bool) -> Fraction:
        """What a purchase may cost that would have answered the row now, and rows of this rent.

        Whatever costs no more than the rent now is worth it. Beyond that, up to twice the rent is,
        where the scope is everything that the table has paid for; where many scopes share a table,
        little more than the rent, since a purchase that was in vain on each of them would add up.
        Less than the rent if some rows would not have been answered (`is_all`), since they may be
        asked for again. And less as long as few purchases speak for the scope: what was asked once
        may not be asked again, on one scope of many in particular.
        """
        due = self.rent_now + rent
        doubted = self.share * N_DOUBTED_ALONE + (1 - self.share) * N_DOUBTED
        likely = self.n_purchases / (self.n_purchases + doubted)
        ventured = 1 + self.share if is_all else 2 * self.share
        return max(self.rent_now, ventured * likely * due)
