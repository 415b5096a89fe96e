"""What a statement asks for, after planning: linear queries with targets, and the columns to show.

A `Workload` holds no answer and no SQL tree; it is everything the engine needs to know.
"""

from dataclasses import dataclass
from enum import StrEnum
from fractions import Fraction

from cube.axis import LevelValue
from cube.block import QueryBlock
from cube.target import AccuracyTarget


@dataclass(frozen=True, slots=True, kw_only=True)
class RequestedTarget:
    """The parts of an accuracy target that a request names; the rest comes from elsewhere.

    `simultaneous` is the number of answers that the confidence is to hold for all at once.
    """

    half_width: float | None = None
    confidence: float | None = None
    epsilon_cap: Fraction | None = None
    simultaneous: int | None = None

    def over(self, other: "RequestedTarget") -> "RequestedTarget":
        """Take what this request says, and from `other` what it leaves open."""
        return RequestedTarget(
            half_width=other.half_width if self.half_width is None else self.half_width,
            confidence=other.confidence if self.confidence is None else self.confidence,
            epsilon_cap=other.epsilon_cap if self.epsilon_cap is None else self.epsilon_cap,
            simultaneous=other.simultaneous if self.simultaneous is None else self.simultaneous,
        )


class ColumnKind(StrEnum):
    """What a result column shows."""

    KEY = "key"
    ANSWER = "answer"
    LOW = "low"
    HIGH = "high"
    COST = "cost"
    SOURCE = "source"


@dataclass(frozen=True, slots=True)
class OutputColumn:
    """One column of the result, in the order of the SELECT list.

    Parameters
    ----------
    name : str
        The column's name for the client.
    kind : ColumnKind
        What it shows.
    index : int
        Which group key (for KEY) or which aggregate (for every other kind).
    """

    name: str
    kind: ColumnKind
    index: int


@dataclass(frozen=True, slots=True)
class GroupKey:
    """The values of one GROUP BY expression, one for each result row.

    Parameters
    ----------
    sql_type : str
        A DuckDB type name: VARCHAR, BIGINT, DOUBLE, BOOLEAN, DATE, DECIMAL(p,s), ...
    values : tuple
        One public value for each group; None for NULL.
    """

    sql_type: str
    values: tuple[LevelValue, ...]


@dataclass(frozen=True, slots=True)
class Aggregate:
    """One answer column: a linear query on every group, and how accurate it must be.

    `sql` is the analyst's own text of it, for messages and EXPLAIN.
    """

    name: str
    sql: str
    block: QueryBlock


@dataclass(frozen=True, slots=True)
class Workload:
    """Everything one SELECT asks of one private table.

    With group keys, every aggregate's block has the same partition and key ``k`` of row ``i`` is
    ``keys[k].values[i]``; without, each block is one row. ``n_rows`` may be 0 when the public
    domain has no cell that satisfies the WHERE clause of a GROUP BY.
    """

    table: str
    aggregates: tuple[Aggregate, ...]
    keys: tuple[GroupKey, ...]
    columns: tuple[OutputColumn, ...]
    target: AccuracyTarget
    n_rows: int
    explain_only: bool
