"""What one caller's catalog is made of: their tables, and facts of the server and their session."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from functools import cached_property
from types import MappingProxyType
from typing import Final

from planner.catalog_sql.functions import CatalogFacts
from planner.catalog_sql.recognise import CATALOG, INFORMATION
from planner.domain.relations import PRIVACY_SCHEMA
from proxy.api.requests import CATALOG as DATABASE
from proxy.api.requests import DB_SCHEMA
from proxy.catalog.listed import ListedTable, schema_number
from proxy.catalog.postgresql import relations, types

DATABASE_NUMBER: Final = 5  # as PostgreSQL numbers the database `postgres`
OWNER: Final = "tacit"  # whose everything is
OWNER_NUMBER: Final = 10
# Numbers that drivers know by heart.
_SCHEMA_NUMBERS: Final = {CATALOG: 11, DB_SCHEMA: 2200}
_RELATION_NUMBERS: Final = {
    "pg_type": 1247,
    "pg_attribute": 1249,
    "pg_proc": 1255,
    "pg_class": 1259,
    "pg_authid": 1260,
    "pg_database": 1262,
    "pg_am": 2601,
    "pg_attrdef": 2604,
    "pg_constraint": 2606,
    "pg_description": 2609,
    "pg_index": 2610,
    "pg_namespace": 2615,
    "pg_rewrite": 2618,
    "pg_trigger": 2620,
    "pg_tablespace": 1213,
    "pg_extension": 3079,
    "pg_enum": 3501,
}
_FIRST_FREE: Final = 11_000  # system relations are numbered from here, below users' objects


@dataclass(frozen=True)
class World:
    """What a caller's catalog shows.

    Parameters
    ----------
    tables : tuple of ListedTable
    user, version : str
    settings : mapping
        Every setting and its value, by names in lower case.
    """

    tables: tuple[ListedTable, ...]
    user: str
    version: str
    settings: Mapping[str, str] = field(default_factory=dict)

    @cached_property
    def schemas(self) -> Mapping[str, int]:
        """The number of every schema."""
        own = (DB_SCHEMA, PRIVACY_SCHEMA, *(table.schema for table in self.tables))
        names = dict.fromkeys((CATALOG, INFORMATION, *own))
        return {name: _SCHEMA_NUMBERS.get(name) or schema_number(name) for name in names}

    @property
    def facts(self) -> CatalogFacts:
        """What functions tell."""
        numbers = dict(system_numbers())
        numbers |= {(table.schema, table.name): table.number for table in self.tables}
        numbers |= {("pg_namespace", name): number for name, number in self.schemas.items()}
        numbers |= {("pg_type", one.name): one.oid for one in types()}
        numbers |= {("pg_type", one.spoken): one.oid for one in types()}
        numbers |= {("pg_roles", OWNER): OWNER_NUMBER, ("pg_roles", self.user): self.user_number}
        return CatalogFacts(
            self.user, DATABASE, DB_SCHEMA, self.version, self.settings, MappingProxyType(numbers)
        )

    @property
    def user_number(self) -> int:
        """The number of the caller's role."""
        return schema_number(f"role {self.user}")


def system_numbers() -> dict[tuple[str, str], int]:
    """The numbers of the catalog's own relations, by schema and name."""
    return {
        (schema, name): _RELATION_NUMBERS.get(name, _FIRST_FREE + place)
        for place, (schema, name) in enumerate(relations())
    }
