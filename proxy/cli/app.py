"""The command `tacit`: the server, its client, drafts of configurations, audits of ledgers.

A thin layer: it finds the command that was called, and turns what fails into one line on standard
error and an exit code. A traceback never reaches the terminal, because it may show private data.

Commands are imported when they are called, so that the command line starts quickly. A group knows
the name of each of its commands, where it is, and the sentence that the help shows of it. A
client's command loads no engine in this way, and `--help` loads nothing at all.
"""

import sys
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from importlib import import_module
from typing import Annotated, Any, ClassVar

import typer
from typer.core import TyperCommand, TyperGroup

from proxy.cli.shared.failures import Declined, FailedInJson, failure_json, failure_line, failure_of


@dataclass(frozen=True, slots=True)
class Deferred:
    """A command, or a group of commands, in a module that is not imported yet.

    Parameters
    ----------
    summary : str
        The first sentence of its help.
    attribute : str
        The name of a `typer.Typer` there: the group itself, or one that holds the command.
    """

    module: str
    summary: str
    attribute: str = "app"

    def load(self, name: str) -> Any:
        """The command of this name, or the group."""
        found: Any = typer.main.get_command(getattr(import_module(self.module), self.attribute))
        command = getattr(found, "commands", {}).get(name, found)
        command.name = name
        return command


class DeferredCommands(Mapping[str, Any]):
    """The commands of a group by their names; looking one up imports it."""

    def __init__(self, deferred: Mapping[str, Deferred]) -> None:
        self._deferred = deferred

    def __getitem__(self, name: str) -> Any:
        return self._deferred[name].load(name)

    def __iter__(self) -> Iterator[str]:
        return iter(self._deferred)

    def __len__(self) -> int:
        return len(self._deferred)


class DeferredGroup(TyperGroup):
    """A group whose commands are all deferred; a subclass lists them."""

    deferred: ClassVar[Mapping[str, Deferred]] = {}

    def __init__(self, **attributes: Any) -> None:
        super().__init__(**attributes)
        self.commands = DeferredCommands(self.deferred)  # type: ignore[assignment]  # nothing is added

    def list_commands(self, ctx: Any) -> list[str]:  # noqa: ARG002 - the library's signature
        """The names, in the order of the list."""
        return list(self.deferred)

    def format_help(self, ctx: Any, formatter: Any) -> None:
        """The help, with the summary of each command in its place."""
        summarised = TyperGroup(
            name=self.name,
            commands={
                name: TyperCommand(name, help=one.summary) for name, one in self.deferred.items()
            },
            params=self.params,
            help=self.help,
            epilog=self.epilog,
            rich_markup_mode=self.rich_markup_mode,
        )
        summarised.format_help(ctx, formatter)


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
        "best": Deferred(
            "proxy.cli.ask",
            "Answer a count, and show the best number to report for it, given what you believe.",
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
        "stream": Deferred(
            "proxy.cli.stream",
            "Tell a server who came, add up releases of several servers, and plan a stream.",
        ),
        "network": Deferred(
            "proxy.cli.network", "Learn which columns of a table depend on which, and compare that."
        ),
        "collection": Deferred(
            "proxy.cli.collection",
            "Ask many people, each of whom randomises their answer before it leaves their device.",
        ),
        "plan-collection": Deferred(
            "proxy.cli.planning",
            "Plan a collection: give two of --epsilon, --respondents and --half-width.",
        ),
        "plan-robustness": Deferred(
            "proxy.cli.planning",
            "Show how often noise changes the result of a test of dependence.",
            attribute="robustness",
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
            "proxy.cli.periods", "Make more of a growing table readable, or replace a table's data."
        ),
        "audit": Deferred(
            "proxy.cli.audit",
            "Verify what a ledger says was spent, without trusting the server that wrote it.",
        ),
        "ledger": Deferred("proxy.cli.periods", "Correct the time of a ledger.", attribute="clock"),
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
