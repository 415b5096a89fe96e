"""Public relations: the planner's view of tables that anybody may see.

They are joined with private rows by their key, on the public domain, and may be read freely by the
SQL that follows the noisy answers. Views of the schema `data_privacy` have no key and no values
here.
"""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field

from cube.axis import LevelValue
from planner.domain.table_names import SyntheticName

OWN_PREFIX = "tacit_"  # of the relations that the outer SQL reads
PRIVACY_SCHEMA = "data_privacy"
REMAINING = "estimate_remaining_dp_aggregates"  # a table function of one private table's name


@dataclass(frozen=True, slots=True, eq=False)
class PublicRelation:
    """A public relation's name and columns.

    Parameters
    ----------
    name : str
        Without its schema.
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
