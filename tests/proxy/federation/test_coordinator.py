"""A coordinator of two hospitals with real servers: what it asks, and what it does without one."""

import datetime as dt
import time
from collections.abc import Iterator
from contextlib import contextmanager
from fractions import Fraction
from pathlib import Path

import pytest

from accountant.auditor.verify import verify
from accountant.ledger.credentials import Role
from cube.refusals import (
    BudgetExhausted,
    ConfigurationInvalid,
    DataChanged,
    LimitReached,
    NotAllowed,
    NotAuthenticated,
    SourceUnavailable,
    UnknownName,
)
from proxy.admin.ledger_admin import open_configured
from proxy.admin.periods import generation, renew
from proxy.bootstrap import Service, build
from proxy.config.settings import load
from proxy.identity.issuing import Grant, issue_certificate
from proxy.wire.tls import TlsIdentity
from tests.support.certificates import LOOPBACK, Authority
from tests.support.configured import ask, spent
from tests.support.hospitals import COORDINATOR, COUNT, Hospital, columns, coordinates, hospitals
from tests.support.identities import soon

N_PATIENTS = 1200
BY_SEX = "SELECT sex, COUNT(*) AS n FROM patients GROUP BY sex ORDER BY sex"
# The noise of two holders' counts at half-width 60 is beyond this once in 10 million at most:
# each has the weight ln(20) / 60 at least, and a sum of two is beyond t if one is beyond t / 2.
SURE = 2 * 60 * 17.5 / 3.0


@contextmanager
def coordinating(folder: Path, text: str) -> Iterator[Service]:
    file = folder / "coordinator.toml"
    file.write_text(text)
    service = build(load(file))
    try:
        yield service
    finally:
        service.close()


def count(service: Service) -> float:
    return float(ask(service, COUNT)[0]["n"])


def test_holders_are_counted_together(both: list[Hospital], tmp_path: Path) -> None:
    with coordinating(tmp_path, coordinates(both)) as service:
        found = count(service)
        assert abs(found - N_PATIENTS) < SURE
        paid = [one.spent() for one in both]
        assert min(paid) > 0
        assert spent(service) == max(paid)  # nobody is in both
        assert count(service) == found
        assert [one.spent() for one in both] == paid
        by_sex = ask(service, BY_SEX)
        assert [row["sex"] for row in by_sex] == ["f", "m"]
        ledgers = [service.ledger, *(one.service.ledger for one in both)]
        for ledger in ledgers:
            assert verify(ledger.entries()).problem is None


def test_it_starts_without_a_holder_that_it_has_met(both: list[Hospital], tmp_path: Path) -> None:
    north, south = both
    text = coordinates(both)
    with coordinating(tmp_path, text) as service:
        known = count(service)
    south.stop()
    with coordinating(tmp_path, text) as service:
        assert count(service) == known
        with pytest.raises(SourceUnavailable, match="The holder south of patients"):
            ask(service, COUNT, half_width=20)
        paid = north.spent()
        south.start()
        assert soon(lambda: narrowed(service))
        assert north.spent() > paid or south.spent() > 0


def test_a_holder_that_is_back_is_reached_at_once(both: list[Hospital], tmp_path: Path) -> None:
    with coordinating(tmp_path, coordinates(both)) as service:
        count(service)
        both[1].stop()
        for _ in range(3):
            with pytest.raises(SourceUnavailable, match="south of patients cannot be reached"):
                ask(service, COUNT, half_width=20)
        both[1].start()
        assert narrowed(service)


def narrowed(service: Service) -> bool:
    try:
        return bool(abs(ask(service, COUNT, half_width=20)[0]["n"] - N_PATIENTS) < SURE)
    except SourceUnavailable:
        return False


def test_it_does_not_start_without_a_holder_that_it_has_not_met(
    both: list[Hospital], tmp_path: Path
) -> None:
    text = coordinates(both)
    both[1].stop()
    with (
        pytest.raises(ConfigurationInvalid, match="The holder south of patients cannot be reached"),
        coordinating(tmp_path, text),
    ):
        pass


DIFFERENT = {
    'sexes = ["f", "m", "x"]': "the levels \\(x is on one side only\\) of its column sex",
    "high = 5": "the values of high \\(5 here, 4 there\\) of its column ward",
    "age": "it has no column age",
}


@pytest.mark.parametrize("declared", DIFFERENT)
def test_both_sides_declare_the_same(north: Hospital, tmp_path: Path, declared: str) -> None:
    own = columns()
    if declared.startswith("sexes"):
        own = columns(sexes='["f", "m", "x"]')
    elif declared == "age":
        own += '[tables.patients.columns.age]\nkind = "integer"\nlow = 0\nhigh = 9\n'
    else:
        own = own.replace("high = 4", declared)
    text = coordinates([north], declared=own)
    with (
        pytest.raises(ConfigurationInvalid, match=f"north .* otherwise: {DIFFERENT[declared]}"),
        coordinating(tmp_path, text),
    ):
        pass


def test_a_holder_s_limit_is_told_with_its_numbers(both: list[Hospital], tmp_path: Path) -> None:
    both[1].limit("0.01")
    with coordinating(tmp_path, coordinates(both)) as service:
        with pytest.raises(LimitReached, match="patients at south") as refused:
            ask(service, COUNT, half_width=2)
        assert refused.value.shortfall.account == "analyst:coordinator"
        assert refused.value.shortfall.epsilon_left is not None
        assert spent(service) == both[0].spent() == both[1].spent() == 0


def test_a_holder_s_budget_is_told_with_its_numbers(tmp_path: Path) -> None:
    with (
        hospitals(tmp_path, columns(budget="0.01"), north=100) as found,
        coordinating(tmp_path, coordinates(found)) as service,
    ):
        with pytest.raises(BudgetExhausted, match="patients at north") as refused:
            ask(service, COUNT, half_width=2)
        left = refused.value.shortfall.epsilon_left
        assert left is not None
        assert Fraction(99, 10_000) < left <= Fraction(1, 100)
        assert spent(service) == 0


def test_a_token_is_read_anew(north: Hospital, tmp_path: Path) -> None:
    text = coordinates([north])
    with coordinating(tmp_path, text) as service:
        good = north.token_file.read_text()
        north.token_file.write_text("A" * 43)
        with pytest.raises(NotAuthenticated, match="The holder north of patients refused"):
            count(service)
        north.grant(table="elsewhere")
        with pytest.raises(UnknownName, match="The holder north of patients refused"):
            count(service)
        north.token_file.unlink()
        with pytest.raises(SourceUnavailable, match="token cannot be read"):
            count(service)
        assert spent(service) == 0
        north.token_file.write_text(good)
        assert abs(count(service) - 700) < SURE


def test_a_token_of_an_analyst_does_not_coordinate(north: Hospital, tmp_path: Path) -> None:
    text = coordinates([north])
    with coordinating(tmp_path, text) as service:
        north.grant(Role.ANALYST)
        with pytest.raises(NotAllowed, match="The role analyst may not call"):
            count(service)
        assert spent(service) == 0


def test_holders_are_reached_by_tls(tmp_path: Path) -> None:
    authority, strangers = Authority(), Authority("Strangers")
    served = authority.sign("north", alternatives=LOOPBACK)
    caller = authority.sign("coordinator.example", alternatives=())
    other = strangers.sign("coordinator.example", alternatives=())
    north = Hospital(tmp_path / "north", "north", 300)
    north.tls = TlsIdentity(served.certificate, served.key, authority.certificate)
    (tmp_path / "ca.pem").write_bytes(authority.certificate)
    (tmp_path / "strangers.pem").write_bytes(strangers.certificate)
    caller.written(tmp_path, "caller")
    other.written(tmp_path, "other")
    try:
        north.start()
        grant = Grant(analyst=COORDINATOR, role=Role.FEDERATION, tables=("patients",))
        issue_certificate(north.service.ledger, grant, "coordinator.example", by="a test")

        def options(ca: str, cert: str) -> str:
            return f', ca_file = "{ca}.pem", cert_file = "{cert}.pem", key_file = "{cert}.key"'

        for ca, cert in (("strangers", "caller"), ("ca", "other")):
            text = coordinates([north], options=options(ca, cert))
            with pytest.raises(ConfigurationInvalid, match="north"), coordinating(tmp_path, text):
                pass
        with coordinating(tmp_path, coordinates([north], options=options("ca", "caller"))) as it:
            assert abs(count(it) - 300) < SURE
    finally:
        north.stop()


def test_a_holder_renews_and_the_coordinator_follows(both: list[Hospital], tmp_path: Path) -> None:
    north = both[0]
    text = coordinates(both)
    with coordinating(tmp_path, text) as service:
        before = count(service)
        north.stop()
        north.admit(2000)
        settings = load(north.folder / "tacit.toml")
        with open_configured(settings.ledger) as ledger:
            renew(ledger, settings.tables, by="a test")
        north.start()
        assert count(service) == before  # what is known is about the earlier data
        with pytest.raises(SourceUnavailable, match="north"):
            ask(service, COUNT, half_width=20)
        with pytest.raises(DataChanged, match="A holder of patients has replaced its data"):
            build(load(tmp_path / "coordinator.toml"))
        own = load(tmp_path / "coordinator.toml")
        with open_configured(own.ledger) as ledger:
            assert not generation(ledger, own.tables[0])[1]
            renew(ledger, own.tables, by="a test")
            assert generation(ledger, own.tables[0])[1]
        service.ledger.refresh()
        service.renewing.look()
        assert abs(count(service) - 2500) < SURE


def test_a_holder_joins_and_another_leaves(tmp_path: Path) -> None:
    with hospitals(tmp_path, north=700, south=500, west=300) as (north, south, west):
        with coordinating(tmp_path, coordinates([north, south])) as service:
            before = count(service)
            assert abs(before - 1200) < SURE
        soon_over = dt.datetime.now(dt.UTC) + dt.timedelta(seconds=1)
        then = soon_over.isoformat(" ", "seconds")[:19]  # AS OF names seconds
        time.sleep(1.1)
        joined = coordinates([north, west])
        with pytest.raises(DataChanged), coordinating(tmp_path, joined):
            pass
        own = load(tmp_path / "coordinator.toml")
        with open_configured(own.ledger) as ledger:
            renew(ledger, own.tables, by="a test")
        with coordinating(tmp_path, joined) as service:
            assert abs(count(service) - 1000) < SURE
            paid = [one.spent() for one in (north, south, west)]
            ((earlier,),) = [row.values() for row in ask(service, f"{COUNT} AS OF '{then}'")]
            assert earlier == before
            assert [one.spent() for one in (north, south, west)] == paid
