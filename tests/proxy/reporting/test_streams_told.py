"""Streams in what an auditor reads: `tacit audit verify`, and the report."""

import json
from contextlib import closing
from dataclasses import replace
from pathlib import Path

from typer.testing import CliRunner

from accountant.auditor.verify import verify
from accountant.ledger.stores.sqlite_store import SqliteReader
from proxy.cli.audit import app
from proxy.reporting.report import read_report
from proxy.reporting.tables import to_json
from tests.support.a_stream import UNITS, WATCHED, ledger_on, noted, write_a_stream


def written(path: Path) -> Path:
    with ledger_on(path, "2026-11-24") as ledger:
        write_a_stream(ledger)
    return path


def test_verify_tells_what_epochs_lose(tmp_path: Path) -> None:
    told = CliRunner().invoke(app, ["verify", str(written(tmp_path / "a.ledger"))])
    assert told.exit_code == 0, told.output
    assert "Stream visits: epsilon 1 an epoch" in told.output
    assert "its bits and noise; 1 spent in 1 epoch, 1 of them released" in told.output


def test_verify_tells_what_predicates_cost(tmp_path: Path) -> None:
    """Everybody and two predicates, each at the same epsilon: three in all."""
    told = CliRunner().invoke(app, ["verify", str(written(tmp_path / "a.ledger"))])
    assert (
        "Stream orders: epsilon 3 an epoch, recomputed from its bits and noise (1 for everybody, 1 "
        "for each of 2 predicates); 3 spent in 1 epoch, 1 of them released." in told.output
    )
    assert "0 spent in 0 epochs, 0 of them released" in told.output


def test_one_predicate_is_not_several(tmp_path: Path) -> None:
    one = replace(WATCHED, predicates=("paid",), epsilon_units=2 * UNITS)
    with ledger_on(tmp_path / "a.ledger", "2026-11-24") as ledger:
        noted(ledger, "orders", one)
    told = CliRunner().invoke(app, ["verify", str(tmp_path / "a.ledger")])
    assert "(1 for everybody, 1 for its predicate); 0 spent" in told.output


def test_the_report_has_streams_and_their_changes(tmp_path: Path) -> None:
    with closing(SqliteReader(written(tmp_path / "a.ledger"))) as reader:
        entries = list(reader.entries_after(0))
    report = read_report(entries, verify(entries))
    found = json.loads(to_json(report, {}))
    assert [(one["stream"], one["n_released"]) for one in found["streams"]] == [
        ("hits", 0),
        ("orders", 1),
        ("visits", 1),
    ]
    kinds = [one["kind"] for one in found["changes"]]
    assert kinds == ["stream opened", "stream opened", "stream dropped", "stream opened"]
