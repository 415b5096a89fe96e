"""Where the history is private, an analyst is told the same over the wire whatever others asked.

Two servers with the same data, without noise, so that the numbers themselves are the same: on one
of them another analyst has asked a lot, on the other nobody has asked anything.
"""

import json
from collections.abc import Callable, Sequence
from pathlib import Path

import grpc
import pyarrow as pa
from google.protobuf.any_pb2 import Any as AnyMessage
from google.protobuf.json_format import MessageToDict
from pyarrow import flight

from proxy.api.requests import Caller
from proxy.config.sharing import Sharing
from proxy.engine.engine import Engine
from proxy.identity.presented import PresentedCredentials
from proxy.protocol import flight_sql_pb2, tacit_pb2
from proxy.protocol.tacit_pb2_grpc import TacitStub
from tests.support.private_history import DP, EVE, told, world
from tests.support.serving import serving

SHOWN = (
    "DP_INTERVAL_LOW(v) AS low, DP_INTERVAL_HIGH(v, 0.999) AS high, DP_STDERR(v) AS e, "
    "DP_COST(v) AS c, DP_SOURCE(v) AS s"
)
STATEMENTS = (
    "SELECT COUNT(*) AS n FROM people",
    "SELECT COUNT(*) AS n FROM people",
    "SELECT COUNT(*) AS n FROM people WHERE city = 'Paris' AND age >= 42",
    "SELECT COUNT(*) + 3 AS n FROM people WHERE false",
    "SELECT city, COUNT(*) AS n FROM people GROUP BY city HAVING COUNT(*) > 100 ORDER BY n DESC",
    "SELECT city, COUNT(*) AS n FROM people GROUP BY city LIMIT 0",
    f"{DP}(half_width => 40, confidence => 0.9) SUM(visits) AS v, {SHOWN} FROM people",
    "SELECT AVG(visits) AS a, DP_INTERVAL_LOW(a) AS low, DP_STDERR(a) AS e FROM people",
    "SELECT VARIANCE(visits) AS v, DP_INTERVAL_HIGH(v) AS high FROM people",
    "SELECT MEDIAN(visits) AS m, DP_INTERVAL_LOW(m) AS low FROM people",
    f"{DP}(relative => 0.05) COUNT(*) AS n FROM people WHERE city = 'Rome'",
    f"{DP}(half_width => 2) AVG(visits) AS a FROM people WHERE city = 'Rome'",
    f"{DP}(consistency => 'exact') city, COUNT(*) AS n FROM people GROUP BY ROLLUP (city)",
    "EXPLAIN PRIVACY SELECT COUNT(*) FROM people WHERE city = 'Paris' AND age >= 42",
    "EXPLAIN PRIVACY SELECT city, COUNT(*), AVG(visits) FROM people GROUP BY city",
    "SELECT statistic, level FROM (SELECT DP_CHI2_TEST(city, member) FROM people)",
    f"{DP}(epsilon => 0) COUNT(*) FROM people WHERE city = 'Paris' AND age >= 42",
    f"{DP}(epsilon => 0.01) COUNT(*) FROM people WHERE member",
    f"{DP}(epsilon => 0.2) COUNT(*) FROM people WHERE member",
    f"{DP}(epsilon => 0.03, relative => 0.05) COUNT(*) AS n FROM people WHERE city = 'Oslo'",
    f"{DP}(half_width => 0.001) COUNT(*) FROM people",
    f"{DP}(half_width => 0.001, fallback => 'model') COUNT(*) FROM people",
    "SELECT * FROM data_privacy.budgets",
    "SELECT * FROM data_privacy.losses",
    "SELECT * FROM data_privacy.history",
    "SELECT * FROM estimate_remaining_dp_aggregates('people')",
    "CREATE SYNTHETIC TABLE made FROM people WITH (epsilon => 0)",
    "EXPLAIN PRIVACY CREATE SYNTHETIC TABLE made FROM people WITH (epsilon => 1)",
)
BATCH = "SELECT COUNT(*) FROM people WHERE member; SELECT COUNT(*) AS n FROM people"


class EverybodyIs:
    """Everybody is one caller, whatever they show."""

    def __init__(self, caller: Caller) -> None:
        self._caller = caller

    def identify(self, presented: PresentedCredentials) -> Caller:  # noqa: ARG002 - the protocol names it
        return self._caller


def queried(stub: TacitStub, sql: str) -> object:
    call = stub.Query(tacit_pb2.QueryRequest(sql=sql))
    replies = list(call)
    data = pa.ipc.open_stream(b"".join(reply.ipc for reply in replies)).read_all()
    carried = {key.decode(): json.loads(text) for key, text in (data.schema.metadata or {}).items()}
    trailing = {key: value for key, value in call.trailing_metadata() if "epsilon" in key}
    return (data.to_pylist(), carried, MessageToDict(replies[-1].receipt), trailing)


def flown(client: flight.FlightClient, sql: str) -> object:
    descriptor = flight.FlightDescriptor.for_command(_statement(sql))
    info = client.get_flight_info(descriptor)
    reader = client.do_get(info.endpoints[0].ticket)
    metadata = [chunk.app_metadata and chunk.app_metadata.to_pybytes() for chunk in reader]
    return (info.total_records, getattr(info, "app_metadata", b""), metadata)


def _statement(sql: str) -> bytes:
    envelope = AnyMessage()
    envelope.Pack(flight_sql_pb2.CommandStatementQuery(query=sql))
    return envelope.SerializeToString()


def everything_seen(engine: Engine, statements: Sequence[str]) -> list[object]:
    """What Eve is told over the wire, in answer to one thing after the other."""
    prior = [tacit_pb2.PriorPoint(value=k, probability=0.001) for k in range(1000)]
    paris = "SELECT COUNT(*) FROM people WHERE city = 'Paris' AND age >= 42"
    target = tacit_pb2.Target(half_width=30)
    with (
        serving(engine, authenticator=EverybodyIs(EVE), synthetic=engine.synthetic) as address,
        grpc.insecure_channel(address) as channel,
        flight.connect(f"grpc://{address}") as client,
    ):
        stub = TacitStub(channel)
        calls: list[Callable[[], object]] = [
            lambda: MessageToDict(stub.GetBudget(tacit_pb2.GetBudgetRequest())),
            lambda: explained(stub, STATEMENTS[0]),
            lambda: planned(stub, tacit_pb2.PlanRequest(sql=BATCH, buy=True, target=capped(0.01))),
            *(lambda sql=sql: queried(stub, sql) for sql in statements),
            *(lambda sql=sql: flown(client, sql) for sql in STATEMENTS[:3]),
            lambda: planned(stub, tacit_pb2.PlanRequest(sql=BATCH, buy=True)),
            lambda: MessageToDict(
                stub.BestReport(
                    tacit_pb2.BestReportRequest(
                        sql=paris, prior=prior, loss="squared", target=target
                    )
                )
            ),
            lambda: MessageToDict(stub.ListTables(tacit_pb2.ListTablesRequest())),
            lambda: [
                MessageToDict(one)
                for one in stub.Marginals(tacit_pb2.MarginalsRequest(table="people"))
            ],
            lambda: MessageToDict(stub.GetBudget(tacit_pb2.GetBudgetRequest())),
        ]
        return [told(call) for call in calls]


def capped(epsilon: float) -> tacit_pb2.Target:
    return tacit_pb2.Target(epsilon=str(epsilon))


def explained(stub: TacitStub, sql: str) -> object:
    reply = stub.Explain(tacit_pb2.ExplainRequest(sql=sql))
    return (_rows(reply.ipc), reply.epsilon, MessageToDict(reply.budget))


def planned(stub: TacitStub, request: tacit_pb2.PlanRequest) -> object:
    reply, call = stub.Plan.with_call(request)
    trailing = {key: value for key, value in call.trailing_metadata() if "epsilon" in key}
    return (_rows(reply.ipc), reply.epsilon, reply.n_measurements, reply.bought, trailing)


def _rows(ipc: bytes) -> object:
    return pa.ipc.open_stream(ipc).read_all().to_pylist()


def seen_in_both(
    folder: Path, sharing: Sharing, statements: Sequence[str]
) -> list[tuple[object, object]]:
    seen = []
    for is_busy in (False, True):
        with world(folder / str(is_busy), is_busy=is_busy, sharing=sharing) as engine:
            seen.append(everything_seen(engine, statements))
    return list(zip(*seen, strict=True))


def test_what_others_asked_is_seen_nowhere(tmp_path: Path) -> None:
    for quiet, busy in seen_in_both(tmp_path, Sharing.PRIVATE, STATEMENTS):
        assert busy == quiet


def test_the_comparison_has_teeth(tmp_path: Path) -> None:
    """With a shared history nearly everything differs, so that being the same means something."""
    statements = [sql for sql in STATEMENTS if "Paris" in sql or "data_privacy" in sql]
    pairs = seen_in_both(tmp_path, Sharing.SHARED, statements)
    differ = [quiet != busy for quiet, busy in pairs]
    assert sum(differ) > len(differ) * 2 / 3
