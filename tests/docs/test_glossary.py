"""docs/glossary.md names the code as it is: every name it gives is there."""

import re
from importlib import import_module
from pathlib import Path
from typing import Any

import pytest

PAGE = Path(__file__).resolve().parents[2] / "docs" / "glossary.md"
ROWS = re.findall(r"^\| \*\*(.+?)\*\* \| (.+?) \| (.*?) \| .*? \|$", PAGE.read_text(), re.MULTILINE)
NAMES = sorted({name for row in ROWS for name in re.findall(r"`((?:\w+\.)+\w+)`", row[2])})


def found(name: str) -> Any:
    """The module, class, field or method behind a name with dots."""
    parts = name.split(".")
    for n_module_parts in range(len(parts), 0, -1):
        try:
            here: Any = import_module(".".join(parts[:n_module_parts]))
        except ModuleNotFoundError:
            continue
        for part in parts[n_module_parts:]:
            fields = getattr(here, "__annotations__", {})
            here = getattr(here, part) if hasattr(here, part) else fields[part]
        return here
    raise ModuleNotFoundError(name)


@pytest.mark.parametrize("name", NAMES)
def test_a_name_is_in_the_code(name: str) -> None:
    assert found(name) is not None


def test_every_word_is_there_once_and_explained() -> None:
    words = [row[0] for row in ROWS]
    assert len(words) > 50
    assert len(set(words)) == len(words)
    assert all(row[1].endswith((".", ".)")) for row in ROWS)
