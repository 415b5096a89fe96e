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

from accountant.cost.cell_function import CellFunction, added, joint_size, multiplied, outer_product
from cube.block import QueryBlock
from cube.query import Factor, Term

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


def _function(factor: Factor) -> CellFunction:
    known = _FUNCTIONS.get(factor)
    if known is None:
        known = _FUNCTIONS[factor] = CellFunction.of_levels(factor.axes, factor.values)
    return known


def _magnitude(function: CellFunction) -> CellFunction:
    magnitude = function.magnitude()
    return function if magnitude is function else magnitude.reduced()


def _groups(block: QueryBlock) -> list[CellFunction]:
    """The indicator of the cells that are in some group, unless every cell is."""
    if block.partition is None:
        return []
    inside = (block.partition.labels >= 0).astype(np.int64)
    return [] if inside.all() else [CellFunction.of_levels(block.partition.axes, inside)]


def _bounded_product(functions: list[CellFunction], n_cells_max: int) -> CellFunction:
    """A function nowhere below the product's magnitude, on at most `n_cells_max` cells."""
    remaining = sorted((function.magnitude() for function in functions), key=lambda f: f.size)
    while joint_size(remaining) > n_cells_max:
        largest = remaining.pop()
        remaining.insert(0, CellFunction.constant(largest.bound))
    return multiplied(remaining).reduced()
