"""What the rows of a planned measurement cost each cell, in whole units of 2**-40 epsilon.

    Laplace     k * weight * |coefficient|
    Gaussian    k**2 * order * precision * coefficient**2, rounded up

for a unit whose k rows are all in that cell. Functions of the cells, which are nowhere below the
cost. Nothing here adds them up or knows what else was bought. Proofs: proofs/table_cost.md,
"Profiles"; proofs/gaussian_noise.md, "Rows"; proofs/units.md.
"""

import math
from collections.abc import Callable
from fractions import Fraction

from accountant.cost.cell_function import CellFunction
from accountant.cost.profile import Profile, profile_of
from cube.gaussian_terms import GaussianTerms, Precision
from cube.measurement import UNITS_PER_EPSILON, PlannedMeasurement


def row_cost(
    planned: PlannedMeasurement, profile: Profile | None = None, *, rows_per_unit: int = 1
) -> Profile:
    """What measuring a block costs each cell, in units; `profile` is that of the block."""
    profile = profile_of(planned.block) if profile is None else profile
    if planned.terms is None:
        units = rows_per_unit * planned.laplace_weight.units
        return Profile(tuple(part.scaled(units) for part in profile.parts), profile.exact)
    rate = units_per_square(planned.precision, planned.terms)
    return _squared(profile, rows_per_unit**2 * rate)


def most_of(planned: PlannedMeasurement, *, rows_per_unit: int = 1) -> int:
    """No cell pays more than this for a block."""
    bound = rows_per_unit * profile_of(planned.block).bound
    if planned.terms is None:
        return planned.laplace_weight.units * bound
    return math.ceil(units_per_square(planned.precision, planned.terms) * bound**2)


def units_per_square(precision: Precision, terms: GaussianTerms) -> Fraction:
    """What one squared unit of a coefficient costs."""
    rate: Fraction = terms.order * precision.exact * UNITS_PER_EPSILON
    return rate


def _squared(profile: Profile, rate: Fraction) -> Profile:
    """The squares of a profile at a rate, rounded up.

    Notes
    -----
    A polynomial is replaced by its largest value in each class. The square of a sum of parts is at
    most the sum of each part times the sum of all their bounds.
    """
    flat = [part.flattened() for part in profile.parts]
    exact = profile.exact and all(one.exact for one in flat)
    if len(flat) == 1:
        return Profile((_priced(flat[0], lambda size: rate * size * size),), exact)
    most = sum(part.bound for part in flat)
    return Profile(tuple(_priced(part, lambda size: rate * most * size) for part in flat), exact)


def _priced(part: CellFunction, price: Callable[[int], Fraction]) -> CellFunction:
    if part.bound <= 1:  # most rows are counts, and multiplying is faster
        return part.scaled(math.ceil(price(1)))
    return part.priced(price)
