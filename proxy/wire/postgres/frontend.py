"""What a client sends: bytes to messages, checked. Pure; nothing here reads a socket.

Lengths are limited before a byte of a body is stored. A body that is not exactly what its type says
is a `ProtocolViolation`, which ends the connection. Message formats: PostgreSQL 15, chapter 55.7.
"""

import struct
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Final, TypeAlias

from cube.refusals import Refused

STARTUP_BYTES_MAX: Final = 10_000  # PostgreSQL's own limit
PASSWORD_BYTES_MAX: Final = 4096
MESSAGE_BYTES_MAX: Final = 1 << 20  # above the planner's limits, so that the planner can explain
PARAMETERS_MAX: Final = 2000  # likewise

_CODE_BYTES: Final = 4
PROTOCOL_3: Final = 3 << 16
_CANCEL: Final = 80877102
_SSL: Final = 80877103
_GSS: Final = 80877104
_OPTION_MINOR: Final = "_pq_."


class ProtocolViolation(Refused):
    """Bytes that are no message of the protocol, or none that may come now."""

    code = "invalid_request"


@dataclass(frozen=True, slots=True)
class EncryptionRequest:
    """A client asks whether to go on under TLS or GSSAPI."""

    is_tls: bool


@dataclass(frozen=True, slots=True)
class CancelRequest:
    """A client asks, on a connection of its own, to stop what another connection does."""

    process: int
    key: int = field(repr=False)


@dataclass(frozen=True, slots=True)
class Startup:
    """Who wants to log in, to what, and with which settings.

    Parameters
    ----------
    minor : int
        The minor version of the protocol that the client would like.
    options : tuple of (str, str)
        In the order in which they were sent.
    """

    minor: int
    options: tuple[tuple[str, str], ...]

    @property
    def unknown_options(self) -> tuple[str, ...]:
        """Options of the protocol itself; this server has none."""
        return tuple(name for name, _ in self.options if name.startswith(_OPTION_MINOR))


First: TypeAlias = EncryptionRequest | CancelRequest | Startup


@dataclass(frozen=True, slots=True)
class SimpleQuery:
    """A text of statements."""

    sql: str


@dataclass(frozen=True, slots=True)
class Parse:
    """Prepare a statement under a name, perhaps with types of its parameters; 0 for any."""

    name: str
    sql: str
    types: tuple[int, ...]


@dataclass(frozen=True, slots=True)
class Bind:
    """Make a portal of a prepared statement and values for its parameters.

    Formats are 0 for text and 1 for binary: none, one for all, or one for each.
    """

    portal: str
    statement: str
    formats: tuple[int, ...]
    values: tuple[bytes | None, ...] = field(repr=False)
    result_formats: tuple[int, ...]


@dataclass(frozen=True, slots=True)
class Describe:
    """Ask for the columns of a portal or of a prepared statement."""

    is_portal: bool
    name: str


@dataclass(frozen=True, slots=True)
class Execute:
    """Run a portal; 0 for all rows."""

    portal: str
    n_rows_max: int


@dataclass(frozen=True, slots=True)
class Close:
    """Forget a portal or a prepared statement."""

    is_portal: bool
    name: str


@dataclass(frozen=True, slots=True)
class Sync:
    """End of a sequence of messages: errors before it do not matter behind it."""


@dataclass(frozen=True, slots=True)
class Flush:
    """Send what is waiting to be sent."""


@dataclass(frozen=True, slots=True)
class Terminate:
    """Goodbye."""


@dataclass(frozen=True, slots=True)
class FunctionCall:
    """A call past SQL, which is not offered; its body is not read."""


@dataclass(frozen=True, slots=True)
class CopyMessage:
    """Data of a COPY, which this server never starts; PostgreSQL ignores stray data, too."""


@dataclass(frozen=True, slots=True)
class Password:
    """An answer in an authentication: its body."""

    body: bytes = field(repr=False)


Message: TypeAlias = (
    SimpleQuery
    | Parse
    | Bind
    | Describe
    | Execute
    | Close
    | Sync
    | Flush
    | Terminate
    | FunctionCall
    | CopyMessage
    | Password
)


def first_length(header: bytes) -> int:
    """The length of the body of a connection's first packet, from its four bytes."""
    length: int = struct.unpack("!i", header)[0] - 4
    if not _CODE_BYTES <= length <= STARTUP_BYTES_MAX:
        raise ProtocolViolation(
            "The connection does not begin with a packet of PostgreSQL's protocol 3.",
            hint="Is the client speaking another protocol, such as gRPC or HTTP?",
        )
    return length


def first_packet(body: bytes) -> First:
    """A connection's first packet, without its length."""
    (code,) = struct.unpack_from("!i", body)
    rest = body[4:]
    if code in (_SSL, _GSS) and not rest:
        return EncryptionRequest(is_tls=code == _SSL)
    if code == _CANCEL and len(rest) == 8:  # noqa: PLR2004 - two numbers of four bytes
        return CancelRequest(*struct.unpack("!iI", rest))
    if code >> 16 == PROTOCOL_3 >> 16:
        return Startup(code & 0xFFFF, _options(rest))
    raise ProtocolViolation(
        f"Protocol {code >> 16 & 0xFFFF}.{code & 0xFFFF} is not spoken here.",
        hint="Use a client of PostgreSQL 7.4 or newer.",
    )


def message_length(tag: int, header: bytes, *, is_logged_in: bool) -> int:
    """The length of a message's body, from its type and its four bytes."""
    length: int = struct.unpack("!i", header)[0] - 4
    longest = MESSAGE_BYTES_MAX if is_logged_in else PASSWORD_BYTES_MAX
    if bytes((tag,)) not in _READERS:
        raise ProtocolViolation("A client cannot send a message of this type.")
    if not 0 <= length <= longest:
        raise ProtocolViolation(
            f"A message of {length} bytes came; {longest} are allowed.",
            hint="Replace long lists of values by ranges or expressions.",
        )
    return length


def message(tag: int, body: bytes) -> Message:
    """A message from its type and its body."""
    reader = _Reader(body)
    try:
        found = _READERS[bytes((tag,))](reader)
    except (struct.error, IndexError, ValueError):
        raise ProtocolViolation("A message is shorter than its parts.") from None
    if not reader.is_at_end:
        raise ProtocolViolation("A message is longer than its parts.")
    return found


def sasl_initial(body: bytes) -> tuple[str, bytes]:
    """The mechanism that a client chose, and its first message, from the body of a password."""
    reader = _Reader(body)
    try:
        mechanism, first = reader.text(), reader.value()
    except (struct.error, ValueError):
        raise ProtocolViolation("The login does not begin as SASL does.") from None
    if not reader.is_at_end:
        raise ProtocolViolation("The login does not begin as SASL does.")
    return mechanism, first or b""


class _Reader:
    """Reads a body from its beginning to its end; ValueError and the like where it is too short."""

    def __init__(self, body: bytes) -> None:
        self._body = body
        self._place = 0

    @property
    def is_at_end(self) -> bool:
        return self._place == len(self._body)

    def text(self) -> str:
        end = self._body.index(b"\0", self._place)
        found = self._body[self._place : end]
        self._place = end + 1
        return decoded(found)

    def int16(self) -> int:
        return self._number("!h", 2)

    def int32(self) -> int:
        return self._number("!i", 4)

    def oid(self) -> int:
        return self._number("!I", 4)

    def raw(self, length: int) -> bytes:
        if length < 0 or self._place + length > len(self._body):
            raise ValueError
        self._place += length
        return self._body[self._place - length : self._place]

    def rest(self) -> bytes:
        return self.raw(len(self._body) - self._place)

    def kind(self) -> bool:
        """Whether a name is a portal's."""
        letter = self.raw(1)
        if letter not in (b"P", b"S"):
            raise ProtocolViolation("The message names neither a portal nor a statement.")
        return letter == b"P"

    def many(self, read: Callable[[], int]) -> tuple[int, ...]:
        """A count, and as many numbers."""
        return tuple(read() for _ in range(self.count()))

    def count(self) -> int:
        n = self.int16()
        if not 0 <= n <= PARAMETERS_MAX:
            raise ProtocolViolation(
                f"{n} parameters or columns are named; {PARAMETERS_MAX} are allowed."
            )
        return n

    def value(self) -> bytes | None:
        length = self.int32()
        return None if length == -1 else self.raw(length)

    def _number(self, layout: str, size: int) -> int:
        (number,) = struct.unpack_from(layout, self._body, self._place)
        self._place += size
        return int(number)


def decoded(text: bytes) -> str:
    """A client's text, which is UTF-8."""
    try:
        return text.decode("utf-8")
    except UnicodeDecodeError:
        raise NotUtf8("A text is not valid UTF-8.", hint="Set client_encoding to UTF8.") from None


class NotUtf8(ProtocolViolation):
    """A text in another encoding. The connection goes on."""


def _options(body: bytes) -> tuple[tuple[str, str], ...]:
    if not body.endswith(b"\0"):
        raise ProtocolViolation("The startup packet has no end.")
    words = [decoded(word) for word in body[:-1].split(b"\0")]
    if words.pop() != "" or len(words) % 2:
        raise ProtocolViolation("The startup packet does not consist of names and values.")
    return tuple(zip(words[::2], words[1::2], strict=True))


def _bind(reader: _Reader) -> Bind:
    portal, statement = reader.text(), reader.text()
    formats = reader.many(reader.int16)
    values = tuple(reader.value() for _ in range(reader.count()))
    return Bind(portal, statement, formats, values, reader.many(reader.int16))


def _copy(reader: _Reader) -> CopyMessage:
    reader.rest()
    return CopyMessage()


def _function_call(reader: _Reader) -> FunctionCall:
    reader.rest()
    return FunctionCall()


_READERS: Final[dict[bytes, Callable[[_Reader], Message]]] = {
    b"Q": lambda reader: SimpleQuery(reader.text()),
    b"P": lambda reader: Parse(reader.text(), reader.text(), reader.many(reader.oid)),
    b"B": _bind,
    b"D": lambda reader: Describe(reader.kind(), reader.text()),
    b"E": lambda reader: Execute(reader.text(), reader.int32()),
    b"C": lambda reader: Close(reader.kind(), reader.text()),
    b"S": lambda _: Sync(),
    b"H": lambda _: Flush(),
    b"X": lambda _: Terminate(),
    b"F": _function_call,
    b"d": _copy,
    b"c": _copy,
    b"f": _copy,
    b"p": lambda reader: Password(reader.rest()),
}
