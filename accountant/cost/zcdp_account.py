"""The cost of Gaussian noise: the rho of a table's releases, converted to (epsilon, delta).

    epsilon = order * rho + log(1 / (order * delta)) / (order - 1) + log(1 - 1 / order)

for any order above 1 (Canonne, Kamath & Steinke 2020, Proposition 12). A table has one delta and
one order, fixed by its first charge for Gaussian noise: so its cost is a straight line in rho, and
the guarantee also holds for queries chosen adaptively. The first charge pays the constant.

A statistic of one holder of a federated table costs only units with rows there, so it is priced as
rows at the holder's cells are, and is not in the account.

Whole units of 2**-40 epsilon, rounded up; what is spent never depends on a float. Nothing here
draws noise or reads data. Proofs: proofs/gaussian_noise.md; proofs/federation.md, "Gaussian noise".
"""

import math
from collections.abc import Iterable
from dataclasses import dataclass, replace
from decimal import Context, Decimal, localcontext
from fractions import Fraction
from functools import lru_cache
from typing import Final

from cube.holders import holder_factor
from cube.measurement import (
    ORDER_MAX,
    ORDER_UNIT_BITS,
    PRECISION_UNIT_BITS,
    RHO_UNIT_BITS,
    UNITS_PER_EPSILON,
    UNITS_PER_RHO,
    GaussianTerms,
    PlannedMeasurement,
    Precision,
    Rho,
)
from cube.query import QueryBlock, counting
from cube.refusals import InvalidRequest

N_DIGITS: Final = 80
SLACK: Final = Fraction(1, 10**40)  # far more than the error of eighty digits
N_ORDERS_TRIED: Final = 4000


@dataclass(frozen=True, slots=True)
class GaussianAccount:
    """All Gaussian noise of a table.

    Parameters
    ----------
    terms : GaussianTerms, optional
        The table's terms; None before its first Gaussian noise.
    rho_units : int
        The sum over all releases, in units of 2**-60.
    rows_per_unit : int
        The most records of one unit: it has that many times the sensitivity, squared in its rho.
    holders : str
        The axis of the holders of a federated table; empty for another one.
    """

    terms: GaussianTerms | None = None
    rho_units: int = 0
    rows_per_unit: int = 1
    holders: str = ""

    @property
    def units(self) -> int:
        """The cost, in units of 2**-40 epsilon, rounded up; 0 while there is no Gaussian noise."""
        if self.terms is None:
            return 0
        rho_units = self.rows_per_unit**2 * self.rho_units
        units: int = math.ceil(cost_of(self.terms, rho_units) * UNITS_PER_EPSILON)
        return units

    def followed_by(self, rho_units: int, terms: GaussianTerms) -> "GaussianAccount":
        """The account after this much more.

        Raises
        ------
        ValueError
            If the terms differ from the table's.
        """
        if self.terms not in (None, terms):
            raise ValueError("the terms of the Gaussian noise differ from the table's")
        return replace(self, terms=terms, rho_units=self.rho_units + rho_units)

    def paid_for(
        self, rhos: Iterable[tuple[QueryBlock, Rho]], terms: GaussianTerms
    ) -> tuple[list[PlannedMeasurement], "GaussianAccount"]:
        """Rows that cost what statistics of one holder do, and the account after all others.

        Parameters
        ----------
        rhos : iterable of (QueryBlock, Rho)
            The rows that each statistic is about, and its rho for a record.
        terms : GaussianTerms

        Raises
        ------
        ValueError
            If the terms differ from the table's.
        """
        rows, beside = [], 0
        for block, rho in rhos:
            factor = holder_factor(block, self.holders) if self.holders else None
            if factor is None:
                beside += rho.units
            else:
                precision = Precision(rho.units << (PRECISION_UNIT_BITS - RHO_UNIT_BITS))
                everybody = QueryBlock(counting((factor,)))
                rows.append(PlannedMeasurement(everybody, precision, terms=terms))
        return rows, self.followed_by(beside, terms)

    def terms_for(self, delta: Fraction, epsilon: Fraction) -> GaussianTerms:
        """The table's terms; if it has none yet, the best ones for spending `epsilon`.

        Raises
        ------
        InvalidRequest
            If the table has another delta.
        """
        if self.terms is None:
            return best_terms(delta, epsilon)
        if self.terms.delta != delta:
            raise InvalidRequest(
                "The table already accounts for its Gaussian noise with another delta.",
                hint=f"Ask with delta {float(self.terms.delta):g}, or without a delta.",
            )
        return self.terms

    def most_rho_units(self, terms: GaussianTerms, epsilon: Fraction) -> int:
        """The most rho of a record that can be added for at most `epsilon`; 0 if none."""
        units = self.units + int(epsilon * UNITS_PER_EPSILON)
        rho = (Fraction(units, UNITS_PER_EPSILON) - constant_of(terms)) / terms.order
        of_record = rho / self.rows_per_unit**2
        return max(0, math.floor(of_record * UNITS_PER_RHO) - self.rho_units)


def cost_of(terms: GaussianTerms, rho_units: int) -> Fraction:
    """The epsilon of this much rho at the order of the terms, exact except for `SLACK`."""
    return terms.order * Fraction(rho_units, UNITS_PER_RHO) + constant_of(terms)


@lru_cache(maxsize=64)
def constant_of(terms: GaussianTerms) -> Fraction:
    """The part of the cost beyond ``order * rho``: an upper bound, never below 0.

    Notes
    -----
    The `decimal` module's logarithms and quotients are correctly rounded on every machine.
    """
    order, less = terms.order, terms.order - 1
    with localcontext(Context(prec=N_DIGITS)):
        tail = Fraction(_logarithm(1 / (order * terms.delta))) / less
        constant = tail + Fraction(_logarithm(less / order)) + SLACK
    return max(Fraction(0), constant)


@lru_cache(maxsize=64)
def best_terms(delta: Fraction, epsilon: Fraction) -> GaussianTerms:
    """The terms on which a first purchase gets the most rho for its epsilon.

    They are searched with floats, on a grid; the cost of the chosen terms is exact in any case.
    """
    if epsilon <= 0:
        raise ValueError("epsilon must be positive to buy Gaussian noise")
    scale = 2**ORDER_UNIT_BITS
    growth = math.log(ORDER_MAX * scale) / N_ORDERS_TRIED
    tried = {max(scale + 1, round(math.exp(growth * step))) for step in range(N_ORDERS_TRIED + 1)}
    log_delta = math.log(delta)

    def rho(order_units: int) -> float:
        order = order_units / scale
        tail = (-math.log(order) - log_delta) / (order - 1)
        return (float(epsilon) - max(0.0, tail + math.log1p(-1 / order))) / order

    return GaussianTerms(delta, Fraction(max(sorted(tried), key=rho), scale))


def _logarithm(value: Fraction) -> Decimal:
    return (Decimal(value.numerator) / Decimal(value.denominator)).ln()
