"""Each method of both services, called in earnest."""

from collections.abc import Callable

import grpc
from google.protobuf.any_pb2 import Any as AnyMessage
from google.protobuf.message import Message

from proxy.protocol import flight_pb2, tacit_pb2
from proxy.protocol import flight_sql_pb2 as sql
from proxy.protocol.flight_pb2_grpc import FlightServiceStub
from proxy.protocol.tacit_pb2_grpc import FederationStub, TacitStub
from tests.support.engine_fake import COUNT_ALL

Metadata = tuple[tuple[str, str], ...] | None


def packed(message: Message) -> bytes:
    envelope = AnyMessage()
    envelope.Pack(message)
    return envelope.SerializeToString()


def described(text: str) -> flight_pb2.FlightDescriptor:
    command = packed(sql.CommandStatementQuery(query=text))
    return flight_pb2.FlightDescriptor(type=flight_pb2.FlightDescriptor.CMD, cmd=command)


CALLS: dict[str, Callable[[grpc.Channel, Metadata], object]] = {
    "DescribeHolder": lambda channel, metadata: FederationStub(channel).DescribeHolder(
        tacit_pb2.DescribeHolderRequest(table="people"), metadata=metadata
    ),
    "PriceForLedger": lambda channel, metadata: FederationStub(channel).PriceForLedger(
        tacit_pb2.ForLedgerRequest(table="people"), metadata=metadata
    ),
    "MeasureForLedger": lambda channel, metadata: FederationStub(channel).MeasureForLedger(
        tacit_pb2.ForLedgerRequest(table="people"), metadata=metadata
    ),
    "Query": lambda channel, metadata: list(
        TacitStub(channel).Query(tacit_pb2.QueryRequest(sql=COUNT_ALL), metadata=metadata)
    ),
    "Explain": lambda channel, metadata: TacitStub(channel).Explain(
        tacit_pb2.ExplainRequest(sql=COUNT_ALL), metadata=metadata
    ),
    "Plan": lambda channel, metadata: TacitStub(channel).Plan(
        tacit_pb2.PlanRequest(sql=COUNT_ALL), metadata=metadata
    ),
    "TestIndependence": lambda channel, metadata: TacitStub(channel).TestIndependence(
        tacit_pb2.TestIndependenceRequest(table="people", x="sex", y="married"), metadata=metadata
    ),
    "Marginals": lambda channel, metadata: list(
        TacitStub(channel).Marginals(tacit_pb2.MarginalsRequest(), metadata=metadata)
    ),
    "BestReport": lambda channel, metadata: TacitStub(channel).BestReport(
        tacit_pb2.BestReportRequest(sql=COUNT_ALL), metadata=metadata
    ),
    "ListTables": lambda channel, metadata: TacitStub(channel).ListTables(
        tacit_pb2.ListTablesRequest(), metadata=metadata
    ),
    "GetBudget": lambda channel, metadata: TacitStub(channel).GetBudget(
        tacit_pb2.GetBudgetRequest(), metadata=metadata
    ),
    "SetLimit": lambda channel, metadata: TacitStub(channel).SetLimit(
        tacit_pb2.SetLimitRequest(), metadata=metadata
    ),
    "ListLimits": lambda channel, metadata: TacitStub(channel).ListLimits(
        tacit_pb2.ListLimitsRequest(), metadata=metadata
    ),
    "AuditReport": lambda channel, metadata: list(
        TacitStub(channel).AuditReport(tacit_pb2.AuditReportRequest(), metadata=metadata)
    ),
    "CreateSynthetic": lambda channel, metadata: list(
        TacitStub(channel).CreateSynthetic(tacit_pb2.CreateSyntheticRequest(), metadata=metadata)
    ),
    "PreviewSynthetic": lambda channel, metadata: TacitStub(channel).PreviewSynthetic(
        tacit_pb2.CreateSyntheticRequest(), metadata=metadata
    ),
    "ListSynthetic": lambda channel, metadata: TacitStub(channel).ListSynthetic(
        tacit_pb2.ListSyntheticRequest(), metadata=metadata
    ),
    "ReadSynthetic": lambda channel, metadata: list(
        TacitStub(channel).ReadSynthetic(tacit_pb2.ReadSyntheticRequest(), metadata=metadata)
    ),
    "ReportSynthetic": lambda channel, metadata: list(
        TacitStub(channel).ReportSynthetic(tacit_pb2.ReportSyntheticRequest(), metadata=metadata)
    ),
    "ResampleSynthetic": lambda channel, metadata: TacitStub(channel).ResampleSynthetic(
        tacit_pb2.ResampleSyntheticRequest(), metadata=metadata
    ),
    "DropSynthetic": lambda channel, metadata: TacitStub(channel).DropSynthetic(
        tacit_pb2.DropSyntheticRequest(), metadata=metadata
    ),
    "SyntheticLaw": lambda channel, metadata: list(
        TacitStub(channel).SyntheticLaw(tacit_pb2.SyntheticLawRequest(), metadata=metadata)
    ),
    "CreateCollection": lambda channel, metadata: TacitStub(channel).CreateCollection(
        tacit_pb2.CreateCollectionRequest(), metadata=metadata
    ),
    "InviteRespondents": lambda channel, metadata: TacitStub(channel).InviteRespondents(
        tacit_pb2.InviteRespondentsRequest(), metadata=metadata
    ),
    "ListCollections": lambda channel, metadata: TacitStub(channel).ListCollections(
        tacit_pb2.ListCollectionsRequest(), metadata=metadata
    ),
    "CloseCollection": lambda channel, metadata: TacitStub(channel).CloseCollection(
        tacit_pb2.CloseCollectionRequest(), metadata=metadata
    ),
    "EstimateCollection": lambda channel, metadata: TacitStub(channel).EstimateCollection(
        tacit_pb2.EstimateCollectionRequest(), metadata=metadata
    ),
    "ReadCollection": lambda channel, metadata: list(
        TacitStub(channel).ReadCollection(tacit_pb2.ReadCollectionRequest(), metadata=metadata)
    ),
    "PlanCollection": lambda channel, metadata: TacitStub(channel).PlanCollection(
        tacit_pb2.PlanCollectionRequest(), metadata=metadata
    ),
    "PlanRobustness": lambda channel, metadata: TacitStub(channel).PlanRobustness(
        tacit_pb2.PlanRobustnessRequest(), metadata=metadata
    ),
    "ExportStream": lambda channel, metadata: TacitStub(channel).ExportStream(
        tacit_pb2.ExportStreamRequest(), metadata=metadata
    ),
    "Observe": lambda channel, metadata: TacitStub(channel).Observe(
        iter([tacit_pb2.ObserveRequest()]), metadata=metadata
    ),
    "Handshake": lambda channel, metadata: list(
        FlightServiceStub(channel).Handshake(
            iter([flight_pb2.HandshakeRequest()]), metadata=metadata
        )
    ),
    "ListFlights": lambda channel, metadata: list(
        FlightServiceStub(channel).ListFlights(flight_pb2.Criteria(), metadata=metadata)
    ),
    "GetFlightInfo": lambda channel, metadata: FlightServiceStub(channel).GetFlightInfo(
        described(COUNT_ALL), metadata=metadata
    ),
    "GetSchema": lambda channel, metadata: FlightServiceStub(channel).GetSchema(
        described(COUNT_ALL), metadata=metadata
    ),
    "DoGet": lambda channel, metadata: list(
        FlightServiceStub(channel).DoGet(
            flight_pb2.Ticket(ticket=packed(sql.CommandGetTables())), metadata=metadata
        )
    ),
    "DoPut": lambda channel, metadata: list(
        FlightServiceStub(channel).DoPut(iter([flight_pb2.FlightData()]), metadata=metadata)
    ),
    "DoExchange": lambda channel, metadata: list(
        FlightServiceStub(channel).DoExchange(iter([flight_pb2.FlightData()]), metadata=metadata)
    ),
    "DoAction": lambda channel, metadata: list(
        FlightServiceStub(channel).DoAction(
            flight_pb2.Action(type="GetSessionOptions"), metadata=metadata
        )
    ),
    "ListActions": lambda channel, metadata: list(
        FlightServiceStub(channel).ListActions(flight_pb2.Empty(), metadata=metadata)
    ),
}
