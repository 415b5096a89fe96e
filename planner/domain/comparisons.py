"""Comparisons of one column with plain constants, worked out without a database.

Most conditions are of this kind, and asking the scratchpad takes a hundred times as long. Only
where there is no doubt about what DuckDB says: whole and decimal levels against numbers, exactly;
doubles against whole numbers that are doubles; text against text by code points, which are in the
order of UTF-8's bytes. Everything else is for the scratchpad, and a test holds the two to the same
answers.
"""

import math
import operator
import re
from abc import ABC, abstractmethod
from collections.abc import Callable, Sequence
from fractions import Fraction
from typing import Any, NamedTuple, TypeAlias

import numpy as np
from numpy.typing import NDArray
from sqlglot import exp

from cube.axis import DIGITS_MAX, Axis, CategoryAxis, MeasureAxis
from planner.domain.exact_levels import MULTIPLE_MAX, ExactLevels, exact_levels

Constant: TypeAlias = Fraction | str

_NUMBER = re.compile(rf"(?=(\.?[0-9]){{1,{DIGITS_MAX}}}$)(0|[1-9][0-9]*)(\.[0-9]+)?")
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


class Comparable(ABC):
    """The values of a column, ready to be compared: levels, or probes in their place.

    Parameters
    ----------
    null : ndarray of bool
        Where the value is NULL.
    """

    def __init__(self, null: NDArray[np.bool_]) -> None:
        self.null = null
        self.null.flags.writeable = False

    @abstractmethod
    def holds(self, comparison: Comparison) -> NDArray[np.bool_] | None:
        """Where a comparison of the column is true, anything where it is NULL; None if in doubt."""


class ComparableTexts(Comparable):
    """Texts, None for NULL."""

    def __init__(self, values: Sequence[str | None]) -> None:
        super().__init__(np.array([value is None for value in values], dtype=np.bool_))
        self._values = np.array([value or "" for value in values], dtype=object)

    def holds(self, comparison: Comparison) -> NDArray[np.bool_] | None:
        """As in `Comparable`, by code points."""
        constants = comparison.constants
        if not all(isinstance(constant, str) for constant in constants):
            return None
        if comparison.kind is exp.In:
            wanted = frozenset(constants)
            found = (value in wanted for value in self._values)
            return np.fromiter(found, dtype=np.bool_, count=self._values.size)
        return _ordered(self._values, comparison.kind, constants)


class ComparableDoubles(Comparable):
    """Doubles, None for NULL."""

    def __init__(self, values: Sequence[float | None]) -> None:
        super().__init__(np.array([value is None for value in values], dtype=np.bool_))
        self._values = np.array([0.0 if value is None else value for value in values])

    def holds(self, comparison: Comparison) -> NDArray[np.bool_] | None:
        """As in `Comparable`; of whole numbers alone it is clear which double is meant."""
        whole = _numbers(comparison.constants)
        if whole is None or any(number.denominator != 1 for number in whole):
            return None
        doubles = [float(number) for number in whole]
        if comparison.kind is exp.In:
            return np.isin(self._values, doubles)
        return _ordered(self._values, comparison.kind, doubles)


class ComparableNumbers(Comparable):
    """Exact levels."""

    def __init__(self, levels: ExactLevels, *, reads_text: bool) -> None:
        super().__init__(levels.null.copy())
        self._levels = levels
        self._reads_text = reads_text

    def holds(self, comparison: Comparison) -> NDArray[np.bool_] | None:
        """As in `Comparable`, exactly: a number between two levels equals neither."""
        constants = comparison.constants
        numbers = _numbers([_read(one) for one in constants] if self._reads_text else constants)
        if numbers is None:
            return None
        places = [number / self._levels.unit for number in numbers]
        multiples = self._levels.multiples
        if comparison.kind is exp.In:
            whole = [int(at) for at in places if at.denominator == 1 and abs(at) < MULTIPLE_MAX]
            return np.isin(multiples, np.array(whole, dtype=np.int64))
        if comparison.kind in (exp.EQ, exp.NEQ) and places[0].denominator != 1:
            return np.full(multiples.size, comparison.kind is exp.NEQ)
        return _ordered(multiples, comparison.kind, places)


def comparable(axis: Axis) -> Comparable | None:
    """The levels of an axis, if comparisons with them are worked out here."""
    if isinstance(axis, CategoryAxis):
        return ComparableTexts([None if one is None else str(one) for one in axis.levels])
    levels = exact_levels(axis)
    if levels is None:
        return None
    # DuckDB would round a text to the column's decimals, and stop at one that is no whole number.
    return ComparableNumbers(levels, reads_text=isinstance(axis, MeasureAxis))


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


def _ordered(
    values: NDArray[Any], kind: type[exp.Expr], constants: Sequence[Any]
) -> NDArray[np.bool_]:
    """Where an ordering, or BETWEEN, holds."""
    if kind is exp.Between:
        low, high = constants
        return _ordered(values, exp.GTE, [low]) & _ordered(values, exp.LTE, [high])
    (constant,) = constants
    if isinstance(constant, Fraction):
        # Among whole numbers: above 3.5 is above 3, and at least 3.5 is at least 4.
        rounds_up = kind in (exp.GTE, exp.LT)
        constant = math.ceil(constant) if rounds_up else math.floor(constant)
    found: NDArray[np.bool_] = _ORDERINGS[kind](values, constant)
    return found.astype(np.bool_, copy=False)


def _numbers(constants: Sequence[Constant | None]) -> list[Fraction] | None:
    """The constants, if all are numbers."""
    numbers = [constant for constant in constants if isinstance(constant, Fraction)]
    return numbers if len(numbers) == len(constants) else None


def _read(constant: Constant) -> Constant | None:
    """A number that is written between quotes."""
    if isinstance(constant, Fraction):
        return constant
    return Fraction(constant) if _NUMBER.fullmatch(constant) else None


def _constant(node: exp.Expr) -> Constant | None:
    """A plain constant; None if it is anything else, or if there is doubt what it means."""
    node = node.unnest()
    if isinstance(node, exp.Neg):
        magnitude = _constant(node.this)
        return -magnitude if isinstance(magnitude, Fraction) else None
    if not isinstance(node, exp.Literal):
        return None
    text = node.name
    if node.is_string:
        return text if _PLAIN_TEXT.fullmatch(text) else None
    return Fraction(text) if _NUMBER.fullmatch(text) else None
