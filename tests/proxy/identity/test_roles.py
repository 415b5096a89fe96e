"""Every method of a real server, without a credential and as each role."""

from functools import partial

import grpc
import pytest

from accountant.ledger.credentials import Role
from accountant.ledger.ledger import Ledger
from proxy.identity.roles import MAY_CALL, OPEN_SERVICES
from proxy.protocol import flight_pb2, tacit_pb2
from proxy.shared.tokens import new_token
from tests.support.engine_fake import CannedEngine
from tests.support.every_call import CALLS, Metadata
from tests.support.identities import (
    REFUSED,
    bearer,
    refusal,
    token_for,
)

UNAUTHENTICATED = grpc.StatusCode.UNAUTHENTICATED
DENIED = grpc.StatusCode.PERMISSION_DENIED


FEDERATION = {"DescribeHolder", "PriceForLedger", "MeasureForLedger"}
MAY: dict[Role, set[str]] = {
    Role.AUDITOR: {
        "ListTables",
        "ListSynthetic",
        "ListCollections",
        "PlanCollection",
        "PlanRobustness",
        "GetBudget",
        "ListLimits",
        "AuditReport",
        "Handshake",
    },
    Role.ANALYST: CALLS.keys()
    - FEDERATION
    - {"SetLimit", "ListLimits", "AuditReport"}
    - {"CreateCollection", "InviteRespondents", "CloseCollection", "Observe"},
    Role.OWNER: set(CALLS),
    Role.FEDERATION: FEDERATION,
    Role.COLLECTOR: {"Observe", "DoPut", "Handshake"},
}


def test_the_calls_above_are_all_there_are() -> None:
    services = (
        tacit_pb2.DESCRIPTOR.services_by_name["Tacit"],
        tacit_pb2.DESCRIPTOR.services_by_name["Federation"],
        flight_pb2.DESCRIPTOR.services_by_name["FlightService"],
    )
    methods = {f"/{one.full_name}/{method.name}" for one in services for method in one.methods}
    assert MAY_CALL.keys() == methods
    assert CALLS.keys() == {method.rpartition("/")[2] for method in methods}
    assert not any(method.startswith(OPEN_SERVICES) for method in methods)
    answering = tacit_pb2.DESCRIPTOR.services_by_name["Respondents"]
    assert {one.name for one in answering.methods} == {"GetAssignment", "SubmitAnswer"}
    assert f"/{answering.full_name}/" in OPEN_SERVICES


@pytest.mark.parametrize("method", CALLS)
def test_a_call_without_a_credential_is_refused_before_it_is_read(
    channel: grpc.Channel, engine: CannedEngine, method: str
) -> None:
    strangers: tuple[Metadata, ...] = (
        None,
        bearer(new_token()),
        (("authorization", "Bearer x"),),
    )
    told = {refusal(partial(CALLS[method], channel, metadata)) for metadata in strangers}
    assert told == {(UNAUTHENTICATED, REFUSED)}
    assert not engine.calls


@pytest.mark.parametrize("role", Role)
@pytest.mark.parametrize("method", CALLS)
def test_a_role_is_what_it_may_call(
    channel: grpc.Channel, ledger: Ledger, engine: CannedEngine, method: str, role: Role
) -> None:
    metadata = bearer(token_for(ledger, role=role))
    try:
        CALLS[method](channel, metadata)
        code = grpc.StatusCode.OK
    except grpc.RpcError as error:
        code = error.code()
    assert (code is not DENIED) == (method in MAY[role])
    assert code is not UNAUTHENTICATED
    if method not in MAY[role]:
        told = (
            f"[not_allowed] The role {role} may not call {method}. "
            "Ask the server's owner for a credential with another role."
        )
        assert refusal(lambda: CALLS[method](channel, metadata)) == (DENIED, told)
        assert not engine.calls
