"""Reads ledgers, exports and signed heads for the command line, with the options for that.

Nothing here verifies what it reads; accountant/auditor/ does.
"""

from collections.abc import Iterator, Sequence
from contextlib import closing, contextmanager
from pathlib import Path
from typing import Annotated, Final, TypeAlias

import typer

from accountant.auditor import signed_head
from accountant.auditor.signed_head import SignedHead
from accountant.auditor.transfer import imported
from accountant.ledger.entries import Entry
from accountant.ledger.open_ledger import open_reader
from cube.refusals import ConfigurationInvalid

EXPORT_SUFFIX: Final = ".jsonl"

LedgerArgument: TypeAlias = Annotated[
    str,
    typer.Argument(
        metavar="LEDGER",
        help="The ledger's file, an export of it (.jsonl), or postgresql://USER@HOST/DATABASE.",
    ),
]
PublicKeyOption: TypeAlias = Annotated[
    Path | None,
    typer.Option(
        "--public-key", metavar="FILE", help="The owner's public key, to check signed heads."
    ),
]
SignedHeadsOption: TypeAlias = Annotated[
    list[Path] | None,
    typer.Option(
        "--signed-head",
        metavar="FILE",
        help="A head that the owner signed: the ledger must still contain it. May be repeated.",
    ),
]


@contextmanager
def open_entries(location: str) -> Iterator[Iterator[Entry]]:
    """The entries of a ledger, or of an export of one, in order.

    Raises
    ------
    CannotStart
        If there is nothing to read there, or it is not a ledger or an export.
    """
    if not location.endswith(EXPORT_SUFFIX):
        with closing(open_reader(location)) as reader:
            yield reader.entries_after(0)
        return
    try:
        opened = Path(location).open(encoding="utf-8", newline="\n")  # noqa: SIM115 - closed below
    except OSError as error:
        raise ConfigurationInvalid(f"{location} cannot be read: {error.strerror}.") from None
    with opened as file:
        yield imported(file, location)


def read_heads(public_key: Path | None, paths: Sequence[Path]) -> list[SignedHead]:
    """Signed heads, with their signatures checked.

    Raises
    ------
    CannotStart
        If a signature is wrong, or a key or a head is given without the other.
    """
    if (public_key is None) != (not paths):
        raise ConfigurationInvalid(
            "A signed head and the owner's public key are needed together.",
            hint="Give both --public-key and --signed-head, or neither.",
        )
    if public_key is None:
        return []
    key = signed_head.read_public_key(public_key)
    return [signed_head.read_signed_head(_text_of(path), key, str(path)) for path in paths]


def _text_of(path: Path) -> str:
    try:
        return path.read_text(encoding="ascii")
    except (OSError, UnicodeDecodeError) as error:
        reason = error.strerror if isinstance(error, OSError) else "it is not text"
        raise ConfigurationInvalid(f"{path} cannot be read: {reason}.") from None
