"""PostgreSQL's own operators, casts and functions, node by node, as what DuckDB computes."""

import re
from collections.abc import Callable
from typing import Final, cast

from sqlglot import exp

from cube.refusals import UnknownName
from planner.catalog_sql.functions import (
    RELATION_NAMES,
    TYPE_NAMES,
    CatalogFacts,
    looked_up,
    number_named,
    written_out,
)
from planner.catalog_sql.recognise import FACT_NODES, SCHEMAS, listed_items
from planner.sql.messages import position, shortened, unsupported

_OPERATORS: Final[dict[str, type[exp.Binary]]] = {
    "=": exp.EQ,
    "<>": exp.NEQ,
    "<": exp.LT,
    "<=": exp.LTE,
    ">": exp.GT,
    ">=": exp.GTE,
    "+": exp.Add,
    "-": exp.Sub,
    "||": exp.DPipe,
}
# Types that DuckDB has not, as what it has.
_TYPES: Final = {
    "oid": "UINTEGER",
    "xid": "BIGINT",
    "name": "VARCHAR",
    "char": "VARCHAR",
    '"char"': "VARCHAR",
    "text": "VARCHAR",
    "varchar": "VARCHAR",
    "int4": "INTEGER",
    "int8": "BIGINT",
    "int2": "SMALLINT",
    "int2vector": "SMALLINT[]",
    "oidvector": "BIGINT[]",
    "sql_identifier": "VARCHAR",
    "character_data": "VARCHAR",
    "cardinal_number": "INTEGER",
    "yes_or_no": "VARCHAR",
    "information_schema.sql_identifier": "VARCHAR",
    "bool": "BOOLEAN",
    "float8": "DOUBLE",
    "_text": "VARCHAR[]",
    "_oid": "BIGINT[]",
    "cstring": "VARCHAR",
    "inet": "VARCHAR",
    "aclitem": "VARCHAR",
    "pg_node_tree": "VARCHAR",
    "json": "VARCHAR",
    "jsonb": "VARCHAR",
    "xml": "VARCHAR",
}
# What a number of each kind is a number of: a relation, and the column with the name.
_KINDS: Final = {
    "regclass": ("pg_class", "relname", None),
    "regtype": (TYPE_NAMES, "spoken", "pg_type"),
    "regnamespace": ("pg_namespace", "nspname", "pg_namespace"),
    "regrole": ("pg_roles", "rolname", "pg_roles"),
}
_TEXTS: Final = (exp.Anonymous, exp.DPipe, exp.Concat)  # such as a name put together of its parts
_TEXT_ALREADY: Final = frozenset({"regproc", "regprocedure", "regoper", "regoperator"})
_BARE: Final = frozenset({"user", "current_role", "current_catalog", "session_user"})
_NAMES_OF_FUNCTIONS: Final = frozenset(
    {"typinput", "typoutput", "typreceive", "typsend", "typmodin", "typmodout", "typanalyze"}
)
_VECTORS: Final = frozenset({"indkey", "indoption", "indclass", "indcollation", "proargtypes"})
_SYSTEM_COLUMNS: Final = frozenset({"tableoid", "xmin", "xmax", "cmin", "cmax"})


def written(node: exp.Expr, facts: CatalogFacts) -> exp.Expr | None:
    """What a node becomes, whose parts are written out already; None if it stays.

    Raises
    ------
    UnsupportedSql, UnknownName
        If it has an operator that is not computed; if it names what is not there.
    """
    if isinstance(node, exp.Dot) and node.this.name.casefold() in SCHEMAS:
        call = known(node.expression)
        return written(call, facts) or call
    if isinstance(node, exp.Table) and not isinstance(node.this, exp.Identifier):
        return _read_function(node)
    for kind, write in _WRITERS.items():
        if isinstance(node, kind):
            return write(node, facts)
    name = FACT_NODES.get(type(node).__name__)
    return None if name is None else written_out(name, [], facts)


def _called(node: exp.Expr, facts: CatalogFacts) -> exp.Expr | None:
    arguments = [part for part in node.expressions if isinstance(part, exp.Expr)]
    return written_out(node.name, arguments, facts)


def _column(node: exp.Expr, facts: CatalogFacts) -> exp.Expr | None:
    name = node.name.casefold()
    if name in _SYSTEM_COLUMNS:
        return exp.cast(exp.Literal.number(0), "BIGINT")
    is_bare = not node.args.get("table") and not node.this.args.get("quoted")
    return written_out(name, [], facts) if is_bare and name in _BARE else None


def _read_function(node: exp.Table) -> exp.Expr | None:
    """A function that is read as a table, by the name that its column has as well.

    One that was written out is read as the query that it has become, and a list as its one row.
    """
    node.set("db", None)
    alias = node.args.get("alias") or exp.TableAlias(this=exp.to_identifier("found"))
    if isinstance(node.this, exp.Subquery):
        return exp.Subquery(this=node.this.this, alias=alias)
    if isinstance(node.this, exp.StringToArray):
        one_row = exp.select(exp.alias_(node.this.copy(), alias.name))
        return exp.Subquery(this=one_row, alias=alias)
    if isinstance(node.this, exp.GenerateSeries | exp.ExplodingGenerateSeries):
        (name, *_) = alias.columns or [alias.this]
        series = exp.GenerateSeries(**node.this.args)
        numbers = exp.cast(exp.Explode(this=series), "INTEGER", dialect="duckdb")
        return exp.Subquery(this=exp.select(exp.alias_(numbers, name.copy())), alias=alias)
    if alias.this is not None and not alias.args.get("columns") and node.args.get("alias"):
        alias.set("columns", [exp.to_identifier(alias.name)])
    return None


def known(call: exp.Expr) -> exp.Expr:
    """A function behind ``pg_catalog.``, as it is read without that."""
    if not isinstance(call, exp.Anonymous):
        return call
    return exp.func(call.name, *call.expressions, copy=False, dialect="postgres")


def _printed(node: exp.Expr, _facts: CatalogFacts) -> exp.Expr:
    """``format('%s of %I', a, b)`` as texts one after the other."""
    pattern, left = node.this, list(node.expressions)
    if not (isinstance(pattern, exp.Literal) and pattern.is_string):
        raise unsupported(node, "needs a literal pattern", "Write the pattern between quotes.")
    pieces: list[exp.Expr] = []
    for piece in re.split("(%.?)", pattern.name):
        if piece == "%%":
            pieces.append(exp.Literal.string("%"))
        elif piece in {"%s", "%I", "%L"} and left:
            pieces.append(exp.cast(left.pop(0), "VARCHAR", dialect="duckdb"))
        elif piece.startswith("%"):
            raise unsupported(
                node, f"has {piece} in its pattern", "%s, %I and %L are; each needs a value."
            )
        else:
            pieces.append(exp.Literal.string(piece))
    return exp.Concat(expressions=pieces, safe=True, coalesce=True)


def _operator(node: exp.Expr, _facts: CatalogFacts) -> exp.Expr:
    sign = node.args["operator"].rpartition(".")[2]
    left, right = node.this, node.expression
    if sign in _OPERATORS:
        return exp.paren(_OPERATORS[sign](this=left, expression=right), copy=False)
    is_negated, match = sign.startswith("!"), sign.lstrip("!")
    kinds: dict[str, type[exp.Expr]] = {
        "~": exp.RegexpLike,
        "~*": exp.RegexpILike,
        "~~": exp.Like,
        "~~*": exp.ILike,
    }
    if match not in kinds:
        raise unsupported(node, "has an operator that is not computed", "Use = or ~.")
    found = kinds[match](this=left, expression=right)
    return exp.paren(exp.not_(found, copy=False) if is_negated else found, copy=False)


def _cast(node: exp.Expr, facts: CatalogFacts) -> exp.Expr | None:
    kind, inner = type_name(node.args["to"]), cast("exp.Expr", node.this)
    if kind.endswith("[]"):
        items = _items(inner)
        return None if items is None else exp.cast(items, node.args["to"])
    if kind in _TEXT_ALREADY:
        if isinstance(node.parent, exp.Cast) and type_name(node.parent.args["to"]) == "oid":
            raise UnknownName(
                f"There is no function {shortened(inner.name)!a}.",
                hint="There are no functions of users here.",
            )
        return exp.cast(inner, "VARCHAR", dialect="duckdb")
    if kind in _KINDS:
        return _cast_to_number(node, kind, inner, facts)
    return exp.cast(inner, _TYPES[kind], dialect="duckdb") if kind in _TYPES else None


def _cast_to_number(node: exp.Expr, kind: str, inner: exp.Expr, facts: CatalogFacts) -> exp.Expr:
    """A name as the number of what has it, or such a number as the name."""
    relation, wanted, numbers = _KINDS[kind]
    if isinstance(inner, exp.Literal) and inner.is_string:
        number = number_named(inner.name, numbers, facts)
        if number is None:
            raise UnknownName(
                f"There is no {kind.removeprefix('reg')} {shortened(inner.name)!a}.",
                hint="Names are looked for in the schema public, unless one is named.",
                position=position(node),
            )
        return exp.Literal.number(number)
    if kind == "regclass" and isinstance(inner, _TEXTS):
        bare = exp.Anonymous(this="REPLACE", expressions=[inner, *map(exp.convert, ('"', ""))])
        return looked_up(RELATION_NAMES, "oid", "name", bare)
    return looked_up(relation, wanted, "oid", inner) if _is_shown(node) else inner


def _items(node: exp.Expr) -> exp.Array | None:
    """A text that is a list, as that list."""
    items = listed_items(node.name) if isinstance(node, exp.Literal) and node.is_string else None
    return None if items is None else exp.Array(expressions=[exp.convert(one) for one in items])


def _compared_with_all(node: exp.Expr, _facts: CatalogFacts) -> exp.Expr | None:
    """``x = ANY ('{a,b}')``."""
    text = node.this.unnest()
    items = _items(text)
    if items is not None:
        text.replace(items)
    return None


def _is_shown(node: exp.Expr) -> bool:
    """Whether a number is cast in order to be seen: as a text, or in a list of columns."""
    around = node.parent
    while isinstance(around, exp.Alias | exp.Paren):
        around = around.parent
    if isinstance(around, exp.Cast):
        return type_name(around.args["to"]) in ("text", "varchar", "name")
    return isinstance(around, exp.Select)


def type_name(to: exp.Expr) -> str:
    """A type's name in lower case, without its schema."""
    text = to.sql(dialect="postgres").casefold()
    return text.removeprefix("pg_catalog.").strip('"')


def _subscript(node: exp.Expr, _facts: CatalogFacts) -> exp.Expr | None:
    """The tree counts from 0, as vectors do, and lists from 1; below the first there is nothing."""
    is_vector = node.this.name.casefold() in _VECTORS
    place = node.expressions[0]
    sign, number = (-1, place.this) if isinstance(place, exp.Neg) else (1, place)
    if len(node.expressions) == 1 and isinstance(number, exp.Literal) and number.is_int:
        found = sign * int(number.name) + is_vector
        if found < 0:
            return exp.null()
        node.set("expressions", [exp.Literal.number(found)])
    elif is_vector:
        one = exp.Literal.number(1)
        places = [exp.Add(this=exp.paren(place), expression=one) for place in node.expressions]
        node.set("expressions", places)
    return None


def _compared(node: exp.Expr, _facts: CatalogFacts) -> exp.Expr | None:
    """``typreceive <> 0``: of functions there are the names here, and ``-`` for none.

    ``x <> ALL (list)`` is said as that the list does not contain it.
    """
    column, number = node.this, node.args["expression"]
    if isinstance(number, exp.Anonymous) and number.name.casefold() == "all":
        return exp.not_(exp.ArrayContains(this=number.expressions[0], expression=column))
    is_function = isinstance(column, exp.Column) and column.name.casefold() in _NAMES_OF_FUNCTIONS
    if is_function and isinstance(number, exp.Literal) and number.name == "0":
        number.replace(exp.Literal.string("-"))
    return None


_WRITERS: Final[dict[type[exp.Expr], Callable[[exp.Expr, CatalogFacts], exp.Expr | None]]] = {
    exp.Collate: lambda node, _: node.this,
    exp.Operator: _operator,
    exp.Format: _printed,
    exp.Cast: _cast,
    exp.Anonymous: _called,
    exp.Column: _column,
    exp.Any: _compared_with_all,
    exp.All: _compared_with_all,
    exp.Bracket: _subscript,
    exp.EQ: _compared,
    exp.NEQ: _compared,
}
