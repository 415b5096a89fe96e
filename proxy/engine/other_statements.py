"""Statements that are no queries, carried out: on synthetic tables, and on facts of the server.

What is about a session alone is refused: sessions belong to the wires, which take such statements
off a text before the engine sees it.
"""

from importlib.metadata import version
from typing import Final

import pyarrow as pa

from cube.pace import take_longer
from cube.refusals import InvalidRequest
from planner.sql.server_facts import Fact, ServerFacts
from planner.sql.statements import Explain, Statement, not_answered
from planner.sql.synthetic_statements import CreateSynthetic, DropSynthetic
from proxy.api.requests import CATALOG, DB_SCHEMA, Caller, Explanation, QueryRequest, QueryResult
from proxy.engine.explain import build_explanation
from proxy.synthetic_tables.service import SyntheticTableService
from proxy.synthetic_tables.statements import (
    PREVIEW_SCHEMA,
    explain_statement,
    preview_table,
    run_statement,
    statement_schema,
)

# Clients look for the version of PostgreSQL whose SQL they may send.
VERSION: Final = f"Tacit {version('tacit-dp')}, which reads the SQL of PostgreSQL 15"


def run_other(
    desk: SyntheticTableService, statement: Statement, request: QueryRequest
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
        case Explain(of=CreateSynthetic() as explained):
            take_longer()
            return QueryResult(preview_table(desk.preview(request.caller, explained)), None)
        case ServerFacts():
            return QueryResult(_facts(statement, request.caller), None)
        case other:
            raise not_answered(other.verb)


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
        case ServerFacts():
            return build_explanation([], [])
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
        case Explain(of=CreateSynthetic()):
            return PREVIEW_SCHEMA
        case ServerFacts(columns=columns):
            return pa.schema([pa.field(name, pa.string(), nullable=False) for name, _ in columns])
        case other:
            raise not_answered(other.verb)


def _facts(statement: ServerFacts, caller: Caller) -> pa.Table:
    known = {
        Fact.VERSION: VERSION,
        Fact.SCHEMA: DB_SCHEMA,
        Fact.DATABASE: CATALOG,
        Fact.USER: caller.payer.analyst,
    }
    values = [pa.array([known[fact]], pa.string()) for _, fact in statement.columns]
    return pa.Table.from_arrays(values, schema=columns_of_other(statement))
