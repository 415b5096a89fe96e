"""A day of queries on a wide table: dashboards that repeat, and analysts who do not.

Statements are drawn from a public schema alone: one to four columns, equality, IN and ranges,
mostly counts, some by group, some sums. A statement has its own target, one to three hundredths of
the table's records for a count, multiplied by the column's largest value for a sum.

These are inputs of benchmarks; nothing here computes an answer.
"""

from collections.abc import Iterator

import numpy as np

from cube.axis import Axis, CategoryAxis, IntegerAxis
from cube.schema import Schema

CONFIDENCE = 0.95
SHARES_OF_RECORDS = (0.01, 0.02, 0.03)
N_DASHBOARDS = 400  # statements that come back, the first of them most often
SHARE_OF_DASHBOARDS = 0.6
ZIPF_EXPONENT = 1.0
N_COLUMNS_SHARES = (0.3, 0.35, 0.25, 0.1)  # of statements over one, two, three and four columns
SHARE_OF_SUMS = 0.1
SHARE_OF_GROUPED = 0.2
N_GROUP_LEVELS_MAX = 16  # of a column to group by: a chart, not a table


class Day:
    """Statements about one table.

    Parameters
    ----------
    schema : Schema
        The table.
    n_records : int
        What targets are shares of: a public, rounded number.
    rng : numpy.random.Generator
        Draws all that is random.
    """

    def __init__(self, schema: Schema, n_records: int, rng: np.random.Generator) -> None:
        self._schema = schema
        self._n_records = n_records
        self._rng = rng
        self._dashboards = [self.statement() for _ in range(N_DASHBOARDS)]
        ranks = np.arange(1, N_DASHBOARDS + 1)
        self._popularity = ranks**-ZIPF_EXPONENT / (ranks**-ZIPF_EXPONENT).sum()

    def statements(self, n_statements: int) -> Iterator[str]:
        """The day, in its order."""
        for _ in range(n_statements):
            if self._rng.random() < SHARE_OF_DASHBOARDS:
                yield self._dashboards[self._rng.choice(N_DASHBOARDS, p=self._popularity)]
            else:
                yield self.statement()

    def statement(self) -> str:
        """A statement nobody planned."""
        n_columns = 1 + int(self._rng.choice(len(N_COLUMNS_SHARES), p=N_COLUMNS_SHARES))
        chosen = self._rng.permutation(len(self._schema.axes))[:n_columns]
        axes = [self._schema.axes[place] for place in chosen]
        keys = self._keys(axes)
        where = " AND ".join(self._predicate(axis) for axis in axes if axis.name not in keys)
        aggregate, unit = self._aggregate()
        half_width = round(self._rng.choice(SHARES_OF_RECORDS) * self._n_records * unit)
        options = f"OPTIONS(half_width => {half_width}, confidence => {CONFIDENCE})"
        parts = [
            f"SELECT WITH DIFFERENTIAL_PRIVACY {options}",
            ", ".join([*keys, f"{aggregate} AS answer"]),
            f"FROM {self._schema.table}",
            *([f"WHERE {where}"] if where else []),
            *([f"GROUP BY {', '.join(keys)}"] if keys else []),
        ]
        return " ".join(parts)

    def _keys(self, axes: list[Axis]) -> list[str]:
        """One or two of the columns, to group by; mostly none."""
        small = [axis.name for axis in axes if axis.size <= N_GROUP_LEVELS_MAX]
        if not small or self._rng.random() >= SHARE_OF_GROUPED:
            return []
        return small[: 1 + int(self._rng.integers(2))]

    def _aggregate(self) -> tuple[str, int]:
        """What is asked of the records, and the largest one record can add to it."""
        if self._rng.random() >= SHARE_OF_SUMS:
            return "COUNT(*)", 1
        numbers = [axis for axis in self._schema.axes if isinstance(axis, IntegerAxis)]
        axis = numbers[int(self._rng.integers(len(numbers)))]
        return f"SUM({axis.name})", max(abs(axis.low), abs(axis.high))

    def _predicate(self, axis: Axis) -> str:
        """A condition on one column, which is neither always true nor a level by level list."""
        levels = axis.regular
        if isinstance(axis, CategoryAxis):
            n_levels = min(1 + int(self._rng.integers(3)), len(levels) - 1)
            listed = self._rng.permutation(len(levels))[:n_levels]
            names = ", ".join("'" + str(levels[place]).replace("'", "''") + "'" for place in listed)
            return f"{axis.name} = {names}" if n_levels == 1 else f"{axis.name} IN ({names})"
        first, last = np.sort(self._rng.permutation(len(levels))[:2])
        if isinstance(axis, IntegerAxis):
            return f"{axis.name} BETWEEN {levels[first]} AND {levels[last]}"
        return f"{axis.name} >= {levels[first]} AND {axis.name} < {levels[last]}"
