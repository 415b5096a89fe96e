"""Wraps SQL for DuckDB around values that are written already, and prints it.

A `Written` node is a template and its parts; in messages it is what the analyst wrote. A value is a
node with its type; a writer makes one of a node whose parts are values.
"""

from collections.abc import Callable
from typing import ClassVar, NamedTuple, TypeAlias, cast

from sqlglot import exp
from sqlglot.dialects.duckdb import DuckDB
from sqlglot.generators.duckdb import DuckDBGenerator

from cube.refusals import UnsupportedSql
from planner.meaning.types import TEXT, Kind, NoValue, SqlType, read_constant
from planner.sql import WRITTEN_FOR, Written, unsupported


class Value(NamedTuple):
    """A node and its type."""

    node: exp.Expr
    type: SqlType

    @property
    def is_text_constant(self) -> bool:
        """Whether it is a text between quotes."""
        inner = self.node.unnest()
        return isinstance(inner, exp.Literal) and inner.is_string


TypeOf: TypeAlias = Callable[[exp.Expr], SqlType]


class Call(NamedTuple):
    """A node whose parts are written, and what the types of these are."""

    node: exp.Expr
    type_of: TypeOf

    def value(self, name: str = "this") -> Value:
        """One of its parts, which is there."""
        part = cast("exp.Expr", self.node.args[name])
        return Value(part, self.type_of(part))

    def maybe(self, name: str) -> Value | None:
        """One of its parts; None if it is not there."""
        return self.value(name) if isinstance(self.node.args.get(name), exp.Expr) else None

    def values(self, name: str = "expressions") -> list[Value]:
        """A list among its parts."""
        return [Value(one, self.type_of(one)) for one in self.node.args.get(name) or []]

    def every(self) -> list[Value]:
        """Its first part and the list behind it, as COALESCE has them."""
        first = self.maybe("this")
        return ([] if first is None else [first]) + self.values()

    def sql(self, template: str, gives: SqlType, *parts: Value) -> Value:
        """DuckDB's SQL in the place of the node: a template, in which {0} is the first part."""
        return Value(written(self.node, template, *(one.node for one in parts)), gives)

    def kept(self, gives: SqlType) -> Value:
        """The node as it is."""
        return Value(self.node, gives)

    def refused(self, why: str, hint: str) -> UnsupportedSql:
        """The refusal of the node."""
        return unsupported(self.node, why, hint)

    def text(self, value: Value) -> Value:
        """A part that has to be a text.

        Raises
        ------
        UnsupportedSql
            If it is known to be something else.
        """
        if value.type.kind not in (Kind.TEXT, Kind.LITERAL, Kind.UNKNOWN):
            raise unsupported(
                value.node,
                f"is a {value.type.name}, and a text is needed",
                "Cast it, as in x::text.",
            )
        return value

    def constant(self, value: Value) -> str:
        """The text of a part that has to be one between quotes."""
        if not value.is_text_constant:
            raise unsupported(value.node, "is not a literal", "Write a text between quotes.")
        return str(value.node.unnest().name)


Writer: TypeAlias = Callable[[Call], Value]


def written(original: exp.Expr, template: str, *parts: exp.Expr) -> Written:
    """A template with parts, for DuckDB; in messages it is the original."""
    node = Written(this=template, expressions=list(parts))
    node.meta.update(original.meta)
    node.meta[WRITTEN_FOR] = original.meta.get(WRITTEN_FOR, original)
    return node


def read_as(value: Value, wanted: SqlType) -> Value:
    """A text between quotes read as a type; anything else as it is.

    Raises
    ------
    UnsupportedSql
        If PostgreSQL reads it as no value of this type.
    """
    if value.type.kind is not Kind.LITERAL:
        return value
    if not value.is_text_constant:
        return Value(value.node, wanted)  # NULL
    if wanted.kind in (Kind.TEXT, Kind.UNKNOWN, Kind.OTHER, Kind.LITERAL):
        return Value(value.node.unnest(), TEXT)
    try:
        text = read_constant(value.node.unnest().name, wanted)
    except NoValue:
        raise unsupported(
            value.node,
            f"is not a valid {wanted.name}",
            f"PostgreSQL refuses it too: {_EXAMPLES[wanted.kind]}",
        ) from None
    return Value(written(value.node, text), _constant_type(text, wanted))


def _constant_type(text: str, wanted: SqlType) -> SqlType:
    if wanted.kind is not Kind.NUMERIC:
        return wanted
    places = len(text.strip("()").partition(".")[2])
    return SqlType(Kind.NUMERIC, places, places)


_EXAMPLES = {
    **dict.fromkeys((Kind.INT2, Kind.INT4, Kind.INT8), "write it as '42'."),
    **dict.fromkeys((Kind.NUMERIC, Kind.FLOAT), "write it as '4.2'."),
    Kind.BOOLEAN: "write 'true' or 'false'.",
    Kind.DATE: "write it as '2024-01-31'.",
    **dict.fromkeys((Kind.TIMESTAMP, Kind.TIMESTAMPTZ), "write it as '2024-01-31 12:00:00'."),
    Kind.TIME: "write it as '12:00:00'.",
    Kind.INTERVAL: "write it as '1 day 12:00:00'.",
}


def as_it_was(node: exp.Expr) -> exp.Expr:
    """What the analyst wrote where a node is, without parentheses around it."""
    found = node.unnest()
    original: exp.Expr = found.meta.get(WRITTEN_FOR, found)
    return original.unnest()


class DuckDbText(DuckDB):
    """DuckDB's dialect, with what is written for it already."""

    class Generator(DuckDBGenerator):
        """DuckDB's text."""

        TRANSFORMS: ClassVar[dict[type[exp.Expr], Callable[..., str]]] = {
            **DuckDBGenerator.TRANSFORMS,
            Written: lambda self, node: (
                str(node.this).format(*[self.sql(part) for part in node.expressions])
                if node.expressions
                else str(node.this)
            ),
        }


DUCKDB = DuckDbText()
