"""What one caller may know of at one moment: private, public and synthetic tables, and a planner.

The planner of a set of tables knows no other table, so its messages and suggestions cannot name
what was not granted. It is made anew when a synthetic table is created or dropped, or a private one
grows.
"""

import datetime as dt
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import TypeAlias

import pyarrow as pa

from cube.refusals import InvalidRequest, Refused
from cube.schema import Schema
from planner.domain.relations import Columns, PublicRelation, units_table
from planner.lowering.as_of import TableGenerations
from planner.planner import PLAN_BYTES_DEFAULT, Planner
from proxy.api.requests import Caller, unknown_table
from proxy.engine.own_views import LISTED_VIEWS
from proxy.engine.postprocessing import OuterSql
from proxy.sources.public.table import PublicTable
from proxy.synthetic_tables.record import SyntheticRecord
from proxy.synthetic_tables.service import SyntheticTableService
from proxy.synthetic_tables.system_view import SYNTHETIC_VIEW
from proxy.tables.disclosure import shown_instead
from proxy.tables.extent import ExtentName
from proxy.tables.live_tables import LiveTables
from proxy.tables.private_table import ServedTable
from proxy.tables.self_answering import SelfAnswering

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
    synthetic : tuple of SyntheticRecord
    planner : Planner
    earlier : mapping
        Earlier generations of the private tables, which AS OF means.
    own : mapping
        The tables that answer by themselves.
    """

    tables: Mapping[str, ServedTable]
    public: Mapping[str, Callable[[], pa.Table]]
    synthetic: tuple[SyntheticRecord, ...]
    planner: Planner
    earlier: Mapping[str, ServedTable]
    own: Mapping[str, SelfAnswering]

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
            f"{name} is {table.info.kind}: its answers are free, and nothing of it is bought.",
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
        privacy_views=(*LISTED_VIEWS, SYNTHETIC_VIEW),
        public_rows=public_rows,
        sums={name: info.sums for name, info in infos.items()},
        generations=_generations(tables, earlier),
        n_bytes_max=max(
            (table.memory.planner for table in gated.values()), default=PLAN_BYTES_DEFAULT
        ),
    )
    return VisibleTables(tables, rows, synthetic, planner, earlier, own)


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
