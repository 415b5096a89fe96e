"""The command `tacit audit report`: a ledger's report as a page, as JSON or as CSV."""

from contextlib import suppress
from pathlib import Path
from typing import Annotated, TypeAlias

import typer
from rich.console import Console

from accountant.auditor.verify import verify
from cube.refusals import ConfigurationInvalid, LedgerCorrupt
from cube.runtime import uncollected
from proxy.cli.ledger import (
    LedgerArgument,
    PublicKeyOption,
    SignedHeadsOption,
    open_entries,
    read_heads,
)
from proxy.cli.rendering import plain
from proxy.reporting.make import ReportFormat, make_report

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
    """Replace a file atomically, so that nobody reads half a report."""
    part = output.with_name(f"{output.name}.part")
    try:
        part.write_bytes(page)
        part.replace(output)
    except OSError as error:
        with suppress(OSError):
            part.unlink()
        raise ConfigurationInvalid(f"{output} cannot be written: {error.strerror}.") from None
