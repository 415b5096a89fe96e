"""What to buy for marginals: a budget divided, or tables refined until each meets a target.

Decided from weights, targets and the public schema alone; no value is read.
"""

import math
from collections.abc import Mapping, Sequence
from fractions import Fraction
from typing import Final

from cube.measurement import UNITS_PER_EPSILON, Weight
from cube.query import Scope
from cube.schema import Schema
from cube.target import AccuracyTarget
from inference.marginals.budget import DeclaredMarginal, laplace_weights
from inference.marginals.error_law import cell_error
from planner.measuring.weights import weight_for
from proxy.api.marginals import MarginalSet
from proxy.marginals.history import WholeTable, natural_partition, of_scope, promised

Added = Mapping[Scope, Weight]

ENOUGH: Final = (
    1 + 1e-6
)  # of a half-width: a target that was promised and bought is not bought again
# A mean of several tables has a smaller variance than each of them, but at a low confidence it may
# have a wider interval than Laplace noise: then all are bought a little more precisely.
FACTORS: Final = (Fraction(1), Fraction(5, 4), Fraction(3, 2), Fraction(2))


def divided(
    sets: Sequence[MarginalSet], schema: Schema, budget: Fraction, known: Sequence[WholeTable]
) -> Added:
    """The weight to add to each set's table, for the least total variance."""
    declared = [DeclaredMarginal(one.scope, one.importance) for one in sets]
    sizes = {axis.name: axis.size for axis in schema.axes}
    before = [Fraction(_units(known, one.scope), UNITS_PER_EPSILON) for one in declared]
    added = laplace_weights(declared, sizes, budget, before)
    return {
        one.scope: weight for one, weight in zip(declared, added, strict=True) if weight is not None
    }


def needed(
    sets: Sequence[MarginalSet],
    schema: Schema,
    target: AccuracyTarget,
    known: Sequence[WholeTable],
    *,
    total: float | None,
) -> Added:
    """The weights to add so that each reconciled cell of each set meets a target.

    Larger tables come first, because smaller ones follow from them in part.
    """
    units = weight_for(target, Fraction(1)).units
    scopes = sorted((one.scope for one in sets), key=lambda one: -math.prod(schema.sizes(one)))
    added: dict[Scope, Weight] = {}
    for factor in FACTORS:
        tables, added = list(known), {}
        for scope in scopes:
            missing = math.ceil(units * factor) - _units(known, scope)
            if missing > 0 and not is_known(tables, scope, target, total=total):
                added[scope] = Weight(missing)
                tables = raised(tables, scope, schema, added[scope])
        if all(is_known(tables, scope, target, total=total) for scope in scopes):
            break
    return added


def is_known(
    tables: Sequence[WholeTable], scope: Scope, target: AccuracyTarget, *, total: float | None
) -> bool:
    """Whether the reconciled tables will meet a target on a scope."""
    measured = [one.measured for one in tables]
    if not any(set(scope).issubset(one.scope) for one in measured):
        return False
    error = cell_error(measured, scope, total=total)
    return error.half_width(target.confidence) <= target.half_width * ENOUGH


def raised(
    tables: Sequence[WholeTable], scope: Scope, schema: Schema, added: Weight
) -> list[WholeTable]:
    """The tables after one of them is refined, or measured for the first time."""
    before = of_scope(tables, scope)
    partition = natural_partition(scope, schema.sizes(scope))
    after = promised(before, partition, _units(tables, scope) + added.units)
    return [*(one for one in tables if one is not before), after]


def _units(tables: Sequence[WholeTable], scope: Scope) -> int:
    known = of_scope(tables, scope)
    return 0 if known is None else known.weight
