"""Prose has few of the turns that made readers stop: a list of banned patterns, and a limit.

What remains is listed by `python -m tests.test_plain_words`. Most of it is right as it stands: a
sentence may need `of what` or `of which`. CONTRIBUTING shows how to write instead.
"""

import re
import sys
from collections.abc import Iterator
from pathlib import Path

ROOT = Path(__file__).resolve().parents[1]
PACKAGES = (
    *("cube", "accountant", "inference", "planner", "synthesis", "local_dp", "streams", "proxy"),
    "tacit_client",
)
PAGES = ("README.md", "ARCHITECTURE.md", "CONTRIBUTING.md", "SECURITY.md", "CHANGELOG.md")
BANNED = re.compile(
    r"\b(?:whoever|of which|of whom|is not to be had|that there are|of those that|what it was"
    r"|of what|nobody|what one|that of the|says of|said of|Of one that|gone on with)\b"
)
HITS_MAX = 40


def hits() -> Iterator[str]:
    """Each place with a banned pattern, as ``file:line: text``."""
    files = [ROOT / page for page in PAGES]
    files += (ROOT / "docs").rglob("*.md")
    for package in PACKAGES:
        files += (ROOT / package).rglob("*.py")
    for path in sorted(files):
        if "generated" in path.parts or "_pb2" in path.name:
            continue
        for number, line in enumerate(path.read_text(encoding="utf-8").splitlines(), 1):
            if BANNED.search(line):
                yield f"{path.relative_to(ROOT)}:{number}: {line.strip()}"


def test_few_sentences_have_a_banned_pattern() -> None:
    found = list(hits())
    assert len(found) < HITS_MAX, "\n".join(found)


def test_the_patterns_find_what_they_ban() -> None:
    assert BANNED.search("a table of which nobody says what it costs")
    assert BANNED.search("The data is not what it was.")
    assert not BANNED.search("The file is unchanged, but different rows were read from it.")


if __name__ == "__main__":
    sys.stdout.write("\n".join(hits()) + "\n")
