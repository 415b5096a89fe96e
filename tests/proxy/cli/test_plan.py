"""`tacit plan` against a real engine on loopback: what people read, what is charged, exit codes."""

import csv
import io
import json
from collections.abc import Iterator
from fractions import Fraction
from pathlib import Path

import pytest
import structlog

from planner.measuring.weights import GaussianOffer
from proxy.engine.batch import LAPLACE_ONLY, SOLVED_BY
from proxy.monitoring.logs import configure_logs
from tests.support.commands import Run
from tests.support.serving import serving
from tests.support.worlds import people_engine, random_rows

STATEMENTS = """
SELECT city, COUNT(*) AS n FROM people GROUP BY city;
SELECT WITH DIFFERENTIAL_PRIVACY OPTIONS(half_width => 15) COUNT(*) AS n FROM people;
"""


@pytest.fixture(autouse=True)
def _server(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    """A server of a small table; its log is not what the command prints."""
    configure_logs(io.StringIO())
    with people_engine(tmp_path, random_rows(100)) as engine, serving(engine) as address:
        monkeypatch.setenv("TACIT_SERVER", address)
        yield
    structlog.reset_defaults()


def test_a_plan_is_shown_then_bought_then_free(run: Run, tmp_path: Path) -> None:
    file = tmp_path / "workload.sql"
    file.write_text(STATEMENTS)
    code, shown, _ = run("plan", str(file))
    assert code == 0
    assert "would spend epsilon" in shown
    assert "1 of 1 left for people" in shown
    for text in ("half width promised", "COUNT(*)", "15", "NULL"):
        assert text in shown
    _, bought, _ = run("plan", str(file), "--buy")
    assert "would" not in bought
    assert "spent epsilon" in bought
    assert "; 1 of 1 left" not in bought
    _, again, _ = run("plan", str(file), "--buy")
    assert "spent epsilon 0 on 0 measurements" in again


def test_what_is_wrong_has_a_code_and_charges_nothing(run: Run, tmp_path: Path) -> None:
    file = tmp_path / "workload.sql"
    for text, code in {
        "": "sql_syntax",
        "SELECT 'open": "sql_syntax",
        "SELECT COUNT(*) FROM people; SELECT COUNT(*) FROM nobody": "unknown_name",
        "SELECT COUNT(*) FROM people; EXPLAIN PRIVACY SELECT COUNT(*) FROM people": (
            "invalid_request"
        ),
    }.items():
        file.write_text(text)
        ended = run("plan", str(file), "--buy")
        assert ended[0] == 2
        assert f"[{code}]" in ended[2]
    file.write_text(STATEMENTS)
    capped = run("plan", str(file), "--buy", "--epsilon", str(float(Fraction(1, 1000))))
    assert capped[0] == 2
    assert "[cost_above_cap]" in capped[2]
    assert "; 1 of 1 left" in run("plan", str(file))[1]


def test_a_file_that_cannot_be_read_is_said_before_anyone_is_asked(
    run: Run, tmp_path: Path
) -> None:
    missing = run("plan", str(tmp_path / "nothing.sql"))
    assert missing[0] == 1
    assert "cannot be read" in missing[2]
    binary = tmp_path / "binary.sql"
    binary.write_bytes(b"\xff\xfe")
    assert "not UTF-8" in run("plan", str(binary))[2]


def test_a_plan_is_told_to_programs_too(run: Run, tmp_path: Path) -> None:
    file = tmp_path / "workload.sql"
    file.write_text(STATEMENTS)
    shown = json.loads(run("plan", file, "--format", "json").out)
    assert (shown["table"], shown["epsilon_left"], shown["bought"]) == ("people", 1, False)
    assert 0 < shown["epsilon"] < 1
    assert shown["n_measurements"] > 0
    lines = list(csv.reader(io.StringIO(run("plan", file, "--format", "csv").out)))
    assert lines[0] == shown["columns"]
    assert len(lines) - 1 == len(shown["rows"]) == 2
    file.write_text("SELECT (")
    assert json.loads(run("plan", file, "--format", "json").err)["code"] == "sql_syntax"


def test_a_plan_says_which_noise_it_buys_where_a_delta_is_offered(
    run: Run, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    file = tmp_path / "workload.sql"
    file.write_text(STATEMENTS)
    assert "Laplace" not in run("plan", file).out
    offer = GaussianOffer(Fraction(1, 10**9), Fraction(1), is_declared=True)
    folder = tmp_path / "offered"
    folder.mkdir()
    with (
        people_engine(folder, random_rows(100), gaussian=offer) as engine,
        serving(engine) as address,
    ):
        monkeypatch.setenv("TACIT_SERVER", address)
        shown = run("plan", file).out
        told = json.loads(run("plan", file, "--format", "json").out)
    assert "note: A batch is bought with Laplace noise only" in " ".join(shown.split())
    assert told["notes"] == [SOLVED_BY, LAPLACE_ONLY]
