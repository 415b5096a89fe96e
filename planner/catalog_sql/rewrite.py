"""A query of the catalog as SQL for DuckDB: PostgreSQL's operators, casts, functions written out.

Relations are called ``schema.name``, one quoted word. What a caller writes is held against the list
of functions before anything is rewritten, so that a query reaches nothing but the relations that it
is given, and how much it can make is bounded. What rewriting makes of it is counted after that.
"""

from collections.abc import Collection, Mapping
from dataclasses import dataclass
from typing import Final

from sqlglot import exp
from sqlglot.errors import UnsupportedError

from cube.refusals import TooLarge, UnknownName, UnsupportedSql
from planner.catalog_sql.column_names import column_named, columns_named, columns_renamed
from planner.catalog_sql.facts import CatalogFacts
from planner.catalog_sql.functions import KNOWN_FUNCTIONS
from planner.catalog_sql.nodes import known, written
from planner.catalog_sql.reading import read_tree
from planner.catalog_sql.recognise import CATALOG, FACT_NODES, SCHEMAS, base_tables
from planner.meaning.made import check_made, n_nodes_run
from planner.meaning.writing import duckdb_sql, written_query
from planner.sql.messages import position, suggestion, unsupported
from planner.sql.names import name_inner_columns
from planner.sql.nodes import every_node
from planner.sql.parameters import Parameters
from planner.sql.statements import Query

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
