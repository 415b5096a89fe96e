"""`tacit audit report` on a terminal: what it writes, and how it fails."""

import json
from pathlib import Path

import pytest
import typer
from typer.testing import CliRunner, Result

from accountant.auditor.signed_head import (
    Head,
    generate_keys,
    read_private_key,
    sign_head,
)
from accountant.auditor.transfer import exported
from accountant.ledger.entries import Entry
from cube.refusals import ConfigurationInvalid, LedgerCorrupt
from proxy.cli.ledger import report
from proxy.reporting.report import ReportFormat, make_report
from tests.proxy.reporting.ledgers import judged, write_year

app = typer.Typer()
app.command("report")(report)
app.command("other")(lambda: None)  # with one command alone, typer would not take its name


@pytest.fixture(scope="module")
def ledger(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return tmp_path_factory.mktemp("year") / "year.ledger"


@pytest.fixture(scope="module")
def entries(ledger: Path) -> list[Entry]:
    return write_year(ledger)


def run(*arguments: object) -> Result:
    return CliRunner().invoke(app, ["report", *map(str, arguments)])


@pytest.mark.parametrize("how", ReportFormat)
def test_the_name_of_the_file_says_how(
    ledger: Path, entries: list[Entry], tmp_path: Path, how: ReportFormat
) -> None:
    output = tmp_path / f"report.{how.upper()}"
    output.write_text("something older")
    result = run(ledger, "-o", output)
    assert result.exit_code == 0, result.output
    assert entries[-1].digest in result.stdout
    assert output.read_bytes() == make_report(entries, how, verdict=judged(entries))
    assert [path.name for path in tmp_path.iterdir()] == [output.name]


@pytest.mark.usefixtures("entries")
def test_an_option_says_how_too(ledger: Path, tmp_path: Path) -> None:
    assert run(ledger, "-o", tmp_path / "report", "--format", "csv").exit_code == 0
    assert (tmp_path / "report").read_text().startswith("seq,at,kind")
    unnamed = run(ledger, "-o", tmp_path / "report.pdf")
    assert isinstance(unnamed.exception, ConfigurationInvalid)


def test_an_export_gives_the_same_report(
    ledger: Path, entries: list[Entry], tmp_path: Path
) -> None:
    lines = tmp_path / "year.jsonl"
    lines.write_text("".join(exported(entries)))
    assert run(ledger, "-o", tmp_path / "one.json").exit_code == 0
    assert run(lines, "-o", tmp_path / "two.json").exit_code == 0
    assert (tmp_path / "one.json").read_bytes() == (tmp_path / "two.json").read_bytes()


@pytest.fixture
def keys(tmp_path: Path) -> tuple[Path, Path]:
    pair = tmp_path / "owner.key", tmp_path / "owner.pub"
    generate_keys(*pair)
    return pair


def signed(keys: tuple[Path, Path], entry: Entry, digest: str) -> Path:
    head = sign_head(read_private_key(keys[0]), Head(entry.seq, digest, entry.at))
    path = keys[0].with_name(f"head-{entry.seq}.json")
    path.write_text(head.to_json())
    return path


def test_a_head_that_the_ledger_holds_is_in_the_report(
    ledger: Path, entries: list[Entry], tmp_path: Path, keys: tuple[Path, Path]
) -> None:
    head = signed(keys, entries[20], entries[20].digest)
    for name in ("report.html", "report.json"):
        result = run(ledger, "-o", tmp_path / name, "--public-key", keys[1], "--signed-head", head)
        assert result.exit_code == 0, result.output
        assert entries[20].digest in (tmp_path / name).read_text()


def test_a_head_that_it_does_not_hold_makes_it_a_bad_ledger(
    ledger: Path, entries: list[Entry], tmp_path: Path, keys: tuple[Path, Path]
) -> None:
    head = signed(keys, entries[20], "0" * 64)
    output = tmp_path / "report.json"
    result = run(ledger, "-o", output, "--public-key", keys[1], "--signed-head", head)
    assert isinstance(result.exception, LedgerCorrupt)
    assert "rewritten" in json.loads(output.read_text())["ledger"]["problem"]


@pytest.mark.usefixtures("entries")
def test_a_head_without_a_key_is_refused(
    ledger: Path, tmp_path: Path, keys: tuple[Path, Path]
) -> None:
    for option, value in (("--public-key", keys[1]), ("--signed-head", tmp_path / "head.json")):
        result = run(ledger, "-o", tmp_path / "report.json", option, value)
        assert isinstance(result.exception, ConfigurationInvalid)


def test_what_cannot_be_read_or_written_is_said(
    ledger: Path, entries: list[Entry], tmp_path: Path
) -> None:
    assert entries
    absent = run(tmp_path / "none.jsonl", "-o", tmp_path / "report.json")
    assert isinstance(absent.exception, ConfigurationInvalid)
    nowhere = run(ledger, "-o", tmp_path / "no" / "folder" / "report.json")
    assert isinstance(nowhere.exception, ConfigurationInvalid)
    assert not list(tmp_path.iterdir())
