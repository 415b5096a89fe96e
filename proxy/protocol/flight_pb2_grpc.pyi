# Types of the generated Flight service, by hand: the generator writes none.
# ruff: noqa: N802 - the protocol's names

from collections.abc import Iterator

import grpc

from proxy.protocol import flight_pb2

class FlightServiceServicer:
    def Handshake(
        self, request_iterator: Iterator[flight_pb2.HandshakeRequest], context: grpc.ServicerContext
    ) -> Iterator[flight_pb2.HandshakeResponse]: ...
    def ListFlights(
        self, request: flight_pb2.Criteria, context: grpc.ServicerContext
    ) -> Iterator[flight_pb2.FlightInfo]: ...
    def GetFlightInfo(
        self, request: flight_pb2.FlightDescriptor, context: grpc.ServicerContext
    ) -> flight_pb2.FlightInfo: ...
    def GetSchema(
        self, request: flight_pb2.FlightDescriptor, context: grpc.ServicerContext
    ) -> flight_pb2.SchemaResult: ...
    def DoGet(
        self, request: flight_pb2.Ticket, context: grpc.ServicerContext
    ) -> Iterator[flight_pb2.FlightData]: ...
    def DoPut(
        self, request_iterator: Iterator[flight_pb2.FlightData], context: grpc.ServicerContext
    ) -> Iterator[flight_pb2.PutResult]: ...
    def DoExchange(
        self, request_iterator: Iterator[flight_pb2.FlightData], context: grpc.ServicerContext
    ) -> Iterator[flight_pb2.FlightData]: ...
    def DoAction(
        self, request: flight_pb2.Action, context: grpc.ServicerContext
    ) -> Iterator[flight_pb2.Result]: ...
    def ListActions(
        self, request: flight_pb2.Empty, context: grpc.ServicerContext
    ) -> Iterator[flight_pb2.ActionType]: ...

class FlightServiceStub:
    def __init__(self, channel: grpc.Channel) -> None: ...
    Handshake: grpc.StreamStreamMultiCallable[
        flight_pb2.HandshakeRequest, flight_pb2.HandshakeResponse
    ]
    ListFlights: grpc.UnaryStreamMultiCallable[flight_pb2.Criteria, flight_pb2.FlightInfo]
    GetFlightInfo: grpc.UnaryUnaryMultiCallable[flight_pb2.FlightDescriptor, flight_pb2.FlightInfo]
    GetSchema: grpc.UnaryUnaryMultiCallable[flight_pb2.FlightDescriptor, flight_pb2.SchemaResult]
    DoGet: grpc.UnaryStreamMultiCallable[flight_pb2.Ticket, flight_pb2.FlightData]
    DoPut: grpc.StreamStreamMultiCallable[flight_pb2.FlightData, flight_pb2.PutResult]
    DoExchange: grpc.StreamStreamMultiCallable[flight_pb2.FlightData, flight_pb2.FlightData]
    DoAction: grpc.UnaryStreamMultiCallable[flight_pb2.Action, flight_pb2.Result]
    ListActions: grpc.UnaryStreamMultiCallable[flight_pb2.Empty, flight_pb2.ActionType]

def add_FlightServiceServicer_to_server(
    servicer: FlightServiceServicer, server: grpc.Server
) -> None: ...
