"""Making many objects that all stay: meanwhile the garbage collector has nothing to find.

It would look at all of them again and again, which takes a fifth of the time in which a long ledger
is read.
"""

import gc
from collections.abc import Iterator
from contextlib import contextmanager


@contextmanager
def uncollected() -> Iterator[None]:
    """Without collections of cycles, in the whole process; as it was before, afterwards."""
    was_enabled = gc.isenabled()
    gc.disable()
    try:
        yield
    finally:
        if was_enabled:
            gc.enable()
