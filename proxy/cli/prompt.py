"""The prompt of `tacit query`: history, completion and colours on a terminal.

The history is a file in the user's state folder that nobody else may read, because statements name
what somebody wanted to know. What a line does is `prompt_commands`' business.
"""

import os
from collections.abc import Mapping
from contextlib import suppress
from pathlib import Path
from typing import Final

import typer
from prompt_toolkit import PromptSession
from prompt_toolkit.filters import Condition
from prompt_toolkit.history import FileHistory, History, InMemoryHistory
from prompt_toolkit.key_binding import KeyBindings, KeyPressEvent
from prompt_toolkit.lexers import PygmentsLexer
from prompt_toolkit.shortcuts import CompleteStyle
from pygments.lexers.sql import PostgresLexer

from proxy.cli.client import ServerAddress, kept_open
from proxy.cli.failures import Declined, failure_line, failure_of
from proxy.cli.options import OutputFormat
from proxy.cli.prompt_commands import ALIASES, Sitting
from proxy.cli.prompt_completion import PromptCompleter

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
