"""Synthetic tables made from Python."""

import pytest

import tacit_client
from proxy.api.requests import LOCAL
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


def test_a_table_for_a_target_and_a_workload_is_evaluated(
    connection: tacit_client.Connection, engine: Engine
) -> None:
    made = connection.synthesize(
        "people",
        "made_up",
        epsilon=1,
        columns=["city", "member"],
        target=["member"],
        workload="SELECT COUNT(*) FROM people WHERE city = 'Oslo' GROUP BY member",
        evaluate="0.1",
    )
    assert "(1 of 1 pairs)" in made.to_arrow()["evaluated"][0].as_py()
    (record,) = engine.synthetic.known(LOCAL)
    assert (record.target, record.workload) == (("member",), (("city", "member"),))
