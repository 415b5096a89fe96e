"""One port, its neighbours on it, and the addresses it will not be served on."""

from collections.abc import Iterator
from pathlib import Path

import grpc
import pytest
from grpc_health.v1 import health_pb2, health_pb2_grpc
from grpc_reflection.v1alpha import reflection_pb2, reflection_pb2_grpc

from cube.refusals import ConfigurationInvalid
from proxy.protocol import tacit_pb2
from proxy.protocol.tacit_pb2_grpc import TacitStub
from proxy.wire.server import start_server
from proxy.wire.tls import TlsIdentity
from tests.support.engine_fake import CannedEngine
from tests.support.serving import EverybodyLocal, channel_to, serving

SUPPORT = Path(__file__).parents[2] / "support"
CERTIFICATE = SUPPORT / "loopback_certificate.pem"
KEY = SUPPORT / "loopback_key.pem"
SERVICES = {
    "tacit.v1.Federation",
    "tacit.v1.Tacit",
    "arrow.flight.protocol.FlightService",
    "grpc.health.v1.Health",
    "grpc.reflection.v1alpha.ServerReflection",
}


@pytest.fixture
def channel() -> Iterator[grpc.Channel]:
    with channel_to(CannedEngine()) as opened:
        yield opened


@pytest.mark.parametrize("service", ["", "tacit.v1.Tacit", "arrow.flight.protocol.FlightService"])
def test_health_is_served_for_each_service(channel: grpc.Channel, service: str) -> None:
    stub = health_pb2_grpc.HealthStub(channel)
    request = health_pb2.HealthCheckRequest(service=service)
    assert stub.Check(request).status == health_pb2.HealthCheckResponse.SERVING


def test_the_health_of_an_unknown_service_is_not_found(channel: grpc.Channel) -> None:
    with pytest.raises(grpc.RpcError) as caught:
        health_pb2_grpc.HealthStub(channel).Check(health_pb2.HealthCheckRequest(service="no"))
    assert caught.value.code() is grpc.StatusCode.NOT_FOUND


def test_reflection_lists_every_service(channel: grpc.Channel) -> None:
    ask = reflection_pb2.ServerReflectionRequest(list_services="")
    (reply,) = reflection_pb2_grpc.ServerReflectionStub(channel).ServerReflectionInfo(iter([ask]))
    assert {service.name for service in reply.list_services_response.service} == SERVICES


def raw(channel: grpc.Channel, method: str, message: bytes) -> None:
    call: grpc.UnaryUnaryMultiCallable[bytes, bytes] = channel.unary_unary(method)
    call(message)


def test_an_unknown_method_is_unimplemented(channel: grpc.Channel) -> None:
    with pytest.raises(grpc.RpcError) as caught:
        raw(channel, "/tacit.v1.Tacit/Nothing", b"")
    assert caught.value.code() is grpc.StatusCode.UNIMPLEMENTED


def test_a_message_that_is_no_message_leaks_nothing(channel: grpc.Channel) -> None:
    with pytest.raises(grpc.RpcError) as caught:
        raw(channel, "/tacit.v1.Tacit/Explain", b"\xff\xff\xff")
    assert caught.value.details() == "Exception deserializing request!"


def test_a_statement_of_a_megabyte_is_taken_and_refused_by_its_own_code(
    channel: grpc.Channel,
) -> None:
    with pytest.raises(grpc.RpcError, match=r"\[too_large\]"):
        TacitStub(channel).Explain(tacit_pb2.ExplainRequest(sql="x" * 2**20))


def test_a_message_beyond_the_limit_is_turned_away(channel: grpc.Channel) -> None:
    with pytest.raises(grpc.RpcError) as caught:
        TacitStub(channel).Explain(tacit_pb2.ExplainRequest(sql="x" * 2**23))
    assert caught.value.code() is grpc.StatusCode.RESOURCE_EXHAUSTED


@pytest.mark.parametrize("listen", ["127.0.0.1:0", "127.3.2.1:0", "localhost:0"])
def test_loopback_is_served_in_plain_text(listen: str) -> None:
    server = start_server(CannedEngine(), listen, authenticator=EverybodyLocal())
    assert int(server.address.rpartition(":")[2]) > 0
    server.stop()


@pytest.mark.parametrize(
    "listen", ["0.0.0.0:0", "[::]:0", "192.168.1.2:0", "example.org:0", "localhost.evil:0"]
)
def test_a_network_is_not_served_in_plain_text(listen: str) -> None:
    with pytest.raises(ConfigurationInvalid, match="plain text"):
        start_server(CannedEngine(), listen, authenticator=EverybodyLocal())


@pytest.mark.parametrize(
    "listen", ["", "127.0.0.1", ":1", "127.0.0.1:", "h:x", "h:-1", "h:65536", "*:0"]
)
def test_an_address_is_a_host_and_a_port(listen: str) -> None:
    with pytest.raises(ConfigurationInvalid, match="is not an address"):
        start_server(CannedEngine(), listen, authenticator=EverybodyLocal())


def test_a_port_in_use_is_not_shared() -> None:
    with (
        serving(CannedEngine()) as address,
        pytest.raises(ConfigurationInvalid, match="cannot listen"),
    ):
        start_server(CannedEngine(), address, authenticator=EverybodyLocal())


def test_tls_answers_those_who_trust_the_certificate() -> None:
    identity = TlsIdentity.load(CERTIFICATE, KEY)
    trust = grpc.ssl_channel_credentials(CERTIFICATE.read_bytes())
    with (
        serving(CannedEngine(), identity) as address,
        grpc.secure_channel(address, trust) as trusted,
        grpc.insecure_channel(address) as plain,
    ):
        assert TacitStub(trusted).ListTables(tacit_pb2.ListTablesRequest(), timeout=10).tables
        with pytest.raises(grpc.RpcError):
            TacitStub(plain).ListTables(tacit_pb2.ListTablesRequest(), timeout=10)


def test_with_tls_a_network_may_be_served() -> None:
    tls = TlsIdentity.load(CERTIFICATE, KEY)
    start_server(CannedEngine(), "0.0.0.0:0", authenticator=EverybodyLocal(), tls=tls).stop()


def test_a_certificate_that_is_none_is_refused() -> None:
    with pytest.raises(ConfigurationInvalid, match="cannot listen"):
        start_server(
            CannedEngine(),
            "127.0.0.1:0",
            authenticator=EverybodyLocal(),
            tls=TlsIdentity(b"no", b"no"),
        )


def test_a_missing_tls_file_is_named() -> None:
    with pytest.raises(ConfigurationInvalid, match=r"nowhere\.pem cannot be read: No such file"):
        TlsIdentity.load(CERTIFICATE, SUPPORT / "nowhere.pem")


def test_the_key_does_not_show() -> None:
    assert "PRIVATE" not in repr(TlsIdentity.load(CERTIFICATE, KEY))
