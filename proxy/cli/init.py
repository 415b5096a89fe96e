"""The command `tacit init`: drafts a configuration, and writes it to a new file."""

import csv
import os
import sys
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Annotated, Final

import typer
from rich.console import Console
from rich.progress import BarColumn, Progress, TaskProgressColumn, TextColumn, TimeElapsedColumn

from accountant.ledger.stores.postgres_location import PostgresLocation, is_postgres
from cube.refusals import ConfigurationInvalid
from proxy.cli.draft import configuration as drafting
from proxy.cli.draft.source import Drafted, Tell
from proxy.cli.draft.text_file import ToldFormat
from proxy.sources.location import PostgresRows, SourceLocation

app = typer.Typer()
N_TOLD: Final = 8
DELIMITERS: Final = {"tab": "\t", "\\t": "\t", "comma": ",", "semicolon": ";", "pipe": "|"}


@app.command(epilog="Example: tacit init people.csv --table people -o tacit.toml")
def init(  # noqa: PLR0913, PLR0917 - one parameter per option
    source: Annotated[
        str,
        typer.Argument(
            metavar="SOURCE",
            help="A .csv, .tsv, .parquet or .duckdb file (text may be .gz or .zst), or a database: "
            "postgresql://USER@HOST/DATABASE",
        ),
    ],
    table: Annotated[str, typer.Option(help="The table's name in SQL.", metavar="NAME")],
    source_table: Annotated[
        str | None,
        typer.Option(
            help="The table in a .duckdb file or a database; the value of --table if left out.",
            metavar="NAME",
        ),
    ] = None,
    output: Annotated[
        Path, typer.Option("--output", "-o", metavar="FILE", help="Where to write.")
    ] = Path("tacit.toml"),
    n_records_max: Annotated[
        int | None,
        typer.Option(help="A public upper bound on the number of records.", metavar="N", min=1),
    ] = None,
    delimiter: Annotated[
        str | None,
        typer.Option(
            help=(
                "What separates the fields of a text file: ',', ';', '|', tab or another "
                "character. Needed if the first line does not show it clearly."
            ),
            metavar="CHARACTER",
        ),
    ] = None,
    decimal: Annotated[
        str | None,
        typer.Option(help="The decimal sign of its numbers: '.' or ','.", metavar="SIGN"),
    ] = None,
    encoding: Annotated[
        str | None,
        typer.Option(
            help="Its encoding, such as utf-8, cp1252, latin-1 or utf-16.", metavar="NAME"
        ),
    ] = None,
    header: Annotated[
        bool | None,
        typer.Option(
            "--header/--no-header",
            help=(
                "Whether its first line holds the names of its columns; if not, they are called "
                "column_1, column_2 and so on."
            ),
            show_default=False,
        ),
    ] = None,
    columns: Annotated[
        str | None,
        typer.Option(help="Only these columns, separated by commas.", metavar="NAMES"),
    ] = None,
    read_levels_from_data: Annotated[
        bool,
        typer.Option(
            "--read-levels-from-data",
            help="Fill in levels and ranges from the rows. NOT PRIVATE: the values that occur "
            "become public, in the draft and to every client of the server.",
        ),
    ] = False,
) -> None:
    """Draft a configuration from the names and types of the columns of a file or a table.

    The public levels are left for you to fill in; `tacit serve` lists what is missing.
    """
    if output.exists():
        raise ConfigurationInvalid(
            f"{output} exists already.", hint="Choose another file with --output."
        )
    location = _location(source, source_table, table)
    is_file = isinstance(location, SourceLocation)
    told = ToldFormat(
        delimiter=DELIMITERS.get(str(delimiter).lower(), delimiter),
        decimal=decimal,
        encoding=encoding,
        header=header,
    )
    with _progress() as tell:
        found = drafting.draft(
            location,
            source=os.path.relpath(Path(source).resolve(), output.parent.resolve())
            if is_file
            else source,
            table=table,
            told=told,
            n_records_max=n_records_max,
            read_levels=read_levels_from_data,
            only=_listed(columns),
            tell=tell,
        )
    _write_new(output, found.text)
    typer.echo(f"Wrote {output}. Fill in what it leaves open, then: tacit serve {output}")
    if found.left_out:
        typer.echo(f"Not served, as the draft says: {_some(found.left_out)}.")
    if read_levels_from_data and found.left_open:
        typer.echo(f"No levels were found that fit: {_some(found.left_open)}.")


def _listed(columns: str | None) -> list[str]:
    """The names in a list with commas; one with a comma in it is in double quotes."""
    if columns is None:
        return []
    found = next(csv.reader([columns], skipinitialspace=True), [])
    return [name for name in found if name]


def _some(names: Sequence[str]) -> str:
    """The first of some names, and how many more there are."""
    said = "; ".join(
        "".join(c if c.isprintable() else "?" for c in name) for name in names[:N_TOLD]
    )
    return said if len(names) <= N_TOLD else f"{said}; and {len(names) - N_TOLD:,} more"


@contextmanager
def _progress() -> Iterator[Tell]:
    """A bar on a terminal, while rows are read."""
    bar = Progress(
        TextColumn("reading the rows"),
        BarColumn(),
        TaskProgressColumn(),
        TimeElapsedColumn(),
        console=Console(stderr=True),
        disable=not sys.stderr.isatty(),
        transient=True,
    )
    with bar:
        task = bar.add_task("", total=None)

        def tell(share: float | None) -> None:
            bar.update(task, total=None if share is None else 1.0, completed=share or 0.0)

        yield tell


def _location(source: str, source_table: str | None, table: str) -> Drafted:
    """Where the rows are; in a database as in a .duckdb file the table has the name in SQL."""
    try:
        if is_postgres(source):
            server = PostgresLocation.parse(source, "PGPASSWORD, or a file that passfile names")
            return PostgresRows(server=server, table=source_table or table)
        file = Path(source)
        if file.suffix.lower() == ".duckdb" and source_table is None:
            source_table = table
        return SourceLocation(path=file, source_table=source_table)
    except ValueError as error:
        named = "The database" if is_postgres(source) else source  # its text may hold a password
        raise ConfigurationInvalid(f"{named}: {error}.") from None


def _write_new(path: Path, text: str) -> None:
    try:
        with path.open("x", encoding="utf-8") as file:
            file.write(text)
    except OSError as error:
        raise ConfigurationInvalid(f"{path} cannot be written: {error.strerror}.") from None
