"""Looks up the tables that a caller may know of, and describes public tables to the planner.

Resolves names to tables, among those that one caller may know of.

Private and public tables have one name each. A synthetic table belongs to its private table:
``source.name`` always refers to it. The name alone refers to it if no private or public table has
that name, and no other source has a synthetic table with that name. A table with one row for each
unit of a private table is a private table whose name is ``source.units``; catalogs show it as
`units` in the schema `source`, as they show synthetic tables.

Public relations: the planner's view of tables that anybody may see.

They are joined with private rows by their key, on the public domain, and may be read freely by the
SQL that follows the noisy answers. Views of the schema `data_privacy` have no key and no values
here.
"""

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Final, TypeAlias

from cube.axis import LevelValue
from cube.refusals import UnknownName
from planner.sql import listed, shortened

SCHEMAS: Final = frozenset(
    {"main", "public"}
)  # which clients of DuckDB and PostgreSQL put before names
UNITS: Final = "units"  # the table with a row for each unit of another


def units_table(owner: str) -> str:
    """The name of the table with one row for each unit of a private table.

    >>> units_table("orders")
    'orders.units'
    """
    return f"{owner}.{UNITS}"


def owner_of(table: str) -> str | None:
    """The table whose units a table has rows for; None of a table by another name.

    >>> owner_of("orders.units"), owner_of("orders"), owner_of("units")
    ('orders', None, None)
    """
    owner = table.removesuffix(f".{UNITS}")
    return None if owner in {table, ""} else owner


def placed(table: str, schema: str) -> tuple[str, str]:
    """The schema in which catalogs show a declared table, and its name there.

    >>> placed("orders", "public"), placed("orders.units", "public")
    (('public', 'orders'), ('orders', 'units'))
    """
    owner = owner_of(table)
    return (schema, table) if owner is None else (owner, UNITS)


@dataclass(frozen=True, slots=True)
class WrittenName:
    """A name as written; letter case counts only between double quotes."""

    text: str
    is_quoted: bool = False

    @property
    def is_schema(self) -> bool:
        """Whether it is one of the schemas that every table is in."""
        return self.text.casefold() in SCHEMAS

    def means(self, name: str) -> bool:
        """Whether it matches a name."""
        return self.text == name or (not self.is_quoted and self.text.casefold() == name.casefold())

    def among(self, names: Iterable[str]) -> str | None:
        """The name that it matches, preferring an exact match."""
        found = [name for name in names if self.means(name)]
        return self.text if self.text in found else next(iter(found), None)


@dataclass(frozen=True, slots=True, order=True)
class SyntheticName:
    """The name of a synthetic table, with the private table that it belongs to."""

    source: str
    name: str

    def __str__(self) -> str:
        return f"{self.source}.{self.name}"


Meaning: TypeAlias = str | SyntheticName | None


@dataclass(frozen=True, slots=True)
class TableNames:
    """The names of the tables that one caller may know of.

    Parameters
    ----------
    declared : tuple of str
        Private and public tables.
    synthetic : tuple of SyntheticName
    """

    declared: tuple[str, ...]
    synthetic: tuple[SyntheticName, ...] = ()

    def meaning(self, word: WrittenName, qualifier: WrittenName | None = None) -> Meaning:
        """The table that a name refers to: the name of a declared table, a synthetic one, or None.

        Raises
        ------
        UnknownName
            If it is ambiguous.
        """
        if qualifier is None or qualifier.is_schema:
            declared = word.among(self.declared)
            if declared is not None:
                return declared
        return self._units_meaning(word, qualifier) or self.synthetic_meaning(word, qualifier)

    def _units_meaning(self, word: WrittenName, qualifier: WrittenName | None) -> str | None:
        """The table of another's units that ``source.units`` refers to, if there is one."""
        if qualifier is None or not word.means(UNITS):
            return None
        owners = {owner: name for name in self.declared if (owner := owner_of(name))}
        return owners.get(qualifier.among(owners) or "")

    def synthetic_meaning(
        self, word: WrittenName, qualifier: WrittenName | None = None
    ) -> SyntheticName | None:
        """The synthetic table that a name refers to, ignoring other tables; None if there is none.

        Raises
        ------
        UnknownName
            If it is ambiguous.
        """
        found = [one for one in self.synthetic if word.means(one.name)]
        if qualifier is not None:
            source = qualifier.among(one.source for one in found)
            # A source may have the name of a schema; any other qualifier is a source.
            if source is not None or not qualifier.is_schema:
                found = [one for one in found if one.source == source]
        if len(found) > 1:
            raise UnknownName(
                f"Several private tables have a synthetic table {shortened(word.text)!a}.",
                hint=f"Write its private table before its name: {listed(map(str, sorted(found)))}.",
            )
        return next(iter(found), None)

    def shown(self) -> list[str]:
        """Every table, by its shortest unambiguous name."""
        return sorted((*self.declared, *map(self.brief, self.synthetic)))

    def brief(self, one: SyntheticName) -> str:
        """A synthetic table's name, with its source if necessary."""
        folded = one.name.casefold()
        others = [name for name in self.declared if name.casefold() == folded]
        others += [str(other) for other in self.synthetic if other.name.casefold() == folded]
        return one.name if others == [str(one)] else str(one)


OWN_PREFIX = "tacit_"  # of the relations that the outer SQL reads
PRIVACY_SCHEMA = "data_privacy"
REMAINING = "estimate_remaining_dp_aggregates"  # a table function of one private table's name


@dataclass(frozen=True, slots=True, eq=False)
class PublicRelation:
    """A public relation's name and columns.

    Parameters
    ----------
    name : str
        The table's name, without its schema.
    columns : tuple of str
    key : tuple of str
        The columns whose values are not NULL, and together unique; empty if none are known.
    values : mapping
        With a key, the SQL type and the values of every column.
    source : str, optional
        The private table that a synthetic one belongs to.
    types : mapping
        The SQL types of the columns, where they are known.
    """

    name: str
    columns: tuple[str, ...]
    key: tuple[str, ...] = ()
    values: Mapping[str, tuple[str, Sequence[LevelValue]]] = field(default_factory=dict)
    source: str | None = None
    types: Mapping[str, str] = field(default_factory=dict)

    @property
    def outer_name(self) -> str:
        """Its unique name in the outer SQL."""
        if self.source is None:
            return public_table(self.name)
        return synthetic_table(SyntheticName(self.source, self.name))


Columns = Mapping[str, tuple[str, Sequence[LevelValue]]]
PublicRows = Callable[[str, Sequence[str]], Columns]
"""Runs SQL over public tables, named as it names them; each column's SQL type and values."""


def no_public_rows(sql: str, names: Sequence[str]) -> Columns:
    """For planners without public tables."""
    raise ValueError(f"there are no public tables to run {sql!r} on: {names}")


def public_table(name: str) -> str:
    """The name of a public table in the outer SQL, which no name in WITH can hide.

    >>> public_table("cities")
    'tacit_public.cities'
    """
    return f"{OWN_PREFIX}public.{name}"


def synthetic_table(name: SyntheticName) -> str:
    """The name of a synthetic table in the outer SQL.

    >>> synthetic_table(SyntheticName("adult", "s"))
    'tacit_synthetic.adult.s'
    """
    return f"{OWN_PREFIX}synthetic.{name}"


def privacy_view(name: str) -> str:
    """The name of a `data_privacy` view in the outer SQL."""
    return f"{OWN_PREFIX}{PRIVACY_SCHEMA}.{name}"


def remaining_of(table: str) -> str:
    """The name in the outer SQL of the forecast for one private table.

    >>> remaining_of("adult")
    'tacit_data_privacy.estimate_remaining_dp_aggregates(adult)'
    """
    return privacy_view(f"{REMAINING}({table})")
