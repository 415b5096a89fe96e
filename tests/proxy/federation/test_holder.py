"""A holder's server: what another ledger may have of its table, and what it may not."""

import json
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from fractions import Fraction
from pathlib import Path
from typing import Any

import grpc
import pytest

from accountant.auditor.verify import verify
from accountant.gate import Asked, Told
from accountant.gate.asked import AskedRows
from accountant.ledger import ChargedBlock
from accountant.ledger.credentials import Role
from accountant.noise import LatticeNoise
from cube.measurement import Weight
from cube.query import QueryBlock, counting
from proxy.federation.feature import N_CALLS_OF_ONE_MAX
from proxy.protocol import tacit_pb2
from proxy.protocol.tacit_pb2_grpc import FederationStub
from tests.support.hospitals import Hospital, columns, hospitals
from tests.support.identities import bearer, refusal

WEIGHT = Weight.at_least(Fraction(1, 2))
OTHER = Weight.at_least(Fraction(1, 4))
NO_SUCH = "There is no table"


@pytest.fixture
def stub(north: Hospital) -> Iterator[FederationStub]:
    with north.channel() as channel:
        yield FederationStub(channel)


def shown(north: Hospital) -> tuple[tuple[str, str], ...]:
    return bearer(north.token_file.read_text().strip())


def state(north: Hospital) -> str:
    ledger = north.service.ledger
    number = ledger.history("patients").generations.number
    return f"{next(ledger.entries()).digest[:16]}:{number}"


def request(
    generation: str, reference: str = "r1", weight: Weight = WEIGHT
) -> tacit_pb2.ForLedgerRequest:
    """For the number of patients."""
    block = ChargedBlock(QueryBlock(counting(), None), LatticeNoise.for_weight(weight))
    asked = Asked(reference, generation, (AskedRows(block),))
    return tacit_pb2.ForLedgerRequest(table="patients", asked=asked.text)


def measured(stub: FederationStub, north: Hospital, **given: Any) -> Told:
    reply = stub.MeasureForLedger(request(state(north), **given), metadata=shown(north))
    return Told.read(reply.told)


def test_a_request_is_charged_once_and_told_again(north: Hospital, stub: FederationStub) -> None:
    described = stub.DescribeHolder(
        tacit_pb2.DescribeHolderRequest(table="patients"), metadata=shown(north)
    )
    assert described.state == state(north)
    assert described.epsilon_left == "10"
    price = stub.PriceForLedger(request(described.state), metadata=shown(north))
    assert price.epsilon == "0.5"
    assert north.spent() == 0
    first = measured(stub, north)
    assert north.spent() == Fraction(1, 2)
    assert measured(stub, north) == first
    assert north.spent() == Fraction(1, 2)
    other = measured(stub, north, reference="r2")
    assert north.spent() == 1
    assert other.values != first.values  # but once in 2**20: noise that is drawn anew
    assert verify(north.service.ledger.entries(), has_columns=True).problem is None


def test_many_threads_are_charged_once_for_one_request(
    north: Hospital, stub: FederationStub
) -> None:
    with ThreadPoolExecutor(N_CALLS_OF_ONE_MAX) as pool:
        asked = [pool.submit(measured, stub, north) for _ in range(2 * N_CALLS_OF_ONE_MAX // 3)]
        told = {one.result() for one in asked}
    assert len({one.values for one in told}) == 1
    assert north.spent() == Fraction(1, 2)


def test_what_was_told_is_told_after_a_restart(north: Hospital) -> None:
    with north.channel() as channel:
        first = measured(FederationStub(channel), north)
    north.stop()
    north.start()
    with north.channel() as channel:
        again = measured(FederationStub(channel), north)
    assert (again.values, again.entry) == (first.values, first.entry)
    assert north.spent() == Fraction(1, 2)


def test_a_name_is_of_one_request(north: Hospital, stub: FederationStub) -> None:
    measured(stub, north)
    code, told = refusal(lambda: measured(stub, north, weight=OTHER))
    assert code is grpc.StatusCode.INVALID_ARGUMENT
    assert "Something else was asked for" in told
    assert north.spent() == Fraction(1, 2)


def test_a_token_opens_its_own_tables(north: Hospital, stub: FederationStub) -> None:
    north.grant(table="elsewhere")
    every: tuple[Callable[[], object], ...] = (
        lambda: measured(stub, north),
        lambda: stub.PriceForLedger(request(state(north)), metadata=shown(north)),
        lambda: stub.DescribeHolder(
            tacit_pb2.DescribeHolderRequest(table="patients"), metadata=shown(north)
        ),
    )
    for call in every:
        code, told = refusal(call)
        assert code is grpc.StatusCode.NOT_FOUND
        assert NO_SUCH in told
    assert north.spent() == 0


@pytest.mark.parametrize("role", [Role.ANALYST, Role.AUDITOR, Role.COLLECTOR])
def test_other_roles_buy_nothing_here(north: Hospital, stub: FederationStub, role: Role) -> None:
    north.grant(role)
    assert refusal(lambda: measured(stub, north))[0] is grpc.StatusCode.PERMISSION_DENIED
    assert north.spent() == 0


def test_a_limit_on_the_token_holds(north: Hospital, stub: FederationStub) -> None:
    north.limit("0.7")
    measured(stub, north)
    for call in (stub.PriceForLedger, stub.MeasureForLedger):
        asked = request(state(north), "r2")
        code, told = refusal(lambda: call(asked, metadata=shown(north)))  # noqa: B023 - called here
        assert code is grpc.StatusCode.FAILED_PRECONDITION
        assert "analyst:coordinator" in told
    assert measured(stub, north).units == 2**39  # what was paid for is told all the same
    assert north.spent() == Fraction(1, 2)


@pytest.mark.parametrize("wrong", ["", "0123456789abcdef:1", "other"])
def test_a_request_on_other_data_is_not_charged(
    north: Hospital, stub: FederationStub, wrong: str
) -> None:
    for call in (stub.PriceForLedger, stub.MeasureForLedger):
        code, told = refusal(lambda: call(request(wrong), metadata=shown(north)))  # noqa: B023 - called here
        assert code is grpc.StatusCode.UNAVAILABLE
        assert "was replaced" in told
    assert north.spent() == 0


def damaged(generation: str) -> Iterator[str]:
    good = json.loads(request(generation).asked)
    yield ""
    yield "[" * 100_000
    yield json.dumps({**good, "rows": []})
    yield json.dumps({**good, "reference": ""})
    yield json.dumps({**good, "reference": "r" * 1000})
    yield json.dumps({**good, "statistics": [0] * 2**13})
    (row,) = good["rows"]
    huge = {"axes": ["ward"], "shape": [2**22], "runs": [2**22, 1]}
    terms = [{"scale": "1", "factors": [{**huge, "runs": [2**22, value]}]} for value in range(20)]
    yield json.dumps({**good, "rows": [{**row, "block": {"constant": "0", "terms": terms}}]})
    yield json.dumps({**good, "rows": [{**row, "raises": ["r0", 0]}]})
    yield json.dumps({**good, "rows": [{**row, "raised_from": 0}]})


def test_what_is_no_request_is_refused(north: Hospital, stub: FederationStub) -> None:
    for text in damaged(state(north)):
        asked = tacit_pb2.ForLedgerRequest(table="patients", asked=text)
        for call in (stub.PriceForLedger, stub.MeasureForLedger):
            code, told = refusal(lambda: call(asked, metadata=shown(north)))  # noqa: B023 - called here
            assert code is grpc.StatusCode.INVALID_ARGUMENT, text[:200]
            assert "[invalid_request]" in told
    assert north.spent() == 0


CANNOT_BE_HELD = {
    "has a private history": 'history = "private"',
}


@pytest.mark.parametrize("what", CANNOT_BE_HELD)
def test_some_tables_are_not_held(tmp_path: Path, what: str) -> None:
    declared = columns(more=CANNOT_BE_HELD[what])
    with hospitals(tmp_path, declared, north=20) as (north,), north.channel() as channel:
        stub = FederationStub(channel)
        asked = tacit_pb2.DescribeHolderRequest(table="patients")
        code, told = refusal(lambda: stub.DescribeHolder(asked, metadata=shown(north)))
        assert code is grpc.StatusCode.INVALID_ARGUMENT
        assert what in told
        assert refusal(lambda: measured(stub, north))[0] is grpc.StatusCode.INVALID_ARGUMENT
        assert north.spent() == 0
