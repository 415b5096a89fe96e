"""The configuration's choice of who may see what a table's history reveals."""

from enum import StrEnum


class Sharing(StrEnum):
    """What analysts may see of other analysts' queries on a table.

    Everybody is answered from the history either way. If it is private, analysts see the prices,
    sources, widths and refusals that an empty history would give (`disclosure.py`).
    """

    SHARED = "shared"
    PRIVATE = "private"
