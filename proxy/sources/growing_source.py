"""A private table that grows: its files, table or view, read anew whenever its horizon moves.

Each reading is an immutable snapshot of the rows up to one horizon (`duckdb_source.py`); whether
they are still what they were is for the gate to say. Nothing here keeps an earlier one.
"""

import hashlib
import hmac

from cube.encoding import canonical_json
from cube.schema import Schema
from proxy.sources.bounding import RowsRead
from proxy.sources.duckdb_source import DuckDbSource
from proxy.sources.extract_file import ExtractPlace
from proxy.sources.location import Location, PrivateView
from proxy.sources.opening import Extracted, open_rows


class GrowingFile:
    """Where the rows of one growing table are.

    Parameters
    ----------
    schema : Schema
        With the axis along which the table grows.
    location : Location
    key : bytes
        The ledger's, of the digests by which some rows of a unit are kept.
    place : ExtractPlace, optional
        Where the rows of a reading are kept; by default in memory.
    is_new : bool
        Whether an extract that is there is made anew at the first reading; it is at every later
        one.
    """

    def __init__(
        self,
        schema: Schema,
        location: Location,
        key: bytes,
        place: ExtractPlace | None = None,
        *,
        is_new: bool = False,
    ) -> None:
        self._schema = schema
        self._location = location
        self._key = key
        self._place = place
        self._is_new = is_new

    def fingerprint(self, key: bytes) -> str:
        """A keyed digest of where it is, and of a view's text: what is in them changes.

        It shows the same data under a second name, which would be given a second budget.
        """
        sql = self._location.sql if isinstance(self._location, PrivateView) else ""
        text = canonical_json(["grows", self._schema.grows, *self._location.where, sql])
        return hmac.new(key, text.encode(), hashlib.sha256).hexdigest()

    def read_up_to(self, horizon: int) -> DuckDbSource:
        """The rows of so many levels, as they are now; ConfigurationInvalid or DataChanged."""
        read = RowsRead(self._key, horizon)
        extracted = Extracted.REPLACED if self._is_new else Extracted.OPENED
        found = open_rows(self._schema, self._location, read, self._place, extracted=extracted)
        self._is_new = True
        return found
