"""Predicates, summands and group keys as exact arrays over public levels.

Everything here is a function of the schema and the SQL text. A predicate is 1 where it is true and
0 where it is false or NULL, as in WHERE; a summand is 0 where it is NULL, as in SUM.
"""

from dataclasses import dataclass
from fractions import Fraction
from typing import TypeAlias

import numpy as np
from numpy.typing import NDArray
from sqlglot import exp

from cube.axis import LevelValue, NumericAxis
from cube.query import COEFFICIENT_MAX, Scope
from cube.schema import Schema
from cube.timestamps import TimestampAxis
from planner.cache import BoundedCache
from planner.domain.allowance import Allowance
from planner.domain.allowed import check_scalar
from planner.domain.bins import Probed, collapsed, probes_for
from planner.domain.clocks import on_clocks
from planner.domain.comparisons import Comparison, plain_comparison
from planner.domain.evaluated import Evaluated
from planner.domain.key_values import different, plain_values
from planner.domain.literals import refuse_foreign_literals
from planner.domain.polynomials import on_levels, polynomial_of
from planner.domain.scratchpad import Scratchpad, columns_of
from planner.domain.whole_multiples import whole_multiples
from planner.sql.messages import unsupported
from planner.sql.nodes import IS_PUBLIC

CAP_IT = "Cap it, as in SUM(LEAST(x, 1000000))."
N_CONSTANT_BYTES = 64  # that a remembered comparison keeps for each constant, roughly


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
        BIGINT, DOUBLE, BOOLEAN, VARCHAR, DATE or TIMESTAMP.
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

        A polynomial of one column is exact, as are integers and decimals; `whole_multiples` says
        what becomes of doubles.
        """
        found = self._polynomial(summand)
        if found is None:
            evaluated, probed = self._evaluate(summand)
            whole, unit = whole_multiples(evaluated, summand)
            found = LevelArray(evaluated.axes, collapsed(whole, evaluated.axes, probed)), unit
        values = found[0].values
        if max(int(values.max()), -int(values.min())) > COEFFICIENT_MAX:
            raise unsupported(
                summand, "has values beyond 2**40, which are not summed exactly", CAP_IT
            )
        return found

    def _polynomial(self, summand: exp.Expr) -> tuple[LevelArray, Fraction] | None:
        """The numbers of a polynomial of one column, without the scratchpad; None of all others."""
        names = columns_of(summand)
        axis = self.schema.by_name[names[0]] if len(names) == 1 else None
        polynomial = None if axis is None else polynomial_of(summand, axis)
        values = None if axis is None or polynomial is None else on_levels(polynomial, axis)
        if values is None:
            return None
        self.allowance.cells(values[0].size, summand)
        return LevelArray(names, values[0]), values[1]

    def key(self, expression: exp.Expr) -> KeyArray:
        """The values of a GROUP BY expression; a binned column's are the lower edges."""
        if isinstance(expression, exp.Column):
            axis = self.schema.by_name[expression.name]
            codes = np.arange(axis.size, dtype=np.int64)
            return KeyArray((axis.name,), codes, axis.levels, axis.sql_type)
        evaluated, probed = self._evaluate(expression)
        if not evaluated.axes:
            raise unsupported(expression, "groups by no column", "Leave it out of GROUP BY.")
        once, place = different(evaluated)
        has_moments = any(
            isinstance(self.schema.by_name[name], TimestampAxis) for name in evaluated.axes
        )
        sql_type, plain = plain_values(once, expression, has_moments=has_moments)
        places: dict[LevelValue, int] = {}
        codes = np.array([places.setdefault(v, len(places)) for v in plain], dtype=np.int64)[place]
        on_levels = collapsed(codes.reshape(evaluated.null.shape), evaluated.axes, probed)
        return KeyArray(evaluated.axes, on_levels, tuple(places), sql_type)

    def _evaluate(self, expression: exp.Expr) -> tuple[Evaluated, dict[str, Probed]]:
        expression = on_clocks(expression, self.schema, self._scratchpad.local_time)
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


def _lists_public_values(condition: exp.Expr) -> bool:
    """Whether it is an IN of a public table's values, which may be none of the column's levels."""
    return isinstance(condition, exp.In) and any(
        value.meta.get(IS_PUBLIC) for value in condition.expressions
    )
