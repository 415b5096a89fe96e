"""A collection of two real workers: opened at one and known at the other, and closed likewise."""

from pathlib import Path

import pytest

from accountant.ledger.credentials import EVERY_TABLE, Role
from local_dp.campaign import campaign_text
from proxy.admin.ledger_admin import open_configured
from proxy.config.settings import load
from proxy.identity.issuing import Grant, issue_token
from proxy.protocol import tacit_pb2
from proxy.protocol.tacit_pb2_grpc import TacitStub
from tests.end_to_end.test_streams_of_workers import Client, of_both
from tests.support.campaigns import survey
from tests.support.serving_workers import WAIT_SECONDS, serving_workers, written

pytestmark = pytest.mark.processes

STATES = "SELECT table_name, state FROM data_privacy.collections ORDER BY table_name"


def create(client: Client, name: str) -> None:
    text = campaign_text(survey(name))
    request = tacit_pb2.CreateCollectionRequest(campaign=text, respondents_max=9)
    TacitStub(client._channel).CreateCollection(
        request, metadata=client._metadata, timeout=WAIT_SECONDS
    )


def close(client: Client, name: str) -> None:
    request = tacit_pb2.CloseCollectionRequest(name=name)
    TacitStub(client._channel).CloseCollection(
        request, metadata=client._metadata, timeout=WAIT_SECONDS
    )


def states_at(client: Client) -> dict[str, str]:
    return {str(row["table_name"]): str(row["state"]) for row in client.ask(STATES)}


def test_a_collection_is_open_and_closed_at_both_at_once(tmp_path: Path) -> None:
    configuration = written(tmp_path, server="")
    with open_configured(load(configuration).ledger) as ledger:
        grant = Grant(analyst="ann", role=Role.OWNER, tables=(EVERY_TABLE,))
        token = issue_token(ledger, grant, by="a test")[1]
    with (
        serving_workers(configuration) as served,
        of_both(served.address, token) as (first, second),
    ):
        states: dict[str, str] = {}
        for number in range(6):  # a look into the ledger each second would miss some
            here, there = (first, second) if number % 2 else (second, first)
            name = f"survey{number}"
            create(here, name)
            states[name] = "open"
            assert states_at(there) == states
            close(here, name)
            states[name] = "closed"
            assert states_at(there) == states
