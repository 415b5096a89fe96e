"""Several processes that are one server: who starts them, what they share, what they say.

Nothing here answers statements or reads them. Workers agree on what was spent through the
ledger alone, as any servers of one ledger do.
"""

from proxy.workers.crew import ALONE, Crew

__all__ = ["ALONE", "Crew"]
