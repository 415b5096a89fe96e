"""Checks a commit's subject, as a hook: `python -m tests.commit_subject FILE`.

A subject is `area: what was done`, in at most 100 characters. A body follows after a blank line.
"""

import re
import sys
from pathlib import Path

SUBJECT = re.compile(r"[a-z][a-z0-9_ ,-]*: \S.*[^.\s]")
LENGTH_MAX = 100
MADE_BY_GIT = ("Merge ", "Revert ", "fixup! ", "squash! ")
WAY_OUT = "Write `area: what was done`, for example `ledger: a server starts without psycopg`."


def wrong(message: str) -> str | None:
    """What is wrong with a commit's message, or None."""
    lines = [line for line in message.splitlines() if not line.startswith("#")]
    subject = lines[0] if lines else ""
    if subject.startswith(MADE_BY_GIT):
        return None
    if not SUBJECT.fullmatch(subject):
        return f"The subject names no area, or ends with a full stop: {subject!r}. {WAY_OUT}"
    if len(subject) > LENGTH_MAX:
        return f"The subject has {len(subject)} characters; at most {LENGTH_MAX} are shown."
    if len(lines) > 1 and lines[1]:
        return "A blank line must follow the subject."
    return None


if __name__ == "__main__":
    found = wrong(Path(sys.argv[1]).read_text(encoding="utf-8"))
    if found is not None:
        sys.exit(found)
