"""The report as a whole: the same bytes for the same ledger, and honest about a bad one."""

import csv
import io
import json
import os
import subprocess
import sys
from collections import defaultdict
from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace
from fractions import Fraction
from pathlib import Path

import pytest

from accountant.ledger.entries import GENESIS, Entry, chained_digest
from accountant.ledger.opening import open_ledger
from proxy.reporting.report import ReportFormat, make_report
from tests.proxy.reporting.ledgers import judged, write_year

ANOTHER_PROCESS = """
import sys
from pathlib import Path
from accountant.auditor.verify import verify
from accountant.ledger.stores.sqlite_store import SqliteReader
from proxy.reporting.report import ReportFormat, make_report
entries = list(SqliteReader(Path(sys.argv[1])).entries_after(0))
page = make_report(entries, ReportFormat(sys.argv[2]), verdict=verify(entries, has_columns=True))
sys.stdout.buffer.write(page)
"""


@pytest.fixture(scope="module")
def path(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return tmp_path_factory.mktemp("year") / "year.ledger"


@pytest.fixture(scope="module")
def entries(path: Path) -> list[Entry]:
    return write_year(path)


def made(entries: list[Entry], how: ReportFormat) -> bytes:
    return make_report(entries, how, verdict=judged(entries))


@pytest.mark.parametrize("how", ReportFormat)
def test_the_same_ledger_gives_the_same_bytes_in_any_process(
    path: Path, entries: list[Entry], how: ReportFormat
) -> None:
    here = made(entries, how)
    assert made(entries, how) == here
    for seed in ("1", "2"):
        there = subprocess.run(  # noqa: S603 - this interpreter, and a text that stands above
            [sys.executable, "-c", ANOTHER_PROCESS, str(path), how],
            check=True,
            capture_output=True,
            env={**os.environ, "PYTHONHASHSEED": seed, "TZ": "Asia/Tokyo", "LC_ALL": "C"},
        )
        assert there.stdout == here


def test_reports_made_at_the_same_time_are_the_same(entries: list[Entry]) -> None:
    with ThreadPoolExecutor(4) as pool:
        pages = set(pool.map(lambda _: made(entries, ReportFormat.HTML), range(4)))
    assert len(pages) == 1


def test_json_holds_the_ledgers_totals_to_the_last_unit(path: Path, entries: list[Entry]) -> None:
    read = json.loads(made(entries, ReportFormat.JSON))
    with open_ledger(path) as ledger:
        for table in read["tables"]:
            history = ledger.history(table["table"])
            spent = Fraction(history.units_spent, 2**40)
            assert Fraction(table["spent"]) == spent
            assert Fraction(table["left"]) == history.budget - spent
            by_analyst = sum(Fraction(one["spent"]) for one in table["analysts"])
            assert by_analyst == spent
    assert read["ledger"]["is_good"]
    assert read["ledger"]["head"] == entries[-1].digest
    assert read["as_of"] == entries[-1].at


def csv_lines(page: bytes) -> list[dict[str, str]]:
    return list(csv.DictReader(io.StringIO(page.decode(), newline="")))


def test_csv_holds_every_charge_and_adds_up(path: Path, entries: list[Entry]) -> None:
    verified, *lines = csv_lines(made(entries, ReportFormat.CSV))
    assert (verified["kind"], verified["seq"]) == ("verified", str(len(entries)))
    numbers = [int(line["seq"]) for line in lines]
    assert numbers == sorted(set(numbers))
    spent: dict[str, Fraction] = defaultdict(Fraction)
    for line in lines:
        if line["kind"] == "charge":
            spent[line["table"]] += Fraction(line["epsilon"])
            assert Fraction(line["epsilon_spent"]) == spent[line["table"]]
    with open_ledger(path) as ledger:
        assert spent == {
            table: Fraction(ledger.history(table).units_spent, 2**40) for table in ledger.tables()
        }


def test_no_cell_of_a_csv_is_a_formula(entries: list[Entry]) -> None:
    renamed = rewritten(entries, "charge", '"analyst":"ann"', '"analyst":"=1+1"')
    lines = csv_lines(made(renamed, ReportFormat.CSV))
    assert {line["who"] for line in lines if line["kind"] == "charge"} >= {"'=1+1"}
    assert not any(text.startswith("=") for line in lines for text in line.values())


def rewritten(entries: list[Entry], kind: str, old: str, new: str) -> list[Entry]:
    """The ledger that says something else in entries of a kind, with a chain that is right."""
    head, result = GENESIS, []
    for entry in entries:
        body = entry.body.replace(old, new) if entry.kind == kind else entry.body
        fields = (entry.seq, entry.at, entry.kind, entry.table, body)
        head = chained_digest(head, fields)
        result.append(Entry(*fields, head))
    assert result[-1].digest != entries[-1].digest
    return result


@pytest.mark.parametrize("how", ReportFormat)
def test_a_bad_ledger_is_called_bad_first_and_added_up_to_there(
    entries: list[Entry], how: ReportFormat
) -> None:
    place = 30
    bad = [*entries[:place], replace(entries[place], digest="f" * 64), *entries[place + 1 :]]
    verdict = judged(bad)
    assert verdict.problem is not None
    assert verdict.n_entries == place
    page = make_report(bad, how, verdict=verdict)
    good = json.loads(
        make_report(entries[:place], ReportFormat.JSON, verdict=judged(entries[:place]))
    )
    spent = good["tables"][0]["spent"]
    match how:
        case ReportFormat.JSON:
            read = json.loads(page)
            assert read["ledger"]["problem"] == verdict.problem
            assert read["tables"] == good["tables"]
        case ReportFormat.CSV:
            first, *lines = csv_lines(page)
            assert (first["kind"], first["detail"]) == ("problem", verdict.problem)
            assert [line["epsilon_spent"] for line in lines if line["kind"] == "charge"][
                -1
            ] == spent
        case ReportFormat.HTML:
            text = page.decode()
            assert "This ledger is not valid." in text
            assert "This ledger is valid." not in text
            assert f'title="{spent}"' in text


@pytest.mark.parametrize("how", ReportFormat)
def test_a_ledger_without_entries_has_a_report(how: ReportFormat) -> None:
    page = made([], how)
    assert b"verified" in page or b'"n_entries": 0' in page or b"without entries" in page


@pytest.mark.parametrize("how", ReportFormat)
def test_an_old_ledger_shows_places_instead_of_names(
    entries: list[Entry], how: ReportFormat
) -> None:
    old = first_version(entries)
    assert judged(old).problem is None
    page = made(old, how).decode()
    assert "charge" in page
    if how is ReportFormat.HTML:
        assert "place 0" in page
        assert "begun before declarations were kept" in page
        assert "Oslo" not in page
    if how is ReportFormat.JSON:
        assert json.loads(page)["tables"][0]["declaration"] is None


def first_version(entries: list[Entry]) -> list[Entry]:
    """The four kinds of entry that the first version knew, without what it did not know."""
    head, result = GENESIS, list[Entry]()
    places: dict[int, int] = {}
    for entry in entries:
        if entry.kind not in {"table_opened", "budget_set", "charge", "measurement"}:
            continue
        fields = json.loads(entry.body)
        fields.pop("groups", None)
        if entry.kind == "measurement":
            fields["charge"] = places[fields["charge"]]
        seq = places[entry.seq] = len(result) + 1
        body = json.dumps(fields, sort_keys=True, separators=(",", ":"))
        head = chained_digest(head, (seq, entry.at, entry.kind, entry.table, body))
        result.append(Entry(seq, entry.at, entry.kind, entry.table, body, head))
    return result


def test_without_matplotlib_the_page_is_refused_and_the_rest_is_not(path: Path) -> None:
    absent = 'import sys; sys.modules["matplotlib"] = None'
    refused = "make_report(entries, ReportFormat.HTML, verdict=verify(entries, has_columns=True))"
    there = subprocess.run(  # noqa: S603 - this interpreter, and texts that stand here
        [sys.executable, "-c", f"{absent}\n{ANOTHER_PROCESS}\n{refused}", str(path), "json"],
        check=False,
        capture_output=True,
        text=True,
    )
    assert json.loads(there.stdout)["ledger"]["is_good"]
    assert "InvalidRequest: The report as a page needs matplotlib" in there.stderr
