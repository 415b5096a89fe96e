"""Values of parameters as messages of `tacit.v1`."""

import datetime as dt
from contextlib import suppress
from decimal import Decimal, InvalidOperation
from typing import Final

from cube.refusals import InvalidSql
from planner.sql.parameters import Parameter, parameter_of
from proxy.protocol import tacit_pb2

_KINDS: Final = ("boolean", "integer", "number", "decimal", "text", "date", "timestamp")


def parameter_in(message: tacit_pb2.Parameter) -> Parameter:
    """The parameter that a message has.

    Raises
    ------
    InvalidSql
        If its text is no number, date or time, or its number is not finite.
    """
    sent = [kind for kind in _KINDS if message.HasField(kind)]
    if len(sent) > 1:
        raise InvalidSql("A parameter has several values.", hint="Send one of them.")
    if not sent:
        return parameter_of(None, message.name)
    (kind,) = sent
    value = getattr(message, kind)
    with suppress(ValueError, InvalidOperation):
        match kind:
            case "decimal":
                value = Decimal(value)
            case "date":
                value = dt.date.fromisoformat(value)
            case "timestamp":
                value = dt.datetime.fromisoformat(value)
        return parameter_of(value, message.name)
    raise InvalidSql(
        f"The value of a parameter is no {kind}.",
        hint="Write decimals as 12.50, dates as 2026-01-31, timestamps as 2026-01-31 12:30:00.",
    )
