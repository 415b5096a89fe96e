"""The location of a ledger in PostgreSQL, as its owner writes it: ``postgresql://user@host/db``.

The text is in configuration files and on command lines, so it must not contain a password; and it
specifies everything about the connection that matters, so that no environment variable can redirect
a ledger. A server on another machine must authenticate itself: an impostor could present a ledger
with an unspent budget.

Values only: psycopg is not needed to check a location.
"""

import ipaddress
import os
import re
from dataclasses import dataclass
from pathlib import Path
from typing import Final
from urllib.parse import parse_qsl, unquote

from cube.refusals import CannotStart

SCHEMES: Final = ("postgresql", "postgres")
DEFAULT_SCHEMA: Final = "tacit"
DEFAULT_PORT: Final = "5432"
PASSWORD_FILE_VARIABLE: Final = "TACIT_LEDGER_PASSWORD_FILE"  # noqa: S105 - a name, no password
OF_LEDGER: Final = f"a file that holds it in {PASSWORD_FILE_VARIABLE}"
SCHEMA_NAME: Final = re.compile(r"[a-z_][a-z0-9_]{0,62}", re.ASCII)
PORT: Final = re.compile(r"[0-9]{1,5}", re.ASCII)

# The options allowed after the question mark. No password, no service (a file with arbitrary
# settings), no options (they could turn off what makes a commit durable).
OPTIONS: Final = frozenset(
    {
        *("host", "port", "schema", "connect_timeout", "target_session_attrs"),
        *("sslmode", "sslrootcert", "sslcert", "sslkey", "sslcrl"),
        *("passfile", "channel_binding", "require_auth"),
        *("keepalives_idle", "keepalives_interval", "keepalives_count", "tcp_user_timeout"),
    }
)
ENCRYPTED: Final = ("require", "verify-ca", "verify-full")
# A server that disappears without closing its connection is noticed after about this many seconds.
PATIENCE: Final = {
    "connect_timeout": "5",
    "keepalives_idle": "10",
    "keepalives_interval": "5",
    "keepalives_count": "3",
    "tcp_user_timeout": "25000",  # in milliseconds
}


@dataclass(frozen=True, slots=True)
class PostgresLocation:
    """A checked location.

    Parameters
    ----------
    schema : str
        The schema that holds the ledger, and nothing else.
    parameters : tuple of pairs of str
        The parameters for libpq, by its own keywords; no password.

    Examples
    --------
    >>> PostgresLocation.parse("postgresql://tacit@db.example/money?schema=ledger").name
    'postgresql://db.example:5432/money?schema=ledger'
    """

    schema: str
    parameters: tuple[tuple[str, str], ...]

    @classmethod
    def parse(cls, text: str, password_in: str = OF_LEDGER) -> "PostgresLocation":
        """The location that a text names.

        Parameters
        ----------
        text : str
        password_in : str
            Where a password may be named, for the message to those who wrote it into the text.

        Raises
        ------
        ValueError
            With what it should be; the text is not repeated, as it may contain a password.
        """
        if not is_postgres(text):
            raise ValueError("should be postgresql://user@host/database")
        address, _, query = text.partition("?")
        options = _options(query)
        authority, _, database = address.partition("://")[2].partition("/")
        user, at, addresses = authority.rpartition("@")
        if ":" in user:
            raise ValueError(f"holds a password; name {password_in}, or use passfile or PGPASSWORD")
        if at and not user:
            raise ValueError("should name its user before the @")
        if not database or "/" in database:
            raise ValueError("should name one database after the host")
        hosts, ports = _hosts(addresses, options.pop("host", ""), options.pop("port", ""))
        schema = options.pop("schema", DEFAULT_SCHEMA)
        if not SCHEMA_NAME.fullmatch(schema) or schema.startswith("pg_"):
            raise ValueError("should have a schema of lower-case letters, digits and underscores")
        _secure(hosts, options)
        named = {"host": ",".join(hosts), "port": ",".join(ports), "dbname": unquote(database)}
        if user:
            named["user"] = unquote(user)
        return cls(schema, tuple(sorted({**PATIENCE, **options, **named}.items())))

    @property
    def name(self) -> str:
        """The location for messages: no user, no password, no options but the schema."""
        named = dict(self.parameters)
        hosts = zip(named["host"].split(","), named["port"].split(","), strict=True)
        listed = ",".join(
            f"[{host}]:{port}" if ":" in host else f"{host}:{port}" for host, port in hosts
        )
        schema = "" if self.schema == DEFAULT_SCHEMA else f"?schema={self.schema}"
        return f"postgresql://{listed}/{named['dbname']}{schema}"


def is_postgres(text: str) -> bool:
    """Whether a location is one in PostgreSQL, and not a file.

    >>> is_postgres("postgresql://localhost/tacit"), is_postgres("people.ledger")
    (True, False)
    """
    scheme, separator, _ = text.partition("://")
    return bool(separator) and scheme in SCHEMES


def password() -> dict[str, str]:
    """The password for libpq, from the file that the environment names, if it names one.

    It is read for every connection, so that it can be changed. Without it, libpq uses PGPASSWORD or
    its own password file.
    """
    path = os.environ.get(PASSWORD_FILE_VARIABLE)
    if path is None:
        return {}
    try:
        return {"password": Path(path).read_text(encoding="utf-8").rstrip("\r\n")}
    except (OSError, UnicodeDecodeError):
        raise CannotStart(
            f"The file that {PASSWORD_FILE_VARIABLE} names cannot be read.",
            hint="The file should hold the ledger's database password as one line of text.",
        ) from None


def _options(query: str) -> dict[str, str]:
    try:
        pairs = parse_qsl(query, keep_blank_values=True, strict_parsing=bool(query))
    except ValueError:
        raise ValueError("should have options of the form name=value") from None
    options = dict(pairs)
    if not options.keys() <= OPTIONS:
        # Not which one: it may be the second half of a password with a question mark.
        raise ValueError(f"has an unknown option; the options are {', '.join(sorted(OPTIONS))}")
    if len(options) < len(pairs):
        raise ValueError("has an option twice")
    return options


def _hosts(addresses: str, option: str, port_option: str) -> tuple[list[str], list[str]]:
    """The hosts and their ports: from before the database, or from the options."""
    if bool(addresses) == bool(option):
        raise ValueError("should name its host, or the directory of its socket as ?host=/directory")
    hosts, ports = [], []
    for address in (addresses or option).split(","):
        host, port = _split(unquote(address)) if addresses else (address, "")
        port = port or port_option or DEFAULT_PORT
        if not host or not PORT.fullmatch(port):
            raise ValueError("should name each host as host or host:port")
        hosts.append(host)
        ports.append(port)
    return hosts, ports


def _split(address: str) -> tuple[str, str]:
    if address.startswith("["):  # an IPv6 address has colons of its own
        host, _, port = address[1:].partition("]")
        return host, port.removeprefix(":")
    host, _, port = address.partition(":")
    return host, port


def _secure(hosts: list[str], options: dict[str, str]) -> None:
    """Settle how the server authenticates itself; ValueError if a remote one would not."""
    if all(_is_here(host) for host in hosts):
        options.setdefault("sslmode", "prefer")
        return
    if options.setdefault("sslmode", "verify-full") not in ENCRYPTED:
        raise ValueError(f"is on another machine, so sslmode must be one of {', '.join(ENCRYPTED)}")


def _is_here(host: str) -> bool:
    if host.startswith("/"):  # a Unix socket
        return True
    try:
        return ipaddress.ip_address(host).is_loopback
    except ValueError:
        return host == "localhost"
