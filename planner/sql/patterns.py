"""Patterns of LIKE as one text, where clients put them together of several.

``LIKE '%' || $1 || '%'``, ``LIKE $1::varchar`` and ``LIKE UPPER('%a%')`` are how libraries write
what a person writes as one text. Whatever else a pattern is made of stays as it is, and is refused
where it is looked at.
"""

from collections.abc import Iterable
from typing import Final

from sqlglot import exp

_TEXT_TYPES: Final = (exp.DType.TEXT, exp.DType.VARCHAR)
N_LETTERS_MAX: Final = 64 * 1024  # of a pattern: as long as a statement may be


def write_patterns(nodes: Iterable[exp.Expr]) -> None:
    """Replace each pattern among the nodes that is made of texts alone by the one text that it is.

    >>> from sqlglot import parse_one
    >>> tree = parse_one("a LIKE '%' || UPPER('b'::varchar) || '%'", read="postgres")
    >>> write_patterns(tree.walk())
    >>> tree.sql()
    "a LIKE '%B%'"
    """
    for like in nodes:
        pattern = like.expression if isinstance(like, exp.Like | exp.ILike) else None
        text = None if pattern is None else constant_text(pattern)
        if pattern is not None and text is not None:
            whole = exp.Literal.string(text)
            first = pattern.find(exp.Literal)
            whole.meta.update({} if first is None else first.meta)
            like.set("expression", whole)


def constant_text(node: exp.Expr) -> str | None:  # noqa: PLR0911 - one for each form
    """The text that an expression of texts is; None if anything else is in it, or it grows."""
    match node:
        case exp.Literal():
            return node.name if node.is_string else None
        case exp.Paren():
            return constant_text(node.this)
        case exp.Cast() if node.to.this in _TEXT_TYPES and not node.to.expressions:
            return constant_text(node.this)
        case exp.Upper() | exp.Lower():
            text = constant_text(node.this)
            return text and _in_case(text, is_upper=isinstance(node, exp.Upper))
        case exp.DPipe() | exp.Concat():
            parts = [constant_text(one) for one in _chained(node)]
            known = [one for one in parts if one is not None]
            return _bounded("".join(known)) if len(known) == len(parts) else None
        case exp.Replace():
            return _replaced(node)
        case _:
            return None


def _chained(node: exp.Expr) -> list[exp.Expr]:
    """The parts of a chain of ||, which may be long, or of CONCAT."""
    parts: list[exp.Expr] = []
    while isinstance(node, exp.DPipe):
        parts.append(node.expression)
        node = node.this
    return [*(node.iter_expressions() if isinstance(node, exp.Concat) else [node]), *parts[::-1]]


def _replaced(node: exp.Replace) -> str | None:
    parts = (node.this, node.expression, node.args.get("replacement"))
    texts = [None if one is None else constant_text(one) for one in parts]
    text, old, new = texts
    if text is None or old is None or new is None:
        return None
    n_letters = len(text) + (text.count(old) * len(new) if old else 0)
    return None if n_letters > N_LETTERS_MAX else text.replace(old, new) if old else text


def _in_case(text: str, *, is_upper: bool) -> str:
    """A text in capitals, or without: letter by letter, as PostgreSQL does."""
    changed = (one.upper() if is_upper else one.lower() for one in text)
    return "".join(new if len(new) == 1 else old for old, new in zip(text, changed, strict=True))


def _bounded(text: str) -> str | None:
    return None if len(text) > N_LETTERS_MAX else text
