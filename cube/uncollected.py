"""Making many objects that all stay: meanwhile the garbage collector has nothing to find.

It would look at all of them again and again, which takes a fifth of the time in which a long ledger
is read; and once more right afterwards, as they are all new. So they join the oldest objects, which
are looked at once there are a quarter more of them.
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
            if not gc.get_freeze_count():  # what a server froze for good stays so
                gc.freeze()
                gc.unfreeze()  # all is old now: both only move lists
            gc.enable()
