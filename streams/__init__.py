"""Pan-private streams: counts of distinct users from a state that tells nothing of any of them.

The corrected forms of the published estimators, and no others. Knows no SQL, wire or ledger.
"""

from streams.arrivals import Arrivals
from streams.declared import epoch_of
from streams.epoch import Epoch
from streams.estimates import ErrorLaw, ReleasedCount
from streams.mechanism import EPSILON_MIN, best_mechanism
from streams.state import BitState, erase_file

__all__ = [
    "EPSILON_MIN",
    "Arrivals",
    "BitState",
    "Epoch",
    "ErrorLaw",
    "ReleasedCount",
    "best_mechanism",
    "epoch_of",
    "erase_file",
]
