"""Ski rental: the rows that were bought one by one, and that no wider purchase has replaced since.

Whether to buy every cell of a scope, or only the row that is asked for, is the ski-rental problem
(Karlin et al. 1988, "Competitive snoopy caching"). The rent of a scope is what the table's cost
would fall by, had the rows on the scope not been bought: rows that never met in the most expensive
cell cost nothing, and save nothing if they are replaced. Rows with Laplace noise and rows with
Gaussian noise are rent alike, as they cost one sum. The wide purchase is priced at the weight at
which it would have answered all of them (`hindsight.py`).

Proved: as long as everything is asked on one scope, the cells of which may be counted whole, at
most three times the rent is spent, that of rows bought and of rows that a wide purchase came
instead of. A wide purchase costs at most the row that was due, or twice what that row and those
since the last purchase add to the table's cost. What they add telescopes: cells raise the cost of
all cells alike, so the largest sum of narrow rows is what it would be without any. On many scopes
at once it is measured: `benchmarks/thrift_mix.py` puts `auto` beside `query`.

Everything is computed again from the ledger's charges, so a restart forgets nothing.
"""

import math
from collections.abc import Sequence
from dataclasses import dataclass
from fractions import Fraction
from functools import cached_property
from typing import TypeAlias

from accountant.cost.row_cost import units_per_square
from accountant.ledger.entries import Charge, ChargedBlock
from cube.block import QueryBlock
from cube.encoding import fingerprint
from cube.gaussian_terms import GaussianTerms, Precision
from cube.measurement import UNITS_PER_EPSILON, PlannedMeasurement, Weight
from cube.query import Scope
from cube.schema import Schema
from inference.history import counts_groups
from planner.measuring.candidates import families

N_BEFORE_DOUBTED = 3  # after so many blocks, half of the rent is taken to come again


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
    """

    block: QueryBlock
    units: int
    weight_units: int
    terms: GaussianTerms | None = None

    @property
    def paid(self) -> PlannedMeasurement:
        """The block with what was paid for."""
        weight = Weight(self.units) if self.terms is None else Precision(self.units)
        return PlannedMeasurement(self.block, weight, terms=self.terms)

    @cached_property
    def most_units(self) -> int:
        """At least what it added to the table's cost, in units of 2**-40 epsilon."""
        bound = int(self.block.query.bound)  # coefficients of measured rows are whole
        if self.terms is None:
            return self.units * bound
        return math.ceil(units_per_square(self.paid.precision, self.terms) * bound**2)


_Rented: TypeAlias = tuple[str, bool]  # a block's fingerprint, and whether its noise is Gaussian


class SkiRental:
    """The rows rented on one table, scope by scope.

    Parameters
    ----------
    schema : Schema
    """

    def __init__(self, schema: Schema) -> None:
        self._schema = schema
        self._levels: dict[Scope, dict[str, bool]] = {}
        self._n_charges = 0
        self._weights: dict[_Rented, int] = {}  # of each block, the weight that it was raised to
        self._rented: dict[Scope, dict[_Rented, RentedRows]] = {}

    def copy(self) -> "SkiRental":
        """A copy that does not change when this one does."""
        other = SkiRental(self._schema)
        other._n_charges, other._weights = self._n_charges, self._weights.copy()
        other._rented = {scope: rows.copy() for scope, rows in self._rented.items()}
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
            for one in charge.blocks:
                if self._is_finest(one.block):
                    self._redeem(one.block.scope)
            for one in charge.blocks:
                if self._is_finest(one.block) is None:
                    terms = charge.terms if one.is_gaussian else None
                    self._rent(self._rented.setdefault(one.block.scope, {}), one, terms)

    def on(self, scope: Scope) -> tuple[RentedRows, ...]:
        """The rows rented within a scope; wide purchases of smaller scopes are not among them."""
        axes = frozenset(scope)
        return tuple(
            rows
            for one, blocks in self._rented.items()
            if axes.issuperset(one)
            for rows in blocks.values()
        )

    def _rent(
        self,
        rows: dict[_Rented, RentedRows],
        charged: ChargedBlock,
        terms: GaussianTerms | None,
    ) -> None:
        name = (fingerprint(charged.block), charged.is_gaussian)
        raised = self._weights.get(name, 0) if charged.raised_from is not None else 0
        if charged.is_gaussian:  # a raise is charged with its further precision alone
            paid = charged.precision.units
            held = raised + paid
        else:
            held = charged.laplace_noise.weight.units
            paid = held - raised
        before = rows[name].units if name in rows else 0
        self._weights[name] = held
        rows[name] = RentedRows(charged.block, before + paid, held, terms)

    def _is_finest(self, block: QueryBlock) -> bool | None:
        """Whether a block is the finest of a wide purchase; None if it is no part of any."""
        if not counts_groups(block):
            return None
        known = self._levels.get(block.scope)
        if known is None:
            known = self._levels[block.scope] = {
                fingerprint(one): place == 0
                for blocks in families(block.scope, self._schema)
                for place, one in enumerate(blocks)
            }
        return known.get(fingerprint(block))

    def _redeem(self, scope: Scope) -> None:
        """The rows within a scope are replaced by its cells."""
        axes = frozenset(scope)
        for one in [one for one in self._rented if axes.issuperset(one)]:
            del self._rented[one]


def rent_at_most(rented: Sequence[RentedRows]) -> Fraction:
    """At least what rows can have added to the table's cost."""
    return Fraction(sum(one.most_units for one in rented), UNITS_PER_EPSILON)


def worth(rent_now: Fraction, rent_before: Fraction, n_before: int, of_table: Fraction) -> Fraction:
    """What a wide purchase may cost instead of the rent now, after rent for `n_before` blocks.

    Whatever costs no more than the rent now is worth it. Beyond that, up to twice the rent is,
    where the rent is everything that the table has cost, `of_table`; where many scopes share a
    table, little more than the rent, since a purchase that was in vain on each of them would add
    up. And less as long as few rows speak for it: what was asked once may not be asked again.
    """
    rent = rent_now + rent_before
    if not rent:
        return rent_now
    likely = Fraction(n_before, n_before + N_BEFORE_DOUBTED)
    share = min(Fraction(1), rent / (of_table + rent_now)) if of_table else Fraction(1)
    return max(rent_now, (1 + share) * likely * rent)
