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
    def TestIndependence(
        self, request: tacit_pb2.TestIndependenceRequest, context: grpc.ServicerContext
    ) -> tacit_pb2.TestIndependenceReply: ...
    def Marginals(
        self, request: tacit_pb2.MarginalsRequest, context: grpc.ServicerContext
    ) -> Iterator[tacit_pb2.MarginalsReply]: ...
    def BestReport(
        self, request: tacit_pb2.BestReportRequest, context: grpc.ServicerContext
    ) -> tacit_pb2.BestReportReply: ...
    def CreateSynthetic(
        self, request: tacit_pb2.CreateSyntheticRequest, context: grpc.ServicerContext
    ) -> Iterator[tacit_pb2.SyntheticProgress]: ...
    def PreviewSynthetic(
        self, request: tacit_pb2.CreateSyntheticRequest, context: grpc.ServicerContext
    ) -> tacit_pb2.PreviewSyntheticReply: ...
    def ListSynthetic(
        self, request: tacit_pb2.ListSyntheticRequest, context: grpc.ServicerContext
    ) -> tacit_pb2.ListSyntheticReply: ...
    def ReadSynthetic(
        self, request: tacit_pb2.ReadSyntheticRequest, context: grpc.ServicerContext
    ) -> Iterator[tacit_pb2.ReadSyntheticReply]: ...
    def ReportSynthetic(
        self, request: tacit_pb2.ReportSyntheticRequest, context: grpc.ServicerContext
    ) -> Iterator[tacit_pb2.ReportSyntheticReply]: ...
    def ResampleSynthetic(
        self, request: tacit_pb2.ResampleSyntheticRequest, context: grpc.ServicerContext
    ) -> tacit_pb2.SyntheticTable: ...
    def DropSynthetic(
        self, request: tacit_pb2.DropSyntheticRequest, context: grpc.ServicerContext
    ) -> tacit_pb2.DropSyntheticReply: ...
    def SyntheticLaw(
        self, request: tacit_pb2.SyntheticLawRequest, context: grpc.ServicerContext
    ) -> Iterator[tacit_pb2.SyntheticLawReply]: ...
    def Observe(
        self, request_iterator: Iterator[tacit_pb2.ObserveRequest], context: grpc.ServicerContext
    ) -> tacit_pb2.ObserveReply: ...
    def ExportStream(
        self, request: tacit_pb2.ExportStreamRequest, context: grpc.ServicerContext
    ) -> tacit_pb2.ExportStreamReply: ...
    def AuditReport(
        self, request: tacit_pb2.AuditReportRequest, context: grpc.ServicerContext
    ) -> Iterator[tacit_pb2.AuditReportReply]: ...
    def CreateCollection(
        self, request: tacit_pb2.CreateCollectionRequest, context: grpc.ServicerContext
    ) -> tacit_pb2.Collection: ...
    def InviteRespondents(
        self, request: tacit_pb2.InviteRespondentsRequest, context: grpc.ServicerContext
    ) -> tacit_pb2.InviteRespondentsReply: ...
    def ListCollections(
        self, request: tacit_pb2.ListCollectionsRequest, context: grpc.ServicerContext
    ) -> tacit_pb2.ListCollectionsReply: ...
    def CloseCollection(
        self, request: tacit_pb2.CloseCollectionRequest, context: grpc.ServicerContext
    ) -> tacit_pb2.Collection: ...
    def EstimateCollection(
        self, request: tacit_pb2.EstimateCollectionRequest, context: grpc.ServicerContext
    ) -> tacit_pb2.EstimateCollectionReply: ...
    def ReadCollection(
        self, request: tacit_pb2.ReadCollectionRequest, context: grpc.ServicerContext
    ) -> Iterator[tacit_pb2.ReadCollectionReply]: ...
    def PlanCollection(
        self, request: tacit_pb2.PlanCollectionRequest, context: grpc.ServicerContext
    ) -> tacit_pb2.PlanCollectionReply: ...
    def PlanRobustness(
        self, request: tacit_pb2.PlanRobustnessRequest, context: grpc.ServicerContext
    ) -> tacit_pb2.PlanRobustnessReply: ...

class TacitStub:
    def __init__(self, channel: grpc.Channel) -> None: ...
    Query: grpc.UnaryStreamMultiCallable[tacit_pb2.QueryRequest, tacit_pb2.QueryReply]
    Explain: grpc.UnaryUnaryMultiCallable[tacit_pb2.ExplainRequest, tacit_pb2.ExplainReply]
    Plan: grpc.UnaryUnaryMultiCallable[tacit_pb2.PlanRequest, tacit_pb2.PlanReply]
    ListTables: grpc.UnaryUnaryMultiCallable[tacit_pb2.ListTablesRequest, tacit_pb2.ListTablesReply]
    GetBudget: grpc.UnaryUnaryMultiCallable[tacit_pb2.GetBudgetRequest, tacit_pb2.GetBudgetReply]
    SetLimit: grpc.UnaryUnaryMultiCallable[tacit_pb2.SetLimitRequest, tacit_pb2.SetLimitReply]
    ListLimits: grpc.UnaryUnaryMultiCallable[tacit_pb2.ListLimitsRequest, tacit_pb2.ListLimitsReply]
    TestIndependence: grpc.UnaryUnaryMultiCallable[
        tacit_pb2.TestIndependenceRequest, tacit_pb2.TestIndependenceReply
    ]
    Marginals: grpc.UnaryStreamMultiCallable[tacit_pb2.MarginalsRequest, tacit_pb2.MarginalsReply]
    BestReport: grpc.UnaryUnaryMultiCallable[tacit_pb2.BestReportRequest, tacit_pb2.BestReportReply]
    CreateSynthetic: grpc.UnaryStreamMultiCallable[
        tacit_pb2.CreateSyntheticRequest, tacit_pb2.SyntheticProgress
    ]
    PreviewSynthetic: grpc.UnaryUnaryMultiCallable[
        tacit_pb2.CreateSyntheticRequest, tacit_pb2.PreviewSyntheticReply
    ]
    ListSynthetic: grpc.UnaryUnaryMultiCallable[
        tacit_pb2.ListSyntheticRequest, tacit_pb2.ListSyntheticReply
    ]
    ReadSynthetic: grpc.UnaryStreamMultiCallable[
        tacit_pb2.ReadSyntheticRequest, tacit_pb2.ReadSyntheticReply
    ]
    ReportSynthetic: grpc.UnaryStreamMultiCallable[
        tacit_pb2.ReportSyntheticRequest, tacit_pb2.ReportSyntheticReply
    ]
    ResampleSynthetic: grpc.UnaryUnaryMultiCallable[
        tacit_pb2.ResampleSyntheticRequest, tacit_pb2.SyntheticTable
    ]
    DropSynthetic: grpc.UnaryUnaryMultiCallable[
        tacit_pb2.DropSyntheticRequest, tacit_pb2.DropSyntheticReply
    ]
    SyntheticLaw: grpc.UnaryStreamMultiCallable[
        tacit_pb2.SyntheticLawRequest, tacit_pb2.SyntheticLawReply
    ]
    Observe: grpc.StreamUnaryMultiCallable[tacit_pb2.ObserveRequest, tacit_pb2.ObserveReply]
    ExportStream: grpc.UnaryUnaryMultiCallable[
        tacit_pb2.ExportStreamRequest, tacit_pb2.ExportStreamReply
    ]
    AuditReport: grpc.UnaryStreamMultiCallable[
        tacit_pb2.AuditReportRequest, tacit_pb2.AuditReportReply
    ]
    CreateCollection: grpc.UnaryUnaryMultiCallable[
        tacit_pb2.CreateCollectionRequest, tacit_pb2.Collection
    ]
    InviteRespondents: grpc.UnaryUnaryMultiCallable[
        tacit_pb2.InviteRespondentsRequest, tacit_pb2.InviteRespondentsReply
    ]
    ListCollections: grpc.UnaryUnaryMultiCallable[
        tacit_pb2.ListCollectionsRequest, tacit_pb2.ListCollectionsReply
    ]
    CloseCollection: grpc.UnaryUnaryMultiCallable[
        tacit_pb2.CloseCollectionRequest, tacit_pb2.Collection
    ]
    EstimateCollection: grpc.UnaryUnaryMultiCallable[
        tacit_pb2.EstimateCollectionRequest, tacit_pb2.EstimateCollectionReply
    ]
    ReadCollection: grpc.UnaryStreamMultiCallable[
        tacit_pb2.ReadCollectionRequest, tacit_pb2.ReadCollectionReply
    ]
    PlanCollection: grpc.UnaryUnaryMultiCallable[
        tacit_pb2.PlanCollectionRequest, tacit_pb2.PlanCollectionReply
    ]
    PlanRobustness: grpc.UnaryUnaryMultiCallable[
        tacit_pb2.PlanRobustnessRequest, tacit_pb2.PlanRobustnessReply
    ]

def add_TacitServicer_to_server(servicer: TacitServicer, server: grpc.Server) -> None: ...

class RespondentsServicer:
    def GetAssignment(
        self, request: tacit_pb2.GetAssignmentRequest, context: grpc.ServicerContext
    ) -> tacit_pb2.Assignment: ...
    def SubmitAnswer(
        self, request: tacit_pb2.SubmitAnswerRequest, context: grpc.ServicerContext
    ) -> tacit_pb2.SubmitAnswerReply: ...

class RespondentsStub:
    def __init__(self, channel: grpc.Channel) -> None: ...
    GetAssignment: grpc.UnaryUnaryMultiCallable[
        tacit_pb2.GetAssignmentRequest, tacit_pb2.Assignment
    ]
    SubmitAnswer: grpc.UnaryUnaryMultiCallable[
        tacit_pb2.SubmitAnswerRequest, tacit_pb2.SubmitAnswerReply
    ]

def add_RespondentsServicer_to_server(
    servicer: RespondentsServicer, server: grpc.Server
) -> None: ...

class FederationServicer:
    def DescribeHolder(
        self, request: tacit_pb2.DescribeHolderRequest, context: grpc.ServicerContext
    ) -> tacit_pb2.HolderDescription: ...
    def PriceForLedger(
        self, request: tacit_pb2.ForLedgerRequest, context: grpc.ServicerContext
    ) -> tacit_pb2.PriceForLedgerReply: ...
    def MeasureForLedger(
        self, request: tacit_pb2.ForLedgerRequest, context: grpc.ServicerContext
    ) -> tacit_pb2.MeasureForLedgerReply: ...

class FederationStub:
    def __init__(self, channel: grpc.Channel) -> None: ...
    DescribeHolder: grpc.UnaryUnaryMultiCallable[
        tacit_pb2.DescribeHolderRequest, tacit_pb2.HolderDescription
    ]
    PriceForLedger: grpc.UnaryUnaryMultiCallable[
        tacit_pb2.ForLedgerRequest, tacit_pb2.PriceForLedgerReply
    ]
    MeasureForLedger: grpc.UnaryUnaryMultiCallable[
        tacit_pb2.ForLedgerRequest, tacit_pb2.MeasureForLedgerReply
    ]

def add_FederationServicer_to_server(servicer: FederationServicer, server: grpc.Server) -> None: ...
