"""`Connection.observe` on a real server: the users are counted, and what is wrong is told."""

from collections.abc import Iterator
from pathlib import Path

import numpy as np
import pytest

import tacit_client
from tests.support.serving import serving
from tests.support.streaming import COUNT, CREATE, EACH, WATCHED, Streaming, streaming


@pytest.fixture
def server(tmp_path: Path) -> Iterator[Streaming]:
    with streaming(tmp_path / "a.ledger") as found:
        yield found


@pytest.fixture
def visits(server: Streaming) -> Iterator[tacit_client.Connection]:
    with (
        serving(server.engine, streams=server.streams) as address,
        tacit_client.connect(address) as found,
    ):
        yield found


def test_users_are_created_told_and_counted(visits: tacit_client.Connection) -> None:
    visits.sql(CREATE.replace("1000)", "200000)"))
    visits.observe("visits", range(100_000))  # of several messages
    visits.observe("visits", np.arange(50_000, 120_000))
    (row,) = visits.sql(COUNT).to_arrow().to_pylist()
    assert abs(row["n"] - 120_000) < 500


def test_users_leave(server: Streaming, visits: tacit_client.Connection) -> None:
    server.rows(CREATE.replace("epsilon => 8", "epsilon => 8, departures => true"))
    visits.observe("visits", range(300))
    visits.observe("visits", range(200), left=True)
    assert abs(server.rows(COUNT)[0]["n"] - 100) < 30


def test_predicates_hold(server: Streaming, visits: tacit_client.Connection) -> None:
    server.rows(WATCHED)
    visits.observe("visits", range(300))
    visits.observe("visits", range(100), where="paid")
    visits.observe("visits", range(80, 140), where=["paid", "mobile"])
    with pytest.raises(tacit_client.Refused, match="not declared with this predicate") as caught:
        visits.observe("visits", [1], where="old")
    assert "paid, mobile" in str(caught.value.hint)
    (found,) = visits.sql(EACH).to_arrow().to_pylist()
    # 1000 bits of epsilon 8 each miss by a deviation of about 1; 30 off happens in no lifetime.
    for n, true in zip(found.values(), (300, 140, 60), strict=True):
        assert abs(n - true) < 30


@pytest.mark.parametrize("wrong", [2**63, 1.5, "ann"])
def test_what_is_no_id_is_told_before_anything_is_sent(
    server: Streaming, visits: tacit_client.Connection, wrong: object
) -> None:
    server.rows(CREATE)
    with pytest.raises(tacit_client.Error, match="not a 64-bit integer"):
        visits.observe("visits", [1, wrong])  # type: ignore[list-item]


def test_a_refusal_has_its_code(visits: tacit_client.Connection) -> None:
    with pytest.raises(tacit_client.Refused) as caught:
        visits.observe("visits", [1])
    assert caught.value.code == "unknown_name"
