"""Who asks: by tokens alone, with their analyst's name, in a URL; a ledger knows them."""

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
import sqlalchemy as sa
from sqlalchemy.dialects import registry

import tacit_client
from proxy.identity.authenticate import LedgerAuthenticator
from tests.support.engine_fake import COUNT_ALL, CannedEngine
from tests.support.identities import credentials, token_for
from tests.support.serving import serving


@pytest.fixture
def engine() -> CannedEngine:
    return CannedEngine()


@pytest.fixture
def token(tmp_path: Path, engine: CannedEngine) -> Iterator[tuple[str, str]]:
    """A token of ann's, and the address of the server that knows it."""
    with (
        credentials(tmp_path) as ledger,
        serving(engine, authenticator=LedgerAuthenticator(ledger)) as address,
    ):
        yield token_for(ledger, "ann"), address


@pytest.mark.parametrize("named", [{}, {"user": "ann"}], ids=["alone", "with a name"])
def test_a_token_says_who_asks(
    token: tuple[str, str], engine: CannedEngine, named: dict[str, Any]
) -> None:
    with tacit_client.connect(token[1], token=token[0], **named) as connection:
        assert connection.sql(COUNT_ALL).fetchall() == [(1234.5,)]
    assert {request.caller.payer.analyst for request in engine.requests} == {"ann"}


@pytest.mark.parametrize("user", ["ann", ""])
def test_a_url_has_both(token: tuple[str, str], engine: CannedEngine, user: str) -> None:
    registry.register("tacit", "tacit_client.sqlalchemy_dialect", "TacitDialect")
    database = sa.create_engine(f"tacit://{user}:{token[0]}@{token[1]}/")
    with database.connect() as connection:
        assert connection.execute(sa.text(COUNT_ALL)).scalar() == 1234.5
    database.dispose()
    assert {request.caller.payer.analyst for request in engine.requests} == {"ann"}


def test_marginals_are_asked_with_it_too(token: tuple[str, str]) -> None:
    with (
        tacit_client.connect(token[1], token=token[0]) as connection,
        pytest.raises(tacit_client.InvalidStatement, match="There are no marginals of people"),
    ):
        connection.marginals("people", [["sex"]], budget=0)


@pytest.mark.parametrize("given", [{}, {"token": "tacit_" + "0" * 64}, {"user": "bob"}])
def test_whoever_is_not_known_is_told_so(token: tuple[str, str], given: dict[str, Any]) -> None:
    shown = {"token": token[0], **given} if "user" in given else given
    with (
        pytest.raises(tacit_client.Error, match=r"(?i)unauth|no credential") as caught,
        tacit_client.connect(token[1], **shown) as connection,
    ):
        connection.sql(COUNT_ALL)
    assert token[0] not in str(caught.value)
