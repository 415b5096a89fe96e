"""The command `tacit init`: drafts a configuration, and writes it to a new file."""

from pathlib import Path
from typing import Annotated

import typer

from cube.refusals import ConfigurationInvalid
from proxy.cli import init_draft as drafting
from proxy.sources.location import SourceLocation

app = typer.Typer()


@app.command(epilog="Example: tacit init people.csv --table people -o tacit.toml")
def init(  # noqa: PLR0913, PLR0917 - one parameter per option
    file: Annotated[Path, typer.Argument(metavar="FILE", help="A .csv, .parquet or .duckdb file.")],
    table: Annotated[str, typer.Option(help="The table's name in SQL.", metavar="NAME")],
    source_table: Annotated[
        str | None,
        typer.Option(
            help="The table in a .duckdb file; the value of --table if left out.", metavar="NAME"
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
    """Draft a configuration from the names and types of a file's columns.

    The public levels are left for you to fill in; `tacit serve` lists what is missing.
    """
    if output.exists():
        raise ConfigurationInvalid(
            f"{output} exists already.", hint="Choose another file with --output."
        )
    if file.suffix.lower() == ".duckdb" and source_table is None:
        source_table = table
    try:
        location = SourceLocation(path=file, source_table=source_table)
    except ValueError as error:
        raise ConfigurationInvalid(f"{file}: {error}.") from None
    text = drafting.draft(
        location,
        table=table,
        folder=output.parent,
        n_records_max=n_records_max,
        read_levels=read_levels_from_data,
    )
    _write_new(output, text)
    typer.echo(f"Wrote {output}. Fill in what it leaves open, then: tacit serve {output}")


def _write_new(path: Path, text: str) -> None:
    try:
        with path.open("x", encoding="utf-8") as file:
            file.write(text)
    except OSError as error:
        raise ConfigurationInvalid(f"{path} cannot be written: {error.strerror}.") from None
