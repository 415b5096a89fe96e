"""Names that look like another's are pointed out where they are added and listed."""

from pathlib import Path

import pytest

from proxy.identity.issuing import warnings_beside, warnings_of
from tests.proxy.cli.test_serve import CONFIGURATION
from tests.support.commands import Run, command_runner


@pytest.mark.parametrize(
    "other",
    [
        "p\u0430ul",
        "\u0440aul",
        "Paul",
        "pau1",
        "pauI",
        "p\u03b1ul",
        "pa\u200bul",
        "p\u00e1ul",
        "\uff50aul",
    ],
)
def test_two_names_that_are_drawn_alike_are_told_of(other: str) -> None:
    assert any("look alike" in one for one in warnings_of(["ann", "paul", other]))
    assert any("look alike" in one for one in warnings_beside({other}, ["ann", "paul", other]))


@pytest.mark.parametrize("other", ["paula", "saul", "\u043f\u0430\u0432\u0435\u043b", "李"])
def test_names_that_differ_to_the_eye_are_not(other: str) -> None:
    assert not list(warnings_of(["ann", "paul", other]))


def test_a_name_of_two_scripts_is_told_of_without_another() -> None:
    (said,) = warnings_of(["b\u043eris"])
    assert said.endswith("is written with letters of Cyrillic and Latin.")
    assert r"b\u043eris" in said


def test_the_command_line_says_so(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    run: Run = command_runner(capsys, monkeypatch)
    (tmp_path / "people.csv").write_text("age\n1\n")
    config = tmp_path / "tacit.toml"
    config.write_text(CONFIGURATION)
    issue = ["token", "issue", "--all-tables", "--config", str(config), "--analyst"]
    assert "WARNING" not in run(*issue, "ann").err
    assert "look alike" in run(*issue, "\u0430nn").err
    assert "WARNING" not in run(*issue, "bob").err
    assert "look alike" in run("token", "list", "--config", str(config)).err
