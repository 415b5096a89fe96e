"""What a client is told of a statement before it runs: its columns, and its parameters' types.

Free: nothing is charged, and no data is read. Both wires describe alike.
"""

from dataclasses import dataclass, replace

import pyarrow as pa

from cube.refusals import Refused
from planner.sql.parameter_types import nothings, parameter_types, stand_ins
from planner.sql.statements import Explain, Query, read_statement
from proxy.api.requests import QueryEngine, QueryRequest
from proxy.sources.public_table import PublicTable

_MARKS = frozenset("?$:")  # one of which every parameter begins with


@dataclass(frozen=True, slots=True)
class Description:
    """The columns of an answer, and the SQL types of the statement's parameters, by name.

    Without columns, what a value is decides what the statement means.
    """

    schema: pa.Schema | None
    parameters: dict[str, str]


def described(
    engine: QueryEngine, request: QueryRequest, public: tuple[PublicTable, ...] = ()
) -> Description:
    """Describe one statement, whose parameters may have no values yet.

    Raises
    ------
    Refused
        If it would be refused whatever the values are.
    """
    types = _parameters(engine, request, public)
    if not types:
        return Description(engine.result_schema(request), {})
    for values in (stand_ins(types), nothings(types)):
        try:
            schema = engine.result_schema(replace(request, parameters=values))
        except Refused:
            continue
        return Description(schema, types)
    return Description(None, types)


def _parameters(
    engine: QueryEngine, request: QueryRequest, public: tuple[PublicTable, ...]
) -> dict[str, str]:
    """The types of a statement's parameters; none if it is no query."""
    if not _MARKS.intersection(request.sql):
        return {}
    match read_statement(request.sql):
        case (Query() as query) | Explain(of=Query() as query):
            columns = {
                axis.name.lower(): axis.sql_type
                for info in engine.tables(request.caller)
                for axis in info.schema.axes
            }
            for table in public:
                columns |= {name.lower(): kind for name, (kind, _) in table.columns().items()}
            return parameter_types(query, columns)
        case _:
            return {}
