"""Issuing and revoking credentials: entries of the ledger, made beside a running server or in it.

A server reads what was appended about once a second; so a credential takes effect, or loses its
effect, within about a second.
"""

import datetime as dt
import re
import secrets
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Final

from accountant.ledger.credentials import (
    EVERY_TABLE,
    AccessBook,
    Credential,
    Proof,
    Role,
    SealedVerifier,
)
from accountant.ledger.entries import AccessBody, AccessGranted, AccessRevoked
from accountant.ledger.ledger import Ledger
from accountant.ledger.limits import Payer
from cube.refusals import InvalidRequest
from proxy.identity.authenticate import utc_text
from proxy.identity.roles import WHO_ASKS
from proxy.identity.scram_keys import sealed_verifier
from proxy.identity.tokens import new_token, token_hash

ID_BYTES: Final = 4  # an id to revoke by; it need not be hard to guess
N_DAYS_MAX: Final = 36_500
_DAYS: Final = re.compile(r"([0-9]{1,5})d", re.ASCII)


@dataclass(frozen=True, slots=True, kw_only=True)
class Grant:
    """Who gets access, and to what.

    Parameters
    ----------
    analyst : str
    groups : sequence of str
    role : Role
    tables : sequence of str
        ``*`` for every table, including tables that are added later.
    expires : str, optional
        UTC text; see `expiry`.
    on_postgres : bool
        Whether a token is also the password for the PostgreSQL wire, if its role may query.
    """

    analyst: str
    groups: Sequence[str] = ()
    role: Role = Role.ANALYST
    tables: Sequence[str] = ()
    expires: str | None = None
    on_postgres: bool = True

    def credential(
        self,
        credential_id: str,
        proof: Proof,
        shown_as: str,
        verifier: SealedVerifier | None = None,
    ) -> Credential:
        """The credential for this grant; InvalidRequest if there can be none."""
        tables = (EVERY_TABLE,) if EVERY_TABLE in self.tables else tuple(sorted(set(self.tables)))
        if not tables:
            raise InvalidRequest(
                "This credential would open no table.", hint="Name the tables that it opens."
            )
        try:
            return Credential(
                id=credential_id,
                payer=Payer(self.analyst, tuple(sorted(set(self.groups)))),
                role=self.role,
                tables=tables,
                proof=proof,
                shown_as=shown_as,
                expires=self.expires,
                verifier=verifier,
            )
        except ValueError as error:
            raise InvalidRequest(f"This is not a valid credential: {error}.") from None


def issue_token(ledger: Ledger, grant: Grant, *, by: str) -> tuple[Credential, str]:
    """A new credential that is in force, and its token, which cannot be recovered later.

    Raises
    ------
    InvalidRequest
        If a name in the grant is not valid.
    LedgerUnavailable
        If the entry could not be made durable.
    """
    token = new_token()
    shown_as = token_hash(token)
    is_password = grant.on_postgres and grant.role in WHO_ASKS
    verifier = sealed_verifier(ledger.key, grant.analyst, token, shown_as) if is_password else None
    return (
        _issue(ledger, lambda name: grant.credential(name, Proof.TOKEN, shown_as, verifier), by),
        token,
    )


def issue_certificate(ledger: Ledger, grant: Grant, name: str, *, by: str) -> Credential:
    """A new credential for holders of a certificate that contains this name.

    Raises
    ------
    InvalidRequest
        If a name is not valid, or if a credential for that certificate exists already.
    LedgerUnavailable
        If the entry could not be made durable.
    """
    if not name or not name.isprintable() or name != name.strip():
        raise InvalidRequest(
            f"{name[:64]!a} cannot be a name in a certificate.",
            hint="Give a DNS name, an e-mail address or a URI among its alternative names, or its "
            "common name if it has none of these.",
        )
    return _issue(ledger, lambda new: grant.credential(new, Proof.CERTIFICATE, name), by)


def revoke(ledger: Ledger, credential_id: str, *, by: str) -> None:
    """Revoke a credential; InvalidRequest if no such credential is in force."""

    def build(book: AccessBook) -> AccessRevoked:
        if credential_id not in book.issued or credential_id in book.revoked:
            raise InvalidRequest(
                f"No credential {credential_id[:64]!a} is in force.",
                hint="`tacit token list` lists the credentials that are.",
            )
        return AccessRevoked(credential_id, by)

    ledger.append_access(build)


def expiry(text: str, now: Callable[[], dt.datetime] = lambda: dt.datetime.now(dt.UTC)) -> str:
    """When a credential expires, as the ledger writes it: after a number of days, or at a time.

    >>> expiry("2030-01-01"), expiry("2030-01-01T12:00+02:00")
    ('2030-01-01T00:00:00.000+00:00', '2030-01-01T10:00:00.000+00:00')
    """
    days = _DAYS.fullmatch(text)
    if days is not None and 0 < int(days[1]) <= N_DAYS_MAX:
        return utc_text(now() + dt.timedelta(days=int(days[1])))
    try:
        moment = dt.datetime.fromisoformat(text)
        aware = moment if moment.tzinfo else moment.replace(tzinfo=dt.UTC)
        ends = utc_text(aware)
    except (ValueError, OverflowError):
        raise InvalidRequest(
            f"{text[:64]!a} is not an expiry.",
            hint="Write a number of days, 90d, or a date, 2030-01-01.",
        ) from None
    if ends <= utc_text(now()):
        raise InvalidRequest(f"{text[:64]!a} is in the past.", hint="Give a time in the future.")
    return ends


def _issue(ledger: Ledger, named: Callable[[str], Credential], by: str) -> Credential:
    """The credential that `named` makes under a name that no other has, once it is in force."""
    issued: list[Credential] = []

    def build(book: AccessBook) -> AccessBody:
        credential_id = secrets.token_hex(ID_BYTES)
        while credential_id in book.issued:
            credential_id = secrets.token_hex(ID_BYTES)
        credential = named(credential_id)
        if book.shown(credential.proof, credential.shown_as) is not None:
            raise InvalidRequest(
                "There is already a credential for certificates with the name "
                f"{credential.shown_as[:64]!a}.",
                hint="Revoke that one first.",
            )
        issued.append(credential)
        return AccessGranted(credential, by)

    ledger.append_access(build)
    return issued[-1]
