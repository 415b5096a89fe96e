"""The shape of a statement: one SELECT over one private table, and only clauses that are answered.

Like the list of scalar functions, this is a list of what is allowed; every other clause is refused
by name.
"""

from collections.abc import Mapping

from sqlglot import exp

from cube.refusals import UnknownName, UnsupportedSql
from cube.schema import Schema
from planner.wording import listed, shown, suggestion, unsupported

ANSWERED = frozenset({"expressions", "from_", "where", "group"})
SCHEMAS = frozenset(
    {"main", "public"}
)  # what clients of DuckDB and of PostgreSQL put before a table

_ONE_TABLE = "Ask one SELECT over one table."
_HINTS: dict[str, tuple[str, str]] = {
    "with_": ("WITH", _ONE_TABLE),
    "joins": ("A join", _ONE_TABLE),
    "laterals": ("LATERAL", _ONE_TABLE),
    "having": ("HAVING", "Leave it out, and filter the noisy result: it is public."),
    "order": ("ORDER BY", "Leave it out; groups come in the order of their keys."),
    "limit": ("LIMIT", "Leave it out; the groups are those of the public domain."),
    "offset": ("OFFSET", "Leave it out; the groups are those of the public domain."),
    "distinct": ("DISTINCT", "Use GROUP BY with COUNT(*)."),
    "windows": ("WINDOW", "Use GROUP BY."),
    "qualify": ("QUALIFY", "Use GROUP BY."),
    "into": ("INTO", "Results are returned to the client only."),
    "locks": ("FOR UPDATE", "Leave it out; nothing is locked."),
}


def private_table(tree: exp.Expr, schemas: Mapping[str, Schema]) -> str:
    """The one private table that a statement asks about, as a key of `schemas`.

    Raises
    ------
    UnsupportedSql
        If the statement is no SELECT from one plain table.
    UnknownName
        If there is no such table.
    """
    if isinstance(tree, exp.SetOperation):
        raise UnsupportedSql(f"{tree.key.upper()} is not answered.", hint=_ONE_TABLE)
    if not isinstance(tree, exp.Select):
        raise unsupported(tree, "is not a SELECT over a private table")
    origin = tree.args.get("from_")
    if origin is None:
        raise unsupported(
            tree, "names no table", f"There are FROM {listed(sorted(schemas))} to ask."
        )
    table = origin.this
    if isinstance(table, exp.Subquery):
        raise unsupported(table, "is a subquery", _ONE_TABLE)
    if not isinstance(table, exp.Table) or not isinstance(table.this, exp.Identifier):
        raise unsupported(table, "is not a plain table", _ONE_TABLE)
    for part, value in table.args.items():
        if value and part not in ("this", "db", "alias"):
            raise unsupported(table, f"has {part.upper()}, which is not answered", _ONE_TABLE)
    if table.args.get("alias") is not None and table.args["alias"].args.get("columns"):
        raise unsupported(table, "renames columns", "Rename them in the SELECT list with AS.")
    if table.args.get("db") is not None and table.db.lower() not in SCHEMAS:
        raise UnknownName(f"There is no schema {table.db}.", hint="Tables are in main, or public.")
    return _found(table.this, schemas)


def _found(identifier: exp.Identifier, schemas: Mapping[str, Schema]) -> str:
    for name in schemas:
        if name == identifier.name:
            return name
    folded = {name.casefold(): name for name in schemas}
    if not identifier.quoted and identifier.name.casefold() in folded:
        return folded[identifier.name.casefold()]
    raise UnknownName(
        f"There is no table {shown(identifier)}.",
        hint=suggestion(identifier.name, schemas) or f"There is {listed(sorted(schemas))}.",
    )


def refuse_clauses(select: exp.Select, schema: Schema) -> exp.Select:
    """The same tree, if all its clauses are answered."""
    for clause, value in select.args.items():
        if not value or clause in ANSWERED:
            continue
        name, hint = _HINTS.get(clause, (clause.strip("_").upper(), None))
        raise UnsupportedSql(f"{name} is not answered.", hint=hint)
    group = select.args.get("group")
    if group is not None:
        for part, value in group.args.items():
            if value and part != "expressions":
                raise unsupported(group, "is more than a list", "Group by one list of expressions.")
    for item in select.expressions:
        if isinstance(item, exp.Star) or (isinstance(item, exp.Column) and item.is_star):
            raise UnsupportedSql(
                "SELECT * would show private rows.",
                hint=f"Ask COUNT(*) or SUM, grouped by some of "
                f"{listed(axis.name for axis in schema.axes)}.",
            )
    return select
