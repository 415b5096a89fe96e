"""The numbers of a refusal, read from what the driver passes on of the server's answer."""

from collections.abc import Mapping
from dataclasses import dataclass
from fractions import Fraction
from typing import Final, NamedTuple

from tacit_client import protobuf

DETAILS_KEY: Final = "grpc-status-details-bin"
DETAIL_TYPE: Final = "tacit.v1.RefusalDetail"


class Position(NamedTuple):
    """A place in the SQL; both numbers count from 1."""

    line: int
    column: int


@dataclass(frozen=True, slots=True)
class OfferedWidth:
    """What could be asked for instead.

    Parameters
    ----------
    factor : float
        What every half-width of the request is to be multiplied by.
    half_width : float, optional
        What comes of it, if the request has only one.
    """

    factor: float
    half_width: float | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class Detail:
    """What a program is told of a refusal; what there is nothing to say of is None.

    Parameters
    ----------
    hint : str, optional
    position : Position, optional
    table : str, optional
        The private table whose budget was asked.
    epsilon_needed, epsilon_left : float, optional
        Exact: a double holds every cost there is.
    account, window : str, optional
        Whose limit it is, and how long it lasts.
    free, fitting : OfferedWidth, optional
    renews_on : str, optional
        The day on which the budget renews, if it would then cover the cost.
    epsilon_spent : float, optional
        Of a search that ended short of its target.
    free_widths : mapping of str to float
        Of such a search: the half-widths of each answer that are free now.
    """

    hint: str | None = None
    position: Position | None = None
    table: str | None = None
    epsilon_needed: float | None = None
    epsilon_left: float | None = None
    account: str | None = None
    window: str | None = None
    free: OfferedWidth | None = None
    fitting: OfferedWidth | None = None
    renews_on: str | None = None
    epsilon_spent: float | None = None
    free_widths: Mapping[str, float]


NO_DETAIL: Final = Detail(free_widths={})


def detail_in(details: Mapping[str, bytes]) -> Detail | None:
    """The detail among those of a failed call; None if there is none, or it cannot be read."""
    try:
        packed = protobuf.fields(details[DETAILS_KEY])
        name = (protobuf.text_of(packed, 1) or "").rpartition("/")[2]
        value = packed.get(2, [b""])[-1]
        if name != DETAIL_TYPE or not isinstance(value, bytes):
            return None
        return _detail(protobuf.fields(value))
    except (KeyError, ValueError, ArithmeticError):
        return None


def detail_in_status(trailers: Mapping[str, str | bytes]) -> Detail | None:
    """The detail in the trailers of a call of gRPC, within a `google.rpc.Status`."""
    status = trailers.get(DETAILS_KEY)
    try:
        packed = protobuf.fields(status) if isinstance(status, bytes) else {}
    except protobuf.NotAMessage:
        return None
    found = (detail_in({DETAILS_KEY: one}) for one in packed.get(3, ()) if isinstance(one, bytes))
    return next((one for one in found if one is not None), None)


def _detail(values: dict[int, list[protobuf.Value]]) -> Detail:
    place = next(protobuf.messages_of(values, 4), None)
    shortfall = next(protobuf.messages_of(values, 5), {})
    widths = protobuf.messages_of(values, 7)
    return Detail(
        hint=protobuf.text_of(values, 3) or None,
        position=None if place is None else Position(_whole(place, 1), _whole(place, 2)),
        table=protobuf.text_of(shortfall, 1),
        epsilon_needed=_amount(shortfall, 2),
        epsilon_left=_amount(shortfall, 3),
        account=protobuf.text_of(shortfall, 4) or None,
        window=protobuf.text_of(shortfall, 5) or None,
        free=_width(next(protobuf.messages_of(shortfall, 6), None)),
        fitting=_width(next(protobuf.messages_of(shortfall, 7), None)),
        renews_on=protobuf.text_of(shortfall, 8) or None,
        epsilon_spent=_amount(values, 6),
        free_widths={
            protobuf.text_of(one, 1) or "": protobuf.double_of(one, 2) or 0.0 for one in widths
        },
    )


def _width(values: dict[int, list[protobuf.Value]] | None) -> OfferedWidth | None:
    if values is None:
        return None
    return OfferedWidth(protobuf.double_of(values, 1) or 0.0, protobuf.double_of(values, 2))


def _amount(values: dict[int, list[protobuf.Value]], number: int) -> float | None:
    text = protobuf.text_of(values, number)
    return None if text is None else float(Fraction(text))


def _whole(values: dict[int, list[protobuf.Value]], number: int) -> int:
    return protobuf.integer_of(values, number) or 0
