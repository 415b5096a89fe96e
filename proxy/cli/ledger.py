"""Ledgers as `tacit audit` takes them: read, made into reports, and accepted after a rollback.

Reads ledgers, exports and signed heads, with the options for that. Nothing here verifies what it
reads; accountant/auditor/ does.

The command `tacit audit report` writes a ledger's report as a page, as JSON or as CSV.

The command `tacit audit accept-rollback` continues with a ledger that lacks entries. It is the only
audit command that writes to the ledger: an entry that records the loss.
accountant/ledger/mending.py determines what is missing.
"""

from collections.abc import Iterator, Sequence
from contextlib import closing, contextmanager, suppress
from pathlib import Path
from typing import Annotated, Final, TypeAlias

import typer
from rich.console import Console

from accountant.auditor import signed_head
from accountant.auditor.signed_head import SignedHead
from accountant.auditor.transfer import imported
from accountant.auditor.verify import verify
from accountant.ledger.entries import Entry
from accountant.ledger.mending import Loss
from accountant.ledger.mending import accept_rollback as accept
from accountant.ledger.opening import open_reader
from accountant.ledger.stores.mark import Position
from accountant.ledger.stores.postgres_location import is_postgres
from cube.refusals import ConfigurationInvalid, LedgerCorrupt
from cube.runtime import uncollected
from proxy.cli.shared.rendering import plain
from proxy.reporting.report import ReportFormat, make_report

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


OutputOption: TypeAlias = Annotated[
    Path,
    typer.Option(
        "--output",
        "-o",
        metavar="FILE",
        help="Where to write; the suffix .html, .json or .csv sets the format. Replaces the file.",
    ),
]
FormatOption: TypeAlias = Annotated[
    ReportFormat | None,
    typer.Option("--format", help="The format, if the file's suffix does not set it."),
]


def report(
    location: LedgerArgument,
    output: OutputOption,
    chosen: FormatOption = None,
    public_key: PublicKeyOption = None,
    signed_heads: SignedHeadsOption = None,
) -> None:
    """Write what was spent, by whom and on what, for a person or for a program.

    The page is one file that needs nothing else, and can be printed.

    The ledger is verified first. If it is not valid, the report says so and stops before the first
    invalid entry; the command then fails as `tacit audit verify` does.
    """
    report_format = format_of(output, chosen)
    heads = read_heads(public_key, signed_heads or ())
    with uncollected(), Console(stderr=True).status("Reading") as status:
        with open_entries(location) as found:
            entries = list(found)

        def tell(what: str) -> None:
            status.update(plain(what))  # it may contain an untrusted name

        verdict = verify(
            entries,
            heads=heads,
            watch=lambda what, how_far: tell(f"Checked {how_far} {what}"),
            has_columns=True,
        )
        page = make_report(entries, report_format, verdict=verdict, heads=heads, progress=tell)
        _write(output, page)
    typer.echo(f"Wrote {output}: {verdict.n_entries} entries, head {verdict.head}")
    if verdict.problem is not None:
        raise LedgerCorrupt(
            f"{verdict.problem}.", hint="The report says so, and stops before that entry."
        )


def format_of(output: Path, chosen: ReportFormat | None) -> ReportFormat:
    """The format of a report.

    Raises
    ------
    ConfigurationInvalid
        If neither the option nor the file's suffix sets it.
    """
    if chosen is not None:
        return chosen
    try:
        return ReportFormat(output.suffix.lower().removeprefix("."))
    except ValueError:
        raise ConfigurationInvalid(
            f"The name {output.name} does not set the format of the report.",
            hint="Use the suffix .html, .json or .csv, or choose with --format.",
        ) from None


def _write(output: Path, page: bytes) -> None:
    """Replace a file atomically, so that no reader sees half a report."""
    part = output.with_name(f"{output.name}.part")
    try:
        part.write_bytes(page)
        part.replace(output)
    except OSError as error:
        with suppress(OSError):
            part.unlink()
        raise ConfigurationInvalid(f"{output} cannot be written: {error.strerror}.") from None


def accept_rollback(  # noqa: PLR0913 - one parameter per option
    location: Annotated[
        str,
        typer.Argument(
            metavar="LEDGER", help="The ledger's file, or postgresql://USER@HOST/DATABASE."
        ),
    ],
    *,
    key: Annotated[
        Path | None,
        typer.Option(
            "--key",
            metavar="FILE",
            help="The key of a ledger in PostgreSQL; its mark is a file beside it.",
        ),
    ] = None,
    by: Annotated[
        str, typer.Option(metavar="NAME", help="Who accepts it; recorded in the ledger.")
    ] = "command line",
    public_key: PublicKeyOption = None,
    signed_heads: SignedHeadsOption = None,
    yes: Annotated[bool, typer.Option("--yes", help="Do not ask for confirmation.")] = False,
) -> None:
    """Continue with a ledger that was set back, such as a restored backup.

    What was spent in the missing entries is unknown, and the ledger no longer counts it, but
    those who received the answers still have them. This adds an entry that records the loss, which
    every audit and report shows from then on. If there is any way to, restore the newer ledger
    instead; otherwise lower the budgets by what may have been spent.

    Stop every server of the ledger first, and keep the evidence: the mark, signed heads, and the
    files that were replaced.
    """
    if is_postgres(location) != (key is not None):
        raise ConfigurationInvalid(
            "--key is needed for a ledger in PostgreSQL, and only there: a file's key is beside it."
        )
    heads = [
        Position(signed.head.n_entries, signed.head.digest)
        for signed in read_heads(public_key, signed_heads or ())
    ]

    def confirm(loss: Loss) -> bool:
        typer.echo(_told(loss))
        return yes or typer.confirm("Continue with this ledger all the same?")

    loss = accept(location, key, heads, by=by, confirm=confirm)
    if loss is None:
        typer.echo("The ledger was not changed.")
        raise typer.Exit(1)
    typer.echo(f"Recorded as entry {loss.found.n_entries + 1}; the mark now matches the ledger.")
    for path in signed_heads or ():
        typer.echo(f"Keep {path} under another name: a server that signs there refuses to start.")


def _told(loss: Loss) -> str:
    found = f"The ledger ends with entry {loss.found.n_entries}, digest {loss.found.digest}."
    if loss.vouched is None:
        return f"{found}\nNothing shows how many entries there had been."
    vouched = loss.vouched
    n_gone = max(0, vouched.n_entries - loss.found.n_entries)
    gone = f"At least {n_gone} are missing" if n_gone else "A different entry is in its place"
    return (
        f"{found}\nEntry {vouched.n_entries}, digest {vouched.digest}, was vouched for. {gone}, "
        "and what was spent in them is unknown."
    )
