"""What the rows of a planned measurement cost each cell, in whole units of 2**-40 epsilon.

    Laplace     k * weight * |coefficient|
    Gaussian    k**2 * order * precision * coefficient**2, rounded up

for a unit whose k rows are all in that cell. Where a unit has at most m rows at each level of an
axis, what one row of the unit costs: the first without k, the second with the number of the unit's
rows that the measured row can be about in place of its square (level_costs.py adds them up).

Functions of the cells, which are nowhere below the cost. Nothing here adds them up or knows what
else was bought. Proofs: proofs/table_cost.md, "Profiles"; proofs/gaussian_noise.md, "Rows";
proofs/units.md.
"""

import math
from collections.abc import Callable
from fractions import Fraction

from accountant.cost.cell_function import CellFunction
from accountant.cost.levels_touched import rows_in_block, rows_in_one
from accountant.cost.profile import Profile, profile_of
from cube.measurement import UNITS_PER_EPSILON, GaussianTerms, PlannedMeasurement, Precision
from cube.schema import RowsByLevel


def row_cost(
    planned: PlannedMeasurement,
    profile: Profile | None = None,
    *,
    rows_per_unit: int = 1,
    by: RowsByLevel | None = None,
) -> Profile:
    """What measuring a block costs each cell, in units; `profile` is that of the block.

    For all rows of a unit; for one of them, where they are bounded `by` levels too.
    """
    profile = profile_of(planned.block) if profile is None else profile
    if planned.terms is None:
        units = planned.laplace_weight.units * (rows_per_unit if by is None else 1)
        return Profile(tuple(part.scaled(units) for part in profile.parts), profile.exact)
    n_rows = rows_per_unit**2 if by is None else rows_in_one(planned.block, by, rows_per_unit)
    return _squared(profile, n_rows * units_per_square(planned.precision, planned.terms))


def most_of(
    planned: PlannedMeasurement, *, rows_per_unit: int = 1, by: RowsByLevel | None = None
) -> int:
    """No unit pays more than this for a block."""
    if by is not None:
        one = row_cost(planned, rows_per_unit=rows_per_unit, by=by)
        return rows_in_block(planned.block, by, rows_per_unit) * one.bound
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
