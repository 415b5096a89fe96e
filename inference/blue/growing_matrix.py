"""A matrix that grows by rows and columns without being copied each time.

The allocation grows by half when it is full, so a thousand appends take few copies; columns that
are duplicates added at the end take no more. New columns of an append are zero in old rows. It
knows nothing about the meaning of its numbers.
"""

import numpy as np
from numpy.typing import NDArray

N_ROWS_SPARE = 16  # rows of the first allocation; later ones grow by half


class GrowingMatrix:
    """A float64 matrix with spare room below and to the right.

    Parameters
    ----------
    n_columns : int
        Columns at the start; there are no rows yet.
    """

    def __init__(self, n_columns: int) -> None:
        self._n_rows = 0
        self._n_columns = n_columns
        self._room = np.zeros((0, n_columns))
        self._is_lent = False

    @property
    def values(self) -> NDArray[np.float64]:
        """The matrix, (n_rows, n_columns): a view, possibly out of date after the next change."""
        return self._room[: self._n_rows, : self._n_columns]

    @property
    def n_bytes(self) -> int:
        """The memory it uses, spare room included."""
        return self._room.nbytes

    def copy(self) -> "GrowingMatrix":
        """An equal matrix that grows independently.

        The copy shares this one's memory until it grows, and never writes there. This one only
        writes outside the part that the copy reads.
        """
        other = GrowingMatrix(self._n_columns)
        other._n_rows, other._room, other._is_lent = self._n_rows, self._room, True
        return other

    def append(self, rows: NDArray[np.float64]) -> None:
        """Append rows, at least as wide as the matrix; the matrix widens to match."""
        n_rows, n_columns = self._n_rows + rows.shape[0], rows.shape[1]
        if n_columns < self._n_columns:
            raise ValueError(f"rows of {n_columns} columns for a matrix of {self._n_columns}")
        self._make_room(n_rows, n_columns)
        self._room[self._n_rows : n_rows, :n_columns] = rows
        self._n_rows, self._n_columns = n_rows, n_columns

    def gather_columns(self, sources: NDArray[np.int64]) -> None:
        """Set every column ``k`` to what column ``sources[k]`` was before.

        The number of columns stands for a column of zeros.
        """
        old = self.values
        if sources.max(initial=-1) == self._n_columns:
            old = np.pad(old, ((0, 0), (0, 1)))
        if np.array_equal(sources[: self._n_columns], np.arange(self._n_columns)):
            self._make_room(self._n_rows, sources.size)
            copies = old[:, sources[self._n_columns :]]
            self._room[: self._n_rows, self._n_columns : sources.size] = copies
            self._n_columns = sources.size
            return
        self._n_columns = sources.size
        self._room, self._is_lent = np.zeros((self._room.shape[0], sources.size)), False
        np.take(old, sources, axis=1, out=self._room[: self._n_rows])

    def _make_room(self, n_rows: int, n_columns: int) -> None:
        rows_room, columns_room = self._room.shape
        if n_rows > rows_room:
            rows_room = max(n_rows, 3 * rows_room // 2, N_ROWS_SPARE)
        if n_columns > columns_room:
            columns_room = max(n_columns, 3 * columns_room // 2, N_ROWS_SPARE)
        if self._is_lent or (rows_room, columns_room) != self._room.shape:
            old = self.values
            self._room, self._is_lent = np.zeros((rows_room, columns_room)), False
            self._room[: self._n_rows, : self._n_columns] = old
