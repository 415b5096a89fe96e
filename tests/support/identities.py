"""A served engine with a real ledger of credentials, for tests of who may come in."""

import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path

import grpc
import pytest

from accountant.ledger.credentials import EVERY_TABLE, Role
from accountant.ledger.ledger import Ledger
from accountant.ledger.opening import open_ledger
from proxy.identity.issuing import Grant, issue_token
from proxy.protocol import tacit_pb2
from proxy.protocol.tacit_pb2_grpc import TacitStub

REFUSED = (
    "[not_authenticated] This call presents no credential that is in force here. "
    "Send `authorization: Bearer TOKEN` with a token from the server's owner."
)
PATIENCE_SECONDS = 20.0


@contextmanager
def credentials(folder: Path) -> Iterator[Ledger]:
    with open_ledger(folder / "test.ledger") as ledger:
        yield ledger


def token_for(
    ledger: Ledger,
    analyst: str = "ann",
    *tables: str,
    role: Role = Role.ANALYST,
    groups: tuple[str, ...] = (),
) -> str:
    grant = Grant(analyst=analyst, role=role, tables=tables or (EVERY_TABLE,), groups=groups)
    return issue_token(ledger, grant, by="a test")[1]


def bearer(token: str) -> tuple[tuple[str, str], ...]:
    return (("authorization", f"Bearer {token}"),)


def tables_seen(channel: grpc.Channel, token: str | None) -> list[str]:
    metadata = None if token is None else bearer(token)
    reply = TacitStub(channel).ListTables(
        tacit_pb2.ListTablesRequest(), metadata=metadata, timeout=PATIENCE_SECONDS
    )
    return [table.name for table in reply.tables]


def refusal(call: Callable[[], object]) -> tuple[grpc.StatusCode, str]:
    """How a call was refused."""
    with pytest.raises(grpc.RpcError) as caught:
        list(found) if isinstance(found := call(), Iterator) else None
    return caught.value.code(), caught.value.details() or ""


def soon(is_so: Callable[[], bool]) -> bool:
    """Whether a condition becomes true before the deadline."""
    until = time.monotonic() + PATIENCE_SECONDS
    while time.monotonic() < until:
        if is_so():
            return True
        time.sleep(0.05)
    return False
