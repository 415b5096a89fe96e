"""What clients ask the catalog: statements recorded of them, in tests/catalog_statements.

A statement ends with a semicolon at the end of a line, and follows a comment that says who sends
it. ``:cities`` stands for the object number of what has that name, in `NUMBERED`.
"""

import re
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Final

import pyarrow as pa

from proxy.engine.engine import Engine
from proxy.sources.public.table import PublicTable
from tests.support.worlds import people_served, random_rows

FOLDER: Final = Path(__file__).parent.parent / "catalog_statements"
NUMBERED: Final = {
    "cities": "public.cities",
    "people": "public.people",
    "budgets": "data_privacy.budgets",
    "cities_pkey": "public.cities_pkey",
}
CITIES: Final = PublicTable(
    "cities",
    "city",
    pa.table({"city": ["Oslo", "Rome"], "country": ["Norway", "Italy"], "size": [700, 2800]}),
)
# The same tables where PostgreSQL itself is asked.
DEFINITIONS: Final = """
CREATE TABLE people (
    age bigint NOT NULL, city text, member boolean NOT NULL, visits bigint NOT NULL);
CREATE TABLE cities (city text PRIMARY KEY, country text, size bigint);
CREATE SCHEMA data_privacy;
CREATE VIEW data_privacy.budgets AS SELECT ''::text AS table_name;
"""


@dataclass(frozen=True)
class Asked:
    """One statement of a client."""

    client: str
    sql: str

    def of(self, numbers: dict[str, int]) -> str:
        """The statement with the numbers of the server that is asked."""
        return re.sub(r"(?<!:):([a-z_]+)\b", lambda found: str(numbers[found[1]]), self.sql)


def asked_of_catalog() -> Iterator[Asked]:
    """Every statement."""
    for path in sorted(FOLDER.glob("*.sql")):
        for part in re.split(r";\n(?:\n|\Z)", path.read_text(encoding="utf-8")):
            if part.strip():
                first, _, sql = part.lstrip().partition("\n")
                yield Asked(first.removeprefix("-- "), sql)


def numbers_of(asking: Callable[[str], int]) -> dict[str, int]:
    """The numbers that statements mention, by what one number is asked with."""
    found = {}
    for word, name in NUMBERED.items():
        schema, _, relation = name.partition(".")
        found[word] = asking(
            "SELECT c.oid FROM pg_catalog.pg_class c JOIN pg_catalog.pg_namespace n "  # noqa: S608 - own names
            f"ON n.oid = c.relnamespace WHERE relname = '{relation}' AND nspname = '{schema}'"
        )
    return found


@contextmanager
def catalog_engine(folder: Path) -> Iterator[Engine]:
    """An engine with a private table and a public one that has a key."""
    with people_served(folder, random_rows(20)) as table:
        yield Engine({table.info.schema.table: table}, [CITIES])
