"""What is said of values that count as others than they are: clamped ones, and those of OTHER.

A measure is clamped to its public bounds, and a column with OTHER has one level for every value
that is not declared. A sum or a group that touches such a value means something else than the
column's name says, so each of them is noted once: where a column is summed, or is in a group key.
How many rows have one is an ordinary count, which the note repeats once it was bought.
"""

from collections.abc import Iterator, Sequence
from fractions import Fraction

import numpy as np
from sqlglot import exp

from cube.axis import Axis, MeasureAxis
from cube.query import Factor, QueryBlock, counting
from cube.schema import Schema
from planner.changed_values import ChangedValues
from planner.domain.domain import KeyArray, LevelArray


def changed_in_sum(
    summand: exp.Expr, conditions: Sequence[LevelArray], schema: Schema
) -> Iterator[ChangedValues]:
    """What is said of the columns whose values are summed.

    Parameters
    ----------
    summand : Expr
        Over axes. A column that is only compared in it is not summed.
    conditions : sequence of LevelArray
        Those under which it is summed.
    schema : Schema
    """
    nodes = summand.walk(prune=lambda node: isinstance(node, exp.Predicate))
    for name in dict.fromkeys(node.name for node in nodes if isinstance(node, exp.Column)):
        axis = schema.by_name[name]
        if isinstance(axis, MeasureAxis):
            low, high = _number(axis.low), _number(axis.high)
            said = f"Values of {name} below {low} count as {low}, those above {high} as {high}."
            beyond = f"have {name} at a bound or beyond it"
            yield ChangedValues(schema.table, said, beyond, _rows(axis, 0, axis.n_regular - 1))
        elif _has_other(axis, conditions):
            yield _of_other(axis, schema)


def changed_in_key(
    key: KeyArray, conditions: Sequence[LevelArray], schema: Schema
) -> Iterator[ChangedValues]:
    """What is said of the columns of a group key, in whose groups OTHER may be."""
    for place, name in enumerate(key.axes):
        axis = schema.by_name[name]
        other = axis.other_position
        if other is None or not _has_other(axis, conditions):
            continue
        if (np.take(key.codes, other, axis=place) >= 0).any():
            yield _of_other(axis, schema)


def _has_other(axis: Axis, conditions: Sequence[LevelArray]) -> bool:
    """Whether records may be at a column's OTHER that satisfy the conditions on it alone."""
    place = axis.other_position
    own = [one for one in conditions if one.axes == (axis.name,)]
    return place is not None and all(one.values[place] for one in own)


def _of_other(axis: Axis, schema: Schema) -> ChangedValues:
    other = repr(axis.other) if isinstance(axis.other, str) else str(axis.other)
    and_null = "" if axis.null else ", and NULL,"
    said = f"Values of {axis.name} that are not declared{and_null} count as {other}."
    return ChangedValues(
        schema.table, said, f"have {axis.name} {other}", _rows(axis, axis.n_regular)
    )


def _rows(axis: Axis, *places: int) -> QueryBlock:
    """The number of rows at some levels."""
    is_there = np.zeros(axis.size, dtype=np.int64)
    is_there[list(places)] = 1
    return QueryBlock(counting([Factor((axis.name,), is_there)]))


def _number(value: Fraction | int) -> str:
    """A public bound, with all of its digits.

    >>> _number(Fraction(1_250_000)), _number(Fraction(1, 4))
    ('1250000', '0.25')
    """
    exact = Fraction(value)
    return str(exact.numerator) if exact.denominator == 1 else repr(float(exact))
