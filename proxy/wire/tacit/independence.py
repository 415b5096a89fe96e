"""The messages of `TestIndependence` as SQL, and its answer as a message.

The call is a typed way to write one SELECT: its meaning, cost and refusals are that SELECT's.
"""

import math

import pyarrow as pa

from cube.refusals import InvalidRequest, InvalidTarget
from planner.lowering.independence import FUNCTION, GIVEN
from proxy.api.requests import QueryResult
from proxy.engine.independence import TESTED_SCHEMA
from proxy.protocol import tacit_pb2


def independence_sql(request: tacit_pb2.TestIndependenceRequest) -> str:
    """The SELECT that a request stands for.

    >>> request = tacit_pb2.TestIndependenceRequest(table="t", x="a", y="b", given=["c"])
    >>> print(independence_sql(request))
    SELECT WITH DIFFERENTIAL_PRIVACY OPTIONS() DP_CHI2_TEST(a, b, GIVEN => (c)) FROM "t"

    Raises
    ------
    InvalidRequest, InvalidTarget
        If a required part is empty, or the level is not a number.
    """
    for name in ("table", "x", "y"):
        if not getattr(request, name).strip():
            raise InvalidRequest(
                f"The request names no {name}.", hint="A test needs x, y and a table."
            )
    options = []
    if request.HasField("level"):
        if not math.isfinite(request.level):
            raise InvalidTarget("level must be between 0 and 1.", hint="The usual value is 0.05.")
        options.append(f"level => {request.level:.17g}")
    if request.HasField("replicates"):
        options.append(f"replicates => {request.replicates}")
    given = f", {GIVEN} => ({', '.join(request.given)})" if request.given else ""
    table = '"' + request.table.replace('"', '""') + '"'
    # On lines of its own, so that a comment at its end does not swallow the rest.
    where = f" WHERE (\n{request.where}\n)" if request.where.strip() else ""
    clause = f"WITH DIFFERENTIAL_PRIVACY OPTIONS({', '.join(options)})"
    return f"SELECT {clause} {FUNCTION}({request.x}, {request.y}{given}) FROM {table}{where}"  # noqa: S608 - the caller's own SQL, planned like any


def check_is_test(schema: pa.Schema) -> None:
    """Refuse, before it is charged, a request whose texts make it a SELECT other than a test."""
    if schema.names != TESTED_SCHEMA.names:
        raise InvalidRequest(
            "Each of x, y, given and where must be a single expression.",
            hint="Send other statements as SQL with Query.",
        )


def independence_reply(
    release: QueryResult, receipt: tacit_pb2.Receipt
) -> tacit_pb2.TestIndependenceReply:
    """The outcome as a message."""
    (row,) = release.data.to_pylist()
    return tacit_pb2.TestIndependenceReply(**row, receipt=receipt)
