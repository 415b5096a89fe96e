"""Builds a running engine from settings. The only module that knows every part."""

import logging
from collections.abc import Sequence
from contextlib import suppress
from functools import partial
from pathlib import Path
from typing import Final

from accountant import GrowingSource, Source
from accountant.gate import Gate, RemoteGates, open_table
from accountant.ledger import Ledger
from accountant.noise import SystemNoise
from cube.refusals import ConfigurationInvalid, LedgerUnavailable, TacitError
from planner.workload import RequestedTarget
from proxy.admin import HeadSigner, open_configured, set_first_limit
from proxy.api import LOCAL, BudgetStatus, Caller
from proxy.collections import Collections, CollectionService
from proxy.config import LedgerSettings, Settings, TableSettings
from proxy.engine import Engine
from proxy.feature import Feature
from proxy.federation import Federation
from proxy.monitoring import UNWATCHED, Watcher, write_log
from proxy.sources import Extracted, WhyMade, growing_rows, table_rows
from proxy.sources.public import PublicTable, load_public_tables
from proxy.streams import Streams, StreamService
from proxy.synthetic_tables import SyntheticStore
from proxy.tables import (
    Advancing,
    Growing,
    Keeping,
    LiveTables,
    Renewable,
    Renewing,
    ServedTable,
    open_periods,
)
from proxy.workers import ALONE, Crew

NEWS_OF_COLLECTIONS: Final = "news of collections"


class Service:
    """An engine, its public tables, and the ledger that it writes."""

    def __init__(  # noqa: PLR0913 - the parts of a server
        self,
        engine: Engine,
        ledger: Ledger,
        public: tuple[PublicTable, ...],
        signer: HeadSigner | None = None,
        *,
        moving: tuple[Advancing, Renewing],
        streams: Streams,
        collections: Collections,
        federation: Federation,
    ) -> None:
        self.engine = engine
        self.streams, self.collections = streams.service, collections.service
        self.features: tuple[Feature, ...] = (streams, collections, federation)
        self.advancing, self.renewing = moving
        self.ledger = ledger
        self.keeping = Keeping(ledger)
        self.public = public
        self._signer = signer

    def budgets(self) -> tuple[BudgetStatus, ...]:
        """The budget of every table."""
        return self.engine.budgets(LOCAL)

    def sign_head(self) -> None:
        """Sign the head of the ledger, if the server has a key for that."""
        if self._signer is not None:
            self._signer.sign(self.ledger)

    def write_usage(self) -> None:
        """Write the answer counts since the last write to the ledger, or keep them for later."""
        self.engine.usage.write(self.ledger)

    def close(self) -> None:
        """Write the last answer counts and release the ledger; without it only these are lost."""
        with suppress(LedgerUnavailable):
            self.write_usage()
        with suppress(OSError, TacitError):
            self.sign_head()
        for feature in self.features:
            feature.close()
        self.ledger.close()


def build(settings: Settings, watcher: Watcher = UNWATCHED, crew: Crew = ALONE) -> Service:
    """Open the ledger and every table, and complete what a crash left unfinished.

    Parameters
    ----------
    crew : Crew
        The workers of the server, if this process is one of several.

    Raises
    ------
    CannotStart
        With what is wrong and what to do: configuration, ledger or data.
    """
    public, refused = _public(settings)
    signer = _signer(settings.ledger)
    ledger = open_configured(settings.ledger)
    try:
        if signer is not None:
            signer.check(ledger)
        ledger.check_clock()
        # Before the ledger is told of any table: one that cannot be served leaves no trace.
        streams = Streams(_streams(settings, ledger, crew))
        sources = _sources(settings, ledger, refused)
        tables = {
            table.schema.table: ServedTable(
                table.schema,
                table.default,
                _open_gate(table, sources[table.schema.table], ledger),
                table.strategy,
                watcher,
                sums=table.sums,
                gaussian=table.gaussian,
                default_cost=table.default_cost,
                cut_share_max=table.cut_share_max,
                sharing=table.sharing,
                memory=settings.server.memory,
                holders_public=table.holders_public,
            )
            for table in settings.tables
        }
        previews = [one.schema.table for one in settings.tables if one.has_previews]
        store = _synthetic_store(settings)
        names = [*tables, *(one.name for one in public)]

        def names_taken(caller: Caller) -> list[str]:
            return [one.name for one in engine.synthetic.listed(caller)]

        collections = Collections(_collections(settings, ledger, names, crew), names_taken)
        unnamed = RequestedTarget(posterior=settings.server.posterior)
        live = LiveTables(tables)
        federation = Federation(live)
        features = (streams, collections, federation)
        engine = Engine(live, public, watcher, store, previews, features, unnamed)
        growing = [
            Growing(tables[one.schema.table].gate, one.closing)
            for one in settings.tables
            if one.closing is not None
        ]
        renewable = [
            Renewable(tables[one.schema.table].gate, partial(_snapshot, one, ledger))
            for one in settings.tables
            if one.closing is None
        ]
        moving = Advancing(growing), Renewing(renewable)
        return Service(
            engine,
            ledger,
            public,
            signer,
            moving=moving,
            streams=streams,
            collections=collections,
            federation=federation,
        )
    except BaseException:
        ledger.close()
        raise


def _signer(settings: LedgerSettings) -> HeadSigner | None:
    if settings.signing_key is None or settings.signed_head is None:
        return None
    return HeadSigner(settings.signing_key, settings.signed_head)


def _synthetic_store(settings: Settings) -> SyntheticStore | None:
    """The folder of synthetic tables: by default beside the ledger, if the ledger is a file."""
    folder, ledger = settings.server.synthetic_dir, settings.ledger.path
    if folder is None and ledger is not None:
        folder = ledger.with_name(f"{ledger.name}.synthetic")
    return None if folder is None else SyntheticStore(folder, settings.server.synthetic_limits)


def _counts_file(settings: Settings) -> Path | None:
    """Where answers to collections are counted: by default beside the ledger, if it is a file."""
    file, ledger = settings.server.collections_file, settings.ledger.path
    if file is None and ledger is not None:
        file = ledger.with_name(f"{ledger.name}.collections")
    return file


def _collections(
    settings: Settings, ledger: Ledger, names: Sequence[str], crew: Crew
) -> CollectionService:
    """The collections of a server; if one worker opens or closes one, the others know at once."""
    tell_others = partial(crew.tell_others, NEWS_OF_COLLECTIONS)
    collections = CollectionService(ledger, _counts_file(settings), names, tell_others)
    if not crew.seat.is_alone:
        crew.answer(NEWS_OF_COLLECTIONS, lambda _: collections.read_again())
    return collections


def _streams(settings: Settings, ledger: Ledger, crew: Crew) -> StreamService:
    """The streams of a server: with states beside the ledger, if that is a file."""
    path = settings.ledger.path
    folder = None if path is None else path.with_name(f"{path.name}.streams")
    private = [table.schema.table for table in settings.tables]
    declared = [*private, *(one.name for one in settings.public)]
    return StreamService(ledger, folder, declared, crew)


def _public(settings: Settings) -> tuple[tuple[PublicTable, ...], list[ConfigurationInvalid]]:
    """The public tables, or why they cannot be read, which private ones may have beside."""
    try:
        return load_public_tables(settings.public), []
    except ConfigurationInvalid as refusal:
        return (), [refusal]


def _sources(
    settings: Settings, ledger: Ledger, refused: list[ConfigurationInvalid]
) -> dict[str, Source | GrowingSource | RemoteGates]:
    """The rows of each table.

    Raises
    ------
    ConfigurationInvalid
        With what is wrong with each that cannot be read, since each reading takes its time, and
        with what was refused before.
    """
    found: dict[str, Source | GrowingSource | RemoteGates] = {}
    for table in settings.tables:
        try:
            found[table.schema.table] = _source(table, ledger)
        except ConfigurationInvalid as refusal:
            refused.append(refusal)
    if refused:
        raise _together(refused)
    return found


def _together(refused: Sequence[ConfigurationInvalid]) -> ConfigurationInvalid:
    """Several refusals as one, which says each of them once."""
    if len(refused) == 1:
        return refused[0]
    return ConfigurationInvalid("\n".join(dict.fromkeys(one.explain() for one in refused)))


def _source(table: TableSettings, ledger: Ledger) -> Source | GrowingSource | RemoteGates:
    """The rows of a table; of one that grows, they are read once it is known up to where."""
    if table.closing is not None:
        place = table.extract.file(ledger.key, _extract_made)
        return growing_rows(table.schema, table.location, ledger.key, place)
    return _snapshot(table, ledger)


def _open_gate(
    table: TableSettings, source: Source | GrowingSource | RemoteGates, ledger: Ledger
) -> Gate:
    gate = open_table(ledger, table.schema, table.funds, source, SystemNoise())
    if table.per_query is not None:
        set_first_limit(ledger, table.schema.table, table.per_query)
    if table.closing is not None:
        open_periods(gate, table.closing)
    return gate


def _snapshot(table: TableSettings, ledger: Ledger) -> Source | RemoteGates:
    """The data of a table that does not grow: of the generation that its ledger has come to."""
    known = ledger.history(table.schema.table).rows_fingerprint or ""
    place = table.extract.place(ledger.key, _extract_made)
    return table_rows(table.schema, table.location, ledger.key, place, known, Extracted.OPENED)


def _extract_made(table: str, why: WhyMade) -> None:
    """Anyone who runs the server learns why a start took its time: what was unlike, not how."""
    write_log(logging.INFO, "extract_made", table=table, code=why.value)
