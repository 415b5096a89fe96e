r"""What a line at the prompt of `tacit query` does: a statement of SQL, or a command like `\d`.

Lines in, printed text out; the terminal is `prompt`'s business. Accuracy that is set here is sent
with every statement, so that it holds also after the connection was lost; SET in SQL is the
session's.
"""

import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Final

import typer
from rich.console import RenderableType
from rich.table import Table
from rich.text import Text

from cube.refusals import InvalidRequest, UnknownName
from proxy.cli import client as cli_client
from proxy.cli import rendering
from proxy.cli.client import ReceivedResult, ServerAddress
from proxy.cli.options import OutputFormat
from proxy.cli.prompt_completion import Names
from proxy.protocol import tacit_pb2

NUMBERS: Final = ("half_width", "relative", "at_least", "confidence")
SETTINGS: Final = (*NUMBERS, "epsilon", "fallback")
APART: Final = {"half_width": ("relative", "at_least"), "relative": ("half_width",)}
ALIASES: Final = {"quit": "\\q", "exit": "\\q", "help": "\\?"}
DEFAULT_SCHEMA: Final = "public"
NAMES_QUERY: Final = (
    "SELECT table_schema, table_name, column_name FROM information_schema.columns "
    "ORDER BY table_schema, table_name, ordinal_position"
)


@dataclass(frozen=True, slots=True)
class Command:
    """A command of the prompt: how it is written, what it does, and the words that it takes."""

    usage: str
    summary: str
    run: Callable[[str], None]
    words: tuple[str, ...] = ()


class Sitting:
    """One sitting at the prompt.

    Parameters
    ----------
    server : ServerAddress
    settings : mapping of str to str
        The accuracy to begin with, by the names of `SETTINGS`.
    output : OutputFormat
    """

    def __init__(
        self, server: ServerAddress, settings: Mapping[str, str], output: OutputFormat
    ) -> None:
        self._server = server
        self._settings = dict(settings)
        self._output = output
        self._is_timed = False
        self.commands = self._commands()
        self.is_over = False

    def run(self, line: str) -> None:
        """Do what a line says.

        Raises
        ------
        Exception
            What a command that fails raises; see `failures.failure_of`.
        """
        text = line.strip()
        text = ALIASES.get(text.rstrip("; ").casefold(), text)
        if text.startswith("\\"):
            name, _, rest = text.partition(" ")
            if name not in self.commands:
                raise InvalidRequest(f"There is no command {name}.", hint="\\? lists them.")
            self.commands[name].run(rest.strip().rstrip(";").strip())
        elif text.strip(";").strip():
            started = time.monotonic()
            self._show(cli_client.query(self._server, text, self._target()))
            if self._is_timed:
                typer.echo(f"{1e3 * (time.monotonic() - started):.0f} ms")

    def names(self) -> Names:
        """The tables and columns that the caller may know of."""
        rows = cli_client.query(self._server, NAMES_QUERY, tacit_pb2.Target()).data.to_pylist()
        columns: dict[str, tuple[str, ...]] = {}
        for row in rows:
            schema, table = row["table_schema"], row["table_name"]
            name = table if schema == DEFAULT_SCHEMA else f"{schema}.{table}"
            columns[name] = (*columns.get(name, ()), row["column_name"])
        return Names(columns)

    def _commands(self) -> dict[str, Command]:
        return {
            "\\d": Command("\\d [TABLE]", "the tables, or the columns of one", self._describe),
            "\\budget": Command(
                "\\budget [TABLE]", "what is spent, and what is left", self._budget
            ),
            "\\explain": Command(
                "\\explain SELECT ..", "what a statement would cost; spends nothing", self._explain
            ),
            "\\set": Command(
                "\\set NAME VALUE",
                f"ask with {', '.join(SETTINGS)}; alone, shows them",
                self._set,
                SETTINGS,
            ),
            "\\unset": Command("\\unset NAME", "ask without it", self._unset, SETTINGS),
            "\\format": Command(
                "\\format NAME",
                "print answers as table, csv, spreadsheet or json",
                self._format,
                tuple(OutputFormat),
            ),
            "\\timing": Command(
                "\\timing", "print how long answers take, or no longer", self._time
            ),
            "\\?": Command("\\?", "this list", self._help),
            "\\q": Command("\\q", "leave; so does Ctrl-D", self._quit),
        }

    def _describe(self, table: str) -> None:
        if not table:
            self._show(cli_client.query(self._server, "SHOW TABLES", tacit_pb2.Target()))
            return
        known = [one for one in cli_client.list_tables(self._server) if one.name == table]
        if known:
            _print(rendering.schema_table(known[0]))
        else:
            found = cli_client.query(self._server, f"DESCRIBE {table}", tacit_pb2.Target())
            if not found.data.num_rows:
                raise UnknownName(f"There is no table {table}.", hint="\\d lists them.")
            self._show(found)

    def _budget(self, table: str) -> None:
        budgets = cli_client.get_budgets(self._server, table)
        _print(rendering.budgets_table(budgets))
        if renewals := rendering.renewals_text(budgets):
            _print(Text(renewals))
        binding = rendering.binding_table(budgets)
        if binding is not None:
            _print(binding)

    def _explain(self, statement: str) -> None:
        if not statement:
            raise InvalidRequest("There is nothing to explain.", hint="\\explain SELECT ..")
        _print(
            rendering.explanation_table(cli_client.explain(self._server, statement, self._target()))
        )

    def _set(self, words: str) -> None:
        name, _, value = words.partition(" ")
        if not name:
            for one, text in self._settings.items():
                typer.echo(f"{one} = {text}")
            return
        _check_setting(name)
        changed = {**self._settings, name: value.strip().removeprefix("=").strip()}
        for other in APART.get(name, ()):
            changed.pop(other, None)
        _target(changed)  # refused before it is kept
        self._settings = changed

    def _unset(self, name: str) -> None:
        _check_setting(name)
        self._settings.pop(name, None)

    def _format(self, name: str) -> None:
        if name not in set(OutputFormat):
            raise InvalidRequest(f"There is no format {name!r}.", hint=f"{', '.join(OutputFormat)}")
        self._output = OutputFormat(name)

    def _time(self, _: str) -> None:
        self._is_timed = not self._is_timed
        typer.echo(f"Timing is {'on' if self._is_timed else 'off'}.")

    def _help(self, _: str) -> None:
        shown = Table(show_header=False, box=None, pad_edge=False)
        for command in self.commands.values():
            shown.add_row(rendering.plain(command.usage), rendering.plain(command.summary))
        _print(shown)
        typer.echo("Anything else is SQL, and ends with a semicolon.")

    def _quit(self, _: str) -> None:
        self.is_over = True

    def _target(self) -> tacit_pb2.Target:
        return _target(self._settings)

    def _show(self, answer: ReceivedResult) -> None:
        if answer.receipt is None and answer.data.column_names == ["setting"]:
            return  # a SET has nothing to show
        match self._output:
            case OutputFormat.TABLE:
                _print(rendering.answer_table(answer))
            case OutputFormat.CSV:
                rendering.print_text(rendering.answer_csv(answer))
            case OutputFormat.SPREADSHEET:
                rendering.print_text(rendering.answer_csv(answer, is_for_spreadsheets=True))
            case OutputFormat.JSON:
                rendering.print_text(f"{rendering.answer_json(answer)}\n")


def _target(settings: Mapping[str, str]) -> tacit_pb2.Target:
    numbers = {name: _number(name, settings[name]) for name in NUMBERS if name in settings}
    return cli_client.target_of(
        numbers.get("half_width"),
        numbers.get("confidence"),
        settings.get("epsilon"),
        relative=numbers.get("relative"),
        at_least=numbers.get("at_least"),
        fallback=settings.get("fallback"),
    )


def _number(name: str, text: str) -> float:
    try:
        return float(text)
    except ValueError:
        raise InvalidRequest(f"{name} is a number, not {text!r}.") from None


def _check_setting(name: str) -> None:
    if name not in SETTINGS:
        raise InvalidRequest(
            f"There is no setting {name!r}.", hint=f"Settings are {', '.join(SETTINGS)}."
        )


def _print(shown: RenderableType) -> None:
    rendering.console().print(shown)
