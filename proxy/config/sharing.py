"""The configuration's choices about showing a table's history and preview rows."""

from enum import StrEnum


class Sharing(StrEnum):
    """What analysts may see of other analysts' queries on a table.

    Everybody is answered from the history either way. If it is private, analysts see the prices,
    sources, widths and refusals that an empty history would give (`disclosure.py`).
    """

    SHARED = "shared"
    PRIVATE = "private"


class PreviewRows(StrEnum):
    """What a tool gets that asks for a few rows of a private table, to show what is in it."""

    NONE = "none"
    SYNTHETIC = "synthetic"  # rows of the newest synthetic table
