"""DP_INTERVAL_LOW(n) and the like in a SELECT around the one that aggregates.

The companion becomes a column of the SELECT that has the answer, and a reference to that column.
Companions of answers in the same SELECT are not here (`lowering.py`).
"""

from sqlglot import exp

from cube.refusals import UnknownName
from planner.domain.public import OWN_PREFIX
from planner.lowering.tables import Answered
from planner.sql.messages import position, unsupported
from planner.sql.names import COMPANIONS, is_companion, read_companion


def show_companions(select: exp.Select, sources: Answered, statement: exp.Query) -> None:
    """Resolve the companions in a SELECT list of answers that a subquery in FROM shows.

    Parameters
    ----------
    select : Select
    sources : Answered
        What its FROM shows.
    statement : Query
        The whole statement, in which no ``*`` may show the columns that are added.

    Raises
    ------
    UnknownName, UnsupportedSql
        If there is no such answer, or a column more would be seen.
    """
    for item in select.expressions:
        node = item.unalias()
        if not is_companion(node):
            continue
        companion = read_companion(node)
        known = sources.answers.get(companion.answer)
        if known is None:
            raise UnknownName(
                f"{companion.answer} is not an answer with an interval in FROM.",
                hint="Ask for the interval in the SELECT that aggregates.",
                position=position(node),
            )
        if known.select.args.get("distinct") or _shows_a_star(statement):
            raise unsupported(
                companion,
                "is of an answer in FROM, beside a * or of a DISTINCT SELECT",
                "Ask for the interval in the SELECT that aggregates, or name the columns.",
            )
        own_name = companion.name.lower()
        name = f"{OWN_PREFIX}{own_name}_{len(known.select.expressions)}"
        column = known.part.column(COMPANIONS[companion.name], known.answer, companion.confidence)
        known.select.append("expressions", exp.alias_(column, name, quoted=True, copy=False))
        shown = exp.column(exp.to_identifier(name, quoted=True))
        is_named = isinstance(item, exp.Alias)
        node.replace(shown if is_named else exp.alias_(shown, own_name, copy=False))


def _shows_a_star(statement: exp.Query) -> bool:
    """Whether any SELECT list of the statement has a * in it, that of COUNT(*) aside."""
    return any(
        isinstance(item, exp.Star) or isinstance(item.this, exp.Star)
        for select in statement.find_all(exp.Select)
        for item in select.expressions
        if not isinstance(item, exp.Count)
    )
