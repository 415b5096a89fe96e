"""Handles number columns without a database: exact levels, comparisons, impossible literals.

The levels of a number column as exact numbers: whole multiples of one unit.

A level of 19.99 is a double in results, and 1999 hundredths here. So comparisons and sums use the
number that the owner declared, and not its nearest double. Columns of bins have no exact levels: a
bin is not one number.

Comparisons of one column with plain constants, worked out without a database.

Most conditions are of this kind, and asking the scratchpad takes a hundred times as long. Only
where there is no doubt about what DuckDB says: whole and decimal levels against numbers, exactly;
doubles against whole numbers that are doubles; text against text by code points, which are in the
order of UTF-8's bytes. Everything else is for the scratchpad, and a test holds the two to the same
answers.

Sums of polynomials of one number column: their coefficients, and their exact values on levels.

``SUM(revenue * 1.2 - 5)``, an average's ``x - c`` and a variance's ``(x - c) * (x - c)`` are
polynomials, as are the days between a column and a constant day. Their values are exact whatever
the column's step, and found without the scratchpad.
Division of whole numbers, which truncates, and casts that round are none.

Finds literals that a column can never hold: they are often typing errors, or out of date.

``sex = 'Femal'`` matches no row. A note says so, or a refusal if the statement wants that. For a
column with OTHER it is refused: rows with the value may be among those that count as OTHER. Order
comparisons are always or never true beyond the domain, and nothing is said about them.
"""

import datetime as dt
import math
import operator
import re
from abc import ABC, abstractmethod
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, replace
from fractions import Fraction
from itertools import zip_longest
from math import lcm
from typing import Any, Final, NamedTuple, TypeAlias

import numpy as np
from numpy.typing import NDArray
from sqlglot import exp

from cube.axis import (
    DIGITS_MAX,
    INTEGER_MAX,
    Axis,
    CategoryAxis,
    DateAxis,
    IntegerAxis,
    LevelValue,
    MeasureAxis,
    TimestampAxis,
)
from cube.refusals import OutsideDomain
from cube.schema import Schema
from planner.sql import (
    IS_MOMENT,
    IS_PUBLIC,
    constant_value,
    every_node,
    exact_number,
    is_written_whole,
    listed,
    position,
    shown,
    suggestion,
)

MULTIPLE_MAX = 2**62  # beyond any level


@dataclass(frozen=True, eq=False)
class ExactLevels:
    """A column's levels, ``multiples * unit``.

    Parameters
    ----------
    multiples : (n_levels,) ndarray of int64
        The levels in multiples of a unit; 0 at NULL.
    unit : Fraction
    null : (n_levels,) ndarray of bool
        Where the level is NULL.
    """

    multiples: NDArray[np.int64]
    unit: Fraction
    null: NDArray[np.bool_]


def exact_levels(axis: Axis) -> ExactLevels | None:
    """The levels of a column of single numbers; None for any other column."""
    if isinstance(axis, MeasureAxis):
        return _with_null(axis, _spaced(axis.multiples, ()), axis.unit)
    if isinstance(axis, IntegerAxis):
        other = (axis.other,) if isinstance(axis.other, int) else ()
        if any(abs(level) > INTEGER_MAX for level in other):
            return None
        return _with_null(axis, _spaced(range(axis.low, axis.high + 1), other), Fraction(1))
    return None


def day_numbers(axis: DateAxis) -> ExactLevels:
    """The levels of a column of days, counted from its first."""
    other = ((axis.other - axis.low).days,) if isinstance(axis.other, dt.date) else ()
    return _with_null(axis, _spaced(range(axis.n_regular), other), Fraction(1))


def _spaced(regular: range, other: tuple[int, ...]) -> NDArray[np.int64]:
    spaced = np.arange(regular.start, regular.stop, regular.step, dtype=np.int64)
    return np.concatenate([spaced, np.array(other, dtype=np.int64)])


def _with_null(axis: Axis, multiples: NDArray[np.int64], unit: Fraction) -> ExactLevels:
    null = np.zeros(multiples.size + axis.null, dtype=np.bool_)
    null[multiples.size :] = True
    every = np.zeros(null.size, dtype=np.int64)
    every[: multiples.size] = multiples
    every.flags.writeable = null.flags.writeable = False
    return ExactLevels(every, unit, null)


def is_level(axis: IntegerAxis | MeasureAxis, value: Fraction) -> bool:
    """Whether a number is one of a column's levels."""
    if isinstance(axis, MeasureAxis):
        multiple = value / axis.unit
        return multiple.denominator == 1 and int(multiple) in axis.multiples
    is_regular = value.denominator == 1 and axis.low <= value <= axis.high
    return is_regular or (axis.other is not None and value == axis.other)


def stored_type(axis: Axis) -> str:
    """The type of a column in the scratchpad: its SQL type, except that decimals are exact."""
    if not isinstance(axis, MeasureAxis) or axis.is_whole or axis.decimal_places is None:
        return axis.sql_type
    largest = int(max(abs(Fraction(axis.low)), abs(Fraction(axis.high))))
    return f"DECIMAL({len(str(largest)) + axis.decimal_places}, {axis.decimal_places})"


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


DEGREE_MAX = 4
_REAL_TYPES = frozenset({exp.DType.DOUBLE, exp.DType.FLOAT, exp.DType.DECIMAL})
_WRITTEN_DAY = re.compile(r"[0-9]{4}-[0-9]{2}-[0-9]{2}")
_SIGNED = re.compile(r"(?P<minus>-?)(?P<number>[0-9][0-9.]*(?:e[+-]?[0-9]+)?)")


@dataclass(frozen=True, slots=True)
class Polynomial:
    """A polynomial of a column.

    Parameters
    ----------
    coefficients : tuple of Fraction
        That of the constant first.
    is_whole : bool
        Whether SQL holds it in a whole-number type, whose division truncates.
    """

    coefficients: tuple[Fraction, ...]
    is_whole: bool


def polynomial_of(expression: exp.Expr, axis: Axis) -> Polynomial | None:
    """An expression as a polynomial of its only column; None if it is anything else."""
    node = expression.unnest()
    if isinstance(axis, DateAxis) and isinstance(node, exp.Column | exp.Sub):
        days = _days(node, axis) if isinstance(node, exp.Sub) else None
        if days is not None or isinstance(node, exp.Column):
            return days  # a day by itself is no number
    if isinstance(node, exp.Column):
        return Polynomial((Fraction(0), Fraction(1)), axis.sql_type == "BIGINT")
    constant = number_of(node)
    if constant is not None:
        return constant
    if isinstance(node, exp.Cast):
        return _cast(node, axis)
    sides = [node.this, node.expression] if type(node) in _OPERATIONS else []
    if isinstance(node, exp.Neg):
        node, sides = exp.Mul(), [exp.Literal.number(-1), node.this]
    found = [polynomial_of(side, axis) for side in sides]
    polynomials = [one for one in found if one is not None]
    if not polynomials or len(polynomials) < len(sides):
        return None
    return _OPERATIONS[type(node)](*polynomials)


def on_levels(polynomial: Polynomial, axis: Axis) -> tuple[NDArray[np.int64], Fraction] | None:
    """Whole numbers and a unit; their product is the value on each level, and 0 at NULL.

    None if the column has no exact levels, or the whole numbers would pass 2**62.
    """
    levels = day_numbers(axis) if isinstance(axis, DateAxis) else exact_levels(axis)
    if levels is None:
        return None
    by_multiple = [
        coefficient * levels.unit**power
        for power, coefficient in enumerate(polynomial.coefficients)
    ]
    denominator = lcm(*(one.denominator for one in by_multiple))
    whole = [int(one * denominator) for one in by_multiple]
    largest = max(int(levels.multiples.max()), -int(levels.multiples.min()))
    if sum(abs(one) * largest**power for power, one in enumerate(whole)) >= MULTIPLE_MAX:
        return None
    values = np.zeros(levels.multiples.size, dtype=np.int64)
    for coefficient in reversed(whole):
        values = values * levels.multiples + coefficient
    values[levels.null] = 0
    common = int(np.gcd.reduce(values)) or 1
    return values // common, Fraction(common, denominator)


def number_of(node: exp.Expr) -> Polynomial | None:
    """A constant: a number, or one that planning cast from its text; None for anything else."""
    if isinstance(node, exp.Cast) and node.to.this == exp.DType.DOUBLE:
        literal = node.this.unnest()
        match = _SIGNED.fullmatch(literal.name) if isinstance(literal, exp.Literal) else None
        if match is None:
            return None
        magnitude = exact_number(match["number"], node)
        return Polynomial((-magnitude if match["minus"] else magnitude,), is_whole=False)
    value = constant_value(node)
    return None if value is None else Polynomial((value,), is_written_whole(node))


def _days(difference: exp.Sub, axis: DateAxis) -> Polynomial | None:
    """The days between a column and a constant day, by the column's days from its first."""
    sides = [difference.this.unnest(), difference.expression.unnest()]
    is_column = [isinstance(side, exp.Column) for side in sides]
    if sum(is_column) != 1:
        return None
    day = _day(sides[is_column.index(False)])
    if day is None:
        return None
    between = Fraction((axis.low - day).days)
    sign = 1 if is_column[0] else -1
    return Polynomial((sign * between, Fraction(sign)), is_whole=True)


def _day(node: exp.Expr) -> dt.date | None:
    """A constant day; None for anything else."""
    if not isinstance(node, exp.Cast) or node.to.this != exp.DType.DATE:
        return None
    literal = node.this.unnest()
    if not isinstance(literal, exp.Literal) or not _WRITTEN_DAY.fullmatch(literal.name):
        return None
    try:
        return dt.date.fromisoformat(literal.name)
    except ValueError:
        return None  # which is refused where it is evaluated


def _cast(node: exp.Cast, axis: Axis) -> Polynomial | None:
    """A cast to a type that holds every value: nothing is rounded."""
    inner = polynomial_of(node.this, axis)
    if inner is None or node.to.expressions:
        return None
    if node.to.this in _REAL_TYPES:
        return replace(inner, is_whole=False)
    return inner if inner.is_whole and node.to.this == exp.DType.BIGINT else None


def _difference(one: Polynomial, other: Polynomial) -> Polynomial:
    return _sum(one, replace(other, coefficients=tuple(-each for each in other.coefficients)))


def _sum(one: Polynomial, other: Polynomial) -> Polynomial:
    pairs = zip_longest(one.coefficients, other.coefficients, fillvalue=Fraction(0))
    return Polynomial(tuple(a + b for a, b in pairs), one.is_whole and other.is_whole)


def _product(one: Polynomial, other: Polynomial) -> Polynomial | None:
    degree = len(one.coefficients) + len(other.coefficients) - 2
    if degree > DEGREE_MAX:
        return None
    coefficients = [Fraction(0)] * (degree + 1)
    for power, a in enumerate(one.coefficients):
        for other_power, b in enumerate(other.coefficients):
            coefficients[power + other_power] += a * b
    return Polynomial(tuple(coefficients), one.is_whole and other.is_whole)


def _quotient(one: Polynomial, other: Polynomial) -> Polynomial | None:
    """Divided by a constant, unless whole numbers are divided: that truncates."""
    (by, *rest) = other.coefficients
    if rest or by == 0 or (one.is_whole and other.is_whole):
        return None
    coefficients = tuple(each / by for each in one.coefficients)
    return Polynomial(coefficients, is_whole=False)


_OPERATIONS: dict[type[exp.Expr], Callable[[Polynomial, Polynomial], Polynomial | None]] = {
    exp.Add: _sum,
    exp.Sub: _difference,
    exp.Mul: _product,
    exp.Div: _quotient,
}


N_TOLD: Final = 5  # values of one column that a note names
_EQUALITIES = (exp.EQ, exp.NEQ, exp.NullSafeEQ, exp.NullSafeNEQ)


@dataclass(frozen=True, slots=True, eq=False)
class ForeignLiteral:
    """A literal that is none of the levels of the column that it is compared with.

    Parameters
    ----------
    axis : Axis
    literal : Expr
    value : str, int, date, datetime or Fraction
        The literal as a value of such a column.
    """

    axis: Axis
    literal: exp.Expr
    value: LevelValue | Fraction

    @property
    def is_hidden(self) -> bool:
        """Whether some rows may have the value nevertheless, which count as OTHER."""
        return self.axis.other is not None

    @property
    def refusal(self) -> OutsideDomain:
        """Why a comparison with it is refused."""
        name, text = self.axis.name, shown(self.literal)
        told = f"{name} never equals {text}."
        if self.is_hidden:
            told = f"{text} is not among the declared values of {name}."
        return OutsideDomain(told, hint=self.way_out, position=position(self.literal))

    @property
    def way_out(self) -> str:
        """What the levels are, or which of them was probably meant."""
        return _way_out(self.axis, self.value)


def foreign_literals(
    expression: exp.Expr, schema: Schema, levels: dict[str, frozenset[LevelValue]]
) -> list[ForeignLiteral]:
    """What columns are compared with for equality although they never have that value.

    `levels` caches the levels of columns; missing ones are added.
    """
    found = []
    for column, literal in _equated(expression):
        axis = schema.by_name[column.name]
        value = _as_level(literal, axis)
        if value is not None and not _is_level(value, axis, levels):
            found.append(ForeignLiteral(axis, literal, value))
    return found


def foreign_notes(found: Sequence[ForeignLiteral]) -> Iterator[str]:
    """What is said about literals that no row equals, once for each column."""
    by_name: dict[str, list[ForeignLiteral]] = {}
    for one in found:
        by_name.setdefault(one.axis.name, []).append(one)
    for name, alike in by_name.items():
        texts = list(dict.fromkeys(shown(one.literal) for one in alike))
        more = f" and {len(texts) - N_TOLD} more" if len(texts) > N_TOLD else ""
        yield f"{name} never equals {', '.join(texts[:N_TOLD])}{more}. {alike[0].way_out}"


def _equated(expression: exp.Expr) -> Iterator[tuple[exp.Column, exp.Expr]]:
    """Pairs of a bare column and a node that it is compared with for equality."""
    for node in every_node(expression):
        if isinstance(node, _EQUALITIES):
            pairs = [(node.this, node.expression), (node.expression, node.this)]
        elif isinstance(node, exp.In):
            # A public table may hold values that are not levels; these are not typing errors.
            written = (one for one in node.expressions if not one.meta.get(IS_PUBLIC))
            pairs = [(node.this, listed_value) for listed_value in written]
        elif isinstance(node, exp.Case) and node.this is not None:
            pairs = [(node.this, branch.this) for branch in node.args["ifs"]]
        else:
            continue
        for one, other in pairs:
            column = one.unnest()
            if isinstance(column, exp.Column) and not other.unnest().meta.get(IS_PUBLIC):
                yield column, other.unnest()


def _is_level(
    value: LevelValue | Fraction, axis: Axis, levels: dict[str, frozenset[LevelValue]]
) -> bool:
    if isinstance(axis, IntegerAxis | MeasureAxis):
        return isinstance(value, int | Fraction) and is_level(axis, Fraction(value))
    if isinstance(axis, TimestampAxis) and isinstance(value, dt.datetime):
        return value == axis.other or axis.position_of(value) is not None
    if axis.name not in levels:
        levels[axis.name] = frozenset(axis.levels)
    return value in levels[axis.name]


def _as_level(literal: exp.Expr, axis: Axis) -> LevelValue | Fraction:
    """The literal as a value of the axis; None if the scratchpad must decide."""
    if literal.meta.get(IS_MOMENT):
        return None  # today may be a day that no record has
    if isinstance(literal, exp.Cast) and literal.is_type(exp.DType.DATE, exp.DType.TIMESTAMP):
        literal = literal.this.unnest()
    is_text = isinstance(literal, exp.Literal) and literal.is_string
    if isinstance(axis, CategoryAxis):
        return literal.name if is_text else None
    if isinstance(axis, IntegerAxis):
        return _integer(literal.name) if is_text else constant_value(literal)
    if isinstance(axis, MeasureAxis):
        return constant_value(literal)
    if isinstance(axis, DateAxis | TimestampAxis) and is_text:
        return _day_of_text(literal.name) if isinstance(axis, DateAxis) else _moment(literal.name)
    return None


def _integer(text: str) -> int | None:
    try:
        return int(text)
    except ValueError:
        return None


def _day_of_text(text: str) -> dt.date | None:
    try:
        return dt.date.fromisoformat(text)
    except ValueError:
        return None


def _moment(text: str) -> dt.datetime | None:
    """A moment without an offset; None for a text with an offset, or of no moment."""
    try:
        moment = dt.datetime.fromisoformat(text)
    except ValueError:
        return None
    return moment if moment.tzinfo is None else None


def _way_out(axis: Axis, value: LevelValue | Fraction) -> str:
    if isinstance(axis, CategoryAxis):
        close = suggestion(str(value), axis.values)
        levels = f"Its levels are {listed([repr(level) for level in axis.values])}."
        known = close or levels
        if close and axis.other is not None:  # the guess may be far off: any value is possible
            known = f"{close} {levels}"
    elif isinstance(axis, MeasureAxis):
        step = float(axis.step)
        known = f"Its levels run from {axis.regular[0]} to {axis.regular[-1]} in steps of {step:g}."
    elif isinstance(axis, TimestampAxis):
        known = f"Its levels are every {axis.step} from {axis.low} to {axis.high}."
    else:
        known = f"Its levels run from {axis.regular[0]} to {axis.regular[-1]}."
    if axis.other is None:
        return known
    is_time = isinstance(axis, DateAxis | TimestampAxis)
    other = str(axis.other) if is_time else repr(axis.other)
    return f"{known} Every other value counts as {other}."
