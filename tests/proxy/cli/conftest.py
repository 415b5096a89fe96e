"""The command line as a function, for every test of a command."""

import pytest

from tests.support.commands import Run, command_runner


@pytest.fixture
def run(capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch) -> Run:
    return command_runner(capsys, monkeypatch)
