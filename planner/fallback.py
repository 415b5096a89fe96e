"""What answers a statement that cannot be paid; by default nothing does, and it is refused.

A search for a target that ends short of it has paid for something: by default the statement then
has the intervals that were bought.
"""

from enum import StrEnum


class Fallback(StrEnum):
    """What a statement falls back on: the best that is known, or a synthetic table.

    With ERROR it is refused also where a search for its target has paid for something.
    """

    NONE = "none"
    ERROR = "error"
    HISTORY = "history"
    MODEL = "model"

    @property
    def gives_what_was_bought(self) -> bool:
        """Whether a search that ends short of its target is answered with what it bought."""
        return self in {Fallback.NONE, Fallback.HISTORY}
