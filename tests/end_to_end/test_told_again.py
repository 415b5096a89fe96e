"""What was told before, after what it rests on has changed: the table's data, who may ask.

An answer that was free is told again without being made anew. The oracles are the rows of the new
data, and the door: who is let in no more is told nothing, whatever was kept for them.
"""

from collections.abc import Iterator
from pathlib import Path

import adbc_driver_flightsql.dbapi as flight_sql
import pyarrow as pa
import pytest

from proxy.bootstrap import Service
from proxy.identity.authenticate import LedgerAuthenticator
from proxy.identity.issuing import Grant, issue_token, revoke
from tests.support.renewed_customers import (
    AFTER,
    BEFORE,
    BY_CITY,
    CONFIG,
    ask,
    counts,
    follow,
    renew,
    served,
    write,
)
from tests.support.serving import serving

AUTHORIZATION = "adbc.flight.sql.authorization_header"


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    write(tmp_path, BEFORE)
    (tmp_path / "tacit.toml").write_text(CONFIG)
    return tmp_path


@pytest.fixture
def service(folder: Path) -> Iterator[Service]:
    with served(folder) as opened:
        yield opened


def test_what_was_told_of_the_earlier_data_is_not_told_of_the_new(
    service: Service, folder: Path
) -> None:
    ask(service)
    free = ask(service)
    assert ask(service) is free  # it is told again
    assert counts(free.data) == BEFORE
    renew(folder)
    follow(service)
    anew = ask(service)
    assert counts(anew.data) == AFTER
    assert anew.receipt is not None
    assert anew.receipt.epsilon_spent > 0  # nothing that was bought says anything of these rows
    again = ask(service)
    assert ask(service) is again
    assert counts(again.data) == AFTER


def test_who_is_let_in_no_more_is_told_nothing_again(service: Service) -> None:
    ann = Grant(analyst="ann", tables=("customers",))
    credential, token = issue_token(service.ledger, ann, by="a test")
    _, other = issue_token(service.ledger, ann, by="a test")
    with (
        serving(service.engine, authenticator=LedgerAuthenticator(service.ledger)) as address,
        connected(address, token) as first,
        connected(address, other) as second,
    ):
        told(first)
        kept = told(first)
        assert told(first) == kept == told(second)
        revoke(service.ledger, credential.id, by="a test")
        with pytest.raises(flight_sql.Error, match="presents no credential that is in force"):
            told(first)
        assert told(second).column("n") == kept.column("n")  # the same person, still let in


def connected(address: str, token: str) -> flight_sql.Connection:
    header = {AUTHORIZATION: f"Bearer {token}"}
    return flight_sql.connect(f"grpc://{address}", db_kwargs=header, autocommit=True)


def told(connection: flight_sql.Connection) -> pa.Table:
    with connection.cursor() as cursor:
        cursor.execute(BY_CITY)
        return cursor.fetch_arrow_table()
