"""The prompt of `tacit query`: what a line does, with history, completion and colours.

A line is a statement of SQL, or a command of the prompt, which begins with a backslash; text is
printed. Accuracy that is set here is sent with every statement, so that it holds also after the
connection was lost; SET in SQL is the session's.

Words of SQL, tables, columns and the prompt's own commands are completed. Names come from the
catalog, which holds what the caller may know of; completion asks no server.

The history is a file in the user's state folder that only the user may read: statements name
what somebody wanted to know.
"""

import os
import re
import time
from collections.abc import Callable, Iterable, Iterator, Mapping
from contextlib import suppress
from dataclasses import dataclass, field
from pathlib import Path
from typing import Final

import typer
from prompt_toolkit import PromptSession
from prompt_toolkit.completion import CompleteEvent, Completer, Completion
from prompt_toolkit.document import Document
from prompt_toolkit.filters import Condition
from prompt_toolkit.history import FileHistory, History, InMemoryHistory
from prompt_toolkit.key_binding import KeyBindings, KeyPressEvent
from prompt_toolkit.lexers import PygmentsLexer
from prompt_toolkit.shortcuts import CompleteStyle
from pygments.lexers.sql import PostgresLexer
from rich.console import RenderableType
from rich.table import Table
from rich.text import Text

from cube.refusals import InvalidRequest, UnknownName
from proxy.cli.shared import client as cli_client
from proxy.cli.shared import rendering
from proxy.cli.shared.client import ReceivedResult, ServerAddress, kept_open
from proxy.cli.shared.failures import Declined, failure_line, failure_of
from proxy.cli.shared.options import OutputFormat
from proxy.protocol import tacit_pb2

KEYWORDS: Final = (
    *("SELECT", "FROM", "WHERE", "GROUP BY", "ORDER BY", "HAVING", "LIMIT", "AS", "AND", "OR"),
    *("NOT", "IN", "BETWEEN", "LIKE", "IS NULL", "CASE", "WHEN", "THEN", "ELSE", "END", "DESC"),
    *("JOIN", "LEFT JOIN", "USING", "ON", "WITH", "UNION ALL", "CUBE", "ROLLUP", "DISTINCT"),
    *("COUNT(*)", "COUNT", "SUM", "AVG", "MIN", "MAX", "VARIANCE", "STDDEV", "MEDIAN"),
    *("EXPLAIN PRIVACY", "SHOW TABLES", "DESCRIBE", "SET", "RESET", "CREATE SYNTHETIC TABLE"),
    *(
        "WITH DIFFERENTIAL_PRIVACY OPTIONS",
        "DP_INTERVAL_LOW",
        "DP_INTERVAL_HIGH",
        "DP_PROBABILITY",
        "DP_BEST",
        "DP_SOURCE",
    ),
)
WORD: Final = re.compile(r"[\\\w.]*$")
ALIASED: Final = re.compile(r"(?=\b(\w+)(?:\s+AS)?\s+(\w+)\b)", re.IGNORECASE)


@dataclass(frozen=True, slots=True)
class Names:
    """The names that SQL may use.

    Parameters
    ----------
    columns : mapping of str to tuple of str
        The columns of each table; a table that is not in the schema ``public`` has its schema's
        name before it.
    """

    columns: Mapping[str, tuple[str, ...]] = field(default_factory=dict)

    def of(self, table: str, text: str) -> tuple[str, ...]:
        """The columns of a table, by its name or by what a text calls it."""
        if table in self.columns:
            return self.columns[table]
        for name, alias in ALIASED.findall(text):
            if alias == table and name in self.columns:
                return self.columns[name]
        return ()

    def named_in(self, text: str) -> list[str]:
        """The columns of the tables that a text names; of all tables if it names none."""
        words = set(re.findall(r"[\w.]+", text))
        tables = [table for table in self.columns if table in words] or list(self.columns)
        return sorted({column for table in tables for column in self.columns[table]})


class PromptCompleter(Completer):
    """Completes the word before the cursor.

    Parameters
    ----------
    commands : mapping of str to tuple of str
        The prompt's own commands, and the words that each takes; none for those that take a table
        or a statement.
    """

    def __init__(self, commands: Mapping[str, tuple[str, ...]]) -> None:
        self.names = Names()
        self._commands = commands

    def get_completions(
        self,
        document: Document,
        complete_event: CompleteEvent,  # noqa: ARG002 - the library names it
    ) -> Iterator[Completion]:
        """What the word before the cursor may become."""
        before = document.text_before_cursor
        found = WORD.search(before)
        word = "" if found is None else found[0]
        for text in self._candidates(before, word, document.text):
            if text.casefold().startswith(word.casefold()) and text != word:
                yield Completion(text, start_position=-len(word))

    def _candidates(self, before: str, word: str, text: str) -> Iterable[str]:
        begins = before[: len(before) - len(word)].split()
        if word.startswith("\\") or (begins and begins[0].startswith("\\")):
            return self._after_command(begins)
        table, dot, _ = word.rpartition(".")
        columns = [f"{table}.{name}" for name in self.names.of(table, text)] if dot else []
        if columns or not word:
            return columns or [*self.names.columns, *self.names.named_in(text)]
        return [*self.names.named_in(text), *self.names.columns, *KEYWORDS]

    def _after_command(self, begins: list[str]) -> Iterable[str]:
        if not begins:
            return self._commands
        words = self._commands.get(begins[0], ())
        if words:
            return words if len(begins) == 1 else ()
        return [*self.names.columns, *self.names.named_in(" ".join(begins)), *KEYWORDS]


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
    settings : mapping of str to str
        The accuracy to begin with, by the names of `SETTINGS`.
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


PROMPT: Final = "tacit> "
CONTINUED: Final = "   ..> "
STATE_VARIABLE: Final = "XDG_STATE_HOME"


def run_prompt(server: ServerAddress, settings: Mapping[str, str], output: OutputFormat) -> None:
    """Read lines and do what they say, until the last.

    Raises
    ------
    Unreachable, Declined
        If the server does not answer to begin with.
    """
    with kept_open(server) as opened:
        sitting = Sitting(opened, settings, output)
        completer = PromptCompleter({name: one.words for name, one in sitting.commands.items()})
        completer.names = sitting.names()
        typer.echo(f"Tacit at {server.address}. \\? lists commands, \\q leaves.")
        session = _session(completer)
        while not sitting.is_over:
            try:
                line = session.prompt()
            except KeyboardInterrupt:  # as shells do: the line is given up
                continue
            except EOFError:
                return
            _do(sitting, line)
            if "synthetic" in line.casefold():  # there may be other tables now
                with suppress(Exception):  # completion is a convenience
                    completer.names = sitting.names()


def is_whole(text: str) -> bool:
    r"""Whether Enter ends a text: a command, or a statement with its semicolon.

    >>> is_whole("SELECT 1"), is_whole("SELECT 1;"), is_whole("\\d adult"), is_whole("quit")
    (False, True, True, True)
    """
    stripped = text.strip()
    return (
        stripped.startswith("\\") or stripped.endswith(";") or stripped.casefold() in {"", *ALIASES}
    )


def _do(sitting: Sitting, line: str) -> None:
    """Do what a line says; what fails is said, and the prompt goes on."""
    try:
        sitting.run(line)
    except KeyboardInterrupt:
        typer.echo("Cancelled. What was charged before stays charged.", err=True)
    except Exception as error:  # noqa: BLE001 - whatever it is, no traceback reaches the terminal
        failure, _ = failure_of(error)
        typer.echo(pointed_at(line.strip(), failure) + failure_line(failure), err=True)


def pointed_at(text: str, failure: Declined) -> str:
    r"""The line of a statement where it fails, and a mark below the place; else nothing.

    >>> from proxy.protocol.tacit_pb2 import RefusalDetail, TextPosition
    >>> detail = RefusalDetail(position=TextPosition(line=2, column=3))
    >>> print(pointed_at("SELECT\n  nonsense;", Declined("unknown_name", "", detail)), end="")
      nonsense;
      ^
    """
    detail = failure.detail
    if detail is None or not detail.HasField("position") or text.startswith("\\"):
        return ""
    lines, place = text.replace("\t", " ").split("\n"), detail.position
    if not 1 <= place.line <= len(lines):
        return ""
    return f"{lines[place.line - 1]}\n{' ' * (place.column - 1)}^\n"


def _session(completer: PromptCompleter) -> PromptSession[str]:
    bindings = KeyBindings()

    @bindings.add("enter", filter=Condition(lambda: not is_whole(session.default_buffer.text)))
    def _(event: KeyPressEvent) -> None:
        event.current_buffer.insert_text("\n")

    @bindings.add("enter", filter=Condition(lambda: is_whole(session.default_buffer.text)))
    def _(event: KeyPressEvent) -> None:
        event.current_buffer.validate_and_handle()

    session: PromptSession[str] = PromptSession(
        PROMPT,
        multiline=True,
        prompt_continuation=CONTINUED,
        history=_history(),
        completer=completer,
        complete_while_typing=False,
        complete_style=CompleteStyle.READLINE_LIKE,
        reserve_space_for_menu=0,
        lexer=PygmentsLexer(PostgresLexer),
        key_bindings=bindings,
    )
    return session


def _history() -> History:
    """The history of earlier sittings; of this one alone if there is no place to keep it."""
    state = os.environ.get(STATE_VARIABLE) or Path("~/.local/state").expanduser()
    file = Path(state) / "tacit" / "history"
    try:
        file.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
        file.touch(mode=0o600)
    except OSError:
        return InMemoryHistory()
    return FileHistory(str(file))
