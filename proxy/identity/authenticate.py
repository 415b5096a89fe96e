"""From what a call shows to who makes it, or to what is doubtful about it.

`Authenticator` is what the door asks; `LedgerAuthenticator` answers from the credentials in the
ledger. What is doubtful is for the log alone. The client hears one text for all of it.
"""

import datetime as dt
import threading
import time
from collections.abc import Callable
from contextlib import suppress
from enum import StrEnum
from typing import Final, Protocol

from accountant.ledger.credentials import EVERY_TABLE, AccessBook, Credential, Proof, Role
from accountant.ledger.limits import Payer
from cube.refusals import LedgerUnavailable
from proxy.api.requests import Caller
from proxy.identity.presented import PresentedCredentials

REFRESH_SECONDS: Final = 1.0  # between two looks for a credential that is not known yet
ANONYMOUS: Final = Caller(Payer("anonymous"), Role.ANALYST, (EVERY_TABLE,))


class RejectionReason(StrEnum):
    """Why a call is nobody's."""

    MISSING = "credential_missing"
    MALFORMED = "credential_malformed"
    UNKNOWN = "credential_unknown"
    REVOKED = "credential_revoked"
    EXPIRED = "credential_expired"
    AMBIGUOUS = "certificate_of_several"
    MISMATCH = "credentials_of_several"  # a token and a certificate, or a name, of two people


class Authenticator(Protocol):
    """Who may come in. Thread-safe."""

    def identify(self, shown: PresentedCredentials) -> Caller | RejectionReason:
        """Whose call it is."""
        ...


class AccessLedger(Protocol):
    """The part of a ledger that knows credentials."""

    @property
    def access(self) -> AccessBook:
        """Every credential, as far as this process has seen."""
        ...

    @property
    def last_at(self) -> str:
        """The time of the last entry that this process has seen."""
        ...

    def refresh(self) -> None:
        """Take in what other processes have appended; LedgerUnavailable if that fails."""
        ...


class SteadyTime:
    """The time by which credentials expire: setting a clock back gives nothing back.

    It is never before what the clock said at the start and the time that passed since, by a clock
    that nobody sets; nor before the ledger's last entry. A clock that was ahead for a moment leaves
    no trace; one that was ahead when the server started does until it is started again.

    Parameters
    ----------
    clock : callable, optional
        The moment that it is.
    elapsed : callable, optional
        Seconds on a clock that nobody sets.
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
        """The time as UTC text, for a ledger whose last entry is of `last_at`."""
        began, since = self._began
        passed = began + dt.timedelta(seconds=self._elapsed() - since)
        return max(utc_text(max(self._clock(), passed)), last_at)


class LedgerAuthenticator:
    """Credentials of a ledger.

    Parameters
    ----------
    ledger : AccessLedger
    allow_anonymous : bool
        Whether a call that shows nothing is the analyst ``anonymous``, to whom every table is
        open. A call that shows something is held to it all the same.
    steady : SteadyTime, optional
        By which credentials expire.
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

    def identify(self, shown: PresentedCredentials) -> Caller | RejectionReason:
        """Whose call it is; what others have just issued is looked for once a second at most."""
        if shown.is_nothing:
            return ANONYMOUS if self._allow_anonymous else RejectionReason.MISSING
        found = self._judged(shown)
        if isinstance(found, RejectionReason) and self._refresh():
            return self._judged(shown)
        return found

    def _judged(self, shown: PresentedCredentials) -> Caller | RejectionReason:
        return _judged(self._ledger.access, shown, self._steady.now(self._ledger.last_at))

    def _refresh(self) -> bool:
        """Look for new credentials, unless somebody just has or does; whether it was done."""
        if not self._refreshing.acquire(blocking=False):
            return False
        try:
            if time.monotonic() - self._refreshed < REFRESH_SECONDS:
                return False
            with suppress(LedgerUnavailable):  # then nothing new is known, and nobody new comes in
                self._ledger.refresh()
            self._refreshed = time.monotonic()
            return True
        finally:
            self._refreshing.release()


def utc_text(moment: dt.datetime) -> str:
    """A moment as the ledger writes it, so that texts compare as moments do."""
    return moment.astimezone(dt.UTC).isoformat(timespec="milliseconds")


def _judged(book: AccessBook, shown: PresentedCredentials, now: str) -> Caller | RejectionReason:
    """The caller of a call that shows something, at a moment.

    With a certificate and a token, both must be in force and of one analyst; the token then says
    what is open.
    """
    found: list[Credential] = []
    for find in (_by_certificate, _by_token):
        one = find(book, shown)
        if isinstance(one, RejectionReason):
            return one
        if one is not None:
            found.append(one)
    if any(credential.is_expired(now) for credential in found):
        return RejectionReason.EXPIRED
    names = {credential.payer.analyst for credential in found}
    if shown.analyst is not None:
        names.add(shown.analyst)
    if len(names) != 1:
        return RejectionReason.MISMATCH
    credential = found[-1]
    payer = book.payer(credential.payer.analyst)
    return Caller(payer, credential.role, credential.tables)


def _by_certificate(
    book: AccessBook, shown: PresentedCredentials
) -> Credential | RejectionReason | None:
    if shown.certificate is None:
        return None
    names = sorted(shown.certificate)
    found = [one for name in names if (one := book.shown(Proof.CERTIFICATE, name)) is not None]
    if len(found) > 1:
        return RejectionReason.AMBIGUOUS
    return found[0] if found else _never_or_no_more(book, Proof.CERTIFICATE, names)


def _by_token(book: AccessBook, shown: PresentedCredentials) -> Credential | RejectionReason | None:
    if shown.token_hash is None:
        return None
    found = book.shown(Proof.TOKEN, shown.token_hash)
    return found or _never_or_no_more(book, Proof.TOKEN, [shown.token_hash])


def _never_or_no_more(book: AccessBook, proof: Proof, shown_as: list[str]) -> RejectionReason:
    """Whether what is shown was in force once."""
    was_issued = any(
        credential.proof is proof and credential.shown_as in shown_as
        for credential in book.issued.values()
    )
    return RejectionReason.REVOKED if was_issued else RejectionReason.UNKNOWN
