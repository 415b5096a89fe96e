"""Products of level arrays as terms of a linear query.

Arrays that share a column are multiplied out over their columns together; the rest stay apart, so
that a conjunction over five unrelated columns is five small factors.
"""

import math
import operator
from collections.abc import Iterable, Sequence
from fractions import Fraction
from functools import reduce
from weakref import WeakKeyDictionary, WeakValueDictionary

import numpy as np
from numpy.typing import NDArray

from cube.query import (
    COEFFICIENT_MAX,
    N_FACTOR_CELLS_MAX,
    N_TERMS_MAX,
    Factor,
    LinearQuery,
    Scope,
    Term,
)
from cube.refusals import TooLarge, UnsupportedSql
from cube.schema import Schema
from planner.domain.allowance import Allowance
from planner.domain.domain import CAP_IT, LevelArray, spread

N_SHARED_CELLS_MAX = 2**10  # a larger factor is rarely seen again, and takes long to compare
N_CANCELLING_CELLS_MAX = 2**16  # up to here a query is checked for terms that cancel everywhere

# Predicates that many statements share are one object, so that results computed for it can be
# reused. Weak references: they live as long as plans and the history do. The key includes the
# shape, which the bytes do not.
_FACTORS: WeakValueDictionary[tuple[Scope, tuple[int, ...], bytes], Factor] = WeakValueDictionary()


def check_size(axes: Scope, schema: Schema) -> None:
    """Raise TooLarge if the columns have too many combinations of levels to be tied together."""
    n_cells = schema.n_cells(axes)
    if n_cells > N_FACTOR_CELLS_MAX:
        raise TooLarge(
            f"Conditions tie {', '.join(axes)} together: {n_cells} combinations of levels, "
            f"{N_FACTOR_CELLS_MAX} are allowed.",
            hint="Conditions on different columns that are joined by AND are not tied.",
        )


def connected(scopes: Sequence[Scope]) -> list[list[int]]:
    """Positions of scopes, grouped so that only scopes of one group share axes.

    >>> connected([("a",), ("b",), ("a", "c"), ("b", "d")])
    [[0, 2], [1, 3]]
    """
    groups: list[tuple[set[str], list[int]]] = []
    for position, scope in enumerate(scopes):
        touching = [group for group in groups if not group[0].isdisjoint(scope)]
        axes = set(scope).union(*(group[0] for group in touching))
        members = sorted([position, *(member for group in touching for member in group[1])])
        groups = [group for group in groups if group not in touching]
        groups.append((axes, members))
    return sorted(members for _, members in groups)


def multiplied(arrays: Sequence[LevelArray], schema: Schema, allowance: Allowance) -> LevelArray:
    """The product of arrays over all their axes.

    Raises
    ------
    TooLarge
        If there are too many combinations of levels, here or in the statement.
    UnsupportedSql
        If a product may pass 2**40.
    """
    if len(arrays) == 1:
        return arrays[0]
    axes = tuple(sorted({name for array in arrays for name in array.axes}))
    check_size(axes, schema)
    allowance.cells(schema.n_cells(axes))
    if math.prod(_bound(array.values) for array in arrays) > COEFFICIENT_MAX:
        raise UnsupportedSql(
            "A product in SUM has values beyond 2**40, which are not summed exactly.", hint=CAP_IT
        )
    spreads = [spread(array.values, array.axes, axes) for array in arrays]
    return LevelArray(axes, reduce(operator.mul, spreads))


def independent(
    arrays: Sequence[LevelArray], schema: Schema, allowance: Allowance
) -> list[LevelArray]:
    """Arrays with the same product, no two of which share an axis."""
    groups = connected([array.axes for array in arrays])
    return [multiplied([arrays[member] for member in group], schema, allowance) for group in groups]


def product_term(
    scale: Fraction, arrays: Sequence[LevelArray], schema: Schema, allowance: Allowance
) -> Term:
    """``scale`` times the product of arrays."""
    factors: list[Factor] = []
    for array in independent(arrays, schema, allowance):
        if array.axes:
            factors.append(_factor(array))
        else:
            scale *= int(array.values)
    return Term(scale, tuple(factors))


# What many levels are evaluated to once is a few pieces from then on.
_OF_ARRAY: WeakKeyDictionary[LevelArray, Factor] = WeakKeyDictionary()


def _factor(array: LevelArray) -> Factor:
    if array.values.size > N_SHARED_CELLS_MAX:
        found = _OF_ARRAY.get(array)
        if found is None:
            found = _OF_ARRAY[array] = Factor(array.axes, array.values)
        return found
    key = (array.axes, array.values.shape, array.values.tobytes())
    known = _FACTORS.get(key)
    if known is None:
        known = _FACTORS[key] = Factor(array.axes, array.values)
    return known


def merged_query(terms: Iterable[Term], constant: Fraction, schema: Schema) -> LinearQuery:
    """The sum of terms: equal products are added up, and cancelling terms are removed.

    Raises
    ------
    TooLarge
        If more than `N_TERMS_MAX` different terms remain.
    """
    merged: dict[tuple[tuple[Scope, bytes], ...], Term] = {}
    for term in terms:
        key = tuple((factor.axes, factor.content) for factor in term.factors)
        known = merged.get(key)
        merged[key] = term if known is None else Term(known.scale + term.scale, term.factors)
    kept = tuple(term for term in merged.values() if term.scale != 0)
    if len(kept) > N_TERMS_MAX:
        raise TooLarge(
            f"The answer is a sum of {len(kept)} different terms; {N_TERMS_MAX} are allowed.",
            hint="Ask for its parts as separate columns.",
        )
    query = LinearQuery(kept, constant)
    return LinearQuery((), constant) if _cancels(query, schema) else query


def _cancels(query: LinearQuery, schema: Schema) -> bool:
    """Whether several terms add up to zero on every cell (a total minus all of its parts).

    Decided exactly for small scopes, and not claimed for others.
    """
    axes = query.scope
    if len(query.terms) < 2 or schema.n_cells(axes) > N_CANCELLING_CELLS_MAX:  # noqa: PLR2004 - a sum
        return False
    row, _ = query.primitive()
    if row.bound > 2**62:  # beyond it int64 sums could wrap round; such a query is refused later
        return False
    total = np.zeros(schema.sizes(axes), dtype=np.int64)
    for term in row.terms:
        product = np.full([1] * len(axes), int(term.scale), dtype=np.int64)
        for factor in term.factors:
            product = product * spread(factor.values, factor.axes, axes)
        total += product
    return not total.any()


def _bound(values: NDArray[np.int64]) -> int:
    return max(abs(int(values.min())), abs(int(values.max())))
