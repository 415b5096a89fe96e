"""Places for connections are counted and come back, and one that breaks is the end of it alone."""

import socket
import struct
import threading
from collections.abc import Iterator
from contextlib import ExitStack

import pytest

from proxy.wire.postgres.listener import ConnectionLimits
from tests.support.engine_fake import COUNT_ALL, CannedEngine
from tests.support.identities import soon
from tests.support.postgres_wire import postgres_serving
from tests.support.raw_postgres import ended, query, raw_client, received, startup, works


@pytest.fixture
def address() -> Iterator[str]:
    with postgres_serving(CannedEngine()) as served:
        yield served


def test_connections_are_counted_and_places_come_back() -> None:
    limits = ConnectionLimits(in_all=3, of_one_address=3, new_in_all=3, new_of_one_address=2)
    with postgres_serving(CannedEngine(), limits=limits) as address, ExitStack() as opened:
        strangers = [opened.enter_context(raw_client(address)) for _ in range(2)]
        assert soon(lambda: turned_away(address))
        strangers[0].log_in()  # it is new no more, so that another may begin
        third = opened.enter_context(raw_client(address))
        third.log_in()
        assert turned_away(address)
        third.socket.close()
        assert soon(lambda: works(address))


def turned_away(address: str) -> bool:
    """Whether one more connection is told that there are too many."""
    with raw_client(address) as one_more:
        one_more.socket.settimeout(0.5)
        try:
            found = one_more.rest()
        except TimeoutError:
            return False
        return [reply.fields["C"] for reply in found] == ["53300"]


def test_one_analyst_cannot_take_every_place() -> None:
    limits = ConnectionLimits(of_one_analyst=2)
    with postgres_serving(CannedEngine(), limits=limits) as address, ExitStack() as opened:
        for _ in range(2):
            opened.enter_context(raw_client(address)).log_in()
        one_more = opened.enter_context(raw_client(address))
        one_more.send(startup(user="ann"))
        assert ended(one_more)[-1].fields["C"] == "53300"


def test_a_listener_goes_on_where_a_connection_cannot_be_served(
    monkeypatch: pytest.MonkeyPatch, address: str
) -> None:
    """There may be no thread for it, or it is over before it was looked at."""

    def none_left(*_: object, **__: object) -> threading.Thread:
        raise RuntimeError("can't start new thread")

    with monkeypatch.context() as patched:
        patched.setattr("proxy.wire.postgres.listener.threading.Thread", none_left)
        for _ in range(5):
            with raw_client(address) as client:
                assert received(client) == b""
    assert works(address)


def test_a_reset_while_it_is_served_is_the_end_of_it_alone(address: str) -> None:
    for _ in range(20):
        with raw_client(address) as client:
            client.log_in()
            client.send(query(COUNT_ALL) * 50)
            client.socket.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))
    assert works(address)
