"""What one caller may know of at one moment, and what the catalog and outer SQL are given of it.

What one caller may know of at one moment: private, public and synthetic tables, and a planner.

The planner of a set of tables knows no other table, so its messages and suggestions cannot name
what was not granted. It is made anew when a synthetic table is created or dropped, or a private one
grows.

What outer SQL reads besides answers: public and synthetic tables, views of data_privacy.

What the catalog shows one caller: the tables they may know of, and their session's settings.
"""

import datetime as dt
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from importlib.metadata import version
from typing import Final, TypeAlias

import pyarrow as pa

from cube.refusals import InvalidRequest, Refused
from cube.schema import Schema
from planner.domain import REMAINING, Columns, PublicRelation, privacy_view, units_table
from planner.lowering import TableGenerations
from planner.planner import PLAN_BYTES_DEFAULT, Planner
from planner.sql import Query, every_default
from planner.workload import RequestedTarget
from proxy.api import Caller, QueryRequest, unknown_table
from proxy.catalog import World, catalog_answer, listed_tables
from proxy.engine.answers import N_ROWS_TRIED
from proxy.engine.system_views import (
    REMAINING_SCHEMA,
    VIEW_SCHEMAS,
    TableRecord,
    remaining_aggregates,
)
from proxy.engine.system_views import privacy_view as view_of
from proxy.feature import View
from proxy.outer_sql.postprocessing import OuterSql
from proxy.sources.public import PublicTable
from proxy.synthetic_tables import (
    SYNTHETIC_VIEW,
    SyntheticRecord,
    SyntheticTableService,
    synthetic_view,
)
from proxy.tables import ExtentName, LiveTables, SelfAnswering, ServedTable, shown_instead

Key: TypeAlias = tuple[frozenset[tuple[str, ExtentName | str]], tuple[str, ...]]


@dataclass(frozen=True, slots=True, eq=False)
class VisibleTables:
    """The tables that one caller may know of.

    Parameters
    ----------
    tables : mapping
        The private tables, by name.
    public : mapping
        Functions that return the rows of public and synthetic tables, by their names in the outer
        SQL.
    earlier : mapping
        Earlier generations of the private tables, which AS OF means.
    own : mapping
        The tables that answer by themselves.
    views : mapping
        The views of features, by name.
    unnamed : RequestedTarget
        What holds where a request says nothing.
    """

    tables: Mapping[str, ServedTable]
    public: Mapping[str, Callable[[], pa.Table]]
    synthetic: tuple[SyntheticRecord, ...]
    planner: Planner
    earlier: Mapping[str, ServedTable]
    own: Mapping[str, SelfAnswering]
    views: Mapping[str, View]
    unnamed: RequestedTarget = field(default_factory=RequestedTarget)

    def units_of(self, table: str) -> Schema | None:
        """The schema of the table with one row for each unit of a private table, if it is there."""
        found = self.tables.get(units_table(table))
        return None if found is None else found.info.schema

    @property
    def key(self) -> Key:
        """A key; equal where equal texts mean the same."""
        return visible_key(self.gated, self.own, self.synthetic)

    @property
    def gated(self) -> Mapping[str, ServedTable]:
        """All that a statement may be answered from by a history and a budget."""
        return {**self.tables, **self.earlier}

    def priced(self, name: str) -> ServedTable:
        """A table that has a budget.

        Raises
        ------
        InvalidRequest, UnknownName
            If it answers by itself, or is not there.
        """
        found = self.gated.get(name)
        if found is None:
            raise self.not_private(name)
        return found

    def not_private(self, name: str) -> Refused:
        """The refusal of a table that is not private, or not there."""
        table = self.own.get(name)
        if table is None:
            return unknown_table(name, list(self.tables))
        return InvalidRequest(
            f"{name} is {table.info.kind}: its answers are free, and cannot be bought in a batch.",
            hint="Ask its SELECT statements one by one.",
        )

    @property
    def answering(self) -> Mapping[str, ServedTable | SelfAnswering]:
        """All that a statement may be answered from."""
        return {**self.gated, **self.own}


def visible_key(
    tables: Mapping[str, ServedTable],
    own: Mapping[str, SelfAnswering],
    synthetic: Sequence[SyntheticRecord],
) -> Key:
    """The key for these tables."""
    extents = [(name, table.extent.name) for name, table in tables.items()]
    editions = [(name, table.edition) for name, table in own.items()]
    return frozenset((*extents, *editions)), tuple(record.id for record in synthetic)


def earlier_tables(
    live: LiveTables, tables: Mapping[str, ServedTable], caller: Caller
) -> dict[str, ServedTable]:
    """Earlier generations of tables, which are history alone, for a caller who may see it."""
    found: dict[str, ServedTable] = {}
    for name, table in tables.items():
        if shown_instead(table, caller) is None:
            found |= live.earlier(name, table)
    return found


def visible(  # noqa: PLR0913, PLR0917 - all that a planner may know of
    tables: Mapping[str, ServedTable],
    earlier: Mapping[str, ServedTable],
    own: Mapping[str, SelfAnswering],
    public: Sequence[tuple[PublicTable, PublicRelation]],
    synthetic: tuple[SyntheticRecord, ...],
    service: SyntheticTableService,
    outer: OuterSql,
    views: Mapping[str, View],
) -> VisibleTables:
    """The tables, with a planner for them."""
    given = {relation: _given(table.data) for table, relation in public}
    kept = {_relation(record): _kept(service, record) for record in synthetic}
    rows = {relation.outer_name: read for relation, read in (given | kept).items()}

    def public_rows(sql: str, names: Sequence[str]) -> Columns:
        found = outer.run(sql, {name: rows[name]() for name in names})
        return PublicTable("public_rows", None, found).columns()

    gated = {**tables, **earlier}
    infos = {name: table.info for name, table in gated.items()}
    infos |= {name: table.info for name, table in own.items()}
    planner = Planner(
        schemas={name: info.schema for name, info in infos.items()},
        defaults={name: info.default for name, info in infos.items()},
        public=(*given, *kept),
        privacy_views=(*VIEW_SCHEMAS, *views, SYNTHETIC_VIEW),
        public_rows=public_rows,
        sums={name: info.sums for name, info in infos.items()},
        generations=_generations(tables, earlier),
        n_bytes_max=max(
            (table.memory.planner for table in gated.values()), default=PLAN_BYTES_DEFAULT
        ),
    )
    return VisibleTables(tables, rows, synthetic, planner, earlier, own, views)


def _generations(
    tables: Mapping[str, ServedTable], earlier: Mapping[str, ServedTable]
) -> dict[str, TableGenerations]:
    """The generations of each table that has earlier ones; who may not see these has the last."""
    found = {}
    for name, table in tables.items():
        begun_at = table.gate.history.generations.begun_at[: table.extent.generation]
        if len(begun_at) > 1:
            names = [own for own, one in earlier.items() if one.counted_as.table == name]
            moments = map(dt.datetime.fromisoformat, begun_at if names else begun_at[-1:])
            found[name] = TableGenerations((*names, name), tuple(moments))
    return found


def _relation(record: SyntheticRecord) -> PublicRelation:
    columns = tuple(name for name, _ in record.columns)
    types = dict(record.columns)
    return PublicRelation(record.name, columns, source=record.table, types=types)


def _given(table: pa.Table) -> Callable[[], pa.Table]:
    return lambda: table


def _kept(service: SyntheticTableService, record: SyntheticRecord) -> Callable[[], pa.Table]:
    return lambda: service.rows(record)


def listed_views(views: Mapping[str, View]) -> dict[str, pa.Schema]:
    """The columns of every view with a schema of its own, by name; with those of features."""
    return {**VIEW_SCHEMAS, **{name: view.schema for name, view in views.items()}}


@dataclass(frozen=True, slots=True)
class Shown:
    """What a caller's views show, made when one is read.

    Parameters
    ----------
    records : callable
        Of the private tables that they may know of.
    caller : Caller
        To whom the views of features are shown.
    """

    records: Callable[[], Sequence[TableRecord]]
    caller: Caller


def public_relations(
    names: Sequence[str], seen: VisibleTables, shown: Shown | None
) -> dict[str, pa.Table]:
    """Public tables, and a caller's `data_privacy` views, under their names in the outer SQL.

    Parameters
    ----------
    seen : VisibleTables
        What the caller may know of.
    shown : Shown, optional
        Without it, samples and empty views, to learn the types of the result.
    """
    found: dict[str, pa.Table] = {}
    for name in names:
        view = name.removeprefix(privacy_view(""))
        if name in seen.public:
            rows = seen.public[name]()
            found[name] = rows.slice(0, N_ROWS_TRIED) if shown is None else rows
        elif view == SYNTHETIC_VIEW:
            found[name] = synthetic_view(() if shown is None else seen.synthetic)
        elif view in seen.views:
            made = seen.views[view]
            none = made.schema.empty_table()
            found[name] = none if shown is None else made.shown_to(shown.caller)
        elif shown is None:
            found[name] = VIEW_SCHEMAS.get(view, REMAINING_SCHEMA).empty_table()
        elif view in VIEW_SCHEMAS:
            found[name] = view_of(view, shown.records())
        else:
            table = view.removeprefix(f"{REMAINING}(").removesuffix(")")
            found[name] = remaining_aggregates(table, shown.records())
    return found


# Clients look for the version of PostgreSQL whose SQL they may send.
VERSION: Final = f"PostgreSQL 15.0 (Tacit {version('tacit-dp')})"


def catalog_world(
    seen: VisibleTables,
    public: Sequence[tuple[PublicTable, PublicRelation]],
    request: QueryRequest,
) -> World:
    """The world of one request."""
    infos = [table.info for table in seen.tables.values()]
    infos += [table.info for table in seen.own.values()]
    caller = request.caller.payer.analyst
    views = list(listed_views(seen.views).items())
    return World(
        listed_tables(infos, [table for table, _ in public], seen.synthetic, views),
        caller,
        VERSION,
        {**every_default(), "session_authorization": caller, **dict(request.settings)},
    )


def catalogued(
    query: Query,
    request: QueryRequest,
    seen: VisibleTables,
    public: Sequence[tuple[PublicTable, PublicRelation]],
    outer: OuterSql,
) -> pa.Table:
    """The answer of the catalog, which knows what the caller may know of, and no data."""
    world = catalog_world(seen, public, request)
    return catalog_answer(query, request.parameters, world, outer)
