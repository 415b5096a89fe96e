"""What a private view names that its sources do not have, for the owner who wrote it.

DuckDB's own message is not shown, since it may quote a row: where the SQL reads a file by itself,
its columns are guessed from the rows. A name is taken from it only if the view's text holds it.
"""

import re
from collections.abc import Iterable, Mapping, Sequence

from planner.sql.messages import listed, suggestion

NAMED = (
    (r'Referenced column "(?P<name>[^"]+)" not found', "column"),
    (r'does not have a column named "(?P<name>[^"]+)"', "column"),
    (r'Referenced table "(?P<name>[^"]+)" not found', "table"),
    (r"Table with name (?P<name>\S+) does not exist", "table"),
    (r"Function with name (?P<name>\S+) does not exist", "function"),
    (r"No function matches the given name and argument types '(?P<name>\w+)\(", "function"),
    (r'column "(?P<name>[^"]+)" must appear in the GROUP BY clause', "group key"),
)
UNKNOWN = "names columns or tables that its sources do not have, or does not fit their types"


def what_is_wrong(
    message: str, sql: str, sources: Mapping[str, Sequence[str]]
) -> tuple[str, str | None]:
    """What is wrong with a view that DuckDB could not bind, and what there is instead.

    Parameters
    ----------
    message : str
        DuckDB's refusal, from before it ran the view.
    sql : str
        The view.
    sources : mapping of str to sequence of str
        The columns of each source, under the names that the view may use; none for a source whose
        columns may not be shown.
    """
    name, kind = _named(message, sql)
    match kind:
        case "column":
            every = [column for columns in sources.values() for column in columns]
            there = "; ".join(
                f"{source} has {listed(has)}" if has else f"{source} has what its first line says"
                for source, has in sources.items()
            )
            return f"names a column {name} that its sources do not have", _hint(name, every, there)
        case "table":
            there = f"Its sources are {listed(sources)}"
            return f"names a table {name} that is not among its sources", _hint(
                name, sources, there
            )
        case "function":
            return (
                f"calls {name}, which DuckDB does not have for arguments of these types",
                "Every column of a CSV file is text: CAST it first.",
            )
        case "group key":
            return (
                f"selects {name}, which is neither grouped by nor aggregated",
                f"Add it to GROUP BY, or write any_value({name}).",
            )
        case _:
            return UNKNOWN, None


def _named(message: str, sql: str) -> tuple[str, str]:
    """The name that a message is about, as far as the owner wrote it, and the kind of thing."""
    for pattern, kind in NAMED:
        found = re.search(pattern, message)
        if found is not None and found["name"].casefold() in sql.casefold():
            return found["name"], kind
    return "", ""


def _hint(name: str, names: Iterable[str], there: str) -> str:
    nearest = suggestion(name, names)
    return f"{there}." if nearest is None else f"{nearest} {there}."
