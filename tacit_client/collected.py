"""What a collection of randomised answers says: the share of its respondents in each cell.

A call of `tacit.v1` for what SQL has no form: all shares at once, or the likeliest ones. Free. It
goes over a gRPC channel of its own, by the bytes of its messages.
"""

import json
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, Final

import pyarrow as pa

from tacit_client import protobuf
from tacit_client.calling import channel_to, credentials_of
from tacit_client.connecting import Address, refused
from tacit_client.errors import missing_library, refusal_of_call

METHOD: Final = "/tacit.v1.Tacit/EstimateCollection"


@dataclass(frozen=True, slots=True, eq=False)
class Collected:
    """Shares of the respondents of a collection.

    Parameters
    ----------
    data : pyarrow.Table
        A row for each cell: a column for each attribute, by name; share, low, high and method. The
        likeliest shares have no intervals: the last three are NULL.
    estimator : str
        ``unbiased``, so that a small share may be below 0, or ``likeliest``.
    n_respondents : int
    confidence : float, optional
        Of each interval, like the next of all of them.
    half_width_together : float, optional
        All shares at once are this near the truth.
    combination : tuple of str
        Of the likeliest shares, like the next two: by the answers to which attributes they are.
    n_answers : int, optional
    likelihood_gap : float, optional
        By how much the logarithm of the likelihood may at most be below its greatest.
    """

    data: pa.Table
    estimator: str
    n_respondents: int
    confidence: float | None
    half_width_together: float | None
    combination: tuple[str, ...]
    n_answers: int | None
    likelihood_gap: float | None


def ask_collected(
    address: Address,
    collection: str,
    by: Sequence[str],
    *,
    confidence: float | None,
    likeliest: bool,
) -> Collected:
    """Ask for shares; see `Connection.collected`."""
    try:
        import grpc  # noqa: PLC0415 - nothing else here needs it
    except ImportError as missing:
        raise missing_library("collected()", "grpcio") from missing
    if isinstance(by, str):
        raise refused(f"Attributes are a list: [{by!r}], not {by!r}.")
    request = protobuf.written(
        [
            (1, collection),
            *((2, name) for name in by),
            (3, None if confidence is None else float(confidence)),
            (4, int(likeliest)),
        ]
    )
    with channel_to(grpc, address) as channel:
        try:
            reply = channel.unary_unary(METHOD)(request, metadata=credentials_of(address))
        except grpc.RpcError as error:
            raise refusal_of_call(error) from None
    return _collected(protobuf.fields(reply), sorted(set(by)))


def _collected(reply: dict[int, list[protobuf.Value]], names: Sequence[str]) -> Collected:
    cells = list(protobuf.messages_of(reply, 1))
    levels = [
        [json.loads(one) for one in cell.get(1, ()) if isinstance(one, bytes)] for cell in cells
    ]
    found = {name: _column([row[place] for row in levels]) for place, name in enumerate(names)}
    for number, name in ((2, "share"), (3, "low"), (4, "high")):
        # A share of 0 is left out of a message; the ends of an interval are only if there is none.
        missing = 0.0 if name == "share" else None
        values = [protobuf.double_of(cell, number) for cell in cells]
        found[name] = pa.array([missing if one is None else one for one in values], pa.float64())
    found["method"] = pa.array([protobuf.text_of(cell, 5) or None for cell in cells], pa.string())
    basis = next(protobuf.messages_of(reply, 6), None)
    of_basis = {} if basis is None else basis
    return Collected(
        data=pa.table(list(found.values()), names=list(found)),
        estimator=protobuf.text_of(reply, 4) or "",
        n_respondents=protobuf.integer_of(reply, 2) or 0,
        confidence=protobuf.double_of(reply, 3) or None,
        half_width_together=protobuf.double_of(reply, 5),
        combination=tuple(one.decode() for one in of_basis.get(1, ()) if isinstance(one, bytes)),
        n_answers=None if basis is None else protobuf.integer_of(basis, 2) or 0,
        likelihood_gap=None if basis is None else protobuf.double_of(basis, 3) or 0.0,
    )


def _column(levels: Sequence[Any]) -> pa.Array:
    """The levels of an attribute; those of several types as JSON text."""
    if len({type(one) for one in levels if one is not None}) > 1:
        return pa.array([json.dumps(one, ensure_ascii=False) for one in levels], pa.string())
    return pa.array(levels)
