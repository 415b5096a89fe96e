"""From the credentials that a call presents to its caller, or to a reason for rejecting it.

`Authenticator` is the interface that the interceptor uses; `LedgerAuthenticator` implements it with
the credentials in the ledger. The reason for a rejection is only logged: the client receives the
same text whatever the reason is.
"""

import datetime as dt
import secrets
import threading
import time
from collections.abc import Callable
from contextlib import suppress
from enum import StrEnum
from typing import Final, Protocol

from accountant.ledger import (
    EVERY_TABLE,
    AccessBook,
    Credential,
    Payer,
    Proof,
    Role,
    SealedVerifier,
)
from cube.refusals import LedgerUnavailable
from planner.cache import BoundedCache
from proxy.api import Caller
from proxy.identity.presented import PresentedCredentials
from proxy.identity.scram import Password, ScramLogin
from proxy.identity.verifiers import opened_verifier, salt_of

N_TRIED_MIN: Final = 8  # passwords, so that their number hardly tells who exists
_DECOY: Final = SealedVerifier(secrets.token_hex(32), secrets.token_hex(32))  # that of nothing
N_KNOWN_MAX: Final = 1024  # callers that are known again
REFRESH_SECONDS: Final = 1.0  # between two reads of the ledger for an unknown credential
ANONYMOUS: Final = Caller(Payer("anonymous"), Role.ANALYST, (EVERY_TABLE,))


class RejectionReason(StrEnum):
    """Why a call is rejected."""

    MISSING = "credential_missing"
    MALFORMED = "credential_malformed"
    UNKNOWN = "credential_unknown"
    REVOKED = "credential_revoked"
    EXPIRED = "credential_expired"
    AMBIGUOUS = "certificate_of_several"
    MISMATCH = "credentials_of_several"  # a token and a certificate, or a name, of two people


class Authenticator(Protocol):
    """Identifies callers. Thread-safe."""

    def identify(self, presented: PresentedCredentials) -> Caller | RejectionReason:
        """The caller, or the reason why the call is rejected."""
        ...


class PasswordLogin(Protocol):
    """One exchange of SCRAM, in which a client proves that it knows a token."""

    @property
    def mechanisms(self) -> tuple[str, ...]:
        """The mechanisms that are offered, the best first."""
        ...

    def first(self, mechanism: str, message: bytes) -> bytes:
        """The answer to the client's first message; NotAuthenticated if it is none."""
        ...

    def final(self, message: bytes) -> bytes:
        """The answer to the client's proof; NotAuthenticated if it proves nothing."""
        ...

    @property
    def token_hash(self) -> str:
        """The hash of the token that was proved, once `final` has returned."""
        ...


class PasswordAuthenticator(Authenticator, Protocol):
    """Identifies callers also by a name and a token that is never sent."""

    def by_password(self, user: str, endpoint_hash: bytes | None) -> PasswordLogin:
        """An exchange for a user, whether or not there is one of that name."""
        ...

    def needs_no_password(self, user: str, shown: Caller | None = None) -> bool:
        """Whether a user is let in without a token: as anybody, or as a certificate shows them."""
        ...


class AccessLedger(Protocol):
    """The part of a ledger that holds credentials, and the key that seals what it holds of them."""

    @property
    def access(self) -> AccessBook:
        """Every credential, as far as this process has seen."""
        ...

    @property
    def key(self) -> bytes:
        """The key that readers of the ledger do not have."""
        ...

    @property
    def last_at(self) -> str:
        """The time of the last entry that this process has seen."""
        ...

    def refresh(self) -> None:
        """Take in what other processes have appended; LedgerUnavailable if that fails."""
        ...


class SteadyTime:
    """The time by which credentials expire: setting a clock back revives no expired credential.

    It is never earlier than the wall clock at the start plus the time elapsed since on a monotonic
    clock, nor earlier than the ledger's last entry. A wall clock that is ahead for a moment has no
    lasting effect; one that is ahead when the server starts has one until the server is restarted.

    Parameters
    ----------
    clock : callable, optional
        The current time.
    elapsed : callable, optional
        Seconds on a monotonic clock.
    """

    def __init__(
        self,
        clock: Callable[[], dt.datetime] = lambda: dt.datetime.now(dt.UTC),
        elapsed: Callable[[], float] = time.monotonic,
    ) -> None:
        self._clock = clock
        self._elapsed = elapsed
        self._began = clock(), elapsed()

    def now(self, last_at: str) -> str:
        """The time as UTC text, for a ledger whose last entry was made at `last_at`."""
        began, since = self._began
        passed = began + dt.timedelta(seconds=self._elapsed() - since)
        return max(utc_text(max(self._clock(), passed)), last_at)


class LedgerAuthenticator:
    """Credentials of a ledger.

    Parameters
    ----------
    allow_anonymous : bool
        Whether a call without credentials is a call of the analyst ``anonymous``, to whom every
        table is open. A call that presents credentials is checked by them all the same.
    steady : SteadyTime, optional
        The time by which credentials expire.
    """

    def __init__(
        self,
        ledger: AccessLedger,
        *,
        allow_anonymous: bool = False,
        steady: SteadyTime | None = None,
    ) -> None:
        self._ledger = ledger
        self._steady = SteadyTime() if steady is None else steady
        self._allow_anonymous = allow_anonymous
        self._refreshing = threading.Lock()
        self._refreshed = -REFRESH_SECONDS
        self._known = KnownCallers(AccessBook())

    def identify(self, presented: PresentedCredentials) -> Caller | RejectionReason:
        """The caller; credentials that other processes issue are read once a second at most."""
        if presented.is_nothing:
            return ANONYMOUS if self._allow_anonymous else RejectionReason.MISSING
        found = self._judged(presented)
        if isinstance(found, RejectionReason) and self._refresh():
            return self._judged(presented)
        return found

    def by_password(self, user: str, endpoint_hash: bytes | None) -> ScramLogin:
        """An exchange for a user, whether or not there is one of that name."""
        return ScramLogin(
            salt_of(user),
            lambda: self._passwords(user),
            refresh=self._refresh,
            endpoint_hash=endpoint_hash,
        )

    def needs_no_password(self, user: str, shown: Caller | None = None) -> bool:
        """Whether a user is let in without a token: as anybody, or as a certificate shows them.

        A user with tokens that are passwords is asked for one: who has a token means to be served
        by what it opens. Beside a certificate that is so if some token opens anything else.
        """
        if shown is None and not self._allow_anonymous:
            return False

        def asks() -> bool:
            found = self._with_passwords(user)
            return any(shown is None or _is_other(one, shown) for one in found)

        return not asks() and not (self._refresh() and asks())

    def _passwords(self, user: str) -> list[Password]:
        """A user's passwords that are in force now, and decoys."""
        known = [(one.shown_as, one.verifier) for one in self._with_passwords(user)]
        decoys = [("", _DECOY)] * (N_TRIED_MIN - len(known))
        return [
            Password(shown_as, opened_verifier(self._ledger.key, sealed, shown_as))
            for shown_as, sealed in (*known, *decoys)
            if sealed is not None
        ]

    def _with_passwords(self, user: str) -> list[Credential]:
        now = self._steady.now(self._ledger.last_at)
        found = self._ledger.access.with_verifiers(user)
        return [one for one in found if not one.is_expired(now)]

    def _judged(self, presented: PresentedCredentials) -> Caller | RejectionReason:
        book, known = self._ledger.access, self._known
        if known.book is not book:  # a credential was issued or revoked
            known = self._known = KnownCallers(book)
        return known.judged(presented, lambda: self._steady.now(self._ledger.last_at))

    def _refresh(self) -> bool:
        """Read new credentials, unless another thread just did or does; whether they were read."""
        if not self._refreshing.acquire(blocking=False):
            return False
        try:
            if time.monotonic() - self._refreshed < REFRESH_SECONDS:
                return False
            with suppress(
                LedgerUnavailable
            ):  # then no new credential is known, and none is accepted
                self._ledger.refresh()
            self._refreshed = time.monotonic()
            return True
        finally:
            self._refreshing.release()


def utc_text(moment: dt.datetime) -> str:
    """A time as the ledger writes it, so that texts compare as times do."""
    return moment.astimezone(dt.UTC).isoformat(timespec="milliseconds")


class KnownCallers:
    """The callers that credentials are of, as one state of the ledger has it. Thread-safe.

    Only what no moment can change is remembered: a caller whose credentials never expire.

    Parameters
    ----------
    book : AccessBook
        That state; each state needs callers of its own.
    """

    def __init__(self, book: AccessBook) -> None:
        self.book = book
        self._callers: BoundedCache[PresentedCredentials, Caller] = BoundedCache(
            n_entries_max=N_KNOWN_MAX, n_bytes_max=N_KNOWN_MAX
        )

    def judged(
        self, presented: PresentedCredentials, now: Callable[[], str]
    ) -> Caller | RejectionReason:
        """The caller of a call that presents credentials, at the time `now`."""
        known = self._callers.get(presented)
        if known is not None:
            return known
        found = _presented(self.book, presented)
        if isinstance(found, RejectionReason):
            return found
        judged = _judged(self.book, presented, found, now())
        if isinstance(judged, Caller) and all(one.expires is None for one in found):
            self._callers.put(presented, judged, n_bytes=1)
        return judged


def _presented(
    book: AccessBook, presented: PresentedCredentials
) -> list[Credential] | RejectionReason:
    """The credentials that a call presents; the last of them determines which tables are open."""
    found: list[Credential] = []
    for find in (_by_certificate, _by_token):
        one = find(book, presented)
        if isinstance(one, RejectionReason):
            return one
        if one is not None:
            found.append(one)
    return found


def _judged(
    book: AccessBook, presented: PresentedCredentials, found: list[Credential], now: str
) -> Caller | RejectionReason:
    """The caller whose credentials were found, at the time `now`.

    With a certificate and a token, both must be in force and of the same analyst.
    """
    if any(credential.is_expired(now) for credential in found):
        return RejectionReason.EXPIRED
    names = {credential.payer.analyst for credential in found}
    if presented.analyst is not None:
        names.add(presented.analyst)
    if len(names) != 1:
        return RejectionReason.MISMATCH
    credential = found[-1]
    payer = book.payer(credential.payer.analyst)
    return Caller(payer, credential.role, credential.tables)


def _is_other(credential: Credential, caller: Caller) -> bool:
    """Whether a credential opens anything else than a caller's does."""
    return credential.role is not caller.role or set(credential.tables) != set(caller.tables)


def _by_certificate(
    book: AccessBook, presented: PresentedCredentials
) -> Credential | RejectionReason | None:
    if presented.certificate is None:
        return None
    names = sorted(presented.certificate)
    found = [one for name in names if (one := book.shown(Proof.CERTIFICATE, name)) is not None]
    if len(found) > 1:
        return RejectionReason.AMBIGUOUS
    return found[0] if found else _never_or_no_more(book, Proof.CERTIFICATE, names)


def _by_token(
    book: AccessBook, presented: PresentedCredentials
) -> Credential | RejectionReason | None:
    if presented.token_hash is None:
        return None
    found = book.shown(Proof.TOKEN, presented.token_hash)
    return found or _never_or_no_more(book, Proof.TOKEN, [presented.token_hash])


def _never_or_no_more(book: AccessBook, proof: Proof, shown_as: list[str]) -> RejectionReason:
    """The reason: revoked, if a credential with this proof was ever issued; else unknown."""
    was_issued = any(
        credential.proof is proof and credential.shown_as in shown_as
        for credential in book.issued.values()
    )
    return RejectionReason.REVOKED if was_issued else RejectionReason.UNKNOWN
