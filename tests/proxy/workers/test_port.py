"""A shared port is this server's alone: who tries it first without sharing does not get it."""

import platform
import socket
from concurrent import futures

import grpc
import pytest

from cube.refusals import ConfigurationInvalid
from proxy.wire.server import start_server
from proxy.workers.crew import Crew, Seat
from proxy.workers.port import held
from tests.support.engine_fake import CannedEngine
from tests.support.serving import EverybodyLocal

FREE = "127.0.0.1:0"


def test_workers_share_a_port_that_is_held_and_nobody_else_gets_it() -> None:
    with held(FREE) as listen:
        pools = [futures.ThreadPoolExecutor(1) for _ in range(2)]
        workers = [grpc.server(pool, options=(("grpc.so_reuseport", 1),)) for pool in pools]
        port = int(listen.rpartition(":")[2])
        assert [worker.add_insecure_port(listen) for worker in workers] == [port, port]
        for worker in workers:
            worker.start()
        with pytest.raises(ConfigurationInvalid, match="cannot listen on"), held(listen):
            pass
        with pytest.raises(ConfigurationInvalid, match="cannot listen on"):
            start_server(CannedEngine(), listen, authenticator=EverybodyLocal())
        for worker in workers:
            worker.stop(None).wait()
        with pytest.raises(ConfigurationInvalid), held(listen):  # while no worker listens, too
            pass
    with held(listen) as again:
        assert again == listen


@pytest.mark.parametrize("shares", [0, 1])
def test_a_port_that_somebody_uses_is_not_shared_with_them(shares: int) -> None:
    with socket.socket() as other:
        other.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEPORT, shares)
        other.bind(("127.0.0.1", 0))
        other.listen()
        listen = f"127.0.0.1:{other.getsockname()[1]}"
        with pytest.raises(ConfigurationInvalid) as refused, held(listen):
            pass
    assert refused.value.hint == "Is another process using the port?"


def test_of_two_servers_that_start_at_one_moment_one_is_refused() -> None:
    with held(FREE) as listen:
        pass
    with socket.socket(socket.AF_UNIX, socket.SOCK_STREAM) as other:
        other.bind(f"\0tacit-starting-{listen.rpartition(':')[2]}")
        with pytest.raises(ConfigurationInvalid), held(listen):
            pass


def test_a_name_stands_for_all_of_its_addresses() -> None:
    with held("localhost:0") as listen:
        port = int(listen.removeprefix("localhost:"))
        with pytest.raises(ConfigurationInvalid), held(f"127.0.0.1:{port}"):
            pass


def test_where_ports_are_not_shared_evenly_there_are_no_workers(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(platform, "system", lambda: "Darwin")
    with pytest.raises(ConfigurationInvalid) as refused, held(FREE):
        pass
    assert refused.value.hint == "Set workers = 1."


def test_a_server_of_one_process_shares_its_port_with_nobody() -> None:
    one = start_server(CannedEngine(), FREE, authenticator=EverybodyLocal(), crew=Crew(Seat()))
    with pytest.raises(ConfigurationInvalid):
        start_server(CannedEngine(), one.address, authenticator=EverybodyLocal())
    one.stop()
