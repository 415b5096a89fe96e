"""One report of one ledger, in the requested format."""

import platform
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from enum import StrEnum
from importlib.metadata import PackageNotFoundError, version
from typing import Final, TypeAlias

from accountant.auditor.signed_head import SignedHead
from accountant.auditor.verdict import Verdict
from accountant.ledger.entries import Entry
from cube.refusals import InvalidRequest
from proxy.reporting import tables
from proxy.reporting.model import LedgerReport
from proxy.reporting.reading import read_report

PageWriter: TypeAlias = Callable[[LedgerReport, Mapping[str, str], Callable[[str], None]], bytes]

# The libraries whose versions are named: those that compute the figures, and those that draw them.
LIBRARIES: Final = ("tacit-dp", "opendp", "numpy", "matplotlib", "Jinja2")


class ReportFormat(StrEnum):
    """How a report is written."""

    HTML = "html"
    JSON = "json"
    CSV = "csv"


def make_report(
    entries: Iterable[Entry],
    format: ReportFormat,  # noqa: A002 - the name its callers use
    *,
    verdict: Verdict,
    heads: Sequence[SignedHead] = (),
    progress: Callable[[str], None] = lambda _: None,
) -> bytes:
    """The audit report of a ledger, as UTF-8.

    The same entries, verdict and versions give the same bytes: no clock is read.

    Parameters
    ----------
    entries : iterable of Entry
        All of them, in order.
    format : ReportFormat
    verdict : Verdict
        What the auditor found about these entries. If the ledger is not valid, the report says so
        first, and then adds up the valid entries before the first invalid one.
    heads : sequence of SignedHead
        The signed heads that the verdict took into account, to be shown.
    progress : callable, optional
        Called with the current step, to show progress.

    Raises
    ------
    InvalidRequest
        If a page is requested and matplotlib, which draws the charts, is not installed.
    RuntimeError
        If the report's sums are not those of the verdict.
    """
    to_html = _page_writer() if format is ReportFormat.HTML else None
    report = read_report(entries, verdict, heads, progress)
    if to_html is not None:
        return to_html(report, versions(), progress)
    return (
        tables.to_csv(report) if format is ReportFormat.CSV else tables.to_json(report, versions())
    )


def _page_writer() -> PageWriter:
    with drawn_with_matplotlib(instead=", or ask for json or csv"):
        from proxy.reporting.html import to_html  # noqa: PLC0415 - needs matplotlib, which JSON and CSV do not

        return to_html


@contextmanager
def drawn_with_matplotlib(
    instead: str = "", *, what: str = "The report as a page"
) -> Iterator[None]:
    """Refuse a page, with a hint, if importing its module fails because matplotlib is missing.

    Parameters
    ----------
    instead : str
        The end of the hint's sentence: the alternatives.
    what : str
        What is to be drawn, if it is no page.
    """
    try:
        yield
    except ModuleNotFoundError as missing:
        if (missing.name or "").partition(".")[0] != "matplotlib":
            raise
        raise InvalidRequest(
            f"{what} needs matplotlib, which is not installed.",
            hint=f"Install it with `pip install 'tacit-dp[report]'`{instead}.",
        ) from None


def versions() -> dict[str, str]:
    """The versions that made this report; a library that is not installed is left out."""
    found = {"Python": platform.python_version()}
    for name in LIBRARIES:
        try:
            found[name] = version(name)
        except PackageNotFoundError:
            continue
    return found
