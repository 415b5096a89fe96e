"""Tables of a lake, written with their own libraries: every write gives another version."""

from collections.abc import Callable
from pathlib import Path
from typing import Protocol

import pyarrow as pa
from deltalake import DeltaTable, write_deltalake
from pyiceberg.catalog.sql import SqlCatalog


class LakeTable(Protocol):
    """A table whose versions stay readable, in a folder of this machine."""

    @property
    def parts(self) -> tuple[str, str]:
        """Its name in an engine's SQL."""
        ...

    def append(self, rows: pa.Table) -> int:
        """Write rows beside those that are there; the version since then."""
        ...

    def overwrite(self, rows: pa.Table) -> int:
        """Write rows in the place of all others; the version since then."""
        ...


class DeltaLakeTable:
    """A Delta table: versions from 0."""

    def __init__(self, folder: Path) -> None:
        self._path = folder / "people"

    @property
    def parts(self) -> tuple[str, str]:
        return "delta", str(self._path)

    def append(self, rows: pa.Table) -> int:
        write_deltalake(self._path, rows, mode="append")
        return self._version

    def overwrite(self, rows: pa.Table) -> int:
        write_deltalake(self._path, rows, mode="overwrite")
        return self._version

    @property
    def _version(self) -> int:
        return DeltaTable(self._path).version()


class IcebergTable:
    """An Iceberg table: its versions are snapshots, whose numbers are drawn."""

    def __init__(self, folder: Path) -> None:
        self._folder = folder
        self._catalog = SqlCatalog(
            "lake", uri=f"sqlite:///{folder}/catalog.db", warehouse=folder.as_uri()
        )
        self._catalog.create_namespace("clinic")

    @property
    def parts(self) -> tuple[str, str]:
        return "iceberg", str(self._folder / "clinic" / "people")

    def append(self, rows: pa.Table) -> int:
        table = self._catalog.create_table_if_not_exists("clinic.people", schema=rows.schema)
        table.append(rows)
        return self._latest

    def overwrite(self, rows: pa.Table) -> int:
        self._catalog.load_table("clinic.people").overwrite(rows)
        return self._latest

    @property
    def _latest(self) -> int:
        snapshot = self._catalog.load_table("clinic.people").current_snapshot()
        if snapshot is None:
            raise LookupError("nothing was written yet")
        return int(snapshot.snapshot_id)


LAKES: dict[str, Callable[[Path], LakeTable]] = {"delta": DeltaLakeTable, "iceberg": IcebergTable}
