"""Rewrites a query of the catalog for DuckDB, node by node, and names its columns.

PostgreSQL's own operators, casts and functions, node by node, as what DuckDB computes.

What PostgreSQL calls the columns of a query, which is told of its text before it is written out.

Clients look columns up by these names. Names without quotes are in lower case, and several columns
may have one name.

A query of the catalog as SQL for DuckDB: PostgreSQL's operators, casts, functions written out.

Relations are called ``schema.name``, one quoted word. What a caller writes is held against the list
of functions before anything is rewritten, so that a query reaches nothing but the relations that it
is given, and how much it can make is bounded. What rewriting makes of it is counted after that.
"""

import re
from collections.abc import Callable, Collection, Hashable, Mapping, Sequence
from dataclasses import dataclass
from typing import Final, cast

from sqlglot import exp
from sqlglot.errors import UnsupportedError

from cube.refusals import TooLarge, UnknownName, UnsupportedSql
from planner.cache import BoundedCache
from planner.catalog_sql.functions import (
    KNOWN_FUNCTIONS,
    RELATION_NAMES,
    TYPE_NAMES,
    CatalogFacts,
    looked_up,
    number_named,
    written_out,
)
from planner.catalog_sql.recognise import (
    CATALOG,
    FACT_NODES,
    SCHEMAS,
    base_tables,
    listed_items,
    read_tree,
)
from planner.meaning import check_made, duckdb_sql, n_nodes_run, written_query
from planner.sql import (
    Parameters,
    Query,
    every_node,
    name_inner_columns,
    position,
    shortened,
    suggestion,
    unsupported,
)

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


def _calling(node: exp.Expr, facts: CatalogFacts) -> exp.Expr | None:
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
                node,
                f"has {piece} in its pattern",
                "The pattern may have %s, %I and %L, and needs a value for each.",
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
        raise unsupported(node, "has an unsupported operator", "Use = or ~.")
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
                hint="Tacit has no user-defined functions.",
            )
        return exp.cast(inner, "VARCHAR", dialect="duckdb")
    if kind in _KINDS:
        return _cast_to_number(node, kind, inner, facts)
    return exp.cast(inner, _TYPES[kind], dialect="duckdb") if kind in _TYPES else None


def _cast_to_number(node: exp.Expr, kind: str, inner: exp.Expr, facts: CatalogFacts) -> exp.Expr:
    """A name as the number of the object that has it, or such a number as the name."""
    relation, wanted, numbers = _KINDS[kind]
    if isinstance(inner, exp.Literal) and inner.is_string:
        number = number_named(inner.name, numbers, facts)
        if number is None:
            raise UnknownName(
                f"There is no {kind.removeprefix('reg')} {shortened(inner.name)!a}.",
                hint="Names are looked up in the schema public unless you write another schema.",
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
    exp.Anonymous: _calling,
    exp.Column: _column,
    exp.Any: _compared_with_all,
    exp.All: _compared_with_all,
    exp.Bracket: _subscript,
    exp.EQ: _compared,
    exp.NEQ: _compared,
}


_SHORT: Final = {"integer": "int4", "int": "int4", "bigint": "int8", "boolean": "bool"}
_UNNAMED: Final = "?column?"
# Functions that the parser calls by another name.
_SPOKEN: Final = {
    "Array": "array",
    "Case": "case",
    "Exists": "exists",
    "Explode": "unnest",
    "ExplodingGenerateSeries": "generate_series",
    "GroupConcat": "string_agg",
    "LogicalAnd": "bool_and",
    "LogicalOr": "bool_or",
}


def columns_named(tree: exp.Expr) -> list[str] | None:
    """The names of a query's columns; None if a star stands for some of them."""
    while isinstance(tree, exp.SetOperation | exp.Subquery):
        tree = tree.this
    if not isinstance(tree, exp.Select):
        return None
    columns = list(tree.expressions)
    stars = [one for one in columns if isinstance(one, exp.Star) or one.is_star]
    return None if stars else [column_named(one) for one in columns]


def columns_renamed(tree: exp.Expr) -> dict[str, str]:
    """The columns of relations that a query gives another name, by that name."""
    selects = tree.expressions if isinstance(tree, exp.Select) else []
    aliases = [one for one in selects if isinstance(one, exp.Alias)]
    return {
        column_named(one): one.this.name.lower()
        for one in aliases
        if isinstance(one.this, exp.Column)
    }


def names_after_star(given: Sequence[str], known: Collection[str]) -> list[str]:
    """The columns of a star as PostgreSQL calls them: DuckDB numbers those whose name is taken.

    >>> names_after_star(["oid", "oid_1", "key_1"], ["oid", "key_1"])
    ['oid', 'oid', 'key_1']
    """
    found: list[str] = []
    for name in given:
        base, _, number = name.rpartition("_")
        is_numbered = number.isdigit() and base in found and name not in known
        found.append(base if is_numbered else name)
    return found


def column_named(node: exp.Expr) -> str:
    """The name of one column."""
    if isinstance(node, exp.Alias):
        return _folded(node.args["alias"])
    return _called(node) or _called_weakly(node) or _UNNAMED


def _folded(name: exp.Expr) -> str:
    is_quoted = isinstance(name, exp.Identifier) and bool(name.args.get("quoted"))
    return name.name if is_quoted else name.name.lower()


def _called(node: exp.Expr) -> str | None:
    """The name of a column, a function, or what is a cast of one."""
    while isinstance(node, exp.Cast | exp.Paren | exp.Collate | exp.Bracket):
        node = node.this
    if isinstance(node, exp.Dot):
        return _called(node.expression)
    if isinstance(node, exp.Subquery):
        (first, *_) = node.this.selects or [None]
        return None if first is None or first.is_star else column_named(first)
    if isinstance(node, exp.Column):
        return _folded(node.this)
    if isinstance(node, exp.Identifier):
        return _folded(node)
    if isinstance(node, exp.Case):
        default = node.args.get("default")
        return _called(default) if isinstance(default, exp.Expr) else None
    return _called_function(node)


def _called_function(node: exp.Expr) -> str | None:
    kind = type(node).__name__
    if kind in FACT_NODES:
        return FACT_NODES[kind]
    if isinstance(node, exp.Anonymous):
        return str(node.name).lower()
    if kind in _SPOKEN:
        return _SPOKEN[kind]
    if isinstance(node, exp.Func) and not isinstance(node, exp.Connector):
        return str(node.sql_name()).lower()
    return None


def _called_weakly(node: exp.Expr) -> str | None:
    """The type of a cast of an unnamed expression, or ``case``."""
    if isinstance(node, exp.Case):
        return "case"
    if isinstance(node, exp.Cast):
        kind = type_name(node.args["to"])
        return _SHORT.get(kind, kind)
    return None


# What callers may write. What `functions` and `nodes` make of it may be more.
_COMPUTED: Final = frozenset(
    {
        *("Abs", "AnyValue", "Array", "ArrayAgg", "ArrayConcat", "ArrayContains", "ArraySize"),
        *("ArrayToString", "Avg", "Case", "Cast", "TryCast", "Coalesce", "Concat", "ConcatWs"),
        *("Count", "CountIf", "CurrentDate", "CurrentTimestamp", "DenseRank", "Exists", "Explode"),
        *("ExplodingGenerateSeries", "Extract", "Format", "GenerateSeries", "Greatest"),
        *("GroupConcat", "If", "Initcap", "Lag", "Lead", "Least", "Left", "Length", "LogicalAnd"),
        *("LogicalOr", "Lower", "Max", "Min", "Nullif", "Rank", "RegexpILike", "RegexpLike"),
        *("RegexpReplace", "Replace", "Right", "Round", "RowNumber", "SplitPart", "StartsWith"),
        *("StrPosition", "Substring", "Sum", "Translate", "Trim", "Unnest", "Upper", "Chr"),
        *("Ascii", "Any", "All", "And", "Or", "Xor", "RegexpSplit", "StringToArray"),
        *("ArrayRemove", "ArrayPosition", "Pow", "Collate"),
        *FACT_NODES,
    }
)
_CALLED: Final = KNOWN_FUNCTIONS | {"all"}
N_REWRITTEN_MAX: Final = 256
N_REWRITTEN_BYTES_MAX: Final = 2**23
N_NODES_MAX: Final = 50_000  # as many as of SQL on answers
N_CHARACTERS_MAX: Final = 2**21  # of the texts in it: settings are written out


@dataclass(frozen=True, slots=True)
class CatalogSql:
    """A query as DuckDB runs it.

    Parameters
    ----------
    text : str
    reads : frozenset of (str, str)
        The relations that it reads, by schema and name.
    names : list of str, optional
        What PostgreSQL calls its columns; None if a star stands for some of them.
    renamed : mapping
        The columns of relations that it gives another name, by that name.
    """

    text: str
    reads: frozenset[tuple[str, str]]
    names: list[str] | None
    renamed: Mapping[str, str]


# Tools ask the same of the catalog each time that they connect.
_REWRITTEN: BoundedCache[Hashable, CatalogSql] = BoundedCache(
    n_entries_max=N_REWRITTEN_MAX, n_bytes_max=N_REWRITTEN_BYTES_MAX
)


def catalog_sql(
    query: Query,
    parameters: Parameters,
    facts: CatalogFacts,
    relations: Collection[tuple[str, str]],
) -> CatalogSql:
    """A query in DuckDB's SQL.

    Parameters
    ----------
    query : Query
    parameters : tuple of Parameter
    facts : CatalogFacts
    relations : collection of (str, str)
        Every relation, by schema and name.

    Raises
    ------
    Refused
        If it does not parse, names what is not there, or calls what is not computed.
    """
    key = query, parameters, facts.key, frozenset(relations)
    known = _REWRITTEN.get(key)
    if known is None:
        known = _rewritten(query, parameters, facts, relations)
        _REWRITTEN.put(key, known, n_bytes=len(query.text) + len(known.text))
    return known


def _rewritten(
    query: Query,
    parameters: Parameters,
    facts: CatalogFacts,
    relations: Collection[tuple[str, str]],
) -> CatalogSql:
    tree = read_tree(query, parameters).tree
    names, renamed = columns_named(tree), columns_renamed(tree)
    name_inner_columns(tree, column_named)
    tree = _unqualified(tree)
    _check(tree)
    check_made(every_node(tree))
    tree = _written(tree, facts)
    _check_size(tree)
    reads: set[tuple[str, str]] = set()
    for table in base_tables(tree):
        found = _relation(table, relations)
        reads.add(found)
        alias = table.alias or table.name
        table.set("db", None)
        table.set("this", exp.to_identifier(".".join(found), quoted=True))
        table.set("alias", table.args.get("alias") or exp.TableAlias(this=exp.to_identifier(alias)))
    for column in tree.find_all(exp.Column):
        column.set("db", None)
    try:
        text = duckdb_sql(written_query(tree, lambda _table: {}))
    except UnsupportedError:
        raise UnsupportedSql(
            "DuckDB cannot run this query of the catalog.",
            hint="Leave out rarely used clauses.",
        ) from None
    return CatalogSql(text, frozenset(reads), names, renamed)


def _relation(table: exp.Table, relations: Collection[tuple[str, str]]) -> tuple[str, str]:
    schema, name = table.db.casefold() or CATALOG, table.name.casefold()
    if (schema, name) not in relations:
        known = [one for of, one in relations if of == schema]
        raise UnknownName(
            f"There is no table {schema}.{name[:64]} in the catalog.",
            hint=suggestion(name, known) or "The catalog has the relations of PostgreSQL 15.",
            position=position(table),
        )
    return schema, name


def _unqualified(tree: exp.Query) -> exp.Query:
    """The tree with ``pg_catalog.f(x)`` as it is read without the schema."""
    for node in list(tree.find_all(exp.Dot)):
        if node.this.name.casefold() in SCHEMAS:
            node.replace(known(node.expression))
    return tree


def _written(tree: exp.Query, facts: CatalogFacts) -> exp.Query:
    """The tree with everything of PostgreSQL's own written out, from the inside out."""
    for node in reversed(list(tree.walk())):
        new = written(node, facts)
        if new is not None and new is not node:
            node.replace(new)
    return tree


def _check(tree: exp.Expr) -> None:
    """Refuse functions that are not listed, and a SELECT that would write."""
    for node in tree.walk():
        if isinstance(node, exp.Into | exp.Lock | exp.DML | exp.DDL) and not isinstance(
            node, exp.Query
        ):
            raise unsupported(
                node, "is not supported in a query of the catalog", "Use a plain SELECT."
            )
        if isinstance(node, exp.Anonymous):
            is_offered = node.name.casefold() in _CALLED
        else:
            is_offered = not isinstance(node, exp.Func) or type(node).__name__ in _COMPUTED
        if not is_offered:
            raise unsupported(
                node,
                "is not a supported function in a query of the catalog",
                "Leave it out, or compute it from the result.",
            )


def _check_size(tree: exp.Expr) -> None:
    """Refuse what has become too long: DuckDB reads it where nothing interrupts."""
    n_nodes = n_nodes_run(every_node(tree))
    n_characters = sum(len(node.name) for node in tree.find_all(exp.Literal))
    if n_nodes > N_NODES_MAX or n_characters > N_CHARACTERS_MAX:
        raise TooLarge(
            f"The query of the catalog has {n_nodes} words and signs and {n_characters} "
            f"characters once its functions are expanded; {N_NODES_MAX} and {N_CHARACTERS_MAX} "
            "are allowed.",
            hint="Split it into several queries.",
        )
