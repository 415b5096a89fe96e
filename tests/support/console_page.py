"""Markdown pages whose shell sessions are run: what they show is what the commands print.

A page's steps are its fenced blocks, in order. A block of ``console`` has commands behind ``$ ``,
each followed by its output; a block below ``<!-- file: NAME -->`` is a file that the reader saves;
every other block is only read. ``tacit serve`` runs beside what follows it. The noise is real, so
outputs are compared by their shape: all numbers are alike, and so are all lines of a drawing.

`python -m tests.support.console_page README.md docs/tutorial.md` writes what the commands print now
into the pages.
"""

import os
import re
import shutil
import signal
import socket
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Final

ROOT: Final = Path(__file__).resolve().parents[2]
FENCE: Final = re.compile(
    r"(?:<!-- file: (?P<file>\S+) -->\n)?```(?P<language>\S*)\n(?P<text>.*?)^```$",
    re.DOTALL | re.MULTILINE,
)
SERVED_AT: Final = "127.0.0.1:31337"  # where `tacit serve` listens if nothing else is said
SECONDS_MAX: Final = 120.0
POLL_SECONDS: Final = 0.3


@dataclass(frozen=True, slots=True)
class SavedFile:
    """A file that the reader saves."""

    name: str
    text: str


@dataclass(frozen=True, slots=True)
class Command:
    """A command, what the page says that it prints, and where in the page that stands."""

    line: str
    output: str
    span: tuple[int, int]


def steps(page: str) -> Iterator[SavedFile | Command]:
    for found in FENCE.finditer(page):
        if found["file"] is not None:
            yield SavedFile(found["file"], found["text"])
        elif found["language"] == "console":
            yield from _commands(found["text"], found.start("text"))


def _commands(block: str, start: int) -> Iterator[Command]:
    for found in re.finditer(r"^\$ (.*)\n((?:(?!\$ ).*\n)*)", block, re.MULTILINE):
        span = (start + found.start(2), start + found.end(2))
        yield Command(found[1], found[2], span)


def shape(output: str) -> str:
    """What of an output is the same in every run."""
    for pattern, replacement in (
        (r"\b[0-9a-f]{64}\b", "DIGEST"),
        (r"-?\d[\d,]*(?:\.\d+)?(?:e[+-]?\d+)?", "#"),
        (r"[─━]+", "─"),
        (r"[█░]+", "█"),
        (r"[ \t]+", " "),
        (r"\s*\n\s*", "\n"),
    ):
        output = re.sub(pattern, replacement, output)
    return output.strip()


def agrees(printed: str, shown: str) -> bool:
    """Whether a page shows what was printed.

    A refusal comes without advice where finding it would take over a second: on a busy machine it
    may lack a sentence that the page has.
    """
    was, is_shown = shape(printed), shape(shown)
    if not was.startswith("error ["):
        return was == is_shown
    sentences, shown_sentences = was.split(". "), is_shown.split(". ")
    return sentences[0] == shown_sentences[0] and set(sentences) <= set(shown_sentences)


@dataclass(slots=True)
class Shell:
    """Runs the steps of a page in a folder of their own, with a server on a free port."""

    folder: Path
    environment: dict[str, str]
    address: str
    stack: ExitStack = field(default_factory=ExitStack)

    def run(self, step: SavedFile | Command) -> str:
        """Take one step; returns what it prints, with the address that pages show."""
        if isinstance(step, SavedFile):
            (self.folder / step.name).write_text(step.text, encoding="utf-8")
            return ""
        if step.line.startswith("tacit serve"):
            printed = self._serve(step.line)
        else:
            printed = subprocess.run(  # noqa: S603 - the page's own command
                ["bash", "-c", step.line],  # noqa: S607
                cwd=self.folder,
                env=self.environment,
                stdout=subprocess.PIPE,
                stderr=subprocess.STDOUT,
                text=True,
                timeout=SECONDS_MAX,
                check=False,
            ).stdout
        return printed.replace(self.address, SERVED_AT)

    def _serve(self, line: str) -> str:
        """Start the server; returns what it says until it can be asked, or why it ended."""
        said, log = self.folder / ".said", self.folder / ".log"
        with said.open("w") as said_file, log.open("w") as log_file:
            process = subprocess.Popen(  # noqa: S603 - the page's own command
                ["bash", "-c", f"exec {line}"],  # noqa: S607
                cwd=self.folder,
                env=self.environment,
                stdout=said_file,
                stderr=log_file,
            )
        self.stack.enter_context(process)
        self.stack.callback(process.send_signal, signal.SIGTERM)
        end = time.monotonic() + SECONDS_MAX
        while time.monotonic() < end and process.poll() is None:
            greeting = said.read_text()
            time.sleep(POLL_SECONDS)
            if self._answers() and greeting and greeting == said.read_text():
                return greeting
        return said.read_text() + log.read_text()

    def _answers(self) -> bool:
        host, _, port = self.address.partition(":")
        try:
            with socket.create_connection((host, int(port)), timeout=1):
                return True
        except OSError:
            return False


@contextmanager
def shell(installed: Path | None = None) -> Iterator[Shell]:
    """A shell in a temporary folder that holds a copy of the examples, and nothing else.

    Parameters
    ----------
    installed : Path, optional
        The interpreter of an environment into which Tacit is installed; by default it is run from
        the checkout.
    """
    with tempfile.TemporaryDirectory(prefix="tacit-page-") as name, ExitStack() as stack:
        folder = Path(name)
        kept_out = shutil.ignore_patterns("__pycache__", "*.ledger*")
        shutil.copytree(ROOT / "examples", folder / "examples", ignore=kept_out)
        commands = folder / ".commands"
        commands.mkdir()
        for command, arguments in (("tacit", "-m proxy"), ("python", "")):
            script = commands / command
            script.write_text(f'#!/bin/sh\nexec "{installed or sys.executable}" {arguments} "$@"\n')
            script.chmod(0o755)
        with socket.socket() as probe:
            probe.bind(("127.0.0.1", 0))
            address = f"127.0.0.1:{probe.getsockname()[1]}"
        environment = {
            **{key: value for key, value in os.environ.items() if not key.startswith("TACIT_")},
            "PATH": f"{commands}{os.pathsep}{os.environ['PATH']}",
            "PYTHONPATH": str(ROOT) if installed is None else "",
            "TACIT_SERVER": address,
            "TACIT_SERVER__LISTEN": address,
            "TACIT_SERVER__STATEMENT_SECONDS": "60",  # a busy machine is no fault of the page
            "COLUMNS": "100",
        }
        yield Shell(folder=folder, environment=environment, address=address, stack=stack)


def recorded(page: str) -> str:
    """The page with what its commands print now."""
    pieces, end = [], 0
    with shell() as run_in:
        for step in steps(page):
            printed = run_in.run(step)
            if isinstance(step, Command):
                shown = "\n".join(line.rstrip() for line in printed.strip("\n").splitlines())
                pieces += [page[end : step.span[0]], f"{shown}\n" if shown else ""]
                end = step.span[1]
    return "".join([*pieces, page[end:]])


if __name__ == "__main__":
    for path in map(Path, sys.argv[1:]):
        path.write_text(recorded(path.read_text(encoding="utf-8")), encoding="utf-8")
