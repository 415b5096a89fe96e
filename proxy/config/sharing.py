"""Who may see what a table's history shows: a word of the configuration, and nothing else."""

from enum import StrEnum


class Sharing(StrEnum):
    """What analysts are shown of what other analysts have asked of a table.

    Everybody is answered from the history either way. If it is private, prices, sources, widths
    and refusals are those of asking alone (`disclosure.py`).
    """

    SHARED = "shared"
    PRIVATE = "private"
