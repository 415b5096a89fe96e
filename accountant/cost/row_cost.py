"""What the rows of a planned measurement cost each cell, in whole units of 2**-40 epsilon.

    Laplace     k * weight * |coefficient|
    Gaussian    k**2 * order * precision * coefficient**2, rounded up

for a unit whose k rows are all in that cell. Where a unit has at most m rows at each level of an
axis, these are costs of one row of the unit: the first without k, the second with the number of the
unit's rows that the measured row can cover instead of its square (summed_costs.py adds them). These
are functions of the cells, which are nowhere below the cost.

What one unit of weight on every row of a block costs each cell is the block's profile. The rows of
a block share no cell, so a cell pays for the one row that contains it: the profile is the magnitude
of the query's coefficient on the cells of some group, and 0 elsewhere. It is computed from the
block itself; no caller states a sensitivity.

A unit with at most m rows at each level has at most m times as many in a measured row as there are
levels at which that row costs a cell anything. A level counts if some term of the query is not 0 on
a cell with it, and some cell with it is in a group: terms that cancel still count, so that the
number is never below the truth.

Nothing here adds rows up, or knows budgets, data or what else was bought. Proofs:
proofs/table_cost.md, "Profiles"; proofs/gaussian_noise.md, "Rows"; proofs/units.md, "Rows by
level".
"""

import math
from collections.abc import Callable
from dataclasses import dataclass
from fractions import Fraction
from functools import reduce
from weakref import WeakKeyDictionary

import numpy as np
from numpy.typing import NDArray

from accountant.cost.cell_function import CellFunction, added, joint_size, multiplied, outer_product
from cube.classes import AxisClasses, Tiles
from cube.measurement import UNITS_PER_EPSILON, GaussianTerms, PlannedMeasurement, Precision
from cube.pieces import Pieces, constant_pieces, magnitudes
from cube.query import N_GROUPS_MAX, Factor, Partition, QueryBlock, Term
from cube.schema import RowsByLevel

Levels = NDArray[np.bool_]
Numbers = NDArray[np.int64]

# Of a block, and of one of its rows; None for all levels. Weak: a block may hold megabytes.
_LEVELS: WeakKeyDictionary[QueryBlock, dict[str, tuple[int | None, int | None]]] = (
    WeakKeyDictionary()
)


def rows_in_block(block: QueryBlock, bound: RowsByLevel | None, n_rows: int) -> int:
    """How many rows of a unit the rows of a block may be about, if it has `n_rows` in all."""
    if bound is None:
        return n_rows
    of_block, _ = _levels(block, bound.axis)
    return n_rows if of_block is None else bound.at_levels(of_block, n_rows)


def rows_in_one(block: QueryBlock, bound: RowsByLevel, n_rows: int) -> int:
    """How many rows of a unit one row of a block may be about, if it has `n_rows` in all."""
    known = [one for one in _levels(block, bound.axis) if one is not None]
    return min((bound.at_levels(one, n_rows) for one in known), default=n_rows)


def _levels(block: QueryBlock, axis: str) -> tuple[int | None, int | None]:
    known = _LEVELS.setdefault(block, {})
    if axis not in known:
        known[axis] = _counted(block, axis)
    return known[axis]


def _counted(block: QueryBlock, axis: str) -> tuple[int | None, int | None]:
    of_terms = [_of_term(term, axis) for term in block.query.terms]
    along = [levels for levels in of_terms if levels is not None]
    touched = reduce(np.logical_or, along) if len(along) == len(of_terms) else None
    if block.partition is None or axis not in block.partition.axes:
        return (None if touched is None else int(touched.sum())), None
    groups, class_of_level = _groups_by_class(block.partition, axis)
    inside = _is_any(groups >= 0)[class_of_level]
    n_inside = int((inside if touched is None else inside & touched).sum())
    return n_inside, _of_largest_group(groups, np.bincount(class_of_level))


def _of_term(term: Term, axis: str) -> Levels | None:
    """At which levels a term is not 0 everywhere; None if it does not depend on the axis."""
    factor = next((one for one in term.factors if axis in one.axes), None)
    if factor is None:
        return None
    if isinstance(factor.numbers, Pieces):  # a polynomial counts as a whole
        pieces = factor.numbers
        lengths = np.diff(pieces.starts, append=pieces.size)
        return np.repeat(_is_any(pieces.coefficients != 0), lengths)
    numbers = np.moveaxis(factor.numbers, factor.axes.index(axis), 0)
    return _is_any(numbers != 0)


def _is_any(found: NDArray[np.bool_]) -> Levels:
    """For each place along the first dimension, whether it is anywhere."""
    levels: Levels = np.logical_or.reduce(found.reshape(len(found), -1), axis=1)
    return levels


def _groups_by_class(partition: Partition, axis: str) -> tuple[Numbers, Numbers]:
    """The groups of the cells of each class of levels, a row each; and the class of each level."""
    place, groups = partition.axes.index(axis), partition.groups
    numbers = groups.values if isinstance(groups, Tiles) else partition.labels
    pieces = groups.along[place] if isinstance(groups, Tiles) else None
    by_class = np.moveaxis(numbers, place, 0)
    class_of_level = np.arange(len(by_class)) if pieces is None else pieces.dense()
    return by_class.reshape(len(by_class), -1), class_of_level


def _of_largest_group(groups: Numbers, n_levels: Numbers) -> int:
    """The most levels that cells of one group have, of classes of so many levels."""
    which = np.arange(len(groups))[:, np.newaxis]
    pairs = np.unique(which * (N_GROUPS_MAX + 1) + groups + 1)
    found, group = np.divmod(pairs, N_GROUPS_MAX + 1)
    return int(np.bincount(group, n_levels[found])[1:].max())


N_PROFILE_CELLS_MAX = 2**16  # classes of one block; beyond this a proved bound is used instead


@dataclass(frozen=True, slots=True, eq=False)
class Profile:
    """The cost of a block at each cell, per unit of weight.

    Parameters
    ----------
    parts : tuple of CellFunction
        Non-negative; their sum is the profile.
    exact : bool
        Whether the sum is the cost of every cell, or only nowhere below it.
    """

    parts: tuple[CellFunction, ...]
    exact: bool

    @property
    def bound(self) -> int:
        """No cell costs more than this."""
        return sum(part.bound for part in self.parts)


# Weak: a block may hold megabytes, and its cached price must not keep it alive.
_PROFILES: WeakKeyDictionary[QueryBlock, dict[int, Profile]] = WeakKeyDictionary()


def profile_of(block: QueryBlock, n_cells_max: int = N_PROFILE_CELLS_MAX) -> Profile:
    """The cost profile of a block with whole coefficients.

    Notes
    -----
    Where the classes of the block span more than `n_cells_max` cells, the triangle inequality
    bounds the magnitude of a sum of terms by the sum of the terms' magnitudes, and a factor is
    replaced by its largest magnitude.
    """
    known = _PROFILES.setdefault(block, {})
    if n_cells_max not in known:
        known[n_cells_max] = _profile(block, n_cells_max)
    return known[n_cells_max]


def _profile(block: QueryBlock, n_cells_max: int) -> Profile:
    if block.query.is_constant:
        return Profile((), exact=True)
    groups = _in_some_group(block)
    terms = [_functions(term) for term in block.query.terms]
    everything = [function for functions in (*terms, groups) for function in functions]
    if any(function.degree for function in everything):
        return _of_polynomials(block, groups, n_cells_max)
    axes = [name for function in everything for name in function.axes]
    size = math.prod(function.size for function in everything)
    if len(terms) == 1 and len(set(axes)) == len(axes) and size <= n_cells_max:
        return Profile((outer_product([_magnitude(one) for one in everything]),), exact=True)
    if joint_size(everything) <= n_cells_max:
        coefficients = added([multiplied(functions) for functions in terms])
        cost = multiplied([coefficients.magnitude(), *groups]).reduced()
        return Profile((cost,), exact=True)
    bounded = [_bounded_product([*functions, *groups], n_cells_max) for functions in terms]
    return Profile(tuple(bounded), exact=False)


def _functions(term: Term) -> list[CellFunction]:
    """A term as functions whose product it is."""
    if term.scale.denominator != 1:
        raise ValueError("the coefficients of a measured row must be whole numbers")
    return [CellFunction.constant(term.scale.numerator), *map(_function, term.factors)]


# Predicates that many blocks share are converted once. Weak, as above.
_FUNCTIONS: WeakKeyDictionary[Factor, CellFunction] = WeakKeyDictionary()


_SIZES: WeakKeyDictionary[Factor, CellFunction] = WeakKeyDictionary()


def _function(factor: Factor) -> CellFunction:
    known = _FUNCTIONS.get(factor)
    if known is None:
        known = _FUNCTIONS[factor] = CellFunction.of_levels(factor.axes, factor.numbers)
    return known


def _magnitude(function: CellFunction) -> CellFunction:
    magnitude = function.magnitude()
    return function if magnitude is function else magnitude.reduced()


def _in_some_group(block: QueryBlock) -> list[CellFunction]:
    """The indicator of the cells that are in some group, unless every cell is."""
    if block.partition is None:
        return []
    groups = block.partition.groups
    if isinstance(groups, Tiles):
        is_in = (groups.values >= 0).astype(np.int64)
        classes = tuple(AxisClasses.of_labels(one) for one in groups.along)
        found = CellFunction(block.partition.axes, classes, is_in).reduced()
        return [] if is_in.all() else [found]
    if isinstance(groups, Pieces):
        is_inside = (groups.coefficients[:, 0] >= 0).astype(np.int64)
        inside: NDArray[np.int64] | Pieces = constant_pieces(groups.starts, is_inside, groups.size)
        is_everywhere = bool(is_inside.all())
    else:
        inside = (groups >= 0).astype(np.int64)
        is_everywhere = bool(inside.all())
    return [] if is_everywhere else [CellFunction.of_levels(block.partition.axes, inside)]


def _of_polynomials(block: QueryBlock, groups: list[CellFunction], n_cells_max: int) -> Profile:
    """The profile of a block along whose axes some factor is a polynomial.

    The magnitude of a product is the product of magnitudes. Of a sum, the triangle inequality gives
    a bound. So that maxima are found at the ends of classes, a product stays a polynomial along one
    axis at most, and is bounded along others.
    """
    parts = []
    for term in block.query.terms:
        sizes = [CellFunction.constant(abs(term.scale.numerator)), *map(_size_of, term.factors)]
        curved = [place for place, one in enumerate(sizes) if one.degree]
        for place in curved[1:]:
            sizes[place] = sizes[place].flattened()
        together = [*sizes, *groups]
        if joint_size(together) <= n_cells_max:
            parts.append(multiplied(together))
        else:
            flat = [one.flattened() for one in together]
            parts.append(_bounded_product(flat, n_cells_max))
    exact = len(parts) == 1 and parts[0].exact
    return Profile(tuple(parts), exact)


def _size_of(factor: Factor) -> CellFunction:
    """The magnitude of a factor."""
    known = _SIZES.get(factor)
    if known is None:
        if isinstance(factor.numbers, Pieces):
            pieces, exact = magnitudes(factor.numbers)
            found = CellFunction.of_levels(factor.axes, pieces)
            known = CellFunction(found.axes, found.classes, found.values, exact)
        else:
            known = _magnitude(_function(factor))
        _SIZES[factor] = known
    return known


def _bounded_product(functions: list[CellFunction], n_cells_max: int) -> CellFunction:
    """A function nowhere below the product's magnitude, on at most `n_cells_max` cells."""
    remaining = sorted((function.magnitude() for function in functions), key=lambda f: f.size)
    while joint_size(remaining) > n_cells_max:
        largest = remaining.pop()
        remaining.insert(0, CellFunction.constant(largest.bound))
    return multiplied(remaining).reduced()


def row_cost(
    planned: PlannedMeasurement,
    profile: Profile | None = None,
    *,
    rows_per_unit: int = 1,
    by: RowsByLevel | None = None,
) -> Profile:
    """What measuring a block costs each cell, in units; `profile` is the profile of the block.

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
    """The cost of one squared unit of a coefficient."""
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
