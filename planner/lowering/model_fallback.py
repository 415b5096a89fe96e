"""A statement as it is asked of made-up rows, where OPTIONS(fallback => 'model') says it may be.

Made-up rows stand where the private table's name stands. Answers from them have no intervals, so
what would show one is NULL, and DP_SOURCE says where they come from.
"""

from sqlglot import exp

from planner.sql.messages import DIALECT
from planner.sql.names import COMPANIONS
from planner.sql.options import MANNER, NO_MANNER
from planner.sql.query_tree import parse
from planner.sql.statements import read_query
from planner.workload import ColumnKind

SOURCE_MODEL = "model"


def modelled(sql: str) -> str | None:
    """The statement for made-up rows; None if it does not ask to fall back on them.

    >>> modelled("SELECT COUNT(*) FROM t") is None
    True
    >>> modelled("SELECT WITH DIFFERENTIAL_PRIVACY OPTIONS(fallback => 'model') SUM(x) FROM t")
    'SELECT SUM(x) FROM t'

    Raises
    ------
    Refused
        As `parse`.
    """
    tree = parse(read_query(sql)).tree
    if not any(
        select.meta.get(MANNER, NO_MANNER).falls_back for select in tree.find_all(exp.Select)
    ):
        return None
    for call in list(tree.find_all(exp.Anonymous)):
        kind = COMPANIONS.get(call.name.upper())
        if kind is not None:
            call.replace(_instead(kind))
    return tree.sql(dialect=DIALECT, comments=False)


def _instead(kind: ColumnKind) -> exp.Expr:
    """What is shown where a column would accompany an answer."""
    match kind:
        case ColumnKind.SOURCE:
            return exp.Literal.string(SOURCE_MODEL)
        case ColumnKind.COST:
            return exp.cast(exp.Literal.number(0), exp.DataType.Type.DOUBLE)
        case _:
            return exp.cast(exp.null(), exp.DataType.Type.DOUBLE)
