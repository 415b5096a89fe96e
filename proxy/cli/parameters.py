"""Values of parameters as they are given on the command line."""

import datetime as dt
import re
from collections.abc import Sequence
from contextlib import suppress
from typing import Final

from proxy.protocol import tacit_pb2

_NUMBER: Final = re.compile(r"[+-]?([0-9]+(\.[0-9]*)?|\.[0-9]+)([eE][+-]?[0-9]{1,2})?", re.ASCII)


def parameters_of(values: Sequence[str] | None) -> list[tacit_pb2.Parameter]:
    """The values of the option --param, in their order."""
    return [_parameter(value) for value in values or ()]


def _parameter(text: str) -> tacit_pb2.Parameter:  # noqa: PLR0911 - one for each type
    """A value by its looks; what stands between single quotes is text.

    >>> _parameter("12.5").decimal, _parameter("'12.5'").text
    ('12.5', '12.5')
    >>> _parameter("2026-01-31").date, _parameter("Oslo").text
    ('2026-01-31', 'Oslo')
    """
    if len(text) > 1 and text[0] == text[-1] == "'":
        return tacit_pb2.Parameter(text=text[1:-1].replace("''", "'"))
    if text.lower() == "null":
        return tacit_pb2.Parameter()
    if text.lower() in ("true", "false"):
        return tacit_pb2.Parameter(boolean=text.lower() == "true")
    if _NUMBER.fullmatch(text):
        return tacit_pb2.Parameter(decimal=text)
    with suppress(ValueError):
        return tacit_pb2.Parameter(date=dt.date.fromisoformat(text).isoformat())
    with suppress(ValueError):
        return tacit_pb2.Parameter(timestamp=dt.datetime.fromisoformat(text).isoformat(sep=" "))
    return tacit_pb2.Parameter(text=text)
