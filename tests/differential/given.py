"""The given statements, and the list of those that do not agree.

-- s01: why it is asked
SELECT ..;
"""

import re
import tomllib
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Final

HERE: Final = Path(__file__).parent
DIFFERENCES: Final = HERE / "differences.toml"
GROUPS: Final = ("on_purpose", "refused")
_STATEMENT = re.compile(r"-- (\S+): (.*?)\n(.*?);\s*(?=\n-- |\Z)", re.DOTALL)


@dataclass(frozen=True, slots=True)
class Statement:
    """One statement, the file it is in, its number and what it is about."""

    file: str
    name: str
    about: str
    sql: str


def statements() -> Iterator[Statement]:
    """Every given statement, in order."""
    for path in sorted((HERE / "statements").glob("*.sql")):
        for name, about, sql in _STATEMENT.findall(path.read_text()):
            yield Statement(path.stem, name, about, sql.strip())


def listed() -> dict[str, str]:
    """The statements on the list of differences, each with the reason it is there."""
    whole = tomllib.loads(DIFFERENCES.read_text())
    kinds = [kind for name in GROUPS for kind in whole.get(name, {}).values()]
    return {name: kind["reason"] for kind in kinds for name in kind["statements"]}


def on_purpose() -> list[str]:
    """The reasons for differences that stay, which docs/sql.md says."""
    whole = tomllib.loads(DIFFERENCES.read_text())
    kinds = (*whole["on_purpose"].values(), *whole["generated"])
    return [kind["reason"] for kind in kinds]


def is_known(difference: str) -> bool:
    """Whether a difference of an expression at random is on the list."""
    known = tomllib.loads(DIFFERENCES.read_text())["generated"]
    return any(re.search(pattern, difference) for kind in known for pattern in kind["like"])
