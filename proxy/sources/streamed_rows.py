"""Encoded rows as they stream by: those with a level in each column go on.

No row waits for another, so that a table of any size takes the memory of a batch. Rows of units,
which must be seen together, do not come here (loading.py).
"""

from collections.abc import Iterable, Iterator

import pyarrow as pa
import pyarrow.compute as pc

from cube.schema import Schema
from proxy.sources.axis_sql import LEFT_OUT, WRONG_TYPE
from proxy.sources.bounding import axis_column
from proxy.sources.problems import Problems


class StreamedRows:
    """What is kept of the rows of one table, and of which columns a value had another type.

    Parameters
    ----------
    schema : Schema
    n_readable : int, optional
        Rows of later levels of the axis along which the table grows are left out.
    """

    def __init__(self, schema: Schema, n_readable: int | None) -> None:
        self._schema = schema
        self._n_readable = n_readable
        self._wrong: set[int] = set()

    def kept(self, batches: Iterable[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        """The rows of each batch that have a level in each column.

        They are left out of the whole table, so that every total equals the sum of its parts.
        """
        schema = self._schema
        for batch in batches:
            inside = None
            for place, column in enumerate(batch.columns):
                least = pc.min(column).as_py()
                if least is None or least > LEFT_OUT:
                    continue
                if least == WRONG_TYPE:
                    self._wrong.add(place)
                inside = _both(inside, pc.greater(column, pa.scalar(LEFT_OUT, column.type)))
            if schema.grows is not None and self._n_readable is not None:
                column = batch[axis_column(schema, schema.grows)]
                inside = _both(inside, pc.less(column, self._n_readable))
            yield batch if inside is None else batch.filter(inside)

    def note_problems(self, problems: Problems) -> None:
        """Record each column with a value of another type; which rows, and how many, is private."""
        for place in sorted(self._wrong):
            note_wrong_type(self._schema, place, problems)


def note_wrong_type(schema: Schema, place: int, problems: Problems) -> None:
    """Record that some value of a column is of another type."""
    axis = schema.axes[place]
    keys = ("tables", schema.table, "columns", axis.name)
    problems.add(keys, f"the source holds a value that is not of type {axis.sql_type}")


def _both(one: pa.BooleanArray | None, other: pa.BooleanArray) -> pa.BooleanArray:
    return other if one is None else pc.and_(one, other)
