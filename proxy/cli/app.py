"""The command `tacit`: the server, its client, drafts of configurations, audits of ledgers.

A thin layer: it finds the command that was called, and turns what fails into one line on standard
error and an exit code. A traceback never reaches the terminal, because it may show private data.
"""

import sys
from collections.abc import Mapping, Sequence
from typing import Annotated, ClassVar

import typer

from proxy.cli.deferred import Deferred, DeferredGroup
from proxy.cli.failures import Declined, FailedInJson, failure_json, failure_line, failure_of

EXIT_INTERRUPTED = 130


class Commands(DeferredGroup):
    """The commands, in the order of the help."""

    deferred: ClassVar[Mapping[str, Deferred]] = {
        "init": Deferred(
            "proxy.cli.init",
            "Draft a configuration from the names and types of the columns of a file or a table.",
        ),
        "serve": Deferred(
            "proxy.cli.serve", "Serve the tables of a configuration until Ctrl-C, or SIGTERM."
        ),
        "query": Deferred(
            "proxy.cli.ask",
            "Answer a SELECT: from earlier answers if they suffice, otherwise by spending epsilon.",
        ),
        "explain": Deferred(
            "proxy.cli.ask", "Show what a SELECT would cost. Reads no data, spends nothing."
        ),
        "plan": Deferred(
            "proxy.cli.ask", "Plan many SELECTs together, for less than they cost one by one."
        ),
        "marginals": Deferred(
            "proxy.cli.marginals",
            "Count by several sets of columns, in tables that agree where they overlap.",
        ),
        "budget": Deferred(
            "proxy.cli.ask", "Show the epsilon spent and left, and the limits that bind you."
        ),
        "tables": Deferred(
            "proxy.cli.ask",
            "Show the public schema of every table: the columns and levels that SQL may name.",
        ),
        "synth": Deferred(
            "proxy.cli.synth",
            "Make synthetic tables whose counts are close to a private table's.",
        ),
        "stream": Deferred("proxy.cli.stream", "Tell a server who came, and plan a stream."),
        "network": Deferred("proxy.cli.network", "Learn which columns of a table depend on which."),
        "collection": Deferred(
            "proxy.cli.collection",
            "Ask many people, each of whom randomises their answer before it leaves their device.",
        ),
        "plan-collection": Deferred(
            "proxy.cli.collection_plan",
            "Plan a collection: give two of --epsilon, --respondents and --half-width.",
        ),
        "plan-robustness": Deferred(
            "proxy.cli.robustness",
            "How often noise changes what a test of dependence says of a table.",
        ),
        "token": Deferred(
            "proxy.cli.access",
            "Issue, list and revoke the credentials of a server's users.",
            attribute="tokens",
        ),
        "limit": Deferred(
            "proxy.cli.access",
            "Set how much of a table's budget an analyst or a group may spend.",
            attribute="limits",
        ),
        "table": Deferred(
            "proxy.cli.growing", "Move on how far a table is readable, or replace its data."
        ),
        "audit": Deferred(
            "proxy.cli.audit",
            "Verify what a ledger says was spent, without trusting the server that wrote it.",
        ),
        "ledger": Deferred("proxy.cli.clock", "Correct the time of a ledger."),
    }


app = typer.Typer(
    name="tacit",
    cls=Commands,
    no_args_is_help=True,
    add_completion=False,
    rich_markup_mode="rich",
    pretty_exceptions_enable=False,
    help="Query private tables with SQL; spend privacy budget only on what is not known yet.",
    epilog="Start with: tacit init people.csv --table people, then tacit serve tacit.toml",
)


def main(arguments: Sequence[str] | None = None) -> None:
    """Run the command line and exit with its code."""
    try:
        app(args=arguments, prog_name="tacit")
    except KeyboardInterrupt:
        sys.exit(EXIT_INTERRUPTED)
    except FailedInJson as failed:
        _fail(*failure_of(failed.error), is_json=True)
    except Exception as error:  # noqa: BLE001 - whatever it is, no traceback reaches the terminal
        _fail(*failure_of(error))


@app.callback(invoke_without_command=True)
def _root(
    show_version: Annotated[bool, typer.Option("--version", help="Show the version.")] = False,
) -> None:
    if show_version:
        from importlib.metadata import version  # noqa: PLC0415 - it loads a parser of messages

        typer.echo(f"tacit {version('tacit-dp')}")
        raise typer.Exit


def _fail(failure: Declined, exit_code: int, *, is_json: bool = False) -> None:
    typer.echo(failure_json(failure) if is_json else failure_line(failure), err=True)
    sys.exit(exit_code)
