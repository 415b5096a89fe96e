"""A port that several processes listen on: the system gives each connection to one of them.

Linux shares a port among all processes of one user that ask for it, and so it would with another
server by mistake. So a port is tried without sharing first, and is then held, without listening,
for as long as the server runs: another server that tries it without sharing first is refused.
"""

import platform
import socket
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from typing import Final

from cube.refusals import ConfigurationInvalid
from proxy.shared.address import host_of

SHARES_EVENLY: Final = "Linux"  # other systems know the option, and give all to one process


@contextmanager
def held(listen: str) -> Iterator[str]:
    """Hold an address for workers to share; yields it with the actual port.

    Parameters
    ----------
    listen : str
        ``host:port``; port 0 for any free one.

    Raises
    ------
    ConfigurationInvalid
        If anybody uses it, or the system does not share ports.
    """
    if platform.system() != SHARES_EVENLY:
        raise ConfigurationInvalid(
            f"Workers share a port, which needs {SHARES_EVENLY}.", hint="Set workers = 1."
        )
    host, port = host_of(listen), int(listen.rpartition(":")[2])
    with ExitStack() as stack:
        try:
            if port:
                with _starting(port):
                    _try_alone(host, port)
                    port = _hold_all(stack, host, port)
            else:
                port = _hold_all(stack, host, port)
        except (OSError, OverflowError):
            raise ConfigurationInvalid(
                f"The server cannot listen on {listen}.",
                hint="Is another process using the port?",
            ) from None
        yield f"{listen.rpartition(':')[0]}:{port}"


def _try_alone(host: str | None, port: int) -> None:
    """OSError if anybody listens on the port, or holds it."""
    for family, address in _addresses(host, port):
        with socket.socket(family, socket.SOCK_STREAM) as tried:
            # Connections that have just ended do not count.
            tried.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
            _bind(tried, address)


def _hold_all(stack: ExitStack, host: str | None, port: int) -> int:
    """Hold the port on every address of a host; the port."""
    for family, address in _addresses(host, port):
        holder = stack.enter_context(socket.socket(family, socket.SOCK_STREAM))
        holder.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEPORT, 1)
        _bind(holder, (address[0], port))
        port = holder.getsockname()[1]
    return port


def _addresses(host: str | None, port: int) -> list[tuple[socket.AddressFamily, tuple[str, int]]]:
    """What a host stands for; of several addresses, those that this machine has."""
    found = socket.getaddrinfo(host, port, type=socket.SOCK_STREAM, flags=socket.AI_PASSIVE)
    named = [
        (socket.AddressFamily(family), (str(address[0]), port))
        for family, _, _, _, address in found
    ]
    return named if len(named) == 1 else [one for one in named if _is_here(*one)]


def _is_here(family: socket.AddressFamily, address: tuple[str, int]) -> bool:
    try:
        with socket.socket(family, socket.SOCK_STREAM) as tried:
            tried.bind((address[0], 0))
    except OSError:
        return False
    return True


def _bind(bound: socket.socket, address: tuple[str, int]) -> None:
    if bound.family == socket.AF_INET6:
        bound.setsockopt(socket.IPPROTO_IPV6, socket.IPV6_V6ONLY, 1)
    bound.bind(address)


@contextmanager
def _starting(port: int) -> Iterator[None]:
    """OSError if another server tries this port at this moment.

    Both would find it free. The name is one of the network's, as the port is, and belongs to no
    file.
    """
    with socket.socket(socket.AF_UNIX, socket.SOCK_STREAM) as alone:
        alone.bind(f"\0tacit-starting-{port}")
        yield
