"""Addresses to listen on: ``host:port``, and whether another machine could reach them."""

import ipaddress
import re

DEFAULT_LISTEN = "127.0.0.1:31337"
DEFAULT_POSTGRES_LISTEN = "127.0.0.1:5433"  # beside a PostgreSQL on its own port
PORT_MAX = 65535
ADDRESS = re.compile(r"(?:\[([0-9A-Fa-f:.]+)\]|([A-Za-z0-9._-]+)):([0-9]{1,5})", re.ASCII)


def host_of(address: str) -> str | None:
    """The host of ``host:port`` or ``[v6]:port``; None if it is not an address."""
    match = ADDRESS.fullmatch(address)
    if match is None or int(match[3]) > PORT_MAX:
        return None
    return match[1] or match[2]


def is_loopback(host: str) -> bool:
    """Whether a host can only be reached from this machine.

    >>> is_loopback("localhost"), is_loopback("127.0.0.2"), is_loopback("0.0.0.0")
    (True, True, False)
    """
    try:
        return ipaddress.ip_address(host).is_loopback
    except ValueError:
        return host == "localhost"
