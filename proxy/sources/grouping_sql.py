"""SQL that reads the cells of a loaded table as a grouping counts them.

A few runs of levels are a CASE; many are a table of the level as which each is counted, which is
joined: a constant list of 100,000 levels takes twenty times as long. Rows that are not counted are
left out before they are grouped.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Final

import numpy as np
import pyarrow as pa

from accountant.grouping import BY_ITSELF, NOT_COUNTED, Grouping, LevelRuns

N_RUNS_IN_CASE_MAX: Final = 64


@dataclass(frozen=True, eq=False)
class GroupedCells:
    """Columns to select from `cells`, with the levels as they are counted.

    Parameters
    ----------
    columns : sequence of str
        An expression for each axis of the scope.
    tables : mapping of str to pyarrow.Table
        What to join, by name: `level`, and the level as which it is `counted`.
    origin : str
        The FROM clause, with its joins and its condition.
    """

    columns: Sequence[str]
    tables: Mapping[str, pa.Table]
    origin: str

    @property
    def counting_sql(self) -> str:
        """SQL for the occupied cells and their counts."""
        listed = "".join(f"{column}, " for column in self.columns)
        # Groups of constants alone would be one cell even where there is no row.
        grouped = " GROUP BY ALL HAVING count(*) > 0" if self.columns else ""
        return f"SELECT {listed}count(*) AS n_records {self.origin}{grouped}"

    def distinct_sql(self, beside: Sequence[str]) -> str:
        """SQL for the distinct cells, with further columns of the table."""
        return f"SELECT DISTINCT {', '.join([*self.columns, *beside])} {self.origin}"


def grouped_cells(grouping: Grouping, column_of: Mapping[str, str]) -> GroupedCells:
    """How a grouping is read from `cells`, whose columns have these names."""
    columns, joins, conditions = [], [], ["true"]
    tables: dict[str, pa.Table] = {}
    for place, (name, runs) in enumerate(zip(grouping.scope, grouping.runs, strict=True)):
        column = f"cells.{column_of[name]}"
        if runs.n_runs <= N_RUNS_IN_CASE_MAX:
            columns.append(_case(column, runs))
            conditions += _left_out(column, runs)
            continue
        table = f"levels_{place}"
        tables[table] = _levels(runs)
        joins.append(f" JOIN {table} ON {table}.level = {column}")
        columns.append(f"{table}.counted")
    origin = f"FROM cells{''.join(joins)} WHERE {' AND '.join(conditions)}"
    named = [f"{column} AS place_{place}" for place, column in enumerate(columns)]
    return GroupedCells(named, tables, origin)


def _case(column: str, runs: LevelRuns) -> str:
    """The level as which a column's is counted, where it is counted."""
    if runs.n_runs == 1:
        return _counted(column, int(runs.counted_as[0]))
    *some, last = zip(runs.ends.tolist(), runs.counted_as.tolist(), strict=True)
    cases = "".join(f" WHEN {column} < {end} THEN {_counted(column, one)}" for end, one in some)
    return f"CASE{cases} ELSE {_counted(column, last[1])} END"


def _counted(column: str, counted_as: int) -> str:
    """How a run's levels are written; where they are not counted, no row is left."""
    return column if counted_as == BY_ITSELF else str(max(counted_as, 0))


def _left_out(column: str, runs: LevelRuns) -> list[str]:
    """Conditions that leave out what is not counted."""
    spans = zip(runs.starts.tolist(), runs.ends.tolist(), runs.counted_as.tolist(), strict=True)
    return [
        f"{column} NOT BETWEEN {start} AND {end - 1}"
        for start, end, counted_as in spans
        if counted_as == NOT_COUNTED
    ]


def _levels(runs: LevelRuns) -> pa.Table:
    """Every level that is counted, and the level as which it is."""
    levels = np.arange(runs.n_levels, dtype=np.int64)
    counted = runs.at(levels)
    is_counted = counted != NOT_COUNTED
    return pa.table({"level": levels[is_counted], "counted": counted[is_counted]})
