"""What the catalog shows one caller: the tables they may know of, and their session's settings."""

from collections.abc import Sequence
from importlib.metadata import version
from typing import Final

import pyarrow as pa

from planner.domain.relations import PublicRelation
from planner.sql.settings import every_default
from planner.sql.statements import Query
from proxy.api.requests import QueryRequest
from proxy.catalog.listed import listed_tables
from proxy.catalog.shadow import catalog_answer
from proxy.catalog.world import World
from proxy.engine.own_views import LISTED_VIEWS
from proxy.engine.postprocessing import OuterSql
from proxy.engine.visibility import VisibleTables
from proxy.sources.public.table import PublicTable

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
    return World(
        listed_tables(
            infos, [table for table, _ in public], seen.synthetic, list(LISTED_VIEWS.items())
        ),
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
