"""What answers a statement that cannot be paid; by default nothing does, and it is refused."""

from enum import StrEnum


class Fallback(StrEnum):
    """What a statement falls back on: the best that is known, or a synthetic table."""

    NONE = "none"
    HISTORY = "history"
    MODEL = "model"
