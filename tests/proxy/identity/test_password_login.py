"""Logins by a name and a token that is not sent, on a real ledger: whose they are, and nobody's."""

import datetime as dt
from collections import Counter
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from accountant.ledger.credentials import Role
from accountant.ledger.ledger import Ledger
from accountant.ledger.limits import Payer
from accountant.ledger.opening import open_ledger
from cube.refusals import NotAuthenticated
from proxy.api.requests import Caller
from proxy.identity import scram
from proxy.identity.authenticate import N_TRIED_MIN, LedgerAuthenticator, SteadyTime
from proxy.identity.issuing import Grant, expiry, issue_certificate, issue_token, revoke
from proxy.identity.presented import PresentedCredentials
from proxy.identity.verifiers import Verifier, opened_verifier
from proxy.shared.tokens import new_token, token_hash
from tests.support.scram_client import ScramClient, logged_in

BY = "a test"
ANN = Grant(analyst="ann", tables=("people",))
START = dt.datetime(2026, 11, 23, 12, tzinfo=dt.UTC)


@pytest.fixture
def ledger(tmp_path: Path) -> Iterator[Ledger]:
    with open_ledger(tmp_path / "a.ledger") as opened:
        yield opened


def proved(authenticator: LedgerAuthenticator, user: str, token: str) -> str | None:
    """The hash of the token that a login showed; None if it failed."""
    login = authenticator.by_password(user, None)
    try:
        assert logged_in(login, ScramClient(token))
    except NotAuthenticated:
        return None
    return login.token_hash


def test_each_token_of_an_analyst_is_their_password(ledger: Ledger) -> None:
    authenticator = LedgerAuthenticator(ledger)
    for _ in range(3):
        _, token = issue_token(ledger, ANN, by=BY)
        assert proved(authenticator, "ann", token) == token_hash(token)
        shown = PresentedCredentials(token_hash(token), "ann")
        assert authenticator.identify(shown) == Caller(Payer("ann"), ANN.role, ("people",))


def test_a_name_and_a_token_go_together(ledger: Ledger) -> None:
    authenticator = LedgerAuthenticator(ledger)
    _, anns = issue_token(ledger, ANN, by=BY)
    _, bobs = issue_token(ledger, Grant(analyst="bob", tables=("people",)), by=BY)
    assert proved(authenticator, "bob", anns) is None
    assert proved(authenticator, "ann", bobs) is None
    assert proved(authenticator, "Ann", anns) is None
    assert proved(authenticator, "nobody", new_token()) is None


def test_a_token_that_is_no_password_still_serves_the_other_wire(ledger: Ledger) -> None:
    authenticator = LedgerAuthenticator(ledger)
    flight_only = Grant(analyst="ann", tables=("people",), on_postgres=False)
    _, token = issue_token(ledger, flight_only, by=BY)
    assert proved(authenticator, "ann", token) is None
    assert isinstance(authenticator.identify(PresentedCredentials(token_hash(token))), Caller)


def test_a_revoked_token_is_no_password(ledger: Ledger) -> None:
    authenticator = LedgerAuthenticator(ledger)
    credential, token = issue_token(ledger, ANN, by=BY)
    _, other = issue_token(ledger, ANN, by=BY)
    revoke(ledger, credential.id, by=BY)
    assert proved(authenticator, "ann", token) is None
    assert proved(authenticator, "ann", other) == token_hash(other)


def test_an_expired_token_is_no_password(ledger: Ledger) -> None:
    now = [START]
    steady = SteadyTime(lambda: now[0], lambda: 0.0)
    authenticator = LedgerAuthenticator(ledger, steady=steady)
    ends = expiry("2030-01-01", lambda: START)
    _, token = issue_token(ledger, Grant(analyst="ann", tables=("people",), expires=ends), by=BY)
    assert proved(authenticator, "ann", token) == token_hash(token)
    now[0] = dt.datetime(2030, 1, 1, tzinfo=dt.UTC)
    assert proved(authenticator, "ann", token) is None


def test_a_token_of_another_process_is_found_at_once(tmp_path: Path) -> None:
    with open_ledger(tmp_path / "a.ledger") as served:
        authenticator = LedgerAuthenticator(served)
        with open_ledger(tmp_path / "a.ledger") as beside:
            _, token = issue_token(beside, ANN, by=BY)
        assert proved(authenticator, "ann", token) == token_hash(token)


def test_passwords_survive_the_ledger_being_opened_again(tmp_path: Path) -> None:
    with open_ledger(tmp_path / "a.ledger") as first:
        _, token = issue_token(first, ANN, by=BY)
        issued = first.access
    with open_ledger(tmp_path / "a.ledger") as again:
        assert again.access.issued == issued.issued
        assert proved(LedgerAuthenticator(again), "ann", token) == token_hash(token)


@pytest.mark.parametrize("n_tokens", [0, 1, N_TRIED_MIN, N_TRIED_MIN + 1])
def test_nobody_is_as_much_work_as_somebody(
    ledger: Ledger, n_tokens: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    work: list[str] = []
    fits = scram._fits

    def opening(*given: Any) -> Verifier:
        work.append("open")
        return opened_verifier(*given)

    def trying(*given: Any) -> bool:
        work.append("try")
        return fits(*given)

    monkeypatch.setattr("proxy.identity.authenticate.opened_verifier", opening)
    monkeypatch.setattr(scram, "_fits", trying)
    for _ in range(n_tokens):
        issue_token(ledger, ANN, by=BY)
    authenticator = LedgerAuthenticator(ledger)
    authenticator.identify(PresentedCredentials("unknown"))  # reads the ledger; not so soon again
    assert proved(authenticator, "ann", new_token()) is None
    n_tried = max(N_TRIED_MIN, n_tokens)
    assert Counter(work) == {"open": n_tried, "try": n_tried}


def test_what_the_ledger_holds_opens_with_its_key_alone(ledger: Ledger) -> None:
    _, token = issue_token(ledger, ANN, by=BY)

    class OtherKey:
        """The same entries, on a machine without their key."""

        access, last_at, key = ledger.access, ledger.last_at, bytes(32)

        def refresh(self) -> None: ...

    assert proved(LedgerAuthenticator(ledger), "ann", token) == token_hash(token)
    assert proved(LedgerAuthenticator(OtherKey()), "ann", token) is None


def test_auditors_have_no_password(ledger: Ledger) -> None:
    """They may not query, and there is nothing else to do on this wire."""
    auditor = Grant(analyst="eve", role=Role.AUDITOR, tables=("*",))
    credential, _ = issue_token(ledger, auditor, by=BY)
    assert credential.verifier is None


def test_a_certificate_is_no_password(ledger: Ledger) -> None:
    assert issue_certificate(ledger, ANN, "ann@example.org", by=BY).verifier is None
    assert ledger.access.with_verifiers("ann") == ()


def test_without_credentials_anybody_is_anonymous_but_who_has_a_token(ledger: Ledger) -> None:
    credential, _ = issue_token(ledger, ANN, by=BY)
    strict, lax = LedgerAuthenticator(ledger), LedgerAuthenticator(ledger, allow_anonymous=True)
    assert not strict.needs_no_password("nobody")
    assert lax.needs_no_password("nobody")
    assert not lax.needs_no_password("ann")
    revoke(ledger, credential.id, by=BY)
    assert lax.needs_no_password("ann")
