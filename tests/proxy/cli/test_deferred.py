"""Commands are imported when they are called, and the help says what they are without that."""

import subprocess
import sys
from typing import Any

import pytest
import typer

from proxy.cli.app import Commands, app
from tests.support.commands import Run

HEAVY = {
    "numpy", "scipy", "pyarrow", "grpc", "duckdb", "sqlglot", "opendp", "matplotlib", "pydantic",
    "structlog", "cryptography", "jinja2", "prometheus_client",
}  # fmt: skip
ENGINE = HEAVY - {"numpy", "pyarrow", "grpc"}  # what only a server needs
PROGRAM = """
import sys
{}
print(*sorted({{name.split(".")[0] for name in sys.modules}}))
"""


def loaded(program: str) -> set[str]:
    """The packages that a fresh interpreter has loaded when a program ends."""
    command = [sys.executable, "-c", PROGRAM.format(program)]
    ended = subprocess.run(command, check=True, capture_output=True, text=True)  # noqa: S603 - our own program
    return set(ended.stdout.splitlines()[-1].split())


def test_the_help_loads_no_library_of_the_server_or_the_client() -> None:
    program = """
from proxy.cli.app import main
try:
    main(["--help"])
except SystemExit:
    pass
"""
    assert not loaded(program) & HEAVY
    assert not loaded("import proxy.cli.app") & HEAVY


def test_asking_a_server_loads_nothing_of_the_engine() -> None:
    assert not loaded("import proxy.cli.ask") & ENGINE


@pytest.mark.parametrize("name", Commands.deferred)
def test_the_help_tells_of_each_command_what_its_own_help_begins_with(name: str) -> None:
    root: Any = typer.main.get_command(app)
    own = " ".join(root.commands[name].help.split())
    assert own.startswith(Commands.deferred[name].summary)
    assert root.commands[name].name == name


def test_names_are_suggested_as_before(run: Run) -> None:
    assert "Did you mean 'query'?" in run("qurey").err
