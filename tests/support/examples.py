"""How often a property is tried: all of its examples in a thorough run, a quarter at every change.

Each run draws new examples, so that the fast suite tries as many in four runs. `make test-slow`
sets TACIT_EVERY_EXAMPLE=1, and tries every property that there is.
"""

import os
from typing import Final

EVERY: Final = "TACIT_EVERY_EXAMPLE"
N_USUAL: Final = 100  # of a property that names no number
SHARE: Final = 4  # a fast run tries one in so many


def examples(n: int) -> int:
    """How many examples of `n` to try in this run; at least one."""
    return n if os.environ.get(EVERY) == "1" else -(-n // SHARE)
