"""What the catalog knows besides its relations: of the server, the caller and their session."""

from collections.abc import Mapping
from dataclasses import dataclass, field


@dataclass(frozen=True, slots=True)
class CatalogFacts:
    """Facts for one query.

    Parameters
    ----------
    user, database, schema, version : str
        The caller, where tables are, and the server's version as a sentence.
    settings : mapping
        Every setting and its value, by names in lower case.
    numbers : mapping
        The object numbers of relations, by schema and name; of types and schemas, by kind and name.
    """

    user: str
    database: str
    schema: str
    version: str
    settings: Mapping[str, str] = field(default_factory=dict)
    numbers: Mapping[tuple[str, str], int] = field(default_factory=dict)
