"""The command `tacit`: the server, its client, drafts of configurations, audits of ledgers.

A thin layer: it parses arguments, calls one function of another module, and prints. Errors are one
line on standard error and an exit code; a traceback never reaches the terminal, because it may
show private data.
"""

import sys
from collections.abc import Iterable, Sequence
from importlib.metadata import version
from pathlib import Path
from typing import Annotated

import typer

from cube.refusals import ConfigurationInvalid, TacitError
from proxy.cli import access as cli_access
from proxy.cli import audit as cli_audit
from proxy.cli import client as cli_client
from proxy.cli import clock as cli_clock
from proxy.cli import init_draft as drafting
from proxy.cli import marginals as cli_marginals
from proxy.cli import plan as cli_plan
from proxy.cli import rendering
from proxy.cli import synth as cli_synth
from proxy.cli.client import Declined, ServerAddress, Unreachable
from proxy.cli.options import (
    ConfidenceOption,
    EpsilonOption,
    FailedInJson,
    FormatOption,
    HalfWidthOption,
    OutputFormat,
    SqlArgument,
    asks_server,
    fails_in_json,
)
from proxy.sources.location import SourceLocation

EXIT_CANNOT_START = 1
EXIT_REFUSED = 2
EXIT_UNREACHABLE = 3
EXIT_INTERRUPTED = 130

app = typer.Typer(
    name="tacit",
    no_args_is_help=True,
    add_completion=False,
    rich_markup_mode="rich",
    pretty_exceptions_enable=False,
    help="Query private tables with SQL; spend privacy budget only on what is not known yet.",
    epilog="Start with: tacit init people.csv --table people, then tacit serve tacit.toml",
)
app.add_typer(cli_audit.app, name="audit")
app.add_typer(cli_synth.app, name="synth")
app.add_typer(cli_access.tokens, name="token")
app.add_typer(cli_access.limits, name="limit")
app.add_typer(cli_clock.app, name="ledger")


app.command(epilog='Example: tacit marginals adult --sets "sex,race;age" --epsilon 0.5')(
    cli_marginals.marginals
)


def main(arguments: Sequence[str] | None = None) -> None:
    """Run the command line and exit with its code."""
    try:
        app(args=arguments, prog_name="tacit")
    except KeyboardInterrupt:
        sys.exit(EXIT_INTERRUPTED)
    except FailedInJson as failed:
        _fail(*_failure_of(failed.error), is_json=True)
    except Exception as error:  # noqa: BLE001 - whatever it is, no traceback reaches the terminal
        _fail(*_failure_of(error))


@app.callback(invoke_without_command=True)
def _root(
    show_version: Annotated[bool, typer.Option("--version", help="Show the version.")] = False,
) -> None:
    if show_version:
        typer.echo(f"tacit {version('tacit-dp')}")
        raise typer.Exit


@app.command(epilog="Example: tacit serve examples/adult/tacit.toml")
def serve(
    config: Annotated[
        Path, typer.Argument(metavar="CONFIG", help="The TOML file that `tacit init` drafts.")
    ],
) -> None:
    """Serve the tables of a configuration until Ctrl-C.

    TACIT_SERVER__LISTEN=HOST:PORT in the environment overrides the file's address.
    """
    from proxy.cli.serve import serve as serve_until_stopped  # noqa: PLC0415 - a client command need not load the engine

    serve_until_stopped(config, rendering.console())


@app.command(
    epilog='Example: tacit query "SELECT COUNT(*) FROM adult WHERE age >= 65" --half-width 50'
)
@fails_in_json
@asks_server
def query(  # noqa: PLR0913 - one parameter per option
    sql: SqlArgument,
    half_width: HalfWidthOption = None,
    confidence: ConfidenceOption = None,
    epsilon: EpsilonOption = None,
    output: FormatOption = OutputFormat.TABLE,
    *,
    server: ServerAddress,
) -> None:
    """Answer a SELECT: from earlier answers if they suffice, otherwise by spending epsilon.

    Options that are left out (--half-width, --confidence) come from the SQL's OPTIONS or the
    table's default. With --format json, an error is one JSON object on standard error.
    """
    target = cli_client.target_of(half_width, confidence, epsilon)
    answer = cli_client.query(server, sql, target)
    match output:
        case OutputFormat.TABLE:
            rendering.console().print(rendering.answer_table(answer))
        case OutputFormat.CSV:
            typer.echo(rendering.answer_csv(answer), nl=False)
        case OutputFormat.JSON:
            typer.echo(rendering.answer_json(answer))


@app.command(epilog='Example: tacit explain "SELECT sex, COUNT(*) FROM adult GROUP BY sex"')
@asks_server
def explain(
    sql: SqlArgument,
    half_width: HalfWidthOption = None,
    confidence: ConfidenceOption = None,
    epsilon: EpsilonOption = None,
    *,
    server: ServerAddress,
) -> None:
    """Show what a SELECT would cost. Reads no data, spends nothing."""
    target = cli_client.target_of(half_width, confidence, epsilon)
    found = cli_client.explain(server, sql, target)
    rendering.console().print(rendering.explanation_table(*found))


@app.command(epilog="Example: tacit plan workload.sql --half-width 50, then again with --buy")
@asks_server
def plan(  # noqa: PLR0913 - one parameter per option
    file: cli_plan.FileArgument,
    buy: cli_plan.BuyOption = False,
    half_width: HalfWidthOption = None,
    confidence: ConfidenceOption = None,
    epsilon: EpsilonOption = None,
    *,
    server: ServerAddress,
) -> None:
    """Plan many SELECTs together, for less than they cost one by one.

    Shows the accuracy promised to each statement and the total cost. With --buy, measures the plan;
    the statements are then answered for free. --epsilon caps the whole plan.
    """
    target = cli_client.target_of(half_width, confidence, epsilon)
    rendering.console().print(cli_plan.plan_file(file, server, target, buy=buy))


@app.command(epilog="Example: tacit budget adult")
@asks_server
def budget(
    table: Annotated[
        str, typer.Argument(metavar="[TABLE]", help="One table; all tables if left out.")
    ] = "",
    *,
    server: ServerAddress,
) -> None:
    """Show the epsilon spent and left, and the limits that bind you."""
    budgets = cli_client.get_budgets(server, table)
    rendering.console().print(rendering.budgets_table(budgets))
    binding = cli_access.binding_table(budgets)
    if binding is not None:
        rendering.console().print(binding)


@app.command(epilog="Example: tacit tables --server 127.0.0.1:31337")
@asks_server
def tables(*, server: ServerAddress) -> None:
    """Show the public schema of every table: the columns and levels that SQL may name."""
    for table in cli_client.list_tables(server):
        rendering.console().print(rendering.schema_table(table))


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


def _failure_of(error: Exception) -> tuple[Declined, int]:
    """What is shown of an error, and the exit code."""
    match error:
        case Declined():
            return error, EXIT_REFUSED
        case TacitError():
            return Declined(error.code, error.explain()), EXIT_CANNOT_START
        case Unreachable():
            start = "Start one with `tacit serve CONFIG`, or name another with --server HOST:PORT."
            message = f"No Tacit server answers at {error.address}. {start}"
            return Declined("server_unreachable", message), EXIT_UNREACHABLE
        case _:  # its text may hold private data
            kind = type(error).__name__
            message = f"Something unexpected went wrong ({kind}). Nothing more is shown."
            return Declined("internal_error", message), EXIT_CANNOT_START


def _fail(failure: Declined, exit_code: int, *, is_json: bool = False) -> None:
    line = f"error [{failure.code}]: {_printable(failure.message)}"
    typer.echo(rendering.failure_json(failure) if is_json else line, err=True)
    sys.exit(exit_code)


def _printable(characters: Iterable[str]) -> str:
    """Text without terminal control characters; line breaks are kept."""
    return "".join(c if c.isprintable() or c == "\n" else repr(c)[1:-1] for c in characters)
