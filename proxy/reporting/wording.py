"""Changes of the rules, and the state of credentials, in words. Values in, text out."""

from accountant.ledger.credentials import EVERY_TABLE, AccessBook, Credential
from accountant.ledger.entries import (
    AccessGranted,
    AccessRevoked,
    Body,
    BudgetSet,
    DataPinned,
    Entry,
    LimitSet,
    TableDeclared,
    TableOpened,
)
from accountant.ledger.ledger_events import ClockCorrected, RollbackAccepted
from accountant.ledger.limits import Limit, Window
from proxy.reporting.amounts import exact_text
from proxy.reporting.model import RuleChange


def change(entry: Entry, body: Body, before: Limit | None) -> RuleChange | None:
    """An entry that is about rules, in words; None for one that is not.

    Parameters
    ----------
    entry : Entry
    body : Body
        What it says.
    before : Limit, optional
        The limit that was in force until then, if it sets one.
    """
    subject, by = "", ""
    match body:
        case TableOpened():
            kind, detail = "table opened", f"budget ε {exact_text(body.budget)}"
        case DataPinned():
            kind, detail = "data pinned", "the rows that are read, by a keyed fingerprint"
        case TableDeclared():
            kind, detail = "table declared", "the public declaration of its columns"
        case BudgetSet():
            kind, detail = "budget set", f"budget ε {exact_text(body.budget)}"
        case LimitSet():
            kind, subject, by = "limit set", str(body.limit.subject), body.by
            detail = limit_text(body.limit)
            if before is not None:
                detail = f"{detail}; before: {limit_text(before)}"
        case _:
            return _of_the_ledger(entry, body)
    return RuleChange(entry.seq, entry.at, entry.table, kind, subject, detail, by)


def _of_the_ledger(entry: Entry, body: Body) -> RuleChange | None:
    """An entry that is about no table."""
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
        case _:
            return None
    return RuleChange(entry.seq, entry.at, entry.table, kind, subject, detail, by)


def rollback_text(body: RollbackAccepted) -> str:
    """What is gone of a ledger, on one line."""
    vouched = body.vouched_entries
    had = "nobody knows how many" if vouched is None else f"at least {vouched}"
    return f"{body.found_entries} entries found, {had} were there; what they spent is not known"


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
    """A credential on one line; never how it is shown, though that would tell nobody anything."""
    tables = ", ".join("every table" if name == EVERY_TABLE else name for name in credential.tables)
    groups = f", in {', '.join(credential.payer.groups)}" if credential.payer.groups else ""
    ends = f", until {credential.expires}" if credential.expires is not None else ""
    return (
        f"credential {credential.id}: {credential.role}{groups}, by {credential.proof}, "
        f"for {tables or 'no table'}{ends}"
    )


def credential_state(access: AccessBook, credential: Credential, as_of: str) -> str:
    """Whether a credential opened anything at a moment."""
    if credential.id in access.revoked:
        return "revoked"
    return "expired" if credential.is_expired(as_of) else "in force"
