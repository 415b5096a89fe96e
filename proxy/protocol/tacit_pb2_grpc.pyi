# Types of the generated Tacit service, by hand: the generator writes none.
# ruff: noqa: N802 - the protocol's names

from collections.abc import Iterator

import grpc

from proxy.protocol import tacit_pb2

class TacitServicer:
    def Query(
        self, request: tacit_pb2.QueryRequest, context: grpc.ServicerContext
    ) -> Iterator[tacit_pb2.QueryReply]: ...
    def Explain(
        self, request: tacit_pb2.ExplainRequest, context: grpc.ServicerContext
    ) -> tacit_pb2.ExplainReply: ...
    def Plan(
        self, request: tacit_pb2.PlanRequest, context: grpc.ServicerContext
    ) -> tacit_pb2.PlanReply: ...
    def ListTables(
        self, request: tacit_pb2.ListTablesRequest, context: grpc.ServicerContext
    ) -> tacit_pb2.ListTablesReply: ...
    def GetBudget(
        self, request: tacit_pb2.GetBudgetRequest, context: grpc.ServicerContext
    ) -> tacit_pb2.GetBudgetReply: ...
    def SetLimit(
        self, request: tacit_pb2.SetLimitRequest, context: grpc.ServicerContext
    ) -> tacit_pb2.SetLimitReply: ...
    def ListLimits(
        self, request: tacit_pb2.ListLimitsRequest, context: grpc.ServicerContext
    ) -> tacit_pb2.ListLimitsReply: ...
    def AuditReport(
        self, request: tacit_pb2.AuditReportRequest, context: grpc.ServicerContext
    ) -> Iterator[tacit_pb2.AuditReportReply]: ...

class TacitStub:
    def __init__(self, channel: grpc.Channel) -> None: ...
    Query: grpc.UnaryStreamMultiCallable[tacit_pb2.QueryRequest, tacit_pb2.QueryReply]
    Explain: grpc.UnaryUnaryMultiCallable[tacit_pb2.ExplainRequest, tacit_pb2.ExplainReply]
    Plan: grpc.UnaryUnaryMultiCallable[tacit_pb2.PlanRequest, tacit_pb2.PlanReply]
    ListTables: grpc.UnaryUnaryMultiCallable[tacit_pb2.ListTablesRequest, tacit_pb2.ListTablesReply]
    GetBudget: grpc.UnaryUnaryMultiCallable[tacit_pb2.GetBudgetRequest, tacit_pb2.GetBudgetReply]
    SetLimit: grpc.UnaryUnaryMultiCallable[tacit_pb2.SetLimitRequest, tacit_pb2.SetLimitReply]
    ListLimits: grpc.UnaryUnaryMultiCallable[tacit_pb2.ListLimitsRequest, tacit_pb2.ListLimitsReply]
    AuditReport: grpc.UnaryStreamMultiCallable[
        tacit_pb2.AuditReportRequest, tacit_pb2.AuditReportReply
    ]

def add_TacitServicer_to_server(servicer: TacitServicer, server: grpc.Server) -> None: ...
