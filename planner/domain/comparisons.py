"""Comparisons of one column with plain constants, worked out without a database.

Most conditions are of this kind, and asking the scratchpad takes a hundred times as long. Only
where there is no doubt about what DuckDB says: whole numbers against whole numbers, doubles against
whole numbers that are doubles, text against text by code points, which are in the order of UTF-8's
bytes. Everything else is for the scratchpad, and a test holds the two to the same answers.
"""

import operator
import re
from collections.abc import Callable, Sequence
from typing import Any, NamedTuple, TypeAlias

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
_BETWEEN = {"this", "low", "high"}
_IN = {"this", "expressions"}
_TURNED: dict[type[exp.Expr], type[exp.Expr]] = {
    exp.LT: exp.GT,
    exp.LTE: exp.GTE,
    exp.GT: exp.LT,
    exp.GTE: exp.LTE,
}


class Comparison(NamedTuple):
    """A column compared with constants, as if it stood on the left; the same for the same meaning.

    `kind` is the comparison's node type.
    """

    column: str
    kind: type[exp.Expr]
    constants: tuple[Constant, ...]


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

    def holds(self, comparison: Comparison) -> NDArray[np.bool_] | None:
        """Where a comparison of the column is true, anything where it is NULL; None if in doubt."""
        kind, constants = comparison.kind, comparison.constants
        if not all(isinstance(constant, str if self.is_text else int) for constant in constants):
            return None
        if kind is exp.Between:
            low, high = constants
            return self._where(operator.ge, low) & self._where(operator.le, high)
        if kind is exp.In:
            if not self.is_text:
                return np.isin(self.values, np.array(constants, dtype=self.values.dtype))
            wanted = frozenset(constants)
            found = (value in wanted for value in self.values)
            return np.fromiter(found, dtype=np.bool_, count=self.values.size)
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


def plain_comparison(expression: exp.Expr) -> Comparison | None:
    """One column compared with plain constants; None if it is anything else, or if in doubt."""
    found = _parts(expression)
    if found is None or not isinstance(found[1], exp.Column):
        return None
    kind, column, others = found
    constants = []
    for other in others:
        constant = _constant(other)
        if constant is None:
            return None
        constants.append(constant)
    return Comparison(column.name, kind, tuple(constants))


def _parts(expression: exp.Expr) -> tuple[type[exp.Expr], exp.Expr, list[exp.Expr]] | None:
    """How, what and with what a comparison compares; None if it says more than that."""
    kind, args = type(expression), expression.args
    if kind in _ORDERINGS:
        left, right = expression.this.unnest(), expression.expression.unnest()
        if isinstance(left, exp.Column):
            return kind, left, [right]
        return _TURNED.get(kind, kind), right, [left]
    if kind is exp.Between and {name for name, part in args.items() if part} <= _BETWEEN:
        return kind, expression.this.unnest(), [args["low"], args["high"]]
    if kind is exp.In and {name for name, part in args.items() if part} == _IN:
        return kind, expression.this.unnest(), args["expressions"]
    return None


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
