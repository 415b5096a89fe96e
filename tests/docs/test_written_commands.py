"""Every `tacit` command that a page shows is one that there is, with options that it has."""

import re
import shlex
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
import typer

from proxy.cli.app import app

ROOT = Path(__file__).resolve().parents[2]
PAGES = sorted(
    path.relative_to(ROOT)
    for path in (*ROOT.glob("*.md"), *ROOT.glob("docs/*.md"), *ROOT.glob("docs/howto/*.md"))
)
SHOWN = re.compile(r"^(?: {4,}|\$ )(?:\(umask 077; )?(?:\w+=\S+ )*tacit (.*)$", re.MULTILINE)


def written(page: Path) -> Iterator[str]:
    """The arguments of each command in an indented or a fenced block of a page."""
    for line in SHOWN.findall((ROOT / page).read_text(encoding="utf-8")):
        yield re.split(r"\s#\s|\s\s#| > |\)$", line)[0]


@pytest.mark.parametrize("page", PAGES, ids=str)
def test_commands_are_there_with_their_options(page: Path) -> None:
    for line in written(page):
        command: Any = typer.main.get_command(app)
        words = shlex.split(line)
        while words and words[0] in getattr(command, "commands", {}):
            command = command.commands[words.pop(0)]
        assert not getattr(command, "commands", {}), f"{page}: there is no tacit {line}"
        options = {name for parameter in command.params for name in parameter.opts}
        named = {word for word in words if re.match("--?[a-z]", word)}
        assert named <= options, f"{page}: tacit {line}"


def test_commands_are_found_on_pages() -> None:
    found = [line for page in PAGES for line in written(page)]
    assert len(found) > 60
