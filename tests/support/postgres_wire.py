"""A real listener of the PostgreSQL wire on a free loopback port, within a `with` block."""

import ssl
from collections.abc import Iterator
from contextlib import contextmanager

from proxy.api.requests import LOCAL, Caller, QueryEngine
from proxy.identity.authenticate import PasswordAuthenticator, PasswordLogin
from proxy.identity.presented import PresentedCredentials
from proxy.monitoring.events import UNWATCHED, Watcher
from proxy.scheduling.fair_share import DEFAULT_TIMES, CallTimes, FairShare
from proxy.wire.postgres.connection import House
from proxy.wire.postgres.listener import DEFAULT_LIMITS, ConnectionLimits, PostgresListener
from proxy.wire.postgres.login import Door
from proxy.workers.crew import ALONE, Crew


class AnybodyLocal:
    """Everybody owns everything, whoever they say they are: for tests of something else."""

    def identify(self, presented: PresentedCredentials) -> Caller:  # noqa: ARG002 - the protocol names it
        return LOCAL

    def needs_no_password(self, user: str, shown: Caller | None = None) -> bool:  # noqa: ARG002 - the same
        return True

    def by_password(self, user: str, endpoint_hash: bytes | None) -> PasswordLogin:
        raise NotImplementedError


@contextmanager
def postgres_serving(  # noqa: PLR0913 - what a listener is made of, by name
    engine: QueryEngine,
    authenticator: PasswordAuthenticator | None = None,
    *,
    tls: ssl.SSLContext | None = None,
    endpoint_hash: bytes | None = None,
    watcher: Watcher = UNWATCHED,
    times: CallTimes = DEFAULT_TIMES,
    limits: ConnectionLimits = DEFAULT_LIMITS,
    crew: Crew = ALONE,
) -> Iterator[str]:
    """Serve; the address is ``host:port``."""
    door = Door(authenticator or AnybodyLocal(), tls, endpoint_hash, lambda _: None)
    house = House(engine, door, FairShare(), watcher, times)
    listener = PostgresListener(house, "127.0.0.1:0", limits, crew)
    listener.start()
    try:
        yield listener.address
    finally:
        listener.stop(5.0)
