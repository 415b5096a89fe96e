"""`tacit synth` on a real server: what the command line makes, shows, draws, drops and refuses."""

import csv
import io
from collections.abc import Iterator
from pathlib import Path

import pyarrow.parquet as pq
import pytest
import structlog

from proxy.api.requests import LOCAL
from proxy.cli import app as cli
from proxy.engine.engine import Engine
from proxy.monitoring.logs import configure_logs
from tests.support.commands import Run, command_runner
from tests.support.serving import serving
from tests.support.synthetic import spent, synthetic_engine


@pytest.fixture(autouse=True)
def _server_logs_elsewhere() -> Iterator[None]:
    configure_logs(io.StringIO())
    yield
    structlog.reset_defaults()


@pytest.fixture
def engine(tmp_path: Path) -> Iterator[Engine]:
    with synthetic_engine(tmp_path) as engine:
        yield engine


@pytest.fixture
def address(engine: Engine) -> Iterator[str]:
    with serving(engine, synthetic=engine.synthetic) as address:
        yield address


@pytest.fixture
def run(address: str, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch) -> Run:
    monkeypatch.setenv("TACIT_SERVER", address)
    run_tacit = command_runner(capsys, monkeypatch)
    return lambda *arguments: run_tacit("synth", *arguments)


def test_the_command_makes_lists_shows_draws_and_drops(
    run: Run, engine: Engine, tmp_path: Path
) -> None:
    order = ("create", "people", "--epsilon", "1", "--columns", "city, age", "--rows", "50")
    preview = run(*order, "--preview")
    assert "would spend at most epsilon 1; 10 of 10 left for people" in preview.out
    assert "measuring pairs" in preview.out
    assert spent(engine) == 0
    made = run(*order, "--name", "s", "-o", str(tmp_path / "s.parquet"))
    assert made.code == 0
    assert "Made s: 50 rows of 2 columns" in made.out
    assert 0 < spent(engine) <= 1
    table = pq.read_table(tmp_path / "s.parquet")
    assert (table.num_rows, table.column_names) == (50, ["city", "age"])
    assert " 50 " in run("list").out
    assert "fitted to" in run("show", "S").out
    again = run("resample", "s", "--rows", "7", "--seed", "1", "-o", str(tmp_path / "t.csv"))
    assert "Made people_1: 7 rows like those of s. Free." in again.out
    with (tmp_path / "t.csv").open(newline="") as file:
        assert len(list(csv.DictReader(file))) == 7
    assert run("get", "people_1", "-o", str(tmp_path / "u.parquet")).code == 0
    assert run("drop", "s").out == "Dropped s.\n"
    assert [record.name for record in engine.synthetic.known(LOCAL)] == ["people_1"]


def test_the_command_says_what_rows_are_for_and_how_far_off_they_are(
    run: Run, engine: Engine, tmp_path: Path
) -> None:
    file = tmp_path / "dashboard.sql"
    file.write_text("SELECT COUNT(*) FROM people GROUP BY city, member;", encoding="utf-8")
    order = ("create", "people", "--epsilon", "1", "--evaluate", "0.5", "--name", "s")
    purpose = ("--columns", "city,member,visits", "--target", "MEMBER", "--workload", str(file))
    preview = run(*order, *purpose, "--preview")
    assert "evaluating the rows" in preview.out
    assert "would spend at most epsilon 1.5;" in preview.out
    made = run(*order, *purpose)
    assert made.code == 0
    assert "Mean distance of pairs of columns: 0." in made.out
    shown = " ".join(run("show", "s").out.split())
    assert 'target => ("member")' in shown
    assert "(3 of 3 pairs)" in shown
    (record,) = engine.synthetic.known(LOCAL)
    assert record.workload == (("city", "member"),)
    assert 0.5 < record.epsilon_spent == spent(engine) <= 1.5
    lost = run(*order, "--workload", str(tmp_path / "none.sql"))
    assert lost.code != 0
    assert "cannot be read" in lost.err


def test_the_command_writes_what_it_made_though_others_are_called_so(
    run: Run, tmp_path: Path
) -> None:
    file = tmp_path / "s.parquet"
    for source, n_rows in (("people", "50"), ("staff", "20")):
        order = ("create", source, "--epsilon", "1", "--columns", "city", "--rows", n_rows)
        assert run(*order, "--name", "s", "-o", str(file)).code == 0
        assert pq.read_table(file).num_rows == int(n_rows)
        assert run("resample", f"{source}.s", "--rows", "7", "-o", str(file)).code == 0
    ambiguous = run("get", "s", "-o", str(file))
    assert "people.s, staff.s" in ambiguous.err
    assert run("drop", "people.s").out == "Dropped people.s.\n"
    assert run("get", "s", "-o", str(file)).code == 0
    assert pq.read_table(file).num_rows == 20


def test_the_command_makes_a_network_and_tells_laws(
    run: Run, engine: Engine, tmp_path: Path
) -> None:
    order = ("create", "people", "--epsilon", "1", "--columns", "city,visits", "--name", "s")
    settings = ("--method", "privbayes", "--score", "i", "--degree", "1", "--hierarchies")
    refused = run(*order, *settings, "--groups", "cities.country")
    assert "Groups are at least two, and fewer than what they group" in refused.err
    more = ("--theta", "3", "--structure-share", "0.2")
    assert run(*order, *settings, *more, "--rows", "50").code == 0
    shown = run("show", "s").out
    assert "score => 'I', degree => 1, hierarchies => true" in shown
    assert "theta => 3, structure_share => 0.2" in shown
    before = spent(engine)
    file = tmp_path / "law.csv"
    told = run("law", "s", "--of", "city, visits", "-o", str(file)).out
    assert "The model's exact law." in told
    assert "and 44 more; a file has all of them" in told
    assert "No interval" in told
    with file.open(newline="") as rows:
        found = list(csv.DictReader(rows))
    assert len(found) == 84
    assert sum(float(row["share"]) for row in found) == pytest.approx(1)
    assert "Oslo" in run("law", "s", "--of", "city", "--given", "visits=3").out
    for given, code in (("visits", "invalid_request"), ("cty=Oslo", "unknown_name")):
        assert f"error [{code}]" in run("law", "s", "--of", "city", "--given", given).err
    assert spent(engine) == before


def test_the_command_writes_a_report(run: Run, tmp_path: Path) -> None:
    pytest.importorskip("matplotlib")
    run("create", "people", "--epsilon", "1", "--columns", "city", "--name", "s")
    page = tmp_path / "s.html"
    assert run("report", "s", "-o", str(page)).code == 0
    assert page.read_text(encoding="utf-8").startswith("<!doctype html>")


@pytest.mark.parametrize(
    ("arguments", "code"),
    [
        (("show", "nobody"), "unknown_name"),
        (("create", "people"), "invalid_request"),
        (("create", "people", "--epsilon", "x"), "invalid_target"),
        (("create", "people", "--epsilon", "1", "--rows", "10000000"), "too_large"),
        (("create", "people", "--epsilon", "1", "--delta", "2"), "invalid_target"),
        (("create", "people", "--epsilon", "1", "--delta", "1e-9"), "invalid_request"),
        (("create", "people", "-o", "s.txt"), "configuration_invalid"),
        (("create", "people", "-o", "nowhere/s.csv"), "configuration_invalid"),
    ],
)
def test_the_command_fails_with_a_code_and_spends_nothing(
    run: Run, engine: Engine, arguments: tuple[str, ...], code: str
) -> None:
    ended = run(*arguments)
    assert ended.code != 0
    assert f"error [{code}]" in ended.err
    assert spent(engine) == 0


def test_other_commands_know_synthetic_tables(
    run: Run, engine: Engine, capsys: pytest.CaptureFixture[str]
) -> None:
    run("create", "people", "--epsilon", "1", "--columns", "city", "--name", "s", "--rows", "30")
    with pytest.raises(SystemExit):
        cli.main(("tables",))
    assert "synthetic rows, made from people" in capsys.readouterr().out
    before = spent(engine)
    for sql in (
        "SELECT COUNT(*) AS n FROM s",
        "EXPLAIN PRIVACY CREATE SYNTHETIC TABLE t FROM people",
    ):
        with pytest.raises(SystemExit) as ended:
            cli.main(("query", sql))
        assert not ended.value.code
    assert "reading the history" in capsys.readouterr().out
    assert spent(engine) == before
