"""The commands that ask a server: `tacit query`, `explain`, `plan`, `budget` and `tables`.

A thin layer over `client`: what may be answered, and at what price, the server decides.
"""

import sys
from collections.abc import Callable, Mapping
from typing import Annotated, TypeVar

import typer
from rich.console import RenderableType

from proxy.cli.shared import client as cli_client
from proxy.cli.shared import rendering
from proxy.cli.shared import statements as cli_plan
from proxy.cli.shared.client import ServerAddress
from proxy.cli.shared.options import (
    AtLeastOption,
    ConfidenceOption,
    EpsilonOption,
    FallbackOption,
    FormatOption,
    HalfWidthOption,
    OptionalSqlArgument,
    OutputFormat,
    ParameterOption,
    RelativeOption,
    SqlArgument,
    asks_server,
    fails_in_json,
)
from proxy.cli.shared.statements import parameters_of

FoundT = TypeVar("FoundT")

app = typer.Typer()


@app.command(
    epilog='Example: tacit query "SELECT COUNT(*) FROM adult WHERE age >= 65" --half-width 50'
)
@fails_in_json
@asks_server
def query(  # noqa: PLR0913, PLR0917 - one parameter per option
    sql: OptionalSqlArgument = None,
    half_width: HalfWidthOption = None,
    confidence: ConfidenceOption = None,
    epsilon: EpsilonOption = None,
    relative: RelativeOption = None,
    at_least: AtLeastOption = None,
    fallback: FallbackOption = None,
    param: ParameterOption = None,
    output: FormatOption = OutputFormat.TABLE,
    *,
    server: ServerAddress,
) -> None:
    """Answer a SELECT: from earlier answers if they suffice, otherwise by spending epsilon.

    Options that are left out (--half-width, --confidence) come from the SQL's OPTIONS or the
    table's default. With --format json, an error is one JSON object on standard error.

    Without SQL, on a terminal, it is a prompt with history and completion.
    """
    if sql is None:
        named = {"half_width": half_width, "confidence": confidence, "epsilon": epsilon}
        named |= {"relative": relative, "at_least": at_least, "fallback": fallback}
        settings = {name: str(value) for name, value in named.items() if value is not None}
        _prompt(server, settings, output)
        return
    target = cli_client.target_of(
        half_width, confidence, epsilon, relative=relative, at_least=at_least, fallback=fallback
    )
    answer = cli_client.query(server, sql, target, parameters_of(param))
    _show(answer, output, rendering.answer_table, rendering.answer_csv, rendering.answer_json)


@app.command(epilog='Example: tacit explain "SELECT sex, COUNT(*) FROM adult GROUP BY sex"')
@fails_in_json
@asks_server
def explain(  # noqa: PLR0913, PLR0917 - one parameter per option
    sql: SqlArgument,
    half_width: HalfWidthOption = None,
    confidence: ConfidenceOption = None,
    epsilon: EpsilonOption = None,
    relative: RelativeOption = None,
    at_least: AtLeastOption = None,
    param: ParameterOption = None,
    output: FormatOption = OutputFormat.TABLE,
    *,
    server: ServerAddress,
) -> None:
    """Show what a SELECT would cost. Reads no data, spends nothing."""
    target = cli_client.target_of(
        half_width, confidence, epsilon, relative=relative, at_least=at_least
    )
    price = cli_client.explain(server, sql, target, parameters_of(param))
    _show(price, output, rendering.explanation_table, rendering.price_csv, rendering.price_json)


@app.command(epilog="Example: tacit plan workload.sql --half-width 50, then again with --buy")
@fails_in_json
@asks_server
def plan(  # noqa: PLR0913, PLR0917 - one parameter per option
    file: cli_plan.FileArgument,
    buy: cli_plan.BuyOption = False,
    half_width: HalfWidthOption = None,
    confidence: ConfidenceOption = None,
    epsilon: EpsilonOption = None,
    output: FormatOption = OutputFormat.TABLE,
    *,
    server: ServerAddress,
) -> None:
    """Plan many SELECTs together, for less than they cost one by one.

    Shows the accuracy promised to each statement and the total cost. With --buy, measures the plan;
    the statements are then answered for free. --epsilon caps the whole plan.
    """
    target = cli_client.target_of(half_width, confidence, epsilon)
    price = cli_client.plan(server, cli_plan.statements_in(file), target, buy=buy)
    _show(price, output, cli_plan.plan_table, rendering.price_csv, rendering.price_json)


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
    if renewals := rendering.renewals_text(budgets):
        rendering.console().print(renewals)
    binding = rendering.binding_table(budgets)
    if binding is not None:
        rendering.console().print(binding)


@app.command(epilog="Example: tacit tables --server 127.0.0.1:31337")
@asks_server
def tables(*, server: ServerAddress) -> None:
    """Show the public schema of every table: the columns and levels that SQL may name."""
    for table in cli_client.list_tables(server):
        rendering.console().print(rendering.schema_table(table))


def _prompt(server: ServerAddress, settings: Mapping[str, str], output: OutputFormat) -> None:
    if not (sys.stdin.isatty() and sys.stdout.isatty()):
        raise typer.BadParameter("Missing argument 'SQL'. Without it, a terminal is needed.")
    from proxy.cli.prompt import run_prompt  # noqa: PLC0415 - a library for terminals, slow to load

    run_prompt(server, settings, output)


def _show(
    found: FoundT,
    output: OutputFormat,
    as_table: Callable[[FoundT], RenderableType],
    as_csv: Callable[..., str],
    as_json: Callable[[FoundT], str],
) -> None:
    match output:
        case OutputFormat.TABLE:
            rendering.console().print(as_table(found))
        case OutputFormat.CSV:
            rendering.print_text(as_csv(found))
        case OutputFormat.SPREADSHEET:
            rendering.print_text(as_csv(found, is_for_spreadsheets=True))
        case OutputFormat.JSON:
            rendering.print_text(f"{as_json(found)}\n")
