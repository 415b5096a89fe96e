"""Real drivers: how ADBC and pyarrow show a credential, and what they are told without one."""

import base64
from functools import partial
from typing import Any

import adbc_driver_manager
import grpc
import pytest
from adbc_driver_flightsql import dbapi
from pyarrow import flight

from accountant.ledger.ledger import Ledger
from tests.support.engine_fake import ANSWERS, COUNT_ALL, COUNT_BY_SEX, CannedEngine
from tests.support.every_call import CALLS
from tests.support.identities import (
    REFUSED,
    refusal,
    token_for,
)

UNAUTHENTICATED = grpc.StatusCode.UNAUTHENTICATED
AUTHORIZATION = "adbc.flight.sql.authorization_header"


def connected(address: str, **options: str) -> Any:
    return dbapi.connect(f"grpc://{address}", db_kwargs=options, autocommit=True)


def asked(connection: Any, text: str) -> Any:
    with connection.cursor() as cursor:
        cursor.execute(text)
        return cursor.fetch_arrow_table().to_pylist()


def test_adbc_comes_in_with_a_token(address: str, ledger: Ledger) -> None:
    token = token_for(ledger, "ann", "people")
    with connected(address, **{AUTHORIZATION: f"Bearer {token}"}) as connection:
        assert asked(connection, COUNT_BY_SEX) == ANSWERS[COUNT_BY_SEX].to_pylist()
        (catalog,) = connection.adbc_get_objects(depth="tables").read_all().to_pylist()
        names = {
            schema["db_schema_name"]: [table["table_name"] for table in schema["db_schema_tables"]]
            for schema in catalog["catalog_db_schemas"]
        }
        assert names == {
            "public": ["people"],
            "data_privacy": ["budgets", "collections", "domains", "history", "losses", "streams"],
        }


def test_adbc_comes_in_with_a_name_and_the_token_as_password(
    address: str, ledger: Ledger, engine: CannedEngine
) -> None:
    token = token_for(ledger, "Ännchen")
    with connected(address, username="Ännchen", password=token) as connection:
        assert asked(connection, COUNT_BY_SEX) == ANSWERS[COUNT_BY_SEX].to_pylist()
    assert {request.caller.payer.analyst for request in engine.requests} == {"Ännchen"}


@pytest.mark.parametrize("name", ["bob", "", "Ann"])
def test_another_name_does_not_go_with_it(address: str, ledger: Ledger, name: str) -> None:
    token = token_for(ledger, "ann")
    with (
        pytest.raises(adbc_driver_manager.Error, match=r"(?i)unauth|no credential"),
        connected(address, username=name, password=token) as connection,
    ):
        asked(connection, COUNT_ALL)


def test_adbc_without_a_token_is_told_what_to_send(address: str) -> None:
    with (
        pytest.raises(adbc_driver_manager.Error, match="Bearer TOKEN"),
        connected(address) as connection,
    ):
        asked(connection, COUNT_ALL)


def test_pyarrow_is_handed_its_token(address: str, ledger: Ledger) -> None:
    token = token_for(ledger, "ann")
    with flight.connect(f"grpc://{address}") as client:
        header = client.authenticate_basic_token("ann", token)
        assert header == (b"authorization", f"Bearer {token}".encode())
        options = flight.FlightCallOptions(headers=[header])
        assert list(client.list_flights(options=options)) == []
        with pytest.raises(flight.FlightUnauthenticatedError):
            client.authenticate_basic_token("bob", token)


def test_a_name_and_password_are_for_the_handshake_alone(
    channel: grpc.Channel, ledger: Ledger
) -> None:
    token = token_for(ledger, "ann")
    header = "Basic " + base64.b64encode(f"ann:{token}".encode()).decode()
    CALLS["Handshake"](channel, (("authorization", header),))
    for method in CALLS.keys() - {"Handshake"}:
        told = refusal(partial(CALLS[method], channel, (("authorization", header),)))
        assert told == (UNAUTHENTICATED, REFUSED)
