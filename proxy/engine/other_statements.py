"""Statements that are no queries, carried out: those about synthetic tables and streams.

What is about a session alone is refused: sessions belong to the wires, which take such statements
off a text before the engine sees it.
"""

import pyarrow as pa

from cube.pace import take_longer
from cube.refusals import InvalidRequest, NameTaken
from planner.sql.statements import Explain, Statement, not_answered
from planner.sql.stream_statements import CreateStream, DropStream
from planner.sql.synthetic_statements import CreateSynthetic, DropSynthetic
from proxy.api.requests import Caller, Explanation, QueryRequest, QueryResult
from proxy.streams.service import StreamService
from proxy.streams.statements import run_stream, stream_schema
from proxy.synthetic_tables.service import SyntheticTableService
from proxy.synthetic_tables.statements import (
    PREVIEW_SCHEMA,
    explain_statement,
    preview_table,
    run_statement,
    statement_schema,
)


def run_other(
    desk: SyntheticTableService,
    streams: StreamService,
    statement: Statement,
    request: QueryRequest,
) -> QueryResult:
    """Carry a statement out that is no query; what it gives. May charge.

    Raises
    ------
    Refused
    """
    if request.parameters:
        raise InvalidRequest(
            "Only a SELECT has parameters.", hint="Write the values into the text."
        )
    match statement:
        case CreateSynthetic() | DropSynthetic():
            take_longer()
            return run_statement(desk, statement, request)
        case CreateStream() | DropStream():
            take_longer()
            _check_name(desk, statement, request.caller)
            return run_stream(streams, statement, request.caller)
        case Explain(of=CreateSynthetic() as explained):
            take_longer()
            return QueryResult(preview_table(desk.preview(request.caller, explained)), None)
        case other:
            raise not_answered(other.verb)


def _check_name(
    desk: SyntheticTableService, statement: CreateStream | DropStream, caller: Caller
) -> None:
    """Refuse a new stream the name of a synthetic table that its creator may know of."""
    names = {record.name.casefold() for record in desk.known(caller)}
    if isinstance(statement, CreateStream) and statement.name.casefold() in names:
        raise NameTaken(
            f"{statement.name} is the name of a synthetic table.",
            hint="Take another name: this one would mean the stream from now on.",
        )


def explain_other(desk: SyntheticTableService, statement: Statement, caller: Caller) -> Explanation:
    """The most that a statement would cost that is no query. Charges nothing.

    Raises
    ------
    Refused
    """
    match statement:
        case (
            (CreateSynthetic() as asked)
            | (DropSynthetic() as asked)
            | Explain(of=CreateSynthetic() as asked)
        ):
            take_longer()
            return explain_statement(desk, asked, caller)
        case other:
            raise not_answered(other.verb)


def columns_of_other(statement: Statement) -> pa.Schema:
    """The columns of what a statement gives that is no query.

    Raises
    ------
    Refused
    """
    match statement:
        case CreateSynthetic() | DropSynthetic():
            return statement_schema(statement)
        case CreateStream() | DropStream():
            return stream_schema(statement)
        case Explain(of=CreateSynthetic()):
            return PREVIEW_SCHEMA
        case other:
            raise not_answered(other.verb)
