"""How a query of the catalog is parsed: lists of PostgreSQL's own types, which sqlglot has not.

Lists that are written as texts, ``'{a,b}'``, are read here, too.
"""

import re
from typing import Final

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
        return parse(Query(text, query.start), parameters)
    except InvalidSql:
        named = _NAMES.sub(r'\1"\2"', text)
        if named == text:
            raise
        return parse(Query(named, query.start), parameters)


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
