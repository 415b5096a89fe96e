"""Finds literals that a column can never hold: they are often typing errors, or out of date.

``sex = 'Femal'`` counts nobody, which a note says, or a refusal if the statement wants that. Of a
column with OTHER it is refused: rows with the value may be among those that count as OTHER. Order
comparisons are always or never true beyond the domain, and nothing is said of them.
"""

import datetime as dt
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from fractions import Fraction
from typing import Final

from sqlglot import exp

from cube.axis import (
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
from planner.domain.exact_levels import is_level
from planner.sql.clock import IS_MOMENT
from planner.sql.exact_number import constant_value
from planner.sql.messages import listed, position, shown, suggestion
from planner.sql.nodes import IS_PUBLIC, every_node

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
            told = f"{text} is none of the declared values of {name}."
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
    """What is said of literals that no row equals, once for each column."""
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
        return _day(literal.name) if isinstance(axis, DateAxis) else _moment(literal.name)
    return None


def _integer(text: str) -> int | None:
    try:
        return int(text)
    except ValueError:
        return None


def _day(text: str) -> dt.date | None:
    try:
        return dt.date.fromisoformat(text)
    except ValueError:
        return None


def _moment(text: str) -> dt.datetime | None:
    """A moment without an offset; what one with an offset means is not said here."""
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
