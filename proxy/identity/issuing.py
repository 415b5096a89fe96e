"""Issuing and revoking credentials: entries of the ledger, made beside a running server or in it.

A server reads what was appended about once a second; so a credential takes effect, or loses its
effect, within about a second.

An owner who reads a list of analysts and groups is warned of names that look like another's. Two
names are alike to the eye if they are the same once letters that are drawn alike are written as
one. The letters are those of the scripts that names are mostly written in; nothing is refused.
"""

import datetime as dt
import re
import secrets
import unicodedata
from collections.abc import Callable, Collection, Iterable, Iterator, Sequence
from dataclasses import dataclass
from itertools import combinations
from typing import Final

from accountant.ledger import (
    EVERY_TABLE,
    AccessBody,
    AccessBook,
    AccessGranted,
    AccessRevoked,
    Credential,
    Ledger,
    Payer,
    Proof,
    Role,
    SealedVerifier,
)
from cube.refusals import InvalidRequest
from proxy.identity.authenticate import utc_text
from proxy.identity.roles import WHO_ASKS
from proxy.identity.verifiers import sealed_verifier
from proxy.shared.tokens import new_token, token_hash

ID_BYTES: Final = 4  # an id to revoke by; it need not be hard to guess
N_DAYS_MAX: Final = 36_500
_DAYS: Final = re.compile(r"([0-9]{1,5})d", re.ASCII)


@dataclass(frozen=True, slots=True, kw_only=True)
class Grant:
    """Who gets access, and to what.

    Parameters
    ----------
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


# By the Latin letter, the letters and digits that are drawn like it, small or large.
_DRAWN: Final = {
    "a": "\u0430\u03b1",
    "b": "\u0432\u044c\u03b2",
    "c": "\u0441\u03f2",
    "d": "\u0501",
    "e": "\u0435\u03b5",
    "g": "\u0581",
    "h": "\u04bb\u043d\u03b7\u0570",
    "i": "\u0456\u03b9\u0131",
    "j": "\u0458\u03f3",
    "k": "\u043a\u03ba",
    "l": "\u04cf1|",
    "m": "\u043c\u03bc",
    "n": "\u0578",
    "o": "\u043e\u03bf\u05850",
    "p": "\u0440\u03c1",
    "q": "\u051b\u0566",
    "s": "\u0455",
    "t": "\u0442\u03c4",
    "u": "\u057d",
    "v": "\u0475\u03bd",
    "w": "\u051d",
    "x": "\u0445\u03c7",
    "y": "\u0443\u03c5\u03b3",
    "z": "\u03b6",
}
_LATIN: Final = {ord(like): to for to, every in _DRAWN.items() for like in every}
_TOGETHER: Final = (("rn", "m"), ("vv", "w"), ("i", "l"))
_SCRIPTS: Final = frozenset(("LATIN", "CYRILLIC", "GREEK", "ARMENIAN", "HEBREW", "ARABIC"))


def drawn_as(name: str) -> str:
    r"""A name with letters that are drawn alike written as one, without marks and blanks.

    >>> drawn_as("Ann") == drawn_as("\u0430nn") == drawn_as("a\u0301nn ")
    True
    >>> drawn_as("bill") == drawn_as("biII")
    True
    >>> drawn_as("ann") == drawn_as("anna")
    False
    """
    plain = unicodedata.normalize("NFKD", name).casefold()
    kept = "".join(c for c in plain if unicodedata.category(c)[0] not in "MZC")
    drawn = kept.translate(_LATIN)
    for several, one in _TOGETHER:
        drawn = drawn.replace(several, one)
    return drawn


def scripts_of(name: str) -> frozenset[str]:
    r"""The scripts of a name's letters, as far as letters of them are drawn alike.

    >>> sorted(scripts_of("\u0430nn"))
    ['CYRILLIC', 'LATIN']
    """
    letters = (unicodedata.name(c, "").split(" ")[0] for c in name if c.isalpha())
    return _SCRIPTS.intersection(letters)


def warnings_of(names: Iterable[str]) -> Iterator[str]:
    """A sentence for each pair of names that look alike, and for each name of several scripts."""
    once = list(dict.fromkeys(names))
    for one, other in combinations(once, 2):
        if drawn_as(one) == drawn_as(other):
            yield f"{_shown(one)} and {_shown(other)} look alike, and are two names."
    for name in once:
        scripts = scripts_of(name)
        if len(scripts) > 1:
            listed = " and ".join(sorted(script.capitalize() for script in scripts))
            yield f"{_shown(name)} is written with letters of {listed}."


def warnings_beside(new: Collection[str], names: Iterable[str]) -> Iterator[str]:
    """The same, of the pairs and names that a new one is in."""
    others = [name for name in dict.fromkeys(names) if name not in new]
    alike = [one for one in others if drawn_as(one) in {drawn_as(name) for name in new}]
    told = set(warnings_of(alike))
    yield from (one for one in warnings_of([*alike, *new]) if one not in told)


def _shown(name: str) -> str:
    r"""A name, and beside it what cannot be told by looking.

    >>> print(_shown("b\x1b"))
    "b?" (b\x1b)
    """
    plain = "".join(c if c.isprintable() else "?" for c in name)
    codes = ascii(name)[1:-1]
    return f'"{plain}"' if codes == name else f'"{plain}" ({codes})'
