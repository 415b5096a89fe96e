"""A refusal as a message: packed into the trailer that gRPC clients look for details in, and out.

The trailer `grpc-status-details-bin` holds a `google.rpc.Status`: the code and the text that the
call ends with anyway, and one `tacit.v1.RefusalDetail`. Trailers share about 8 KiB with the text,
so that what does not fit is left out: first the sentences, which the text has, then the lists.

Decides nothing about what a caller may learn: the numbers of a refusal were decided on before.
"""

from collections.abc import Iterator, Mapping
from typing import Final

import grpc
from google.protobuf.message import DecodeError
from google.rpc.status_pb2 import Status

from cube.refusals import NotCovered, OfferedWidth, Refused, Shortfall, TargetNotReached
from proxy.protocol import tacit_pb2
from proxy.shared.amounts import exact_text

CODE_KEY: Final = "tacit-code"  # trailing metadata: the stable code of a refusal
EPSILON_KEY: Final = "tacit-epsilon"  # the same: what the call spent; the log reads it there
DETAILS_KEY: Final = "grpc-status-details-bin"
TRAILERS_BYTES_MAX: Final = 7 * 2**10  # the text of the status included


def refusal_detail(refusal: Refused) -> tacit_pb2.RefusalDetail:
    """What a program is told of a refusal."""
    detail = tacit_pb2.RefusalDetail(
        code=refusal.code, message=sendable(refusal.message), hint=sendable(refusal.hint or "")
    )
    if refusal.position is not None:
        detail.position.line = refusal.position.line
        detail.position.column = refusal.position.column
    shortfall = None
    if isinstance(refusal, NotCovered):
        shortfall = refusal.shortfall
        for column in shortfall.columns:
            if column.free is not None:
                detail.free_widths.add(answer=sendable(column.answer), half_width=column.free)
    elif isinstance(refusal, TargetNotReached):
        shortfall = refusal.shortfall
        detail.epsilon_spent = exact_text(refusal.epsilon_spent)
        for width in refusal.free:
            detail.free_widths.add(answer=sendable(width.answer), half_width=width.half_width)
    if shortfall is not None:
        detail.shortfall.CopyFrom(_shortfall(shortfall))
    return detail


def packed_detail(
    refusal: Refused, status: grpc.StatusCode, text: str, text_bytes: int
) -> bytes | None:
    """The trailer's value; None if there is no room for it.

    Parameters
    ----------
    text : str
        Of the status, as it is sent.
    text_bytes : int
        What it takes in a header.
    """
    for detail in _shorter_and_shorter(refusal_detail(refusal)):
        packed = Status(code=status.value[0], message=text)
        packed.details.add().Pack(detail)
        if text_bytes + _base64_bytes(packed.ByteSize()) <= TRAILERS_BYTES_MAX:
            return bytes(packed.SerializeToString())
    return None


def detail_in(trailers: Mapping[str, str | bytes]) -> tacit_pb2.RefusalDetail | None:
    """The detail that came with a failed call; None if there is none."""
    packed = trailers.get(DETAILS_KEY)
    if not isinstance(packed, bytes):
        return None
    found = tacit_pb2.RefusalDetail()
    try:
        details = Status.FromString(packed).details
        return found if any(one.Unpack(found) for one in details) else None
    except DecodeError:
        return None


def sendable(text: str) -> str:
    """The text with what UTF-8 has no bytes for replaced."""
    return text.encode("utf-8", errors="replace").decode("utf-8")


def _shorter_and_shorter(detail: tacit_pb2.RefusalDetail) -> Iterator[tacit_pb2.RefusalDetail]:
    yield detail
    for fields in (("message", "hint"), ("free_widths",)):
        for field in fields:
            detail.ClearField(field)
        yield detail


def _shortfall(shortfall: Shortfall) -> tacit_pb2.Shortfall:
    left = shortfall.epsilon_left
    return tacit_pb2.Shortfall(
        table=sendable(shortfall.table),
        epsilon_needed=exact_text(shortfall.epsilon_needed),
        epsilon_left=None if left is None else exact_text(left),
        account=shortfall.account,
        window=shortfall.window,
        free=_offered(shortfall.free),
        fitting=_offered(shortfall.fitting),
        renews_on=shortfall.renews_on,
    )


def _offered(width: OfferedWidth | None) -> tacit_pb2.OfferedWidth | None:
    if width is None:
        return None
    return tacit_pb2.OfferedWidth(factor=width.factor, half_width=width.half_width)


def _base64_bytes(n_bytes: int) -> int:
    """What a binary trailer takes in a header."""
    return -(-n_bytes // 3) * 4
