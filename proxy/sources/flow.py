"""Rows on their way through a database: how many went by, and what stopped them.

A database that pulls rows out of Python replaces an exception by its own, with its text. Here the
first is remembered, and raised instead. Nothing here keeps a row.
"""

from collections.abc import Callable, Iterator

import pyarrow as pa


class Flow:
    """Batches of rows that are pulled once.

    Parameters
    ----------
    batches : iterator of pyarrow.RecordBatch
    """

    def __init__(self, batches: Iterator[pa.RecordBatch]) -> None:
        self._batches = batches
        self._failure: Exception | None = None
        self.n_rows = 0

    def reader(self, schema: pa.Schema) -> pa.RecordBatchReader:
        """The batches, for one who pulls them."""
        return pa.RecordBatchReader.from_batches(schema, self._counted())

    def into(self, keep: Callable[[pa.RecordBatchReader], None], schema: pa.Schema) -> None:
        """Let somebody pull them all.

        Parameters
        ----------
        keep : callable
        schema : pyarrow.Schema
            Of each batch.

        Raises
        ------
        Exception
            What stopped the batches, if something did, instead of what that caused.
        """
        try:
            keep(self.reader(schema))
        except Exception:
            self.raise_failure()
            raise

    def raise_failure(self) -> None:
        """Raise what stopped the batches, if something did."""
        if self._failure is not None:
            raise self._failure from None

    def _counted(self) -> Iterator[pa.RecordBatch]:
        try:
            for batch in self._batches:
                self.n_rows += batch.num_rows
                yield batch
        except Exception as failure:
            self._failure = failure
            raise
