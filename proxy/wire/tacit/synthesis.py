"""Synthetic tables in `tacit.v1`: messages to the service's values and back; decides nothing.

A table is made in a thread of its own, while the call reports its steps. If the client disconnects,
making stops before its next step: what was charged stays charged, and is known from then on.
"""

# ruff: noqa: N802 - the protocol fixes the names and signatures of its methods

import math
import threading
from collections.abc import Callable, Iterator
from fractions import Fraction
from queue import SimpleQueue
from typing import Final

import grpc

from planner.sql import CreateSynthetic
from proxy.api import exact_epsilon
from proxy.identity import caller_of
from proxy.protocol import tacit_pb2, tacit_pb2_grpc
from proxy.synthetic_tables import (
    Evaluation,
    LawQuestion,
    Progress,
    SyntheticRecord,
    SyntheticTableService,
    Watch,
    check_cap,
    receipt_of,
)
from proxy.wire.arrow_ipc import stream_chunks
from proxy.wire.errors import report_epsilon
from proxy.wire.sessions import Sessions
from proxy.wire.tacit.messages import budget_message, receipt_message

REPORT_CHUNK_BYTES: Final = 2**20


class ClientGoneError(grpc.RpcError):
    """The client no longer waits for the table."""


class SyntheticMethods(tacit_pb2_grpc.TacitServicer):
    """The methods of `tacit.v1` for synthetic tables.

    Parameters
    ----------
    sessions : Sessions
        The settings of the clients' sessions: a cap on epsilon applies here, too.
    """

    def __init__(self, synthetic: SyntheticTableService, sessions: Sessions) -> None:
        self._synthetic = synthetic
        self._sessions = sessions

    def CreateSynthetic(
        self, request: tacit_pb2.CreateSyntheticRequest, context: grpc.ServicerContext
    ) -> Iterator[tacit_pb2.SyntheticProgress]:
        """Make a table, and report every step."""
        order, caller = _order(request), caller_of(context)
        check_cap(order, self._sessions.preview("", context).target.epsilon_cap)
        for told in _told(lambda watch: self._synthetic.create(caller, order, watch), context):
            if isinstance(told, Progress):
                report_epsilon(context, told.epsilon_spent)
                yield tacit_pb2.SyntheticProgress(
                    step=told.name, done=told.done, epsilon_spent=float(told.epsilon_spent)
                )
            else:
                report_epsilon(context, told.epsilon_spent)
                receipt = receipt_of(told, self._synthetic.budget(caller, told.table))
                yield tacit_pb2.SyntheticProgress(
                    step="done",
                    done=1.0,
                    epsilon_spent=float(told.epsilon_spent),
                    table=table_message(told),
                    receipt=receipt_message(receipt),
                )

    def PreviewSynthetic(
        self, request: tacit_pb2.CreateSyntheticRequest, context: grpc.ServicerContext
    ) -> tacit_pb2.PreviewSyntheticReply:
        """The most that a table would cost."""
        caller, order = caller_of(context), _order(request)
        steps = self._synthetic.preview(caller, order)
        budget = self._synthetic.budget(caller, order.table)
        return tacit_pb2.PreviewSyntheticReply(
            steps=[
                tacit_pb2.PlannedSyntheticStep(
                    name=step.name, epsilon=float(step.epsilon), n_tables=step.n_tables
                )
                for step in steps
            ],
            epsilon=float(sum((step.epsilon for step in steps), Fraction(0))),
            budget=None if budget is None else budget_message(budget),
        )

    def ListSynthetic(
        self, request: tacit_pb2.ListSyntheticRequest, context: grpc.ServicerContext
    ) -> tacit_pb2.ListSyntheticReply:
        """The tables that the caller may know of, or one of them."""
        caller = caller_of(context)
        found = self._synthetic.listed(caller)
        if request.name:
            found = (self._synthetic.find(caller, request.name),)
        return tacit_pb2.ListSyntheticReply(tables=map(table_message, found))

    def ReadSynthetic(
        self, request: tacit_pb2.ReadSyntheticRequest, context: grpc.ServicerContext
    ) -> Iterator[tacit_pb2.ReadSyntheticReply]:
        """The rows of a table, or the model that they were drawn from."""
        if request.model:
            content = self._synthetic.model_file(caller_of(context), request.name)
            for start in range(0, len(content), REPORT_CHUNK_BYTES):
                chunk = content[start : start + REPORT_CHUNK_BYTES]
                yield tacit_pb2.ReadSyntheticReply(model=chunk)
            return
        record = self._synthetic.find(caller_of(context), request.name)
        for chunk in stream_chunks(self._synthetic.rows(record)):
            yield tacit_pb2.ReadSyntheticReply(ipc=chunk)

    def ReportSynthetic(
        self, request: tacit_pb2.ReportSyntheticRequest, context: grpc.ServicerContext
    ) -> Iterator[tacit_pb2.ReportSyntheticReply]:
        """The report of a table."""
        page = self._synthetic.report(caller_of(context), request.name)
        for start in range(0, len(page), REPORT_CHUNK_BYTES):
            chunk = page[start : start + REPORT_CHUNK_BYTES]
            yield tacit_pb2.ReportSyntheticReply(chunk=chunk)

    def ResampleSynthetic(
        self, request: tacit_pb2.ResampleSyntheticRequest, context: grpc.ServicerContext
    ) -> tacit_pb2.SyntheticTable:
        """Another table drawn from the same model."""
        return table_message(
            self._synthetic.resample(
                caller_of(context),
                request.table,
                request.name,
                request.rows if request.HasField("rows") else None,
                request.seed if request.HasField("seed") else None,
            )
        )

    def DropSynthetic(
        self, request: tacit_pb2.DropSyntheticRequest, context: grpc.ServicerContext
    ) -> tacit_pb2.DropSyntheticReply:
        """Drop a table."""
        self._synthetic.drop(caller_of(context), request.name)
        return tacit_pb2.DropSyntheticReply()

    def SyntheticLaw(
        self, request: tacit_pb2.SyntheticLawRequest, context: grpc.ServicerContext
    ) -> Iterator[tacit_pb2.SyntheticLawReply]:
        """The law of some columns given values of others, and last how it was obtained."""
        given = tuple((one.column, one.value) for one in request.given)
        question = LawQuestion(tuple(request.of), given)
        law = self._synthetic.law(caller_of(context), request.name, question)
        for chunk in stream_chunks(law.data):
            yield tacit_pb2.SyntheticLawReply(ipc=chunk)
        basis = tacit_pb2.SyntheticLawBasis(way=law.way, n_rows=law.n_rows)
        yield tacit_pb2.SyntheticLawReply(basis=basis)


def table_message(record: SyntheticRecord) -> tacit_pb2.SyntheticTable:
    """A table's record as a message."""
    return tacit_pb2.SyntheticTable(
        name=record.name,
        source=record.table,
        method=record.method,
        rows=record.n_rows,
        epsilon=float(record.epsilon),
        epsilon_spent=float(record.epsilon_spent),
        delta=None if record.delta is None else float(record.delta),
        seed=record.seed,
        columns=[
            tacit_pb2.SyntheticColumn(name=name, sql_type=kind, unknown=name in record.unknown)
            for name, kind in record.columns
        ],
        model=record.model,
        incomplete=record.incomplete,
        made_by=record.made_by,
        made_at=record.made_at,
        n_charges=record.n_charges,
        respondents=record.n_respondents,
        options=record.options,
        evaluation=_evaluation_message(record.evaluation),
    )


def _evaluation_message(evaluation: Evaluation | None) -> tacit_pb2.SyntheticEvaluation | None:
    if evaluation is None:
        return None
    return tacit_pb2.SyntheticEvaluation(
        estimate=evaluation.estimate,
        half_width=evaluation.half_width,
        pairs=evaluation.n_pairs,
        pairs_all=evaluation.n_pairs_all,
        epsilon_spent=float(evaluation.epsilon_spent),
        is_bound=evaluation.is_bound,
    )


def _order(request: tacit_pb2.CreateSyntheticRequest) -> CreateSynthetic:
    return CreateSynthetic(
        name=request.name,
        table=request.table,
        is_replacing=request.replace,
        epsilon=exact_epsilon("epsilon", request.epsilon or "0"),
        delta=exact_epsilon("delta", request.delta) if request.HasField("delta") else None,
        method=request.method or None,
        n_rows=request.rows if request.HasField("rows") else None,
        seed=request.seed if request.HasField("seed") else None,
        columns=tuple(request.columns),
        score=request.score or None,
        degree=request.degree if request.HasField("degree") else None,
        hierarchies=request.hierarchies if request.HasField("hierarchies") else None,
        theta=_theta(request.theta) if request.HasField("theta") else None,
        structure_share=(
            exact_epsilon("structure_share", request.structure_share)
            if request.HasField("structure_share")
            else None
        ),
        groups=tuple(request.groups),
        structure=request.structure or None,
        votes=request.votes or None,
        clip=request.clip or None,
        smoothing=request.smoothing or None,
        public_rows=request.public_rows if request.HasField("public_rows") else None,
        holders=request.holders or None,
        target=tuple(request.target),
        workload=request.workload if request.HasField("workload") else None,
        evaluate=exact_epsilon("evaluate", request.evaluate or "0"),
    )


def _theta(number: float) -> Fraction:
    """A number as it is; one that is none is out of every range."""
    return Fraction(number) if math.isfinite(number) else Fraction(0)


def _told(
    create: Callable[[Watch], SyntheticRecord], context: grpc.ServicerContext
) -> Iterator[Progress | SyntheticRecord]:
    """The steps of making a table in another thread, and then the table."""
    said: SimpleQueue[Progress | SyntheticRecord | BaseException] = SimpleQueue()

    def watch(step: Progress) -> None:
        if not context.is_active():
            raise ClientGoneError
        said.put(step)

    def run() -> None:
        try:
            said.put(create(watch))
        except BaseException as error:  # noqa: BLE001 - raised again in the waiting thread
            said.put(error)

    thread = threading.Thread(target=run, name="tacit-synthesis")
    thread.start()
    try:
        while True:
            told = said.get()
            if isinstance(told, BaseException):
                raise told
            yield told
            if isinstance(told, SyntheticRecord):
                return
    finally:
        thread.join()  # it ends at its next step if the client is gone
