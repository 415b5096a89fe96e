"""The commands that ask a server: `tacit query`, `best`, `explain`, `plan`, `budget`, `tables`.

A thin layer over `client`: what may be answered, and at what price, the server decides.
"""

import json
import sys
from collections.abc import Callable, Mapping
from fractions import Fraction
from typing import Annotated, Any, TypeVar

import typer
from rich.console import Group, RenderableType
from rich.table import Table

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
from proxy.protocol import tacit_pb2

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


@app.command(
    epilog='Example: tacit best "SELECT COUNT(*) FROM adult WHERE age >= 85" --loss absolute '
    '--prior "0:0.2, 100:0.5, 200:0.3"'
)
@fails_in_json
@asks_server
def best(  # noqa: PLR0913, PLR0917 - one parameter per option
    sql: Annotated[
        str,
        typer.Argument(metavar="SQL", help="A SELECT of one count, without GROUP BY."),
    ],
    prior: Annotated[
        str,
        typer.Option(
            metavar="PRIOR",
            help="What you believe of the count: COUNT:PROBABILITY, with commas between, summing "
            "to 1. Or a SELECT of public tables that gives counts, or counts and weights. Or a "
            "SELECT of one count of another private table that was answered already.",
        ),
    ],
    loss: Annotated[
        str,
        typer.Option(
            metavar="LOSS",
            help="What a wrong report costs you: absolute (its error), squared, power (see "
            "--power), or zero_one (1 unless it is right).",
        ),
    ] = "absolute",
    power: Annotated[
        float | None,
        typer.Option(
            metavar="NUMBER", help="With --loss power: the error to this power, from 1 to 16."
        ),
    ] = None,
    half_width: HalfWidthOption = None,
    confidence: ConfidenceOption = None,
    epsilon: EpsilonOption = None,
    output: FormatOption = OutputFormat.TABLE,
    *,
    server: ServerAddress,
) -> None:
    """Answer a count, and show the best number to report for it, given what you believe.

    A noisy count may be below 0, or far from what you know. Your prior says how probable each count
    is before the answer, and your loss what a wrong report costs. The report is the whole number of
    least expected loss under both. It is free beside the count, and other callers do not see it.

    The prior must come from you, and not from the private data. Of two intervals, the first is true
    if your prior is true; the second is the interval of the answer, without a prior.
    """
    target = cli_client.target_of(half_width, confidence, epsilon)
    is_select = prior.lstrip(" (").upper().startswith(("SELECT", "WITH"))
    request = tacit_pb2.BestReportRequest(
        sql=sql,
        target=target,
        prior=[] if is_select else prior_points(prior),
        prior_sql=prior if is_select else "",
        loss=loss,
        power=power,
    )
    with cli_client.calling(server) as stub:
        reply = stub.BestReport(request, metadata=server.metadata)
    _show(reply, output, report_table, report_csv, report_json)


def prior_points(text: str) -> list[tacit_pb2.PriorPoint]:
    """The points of a prior in a text.

    >>> [(one.value, one.probability) for one in prior_points("3:0.5, 4:1/4, 9:0.25")]
    [(3, 0.5), (4, 0.25), (9, 0.25)]
    """
    points = []
    for pair in filter(None, map(str.strip, text.split(","))):
        count, _, probability = pair.partition(":")
        try:
            share = float(Fraction(probability.strip()))
            points.append(tacit_pb2.PriorPoint(value=int(count), probability=share))
        except (ValueError, ZeroDivisionError, OverflowError):
            raise typer.BadParameter(
                f"{pair[:40]!r} is not COUNT:PROBABILITY, such as 3:0.5."
            ) from None
    return points


def report_fields(reply: tacit_pb2.BestReportReply) -> dict[str, Any]:
    """A best report, with its two intervals, for a program."""
    of_answer = reply.receipt.columns[0] if reply.receipt.columns else None
    held = reply.interval if reply.HasField("interval") else None  # an older server tells none
    return {
        "report": reply.report,
        "expected_loss": reply.expected_loss,
        "low": None if held is None else held.low,
        "high": None if held is None else held.high,
        "confidence": None if held is None else held.confidence,
        "probability": None if held is None else held.probability,
        "answer": reply.answer,
        "answer_low": None if of_answer is None else of_answer.low[0],
        "answer_high": None if of_answer is None else of_answer.high[0],
        "source": None if of_answer is None else of_answer.source,
        "epsilon_spent": reply.receipt.epsilon_spent,
    }


def report_table(reply: tacit_pb2.BestReportReply) -> RenderableType:
    """A best report for people: the number, both intervals, and the cost."""
    found, receipt = report_fields(reply), reply.receipt
    shown = Table(header_style="bold")
    confidence = found["confidence"]
    interval = "interval" if confidence is None else f"{confidence:.10g} interval"
    for heading in ("", "value", interval):
        shown.add_column(heading, justify="right" if heading else "left")
    held = "" if confidence is None else f"[{found['low']}, {found['high']}] under the prior"
    shown.add_row("best report", f"{found['report']}", held)
    low, high = found["answer_low"], found["answer_high"]
    if low is not None and high is not None:
        texts = [rendering.to_width(one, low, high) for one in (found["answer"], low, high)]
        shown.add_row("answer", texts[0], f"[{texts[1]}, {texts[2]}] without a prior")
    notes = [rendering.plain(f"note: {note}") for note in receipt.notes]
    lost = rendering.plain(f"expected loss {found['expected_loss']:.6g}")
    spent = f"epsilon spent {receipt.epsilon_spent:.6g}{rendering.after_cost(receipt)}"
    return Group(shown, lost, *notes, rendering.plain(spent))


def report_csv(reply: tacit_pb2.BestReportReply, *, is_for_spreadsheets: bool = False) -> str:  # noqa: ARG001 - it has no text that could be a formula
    """A best report as a row of CSV under its heading."""
    found = report_fields(reply)
    written = ("" if value is None else f"{value}" for value in found.values())
    return f"{','.join(found)}\n{','.join(written)}\n"


def report_json(reply: tacit_pb2.BestReportReply) -> str:
    """A best report as one JSON object."""
    receipt = reply.receipt
    left = rendering.left_fields(receipt.budget) if receipt.HasField("budget") else {}
    told = {"table": receipt.table, **report_fields(reply), **left, "notes": list(receipt.notes)}
    return json.dumps(told, ensure_ascii=False)


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
