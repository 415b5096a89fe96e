"""Cost profiles: what one unit of weight on every row of a block costs each cell.

The rows of a block share no cell, so a cell pays for the one row that contains it: the profile of a
block is the magnitude of its query's coefficient on the cells of some group, and 0 elsewhere. It is
computed from the block itself; no caller states a sensitivity.

Nothing here knows about budgets or data. Proof: proofs/table_cost.md, "Profiles".
"""

import math
from dataclasses import dataclass
from weakref import WeakKeyDictionary

import numpy as np
from numpy.typing import NDArray

from accountant.cost.cell_function import CellFunction, added, joint_size, multiplied, outer_product
from cube.classes import AxisClasses, Tiles
from cube.pieces import Pieces, constant_pieces, magnitudes
from cube.query import Factor, QueryBlock, Term

N_PROFILE_CELLS_MAX = 2**16  # classes of one block; beyond this a proved bound is used instead


@dataclass(frozen=True, slots=True, eq=False)
class Profile:
    """What a block costs each cell, per unit of weight.

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
    groups = _groups(block)
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
        raise ValueError("a measured row has whole coefficients")
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


def _groups(block: QueryBlock) -> list[CellFunction]:
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
