"""What a client is told of a statement before it runs: its columns, and its parameters' types.

Free: nothing is charged, and no data is read. The statement is planned with a value for each
parameter that would fit it, or with NULLs.
"""

from collections.abc import Callable
from dataclasses import replace

import pyarrow as pa

from cube.refusals import Refused, UnknownName
from planner.planner import Planner
from planner.sql.parameters import Parameter, ParameterKind, ParameterType
from planner.sql.statements import Explain, Query, read_statement
from proxy.api.requests import Description, QueryRequest

_MARKS = frozenset("?$:")  # one of which every parameter begins with


def described(
    request: QueryRequest,
    planner: Planner,
    columns: Callable[[QueryRequest], pa.Schema],
    *,
    is_catalog: bool = False,
) -> Description:
    """Describe one statement, whose parameters have no values yet.

    Parameters
    ----------
    request : QueryRequest
    planner : Planner
        Of the caller.
    columns : callable
        The columns of a request whose parameters have values.
    is_catalog : bool
        Whether it is a question to the catalog, where a stand-in may be the name of nothing.

    Raises
    ------
    Refused
        If it would be refused whatever the values are.
    """
    types = _parameter_types(request.sql, planner)
    if not types:
        return Description(columns(request), {})
    told = {one.name: one.sql_type for one in types}
    nothings = tuple(Parameter(ParameterKind.NULL, name=one.name) for one in types)
    stand_ins = tuple(one.stand_in for one in types)
    for values in (nothings,) if is_catalog else (stand_ins, nothings):
        try:
            return Description(columns(replace(request, parameters=values)), told)
        except UnknownName:
            raise
        except Refused:
            continue
    return Description(None, told)


def _parameter_types(sql: str, planner: Planner) -> tuple[ParameterType, ...]:
    """What the parameters of a statement are; none if it is no query."""
    if not _MARKS.intersection(sql):
        return ()
    match read_statement(sql):
        case Query() | Explain(of=Query()):
            return planner.parameter_types(sql)
        case _:
            return ()
