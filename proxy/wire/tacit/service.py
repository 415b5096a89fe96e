"""`tacit.v1`: Tacit's own service, for clients that want targets and receipts as typed messages.

Translates between protobuf messages and the engine's values; decides nothing. The calls of features
are their own.
"""

# ruff: noqa: ARG001, ARG002, N802 - the protocol fixes the names and signatures of its methods
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from typing import Final, NoReturn

import grpc

from accountant.ledger import SubjectKind
from cube.refusals import InvalidRequest, InvalidTarget
from planner.sql import FILE, ONE_STATEMENT, fallback_named
from planner.workload import RequestedTarget
from proxy.admin import LedgerAdmin, LimitChange
from proxy.api import (
    PRIVATE,
    SYNTHETIC,
    BatchRequest,
    LimitStatus,
    QueryEngine,
    QueryRequest,
    QueryResult,
    TableInfo,
    about_rows,
    axis_kind,
    describe_levels,
    exact_epsilon,
    unknown_table,
)
from proxy.feature import Feature
from proxy.identity import caller_of
from proxy.protocol import tacit_pb2, tacit_pb2_grpc
from proxy.synthetic_tables import NO_TABLES, SyntheticRecord, SyntheticTableService
from proxy.wire.arrow_ipc import stream_bytes, stream_chunks
from proxy.wire.errors import NotOffered, report_epsilon
from proxy.wire.sessions import Sessions, check_in_range
from proxy.wire.tacit.messages import (
    belief_of,
    budget_message,
    check_is_test,
    independence_reply,
    independence_sql,
    limit_message,
    marginals_replies,
    marginals_request,
    parameter_in,
    receipt_message,
    report_reply,
)
from proxy.wire.tacit.synthesis import SyntheticMethods

_CALLS: Final = {name for name in vars(tacit_pb2_grpc.TacitServicer) if name[0] != "_"}


def _not_offered(request: object, context: grpc.ServicerContext) -> NoReturn:
    raise NotOffered("This server does not offer that.")


REPORT_CHUNK_BYTES: Final = 2**20


class TacitService(SyntheticMethods):
    """The `tacit.v1` service of one engine.

    Parameters
    ----------
    engine : QueryEngine
        Answers the statements.
    sessions : Sessions
        The settings of the clients' sessions.
    admin : LedgerAdmin, optional
        For owners and auditors; if None, their calls are not offered.
    synthetic : SyntheticTableService, optional
        The synthetic tables; if None, there are none.
    features : sequence of Feature
        With their calls. One that no feature has is not offered.
    """

    def __init__(
        self,
        engine: QueryEngine,
        sessions: Sessions,
        admin: LedgerAdmin | None = None,
        synthetic: SyntheticTableService = NO_TABLES,
        features: Sequence[Feature] = (),
    ) -> None:
        SyntheticMethods.__init__(self, synthetic, sessions)
        for name in _CALLS - vars(type(self)).keys() - vars(SyntheticMethods).keys():
            setattr(self, name, _not_offered)
        for feature in features:
            for name, call in feature.calls().items():
                setattr(self, name, call)
        self._engine = engine
        self._given_admin = admin

    def Query(
        self, request: tacit_pb2.QueryRequest, context: grpc.ServicerContext
    ) -> Iterator[tacit_pb2.QueryReply]:
        """The answer as one Arrow IPC stream in pieces, then its receipt if it has one."""
        named = query_request(request)
        asked = self._sessions.run(named.sql, context)
        if asked.reply is None:
            target = named.target.over(asked.target)
            release = self._engine.answer(
                replace(named, sql=asked.sql, target=target, caller=caller_of(context))
            )
        else:
            release = QueryResult(asked.reply, None)
        if release.receipt is not None:
            report_epsilon(context, release.receipt.epsilon_spent)
        for chunk in stream_chunks(release.data):
            yield tacit_pb2.QueryReply(ipc=chunk)
        if release.receipt is not None:
            yield tacit_pb2.QueryReply(receipt=receipt_message(release.receipt))

    def Explain(
        self,
        request: tacit_pb2.ExplainRequest,
        context: grpc.ServicerContext,
    ) -> tacit_pb2.ExplainReply:
        """What a statement would cost, and why."""
        explanation = self._engine.explain(self._without_settings(request, context))
        return tacit_pb2.ExplainReply(
            ipc=stream_bytes(explanation.data),
            epsilon=float(explanation.epsilon),
            budget=None if explanation.budget is None else budget_message(explanation.budget),
        )

    def Plan(
        self, request: tacit_pb2.PlanRequest, context: grpc.ServicerContext
    ) -> tacit_pb2.PlanReply:
        """What a batch of statements costs together; measured if the request says so."""
        asked = self._without_settings(request, context)
        report = self._engine.plan_batch(
            BatchRequest(sql=asked.sql, target=asked.target, buy=request.buy, caller=asked.caller)
        )
        if report.is_bought:
            report_epsilon(context, report.epsilon)
        return tacit_pb2.PlanReply(
            ipc=stream_bytes(report.data),
            epsilon=float(report.epsilon),
            n_measurements=report.n_measurements,
            bought=report.is_bought,
            budget=budget_message(report.budget),
            notes=report.notes,
        )

    def TestIndependence(
        self, request: tacit_pb2.TestIndependenceRequest, context: grpc.ServicerContext
    ) -> tacit_pb2.TestIndependenceReply:
        """Whether two columns are independent."""
        sql = independence_sql(request)
        message = tacit_pb2.ExplainRequest(sql=sql, target=request.target)
        asked = self._without_settings(message, context)
        check_is_test(self._engine.result_schema(asked))
        release = self._engine.answer(asked)
        if release.receipt is None:
            raise InvalidRequest("A test needs a private table.", hint="Name one that is listed.")
        report_epsilon(context, release.receipt.epsilon_spent)
        return independence_reply(release, receipt_message(release.receipt))

    def Marginals(
        self, request: tacit_pb2.MarginalsRequest, context: grpc.ServicerContext
    ) -> Iterator[tacit_pb2.MarginalsReply]:
        """Tables of counts: the steps, the tables as one Arrow IPC stream, their cost."""
        named = query_request(tacit_pb2.ExplainRequest(target=request.target)).target
        settings = self._sessions.preview("", context).target
        asked, caller = marginals_request(request, named, settings), caller_of(context)
        for made in self._engine.marginals(asked, caller):
            if isinstance(made, str):
                yield tacit_pb2.MarginalsReply(step=made)
            else:
                report_epsilon(context, made.epsilon_spent)
                (budget,) = (
                    one for one in self._engine.budgets(caller) if one.table == asked.table
                )
                yield from marginals_replies(made, budget)

    def BestReport(
        self, request: tacit_pb2.BestReportRequest, context: grpc.ServicerContext
    ) -> tacit_pb2.BestReportReply:
        """One count, and the best report for it under the caller's own prior and loss."""
        message = tacit_pb2.ExplainRequest(sql=request.sql, target=request.target)
        asked = self._without_settings(message, context)
        reported, release = self._engine.best_report(asked, belief_of(request))
        if release.receipt is not None:
            report_epsilon(context, release.receipt.epsilon_spent)
        return report_reply(reported, release)

    def ListTables(
        self,
        request: tacit_pb2.ListTablesRequest,
        context: grpc.ServicerContext,
    ) -> tacit_pb2.ListTablesReply:
        """The public schema of every private and synthetic table that the caller may know of."""
        caller = caller_of(context)
        infos = self._engine.tables(caller)
        messages = {info.schema.table: _table(info) for info in infos}
        synthetic = [_synthetic(record, messages) for record in self._synthetic.known(caller)]
        return tacit_pb2.ListTablesReply(tables=[*messages.values(), *synthetic])

    def GetBudget(
        self,
        request: tacit_pb2.GetBudgetRequest,
        context: grpc.ServicerContext,
    ) -> tacit_pb2.GetBudgetReply:
        """The budget of one table, or of every table, with the limits that bind the caller."""
        budgets = self._engine.budgets(caller_of(context))
        chosen = [budget for budget in budgets if request.table in ("", budget.table)]
        if request.table and not chosen:
            raise unknown_table(request.table, [budget.table for budget in budgets])
        return tacit_pb2.GetBudgetReply(budgets=[budget_message(budget) for budget in chosen])

    def SetLimit(
        self, request: tacit_pb2.SetLimitRequest, context: grpc.ServicerContext
    ) -> tacit_pb2.SetLimitReply:
        """Change a limit; what the request leaves out stays as it is."""
        change = LimitChange(
            subject=request.subject,
            epsilon=request.epsilon if request.HasField("epsilon") else None,
            window=request.window if request.HasField("window") else None,
            per_query=request.per_query if request.HasField("per_query") else None,
            clear=request.clear,
        )
        status = self._admin.set_limit(caller_of(context), request.table, change)
        return tacit_pb2.SetLimitReply(limit=None if status is None else _listed_limit(status))

    def ListLimits(
        self, request: tacit_pb2.ListLimitsRequest, context: grpc.ServicerContext
    ) -> tacit_pb2.ListLimitsReply:
        """Every limit in force."""
        found = self._admin.limits(caller_of(context), request.table)
        return tacit_pb2.ListLimitsReply(
            tables=[
                tacit_pb2.TableLimits(table=table, limits=[_listed_limit(one) for one in limits])
                for table, limits in found.items()
            ]
        )

    def AuditReport(
        self, request: tacit_pb2.AuditReportRequest, context: grpc.ServicerContext
    ) -> Iterator[tacit_pb2.AuditReportReply]:
        """The audit report in pieces."""
        report = self._admin.report(caller_of(context), request.format)
        for start in range(0, len(report), REPORT_CHUNK_BYTES):
            yield tacit_pb2.AuditReportReply(chunk=report[start : start + REPORT_CHUNK_BYTES])

    @property
    def _admin(self) -> LedgerAdmin:
        if self._given_admin is None:
            raise NotOffered("This server answers queries; it has no ledger to administer.")
        return self._given_admin

    def _without_settings(
        self,
        message: tacit_pb2.ExplainRequest | tacit_pb2.PlanRequest,
        context: grpc.ServicerContext,
    ) -> QueryRequest:
        """The engine's request; settings at the start of its text apply to this call only."""
        named = query_request(message)
        limits = FILE if isinstance(message, tacit_pb2.PlanRequest) else ONE_STATEMENT
        asked = self._sessions.preview(named.sql, context, limits)
        if asked.reply is not None:
            raise InvalidRequest(
                "A setting costs nothing, so there is nothing to plan.",
                hint="Send it with Query, or add a SELECT after it.",
            )
        target = named.target.over(asked.target)
        return replace(named, sql=asked.sql, target=target, caller=caller_of(context))


def query_request(
    message: tacit_pb2.QueryRequest | tacit_pb2.ExplainRequest | tacit_pb2.PlanRequest,
) -> QueryRequest:
    """The engine's request for a message.

    Raises
    ------
    InvalidTarget
        If a part of the target is out of range, whatever the other parts are.
    InvalidSql
        If the value of a parameter is none.
    """
    asked = message.target
    target = RequestedTarget(
        half_width=asked.half_width if asked.HasField("half_width") else None,
        confidence=asked.confidence if asked.HasField("confidence") else None,
        epsilon_cap=exact_epsilon("epsilon", asked.epsilon) if asked.HasField("epsilon") else None,
        relative=asked.relative if asked.HasField("relative") else None,
        at_least=asked.at_least if asked.HasField("at_least") else None,
        fallback=fallback_named(asked.fallback) if asked.HasField("fallback") else None,
    )
    if target.half_width is not None and target.relative is not None:
        raise InvalidTarget("The request names both half_width and relative.", hint="Name one.")
    check_in_range(target)
    sent = () if isinstance(message, tacit_pb2.PlanRequest) else message.parameters
    return QueryRequest(sql=message.sql, target=target, parameters=tuple(map(parameter_in, sent)))


def _listed_limit(status: LimitStatus) -> tacit_pb2.LimitStatus:
    """A limit as such, not as it binds a caller: `each_analyst` has no account of its own."""
    message = limit_message(status)
    if status.subject == SubjectKind.EACH_ANALYST:
        message.ClearField("epsilon_spent")
        message.ClearField("epsilon_left")
    return message


def _table(info: TableInfo) -> tacit_pb2.Table:
    return tacit_pb2.Table(
        name=info.schema.table,
        columns=[
            tacit_pb2.Column(
                name=axis.name,
                sql_type=axis.sql_type,
                kind=axis_kind(axis),
                nullable=axis.null,
                n_levels=axis.size,
                levels=describe_levels(axis),
            )
            for axis in info.schema.axes
        ],
        default_half_width=info.default.half_width if info.kind == PRIVATE else 0.0,
        default_confidence=info.default.confidence,
        kind=info.kind,
        comment=about_rows(info.schema) if info.kind == PRIVATE else info.comment,
        default_cost="" if info.default_cost is None else str(info.default_cost),
    )


def _synthetic(record: SyntheticRecord, sources: Mapping[str, tacit_pb2.Table]) -> tacit_pb2.Table:
    """A synthetic table; its source's declaration of columns holds for its rows, too."""
    columns = {column.name: column for column in sources[record.table].columns}
    return tacit_pb2.Table(
        name=record.name,
        columns=[
            columns.get(name, tacit_pb2.Column(name=name, sql_type=kind))
            for name, kind in record.columns
        ],
        synthetic_of=record.table,
        kind=SYNTHETIC,
    )
