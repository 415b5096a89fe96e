"""From a connection's first byte to a client that is logged in, or to a polite no.

    encryption?  ->  TLS  ->  who, and to what  ->  SCRAM  ->  settings  ->  ready

All of it happens within `LOGIN_SECONDS`, in messages of a few kilobytes. No one learns whether it
was the name or the password that was wrong.
"""

import ssl
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import Final

from cube.refusals import NotAuthenticated
from planner.sql import (
    CLIENT_SETTINGS,
    NAMESPACE,
    NOTICES,
    READ_ONLY,
    SetSetting,
    setting_named,
    setting_value,
)
from proxy.api import CATALOG, Caller
from proxy.identity import (
    PasswordAuthenticator,
    PresentedCredentials,
    RejectionReason,
    check_asks,
    login_failed,
    names_in,
)
from proxy.wire.postgres import backend, frontend
from proxy.wire.postgres.client_settings import (
    REPORTED,
    SessionSettings,
    canonical,
    checked,
    default,
)
from proxy.wire.postgres.frontend import CancelRequest, EncryptionRequest, First, Startup
from proxy.wire.postgres.sqlstates import StateError
from proxy.wire.postgres.transport import Transport
from proxy.wire.sessions import applied

LOGIN_SECONDS: Final = 10.0
N_FIRST_PACKETS_MAX: Final = 3  # GSSAPI and TLS may be asked for once each
DATABASES: Final = frozenset({CATALOG, "postgres"})  # the second is what tools try first
PSQL: Final = "psql"  # what it says its name is
_OPTION: Final = ("user", "database", "options", "replication")


@dataclass(frozen=True, slots=True)
class LoggedIn:
    """A client that proved who they are.

    Parameters
    ----------
    presented : PresentedCredentials
        What they showed: it is judged again before each statement.
    settings : SessionSettings
        The settings that the client asked for.
    """

    presented: PresentedCredentials
    caller: Caller
    settings: SessionSettings


@dataclass(frozen=True, slots=True)
class Door:
    """What a login is checked against.

    Parameters
    ----------
    tls : ssl.SSLContext, optional
        If there is one, nothing is served without TLS.
    endpoint_hash : bytes, optional
        The hash of the server's certificate, which SCRAM may bind a login to.
    note_failure : callable
        Hears of every login that was refused for its credentials.
    """

    authenticator: PasswordAuthenticator
    tls: ssl.SSLContext | None
    endpoint_hash: bytes | None
    note_failure: Callable[[RejectionReason], None]


def first_request(transport: Transport, door: Door, until: float) -> CancelRequest | Startup:
    """What the client came for, once it is under TLS if it has to be.

    Raises
    ------
    ProtocolViolation, StateError
        If it is no client of this protocol; if it will not have TLS where that is needed.
    """
    for _ in range(N_FIRST_PACKETS_MAX):
        packet = _first_packet(transport, until)
        if isinstance(packet, EncryptionRequest):
            if packet.is_tls and door.tls is not None and not transport.is_under_tls:
                transport.send(backend.TLS_ACCEPTED)
                transport.flush()
                transport.start_tls(door.tls, until)
            else:
                transport.send(backend.ENCRYPTION_DECLINED)
                transport.flush()
            continue
        if isinstance(packet, Startup) and door.tls is not None and not transport.is_under_tls:
            raise StateError(
                "28000",
                "This server accepts connections under TLS only.",
                hint="Set sslmode=require.",
            )
        return packet
    raise frontend.ProtocolViolation("The client asked for encryption, and then sent nothing else.")


def log_in(transport: Transport, door: Door, startup: Startup, until: float) -> LoggedIn:
    """Let a client prove who they are, and read their settings.

    Raises
    ------
    StateError, NotAuthenticated, NotAllowed
    """
    options = dict(startup.options)
    user = options.get("user", "")
    if not user:
        raise StateError("28000", "No user is named.", hint="The user is the analyst's name.")
    if options.get("replication", "false").lower() not in ("false", "off", "no", "0"):
        raise StateError("0A000", "This server does not offer replication.")
    if startup.minor or startup.unknown_options:
        transport.send(backend.negotiate_version(0, startup.unknown_options))
    presented, caller = _identified(transport, door, user, until)
    check_asks(caller.role)
    database = options.get("database") or user
    if database not in DATABASES and database != user:
        raise StateError(
            "3D000",
            f"There is no database {database[:64]!a}.",
            hint=f"The only database is {CATALOG}.",
        )
    return LoggedIn(presented, caller, _settings(startup.options))


def welcome(transport: Transport, user: Caller, settings: SessionSettings) -> None:
    """Tell a client that is logged in what it wants to know."""
    transport.send(backend.AUTHENTICATION_OK)
    client = dict(settings.client)
    for name, shown in REPORTED.items():
        transport.send(backend.parameter_status(shown, client.get(name, default(name))))
    transport.send(backend.parameter_status("session_authorization", user.payer.analyst))


def _first_packet(transport: Transport, until: float) -> First:
    length = frontend.first_length(transport.receive(4, until))
    return frontend.first_packet(transport.receive(length, until))


def _identified(
    transport: Transport, door: Door, user: str, until: float
) -> tuple[PresentedCredentials, Caller]:
    """Who a client is: by its certificate, as anybody where that is allowed, or by its password.

    A password is a token. Beside a certificate it determines what is open, as on the other wire; a
    client sends one only if it is asked, so it is asked where that makes a difference.
    """
    names = _certificate_names(transport)
    if names is not None:
        presented = PresentedCredentials(analyst=user, certificate=names)
        found = door.authenticator.identify(presented)
        if isinstance(found, Caller) and door.authenticator.needs_no_password(user, found):
            return presented, found
    elif door.authenticator.needs_no_password(user):
        presented = PresentedCredentials()
        found = door.authenticator.identify(presented)
        if isinstance(found, Caller):
            return presented, found
    presented = _exchanged(transport, door, user, names, until)
    found = door.authenticator.identify(presented)
    if isinstance(found, RejectionReason):
        door.note_failure(found)
        raise login_failed()
    return presented, found


def _exchanged(
    transport: Transport, door: Door, user: str, names: frozenset[str] | None, until: float
) -> PresentedCredentials:
    """What a client showed in an exchange of SCRAM."""
    endpoint = door.endpoint_hash if transport.is_under_tls else None
    login = door.authenticator.by_password(user, endpoint)
    transport.send(backend.sasl_mechanisms(login.mechanisms))
    transport.flush()
    try:
        mechanism, first = frontend.sasl_initial(_password(transport, until))
        transport.send(backend.sasl_continue(login.first(mechanism, first)))
        transport.flush()
        last = login.final(_password(transport, until))
    except NotAuthenticated:
        door.note_failure(RejectionReason.UNKNOWN)
        raise login_failed() from None
    transport.send(backend.sasl_final(last))
    return PresentedCredentials(token_hash=login.token_hash, analyst=user, certificate=names)


def _password(transport: Transport, until: float) -> bytes:
    (tag,) = transport.receive(1, until)
    length = frontend.message_length(tag, transport.receive(4, until), is_logged_in=False)
    message = frontend.message(tag, transport.receive(length, until))
    if not isinstance(message, frontend.Password):
        raise frontend.ProtocolViolation("A password was expected.")
    return message.body


def _certificate_names(transport: Transport) -> frozenset[str] | None:
    shown = transport.client_certificate
    return None if shown is None else names_in(ssl.DER_cert_to_PEM_cert(shown).encode("ascii"))


def _settings(options: tuple[tuple[str, str], ...]) -> SessionSettings:
    """The settings of a startup packet; of two with one name, the later.

    Notices are on for psql: a person reads there, who has no receipt to look at.
    """
    settings = SessionSettings()
    if ("application_name", PSQL) in _named(options):
        settings = settings.with_client(NOTICES, "on")
    for name, value in _named(options):
        if name.startswith(NAMESPACE):
            setting = setting_named(name)
            command = SetSetting(setting, setting_value(setting, name, value))
            target = applied(settings.target, [command])
            settings = SessionSettings(target, settings.client)
        elif name in CLIENT_SETTINGS:
            kept = canonical(name)
            settings = settings.with_client(kept, checked(kept, value))
        elif name not in READ_ONLY:
            raise StateError("42704", f"There is no setting {name[:64]!a}.")
    return settings


def _named(options: tuple[tuple[str, str], ...]) -> Iterator[tuple[str, str]]:
    """Every setting that a startup packet names, in `options` or by itself."""
    for name, value in options:
        if name == "options":
            yield from command_line(value)
        elif name not in _OPTION and not name.startswith("_pq_."):
            yield name.lower(), value


def command_line(text: str) -> Iterator[tuple[str, str]]:
    r"""The settings of an ``options`` text, in which a backslash keeps a space.

    >>> list(command_line(r"-c tacit.half_width=50 --application-name=my\ tool"))
    [('tacit.half_width', '50'), ('application_name', 'my tool')]

    Raises
    ------
    StateError
        If it has anything else.
    """
    words = _words(text)
    for word in words:
        if word == "-c":
            word = next(words, "")  # noqa: PLW2901 - the setting is the next word
        elif word.startswith(("-c", "--")):
            word = word[2:]  # noqa: PLW2901
        else:
            raise StateError("22023", f"options has {word[:64]!a}.", hint="Write -c name=value.")
        name, equals, value = word.partition("=")
        if not equals:
            raise StateError("22023", f"options names {name[:64]!a} without a value.")
        yield name.replace("-", "_").lower(), value


def _words(text: str) -> Iterator[str]:
    word, is_escaped = "", False
    for sign in text:
        if is_escaped or (sign != "\\" and not sign.isspace()):
            word, is_escaped = word + sign, False
        elif sign == "\\":
            is_escaped = True
        elif word:
            yield word
            word = ""
    if word:
        yield word
