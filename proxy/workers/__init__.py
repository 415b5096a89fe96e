"""Several processes that are one server: who starts them, what they share, what they say.

Nothing here answers a statement, or knows what one is. Workers agree on what was spent through the
ledger alone, as any servers of one ledger do.
"""

from proxy.workers.crew import ALONE, Crew, Seat
from proxy.workers.port import held
from proxy.workers.supervisor import (
    CannotServe,
    End,
    Hear,
    Message,
    Orders,
    Roll,
    Serves,
    Supervisor,
    Vitals,
    WorkerProcess,
)

__all__ = [
    "ALONE",
    "CannotServe",
    "Crew",
    "End",
    "Hear",
    "Message",
    "Orders",
    "Roll",
    "Seat",
    "Serves",
    "Supervisor",
    "Vitals",
    "WorkerProcess",
    "held",
]
