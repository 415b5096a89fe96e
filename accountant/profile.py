"""Cost profiles: what one unit of weight on every row of a block costs each cell.

The rows of a block share no cell, so a cell pays for the one row that holds it: the profile of a
block is the magnitude of its query's coefficient on the cells of some group, and 0 elsewhere. It
is read off the block itself; nobody's word is taken for a sensitivity.

Nothing here knows about budgets or data. Proof: proofs/table_cost.md, "Profiles".
"""

from dataclasses import dataclass
from weakref import WeakKeyDictionary

import numpy as np

from accountant.cell_function import CellFunction, added, joint_size, multiplied
from cube.block import QueryBlock
from cube.query import Term

N_PROFILE_CELLS_MAX = 2**16  # classes of one block; beyond it a proved bound replaces the profile


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


# Weak: a block may hold megabytes, and its price must not be what keeps it alive.
_PROFILES: WeakKeyDictionary[QueryBlock, dict[int, Profile]] = WeakKeyDictionary()


def profile_of(block: QueryBlock, n_cells_max: int = N_PROFILE_CELLS_MAX) -> Profile:
    """The cost profile of a block with whole coefficients.

    Notes
    -----
    Where the classes of the block span more than `n_cells_max` cells, the triangle inequality
    bounds the magnitude of a sum of terms by the sum of the terms' magnitudes, and a factor's
    largest magnitude stands for the factor.
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
    factors = [CellFunction.of_levels(factor.axes, factor.values) for factor in term.factors]
    return [CellFunction.constant(term.scale.numerator), *factors]


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
