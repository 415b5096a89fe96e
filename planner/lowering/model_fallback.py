"""Rewrites a statement for synthetic rows, if it falls back on a model or is a preview.

Synthetic rows take the place of the private table. Answers from them have no intervals, so columns
of intervals are NULL, and DP_SOURCE is 'model'.
"""

from sqlglot import exp

from planner.sql.messages import text_of
from planner.sql.names import COMPANIONS
from planner.sql.parameters import Parameters
from planner.sql.query_tree import parse
from planner.sql.statements import read_query
from planner.workload import ColumnKind

SOURCE_MODEL = "model"


def modelled(sql: str, parameters: Parameters = ()) -> str:
    """The statement for synthetic rows.

    >>> modelled("SELECT WITH DIFFERENTIAL_PRIVACY OPTIONS(fallback => 'model') SUM(x) FROM t")
    'SELECT SUM(x) FROM t'

    Raises
    ------
    Refused
        As `parse`.
    """
    tree = parse(read_query(sql), parameters).tree
    for call in list(tree.find_all(exp.Anonymous)):
        kind = COMPANIONS.get(call.name.upper())
        if kind is not None:
            call.replace(_instead(kind))
    return text_of(tree)


def n_rows_wanted(sql: str) -> int | None:
    """How many rows a query asks for by a LIMIT of its own; None without one that is written out.

    >>> n_rows_wanted("SELECT * FROM t LIMIT 100"), n_rows_wanted("SELECT * FROM t")
    (100, None)
    """
    tree = parse(read_query(sql)).tree
    limit = tree.args.get("limit")
    count = None if limit is None else limit.args.get("expression") or limit.args.get("count")
    if not isinstance(count, exp.Literal) or count.is_string or not count.is_int:
        return None
    return int(count.name)


def _instead(kind: ColumnKind) -> exp.Expr:
    """The replacement for a column that accompanies an answer."""
    match kind:
        case ColumnKind.SOURCE:
            return exp.Literal.string(SOURCE_MODEL)
        case ColumnKind.COST:
            return exp.cast(exp.Literal.number(0), exp.DataType.Type.DOUBLE)
        case _:
            return exp.cast(exp.null(), exp.DataType.Type.DOUBLE)
