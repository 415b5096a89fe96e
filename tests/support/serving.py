"""A real server on a free loopback port for the length of a `with` block."""

from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from types import MappingProxyType

import grpc

from proxy.admin.ledger_admin import LedgerAdmin
from proxy.api.requests import LOCAL, Caller, QueryEngine
from proxy.collections.feature import Collections, PlanningCalls
from proxy.collections.service import CollectionService
from proxy.feature import Call, Feature, calls_of
from proxy.federation import Federation
from proxy.identity.authenticate import Authenticator
from proxy.identity.presented import PresentedCredentials
from proxy.scheduling.fair_share import DEFAULT_TIMES, CallTimes
from proxy.sources.public.table import PublicTable
from proxy.streams.feature import Streams
from proxy.streams.service import StreamService
from proxy.synthetic_tables.service import NO_TABLES, SyntheticTableService
from proxy.tables import ServedTable
from proxy.wire.server import start_server
from proxy.wire.tls import TlsIdentity

NO_STREAMS = StreamService()


class EverybodyLocal:
    """Everybody owns everything, whatever they show: for tests that are not about identity."""

    def identify(self, presented: PresentedCredentials) -> Caller:  # noqa: ARG002 - the protocol names it
        return LOCAL


class PlansAlone(Feature):
    """Plans of collections, on a server that has none."""

    def calls(self) -> dict[str, Call]:
        return calls_of(PlanningCalls())


@contextmanager
def serving(  # noqa: PLR0913, PLR0917 - what a server is made of, by name
    engine: QueryEngine,
    tls: TlsIdentity | None = None,
    authenticator: Authenticator | None = None,
    admin: LedgerAdmin | None = None,
    synthetic: SyntheticTableService = NO_TABLES,
    streams: StreamService = NO_STREAMS,
    *,
    public: tuple[PublicTable, ...] = (),
    collections: CollectionService | None = None,
    times: CallTimes = DEFAULT_TIMES,
    tables: Mapping[str, ServedTable] = MappingProxyType({}),
) -> Iterator[str]:
    authenticator = EverybodyLocal() if authenticator is None else authenticator

    def names_taken(caller: Caller) -> list[str]:
        return [one.name for one in synthetic.listed(caller)]

    feature = PlansAlone() if collections is None else Collections(collections, names_taken)
    running = start_server(
        engine,
        "127.0.0.1:0",
        authenticator=authenticator,
        tls=tls,
        admin=admin,
        synthetic=synthetic,
        public=public,
        features=(Streams(streams), feature, Federation(tables)),
        times=times,
    )
    try:
        yield running.address
    finally:
        running.stop()


@contextmanager
def channel_to(engine: QueryEngine) -> Iterator[grpc.Channel]:
    with serving(engine) as address, grpc.insecure_channel(address) as channel:
        yield channel
