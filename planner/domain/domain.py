"""Predicates, summands and group keys as exact arrays over public levels.

Everything here is a function of the schema and the SQL text. A predicate is 1 where it is true and
0 where it is false or NULL, as in WHERE; a summand is 0 where it is NULL, as in SUM.
"""

import datetime as dt
from dataclasses import dataclass, replace
from fractions import Fraction
from functools import reduce
from typing import Any, TypeAlias

import numpy as np
from numpy.typing import NDArray
from sqlglot import exp

from cube.axis import LevelValue, MeasureAxis, NumericAxis
from cube.query import COEFFICIENT_MAX, Scope, rational_gcd
from cube.refusals import TooLarge
from cube.schema import Schema
from planner.cache import BoundedCache
from planner.domain.allowance import Allowance
from planner.domain.allowed import check_scalar
from planner.domain.bins import Probed, collapsed, probes_for
from planner.domain.comparisons import Comparison, plain_comparison
from planner.domain.literals import refuse_foreign_literals
from planner.domain.scratchpad import Evaluated, Scratchpad
from planner.sql.messages import listed, position, shown, unsupported
from planner.sql.nodes import IS_PUBLIC

CAP_IT = "Cap it, as in SUM(LEAST(x, 1000000))."
# What remains of a double whose exact value has more bits. More would make its row's whole-number
# coefficients so large that the smallest weight, 2**-40, is already dear.
SIGNIFICANT_BITS = 26
N_CONSTANT_BYTES = 64  # that a remembered comparison keeps for each constant, roughly

_FIRST_DAY = np.datetime64("0001-01-01")
_LAST_DAY = np.datetime64("9999-12-31")
_INTEGERS = ("TINYINT", "SMALLINT", "INTEGER", "BIGINT", "UTINYINT", "USMALLINT", "UINTEGER")
_EXACT = ("DECIMAL", "HUGEINT", "UHUGEINT", "UBIGINT")
_DOUBLES = ("FLOAT", "DOUBLE")


@dataclass(frozen=True, eq=False)
class LevelArray:
    """Whole numbers over the levels of a few axes (no axes for a constant).

    Parameters
    ----------
    axes : tuple of str
        Sorted.
    values : (n_levels of axes[0], ...) ndarray of int64
    """

    axes: Scope
    values: NDArray[np.int64]


@dataclass(frozen=True, eq=False)
class KeyArray:
    """A group key on levels: which of its values each combination has.

    Parameters
    ----------
    axes : tuple of str
        Sorted, at least one.
    codes : (n_levels of axes[0], ...) ndarray of int64
        Positions in `values`.
    values : tuple
        The distinct values, in no particular order; None for NULL.
    sql_type : str
        BIGINT, DOUBLE, BOOLEAN, VARCHAR or DATE.
    """

    axes: Scope
    codes: NDArray[np.int64]
    values: tuple[LevelValue, ...]
    sql_type: str


# By table and comparison: what it is on the levels, and how many cells it was evaluated on.
KnownConditions: TypeAlias = BoundedCache[tuple[str, Comparison], tuple[LevelArray, int]]


class PublicDomain:
    """Evaluates the expressions of one SELECT over one table on its public levels."""

    def __init__(
        self,
        table: str,
        schema: Schema,
        scratchpad: Scratchpad,
        conditions: KnownConditions,
        allowance: Allowance,
    ) -> None:
        self._table = table
        self.schema = schema
        self.allowance = allowance
        self._scratchpad = scratchpad
        # By identity, with the node kept alive: WHERE is asked for once for every answer column.
        self._known: dict[int, tuple[exp.Expr, LevelArray]] = {}
        self._conditions = conditions
        self._levels: dict[str, frozenset[LevelValue]] = {}

    def truth(self, condition: exp.Expr) -> LevelArray:
        """1 where `condition` is true, 0 elsewhere."""
        if id(condition) not in self._known:
            self._known[id(condition)] = (condition, self._remembered_truth(condition))
        return self._known[id(condition)][1]

    def _remembered_truth(self, condition: exp.Expr) -> LevelArray:
        """Looked up, if it is a plain comparison that some statement has had before.

        It counts against the statement's limit as if it were evaluated: whether a statement is
        planned must not depend on others.
        """
        comparison = None if _lists_public_values(condition) else plain_comparison(condition)
        if comparison is None:
            return self._truth(condition)
        known = self._conditions.get((self._table, comparison))
        if known is None:
            array, n_cells = self._counted_truth(condition)
            array.values.flags.writeable = False
            known = array, n_cells
            n_bytes = array.values.nbytes + N_CONSTANT_BYTES * len(comparison.constants)
            self._conditions.put((self._table, comparison), known, n_bytes=n_bytes)
        else:
            self.allowance.cells(known[1], condition)
        return known[0]

    def _truth(self, condition: exp.Expr) -> LevelArray:
        return self._counted_truth(condition)[0]

    def _counted_truth(self, condition: exp.Expr) -> tuple[LevelArray, int]:
        """Where a condition is true, and how many cells it was evaluated on."""
        self._refuse_measures(condition)
        evaluated, probed = self._evaluate(condition)
        if evaluated.sql_type not in ("BOOLEAN", "NULL"):
            raise unsupported(
                condition, f"is no condition but a {evaluated.sql_type}", "Compare it to something."
            )
        is_true = np.zeros(evaluated.null.shape, dtype=np.int64)
        if evaluated.sql_type == "BOOLEAN":
            is_true = (evaluated.values.astype(np.bool_) & ~evaluated.null).astype(np.int64)
        array = LevelArray(evaluated.axes, collapsed(is_true, evaluated.axes, probed))
        return array, evaluated.null.size

    def numbers(self, summand: exp.Expr) -> tuple[LevelArray, Fraction]:
        """Whole numbers and a unit; their product is the summand, and 0 where that is NULL.

        Integers and decimals are exact. Doubles are exact if one unit of at most 26 bits serves
        them all; else each is rounded to a multiple of ``2**-26`` of the power of two above the
        largest, and what is rounded here is the query from then on.
        """
        evaluated, probed = self._evaluate(summand)
        kept = ~evaluated.null
        if evaluated.sql_type.startswith(_DOUBLES):
            doubles = np.where(kept, evaluated.values, 0).astype(np.float64)
            if not np.isfinite(doubles).all():
                raise unsupported(
                    summand, "is infinite or not a number on some level", "Guard it with CASE."
                )
            whole, unit = dyadic(doubles)
        elif evaluated.sql_type.startswith(_EXACT):
            exact = np.where(kept, evaluated.values, 0).astype(object)
            whole, unit = _common_unit(exact, summand)
        elif evaluated.sql_type in _INTEGERS:
            whole, unit = np.where(kept, evaluated.values, 0).astype(np.int64), Fraction(1)
        elif evaluated.sql_type == "NULL":
            whole, unit = np.zeros(kept.shape, dtype=np.int64), Fraction(1)
        else:
            raise unsupported(
                summand,
                f"is no number but a {evaluated.sql_type}",
                "Count a condition with COUNT(*) FILTER (WHERE ..).",
            )
        if max(int(whole.max()), -int(whole.min())) > COEFFICIENT_MAX:
            raise unsupported(
                summand, "has values beyond 2**40, which are not summed exactly", CAP_IT
            )
        return LevelArray(evaluated.axes, collapsed(whole, evaluated.axes, probed)), unit

    def key(self, expression: exp.Expr) -> KeyArray:
        """The values of a GROUP BY expression; a binned column's are the lower edges."""
        self._refuse_measures(expression)
        if isinstance(expression, exp.Column):
            axis = self.schema.by_name[expression.name]
            codes = np.arange(axis.size, dtype=np.int64)
            return KeyArray((axis.name,), codes, axis.levels, axis.sql_type)
        evaluated, probed = self._evaluate(expression)
        if not evaluated.axes:
            raise unsupported(expression, "groups by no column", "Leave it out of GROUP BY.")
        different, place = _different(evaluated)
        sql_type, plain = _plain(different, expression)
        places: dict[LevelValue, int] = {}
        codes = np.array([places.setdefault(v, len(places)) for v in plain], dtype=np.int64)[place]
        on_levels = collapsed(codes.reshape(evaluated.null.shape), evaluated.axes, probed)
        return KeyArray(evaluated.axes, on_levels, tuple(places), sql_type)

    def _refuse_measures(self, expression: exp.Expr) -> None:
        """A measure is clamped and rounded: what it is compared with might not mean the same."""
        for column in expression.find_all(exp.Column):
            axis = self.schema.by_name.get(column.name)
            if isinstance(axis, MeasureAxis) and not _is_tested_for_null(column):
                keys = (one.name for one in self.schema.axes if not isinstance(one, MeasureAxis))
                raise unsupported(
                    column,
                    "is a measure, which is summed and averaged but no group key or condition",
                    f"Group and filter by {listed(keys)}.",
                )

    def _evaluate(self, expression: exp.Expr) -> tuple[Evaluated, dict[str, Probed]]:
        check_scalar(expression)  # before anything else looks at it; the scratchpad checks again
        refuse_foreign_literals(expression, self.schema, self._levels)
        probed = probes_for(expression, self.schema, self._constant_double)
        evaluated = self._scratchpad.evaluate(
            expression,
            table=self._table,
            probes={name: probes.values for name, probes in probed.items()},
            allowance=self.allowance,
        )
        self.allowance.cells(evaluated.null.size, expression)
        return evaluated, probed

    def _constant_double(self, constant: exp.Expr) -> float | None:
        as_double = exp.cast(constant.copy(), exp.DType.DOUBLE)
        evaluated = self._scratchpad.evaluate(
            as_double, table=self._table, allowance=self.allowance
        )
        return None if evaluated.null.item() else float(evaluated.values.item())

    def is_binned(self, expression: exp.Expr) -> bool:
        """Whether an expression is a bare column of which only bins are public."""
        return isinstance(expression, exp.Column) and isinstance(
            self.schema.by_name[expression.name], NumericAxis
        )


def _is_tested_for_null(column: exp.Column) -> bool:
    """Whether a column, perhaps between parentheses, is an operand of IS."""
    above = column.parent
    while isinstance(above, exp.Paren):
        above = above.parent
    return isinstance(above, exp.Is)


def _lists_public_values(condition: exp.Expr) -> bool:
    """Whether it is an IN of a public table's values, which may be none of the column's levels."""
    return isinstance(condition, exp.In) and any(
        value.meta.get(IS_PUBLIC) for value in condition.expressions
    )


def dyadic(values: NDArray[np.float64]) -> tuple[NDArray[np.int64], Fraction]:
    """Doubles as whole multiples of one power of two.

    >>> dyadic(np.array([0.5, 3.0]))
    (array([1, 6]), Fraction(1, 2))
    """
    nonzero = values[values != 0]
    if nonzero.size == 0:
        return np.zeros(values.shape, dtype=np.int64), Fraction(1)
    mantissas, exponents = np.frexp(nonzero)
    whole = np.ldexp(mantissas, 53).astype(np.int64)
    trailing = np.log2((whole & -whole).astype(np.float64)).astype(np.int64)
    top = int(exponents.max())
    finest = int((exponents - 53 + trailing).min())
    unit_exponent = max(finest, top - SIGNIFICANT_BITS)
    multiples = np.rint(np.ldexp(values, -unit_exponent)).astype(np.int64)
    return multiples, Fraction(2) ** unit_exponent


def _common_unit(exact: NDArray[Any], summand: exp.Expr) -> tuple[NDArray[np.int64], Fraction]:
    """Integers or decimals beyond 64 bits as whole multiples of their greatest common divisor."""
    fractions = {value: Fraction(value) for value in set(exact.ravel().tolist())}
    unit = reduce(rational_gcd, fractions.values(), Fraction(0)) or Fraction(1)
    wholes = {value: int(fraction / unit) for value, fraction in fractions.items()}
    if max(abs(whole) for whole in wholes.values()) > COEFFICIENT_MAX:
        raise unsupported(
            summand,
            "has values too far apart to be summed exactly",
            "Round them, as in ROUND(x, 2).",
        )
    multiples = [wholes[value] for value in exact.ravel()]
    return np.array(multiples, dtype=np.int64).reshape(exact.shape), unit


def _different(evaluated: Evaluated) -> tuple[Evaluated, NDArray[np.int64]]:
    """The same with each value once, and the place of each cell's among them.

    Cells are many and keys are few: what takes a Python object each is done for the keys alone.
    """
    flat, null = evaluated.values.ravel(), evaluated.null.ravel()
    if flat.dtype == object:
        places: dict[object, int] = {}
        found = zip(flat.tolist(), null.tolist(), strict=True)
        place = np.array([places.setdefault(one, len(places)) for one in found], dtype=np.int64)
    else:
        _, by_value = np.unique(flat, return_inverse=True)
        _, place = np.unique(2 * by_value + null, return_inverse=True)
    _, first = np.unique(place, return_index=True)
    return replace(evaluated, values=flat[first], null=null[first]), place


def _plain(evaluated: Evaluated, key: exp.Expr) -> tuple[str, list[LevelValue]]:
    """Key values as Python values of one of the five types that levels have."""
    sql_type, flat = evaluated.sql_type, evaluated.values.ravel()
    null = evaluated.null.ravel().tolist()
    plain: list[LevelValue]
    if sql_type in ("VARCHAR", "BOOLEAN", "NULL"):
        plain, sql_type = flat.tolist(), "VARCHAR" if sql_type == "NULL" else sql_type
    elif sql_type in (*_INTEGERS, "HUGEINT", "UHUGEINT", "UBIGINT"):
        whole = [0 if n else int(value) for value, n in zip(flat, null, strict=True)]
        if max(abs(value) for value in whole) >= 2**63:
            raise TooLarge(
                f"The group key {shown(key)} is beyond 64 bits.",
                hint="Cast it to DOUBLE.",
                position=position(key),
            )
        plain, sql_type = list(whole), "BIGINT"
    elif sql_type.startswith((*_DOUBLES, "DECIMAL")):
        doubles = np.array([0.0 if n else float(v) for v, n in zip(flat, null, strict=True)])
        if not np.isfinite(doubles).all():
            raise unsupported(
                key, "is infinite or not a number on some level", "Guard it with CASE."
            )
        plain, sql_type = (doubles + 0.0).tolist(), "DOUBLE"  # + 0.0 turns -0.0 into 0.0
    elif sql_type in ("DATE", "TIMESTAMP"):
        plain, sql_type = _days(flat, evaluated.null.ravel(), key), "DATE"
    else:
        raise unsupported(key, f"is a {sql_type}, which is no key", "Cast it to a simple type.")
    return sql_type, [None if n else value for value, n in zip(plain, null, strict=True)]


def _days(flat: NDArray[Any], null: NDArray[np.bool_], key: exp.Expr) -> list[LevelValue]:
    """Dates, from dates or from timestamps at midnight (DATE_TRUNC gives those)."""
    moments = flat.astype("datetime64[us]")
    days = moments.astype("datetime64[D]")
    if (~null & (days.astype("datetime64[us]") != moments)).any():
        raise unsupported(key, "is a moment, not a day", "Cast it to DATE.")
    if (~null & ~((days >= _FIRST_DAY) & (days <= _LAST_DAY))).any():
        raise unsupported(key, "has days outside the years 1 to 9999", "Leave them out with CASE.")
    values: list[LevelValue] = [
        None if is_null else dt.date.fromisoformat(str(day))
        for day, is_null in zip(days, null, strict=True)
    ]
    return values
