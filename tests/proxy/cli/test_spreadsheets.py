"""What is printed or written of others' texts: no formulas for spreadsheets, no controls."""

import csv
import io
from pathlib import Path

import pyarrow as pa
import pytest

from proxy.cli.shared import rendering
from proxy.cli.shared.client import ReceivedResult
from proxy.cli.shared.files import table_writer

FORMULAS = ["=1+1", "+cmd|' /C calc'!A0", "-2+3", "@SUM(A1)", "\t=1", " =1", "\uff1d1", "-a"]
PLAIN = ["Oslo", "1-2", "a=b", "", "-412.5", "+4.7e-3", "-inf", "2026-01-01", "a@b"]


@pytest.mark.parametrize("text", FORMULAS)
def test_a_formula_is_shown_in_a_spreadsheet_and_not_calculated(text: str) -> None:
    answer = ReceivedResult(pa.table({text: [text, "x"], "n": [-1.5, 2.0]}), None)
    header, first, _ = csv.reader(
        io.StringIO(rendering.answer_csv(answer, is_for_spreadsheets=True))
    )
    assert header == [f"'{text}", "n"]
    assert first == [f"'{text}", "-1.5"]


@pytest.mark.parametrize("text", PLAIN)
def test_what_is_no_formula_stays_as_it_is(text: str) -> None:
    assert rendering.no_formula(text) == text


def test_files_for_spreadsheets_hold_no_formulas_and_others_are_as_they_are(tmp_path: Path) -> None:
    data = pa.table({"a": [*FORMULAS, None], "n": [-1.5] * (len(FORMULAS) + 1)})
    table_writer(tmp_path / "a.csv", is_for_spreadsheets=True)(data)
    with (tmp_path / "a.csv").open(newline="") as file:
        rows = list(csv.reader(file))
    assert [row[0] for row in rows[1:]] == [*(f"'{one}" for one in FORMULAS), ""]
    assert {row[1] for row in rows[1:]} == {"-1.5"}
    table_writer(tmp_path / "b.csv")(data)
    assert "'=1+1" not in (tmp_path / "b.csv").read_text()


@pytest.mark.parametrize("is_terminal", [True, False])
def test_a_terminal_is_shown_no_controls_and_a_file_gets_them(
    capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch, *, is_terminal: bool
) -> None:
    """Escape sequences, their one-byte forms, and marks that turn text around."""
    evil = "\x1b]0;gone\x07\x9b31m\u202eab\x7f"
    answer = ReceivedResult(pa.table({"c\x1b[2J": [evil]}), None)
    monkeypatch.setattr("sys.stdout.isatty", lambda: is_terminal)
    for text in (rendering.answer_csv(answer), rendering.answer_json(answer)):
        rendering.print_text(text)
        shown = capsys.readouterr().out
        assert shown.replace("\n", "").isprintable() == is_terminal
