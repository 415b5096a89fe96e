"""Pan-private streams: distinct users, and how often they came, from states that hide each user.

The corrected forms of the published estimators, and no others. Knows no SQL, wire or ledger.
"""

from streams.arrivals import Arrivals
from streams.counters import RATE_MIN, best_counter_mechanism
from streams.declared import AnyEpoch, epoch_of
from streams.estimates import ErrorLaw, ReleasedCount
from streams.mechanism import EPSILON_MIN, best_mechanism
from streams.merging import ServerRelease, agreement, merged, release_file, release_in
from streams.state import StateFile, erase_file
from streams.visit_epoch import VisitEpoch
from streams.visit_estimates import STEP_MAX, Statistic, VisitErrorLaw, VisitEstimate

__all__ = [
    "EPSILON_MIN",
    "RATE_MIN",
    "STEP_MAX",
    "AnyEpoch",
    "Arrivals",
    "ErrorLaw",
    "ReleasedCount",
    "ServerRelease",
    "StateFile",
    "Statistic",
    "VisitEpoch",
    "VisitErrorLaw",
    "VisitEstimate",
    "agreement",
    "best_counter_mechanism",
    "best_mechanism",
    "epoch_of",
    "erase_file",
    "merged",
    "release_file",
    "release_in",
]
