"""Federated tables, as a coordinator's owner declares them: `holders` in place of a `source`.

    holders = [{name = "north", address = "north.example:31337", token_file = "north.token"}, ...]

The names of the holders are the levels of one more column, `holder`, in the order of the file. It
is a column of SQL if `holder_public` says so. A person is in one holder, unless `people_overlap`
says otherwise: then what a person may lose is the sum over all holders.

Nothing here opens a connection.
"""

from collections.abc import Mapping
from pathlib import Path
from typing import Any, Final

from pydantic import Field

from cube.axis import Axis, CategoryAxis
from proxy.sources import (
    TIMEOUT_OF_HOLDERS,
    TIMEOUT_OF_HOLDERS_MAX,
    HeldTable,
    HolderPlace,
    Problems,
    Section,
)

HOLDER_AXIS: Final = "holder"
FILES: Final = ("token_file", "ca_file", "cert_file", "key_file")
OF_HOLDERS: Final = ("holder_public", "people_overlap")
# What goes with rows that are read here, and why it is not for rows that are elsewhere.
NOT_HELD: Final[Mapping[str, str]] = {
    "source": "is given beside holders; a table has only one of them",
    "view": "is given beside holders; a table has only one of them",
    "sources": "goes with view",
    "extract": "is for rows that are read here; those of holders stay with them",
    "extract_dir": "is for rows that are read here; those of holders stay with them",
    "timeout": "goes with each of the holders, as in {name = .., timeout = 30}",
    "token_file": "goes with each of the holders, as in {name = .., token_file = ..}",
    "per_unit": "is not for a federated table yet",
}


class HolderSection(Section):
    """One of the holders."""

    name: str
    address: str
    table: str | None = Field(default=None, min_length=1)
    token_file: str | None = Field(default=None, min_length=1)
    ca_file: str | None = Field(default=None, min_length=1)
    cert_file: str | None = Field(default=None, min_length=1)
    key_file: str | None = Field(default=None, min_length=1)
    timeout: float = Field(default=TIMEOUT_OF_HOLDERS, gt=0, le=TIMEOUT_OF_HOLDERS_MAX)


def read_holders(
    values: Mapping[str, Any], folder: Path, keys: tuple[str, ...], problems: Problems
) -> HeldTable | None:
    """Where the holders of a table are, with paths relative to `folder`; None on problems.

    Parameters
    ----------
    values : mapping
        The table's section.
    keys : tuple of str
        Of the table in the file.
    """
    for name, what in NOT_HELD.items():
        if values.get(name, 0) != 0:
            problems.add((*keys, name), what)
    if values.get("strategy") == "paper":
        problems.add((*keys, "strategy"), "is not for a federated table")
    columns = values.get("columns")
    for name in columns if isinstance(columns, Mapping) else ():
        if name.casefold() == HOLDER_AXIS:
            problems.add(
                (*keys, "columns", name),
                "has the name of the column of a federated table's holders",
            )
    listed = values["holders"]
    if not isinstance(listed, list) or not listed:
        problems.add((*keys, "holders"), 'should list holders, as [{name = "north", address = ..}]')
        return None
    read = [
        _read_holder(one, keys[-1], folder, (*keys, "holders", str(place + 1)), problems)
        for place, one in enumerate(listed)
    ]
    holders = tuple(one for one in read if one is not None)
    if len(holders) < len(read):
        return None
    try:
        return HeldTable(holders=holders)
    except ValueError as error:
        problems.add((*keys, "holders"), str(error))
        return None


def _read_holder(
    values: Any, table: str, folder: Path, keys: tuple[str, ...], problems: Problems
) -> HolderPlace | None:
    section = problems.section(HolderSection, values, keys)
    if section is None:
        return None
    written = {name: getattr(section, name) for name in FILES}
    paths = {name: None if one is None else folder / one for name, one in written.items()}
    for name, path in paths.items():
        if path is not None and not path.is_file():
            problems.add((*keys, name), "names no file")
    try:
        return HolderPlace(
            name=section.name,
            address=section.address,
            table=section.table or table,
            timeout=section.timeout,
            **paths,
        )
    except ValueError as error:
        problems.add(keys, str(error))
        return None


def note_without_holders(
    values: Mapping[str, Any], keys: tuple[str, ...], problems: Problems
) -> None:
    """Record the keys that go with holders, in the section of a table that has none."""
    for name in OF_HOLDERS:
        if name in values:
            problems.add((*keys, name), "goes with holders")


def holder_axis(held: HeldTable) -> Axis | None:
    """The axis of the holders; None if there can be none, which is a problem of their names."""
    try:
        return CategoryAxis(name=HOLDER_AXIS, values=tuple(one.name for one in held.holders))
    except ValueError:
        return None
