"""The `[ledger]` table: where the durable record of spending is kept, and its keys.

Nothing here opens a ledger or reads a key; whether they exist and fit is checked on opening.
"""

from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final

from pydantic import Field

from accountant.ledger import STEP_MAX
from accountant.ledger.stores import PostgresLocation
from proxy.sources import Problems, Section

DAYS_MAX: Final = 36_500


@dataclass(frozen=True, slots=True, kw_only=True)
class LedgerSettings:
    """One ledger: a file, or a database that several servers share.

    Parameters
    ----------
    path : Path, optional
        The SQLite file; its key is in a file beside it.
    url : str, optional
        The PostgreSQL database, without a password; its key is `key`.
    key : Path, optional
        The key of the data fingerprints; every server that shares the database has a copy.
    signing_key : Path, optional
        The owner's private key, if the server is to sign the head of the ledger.
    signed_head : Path, optional
        The file for the latest signed head.
    clock_step_days_max : int
        How many days the clock may be ahead of the last entry and still be trusted.
    """

    path: Path | None = None
    url: str | None = None
    key: Path | None = None
    signing_key: Path | None = None
    signed_head: Path | None = None
    clock_step_days_max: int = STEP_MAX.days

    def __post_init__(self) -> None:
        if (self.path is None) == (self.url is None):
            raise ValueError("a ledger is a file or a database")
        if (self.key is None) != (self.url is None):
            raise ValueError(
                "a ledger in a database, and only such a ledger, needs the path of its key"
            )
        if (self.signing_key is None) != (self.signed_head is None):
            raise ValueError("signing_key and signed_head go together")

    @property
    def location(self) -> str:
        """The file or the database, as text."""
        return str(self.path) if self.url is None else self.url


class LedgerSection(Section):
    """The keys of `[ledger]`."""

    path: str | None = Field(default=None, min_length=1)
    url: str | None = Field(default=None, min_length=1)
    key: str | None = Field(default=None, min_length=1)
    signing_key: str | None = Field(default=None, min_length=1)
    signed_head: str | None = Field(default=None, min_length=1)
    clock_step_days_max: int = Field(default=STEP_MAX.days, ge=1, le=DAYS_MAX)


def read_ledger(values: Any, folder: Path, problems: Problems) -> LedgerSettings | None:
    """The ledger's settings, with paths relative to the file's folder; None on problems."""
    section = problems.section(LedgerSection, values, ("ledger",))
    if section is None:
        return None
    _check_place(section, problems)
    files = {name: getattr(section, name) for name in ("path", "key", "signing_key", "signed_head")}
    paths = {name: folder / text for name, text in files.items() if text is not None}
    for name, path in paths.items():
        if path.is_dir() or not path.parent.is_dir():
            problems.add(("ledger", name), "should be a file in an existing directory")
    try:
        return LedgerSettings(
            url=section.url, clock_step_days_max=section.clock_step_days_max, **paths
        )
    except ValueError:
        return None  # the problem was recorded, with its key


def _check_place(section: LedgerSection, problems: Problems) -> None:
    keys = ("ledger",)
    if section.path is None and section.url is None:
        problems.add((*keys, "path"), "is missing; a ledger needs path, or url and key")
    if section.path is not None and section.url is not None:
        problems.add((*keys, "url"), "is given beside path; a ledger has only one of them")
    if section.url is not None:
        try:
            PostgresLocation.parse(section.url)
        except ValueError as error:
            problems.add((*keys, "url"), str(error))
        if section.key is None:
            problems.add((*keys, "key"), "is missing; it goes with url")
    elif section.key is not None:
        problems.add(
            (*keys, "key"), "goes with url only; the key of a ledger file is a file beside it"
        )
    if section.signing_key is not None and section.signed_head is None:
        problems.add((*keys, "signed_head"), "is missing; it goes with signing_key")
    if section.signed_head is not None and section.signing_key is None:
        problems.add((*keys, "signing_key"), "is missing; it goes with signed_head")
