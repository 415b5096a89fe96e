"""Limits and the audit report through the server: who sets and reads them, and what then holds."""

import json
from collections.abc import Iterator
from fractions import Fraction
from functools import partial
from pathlib import Path
from typing import NamedTuple

import grpc
import pytest
from hypothesis import given
from hypothesis import strategies as st

from accountant.gate.opening import open_table
from accountant.ledger.credentials import Role
from accountant.ledger.ledger import Ledger
from accountant.ledger.limits import Limit, Subject, SubjectKind, Window
from accountant.noise.lattice_noise import SystemNoise
from cube.refusals import InvalidRequest, Refused
from proxy.admin.ledger_admin import LimitChange, ServedLedgerAdmin
from proxy.engine.engine import Engine
from proxy.identity.authenticate import LedgerAuthenticator
from proxy.protocol import tacit_pb2
from proxy.protocol.tacit_pb2_grpc import TacitStub
from proxy.sources.duckdb_source import DuckDbSource
from proxy.sources.location import SourceLocation
from proxy.tables.private_table import ServedTable
from tests.support.engine_fake import CannedEngine
from tests.support.identities import bearer, credentials, refusal, token_for
from tests.support.serving import channel_to, serving
from tests.support.worlds import DEFAULT, SCHEMA, random_rows, write_csv

REPORT = bytes(range(256)) * 20_000  # in several pieces
ANN = Subject(SubjectKind.ANALYST, "ann")
EACH = Subject(SubjectKind.EACH_ANALYST)


class World(NamedTuple):
    ledger: Ledger
    stub: TacitStub

    def token(self, analyst: str, role: Role = Role.ANALYST, *tables: str) -> str:
        return token_for(self.ledger, analyst, *tables, role=role, groups=("sales",))

    def set(self, token: str, **change: object) -> tacit_pb2.LimitStatus:
        request = tacit_pb2.SetLimitRequest(table="people", **change)  # type: ignore[arg-type] # one field or another
        return self.stub.SetLimit(request, metadata=bearer(token)).limit

    def limits(self, token: str, table: str = "") -> dict[str, list[tacit_pb2.LimitStatus]]:
        request = tacit_pb2.ListLimitsRequest(table=table)
        reply = self.stub.ListLimits(request, metadata=bearer(token))
        return {one.table: list(one.limits) for one in reply.tables}

    def budget(self, token: str) -> tacit_pb2.Budget:
        reply = self.stub.GetBudget(tacit_pb2.GetBudgetRequest(), metadata=bearer(token))
        return reply.budgets[0]

    def ask(self, token: str, half_width: float) -> float:
        """Ask for a count as exactly as said; what it cost."""
        request = tacit_pb2.QueryRequest(
            sql="SELECT COUNT(*) AS n FROM people", target=tacit_pb2.Target(half_width=half_width)
        )
        replies = list(self.stub.Query(request, metadata=bearer(token)))
        return replies[-1].receipt.epsilon_spent


@pytest.fixture
def world(tmp_path: Path) -> Iterator[World]:
    source = DuckDbSource(
        SCHEMA, SourceLocation(path=write_csv(tmp_path / "people.csv", random_rows(200)))
    )
    with credentials(tmp_path) as ledger:
        gate = open_table(ledger, SCHEMA, Fraction(1), source, SystemNoise())
        engine = Engine({"people": ServedTable(SCHEMA, DEFAULT, gate)})

        def report(report_format: str) -> bytes:
            return json.dumps(report_format).encode() + REPORT

        admin = ServedLedgerAdmin(ledger, ["people"], report)
        with (
            serving(engine, authenticator=LedgerAuthenticator(ledger), admin=admin) as address,
            grpc.insecure_channel(address) as channel,
        ):
            yield World(ledger, TacitStub(channel))


def test_a_limit_that_is_set_holds_and_is_shown_to_whom_it_binds(world: World) -> None:
    owner, ann, bob = (
        world.token("owner", Role.OWNER),
        world.token("ann"),
        world.token("bob"),
    )
    shown = world.set(owner, subject="analyst:ann", epsilon="0.3", window="week", per_query="0.25")
    assert (shown.subject, shown.window) == ("analyst:ann", "week")
    assert (shown.epsilon_limit, shown.epsilon_spent, shown.epsilon_left) == (0.3, 0.0, 0.3)
    assert shown.per_query == 0.25
    assert "lifetime" in shown.note
    spent = world.ask(ann, 20.0)
    assert 0 < spent < 0.25
    (bound,) = world.budget(ann).limits
    assert bound.epsilon_spent == spent
    assert bound.epsilon_left == pytest.approx(0.3 - spent)
    assert list(world.budget(bob).limits) == []
    code, told = refusal(partial(world.ask, ann, 10.0))
    assert code is grpc.StatusCode.FAILED_PRECONDITION
    assert told.startswith("[limit_reached]")
    assert world.ask(bob, 10.0) > 0
    assert world.ask(ann, 10.0) == 0  # what another has paid for is free


def test_a_change_keeps_what_it_does_not_name(world: World) -> None:
    owner = world.token("owner", Role.OWNER)
    world.set(owner, subject="group:sales", epsilon="0.5", window="month")
    after = world.set(owner, subject="group:sales", per_query="0.1")
    assert (after.epsilon_limit, after.window, after.per_query) == (0.5, "month", 0.1)
    after = world.set(owner, subject="group:sales", clear=True, epsilon="0.25")
    assert (after.epsilon_limit, after.window) == (0.25, "never")
    assert not after.HasField("per_query")
    assert not after.note
    request = tacit_pb2.SetLimitRequest(table="people", subject="group:sales", clear=True)
    assert not world.stub.SetLimit(request, metadata=bearer(owner)).HasField("limit")
    assert world.limits(owner) == {"people": []}


def test_every_change_is_an_entry_that_says_who_made_it_and_no_change_is_none(
    world: World,
) -> None:
    owner = world.token("the owner", Role.OWNER)
    for _ in range(2):
        world.set(owner, subject="each_analyst", epsilon="0.1")
    (entry,) = (one for one in world.ledger.entries() if one.kind == "limit_set")
    assert json.loads(entry.body)["by"] == "the owner"


def test_owners_and_auditors_see_every_limit(world: World) -> None:
    owner, auditor = world.token("owner", Role.OWNER), world.token("eve", Role.AUDITOR)
    for subject in ("group:sales", "each_analyst", "analyst:ann"):
        world.set(owner, subject=subject, epsilon="0.5")
    for token in (owner, auditor):
        (found,) = world.limits(token).values()
        assert [one.subject for one in found] == ["analyst:ann", "each_analyst", "group:sales"]
        each = found[1]
        assert not each.HasField("epsilon_spent")
        assert not each.HasField("epsilon_left")
    bound = world.budget(world.token("bob")).limits
    assert [one.subject for one in bound] == ["each_analyst", "group:sales"]
    assert all(one.HasField("epsilon_left") for one in bound)


@pytest.mark.parametrize(
    "change",
    [
        {"subject": "ann", "epsilon": "1"},
        {"subject": "", "epsilon": "1"},
        {"subject": "analyst:", "epsilon": "1"},
        {"subject": "analyst:a\nb", "epsilon": "1"},
        {"subject": "analyst:a\x1b[31m", "epsilon": "1"},
        {"subject": "each_analyst:ann", "epsilon": "1"},
        {"subject": "table:x", "epsilon": "1"},
        {"subject": "analyst:ann", "epsilon": "-1"},
        {"subject": "analyst:ann", "epsilon": "inf"},
        {"subject": "analyst:ann", "epsilon": "1e999"},
        {"subject": "analyst:ann", "epsilon": ""},
        {"subject": "analyst:ann", "per_query": "lots"},
        {"subject": "analyst:ann", "epsilon": "1", "window": "fortnight"},
        {"subject": "analyst:ann", "window": "day"},
        {"subject": "analyst:ann"},
        {"subject": "analyst:" + "x" * 300, "epsilon": "1"},
    ],
    ids=str,
)
def test_a_change_that_makes_no_sense_changes_nothing(world: World, change: dict[str, str]) -> None:
    owner = world.token("owner", Role.OWNER)
    code, told = refusal(lambda: world.set(owner, **change))
    assert code is grpc.StatusCode.INVALID_ARGUMENT
    assert told.isprintable()
    assert world.limits(owner) == {"people": []}


@pytest.mark.parametrize(
    "name", ["'; DROP TABLE entries; --", '"x"', "<script>", "a:b", "{}", "%s"]
)
def test_any_printable_name_can_have_a_limit(world: World, name: str) -> None:
    owner, holder = world.token("owner", Role.OWNER), world.token(name)
    world.set(owner, subject=f"analyst:{name}", epsilon="0")
    code, told = refusal(partial(world.ask, holder, 20.0))
    assert (code, told[:15]) == (grpc.StatusCode.FAILED_PRECONDITION, "[limit_reached]")


def test_an_owner_of_other_tables_does_not_know_of_this_one(world: World) -> None:
    other = world.token("other", Role.OWNER, "elsewhere")
    expected = (
        grpc.StatusCode.NOT_FOUND,
        "[unknown_name] There is no table 'people'. No table is open to this credential.",
    )
    assert refusal(lambda: world.set(other, subject="analyst:ann", epsilon="1")) == expected
    assert refusal(lambda: world.limits(other, "people")) == expected
    assert world.limits(other) == {}


def test_the_report_comes_in_pieces_and_whole(world: World) -> None:
    for role in (Role.OWNER, Role.AUDITOR):
        metadata = bearer(world.token("one", role))
        for name in ("html", "json", "csv"):
            request = tacit_pb2.AuditReportRequest(format=name)
            replies = list(world.stub.AuditReport(request, metadata=metadata))
            assert len(replies) > 1
            found = b"".join(reply.chunk for reply in replies)
            assert found == json.dumps(name).encode() + REPORT


@pytest.mark.parametrize("name", ["", "pdf", "HTML", "html\n", "../json"])
def test_there_is_no_report_in_another_format(world: World, name: str) -> None:
    metadata = bearer(world.token("eve", Role.AUDITOR))
    request = tacit_pb2.AuditReportRequest(format=name)
    code, told = refusal(lambda: world.stub.AuditReport(request, metadata=metadata))
    assert code is grpc.StatusCode.INVALID_ARGUMENT
    assert told.isprintable()


def test_the_report_is_for_those_to_whom_every_table_is_open(world: World) -> None:
    metadata = bearer(world.token("eve", Role.AUDITOR, "people"))
    request = tacit_pb2.AuditReportRequest(format="json")
    code, _ = refusal(lambda: world.stub.AuditReport(request, metadata=metadata))
    assert code is grpc.StatusCode.PERMISSION_DENIED


def test_a_server_without_a_ledger_offers_none_of_this() -> None:
    with channel_to(CannedEngine()) as channel:
        stub = TacitStub(channel)
        for call in (
            lambda: stub.ListLimits(tacit_pb2.ListLimitsRequest()),
            lambda: stub.AuditReport(tacit_pb2.AuditReportRequest(format="json")),
        ):
            assert refusal(call)[0] is grpc.StatusCode.UNIMPLEMENTED


# A change, by itself.

AMOUNTS = st.none() | st.decimals(min_value=0, max_value=100, places=6).map(str)
CHANGES = st.builds(
    partial(LimitChange, subject="analyst:ann"),
    epsilon=AMOUNTS,
    per_query=AMOUNTS,
    window=st.none() | st.sampled_from([window.value for window in Window]),
    clear=st.booleans(),
)
LIMITS = st.builds(
    partial(Limit, ANN),
    epsilon=st.fractions(min_value=0, max_value=9),
    window=st.sampled_from(Window),
    per_query=st.none() | st.fractions(min_value=0, max_value=9),
)


@given(st.none() | LIMITS, CHANGES)
def test_after_a_change_each_part_is_what_was_named_or_what_was_there(
    before: Limit | None, change: LimitChange
) -> None:
    try:
        after = change.of(before)
    except Refused:
        return
    kept = Limit(ANN) if before is None or change.clear else before
    assert after.subject == ANN
    assert after.epsilon == (kept.epsilon if change.epsilon is None else Fraction(change.epsilon))
    assert after.window == (kept.window if change.window is None else Window(change.window))
    assert after.per_query == (
        kept.per_query if change.per_query is None else Fraction(change.per_query)
    )


def test_an_empty_limit_is_only_made_by_clearing() -> None:
    with pytest.raises(InvalidRequest):
        LimitChange(subject="each_analyst").of(None)
    assert LimitChange(subject="each_analyst", clear=True).of(Limit(EACH, Fraction(1))).is_empty
