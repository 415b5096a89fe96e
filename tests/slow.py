"""The slow tests, in named parts: `python -m tests.slow [PART ...]`, or `make test-slow`.

They are the long statistical tests, and every example of every property, of which `make test` tries
a quarter. A table at the end says which parts were run, on which commit, how they ended and how
long they took; it is also in build/slow.txt. Exit code 1 if a part fails.
"""

import os
import subprocess
import sys
import time
from pathlib import Path
from typing import Final

ROOT = Path(__file__).resolve().parents[1]
TOLD = ROOT / "build" / "slow.txt"
PARTS: Final = {
    "core": ("accountant", "cube", "inference"),
    "randomised": ("local_dp", "streams", "synthesis"),
    "planning": ("planner", "sql", "differential"),
    "process": ("proxy", "tacit_client", "clients", "docs"),
    "whole": ("end_to_end", "benchmarks", "examples"),
}
NOTHING_COLLECTED: Final = 5  # pytest's exit code


def run(part: str) -> str:
    """Run a part; its line of the table."""
    folders = [f"tests/{one}" for one in PARTS[part] if (ROOT / "tests" / one).is_dir()]
    command = [sys.executable, "-m", "pytest", "-n", "2", "--dist", "worksteal"]
    command += ["-m", "slow or hypothesis", *folders]
    begun = time.monotonic()
    every = os.environ | {"TACIT_EVERY_EXAMPLE": "1"}
    done = subprocess.run(  # noqa: S603 - our own tests
        command, cwd=ROOT, check=False, env=every, stdout=subprocess.PIPE, text=True
    )
    sys.stdout.write(done.stdout)
    outcome = "passed" if done.returncode in {0, NOTHING_COLLECTED} else "FAILED"
    return f"{part:<12} {outcome}  {(time.monotonic() - begun) / 60:6.1f} minutes"


def main(asked: list[str]) -> int:
    """Run some parts, or all; 1 if any fails."""
    unknown = [one for one in asked if one not in PARTS]
    if unknown:
        sys.exit(f"There is no part {unknown[0]!r}. Parts: {', '.join(PARTS)}.")
    git = ["git", "rev-parse", "--short", "HEAD"]
    commit = subprocess.run(git, cwd=ROOT, check=False, capture_output=True, text=True).stdout  # noqa: S603 - git
    lines = [f"commit {commit.strip()}"]
    TOLD.parent.mkdir(exist_ok=True)
    for part in asked or PARTS:
        lines.append(run(part))
        TOLD.write_text("\n".join(lines) + "\n", encoding="utf-8")
    skipped = [f"{part:<12} not run" for part in PARTS if asked and part not in asked]
    sys.stdout.write("\n".join([*lines, *skipped]) + "\n")
    return int(any("FAILED" in line for line in lines))


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
