"""Texts for changes of the rules, for the state of credentials, and for what charges bought.

Values in, text out. Each charge has words for a list, the dearest ones for a page. They are made of
the blocks as the ledger has them (declared.py), when they are asked for: most charges of a long
ledger are only added up.
"""

from collections.abc import Mapping
from fractions import Fraction
from typing import Any, Final

from accountant.ledger import (
    EVERY_TABLE,
    AccessBook,
    AccessGranted,
    AccessRevoked,
    Body,
    BudgetJoined,
    BudgetSet,
    ChangesAccepted,
    ClockCorrected,
    CollectionClosed,
    CollectionOpened,
    Credential,
    DataPinned,
    Entry,
    GenerationBegun,
    HorizonAdvanced,
    Limit,
    LimitSet,
    RollbackAccepted,
    StreamDropped,
    StreamOpened,
    TableDeclared,
    TableOpened,
    Window,
)
from cube.encoding import decode_block, decode_statistic
from cube.measurement import UNITS_PER_EPSILON
from cube.statistic import OfUnits
from proxy.reporting.declared import DeclaredTable, of_units_text, query_text
from proxy.reporting.model import ReportedCharge, RuleChange, TableReport
from proxy.shared.amounts import exact_text


def change(entry: Entry, body: Body, before: Limit | None) -> RuleChange | None:
    """The text for an entry that changes rules; None for other entries.

    Parameters
    ----------
    body : Body
        The contents of the entry.
    before : Limit, optional
        The limit in force before the entry, if the entry sets one.
    """
    subject, by = "", ""
    match body:
        case TableOpened():
            shared = f", {body.shared_budget}, which it shares" if body.shared_budget else ""
            kind, detail = "table opened", f"{_budget_text(body)}{shared}"
        case DataPinned():
            kind, detail = "data pinned", "the rows that are read, by a keyed fingerprint"
        case TableDeclared():
            kind, detail = "table declared", "the public declaration of its columns"
        case BudgetSet():
            kind, detail = "budget set", _budget_text(body)
        case BudgetJoined():
            kind, detail = "budget shared", f"spends from the budget {body.shared_budget}"
        case LimitSet():
            kind, subject, by = "limit set", str(body.limit.subject), body.by
            detail = limit_text(body.limit)
            if before is not None:
                detail = f"{detail}; before: {limit_text(before)}"
        case HorizonAdvanced() | ChangesAccepted() | GenerationBegun():
            by = body.by
            kind, detail = _of_rows(body)
        case _:
            return _of_the_ledger(entry, body)
    return RuleChange(entry.seq, entry.at, entry.table, kind, subject, detail, by)


def _of_rows(body: HorizonAdvanced | ChangesAccepted | GenerationBegun) -> tuple[str, str]:
    """The kind and the text for an entry after which other rows are read."""
    match body:
        case HorizonAdvanced(periods=periods):
            return "horizon advanced", f"its first {periods[-1].end} levels are readable"
        case ChangesAccepted(periods=periods):
            more = Fraction(body.units_after - body.units_before, UNITS_PER_EPSILON)
            return "CHANGES ACCEPTED", (
                f"closed rows of its levels {periods[0].start + 1} to {periods[-1].end} are others "
                f"now; ε {exact_text(more)} more is spent"
            )
        case GenerationBegun():
            spent = Fraction(body.units_before, UNITS_PER_EPSILON)
            return "GENERATION BEGUN", (
                f"its data was replaced; ε {exact_text(spent)}, spent until then, stays spent"
            )


def _of_the_ledger(entry: Entry, body: Body) -> RuleChange | None:
    """The text for an entry that is not about one table."""
    subject = ""
    match body:
        case AccessGranted():
            kind, subject, by = "access granted", body.credential.payer.analyst, body.by
            detail = credential_text(body.credential)
        case AccessRevoked():
            kind, by, detail = "access revoked", body.by, f"credential {body.credential_id}"
        case RollbackAccepted():
            kind, by, detail = "ROLLBACK ACCEPTED", body.by, rollback_text(body)
        case ClockCorrected():
            kind, by, detail = "clock corrected", body.by, f"before: {body.was or 'no entry'}"
        case CollectionOpened():
            kind, subject, by = "collection opened", body.name, body.by
            detail = f"for {body.n_respondents_max} respondents, each with an epsilon of their own"
        case CollectionClosed():
            kind, subject, by = "collection closed", body.name, body.by
            detail = f"{body.n_respondents} respondents answered"
        case StreamOpened():
            kind, by = "stream opened", body.by
            each = "in all" if body.epochs is Window.NEVER else f"a {body.epochs}"
            epsilon = exact_text(Fraction(body.epsilon_units, UNITS_PER_EPSILON))
            kept = f"visits up to {body.levels} of {body.n_places} users" if body.levels else ""
            detail = f"{kept or f'{body.n_places} bits'}, ε {epsilon} {each}"
        case StreamDropped():
            kind, by, detail = "stream dropped", body.by, "what it lost stays lost"
        case _:
            return None
    return RuleChange(entry.seq, entry.at, entry.table, kind, subject, detail, by)


def rollback_text(body: RollbackAccepted) -> str:
    """What is missing from a ledger, on one line."""
    vouched = body.vouched_entries
    had = "an unknown number" if vouched is None else f"at least {vouched}"
    return f"{body.found_entries} entries found, of {had}; what the missing ones spent is unknown"


def limit_text(limit: Limit) -> str:
    """A limit on one line.

    >>> from fractions import Fraction
    >>> from accountant.ledger.limits import Subject
    >>> limit_text(Limit(Subject.parse("analyst:ann"), Fraction(1, 2), Window.WEEK))
    'at most ε 0.5 a week'
    """
    parts = []
    if limit.epsilon is not None:
        ending = "for ever" if limit.window is Window.NEVER else f"a {limit.window}"
        parts.append(f"at most ε {exact_text(limit.epsilon)} {ending}")
    if limit.per_query is not None:
        parts.append(f"at most ε {exact_text(limit.per_query)} a charge")
    return ", ".join(parts) or "no limit"


def credential_text(credential: Credential) -> str:
    """A credential on one line, without the hash or name by which it is recognised."""
    tables = ", ".join("every table" if name == EVERY_TABLE else name for name in credential.tables)
    groups = f", in {', '.join(credential.payer.groups)}" if credential.payer.groups else ""
    ends = f", until {credential.expires}" if credential.expires is not None else ""
    also = " (also a PostgreSQL password)" if credential.verifier is not None else ""
    return (
        f"credential {credential.id}: {credential.role}{groups}, by {credential.proof}{also}, "
        f"for {tables or 'no table'}{ends}"
    )


def credential_state(access: AccessBook, credential: Credential, as_of: str) -> str:
    """The state of a credential at a time: in force, expired or revoked."""
    if credential.id in access.revoked:
        return "revoked"
    return "expired" if credential.is_expired(as_of) else "in force"


def _budget_text(body: TableOpened | BudgetSet) -> str:
    """A budget, and how often it renews."""
    often = "" if body.renews is Window.NEVER else f" a {body.renews}"
    return f"budget ε {exact_text(body.budget)}{often}"


N_DEAREST: Final = 12


def bought_text(purchase: ReportedCharge, declared: DeclaredTable | None) -> str:
    """What a charge bought: the first of its queries, and how many more there are."""
    rows = [query_text(decode_block(dict(block)), declared) for block in purchase.first_blocks]
    counts = [
        of_units_text(found.block, found.rule, declared)
        for found in map(_decoded, purchase.first_counts)
    ]
    texts = [*rows, *counts]
    n_more = purchase.n_blocks + purchase.n_unit_counts - len(texts)
    if n_more:
        texts.append(f"{n_more} more measured together")
    if purchase.n_statistics:
        texts.append(f"{purchase.n_statistics} statistics")
    return "; ".join(texts)


def _decoded(fields: Mapping[str, Any]) -> OfUnits:
    found = decode_statistic(dict(fields))
    if not isinstance(found, OfUnits):
        raise TypeError("a charge lists counts of units apart from other statistics")
    return found


def dearest_charges(table: TableReport) -> list[tuple[ReportedCharge, str]]:
    """The charges that added most to a table's cost, the first of equals first."""
    sorted_charges = sorted(table.purchases, key=lambda one: (-one.units, one.seq))
    return [(one, bought_text(one, table.declared)) for one in sorted_charges[:N_DEAREST]]
