"""Flight SQL: the protocol of ADBC, JDBC and pyarrow clients.

Preparing a statement is free; GetFlightInfo of a statement is the call that may charge; and DoGet
returns the result that was stored then, the same bytes each time. A prepared statement is kept as
its text: it runs with the session's settings at the time when it runs. Nothing here decides what a
statement means or costs; the engine does.
"""

# ruff: noqa: ARG002, N802 - the protocol fixes the names and signatures of its methods

from collections.abc import Iterator, Sequence
from itertools import chain
from typing import Final

import grpc
import pyarrow as pa
from google.protobuf.message import Message

from cube.refusals import InvalidRequest
from planner.cache import BoundedCache
from planner.sql import Parameters, StreamStatement, SyntheticStatement, read_text
from proxy.api import Description, QueryEngine, QueryRequest, QueryResult
from proxy.feature import Feature
from proxy.identity import HEADER, caller_of, check_asks, presented_token
from proxy.monitoring import leave_no_trace
from proxy.protocol import flight_pb2, flight_pb2_grpc
from proxy.protocol import flight_sql_pb2 as sql
from proxy.sources.public import PublicTable
from proxy.synthetic_tables import NO_TABLES, SyntheticTableService
from proxy.wire.arrow_ipc import flight_messages, schema_bytes
from proxy.wire.errors import NotOffered, report_epsilon
from proxy.wire.flight.catalog import METADATA_COMMANDS, Catalog, metadata_schema, metadata_table
from proxy.wire.flight.commands import (
    PUT_BY_NAME,
    READ_ONLY,
    SESSION_ACTIONS,
    UPDATES,
    HandleStore,
    PackedResult,
    PreparedStatement,
    ingest,
    quoted,
    refuse_transaction,
    session_action,
    unwrapped,
    updated,
    wrapped,
)
from proxy.wire.sessions import Sessions
from proxy.workers import ALONE, Crew

N_RELEASES_MAX = 1_000
RELEASES_BYTES_MAX = 64 * 2**20
N_PREPARED_MAX = 10_000
PREPARED_BYTES_MAX = 16 * 2**20

_ASK_AGAIN = "Send the statement again: what was bought before is answered from history, free."

_ACTIONS: Final = {
    "CreatePreparedStatement": "Check a statement and learn its result's columns. Free.",
    "ClosePreparedStatement": "Forget a prepared statement.",
}
_NO_PARAMETERS: Final = schema_bytes(pa.schema([]))


class FlightSqlService(flight_pb2_grpc.FlightServiceServicer):
    """The Flight service of one engine.

    Parameters
    ----------
    engine : QueryEngine
        Answers the statements.
    sessions : Sessions
        The settings of the clients' sessions.
    public : tuple of PublicTable
        Tables to list beside the engine's private ones.
    synthetic : SyntheticTableService, optional
        Synthetic tables to list beside them.
    crew : Crew
        The workers of the server.
    features : sequence of Feature
        What takes the rows that are uploaded.
    """

    def __init__(  # noqa: PLR0913, PLR0917 - what a server serves
        self,
        engine: QueryEngine,
        sessions: Sessions,
        public: tuple[PublicTable, ...] = (),
        synthetic: SyntheticTableService = NO_TABLES,
        crew: Crew = ALONE,
        features: Sequence[Feature] = (),
    ) -> None:
        self._engine = engine
        self._features = tuple(features)
        self._sessions = sessions
        self._public = public
        self._synthetic = synthetic
        self._prepared: HandleStore[PreparedStatement] = HandleStore(
            "prepared statement",
            again="Prepare it again: that is free.",
            n_items_max=N_PREPARED_MAX,
            n_bytes_max=PREPARED_BYTES_MAX,
            crew=crew,
        )
        self._releases: HandleStore[tuple[flight_pb2.FlightData, ...]] = HandleStore(
            "result",
            again=_ASK_AGAIN,
            n_items_max=N_RELEASES_MAX,
            n_bytes_max=RELEASES_BYTES_MAX,
            crew=crew,
        )
        self._made: BoundedCache[QueryResult, PackedResult] = BoundedCache(
            n_entries_max=N_RELEASES_MAX, n_bytes_max=RELEASES_BYTES_MAX
        )

    def Handshake(
        self,
        request_iterator: Iterator[flight_pb2.HandshakeRequest],
        context: grpc.ServicerContext,
    ) -> Iterator[flight_pb2.HandshakeResponse]:
        """Return the token that was sent as a password, for later calls to present."""
        token = presented_token(context)
        if token is not None:
            context.send_initial_metadata(((HEADER, f"Bearer {token}"),))
        yield flight_pb2.HandshakeResponse(payload=(token or "").encode())

    def ListFlights(
        self,
        request: flight_pb2.Criteria,
        context: grpc.ServicerContext,
    ) -> Iterator[flight_pb2.FlightInfo]:
        """List nothing: results exist only after a query."""
        return iter(())

    def GetFlightInfo(
        self, request: flight_pb2.FlightDescriptor, context: grpc.ServicerContext
    ) -> flight_pb2.FlightInfo:
        """Answer a statement (this may charge), or describe the result of a metadata command."""
        command = unwrapped(request.cmd)
        if isinstance(command, METADATA_COMMANDS):
            columns = schema_bytes(metadata_schema(command))
            return _flight_info(request, columns, ticket=request.cmd, n_rows=-1)
        release = self._answered(*self._statement(command, context), context)
        packed = self._packed(release)
        key = self._releases.put(packed.messages, packed.n_bytes, caller_of(context))
        ticket = wrapped(sql.TicketStatementQuery(statement_handle=key))
        if release.receipt is not None:
            report_epsilon(context, release.receipt.epsilon_spent)
        return _flight_info(request, packed.schema, ticket, release.data.num_rows, packed.cost)

    def GetSchema(
        self,
        request: flight_pb2.FlightDescriptor,
        context: grpc.ServicerContext,
    ) -> flight_pb2.SchemaResult:
        """The columns of a result, without running the statement."""
        command = unwrapped(request.cmd)
        if isinstance(command, METADATA_COMMANDS):
            schema = metadata_schema(command)
        else:
            schema = self._promised(*self._statement(command, context), context)
        return flight_pb2.SchemaResult(schema=schema_bytes(schema))

    def DoGet(
        self,
        request: flight_pb2.Ticket,
        context: grpc.ServicerContext,
    ) -> Iterator[flight_pb2.FlightData]:
        """The stored result of a ticket, or the rows of a metadata command. Never charges."""
        command = unwrapped(request.ticket)
        if isinstance(command, METADATA_COMMANDS):
            caller = caller_of(context)
            synthetic = self._synthetic.known(caller)
            served = Catalog(
                self._engine.tables(caller), self._public, synthetic, self._engine.views()
            )
            return iter(flight_messages(metadata_table(command, served)))
        if isinstance(command, sql.TicketStatementQuery):
            return iter(self._releases.get(command.statement_handle, caller_of(context)))
        raise InvalidRequest(
            "This is not a ticket from GetFlightInfo.",
            hint="Call GetFlightInfo with the command first.",
        )

    def DoPut(
        self,
        request_iterator: Iterator[flight_pb2.FlightData],
        context: grpc.ServicerContext,
    ) -> Iterator[flight_pb2.PutResult]:
        """Bind the values of parameters, note users of a stream, or execute a statement.

        A statement is one about a synthetic table, which may charge, or about a stream; all others
        are refused.
        """
        first = next(request_iterator, flight_pb2.FlightData())
        command = unwrapped(first.flight_descriptor.cmd, PUT_BY_NAME)
        if isinstance(command, sql.CommandStatementIngest):
            leave_no_trace(context)
            messages = chain((first,), request_iterator)
            yield updated(ingest(command, messages, self._features, caller_of(context)))
            return
        check_asks(caller_of(context).role)
        if isinstance(command, sql.CommandPreparedStatementQuery):
            handle, caller = command.prepared_statement_handle, caller_of(context)
            prepared = self._prepared.get(handle, caller)
            prepared.bind(chain((first,), request_iterator))
            self._prepared.change(handle, prepared, caller)
            yield flight_pb2.PutResult()
            return
        if not isinstance(command, UPDATES):
            raise NotOffered(f"{READ_ONLY} uploads.")
        yield self._updated(command, context)

    def DoExchange(
        self,
        request_iterator: Iterator[flight_pb2.FlightData],
        context: grpc.ServicerContext,
    ) -> Iterator[flight_pb2.FlightData]:
        """Refuse."""
        raise NotOffered(f"{READ_ONLY} exchanges.")

    def DoAction(
        self,
        request: flight_pb2.Action,
        context: grpc.ServicerContext,
    ) -> Iterator[flight_pb2.Result]:
        """Prepare or close a statement; set, show or close a session."""
        if request.type in SESSION_ACTIONS:
            result = session_action(request, self._sessions, context)
            return iter((flight_pb2.Result(body=result.SerializeToString()),))
        if request.type not in _ACTIONS:
            raise NotOffered(f"{READ_ONLY} the action {quoted(request.type)}.")
        action = unwrapped(request.body)
        if type(action).__name__ != f"Action{request.type}Request":
            raise InvalidRequest(f"The action {request.type} came with another message.")
        if isinstance(action, sql.ActionCreatePreparedStatementRequest):
            return iter((flight_pb2.Result(body=wrapped(self._prepare(action, context))),))
        if isinstance(action, sql.ActionClosePreparedStatementRequest):
            self._prepared.discard(action.prepared_statement_handle, caller_of(context))
        return iter(())

    def ListActions(
        self,
        request: flight_pb2.Empty,
        context: grpc.ServicerContext,
    ) -> Iterator[flight_pb2.ActionType]:
        """The actions that DoAction supports."""
        for name, description in {**_ACTIONS, **SESSION_ACTIONS}.items():
            yield flight_pb2.ActionType(type=name, description=description)

    def _packed(self, release: QueryResult) -> PackedResult:
        """An answer as messages; made once for one that the engine gives again as it is."""
        packed = self._made.get(release)
        if packed is None:
            packed = PackedResult.of(release)
            self._made.put(release, packed, n_bytes=packed.n_bytes)
        return packed

    def _answered(
        self, text: str, parameters: Parameters, context: grpc.ServicerContext
    ) -> QueryResult:
        """The answer to a client's text, after its settings are applied to the session."""
        asked = self._sessions.run(text, context)
        if asked.reply is not None:
            return QueryResult(asked.reply, None)
        return self._engine.answer(
            QueryRequest(
                sql=asked.sql,
                target=asked.target,
                parameters=parameters,
                caller=caller_of(context),
            )
        )

    def _updated(self, command: Message, context: grpc.ServicerContext) -> flight_pb2.PutResult:
        """Execute a statement that is sent as an update; the number of rows that it made."""
        text, parameters = self._statement(command, context)
        statements = read_text(self._sessions.preview(text, context).sql)
        if [
            isinstance(one.statement, SyntheticStatement | StreamStatement) for one in statements
        ] != [True]:
            raise NotOffered(f"{READ_ONLY} {quoted(type(command).__name__)}.")
        release = self._answered(text, parameters, context)
        if release.receipt is not None:
            report_epsilon(context, release.receipt.epsilon_spent)
        made = release.data.to_pylist()[0].get("n_rows", 0) if release.data.num_rows else 0
        return updated(made)

    def _promised(
        self, text: str, parameters: Parameters, context: grpc.ServicerContext
    ) -> pa.Schema:
        """The columns of that answer; the session's settings do not change."""
        asked = self._sessions.preview(text, context)
        if asked.reply is not None:
            return asked.reply.schema
        return self._engine.result_schema(
            QueryRequest(
                sql=asked.sql,
                target=asked.target,
                parameters=parameters,
                caller=caller_of(context),
            )
        )

    def _prepare(
        self, action: sql.ActionCreatePreparedStatementRequest, context: grpc.ServicerContext
    ) -> sql.ActionCreatePreparedStatementResult:
        refuse_transaction(action)
        described = self._described(action.query, context)
        prepared = PreparedStatement(action.query, described.parameters)
        columns = b"" if described.schema is None else schema_bytes(described.schema)
        n_bytes = len(action.query.encode())
        return sql.ActionCreatePreparedStatementResult(
            prepared_statement_handle=self._prepared.put(prepared, n_bytes, caller_of(context)),
            dataset_schema=columns,
            parameter_schema=(
                schema_bytes(prepared.parameter_schema) if prepared.parameters else _NO_PARAMETERS
            ),
            is_update=False,  # otherwise the JDBC driver tries an update first
        )

    def _described(self, text: str, context: grpc.ServicerContext) -> Description:
        """The columns and parameters of a statement; the session's settings do not change."""
        asked = self._sessions.preview(text, context)
        if asked.reply is not None:
            return Description(asked.reply.schema, {})
        request = QueryRequest(sql=asked.sql, target=asked.target, caller=caller_of(context))
        return self._engine.describe(request)

    def _statement(self, command: Message, context: grpc.ServicerContext) -> tuple[str, Parameters]:
        """The text of the statement that a command names, and what is bound to its parameters."""
        if isinstance(command, sql.CommandStatementQuery | sql.CommandStatementUpdate):
            refuse_transaction(command)
            return command.query, ()
        if isinstance(
            command, sql.CommandPreparedStatementQuery | sql.CommandPreparedStatementUpdate
        ):
            prepared = self._prepared.get(command.prepared_statement_handle, caller_of(context))
            return prepared.text, prepared.bound
        raise InvalidRequest(f"{type(command).__name__} is not a statement.")


def _flight_info(
    descriptor: flight_pb2.FlightDescriptor,
    schema: bytes,
    ticket: bytes,
    n_rows: int,
    cost: bytes = b"",
) -> flight_pb2.FlightInfo:
    """One endpoint, here, holding the whole result; -1 rows means not known yet."""
    return flight_pb2.FlightInfo(
        schema=schema,
        flight_descriptor=descriptor,
        endpoint=[flight_pb2.FlightEndpoint(ticket=flight_pb2.Ticket(ticket=ticket))],
        total_records=n_rows,
        total_bytes=-1,
        ordered=True,
        app_metadata=cost,
    )
