"""The refusals of statements that would show private rows, or sample or turn them, and what works.

Here are the words. Where private rows would be shown is found in `split.py`.
"""

from sqlglot import exp

from cube.refusals import PrivateRows
from planner.lowering.rows import Rows
from planner.sql.messages import listed, position, shortened, unsupported
from planner.sql.names import column_name


def rows_shown(statement: exp.Query, rows: Rows) -> PrivateRows:
    """The refusal of a statement whose result would be private rows."""
    columns = listed(axis.name for axis in rows.schema.axes)
    return PrivateRows(
        "This would show private rows.",
        hint=f"Ask COUNT(*) or SUM, grouped by some of {columns}. {_synthetic_rows(rows)}",
        position=position(statement),
        table=rows.table,
    )


def clause_of_rows(clause: str, select: exp.Select, rows: Rows) -> PrivateRows:
    """The refusal of LIMIT and the like on private rows."""
    named = [item.unalias() for item in select.expressions]
    columns = [column_name(one) for one in named if isinstance(one, exp.Column)]
    if all(isinstance(one.unnest(), exp.Literal | exp.Boolean) for one in named):
        instead = (
            "To learn whether there are any, count them: SELECT COUNT(*) with the same FROM and "
            "WHERE; in Django, count() in place of exists()."
        )
    elif len(columns) < len(named) or "*" in columns:
        instead = "Aggregate them: HAVING, ORDER BY and LIMIT then work on the answers."
    else:
        keys = shortened(", ".join(columns))
        instead = f"Count their groups: SELECT {keys}, COUNT(*) .. GROUP BY {keys}."
    return PrivateRows(
        f"{clause.upper()} of private rows is not answered; SELECT * and the like would show them.",
        hint=f"{instead} {_synthetic_rows(rows)}",
        position=position(select),
        table=rows.table,
    )


def check_plain(table: exp.Table) -> None:
    """Raise UnsupportedSql if a table in FROM has a clause of its own, such as TABLESAMPLE."""
    for part, value in table.args.items():
        if not value or part in ("this", "db", "alias"):
            continue
        if part == "version" and value.args["kind"] == "AS OF":
            continue
        if part == "sample":
            raise unsupported(
                table,
                "is a sample of records, which is not answered",
                "Leave TABLESAMPLE out: an answer from all records costs the same.",
            )
        if part == "pivots":
            raise unsupported(
                table,
                "has PIVOT, which is not answered",
                "Say SELECT a, COUNT(*) FILTER (WHERE b = 'x') AS x FROM t GROUP BY a.",
            )
        raise unsupported(table, f"has {part.upper()}, which is not answered", "Leave it out.")


def _synthetic_rows(rows: Rows) -> str:
    return f"Rows to look at are in a synthetic table: CREATE SYNTHETIC TABLE s FROM {rows.table}."
