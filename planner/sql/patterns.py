"""Patterns of LIKE as one text, where clients put them together of several.

``LIKE '%' || $1 || '%'`` and ``LIKE $1::varchar`` are how libraries write what a person writes as
one text. Whatever else a pattern is made of stays as it is, and is refused where it is looked at.
"""

from collections.abc import Iterable
from typing import Final

from sqlglot import exp

_JOINING: Final = (exp.DPipe, exp.Concat, exp.Paren)
_TEXT_TYPES: Final = (exp.DType.TEXT, exp.DType.VARCHAR)


def write_patterns(nodes: Iterable[exp.Expr]) -> None:
    """Replace each pattern among the nodes that is made of texts alone by the one text that it is.

    >>> from sqlglot import parse_one
    >>> tree = parse_one("a LIKE '%' || 'b'::varchar || '%'", read="postgres")
    >>> write_patterns(tree.walk())
    >>> tree.sql()
    "a LIKE '%b%'"
    """
    for like in nodes:
        pieces = _pieces(like.expression) if isinstance(like, exp.Like | exp.ILike) else []
        if pieces:
            whole = exp.Literal.string("".join(one.name for one in pieces))
            whole.meta.update(pieces[0].meta)
            like.set("expression", whole)


def _pieces(pattern: exp.Expr) -> list[exp.Literal]:
    """The texts that a pattern is made of; none if anything else is in it."""
    found: list[exp.Literal] = []
    for node in pattern.walk(bfs=False, prune=_is_type):
        if isinstance(node, exp.Literal) and node.is_string:
            found.append(node)
        elif not (isinstance(node, _JOINING) or _is_text_cast(node) or _is_type(node)):
            return []
    return found


def _is_text_cast(node: exp.Expr) -> bool:
    return isinstance(node, exp.Cast) and node.to.this in _TEXT_TYPES and not node.to.expressions


def _is_type(node: exp.Expr) -> bool:
    return isinstance(node, exp.DataType)
