"""`source = "sc://HOST:PORT"`: a table behind Spark Connect, as its owner declares it."""

from collections.abc import Mapping
from pathlib import Path
from typing import Any, Final

from proxy.sources.problems import Problems
from proxy.sources.spark_table import SCHEME, SparkTable

OF_SPARK: Final = ("version", "token_file", "tls")


def is_spark(source: str) -> bool:
    """Whether a source is behind Spark Connect."""
    return source.startswith(SCHEME)


def read_spark(
    values: Mapping[str, Any], folder: Path, keys: tuple[str, ...], problems: Problems
) -> SparkTable | None:
    """The table; None on problems. Values of a wrong type are recorded with the table's section."""
    table, token, version = (values.get(key) for key in ("source_table", "token_file", "version"))
    path = folder / token if isinstance(token, str) else None
    if path is not None and not path.is_file():
        problems.add((*keys, "token_file"), "names no file")
    try:
        return SparkTable(
            address=str(values["source"]).removeprefix(SCHEME).rstrip("/"),
            parts=tuple(table.split(".")) if isinstance(table, str) else (),
            version=version if type(version) is int else None,
            immutable=values.get("immutable") is True,
            token_file=path,
            tls=values.get("tls") is not False,
        )
    except ValueError as error:
        problems.add((*keys, "source"), str(error))
        return None
