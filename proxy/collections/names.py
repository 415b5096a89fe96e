"""What a new collection may be called: a table's name that SQL needs no quotes for, and no other's.

A collection keeps its name for ever, so that what is no good as one is refused before it is noted.
Those that a ledger has already are read as they are.
"""

from collections.abc import Collection
from typing import Final

from cube.refusals import InvalidRequest, NameTaken
from planner.domain.relations import PRIVACY_SCHEMA
from planner.sql.messages import shortened
from planner.sql.words import is_new_name
from proxy.api.requests import DB_SCHEMA

SCHEMAS: Final = frozenset({PRIVACY_SCHEMA, DB_SCHEMA, "pg_catalog", "information_schema"})


def check_new_name(name: str, synthetic: Collection[str]) -> None:
    """Refuse a name that would mean something else, or nothing, in SQL.

    Parameters
    ----------
    name : str
    synthetic : collection of str
        The names of synthetic tables that the creator may know of.

    Raises
    ------
    InvalidRequest, NameTaken
    """
    if not is_new_name(name) or name.casefold() in SCHEMAS:
        raise InvalidRequest(
            f"{shortened(name)!a} cannot be the name of a collection.",
            hint="Use letters, digits and _, not starting with a digit, and neither an SQL keyword "
            "nor a schema's name: it is a table in SQL.",
        )
    if name.casefold() in {one.casefold() for one in synthetic}:
        raise NameTaken(
            f"{name} is the name of a synthetic table.",
            hint="Take another name: this one would mean the collection from now on.",
        )
