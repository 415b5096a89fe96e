"""How a query of the catalog is parsed: lists of PostgreSQL's own types, which sqlglot has not.

Lists that are written as texts, ``'{a,b}'``, are read here, too.
"""

import re
from typing import Final

from sqlglot import exp

from cube.refusals import InvalidSql
from planner.sql.parameters import Parameters
from planner.sql.query_tree import QueryTree, parse
from planner.sql.statements import Query

# Lists of types that sqlglot knows no lists of.
_LISTS: Final = re.compile(
    r'(::\s*|\bAS\s+)(?:pg_catalog\.)?(oid|regclass|regtype|regproc|name|"char")\s*\[\s*\]',
    re.IGNORECASE,
)
# PostgreSQL takes any word for the name of a column after AS; sqlglot does not take these.
_NAMES: Final = re.compile(
    r"(\bAS\s+)(select|table|order|group|where|from|all|end|user|column|check|grant)"
    r"(?=\s*,|\s+FROM\b)",
    re.IGNORECASE,
)
_ITEM: Final = re.compile(r'"((?:[^"\\]|\\.)*)"|([^,{}"]+)')


def read_tree(query: Query, parameters: Parameters = ()) -> QueryTree:
    """A query of the catalog as a tree.

    Raises
    ------
    Refused
        If it does not parse.
    """
    text = _LISTS.sub(
        lambda match: match[1] + ("BIGINT[]" if match[2].lower() == "oid" else "VARCHAR[]"),
        query.text,
    )
    try:
        found = parse(Query(text, query.start), parameters)
    except InvalidSql:
        named = _NAMES.sub(r'\1"\2"', text)
        if named == text:
            raise
        found = parse(Query(named, query.start), parameters)
    for unnested in list(found.tree.find_all(exp.Unnest)):
        _side_by_side(unnested)
    return found


def _side_by_side(unnested: exp.Unnest) -> None:
    """Write UNNEST of several lists as a SELECT of them, as which DuckDB has it."""
    lists, alias = unnested.expressions, unnested.args.get("alias")
    names = [one.name for one in alias.args.get("columns") or []] if alias is not None else []
    offset = unnested.args.get("offset")
    if isinstance(offset, exp.Identifier):
        names.append(offset.name)
    if len(lists) < 2 or alias is None or len(names) < len(lists):  # noqa: PLR2004 - several
        return
    values: list[exp.Expr] = [exp.Explode(this=one.copy()) for one in lists]
    if offset:
        one = exp.Literal.number(1)
        values.append(exp.Anonymous(this="generate_subscripts", expressions=[lists[0].copy(), one]))
    shown = [
        exp.alias_(value, name, quoted=True) for value, name in zip(values, names, strict=False)
    ]
    around = exp.TableAlias(this=alias.this.copy()) if alias.this is not None else None
    unnested.replace(exp.Subquery(this=exp.select(*shown), alias=around))


def listed_items(text: str) -> list[str | None] | None:
    """The items of a list that is written as a text; None if it is not one of one dimension.

    >>> listed_items('{a,"b, c",NULL}')
    ['a', 'b, c', None]
    """
    stripped = text.strip()
    if not (stripped.startswith("{") and stripped.endswith("}")) or "{" in stripped[1:]:
        return None
    return [_item(*found) for found in _ITEM.findall(stripped[1:-1])]


def _item(quoted: str, bare: str) -> str | None:
    if not bare:
        return re.sub(r"\\(.)", r"\1", quoted)
    return None if bare.strip().upper() == "NULL" else bare.strip()
