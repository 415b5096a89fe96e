"""An allowed expression as DuckDB SQL over level tables.

Four things differ from what the analyst wrote. Functions that DuckDB has not are written as what it
has (`duckdb_functions`). Columns become the level columns of the scratchpad,
by place and never by name. A public table's column becomes a function of the key. LIKE becomes a
regular expression, because those are matched in linear time; it keeps PostgreSQL's meaning, with
backslash as the default escape.
"""

from collections.abc import Mapping

from sqlglot import exp
from sqlglot.errors import ErrorLevel, UnsupportedError

from planner.domain.duckdb_functions import written_out
from planner.sql.messages import unsupported
from planner.sql.nodes import PublicLookup

_SPECIAL = frozenset(r"\.+*?()|[]{}^$")


def duckdb_text(expression: exp.Expr, relations: Mapping[str, str]) -> str:
    """The expression with each column replaced by ``<its relation>.value``.

    Raises
    ------
    UnsupportedSql
        If DuckDB has no such expression.
    """

    def rewritten(node: exp.Expr) -> exp.Expr:
        if isinstance(node, exp.Column):
            return exp.column("value", table=relations[node.name])
        if isinstance(node, PublicLookup):
            return exp.Anonymous(this=node.name, expressions=[rewritten(node.expressions[0])])
        if isinstance(node, exp.Escape):
            like, escape = node.this, node.expression.name
        elif isinstance(node, exp.Like | exp.ILike):
            like, escape = node, "\\"
        else:
            return node
        return _as_match(like, like.this.transform(rewritten), escape)

    tree = written_out(expression.transform(rewritten))
    try:
        return tree.sql(
            dialect="duckdb", unsupported_level=ErrorLevel.RAISE, comments=False, copy=False
        )
    except UnsupportedError:
        raise unsupported(
            expression,
            "has no form that is evaluated",
            "Leave out arguments that are rarely given.",
        ) from None


def _as_match(like: exp.Expr, subject: exp.Expr, escape: str) -> exp.Expr:
    pattern = exp.Literal.string(_regular_expression(like.expression.name, escape, like))
    options = exp.Literal.string("si" if isinstance(like, exp.ILike) else "s")
    match = exp.Anonymous(this="regexp_full_match", expressions=[subject, pattern, options])
    return exp.Not(this=match) if like.args.get("negate") else match


def _regular_expression(pattern: str, escape: str, like: exp.Expr) -> str:
    r"""The RE2 text that matches what a LIKE pattern matches.

    >>> print(_regular_expression("a.b%", "!", exp.null()))
    a\.b.*
    """
    if len(escape) > 1:
        raise unsupported(
            like, "has an escape of more than one character", "Choose one that is not in the text."
        )
    pieces: list[str] = []
    characters = iter(pattern)
    for character in characters:
        if escape and character == escape:
            following = next(characters, None)
            if following is None:
                raise unsupported(
                    like, "ends with its escape character", "Write it twice to mean itself."
                )
            pieces.append(_literally(following))
        elif character == "%":
            pieces.append(".*")
        else:
            pieces.append("." if character == "_" else _literally(character))
    return "".join(pieces)


def _literally(character: str) -> str:
    return f"\\{character}" if character in _SPECIAL else character
