"""A private table that grows: its file or view, read anew whenever its horizon moves.

Each reading is an immutable snapshot of the rows up to one horizon (`duckdb_source.py`); whether
they are still what they were is for the gate to say. Nothing here keeps an earlier one.
"""

import hashlib
import hmac

from cube.encoding import canonical_json
from cube.schema import Schema
from proxy.sources.bounding import RowsRead
from proxy.sources.duckdb_source import DuckDbSource
from proxy.sources.location import Location, PrivateView


class GrowingFile:
    """Where the rows of one growing table are.

    Parameters
    ----------
    schema : Schema
        With the axis along which the table grows.
    location : SourceLocation or PrivateView
    key : bytes
        The ledger's, of the digests by which some rows of a unit are kept.
    """

    def __init__(self, schema: Schema, location: Location, key: bytes) -> None:
        self._schema = schema
        self._location = location
        self._key = key

    def fingerprint(self, key: bytes) -> str:
        """A keyed digest of the names of its files, and of a view's text: what is in them changes.

        It shows the same data under a second name, which would be given a second budget.
        """
        files = sorted(str(path.resolve()) for path in self._location.files)
        sql = self._location.sql if isinstance(self._location, PrivateView) else ""
        text = canonical_json(["grows", self._schema.grows, *files, sql])
        return hmac.new(key, text.encode(), hashlib.sha256).hexdigest()

    def read_up_to(self, horizon: int) -> DuckDbSource:
        """The rows of so many levels, as they are now; ConfigurationInvalid or DataChanged."""
        return DuckDbSource(self._schema, self._location, RowsRead(self._key, horizon))
