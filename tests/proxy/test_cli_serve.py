"""`tacit serve` as a process of its own: start, answer, stop by signal, remember."""

import json
import signal
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import NamedTuple

import pytest

COUNT = "SELECT COUNT(*) FROM people WHERE age >= 40"
CONFIGURATION = """\
[server]
listen = "127.0.0.1:0"
[ledger]
path = "people.ledger"
[tables.people]
source = "people.csv"
budget = "1.0"
n_records_max = 1000
half_width = 20
[tables.people.columns.age]
kind = "integer"
low = 0
high = 99
"""
WAIT_SECONDS = 60.0


class Served(NamedTuple):
    process: subprocess.Popen[str]
    address: str
    greeting: str


def command(*arguments: str) -> list[str]:
    return [sys.executable, "-c", "from proxy.cli import main; main()", *arguments]


def tacit(*arguments: str) -> subprocess.CompletedProcess[str]:
    return subprocess.run(  # noqa: S603 - our own command
        command(*arguments), capture_output=True, text=True, timeout=WAIT_SECONDS, check=False
    )


@contextmanager
def serving(configuration: Path) -> Iterator[Served]:
    with subprocess.Popen(  # noqa: S603 - our own command
        command("serve", str(configuration)),
        stdout=subprocess.PIPE,
        stderr=subprocess.DEVNULL,
        text=True,
    ) as process:
        try:
            if process.stdout is None:
                raise RuntimeError("the process was started without a pipe")
            lines = []
            for line in process.stdout:
                lines.append(line)
                if "Ctrl-C" in line:
                    break
            yield Served(process, lines[0].split()[-1], "".join(lines))
        finally:
            process.kill()


@pytest.fixture
def configuration(tmp_path: Path) -> Path:
    rows = "".join(f"{age}\n" for age in range(100))
    (tmp_path / "people.csv").write_text("age\n" + rows)
    path = tmp_path / "tacit.toml"
    path.write_text(CONFIGURATION)
    return path


def test_a_server_answers_stops_when_told_and_remembers(configuration: Path) -> None:
    ledger = configuration.with_name("people.ledger")
    with serving(configuration) as served:
        assert "people: epsilon 1 of 1 left" in served.greeting
        assert f"grpc://{served.address}" in served.greeting
        asked = tacit("query", COUNT, "--server", served.address, "--format", "json")
        first = json.loads(asked.stdout)
        second_server = tacit("serve", str(configuration))
        assert second_server.returncode == 1
        assert second_server.stderr.startswith("error [ledger_locked]: ")
        served.process.send_signal(signal.SIGTERM)
        assert served.process.wait(WAIT_SECONDS) == 0
    assert first["epsilon_spent"] > 0
    with serving(configuration) as served:
        assert f"people: epsilon {first['epsilon_left']:.6g} of 1 left" in served.greeting
        asked = tacit("query", COUNT, "--server", served.address, "--format", "json")
        again = json.loads(asked.stdout)
        served.process.send_signal(signal.SIGINT)
        assert served.process.wait(WAIT_SECONDS) == 0
    assert (again["epsilon_spent"], again["rows"]) == (0, first["rows"])
    audited = tacit("audit", "verify", str(ledger))
    assert audited.returncode == 0
    assert "people" in audited.stdout


def test_data_that_changed_since_the_ledger_began_is_refused(configuration: Path) -> None:
    with serving(configuration) as served:
        served.process.send_signal(signal.SIGTERM)
        served.process.wait(WAIT_SECONDS)
    with configuration.with_name("people.csv").open("a") as file:
        file.write("50\n")
    refused = tacit("serve", str(configuration))
    assert refused.returncode == 1
    assert refused.stderr.startswith("error [data_changed]: ")
    assert refused.stdout == ""


def test_every_problem_of_a_configuration_reaches_the_terminal(tmp_path: Path) -> None:
    path = tmp_path / "tacit.toml"
    path.write_text(CONFIGURATION.replace("budget", "bugdet").replace("high = 99", "high = -9"))
    refused = tacit("serve", str(path))
    assert refused.returncode == 1
    for key in ("bugdet", "budget", "source", "columns.age"):
        assert f"  tables.people.{key}: " in refused.stderr
    assert list(tmp_path.iterdir()) == [path]
