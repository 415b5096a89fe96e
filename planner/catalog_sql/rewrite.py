"""A query of the catalog as SQL for DuckDB, and what its columns are called.

What PostgreSQL calls the columns of a query, which is told of its text before it is written out.

Clients look columns up by these names. Names without quotes are in lower case, and several columns
may have one name.

A query of the catalog as SQL for DuckDB: PostgreSQL's operators, casts, functions written out.

Relations are called ``schema.name``, one quoted word. What a caller writes is held against the list
of functions before anything is rewritten, so that a query reaches nothing but the relations that it
is given, and how much it can make is bounded. What rewriting makes of it is counted after that.
"""

from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass
from typing import Final

from sqlglot import exp
from sqlglot.errors import UnsupportedError

from cube.refusals import TooLarge, UnknownName, UnsupportedSql
from planner.catalog_sql.functions import KNOWN_FUNCTIONS, CatalogFacts
from planner.catalog_sql.nodes import known, type_name, written
from planner.catalog_sql.recognise import CATALOG, FACT_NODES, SCHEMAS, base_tables, read_tree
from planner.meaning.made import check_made, n_nodes_run
from planner.meaning.writing import duckdb_sql, written_query
from planner.sql.messages import position, suggestion, unsupported
from planner.sql.names import name_inner_columns
from planner.sql.nodes import every_node
from planner.sql.parameters import Parameters
from planner.sql.statements import Query

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
    """The type of a cast of what has no name, and ``case``."""
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
            "This question to the catalog has no form in DuckDB.",
            hint="Leave out clauses that are rarely given.",
        ) from None
    return CatalogSql(text, frozenset(reads), names, renamed)


def _relation(table: exp.Table, relations: Collection[tuple[str, str]]) -> tuple[str, str]:
    schema, name = table.db.casefold() or CATALOG, table.name.casefold()
    if (schema, name) not in relations:
        known = [one for of, one in relations if of == schema]
        raise UnknownName(
            f"There is no table {schema}.{name[:64]} in the catalog.",
            hint=suggestion(name, known) or "It has the relations of PostgreSQL 15.",
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
            raise unsupported(node, "is not answered", "Only SELECT is.")
        if isinstance(node, exp.Anonymous):
            is_offered = node.name.casefold() in _CALLED
        else:
            is_offered = not isinstance(node, exp.Func) or type(node).__name__ in _COMPUTED
        if not is_offered:
            raise unsupported(
                node,
                "is no function that the catalog computes",
                "Leave it out, or compute it from the result.",
            )


def _check_size(tree: exp.Expr) -> None:
    """Refuse what has become too long: DuckDB reads it where nothing interrupts."""
    n_nodes = n_nodes_run(every_node(tree))
    n_characters = sum(len(node.name) for node in tree.find_all(exp.Literal))
    if n_nodes > N_NODES_MAX or n_characters > N_CHARACTERS_MAX:
        raise TooLarge(
            f"The question to the catalog comes to {n_nodes} words and signs and {n_characters} "
            f"characters once its functions are written out; {N_NODES_MAX} and "
            f"{N_CHARACTERS_MAX} are allowed.",
            hint="Ask for less at once.",
        )
