"""What pages show is what their commands do, run from beginning to end.

To write one anew: `python -m tests.support.console_page docs/tutorial.md`.
"""

from pathlib import Path

import pytest

from tests.support.console_page import Command, SavedFile, agrees, shape, shell, steps

pytestmark = pytest.mark.processes

ROOT = Path(__file__).resolve().parents[2]
PAGES = ("README.md", "docs/tutorial.md")
RUN_PAGES = (*PAGES, "docs/howto/python.md")
SMALL = """\
<!-- file: a.txt -->
```text
A
```
```sh
only read
```
```console
$ cat a.txt
A
$ true
```
"""


@pytest.mark.parametrize("name", RUN_PAGES)
def test_a_page_shows_what_its_commands_print(name: str) -> None:
    page = (ROOT / name).read_text(encoding="utf-8")
    with shell() as run_in:
        for step in steps(page):
            printed = run_in.run(step)
            if isinstance(step, Command):
                assert agrees(printed, step.output), f"$ {step.line}\n{printed}"


@pytest.mark.parametrize("name", PAGES)
def test_a_page_has_a_session_with_a_server(name: str) -> None:
    found = [step.line for step in steps((ROOT / name).read_text()) if isinstance(step, Command)]
    assert any(line.startswith("tacit serve") for line in found)
    assert any(line.startswith("tacit query") for line in found)


def test_outputs_differ_in_numbers_only() -> None:
    assert shape("│ Hill │  3596 │ [3,496, -3.5] │") == shape("│ Hill │ 12 │ [1, 2e-9] │")
    assert shape("source: measured") != shape("source: history")
    assert shape("━━━━\n  one\n\n") == shape("━━\none")


def test_a_refusal_may_lack_advice_and_nothing_else() -> None:
    shown = "error [a]: It costs 3. You have 2. Ask for less."
    assert agrees("error [a]: It costs 4. Ask for less.", shown)
    assert not agrees("error [a]: It costs 4. Ask for more.", shown)
    assert not agrees("error [b]: It costs 4. You have 2. Ask for less.", shown)
    assert not agrees("It costs 4.", "It costs 3. You have 2.")


def test_a_page_is_files_and_commands() -> None:
    file, shows, nothing = steps(SMALL)
    assert file == SavedFile("a.txt", "A\n")
    assert isinstance(shows, Command)
    assert isinstance(nothing, Command)
    assert (shows.output, nothing.output) == ("A\n", "")
    with shell() as run_in:
        assert [run_in.run(step) for step in (file, shows, nothing)] == ["", "A\n", ""]
