"""`tacit best`: what it passes on, and what it prints for people and for programs."""

import io
import json
from collections.abc import Iterator
from pathlib import Path

import pytest
import structlog

from proxy.cli.ask import report_fields, report_table
from proxy.cli.shared.rendering import console
from proxy.engine.engine import Engine
from proxy.monitoring.logs import configure_logs
from proxy.protocol import tacit_pb2
from tests.support.commands import Run
from tests.support.serving import serving
from tests.support.synthetic import CITIES, spent, synthetic_engine

COUNT = "SELECT COUNT(*) AS n FROM people WHERE city = 'Oslo'"


@pytest.fixture
def engine(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Engine]:
    configure_logs(io.StringIO())
    with (
        synthetic_engine(tmp_path) as engine,
        serving(engine, synthetic=engine.synthetic, public=(CITIES,)) as address,
    ):
        monkeypatch.setenv("TACIT_SERVER", address)
        yield engine
    structlog.reset_defaults()


def test_it_prints_one_json_object(run: Run, engine: Engine) -> None:
    asked = ("best", COUNT, "--prior", "500:0.5, 3:1/4, 700:0.25", "--half-width", "50")
    ended = run(*asked, "--confidence", "0.7", "--format", "json")
    assert ended.code == 0, ended.err
    found = json.loads(ended.out)
    assert found["report"] in range(3, 701)
    assert found["low"] <= found["high"]
    assert found["probability"] >= found["confidence"] == 0.7
    assert found["answer_low"] < found["answer"] < found["answer_high"]
    assert found["epsilon_spent"] == float(spent(engine)) > 0
    assert found["source"] == "measured"
    assert found["table"] == "people"
    assert found["epsilon_left"] == pytest.approx(10 - found["epsilon_spent"])


def test_it_prints_the_same_for_people_and_as_csv(run: Run, engine: Engine) -> None:
    prior = ("--prior", "SELECT n FROM (VALUES (4), (4), (5)) AS t(n)", "--loss", "zero_one")
    found = json.loads(run("best", COUNT, *prior, "--format", "json").out)
    assert spent(engine) == found["epsilon_spent"] > 0
    shown = run("best", COUNT, *prior).out
    assert "under the prior" in shown
    assert "without a prior" in shown
    assert "epsilon spent 0;" in shown
    for output in ("csv", "spreadsheet"):
        heading, row = run("best", COUNT, *prior, "--format", output).out.splitlines()
        by_name = dict(zip(heading.split(","), row.split(","), strict=True))
        assert by_name["report"] == str(found["report"])
        assert by_name["source"] == "history"


@pytest.mark.parametrize("prior", ["3", "3:x", "x:1", "3:1/0", "3:1;4:2", "99999999999999999999:1"])
def test_a_prior_that_cannot_be_read_is_told_with_an_example(
    run: Run, engine: Engine, prior: str
) -> None:
    ended = run("best", COUNT, "--prior", prior)
    assert ended.code == 2
    assert "3:0.5" in ended.err
    assert spent(engine) == 0


def test_a_refusal_is_json_where_the_report_would_be(run: Run, engine: Engine) -> None:
    ended = run("best", COUNT, "--prior", "3:0.5", "--format", "json")
    assert ended.code != 0
    assert json.loads(ended.err)["code"] == "invalid_request"
    assert spent(engine) == 0


def test_the_reply_of_an_older_server_has_one_interval(capsys: pytest.CaptureFixture[str]) -> None:
    column = tacit_pb2.ColumnReceipt(low=[1.0], high=[3.0], source="history")
    older = tacit_pb2.BestReportReply(
        report=3, answer=2.0, receipt=tacit_pb2.Receipt(columns=[column])
    )
    assert report_fields(older)["low"] is None
    console().print(report_table(older))
    shown = capsys.readouterr().out
    assert "without a prior" in shown
    assert "under the prior" not in shown


def test_the_help_says_what_a_prior_and_a_loss_are(run: Run) -> None:
    shown = " ".join(run("best", "--help").out.split())
    assert "The prior must come from you, and not from the private data." in shown
    assert "zero_one" in shown
