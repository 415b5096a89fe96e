"""A holder that answers with nonsense, or not at all: it is named, and nothing is believed."""

import json
import time
from collections.abc import Callable, Iterator, Sequence
from concurrent import futures
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import grpc
import pytest
from google.rpc.status_pb2 import Status

from accountant.auditor.verify import verify
from accountant.gate import schema_digest
from cube.refusals import InvalidRequest, Refused, SourceUnavailable
from proxy.bootstrap import Service
from proxy.config.settings import load
from proxy.protocol import tacit_pb2
from proxy.protocol.tacit_pb2_grpc import FederationServicer, add_FederationServicer_to_server
from proxy.shared.refusal_details import CODE_KEY, DETAILS_KEY
from proxy.sources.holders.calls import REPLY_BYTES_MAX
from tests.proxy.federation.test_coordinator import coordinating
from tests.support.configured import ask, spent
from tests.support.hospitals import COUNT, Hospital, columns, hospitals

GOOD = {
    "values": [[2**20]],
    "released": [],
    "entry": 7,
    "head_entry": 8,
    "head": "0" * 64,
    "units": 1,
}
STATE = "0123456789abcdef:1"


class Hostile(FederationServicer):
    """It describes the table that is asked for, and then does what a test says."""

    def __init__(self, tell: Callable[[grpc.ServicerContext], str]) -> None:
        self.tell = tell
        self.digest = ""
        self.state = STATE
        self.left = "1"
        self.n_asked = 0

    def DescribeHolder(  # noqa: N802 - the protocol's name
        self, request: tacit_pb2.DescribeHolderRequest, context: grpc.ServicerContext
    ) -> tacit_pb2.HolderDescription:
        del request, context
        return tacit_pb2.HolderDescription(
            schema_digest=self.digest,
            declaration='{"columns": [{"name": "\\u001b[2J", "kind": 1}, 7]}',
            state=self.state,
            epsilon_left=self.left,
        )

    def PriceForLedger(  # noqa: N802 - the protocol's name
        self, request: tacit_pb2.ForLedgerRequest, context: grpc.ServicerContext
    ) -> tacit_pb2.PriceForLedgerReply:
        del request, context
        return tacit_pb2.PriceForLedgerReply(epsilon="NaN")

    def MeasureForLedger(  # noqa: N802 - the protocol's name
        self, request: tacit_pb2.ForLedgerRequest, context: grpc.ServicerContext
    ) -> tacit_pb2.MeasureForLedgerReply:
        del request
        self.n_asked += 1
        return tacit_pb2.MeasureForLedgerReply(told=self.tell(context))


class Garbage(grpc.GenericRpcHandler):
    """Measures by sending bytes that are no message; all else is another's to answer."""

    def __init__(self, sent: bytes) -> None:
        self._sent = sent

    def service(self, called: grpc.HandlerCallDetails) -> "grpc.RpcMethodHandler[Any, Any] | None":
        if not called.method.endswith("/MeasureForLedger"):
            return None
        return grpc.unary_unary_rpc_method_handler(lambda _request, _context: self._sent)


@contextmanager
def held_by(
    hostile: Hostile,
    folder: Path,
    timeout: float = 5.0,
    *,
    garbage: bytes | None = None,
    others: Sequence[Hospital] = (),
) -> Iterator[Service]:
    """A coordinator of this holder, and perhaps of others."""
    server = grpc.server(
        futures.ThreadPoolExecutor(4), options=[("grpc.max_send_message_length", -1)]
    )
    if garbage is not None:
        server.add_generic_rpc_handlers((Garbage(garbage),))
    add_FederationServicer_to_server(hostile, server)
    port = server.add_insecure_port("127.0.0.1:0")
    server.start()
    (folder / "a.token").write_text("A" * 43)
    holder = (
        f'{{name = "h", address = "127.0.0.1:{port}", token_file = "a.token", timeout = {timeout}}}'
    )
    told = [
        f'{{name = "{one.name}", address = "{one.address}", token_file = "{one.token_file}"}}'
        for one in others
    ]
    listed = ", ".join([holder, *told])
    text = f'[ledger]\npath = "c.ledger"\n[tables.patients]\nholders = [{listed}]\n{columns()}'
    file = folder / "coordinator.toml"
    file.write_text(text)
    hostile.digest = hostile.digest or schema_digest(load(file).tables[0].schema.of_one_holder)
    try:
        with coordinating(folder, text) as service:
            yield service
    finally:
        server.stop(None).wait()


NONSENSE: dict[str, str] = {
    "nothing": "",
    "no JSON": "{",
    "deep": "[" * 1000,
    "NaN": json.dumps({**GOOD, "values": [[float("nan")]]}),
    "infinite": json.dumps({**GOOD, "values": [[float("inf")]]}),
    "a fraction": json.dumps({**GOOD, "values": [[1.5]]}),
    "too large": json.dumps({**GOOD, "values": [[2**64]]}),
    "too many": json.dumps({**GOOD, "values": [[1, 2]]}),
    "too few": json.dumps({**GOOD, "values": [[]]}),
    "of another request": json.dumps({**GOOD, "values": [[1], [2]]}),
    "more released": json.dumps({**GOOD, "released": [3]}),
    "very long": json.dumps({**GOOD, "more": "x" * 10_000}),
    "no digest": json.dumps({**GOOD, "head": "0"}),
    "an earlier head": json.dumps({**GOOD, "head_entry": 6}),
    "no entry": json.dumps({**GOOD, "entry": True}),
}


@pytest.mark.parametrize("kind", NONSENSE)
def test_nonsense_is_refused_by_its_holder_s_name(tmp_path: Path, kind: str) -> None:
    told = [NONSENSE[kind], json.dumps(GOOD)]
    hostile = Hostile(lambda _: told[0])
    with held_by(hostile, tmp_path) as service:
        with pytest.raises(SourceUnavailable, match="The holder h of patients"):
            ask(service, COUNT)
        paid = spent(service)
        assert paid > 0
        del told[0]
        ask(service, COUNT)
        assert spent(service) == paid  # nothing is bought twice


GARBAGE: dict[str, bytes] = {
    "no message": b"\xff\xfe\x00damaged",
    "no text": b"\x0a\x02\xff\xff",
    "a message without an end": b"\x0a\xff\xff\xff\xff\x07",
    "more than may be sent": b"x" * (REPLY_BYTES_MAX + 1),
}


@pytest.mark.parametrize("kind", GARBAGE)
def test_bytes_that_are_no_reply_are_refused_by_name(tmp_path: Path, kind: str) -> None:
    with held_by(Hostile(lambda _: ""), tmp_path, garbage=GARBAGE[kind]) as service:
        for _ in range(2):
            with pytest.raises(SourceUnavailable, match="The holder h of patients"):
                ask(service, COUNT)
        assert spent(service) > 0


def test_what_another_holder_measured_is_kept(tmp_path: Path) -> None:
    told = [NONSENSE["NaN"], json.dumps(GOOD)]
    with (
        hospitals(tmp_path, north=700) as (north,),
        held_by(Hostile(lambda _: told[0]), tmp_path, others=[north]) as service,
    ):
        with pytest.raises(SourceUnavailable, match="The holder h of patients"):
            ask(service, COUNT)
        paid = north.spent(), spent(service)
        assert min(paid) > 0
        del told[0]
        ask(service, COUNT)
        assert (north.spent(), spent(service)) == paid
        assert verify(service.ledger.entries()).problem is None


def test_a_holder_that_hangs_is_named_in_time(tmp_path: Path) -> None:
    def hang(context: grpc.ServicerContext) -> str:
        while context.is_active():
            time.sleep(0.01)
        return ""

    with (
        held_by(Hostile(hang), tmp_path, timeout=0.3) as service,
        pytest.raises(SourceUnavailable, match="The holder h of patients has not answered in time"),
    ):
        ask(service, COUNT)


def test_a_holder_that_fails_is_named(tmp_path: Path) -> None:
    def fail(context: grpc.ServicerContext) -> str:
        context.abort(grpc.StatusCode.INTERNAL, "\x1b[2Jprivate " * 1000)

    with held_by(Hostile(fail), tmp_path) as service:
        with pytest.raises(SourceUnavailable, match="The holder h of patients did not") as refused:
            ask(service, COUNT)
        assert "\x1b" not in refused.value.explain()
        assert len(refused.value.explain()) < 1000


def refusing(code: str, **fields: Any) -> Callable[[grpc.ServicerContext], str]:
    """A refusal with such a detail."""

    def refuse(context: grpc.ServicerContext) -> str:
        packed = Status(code=9, message="no")
        detail = tacit_pb2.RefusalDetail(code=code, shortfall=tacit_pb2.Shortfall(**fields))
        packed.details.add().Pack(detail)
        context.set_trailing_metadata(((CODE_KEY, code), (DETAILS_KEY, packed.SerializeToString())))
        context.abort(grpc.StatusCode.FAILED_PRECONDITION, "no")

    return refuse


@pytest.mark.parametrize("needed", ["", "-1", "NaN", "1/0", "1e999999999", "9" * 1000, "0.1"])
def test_numbers_of_a_refusal_are_read_strictly(tmp_path: Path, needed: str) -> None:
    refuse = refusing("budget_exhausted", epsilon_needed=needed, epsilon_left="0.2")
    with (
        held_by(Hostile(refuse), tmp_path) as service,
        pytest.raises(SourceUnavailable, match="The holder h of patients"),
    ):
        ask(service, COUNT)


NOT_FOR_GOOD = ("data_changed", "too_slow", "stale", "", "ledger_unavailable")
NOT_LET_IN = ("not_authenticated", "not_allowed", "unknown_name")  # it may have charged before


@pytest.mark.parametrize("code", [*NOT_FOR_GOOD, *NOT_LET_IN])
def test_a_refusal_that_is_not_for_good_leaves_the_charge(tmp_path: Path, code: str) -> None:
    hostile = Hostile(refusing(code))
    with held_by(hostile, tmp_path) as service:
        with pytest.raises(SourceUnavailable):
            ask(service, COUNT)
        paid = spent(service)
        hostile.tell = lambda _: json.dumps(GOOD)
        ask(service, COUNT)
        assert spent(service) == paid


def test_a_refusal_for_good_gives_the_charge_up(tmp_path: Path) -> None:
    hostile = Hostile(refusing("invalid_request"))
    with held_by(hostile, tmp_path) as service:
        with pytest.raises(InvalidRequest, match="The holder h of patients refused"):
            ask(service, COUNT)
        hostile.tell = lambda _: json.dumps(GOOD)
        before = spent(service)
        ask(service, COUNT)
        assert spent(service) > before  # what was given up stays spent


def test_a_charge_that_is_refused_at_the_start_is_given_up(tmp_path: Path) -> None:
    hostile = Hostile(lambda _: "")
    with held_by(hostile, tmp_path) as service, pytest.raises(SourceUnavailable):
        ask(service, COUNT)
    hostile.tell = refusing("limit_reached", epsilon_needed="0.1", epsilon_left="0")
    with held_by(hostile, tmp_path) as service:
        hostile.tell = lambda _: json.dumps(GOOD)
        n_asked = hostile.n_asked
        ask(service, COUNT)
        assert hostile.n_asked == n_asked + 1


@pytest.mark.parametrize(
    ("field", "value"),
    [("digest", "0" * 64), ("digest", "é"), ("state", "x;y=z"), ("state", ""), ("left", "-")],
)
def test_what_it_says_of_itself_is_checked(tmp_path: Path, field: str, value: str) -> None:
    hostile = Hostile(lambda _: "")
    setattr(hostile, field, value)
    with pytest.raises(Exception, match="The holder h of patients") as refused:  # noqa: SIM117
        with held_by(hostile, tmp_path):
            pass
    assert not isinstance(refused.value, Refused)  # it does not start
    assert "\x1b" not in str(refused.value)
