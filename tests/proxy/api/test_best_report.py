"""BestReport over the wire: a count's best report under a prior, free beside the count itself."""

import math
from collections.abc import Iterator
from fractions import Fraction
from pathlib import Path
from typing import Any

import grpc
import numpy as np
import pyarrow as pa
import pytest

from inference.remap import LossTable, best_report, count_posterior
from proxy.api.requests import LOCAL, QueryRequest
from proxy.engine.engine import Engine
from proxy.protocol import tacit_pb2
from proxy.protocol.tacit_pb2_grpc import TacitStub
from proxy.shared.refusal_details import EPSILON_KEY
from tests.support.serving import channel_to
from tests.support.square_tables import square_engine

COUNT = "SELECT COUNT(*) AS n FROM rows WHERE a = 'a0'"
PRIOR = {3: 0.5, 4: 0.25, 9: 0.25}


@pytest.fixture
def engine(tmp_path: Path) -> Iterator[Engine]:
    with square_engine(tmp_path, {"a": 2, "b": 2}, np.array([[2, 1], [4, 8]])) as opened:
        yield opened


@pytest.fixture
def stub(engine: Engine) -> Iterator[TacitStub]:
    with channel_to(engine) as channel:
        yield TacitStub(channel)


def asked(
    sql: str = COUNT, prior: dict[int, float] = PRIOR, loss: str = "absolute", **how: Any
) -> tacit_pb2.BestReportRequest:
    points = [tacit_pb2.PriorPoint(value=k, probability=p) for k, p in prior.items()]
    return tacit_pb2.BestReportRequest(sql=sql, prior=points, loss=loss, **how)


def spent(engine: Engine) -> Fraction:
    return engine.budgets(LOCAL)[0].spent


def test_the_report_is_a_count_that_the_prior_allows(stub: TacitStub, engine: Engine) -> None:
    reply, call = stub.BestReport.with_call(asked())
    assert reply.report in range(3, 10)
    assert reply.expected_loss >= 0
    assert reply.receipt.epsilon_spent == float(spent(engine)) > 0
    assert dict(call.trailing_metadata())[EPSILON_KEY] == repr(reply.receipt.epsilon_spent)
    answer = engine.answer(QueryRequest(sql=COUNT)).data["n"].to_pylist()
    assert answer == [reply.answer]


def test_any_number_of_reports_costs_what_the_count_costs(stub: TacitStub, engine: Engine) -> None:
    engine.answer(QueryRequest(sql=COUNT))
    paid = spent(engine)
    for loss in ("absolute", "squared", "zero_one"):
        assert stub.BestReport(asked(loss=loss)).receipt.epsilon_spent == 0
    assert spent(engine) == paid
    assert engine.budgets(LOCAL)[0].n_measurements == 1


def test_it_is_the_report_of_least_loss_under_the_posterior(
    stub: TacitStub, engine: Engine
) -> None:
    losses = np.random.default_rng(1).uniform(0, 5, (10, 10))
    table = [tacit_pb2.LossRow(losses=row) for row in losses.tolist()]
    reply = stub.BestReport(asked(loss="table", loss_table=table))
    prior = np.zeros(10)
    prior[list(PRIOR)] = list(PRIOR.values())
    scale = engine._tables["rows"].history[0].noise_scale
    posterior = count_posterior(reply.answer, noise_scale=scale, prior=prior)
    expected = best_report(posterior, LossTable(losses))
    assert reply.report == expected.value
    assert reply.expected_loss == pytest.approx(expected.expected_loss)


def test_the_interval_under_the_prior_has_the_confidence_of_the_statement(
    stub: TacitStub, engine: Engine
) -> None:
    """Against the posterior in longhand, and all pairs of counts."""
    target = tacit_pb2.Target(half_width=5, confidence=0.8)
    reply = stub.BestReport(asked(target=target))
    scale = engine._tables["rows"].history[0].noise_scale
    weights = {k: p * math.exp(-abs(k - reply.answer) / scale) for k, p in PRIOR.items()}
    total = sum(weights.values())
    masses = {
        (low, high): sum(w for k, w in weights.items() if low <= k <= high) / total
        for low in PRIOR
        for high in PRIOR
    }
    enough = [ends for ends, mass in masses.items() if mass >= 0.8]
    expected = min(enough, key=lambda ends: (ends[1] - ends[0], -masses[ends]))
    interval = reply.interval
    assert (interval.low, interval.high) == expected
    assert interval.confidence == 0.8
    assert interval.probability == pytest.approx(masses[expected])
    assert interval.probability >= 0.8


def test_a_power_of_the_error_is_a_loss_between_two_others(stub: TacitStub) -> None:
    losses = (("absolute", None), ("power", 1.0), ("squared", None), ("power", 2.0))
    one, same, two, equal = (
        stub.BestReport(asked(loss=loss, power=power)) for loss, power in losses
    )
    assert (one.report, one.expected_loss) == (same.report, same.expected_loss)
    assert (two.report, two.expected_loss) == (equal.report, equal.expected_loss)


@pytest.mark.parametrize("loss", ["'absolute'", "'squared'", "'zero_one'", "'power', power => 3"])
def test_in_sql_it_is_the_same_report(stub: TacitStub, loss: str) -> None:
    points = ", ".join(f"({k}, {p})" for k, p in PRIOR.items())
    sql = f"SELECT COUNT(*) AS n, DP_BEST(n, loss => {loss}, prior => ({points})) AS b"
    request = tacit_pb2.QueryRequest(sql=f"{sql} FROM rows WHERE a = 'a0'")
    replies = list(stub.Query(request))
    with pa.ipc.open_stream(b"".join(one.ipc for one in replies)) as reader:
        (row,) = reader.read_all().to_pylist()
    power = 3.0 if "power" in loss else None
    reply = stub.BestReport(asked(loss=loss.split("'")[1], power=power))
    assert row == {"n": reply.answer, "b": reply.report}
    assert reply.receipt.epsilon_spent == 0


def test_who_is_sure_reports_what_he_is_sure_of(stub: TacitStub) -> None:
    reply = stub.BestReport(asked(prior={7: 1.0}))
    assert (reply.report, reply.expected_loss) == (7, 0.0)


@pytest.mark.parametrize(
    ("sql", "prior"),
    [
        ("SELECT n FROM (VALUES (3), (9), (3), (4)) AS t(n)", PRIOR),
        ("SELECT n, w FROM (VALUES (3, 2.0), (9, 1.0), (4, 1.0)) AS t(n, w)", PRIOR),
        ("SELECT n, w FROM (VALUES (3, 1), (3, 1), (9, 1), (4, 1), (5, 0)) AS t(n, w)", PRIOR),
    ],
)
def test_rows_are_a_prior(stub: TacitStub, sql: str, prior: dict[int, float]) -> None:
    by_rows = stub.BestReport(asked(prior={}, prior_sql=sql, loss="squared"))
    by_list = stub.BestReport(asked(prior=prior, loss="squared"))
    assert by_rows.report == by_list.report
    assert by_rows.expected_loss == pytest.approx(by_list.expected_loss)
    assert by_rows.interval == by_list.interval


@pytest.mark.parametrize(
    ("request_", "code"),
    [
        (asked(prior={}), "invalid_request"),
        (asked(prior={3: 0.5}), "invalid_request"),
        (asked(prior={3: 1.5, 4: -0.5}), "invalid_request"),
        (asked(prior={-1: 1.0}), "invalid_request"),
        (asked(prior={2**40: 1.0}), "too_large"),
        (asked(prior=dict.fromkeys(range(10_001), 1 / 10_001)), "too_large"),
        (asked(loss="none"), "invalid_request"),
        (asked(loss="power"), "invalid_request"),
        (asked(loss="power", power=0.5), "invalid_request"),
        (asked(loss="squared", power=2.0), "invalid_request"),
        (asked(prior_sql="SELECT 3 AS n"), "invalid_request"),
        (asked(prior={}, prior_sql="DROP TABLE rows"), "unsupported_sql"),
        (asked(prior={}, prior_sql="SELECT nothing FROM rows"), "unknown_name"),
        (asked(prior={}, prior_sql="SELECT 1 AS a, 2 AS b, 3 AS c"), "invalid_request"),
        (asked(prior={}, prior_sql="SELECT 1.5 AS n"), "invalid_request"),
        (asked(prior={}, prior_sql="SELECT -1 AS n"), "invalid_request"),
        (asked(prior={}, prior_sql="SELECT 1000001 AS n"), "invalid_request"),
        (asked(prior={}, prior_sql="SELECT NULL AS n"), "invalid_request"),
        (asked(prior={}, prior_sql="SELECT 1 AS n, 0 AS weight"), "invalid_request"),
        (asked(prior={}, prior_sql="SELECT 1 AS n, -1 AS weight"), "invalid_request"),
        (asked(prior={}, prior_sql="SELECT 1 AS n WHERE 1 = 0"), "invalid_request"),
        (
            asked(prior={}, prior_sql="SELECT table_name FROM data_privacy.budgets"),
            "invalid_request",
        ),
        (asked(prior={}, prior_sql="SELECT n FROM generate_series(1, 10001) AS s(n)"), "too_large"),
        (asked(prior={}, prior_sql="SELECT 1 AS n" + " " * 10_000), "invalid_request"),
        (asked(prior={}, prior_sql=COUNT), "invalid_request"),
        (
            asked(
                prior={},
                prior_sql="SELECT 0 AS n",
                loss="table",
                loss_table=[tacit_pb2.LossRow(losses=[0.0])],
            ),
            "invalid_request",
        ),
        (asked(loss="table"), "invalid_request"),
        (asked(loss="table", loss_table=[tacit_pb2.LossRow(losses=[1.0])]), "invalid_request"),
        (
            asked(
                prior={0: 1.0},
                loss="table",
                loss_table=[tacit_pb2.LossRow(losses=[float("nan")])],
            ),
            "invalid_request",
        ),
        (
            asked(loss="table", loss_table=[tacit_pb2.LossRow(losses=[0.0])] * 1001),
            "too_large",
        ),
        (asked("SELECT a, COUNT(*) FROM rows GROUP BY a"), "unsupported_sql"),
        (asked("SELECT COUNT(*) / 2 FROM rows"), "unsupported_sql"),
        (asked("SELECT COUNT(*), COUNT(*) FILTER (WHERE a = 'a0') FROM rows"), "unsupported_sql"),
        (asked("SELECT DP_CHI2_TEST(a, b) FROM rows"), "unsupported_sql"),
        (asked("EXPLAIN PRIVACY " + COUNT), "unsupported_sql"),
        (asked(COUNT + " LIMIT 0"), "unsupported_sql"),
        (asked("SELECT 1"), "unsupported_sql"),
        (asked("SELECT nothing FROM rows"), "unknown_name"),
    ],
)
def test_what_is_no_belief_about_a_count_is_refused_unpaid(
    stub: TacitStub, engine: Engine, request_: tacit_pb2.BestReportRequest, code: str
) -> None:
    with pytest.raises(grpc.RpcError, match=rf"\[{code}\]"):
        stub.BestReport(request_)
    assert spent(engine) == 0
