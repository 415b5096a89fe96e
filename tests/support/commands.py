"""Running the command line in this process: its exit code, and what a person would read."""

from collections.abc import Callable
from typing import NamedTuple, TypeAlias

import pytest

from proxy.cli import app as cli


class Ended(NamedTuple):
    """How a command ended."""

    code: int
    out: str
    err: str


Run: TypeAlias = Callable[..., Ended]


def command_runner(capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch) -> Run:
    """A function that runs `tacit` with some arguments, on a wide terminal, without a token."""
    monkeypatch.setenv("COLUMNS", "200")
    monkeypatch.delenv("TACIT_TOKEN", raising=False)

    def run(*arguments: object) -> Ended:
        with pytest.raises(SystemExit) as ended:
            cli.main(tuple(map(str, arguments)))
        captured = capsys.readouterr()
        assert "Traceback" not in captured.out + captured.err
        return Ended(int(ended.value.code or 0), captured.out, captured.err)

    return run
