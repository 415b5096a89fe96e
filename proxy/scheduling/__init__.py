"""How one process is shared: fair turns between analysts, deadlines, limits on slow clients.

Here: which statement works when. Not here: how much work planning a statement may take
(`planner/domain/allowance.py`), and privacy budgets (`accountant/`).
"""

from proxy.scheduling.fair_share import DEFAULT_TIMES, CallTimes, FairShare, LargeStatements, Shift
from proxy.scheduling.slow_clients import SECONDS_TO_TAKE_MAX, CallSlots, SlowClientGuard

__all__ = [
    "DEFAULT_TIMES",
    "SECONDS_TO_TAKE_MAX",
    "CallSlots",
    "CallTimes",
    "FairShare",
    "LargeStatements",
    "Shift",
    "SlowClientGuard",
]
