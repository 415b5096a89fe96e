"""The location of a table behind Spark Connect: a value; nothing here opens anything."""

import os
import re
from dataclasses import dataclass
from pathlib import Path
from typing import Final
from urllib.parse import quote

from cube.refusals import ConfigurationInvalid

SCHEME: Final = "sc://"
TOKEN_VARIABLE: Final = "TACIT_SPARK_TOKEN"  # noqa: S105 - a name, no token
N_PARTS_MAX: Final = 3
ADDRESS: Final = re.compile(r"([A-Za-z0-9_.-]+|\[[0-9a-fA-F:]+\])(:[0-9]{1,5})?", re.ASCII)
LOCAL: Final = ("localhost", "127.", "[::1]")


@dataclass(frozen=True, slots=True, kw_only=True)
class SparkTable:
    """A table or a view behind Spark Connect.

    Parameters
    ----------
    address : str
        ``HOST:PORT``.
    parts : tuple of str
        Its name: at most a catalog, a schema, and the table.
    version : int, optional
        The version of a Delta table, or the snapshot of an Iceberg table.
    immutable : bool
        Whether its owner says that it never changes; a table without a version needs that.
    token_file : Path, optional
        A file with the token; otherwise the environment may have it.
    tls : bool
        Whether the connection is encrypted. A token goes over no other.
    """

    address: str
    parts: tuple[str, ...]
    version: int | None = None
    immutable: bool = False
    token_file: Path | None = None
    tls: bool = True

    def __post_init__(self) -> None:
        if not ADDRESS.fullmatch(self.address):
            raise ValueError("should be sc://HOST:PORT, without a token or other parameters")
        if not 1 <= len(self.parts) <= N_PARTS_MAX or not all(self.parts):
            raise ValueError("needs source_table, as TABLE, SCHEMA.TABLE or CATALOG.SCHEMA.TABLE")
        if (self.version is None) is not self.immutable:
            raise ValueError("needs either a version, or immutable = true if it never changes")
        if self.version is not None and self.version < 0:
            raise ValueError("has versions from 0")
        if not self.tls and not self.address.startswith(LOCAL):
            raise ValueError("is on another machine; rows' counts go there by TLS alone")

    @property
    def files(self) -> tuple[Path, ...]:
        """No file is read."""
        return ()

    @property
    def places(self) -> tuple[str, ...]:
        """What its rows are in."""
        return (f"{SCHEME}{self.address}/{'.'.join(self.parts)}",)

    @property
    def where(self) -> tuple[str, ...]:
        """What tells this place from others, whatever is there now."""
        return self.places

    @property
    def label(self) -> str:
        """The name for it in messages."""
        at = "" if self.version is None else f" at version {self.version}"
        return f"{'.'.join(self.parts)}{at} in Spark"

    def remote(self) -> str:
        """What the client connects to, with the token: a secret.

        Raises
        ------
        ConfigurationInvalid
            If the file of the token cannot be read.
        """
        token = os.environ.get(TOKEN_VARIABLE, "")
        if self.token_file is not None:
            try:
                token = self.token_file.read_text(encoding="utf-8").strip()
            except (OSError, UnicodeError):
                raise ConfigurationInvalid(
                    f"The file {self.token_file} of a token cannot be read.",
                    hint="It should hold the token as one line of text.",
                ) from None
        given = [f"use_ssl={str(self.tls).lower()}"]
        if token:
            if not self.tls:
                raise ConfigurationInvalid(
                    f"{self.label} is reached without TLS, which shows a token to others.",
                    hint="Without `tls = false`, or without the token.",
                )
            given.append(f"token={quote(token, safe='')}")
        return f"{SCHEME}{self.address}/;{';'.join(given)}"
