"""The command `tacit init`: drafts a configuration, and writes it to a new file."""

import os
from pathlib import Path
from typing import Annotated

import typer

from accountant.ledger.stores.postgres_location import PostgresLocation, is_postgres
from cube.refusals import ConfigurationInvalid
from proxy.cli import init_draft as drafting
from proxy.cli.init_source import Drafted
from proxy.sources.location import PostgresRows, SourceLocation

app = typer.Typer()


@app.command(epilog="Example: tacit init people.csv --table people -o tacit.toml")
def init(  # noqa: PLR0913, PLR0917 - one parameter per option
    source: Annotated[
        str,
        typer.Argument(
            metavar="SOURCE",
            help="A .csv, .parquet or .duckdb file, or a database: postgresql://USER@HOST/DATABASE",
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
    text = drafting.draft(
        location,
        source=os.path.relpath(Path(source).resolve(), output.parent.resolve())
        if is_file
        else source,
        table=table,
        n_records_max=n_records_max,
        read_levels=read_levels_from_data,
    )
    _write_new(output, text)
    typer.echo(f"Wrote {output}. Fill in what it leaves open, then: tacit serve {output}")


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
