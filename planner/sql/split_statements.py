"""A file of SQL as single statements: cut at the semicolons that are outside quotes and comments.

Each statement keeps its text as it was written; what it means is for the planner.
"""

from sqlglot.errors import TokenError
from sqlglot.tokenizer_core import TokenType

from cube.refusals import InvalidSql, TooLarge
from planner.sql.dialect import Tacit

N_FILE_BYTES_MAX = 2**20
N_STATEMENTS_MAX = 500  # a batch is planned as one problem, and answered to someone who waits


def split_statements(sql: str) -> tuple[str, ...]:
    r"""The statements of a text, in order; empty ones are left out.

    >>> split_statements("SELECT 1; -- one; only\nSELECT ';'")
    ('SELECT 1', "SELECT ';'")

    Raises
    ------
    InvalidSql
        If the text cannot be read as words, or has no statement.
    TooLarge
        If the text is too long, or has too many statements.
    """
    if len(sql) > N_FILE_BYTES_MAX:
        raise TooLarge(
            f"The file has {len(sql)} characters; {N_FILE_BYTES_MAX} are allowed.",
            hint="Cut it into several files.",
        )
    try:
        tokens = Tacit().tokenize(sql)
    except TokenError:
        raise InvalidSql(
            "The file cannot be read as SQL words.", hint="A quote or comment may be left open."
        ) from None
    found: list[str] = []
    first: int | None = None
    last = 0
    for token in tokens:
        if token.token_type != TokenType.SEMICOLON:
            first = token.start if first is None else first
            last = token.end
        elif first is not None:
            found.append(sql[first : last + 1])
            first = None
    if first is not None:
        found.append(sql[first : last + 1])
    if not found:
        raise InvalidSql("There is no SQL statement in the file.", hint="Put a SELECT into it.")
    if len(found) > N_STATEMENTS_MAX:
        raise TooLarge(
            f"The file has {len(found)} statements; {N_STATEMENTS_MAX} are planned together.",
            hint="Cut it into several files.",
        )
    return tuple(found)
