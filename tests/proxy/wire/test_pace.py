"""Over the wire a statement ends at its deadline, or with its client; a job may take longer."""

import threading
from collections.abc import Iterator

import grpc
import pytest

from cube.pace import checkpoint, seconds_left
from cube.refusals import TooSlow
from proxy.api.requests import BatchReport, BatchRequest, QueryRequest, QueryResult
from proxy.protocol import tacit_pb2
from proxy.protocol.tacit_pb2_grpc import TacitStub
from proxy.scheduling.fair_share import CallTimes
from proxy.shared.refusal_details import CODE_KEY
from tests.support.engine_fake import COUNT_ALL, CannedEngine
from tests.support.serving import serving

STATEMENT_SECONDS, JOB_SECONDS = 2.0, 1000.0


class EndlessEngine(CannedEngine):
    """Works on every answer until it is told to end; says how it ended."""

    def __init__(self) -> None:
        super().__init__()
        self.begun, self.ended = threading.Event(), threading.Event()
        self.job_seconds = 0.0

    def answer(self, request: QueryRequest) -> QueryResult:
        self.begun.set()
        try:
            while True:
                checkpoint()
        except TooSlow:
            self.ended.set()
            raise
        return super().answer(request)

    def plan_batch(self, request: BatchRequest) -> BatchReport:
        self.job_seconds = seconds_left(10 * JOB_SECONDS)
        return super().plan_batch(request)


@pytest.fixture
def engine() -> EndlessEngine:
    return EndlessEngine()


@pytest.fixture
def stub(engine: EndlessEngine) -> Iterator[TacitStub]:
    times = CallTimes(statement=STATEMENT_SECONDS, job=JOB_SECONDS)
    with serving(engine, times=times) as address, grpc.insecure_channel(address) as channel:
        yield TacitStub(channel)


def test_a_statement_ends_at_its_deadline(stub: TacitStub, engine: EndlessEngine) -> None:
    with pytest.raises(grpc.RpcError) as failure:
        list(stub.Query(tacit_pb2.QueryRequest(sql=COUNT_ALL), timeout=60))
    assert failure.value.code() is grpc.StatusCode.DEADLINE_EXCEEDED
    trailers = {one.key: str(one.value) for one in failure.value.trailing_metadata() or ()}
    assert trailers[CODE_KEY] == TooSlow.code
    assert "2 seconds" in str(failure.value.details())
    assert engine.ended.is_set()


def test_nobody_works_on_for_a_client_that_hung_up(engine: EndlessEngine) -> None:
    times = CallTimes(statement=1000.0, job=1000.0)
    with serving(engine, times=times) as address, grpc.insecure_channel(address) as channel:
        call = TacitStub(channel).Query(tacit_pb2.QueryRequest(sql=COUNT_ALL), timeout=60)
        assert engine.begun.wait(30)
        call.cancel()
        assert engine.ended.wait(30)


def test_a_job_has_a_time_of_its_own(stub: TacitStub, engine: EndlessEngine) -> None:
    stub.Plan(tacit_pb2.PlanRequest(sql=COUNT_ALL), timeout=60)
    assert STATEMENT_SECONDS < engine.job_seconds <= JOB_SECONDS
