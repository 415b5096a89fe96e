"""Calls to one holder's server: the connection, who calls, and what its errors mean.

A holder is another organisation: nothing that it sends is believed to be well made. Its text is cut
and printed plainly, its numbers are read strictly, and a reply may only be as long as what was
asked for.

    refused for good    the same refusal, which names the holder: it has charged nothing
    anything else       SourceUnavailable: it may have charged, and is asked again

The files of the connection are read when it is made, and anew once one of them changes.
"""

import re
import threading
from fractions import Fraction
from typing import Any, Final, TypeAlias

import grpc
from google.protobuf.message import Message

from cube import refusals
from cube.pace import seconds_left, waiting
from cube.refusals import Refused, Shortfall, SourceUnavailable
from proxy.protocol import tacit_pb2, tacit_pb2_grpc
from proxy.shared.refusal_details import CODE_KEY, detail_in
from proxy.sources.location import HolderPlace

N_CALLS_MAX: Final = 4  # open at once to one holder, of one process
REQUEST_BYTES_MAX: Final = 4 * 2**20 - 2**16  # a server takes 4 MiB
REPLY_BYTES_MAX: Final = 64 * 2**20
TEXT_LENGTH_MAX: Final = 500
_OPTIONS: Final = (
    ("grpc.max_receive_message_length", REPLY_BYTES_MAX),
    ("grpc.max_send_message_length", 4 * 2**20),
    ("grpc.max_metadata_size", 16 * 2**10),
    ("grpc.keepalive_time_ms", 60_000),  # finds out that a holder's machine is gone
    ("grpc.keepalive_timeout_ms", 20_000),
    ("grpc.enable_retries", 0),  # what is asked again is decided by the ledger
    ("grpc.use_local_subchannel_pool", 1),  # a new connection does not wait as an old one would
)
_NUMBER: Final = re.compile(r"\d{1,60}(\.\d{1,120}|/\d{1,60})?", re.ASCII)

_FOR_GOOD: Final[dict[str, type[Refused]]] = {
    one.code: one
    for one in (
        refusals.TooLarge,
        refusals.InvalidRequest,
        refusals.NotAllowed,
        refusals.NotAuthenticated,
        refusals.UnknownName,
    )
}
_NO_ENTRY: Final = (refusals.NotAllowed, refusals.NotAuthenticated, refusals.UnknownName)
_ADMIT: Final = "Once its token is good again, what was paid for is told, and not charged again."
_NOT_COVERED: Final[dict[str, type[refusals.NotCovered]]] = {
    one.code: one for one in (refusals.BudgetExhausted, refusals.LimitReached)
}

# What it means if a call fails and Tacit has said nothing.
_WHY: Final = {
    grpc.StatusCode.UNAVAILABLE: ("cannot be reached", ""),
    grpc.StatusCode.DEADLINE_EXCEEDED: ("has not answered in time", ""),
    grpc.StatusCode.RESOURCE_EXHAUSTED: ("sent a reply that is too large", ""),
    grpc.StatusCode.UNIMPLEMENTED: (
        "does not take requests of other ledgers",
        "Its server must be of a release of Tacit that has federated tables.",
    ),
}

Signature: TypeAlias = tuple[tuple[int, int, int], ...]


class HolderCalls:
    """The calls to one holder of one table. Thread-safe.

    Parameters
    ----------
    place : HolderPlace
    table : str
        The federated table, for messages.
    """

    def __init__(self, place: HolderPlace, table: str) -> None:
        self.place = place
        self._table = table
        self._places = threading.BoundedSemaphore(N_CALLS_MAX)
        self._lock = threading.Lock()
        self._made_of: Signature | None = None
        self._channel: grpc.Channel | None = None
        self._token: str | None = None

    def describe(self, seconds: float) -> tacit_pb2.HolderDescription:
        """The holder's description of its table; raises as `measure`."""
        request = tacit_pb2.DescribeHolderRequest(table=self.place.table)
        found: tacit_pb2.HolderDescription = self._call("DescribeHolder", request, seconds)
        return found

    def price(self, asked: str) -> None:
        """Have a request refused as it would be charged; raises as `measure`."""
        self._call("PriceForLedger", self._request(asked), self.place.timeout)

    def measure(self, asked: str) -> str:
        """Have a request charged and measured; what is told, as text.

        Raises
        ------
        Refused
            As the holder refuses it for good.
        SourceUnavailable
            If it cannot be reached, does not let the caller in, does not reply in time, or fails.
        """
        try:
            told: str = self._call(
                "MeasureForLedger", self._request(asked), self.place.timeout
            ).told
        except _NO_ENTRY as refusal:  # a caller that is refused entry is not told what is charged
            raise SourceUnavailable(refusal.message, hint=_ADMIT) from None
        return told

    def unavailable(self, what: str, hint: str = "") -> SourceUnavailable:
        """The refusal of a request that this holder has not answered."""
        return SourceUnavailable(
            f"The holder {self.place.name} of {self._table} {what}.",
            hint=hint or "Ask again later: what was paid for is not charged again.",
        )

    def close(self) -> None:
        """Close the connection."""
        with self._lock:
            self._forget()

    def _request(self, asked: str) -> tacit_pb2.ForLedgerRequest:
        request = tacit_pb2.ForLedgerRequest(table=self.place.table, asked=asked)
        if request.ByteSize() > REQUEST_BYTES_MAX:
            raise refusals.TooLarge(
                f"This asks too much of the holder {self.place.name} in one request.",
                hint="Ask for fewer groups at once, or over fewer columns.",
            )
        return request

    def _call(self, method: str, request: Message, seconds: float) -> Any:
        """What a method of the holder replies; its errors are raised as refusals."""
        with waiting():
            if not self._places.acquire(timeout=seconds_left(seconds)):
                raise self.unavailable("is answering other requests")
            try:
                stub, metadata = self._connection()
                left = seconds_left(seconds)
                return getattr(stub, method)(request, timeout=left, metadata=metadata)
            except grpc.RpcError as error:
                self._let_go(error)
                refusal = self._meant(error)
            finally:
                self._places.release()
        raise refusal

    def _connection(self) -> tuple[tacit_pb2_grpc.FederationStub, tuple[tuple[str, str], ...]]:
        with self._lock:
            try:
                found = self._signature()
                if found != self._made_of or self._channel is None:
                    self._forget()
                    self._token = self._read_token()
                    self._channel = self._opened()
                    self._made_of = found
            except (OSError, UnicodeError, ValueError) as error:
                named = getattr(error, "filename", None)
                what = f"cannot be called, as {named or 'one of its files'} cannot be read"
                raise self.unavailable(what) from None
            stub = tacit_pb2_grpc.FederationStub(self._channel)
            shown = () if self._token is None else (("authorization", f"Bearer {self._token}"),)
            return stub, shown

    def _signature(self) -> Signature:
        """What changes if one of the files does."""
        read = (path.stat() for path in self.place.secret_files)
        return tuple((one.st_mtime_ns, one.st_size, one.st_ino) for one in read)

    def _read_token(self) -> str | None:
        path = self.place.token_file
        if path is None:
            return None
        token = path.read_text(encoding="ascii").strip()
        if not token or not token.isprintable():
            raise ValueError("there is no token in the file")
        return token

    def _opened(self) -> grpc.Channel:
        place = self.place
        if not place.by_tls:
            return grpc.insecure_channel(place.address, options=_OPTIONS)
        read = (
            None if path is None else path.read_bytes()
            for path in (place.ca_file, place.key_file, place.cert_file)
        )
        credentials = grpc.ssl_channel_credentials(*read)
        return grpc.secure_channel(place.address, credentials, options=_OPTIONS)

    def _forget(self) -> None:
        if self._channel is not None:
            self._channel.close()
        self._channel = self._made_of = self._token = None

    def _let_go(self, error: grpc.RpcError) -> None:
        """Connect anew for the next call if there is no connection.

        Else gRPC refuses calls for seconds after a holder that was down is back. Calls that are
        under way keep their connection, which is why it is not closed here.
        """
        if error.code() is grpc.StatusCode.UNAVAILABLE and not _code_of(error):
            with self._lock:
                self._channel = None

    def _meant(self, error: grpc.RpcError) -> Refused:
        """The refusal that a failed call stands for."""
        status: grpc.StatusCode = error.code()
        trailers = _trailers(error)
        code = _code_of(error)
        said = _plain(str(error.details() or "")).removeprefix(f"[{code}] ").rstrip(".")
        if code in _FOR_GOOD:
            return _FOR_GOOD[code](
                f"The holder {self.place.name} of {self._table} refused: {said}."
            )
        if code in _NOT_COVERED:
            detail = detail_in(trailers)
            shortfall = None if detail is None else self._shortfall(detail.shortfall)
            if shortfall is not None:
                return _NOT_COVERED[code](shortfall)
        what, hint = _WHY.get(status, ("", "")) if not code else ("", "")
        return self.unavailable(what or f"did not answer: {said or status.name}", hint)

    def _shortfall(self, told: tacit_pb2.Shortfall) -> Shortfall | None:
        """The numbers of a refusal; None if they are nonsense."""
        try:
            left = exact_number(told.epsilon_left) if told.HasField("epsilon_left") else None
            return Shortfall(
                table=self._table,
                epsilon_needed=exact_number(told.epsilon_needed),
                epsilon_left=left,
                account=_plain(told.account),
                window=_plain(told.window),
                renews_on=_plain(told.renews_on),
            )
        except ValueError:
            return None


def _trailers(error: grpc.RpcError) -> dict[str, Any]:
    return {one.key: one.value for one in error.trailing_metadata() or ()}


def _code_of(error: grpc.RpcError) -> str:
    """The code of a refusal by Tacit; empty if it is another failure."""
    return str(_trailers(error).get(CODE_KEY, ""))


def exact_number(text: str) -> Fraction:
    """A number that another organisation sent; ValueError if it is none."""
    if _NUMBER.fullmatch(text) is None:
        raise ValueError("no number")
    try:
        return Fraction(text)
    except ZeroDivisionError:
        raise ValueError("no number") from None


def _plain(text: str) -> str:
    """A text that another organisation sent, as it may be printed."""
    cut = text if len(text) <= TEXT_LENGTH_MAX else f"{text[:TEXT_LENGTH_MAX]} ..."
    return "".join(one if one.isprintable() else "?" for one in cut)
