"""Commands that are imported when they are called, so that the command line starts quickly.

A group knows the name of each of its commands, where it is, and the sentence that the help shows of
it. A client's command loads no engine in this way, and `--help` loads nothing at all.
"""

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from importlib import import_module
from typing import Any, ClassVar

import typer
from typer.core import TyperCommand, TyperGroup


@dataclass(frozen=True, slots=True)
class Deferred:
    """A command, or a group of commands, in a module that is not imported yet.

    Parameters
    ----------
    module : str
        The module.
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
