"""The respondent's side in JavaScript, in a process of Node that answers cases, a line for each.

Without Node its tests are skipped, unless TACIT_TESTS_NEED_SERVERS=1.
"""

import json
import shutil
import subprocess
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import local_dp
from tests.support.postgres import missing

MODULE = Path(local_dp.__file__).parent / "respondent.mjs"
CASES = Path(__file__).parent / "respondent_cases.mjs"


class JavaScript:
    """A running process."""

    def __init__(self, process: subprocess.Popen[str]) -> None:
        self._process = process

    def of(self, kind: str, **asked: object) -> Mapping[str, Any]:
        """What becomes of a case; see `respondent_cases.mjs`."""
        assert self._process.stdin is not None
        assert self._process.stdout is not None
        self._process.stdin.write(json.dumps({"kind": kind, **asked}) + "\n")
        self._process.stdin.flush()
        line = self._process.stdout.readline()
        assert line, "Node has ended"
        found: Mapping[str, Any] = json.loads(line)
        return found


@contextmanager
def javascript() -> Iterator[JavaScript]:
    """A process for as long as it is needed; the test is skipped if there is no Node."""
    program = shutil.which("node")
    if program is None:
        missing("there is no Node on this machine")
    command = [program, str(CASES), str(MODULE)]
    with subprocess.Popen(  # noqa: S603 - a program that was looked for
        command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True
    ) as process:
        try:
            yield JavaScript(process)
        finally:
            process.kill()
