"""One report of one ledger, in the requested format.

A ledger's entries are read in one pass, up to the first one that the auditor rejects. The auditor
has checked the entries that are read here; the sums are computed again all the same, and a report
whose sums differ from the auditor's is refused. Charges are read as text: rows are built only of
those that still wait when closed rows of their table change.
"""

import json
import platform
from collections import defaultdict
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field, replace
from enum import StrEnum
from fractions import Fraction
from importlib.metadata import PackageNotFoundError, version
from itertools import islice, pairwise
from typing import Any, Final, TypeAlias

from accountant.auditor import SignedHead, TableVerdict, Verdict
from accountant.auditor.costs import ColumnCost
from accountant.ledger import (
    AccessBook,
    AccessGranted,
    AccessRevoked,
    Body,
    BudgetJoined,
    BudgetSet,
    ChangesAccepted,
    Charge,
    ClockCorrected,
    Entry,
    GenerationBegun,
    Limit,
    LimitSet,
    Payer,
    Served,
    Subject,
    SubjectKind,
    TableDeclared,
    TableOpened,
    Window,
    read,
)
from accountant.ledger.history import is_given_up, levels_of
from cube.refusals import InvalidRequest
from proxy.reporting import tables, wording
from proxy.reporting.declared import DeclaredTable
from proxy.reporting.model import (
    Account,
    AnswerCounts,
    LedgerReport,
    LimitUse,
    OwnTablesReader,
    RenewingBudget,
    ReportedCharge,
    RuleChange,
    TableReport,
)
from proxy.shared.amounts import of_units

MONTH_LENGTH = len("2026-11")
N_BLOCKS_TOLD: Final = 3  # of one charge


def read_report(
    entries: Iterable[Entry],
    verdict: Verdict,
    heads: Sequence[SignedHead] = (),
    progress: Callable[[str], None] = lambda _: None,
) -> LedgerReport:
    """The report of the entries that the verdict found valid.

    Parameters
    ----------
    entries : iterable of Entry
        The entries that the verdict is about, from the first on.
    heads : sequence of SignedHead
        The signed heads that the verdict took into account.
    progress : callable, optional
        Called with the current step, to show progress.

    Raises
    ------
    RuntimeError
        If the sums differ from the verdict's: one of the two is wrong, so neither is shown.
    """
    reader = _LedgerReader()
    progress("Adding up the entries")
    for entry in islice(entries, verdict.n_entries):
        reader.take(entry)
    found = {one.table: one for one in verdict.tables}
    tables = []
    for name, table in sorted(reader.tables.items()):
        progress(f"Adding up what each cell of {name} has paid")
        counted = reader.counted_for(table)
        tables.append(table.finished(name, reader.at, found.get(name), counted))
    for one in tables:
        _check_agreement(one)
    tables = [
        replace(
            one,
            spent_elsewhere=_elsewhere(one, tables),
            renewing=_renewing(one, tables, reader.at),
        )
        for one in tables
    ]
    credentials = tuple(
        (credential, wording.credential_state(reader.access, credential, reader.at))
        for credential in reader.access.issued.values()
    )
    changes, own = tuple(reader.changes), reader.own
    others = own.collections(verdict), own.streams(verdict)
    return LedgerReport(
        verdict, tuple(heads), reader.at, tuple(tables), changes, credentials, *others
    )


def _elsewhere(table: TableReport, tables: Sequence[TableReport]) -> Fraction:
    """What other tables have spent of the budget that a table shares."""
    shared = table.shared_budget
    others = (one for one in tables if shared and one.name != table.name)
    return sum((one.spent for one in others if one.shared_budget == shared), Fraction(0))


def _renewing(
    table: TableReport, tables: Sequence[TableReport], as_of: str
) -> RenewingBudget | None:
    """What the auditor found to count towards a table's budget, if it renews."""
    if table.found is None or table.found.renewal is None:
        return None
    shared = table.shared_budget
    same = [one for one in tables if one is table or (shared and one.shared_budget == shared)]
    found = [one.found.renewal for one in same if one.found and one.found.renewal]
    window = Window(table.found.renewal.renews)
    return RenewingBudget(
        window=window.value,
        renews_on=window.end(as_of)[: len("2027-01-01")],
        spent=sum((one.spent for one in found), Fraction(0)),
        spent_in_year=sum((one.spent_in_year for one in found), Fraction(0)),
        spent_in_all=sum((one.spent for one in same), Fraction(0)),
    )


def _check_agreement(table: TableReport) -> None:
    found = table.found
    if found is None:
        return
    ours = (table.budget, table.spent, table.n_measurements, table.n_pending)
    if ours != (found.budget, found.spent, found.n_measurements, found.n_pending):
        raise RuntimeError(f"the report's sums for {table.name} differ from the auditor's")


@dataclass(slots=True)
class _LedgerReader:
    """The state of the ledger after the entries read so far."""

    tables: "dict[str, _TableReader]" = field(default_factory=dict)
    access: AccessBook = field(default_factory=AccessBook)
    changes: list[RuleChange] = field(default_factory=list)
    own: OwnTablesReader = field(default_factory=OwnTablesReader)
    at: str = ""

    def take(self, entry: Entry) -> None:
        """Read one more entry."""
        self.at = entry.at
        fields = json.loads(entry.body)
        match entry.kind:
            case "charge":
                self.tables[entry.table].charge(entry, fields)
            case "measurement":
                self.tables[entry.table].measure(fields)
            case _:
                self._take_rule(entry, read(entry.kind, fields))

    def counted_for(self, table: "_TableReader") -> "list[ReportedCharge]":
        """The charges that count towards a table's limits: those of all tables of its budget."""
        if not table.shared_budget:
            return table.purchases
        same = [one for one in self.tables.values() if one.shared_budget == table.shared_budget]
        charges = [charge for one in same for charge in one.purchases]
        return sorted(charges, key=lambda charge: (charge.counted_at, charge.seq))

    def _take_rule(self, entry: Entry, body: Body) -> None:
        self.own.take(entry, body)
        match body:
            case AccessGranted():
                self.access = self.access.granted(body.credential)
            case AccessRevoked():
                self.access = self.access.without(body.credential_id)
            case ClockCorrected():
                for known in self.tables.values():
                    known.correct_clock(entry.at)
            case TableOpened():
                self.tables[entry.table] = _TableReader(entry.at, body, body.shared_budget)
        table = self.tables.get(entry.table)
        before = None if table is None else table.limit_before(body)
        change = wording.change(entry, body, before)
        if change is not None:
            self.changes.append(change)
        if table is not None:
            table.take(entry.at, body)


@dataclass(slots=True)
class _TableReader:
    """The state of one table after the entries read so far."""

    opened_at: str
    opened: TableOpened
    shared_budget: str = ""
    declared: DeclaredTable | None = None
    budgets: list[tuple[str, Fraction]] = field(default_factory=list)
    limits: dict[Subject, Limit] = field(default_factory=dict)
    payers: dict[tuple[str, tuple[str, ...]], Payer] = field(default_factory=dict)
    purchases: list[ReportedCharge] = field(default_factory=list)
    waiting: dict[int, dict[str, Any]] = field(default_factory=dict)  # each charge, as text
    generations: list[tuple[str, int]] = field(default_factory=list)  # what was spent before each
    data_fingerprint: str = ""
    n_measurements: int = 0
    n_raised: int = 0
    units_accepted: int = 0
    answers: dict[tuple[str, str], AnswerCounts] = field(
        default_factory=dict
    )  # by month and analyst

    def take(self, at: str, body: Body) -> None:
        """Read an entry that is neither a charge nor a measurement."""
        match body:
            case TableOpened() | BudgetSet():
                self.budgets.append((at, body.budget))
            case ChangesAccepted():
                self.units_accepted = body.units_after
                self._give_up(body)
            case GenerationBegun():
                self.generations.append((at, body.units_before))
                self.data_fingerprint = body.data_fingerprint
                self.waiting.clear()  # given up: what they wait for is gone
            case BudgetJoined():
                self.shared_budget = body.shared_budget
            case TableDeclared():
                self.declared = DeclaredTable.parse(body.declaration)
            case LimitSet():
                self.limits[body.limit.subject] = body.limit
            case Served():
                for tally in body.tallies:
                    key = at[:MONTH_LENGTH], tally.analyst
                    given = AnswerCounts(
                        tally.n_free,
                        tally.n_paid,
                        tally.plain_units_free,
                        tally.plain_units_paid,
                        tally.widths,
                    )
                    self.answers[key] = self.answers.get(key, AnswerCounts()) + given

    def correct_clock(self, at: str) -> None:
        """Let no charge count at a later time than `at`."""
        self.opened_at = min(self.opened_at, at)
        self.budgets = [(min(since, at), budget) for since, budget in self.budgets]
        self.purchases = [
            one if one.counted_at <= at else replace(one, counted_at=at) for one in self.purchases
        ]

    def limit_before(self, body: Body) -> Limit | None:
        """The limit that an entry changes."""
        return self.limits.get(body.limit.subject) if isinstance(body, LimitSet) else None

    def charge(self, entry: Entry, fields: dict[str, Any]) -> None:
        """Read a charge."""
        blocks, statistics = fields["blocks"], fields.get("statistics", ())
        counts = [one for one in statistics if one["kind"] == "unit_count"]
        self.n_raised += sum("raised_from" in charged for charged in blocks)
        self.waiting[entry.seq] = fields
        name = fields["analyst"], tuple(fields.get("groups", ()))
        if name not in self.payers:
            self.payers[name] = Payer(*name)
        units = fields["units_before"], fields["units_after"]
        self.purchases.append(
            ReportedCharge(
                seq=entry.seq,
                at=entry.at,
                payer=self.payers[name],
                n_blocks=len(blocks),
                n_statistics=len(statistics) - len(counts),
                units_before=units[0],
                units_after=units[1],
                counted_at=entry.at,
                first_blocks=tuple(charged["block"] for charged in blocks[:N_BLOCKS_TOLD]),
                n_unit_counts=len(counts),
                first_counts=tuple(counts[:N_BLOCKS_TOLD]),
            )
        )

    def measure(self, fields: dict[str, Any]) -> None:
        """Read a measurement."""
        self.n_measurements += len(self.waiting.pop(fields["charge"])["blocks"])

    def _give_up(self, body: ChangesAccepted) -> None:
        """Charges that wait for rows that are gone wait no longer."""
        spans = ((one.start, one.end) for one in body.periods)
        levels = levels_of(spans, self.opened.grows_levels)
        for seq, fields in list(self.waiting.items()):
            charge = read("charge", fields)
            if isinstance(charge, Charge) and is_given_up(charge, self.opened.grows, levels):
                del self.waiting[seq]

    def finished(
        self,
        name: str,
        as_of: str,
        found: TableVerdict | None,
        counted: Sequence[ReportedCharge],
    ) -> TableReport:
        """The report of the table; `counted` are the charges that count towards its limits."""
        groups = [(group, bought) for bought in self.purchases for group in bought.payer.groups]
        return TableReport(
            name=name,
            opened_at=self.opened_at,
            schema_digest=self.opened.schema_digest,
            data_fingerprint=self.data_fingerprint or self.opened.data_fingerprint,
            declared=self.declared,
            budgets=tuple(self.budgets),
            purchases=tuple(self.purchases),
            n_measurements=self.n_measurements,
            n_raised=self.n_raised,
            n_pending=len(self.waiting),
            analysts=_accounts(
                [(bought.payer.analyst, bought) for bought in self.purchases],
                [(analyst, given) for (_, analyst), given in self.answers.items()],
            ),
            groups=_accounts(groups, []),
            months=_accounts(
                [(bought.counted_at[:MONTH_LENGTH], bought) for bought in self.purchases],
                [(month, given) for (month, _), given in self.answers.items()],
            ),
            allowances=self._allowances(as_of, counted),
            columns=_columns(found),
            found=found,
            shared_budget=self.shared_budget,
            units_accepted=self.units_accepted,
            generations=tuple(
                (at, of_units(units - before))
                for (_, before), (at, units) in pairwise([("", 0), *self.generations])
            ),
        )

    def _allowances(self, as_of: str, counted: Sequence[ReportedCharge]) -> tuple[LimitUse, ...]:
        limits = sorted(
            (limit for limit in self.limits.values() if not limit.is_empty),
            key=lambda limit: limit.subject,
        )
        own = {limit.subject for limit in limits}
        return tuple(LimitUse(limit, _used(limit, as_of, own, counted)) for limit in limits)


def _used(
    limit: Limit, as_of: str, own: set[Subject], counted: Sequence[ReportedCharge]
) -> tuple[tuple[Subject, Fraction], ...]:
    """Use of a limit by each subject in its window, except those with limits of their own."""
    since = limit.window.start(as_of)
    used: dict[Payer, int] = defaultdict(int)
    for bought in reversed(counted):
        if bought.counted_at < since:
            break
        used[bought.payer] += bought.units
    accounts: dict[Subject, int] = defaultdict(int)
    for payer, units in used.items():
        for account in payer.subjects:
            if _counts_for(limit, account, own):
                accounts[account] += units
    return tuple((account, of_units(units)) for account, units in sorted(accounts.items()))


def _counts_for(limit: Limit, account: Subject, own: set[Subject]) -> bool:
    """Whether what an account spends counts towards a limit."""
    if limit.subject.kind is SubjectKind.EACH_ANALYST:
        return account.kind is SubjectKind.ANALYST and account not in own
    return account == limit.subject


def _accounts(
    bought: Iterable[tuple[str, ReportedCharge]], given: Iterable[tuple[str, AnswerCounts]]
) -> tuple[Account, ...]:
    """Purchases and answers added up by name, in the order of names."""
    units: dict[str, int] = defaultdict(int)
    n_charges: dict[str, int] = defaultdict(int)
    answers: dict[str, AnswerCounts] = defaultdict(AnswerCounts)
    for name, one in bought:
        units[name] += one.units
        n_charges[name] += 1
    for name, some in given:
        answers[name] += some
    return tuple(
        Account(name, units[name], n_charges[name], answers[name])
        for name in sorted(n_charges.keys() | answers.keys())
    )


def _columns(found: TableVerdict | None) -> tuple[ColumnCost, ...]:
    """What each column has cost, as the audit found it."""
    if found is None:
        return ()
    if found.columns is None:
        raise ValueError("a report is made of an audit that was asked for columns")
    return found.columns


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
