"""Comparisons of one column with plain constants, worked out without a database.

Most conditions are of this kind, and asking the scratchpad takes a hundred times as long. Only
where there is no doubt about what DuckDB says: whole numbers against whole numbers, doubles against
whole numbers that are doubles, text against text by code points, which are in the order of UTF-8's
bytes. Everything else is for the scratchpad, and a test holds the two to the same answers.
"""

import operator
import re
from collections.abc import Callable, Sequence
from typing import Any, TypeAlias

import numpy as np
from numpy.typing import NDArray
from sqlglot import exp

from cube.axis import INTEGER_MAX, Axis, CategoryAxis, IntegerAxis

Constant: TypeAlias = int | str

WHOLE_DIGITS_MAX = 15  # fits an int64, and is exact as a double
_WHOLE = re.compile(rf"0|[1-9][0-9]{{0,{WHOLE_DIGITS_MAX - 1}}}")
_PLAIN_TEXT = re.compile(r"[^'\\\x00-\x1f\x7f]*")  # what no dialect writes in another way

_ORDERINGS: dict[type[exp.Expr], Callable[[Any, Any], Any]] = {
    exp.EQ: operator.eq,
    exp.NEQ: operator.ne,
    exp.LT: operator.lt,
    exp.LTE: operator.le,
    exp.GT: operator.gt,
    exp.GTE: operator.ge,
}
_TURNED: dict[type[exp.Expr], type[exp.Expr]] = {
    exp.LT: exp.GT,
    exp.LTE: exp.GTE,
    exp.GT: exp.LT,
    exp.GTE: exp.LTE,
}


class Comparable:
    """The values of a column, ready to be compared: levels, or probes in their place.

    Parameters
    ----------
    values : sequence
        Whole numbers, doubles or text, by `sql_type`; None for NULL.
    sql_type : str
        Of the column.
    """

    def __init__(self, values: Sequence[Any], sql_type: str) -> None:
        null = np.array([value is None for value in values], dtype=np.bool_)
        self.null: NDArray[np.bool_] = null
        self.null.flags.writeable = False
        self.is_text = sql_type == "VARCHAR"
        dtype = {"VARCHAR": object, "BIGINT": np.int64, "DOUBLE": np.float64}[sql_type]
        nothing = "" if self.is_text else 0
        kept = [nothing if value is None else value for value in values]
        self.values: NDArray[Any] = np.array(kept, dtype=dtype)

    def holds(self, comparison: exp.Expr) -> NDArray[np.bool_] | None:
        """Where a comparison of the column is true, anything where it is NULL; None if in doubt."""
        operands = _operands(comparison)
        if operands is None:
            return None
        constants = [_constant(operand) for operand in operands]
        kind = str if self.is_text else int
        if not all(isinstance(constant, kind) for constant in constants):
            return None
        return self._compared(comparison, constants)

    def _compared(
        self, comparison: exp.Expr, constants: Sequence[Constant | None]
    ) -> NDArray[np.bool_]:
        if isinstance(comparison, exp.Between):
            low, high = constants
            return self._where(operator.ge, low) & self._where(operator.le, high)
        if isinstance(comparison, exp.In):
            found = np.zeros(self.null.shape, dtype=np.bool_)
            for constant in constants:
                found |= self._where(operator.eq, constant)
            return found
        kind = type(comparison)
        if not isinstance(comparison.this.unnest(), exp.Column):
            kind = _TURNED.get(kind, kind)
        return self._where(_ORDERINGS[kind], constants[0])

    def _where(self, ordering: Callable[[Any, Any], Any], constant: Any) -> NDArray[np.bool_]:
        found: NDArray[np.bool_] = ordering(self.values, constant)
        return found.astype(np.bool_, copy=False)


def is_comparable(axis: Axis) -> bool:
    """Whether comparisons with the levels of an axis are worked out here."""
    if isinstance(axis, IntegerAxis):
        other = 0 if axis.other is None else axis.other
        return isinstance(other, int) and abs(other) <= INTEGER_MAX
    return isinstance(axis, CategoryAxis)


def compared_column(expression: exp.Expr) -> exp.Column | None:
    """The one column of a comparison with constants; None if it is anything else."""
    if type(expression) in _ORDERINGS:
        sides = [expression.this.unnest(), expression.expression.unnest()]
        columns = [side for side in sides if isinstance(side, exp.Column)]
        return columns[0] if len(columns) == 1 else None
    if isinstance(expression, exp.Between | exp.In):
        column = expression.this.unnest()
        return column if isinstance(column, exp.Column) else None
    return None


def _operands(comparison: exp.Expr) -> list[exp.Expr] | None:
    """What the column is compared with; None if the comparison says more than that."""
    said = {name for name, part in comparison.args.items() if part}
    if isinstance(comparison, exp.Between):
        return [comparison.args["low"], comparison.args["high"]] if said <= _BETWEEN else None
    if isinstance(comparison, exp.In):
        return comparison.expressions if said == {"this", "expressions"} else None
    sides = [comparison.this, comparison.expression]
    return [side for side in sides if not isinstance(side.unnest(), exp.Column)]


_BETWEEN = {"this", "low", "high"}


def _constant(node: exp.Expr) -> Constant | None:
    """A plain constant; None if it is anything else, or if there is doubt what it means."""
    node = node.unnest()
    if isinstance(node, exp.Neg):
        magnitude = _constant(node.this)
        return -magnitude if isinstance(magnitude, int) else None
    if not isinstance(node, exp.Literal):
        return None
    text = node.name
    if node.is_string:
        return text if _PLAIN_TEXT.fullmatch(text) else None
    return int(text) if _WHOLE.fullmatch(text) else None
