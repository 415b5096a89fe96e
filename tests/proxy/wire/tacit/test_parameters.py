"""Values of parameters in messages of `tacit.v1`."""

import datetime as dt
from decimal import Decimal

import pytest

from cube.refusals import InvalidSql
from planner.sql.parameters import parameter_of
from proxy.protocol import tacit_pb2
from proxy.wire.tacit.messages import parameter_in


@pytest.mark.parametrize(
    ("message", "value"),
    [
        (tacit_pb2.Parameter(), None),
        (tacit_pb2.Parameter(boolean=False), False),
        (tacit_pb2.Parameter(integer=-3), -3),
        (tacit_pb2.Parameter(number=0.5), 0.5),
        (tacit_pb2.Parameter(decimal="12.50"), Decimal("12.50")),
        (tacit_pb2.Parameter(text=""), ""),
        (tacit_pb2.Parameter(date="2026-01-31"), dt.date(2026, 1, 31)),
        (
            tacit_pb2.Parameter(timestamp="2026-01-31 12:30:00"),
            dt.datetime(2026, 1, 31, 12, 30),  # noqa: DTZ001 - without a zone
        ),
    ],
)
def test_each_field_is_a_value_of_its_type(message: tacit_pb2.Parameter, value: object) -> None:
    message.name = "a"
    assert parameter_in(message) == parameter_of(value, "a")


@pytest.mark.parametrize(
    "message",
    [
        tacit_pb2.Parameter(decimal="much"),
        tacit_pb2.Parameter(date="31.1.2026"),
        tacit_pb2.Parameter(timestamp="noon"),
        tacit_pb2.Parameter(number=float("nan")),
        tacit_pb2.Parameter(integer=1, text="1"),
    ],
)
def test_what_is_no_value_is_refused(message: tacit_pb2.Parameter) -> None:
    with pytest.raises(InvalidSql, match="parameter"):
        parameter_in(message)
