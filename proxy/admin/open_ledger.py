"""Opening the ledger that a configuration names, for the server and for commands beside it."""

import datetime as dt

from accountant.ledger.clock import ClockGuard
from accountant.ledger.ledger import Ledger
from accountant.ledger.open_ledger import open_ledger, open_shared_ledger
from proxy.config.ledger import LedgerSettings


def open_configured(settings: LedgerSettings) -> Ledger:
    """The ledger, opened for writing; created if there is none.

    Raises
    ------
    CannotStart
        If it cannot be used, or its key is missing.
    """
    guard = ClockGuard(dt.timedelta(days=settings.clock_step_days_max))
    if settings.url is not None and settings.key is not None:
        return open_shared_ledger(settings.url, settings.key, guard)
    if settings.path is not None:
        return open_ledger(settings.path, guard)
    raise RuntimeError("a ledger that is neither a file nor a database")
