"""One report of one ledger, in the form that is asked for."""

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

# What the figures rest on: the arithmetic of the guarantee, and whoever drew this.
LIBRARIES: Final = ("tacit-dp", "opendp", "numpy", "matplotlib", "Jinja2")


class ReportFormat(StrEnum):
    """How a report is written."""

    HTML = "html"
    JSON = "json"
    CSV = "csv"


def make_report(
    entries: Iterable[Entry],
    format: ReportFormat,  # noqa: A002 - the word its callers use
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
        What the auditor found of these entries. Of a ledger that is not good, the report says so
        first, and then what the good entries before the first bad one add up to.
    heads : sequence of SignedHead
        Those that the verdict took into account, to be shown.
    progress : callable, optional
        Told what is being done, for whoever waits.

    Raises
    ------
    InvalidRequest
        If pages are asked for and matplotlib, which draws them, is not installed.
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
        from proxy.reporting.html import to_html  # noqa: PLC0415 - needs what JSON and CSV do not

        return to_html


@contextmanager
def drawn_with_matplotlib(instead: str = "") -> Iterator[None]:
    """Refuse a page, with the way out, if importing what draws it finds no matplotlib.

    Parameters
    ----------
    instead : str
        The end of the hint's sentence: what else could be asked for.
    """
    try:
        yield
    except ModuleNotFoundError as missing:
        if (missing.name or "").partition(".")[0] != "matplotlib":
            raise
        raise InvalidRequest(
            "The report as a page needs matplotlib, which is not installed.",
            hint=f"Install it with `pip install 'tacit-dp[report]'`{instead}.",
        ) from None


def versions() -> dict[str, str]:
    """The versions that made this report; a library that is not there is left out."""
    found = {"Python": platform.python_version()}
    for name in LIBRARIES:
        try:
            found[name] = version(name)
        except PackageNotFoundError:
            continue
    return found
