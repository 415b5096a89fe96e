"""Who a credential is, and the ways in which it is nobody's, on a real ledger."""

import datetime as dt
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path

import pytest

from accountant.ledger.credentials import EVERY_TABLE, Role
from accountant.ledger.ledger import Ledger
from accountant.ledger.limits import Payer
from accountant.ledger.opening import open_ledger
from cube.refusals import InvalidRequest, LedgerUnavailable
from proxy.api.requests import Caller
from proxy.identity import authenticate as access_module
from proxy.identity.authenticate import (
    ANONYMOUS,
    LedgerAuthenticator,
    RejectionReason,
    SteadyTime,
    utc_text,
)
from proxy.identity.issuing import Grant, expiry, issue_certificate, issue_token, revoke
from proxy.identity.presented import PresentedCredentials
from proxy.shared.tokens import new_token, token_hash

BY = "a test"
ANN = Grant(analyst="ann", groups=("sales", "east"), tables=("people",))
BOB = Grant(analyst="bob", role=Role.OWNER, tables=(EVERY_TABLE,))
ANN_CALLS = Caller(Payer("ann", ("east", "sales")), Role.ANALYST, ("people",))
BOB_CALLS = Caller(Payer("bob"), Role.OWNER, (EVERY_TABLE,))


@pytest.fixture
def ledger(tmp_path: Path) -> Iterator[Ledger]:
    with open_ledger(tmp_path / "a.ledger") as opened:
        yield opened


@pytest.fixture
def authenticator(ledger: Ledger) -> LedgerAuthenticator:
    return LedgerAuthenticator(ledger)


def by_token(token: str, name: str | None = None, *certificate: str) -> PresentedCredentials:
    return PresentedCredentials(
        token_hash(token), name, frozenset(certificate) if certificate else None
    )


def by_certificate(*names: str) -> PresentedCredentials:
    return PresentedCredentials(certificate=frozenset(names))


def test_a_token_says_who_calls_and_what_is_open(
    ledger: Ledger, authenticator: LedgerAuthenticator
) -> None:
    _, token = issue_token(ledger, ANN, by=BY)
    _, other = issue_token(ledger, BOB, by=BY)
    assert authenticator.identify(by_token(token)) == ANN_CALLS
    assert authenticator.identify(by_token(other)) == BOB_CALLS
    assert authenticator.identify(by_token(token, "ann")) == ANN_CALLS


def test_an_analyst_is_of_the_groups_of_all_his_credentials(
    ledger: Ledger, authenticator: LedgerAuthenticator
) -> None:
    """Or a group's limit would bind only who comes in with the right one."""
    grouped, _ = issue_token(ledger, ANN, by=BY)
    _, plain = issue_token(ledger, Grant(analyst="ann", tables=("people",)), by=BY)
    assert authenticator.identify(by_token(plain)) == ANN_CALLS
    revoke(ledger, grouped.id, by=BY)
    assert authenticator.identify(by_token(plain)) == Caller(
        Payer("ann"), Role.ANALYST, ("people",)
    )


def test_a_certificate_says_so_too(ledger: Ledger, authenticator: LedgerAuthenticator) -> None:
    issue_certificate(ledger, ANN, "ann@example.org", by=BY)
    assert authenticator.identify(by_certificate("x.example", "ann@example.org")) == ANN_CALLS
    assert authenticator.identify(by_certificate("x.example")) is RejectionReason.UNKNOWN
    assert authenticator.identify(by_certificate()) is RejectionReason.UNKNOWN


def test_a_name_that_a_token_does_not_go_with_is_nobody(
    ledger: Ledger, authenticator: LedgerAuthenticator
) -> None:
    _, token = issue_token(ledger, ANN, by=BY)
    for name in ("bob", "Ann", "", "ann "):
        assert authenticator.identify(by_token(token, name)) is RejectionReason.MISMATCH


def test_a_token_and_a_certificate_are_of_one_analyst_or_of_nobody(
    ledger: Ledger, authenticator: LedgerAuthenticator
) -> None:
    _, anns = issue_token(ledger, ANN, by=BY)
    _, bobs = issue_token(ledger, BOB, by=BY)
    narrow = Grant(analyst="ann", tables=("other",))
    issue_certificate(ledger, narrow, "ann", by=BY)
    assert (
        authenticator.identify(by_token(anns, None, "ann")) == ANN_CALLS
    )  # the token says what is open
    assert authenticator.identify(by_token(bobs, None, "ann")) is RejectionReason.MISMATCH
    assert authenticator.identify(by_token(anns, None, "nobody")) is RejectionReason.UNKNOWN
    assert authenticator.identify(by_token(new_token(), None, "ann")) is RejectionReason.UNKNOWN


def test_a_certificate_with_the_names_of_two_is_of_nobody(
    ledger: Ledger, authenticator: LedgerAuthenticator
) -> None:
    issue_certificate(ledger, ANN, "ann", by=BY)
    issue_certificate(ledger, BOB, "bob", by=BY)
    assert authenticator.identify(by_certificate("ann", "bob")) is RejectionReason.AMBIGUOUS


def test_what_is_revoked_or_over_is_nobodys(
    ledger: Ledger, authenticator: LedgerAuthenticator
) -> None:
    credential, token = issue_token(ledger, ANN, by=BY)
    revoke(ledger, credential.id, by=BY)
    assert authenticator.identify(by_token(token)) is RejectionReason.REVOKED
    over = Grant(analyst="ann", tables=("people",), expires="2020-01-01T00:00:00.000+00:00")
    _, late = issue_token(ledger, over, by=BY)
    assert authenticator.identify(by_token(late)) is RejectionReason.EXPIRED
    certificate = issue_certificate(ledger, over, "ann", by=BY)
    assert authenticator.identify(by_certificate("ann")) is RejectionReason.EXPIRED
    revoke(ledger, certificate.id, by=BY)
    issue_certificate(ledger, ANN, "ann", by=BY)
    assert authenticator.identify(by_certificate("ann")) == ANN_CALLS


def test_who_was_let_in_is_not_once_the_credential_is_revoked(
    ledger: Ledger, authenticator: LedgerAuthenticator, tmp_path: Path
) -> None:
    """A caller is known again, but only as long as the ledger says what it said."""
    credential, token = issue_token(ledger, ANN, by=BY)
    certificate = issue_certificate(ledger, ANN, "ann", by=BY)
    both = by_token(token, None, "ann")
    assert authenticator.identify(both) == ANN_CALLS
    assert authenticator.identify(both) is authenticator.identify(both)
    revoke(ledger, certificate.id, by=BY)
    assert authenticator.identify(both) is RejectionReason.REVOKED
    assert authenticator.identify(by_token(token)) == ANN_CALLS
    with open_ledger(tmp_path / "a.ledger") as elsewhere:
        revoke(elsewhere, credential.id, by=BY)
    ledger.refresh()
    assert authenticator.identify(by_token(token)) is RejectionReason.REVOKED


def test_a_credential_that_is_over_makes_a_good_one_beside_it_worthless(
    ledger: Ledger, authenticator: LedgerAuthenticator
) -> None:
    _, token = issue_token(ledger, ANN, by=BY)
    over = Grant(analyst="ann", tables=("people",), expires="2020-01-01T00:00:00.000+00:00")
    issue_certificate(ledger, over, "ann", by=BY)
    assert authenticator.identify(by_token(token, None, "ann")) is RejectionReason.EXPIRED


def test_nobody_is_anonymous_unless_that_is_allowed_and_nothing_is_shown(ledger: Ledger) -> None:
    assert LedgerAuthenticator(ledger).identify(PresentedCredentials()) is RejectionReason.MISSING
    allowing = LedgerAuthenticator(ledger, allow_anonymous=True)
    assert allowing.identify(PresentedCredentials()) is ANONYMOUS
    assert ANONYMOUS.role is Role.ANALYST
    assert allowing.identify(by_token(new_token())) is RejectionReason.UNKNOWN
    assert allowing.identify(by_certificate("ann")) is RejectionReason.UNKNOWN


def test_what_another_process_issues_is_found_when_it_is_shown(
    tmp_path: Path, ledger: Ledger, authenticator: LedgerAuthenticator
) -> None:
    with open_ledger(tmp_path / "a.ledger") as other:
        _, token = issue_token(other, ANN, by=BY)
    assert authenticator.identify(by_token(token)) == ANN_CALLS
    assert ledger.access.issued


class Clocks:
    """A clock that is set, and one that only counts."""

    def __init__(self) -> None:
        self.moment = dt.datetime(2026, 11, 1, tzinfo=dt.UTC)
        self.seconds = 0.0

    def steady(self) -> SteadyTime:
        return SteadyTime(lambda: self.moment, lambda: self.seconds)

    def wait(self, days: float) -> None:
        self.moment += dt.timedelta(days=days)
        self.seconds += days * 86_400


def test_a_clock_that_is_set_back_revives_no_token(ledger: Ledger) -> None:
    clocks = Clocks()
    ledger._clock = lambda: utc_text(clocks.moment)
    authenticator = LedgerAuthenticator(ledger, steady=clocks.steady())
    _, token = issue_token(ledger, replace(ANN, expires="2026-11-10T00:00:00.000+00:00"), by=BY)
    assert authenticator.identify(by_token(token)) == ANN_CALLS
    clocks.wait(days=9.5)
    assert authenticator.identify(by_token(token)) is RejectionReason.EXPIRED
    clocks.moment -= dt.timedelta(days=5)
    assert authenticator.identify(by_token(token)) is RejectionReason.EXPIRED, (
        "this process saw the time pass"
    )
    clocks.moment += dt.timedelta(days=5)
    issue_token(ledger, BOB, by=BY)
    clocks.moment -= dt.timedelta(days=5)
    restarted = LedgerAuthenticator(ledger, steady=clocks.steady())
    assert restarted.identify(by_token(token)) is RejectionReason.EXPIRED, (
        "the ledger has seen a later time"
    )


def test_a_clock_that_was_ahead_for_a_moment_shuts_nobody_out_after_it(ledger: Ledger) -> None:
    clocks = Clocks()
    ledger._clock = lambda: utc_text(clocks.moment)
    authenticator = LedgerAuthenticator(ledger, steady=clocks.steady())
    _, token = issue_token(ledger, replace(ANN, expires="2026-11-10T00:00:00.000+00:00"), by=BY)
    right, clocks.moment = clocks.moment, clocks.moment + dt.timedelta(days=26_000)
    assert authenticator.identify(by_token(token)) is RejectionReason.EXPIRED
    clocks.moment = right
    assert authenticator.identify(by_token(token)) == ANN_CALLS


class Counting:
    """A ledger that counts how often it is read again, and may not be readable."""

    def __init__(self, ledger: Ledger, *, is_broken: bool = False) -> None:
        self.access = ledger.access
        self.last_at = ledger.last_at
        self.key = ledger.key
        self.n_refreshed = 0
        self._is_broken = is_broken

    def refresh(self) -> None:
        self.n_refreshed += 1
        if self._is_broken:
            raise LedgerUnavailable("It is away.")


def test_strangers_make_the_ledger_be_read_once_a_second_at_most(ledger: Ledger) -> None:
    counting = Counting(ledger)
    authenticator = LedgerAuthenticator(counting)
    for _ in range(100):
        assert authenticator.identify(by_token(new_token())) is RejectionReason.UNKNOWN
    assert 1 <= counting.n_refreshed <= 100 * access_module.REFRESH_SECONDS


def test_a_ledger_that_cannot_be_read_lets_in_whom_it_knew_and_nobody_else(ledger: Ledger) -> None:
    _, token = issue_token(ledger, ANN, by=BY)
    authenticator = LedgerAuthenticator(Counting(ledger, is_broken=True))
    assert authenticator.identify(by_token(token)) == ANN_CALLS
    assert authenticator.identify(by_token(new_token())) is RejectionReason.UNKNOWN


# Issuing.


def test_the_ledger_keeps_the_hash_and_not_the_token(ledger: Ledger) -> None:
    credential, token = issue_token(ledger, ANN, by=BY)
    told = " ".join(f"{entry.table} {entry.body}" for entry in ledger.entries())
    assert token_hash(token) in told
    assert token[6:] not in told
    assert credential.id in told


@pytest.mark.parametrize(
    "name", ["", " ann", "ann\n", "a\x1b[31m", "a\u202eb", "x" * 201, "ann\0", "a\tb"]
)
def test_a_name_that_would_not_fit_on_a_line_is_refused(ledger: Ledger, name: str) -> None:
    for grant in (
        Grant(analyst=name, tables=("people",)),
        Grant(analyst="ann", groups=(name,), tables=("people",)),
    ):
        with pytest.raises(InvalidRequest):
            issue_token(ledger, grant, by=BY)
    if len(name) < 200:
        with pytest.raises(InvalidRequest):
            issue_certificate(ledger, ANN, name, by=BY)
    assert not ledger.access.issued


@pytest.mark.parametrize("name", ["'; DROP TABLE entries; --", '"ann"', "<script>", "{}", "ann:b"])
def test_any_other_name_is_a_name(
    ledger: Ledger, authenticator: LedgerAuthenticator, name: str
) -> None:
    grant = Grant(analyst=name, groups=(name,), tables=(name,))
    _, token = issue_token(ledger, grant, by=BY)
    assert authenticator.identify(by_token(token)) == Caller(
        Payer(name, (name,)), Role.ANALYST, (name,)
    )


def test_a_credential_opens_a_table_at_least(ledger: Ledger) -> None:
    with pytest.raises(InvalidRequest, match="no table"):
        issue_token(ledger, Grant(analyst="ann"), by=BY)


def test_one_certificate_is_one_credential_at_a_time(ledger: Ledger) -> None:
    first = issue_certificate(ledger, ANN, "ann", by=BY)
    with pytest.raises(InvalidRequest, match="There is already a credential for certificates"):
        issue_certificate(ledger, BOB, "ann", by=BY)
    revoke(ledger, first.id, by=BY)
    issue_certificate(ledger, BOB, "ann", by=BY)


@pytest.mark.parametrize("credential_id", ["nothing", "", "'; --"])
def test_only_what_is_in_force_is_revoked(ledger: Ledger, credential_id: str) -> None:
    with pytest.raises(InvalidRequest, match="is in force"):
        revoke(ledger, credential_id, by=BY)
    credential, _ = issue_token(ledger, ANN, by=BY)
    revoke(ledger, credential.id, by=BY)
    with pytest.raises(InvalidRequest, match="is in force"):
        revoke(ledger, credential.id, by=BY)


def test_an_end_is_a_number_of_days_or_a_moment_to_come() -> None:
    now = dt.datetime(2026, 1, 1, 12, tzinfo=dt.UTC)
    for text, ends in (
        ("90d", "2026-04-01T12:00:00.000+00:00"),
        ("2026-06-01", "2026-06-01T00:00:00.000+00:00"),
        ("2026-06-01T08:00:00+02:00", "2026-06-01T06:00:00.000+00:00"),
    ):
        assert expiry(text, lambda: now) == ends


@pytest.mark.parametrize("text", ["", "d", "0d", "-1d", "1.5d", "99999d", "soon", "2020-01-01"])
def test_anything_else_is_no_end(text: str) -> None:
    with pytest.raises(InvalidRequest):
        expiry(text)
