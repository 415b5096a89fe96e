"""What owners and auditors do with a ledger through the server: limits, and the audit report.

The identity interceptor has checked that the caller's role may call the method. Here it is checked
for which tables.
"""

import threading
from collections.abc import Callable, Sequence
from typing import Final, Protocol

from accountant.ledger.credentials import EVERY_TABLE
from accountant.ledger.ledger import Ledger
from cube.refusals import InvalidRequest, NotAllowed
from planner.sql.messages import listed
from proxy.admin.limits import LimitChange, change_limit, limits_of
from proxy.api.requests import Caller, LimitStatus, unknown_table

REPORT_FORMATS: Final = ("html", "json", "csv")

MakeReport = Callable[[str], bytes]  # in one of `REPORT_FORMATS`


class LedgerAdmin(Protocol):
    """What the protocols may call. Any method may raise `Refused`."""

    def set_limit(self, caller: Caller, table: str, change: LimitChange) -> LimitStatus | None:
        """Change a limit; the limit afterwards, None if there is none."""
        ...

    def limits(self, caller: Caller, table: str) -> dict[str, list[LimitStatus]]:
        """The limits of one table, or of every table if the name is empty."""
        ...

    def report(self, caller: Caller, report_format: str) -> bytes:
        """The audit report of the whole ledger."""
        ...


class ServedLedgerAdmin:
    """Administration of the ledger that is served.

    Parameters
    ----------
    ledger : Ledger
    tables : sequence of str
        The private tables that are served.
    make_report : callable
        Makes the report of the ledger in a format.
    """

    def __init__(self, ledger: Ledger, tables: Sequence[str], make_report: MakeReport) -> None:
        self._ledger = ledger
        self._tables = tuple(tables)
        self._make_report = make_report
        self._reporting = threading.Lock()

    def set_limit(self, caller: Caller, table: str, change: LimitChange) -> LimitStatus | None:
        """Change a limit of a table that the caller owns."""
        (known,) = self._known(caller, table)
        return change_limit(self._ledger, known, change, by=caller.payer.analyst)

    def limits(self, caller: Caller, table: str) -> dict[str, list[LimitStatus]]:
        """The limits of the tables that the caller may know of, or of one of them."""
        known = self._known(caller, table) if table else self._opened(caller)
        return {name: limits_of(self._ledger, name) for name in known}

    def report(self, caller: Caller, report_format: str) -> bytes:
        """The report on every table, for callers to whom every table is open."""
        if EVERY_TABLE not in caller.tables:
            raise NotAllowed(
                "The audit report covers every table of the ledger.",
                hint="Ask the server's owner for a credential that opens every table.",
            )
        if report_format not in REPORT_FORMATS:
            raise InvalidRequest(
                f"There is no report in the format {report_format[:64]!a}.",
                hint=f"Formats are {listed(REPORT_FORMATS)}.",
            )
        with self._reporting:  # one at a time: a report reads and adds up the whole ledger
            return self._make_report(report_format)

    def _opened(self, caller: Caller) -> list[str]:
        return [name for name in self._tables if caller.opens(name)]

    def _known(self, caller: Caller, table: str) -> list[str]:
        """The table with that name, if the caller may know of it."""
        opened = self._opened(caller)
        if table not in opened:
            raise unknown_table(table, opened)
        return [table]
