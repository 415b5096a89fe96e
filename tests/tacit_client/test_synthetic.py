"""Synthetic tables made from Python."""

import pytest

import tacit_client
from proxy.engine.engine import Engine
from tests.support.synthetic import spent


def test_a_synthetic_table_is_made_and_read_for_nothing(
    connection: tacit_client.Connection, engine: Engine
) -> None:
    made = connection.synthesize(
        "people", "made_up", epsilon=1, rows=300, seed=4, columns=["city", "member"]
    )
    assert made.epsilon_spent == float(spent(engine)) > 0
    rows = connection.sql('SELECT city, member FROM "made_up"')
    assert (len(rows), rows.receipt) == (300, None)
    with pytest.raises(tacit_client.InvalidStatement, match="name_taken"):
        connection.synthesize("people", "made_up")
    again = connection.synthesize(
        "people", "made_up", method="pairwise", columns=["city"], rows=10, replace=True
    )
    assert again.epsilon_spent == 0
    assert len(connection.sql('SELECT * FROM "made_up"')) == 10
