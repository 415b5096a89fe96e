"""Streams in what an auditor reads: `tacit audit verify`, and the report."""

import json
from contextlib import closing
from dataclasses import replace
from pathlib import Path

from typer.testing import CliRunner

from accountant.auditor.verify import verify
from accountant.ledger.stores.sqlite_store import SqliteReader
from accountant.ledger.streams import EpochBegun, VisitsReleased
from proxy.cli.audit import app
from proxy.reporting.report import read_report
from proxy.reporting.tables import to_json
from tests.support.a_stream import (
    NOISY,
    UNITS,
    VISITS,
    WATCHED,
    ledger_on,
    noted,
    write_a_stream,
    write_visits,
)


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


def test_the_report_has_the_users_of_a_stream_that_counts_visits(tmp_path: Path) -> None:
    """Of each count's numbers the first tells of users; a part of an epoch is not its end."""
    units = 2 * VISITS.epsilon_units
    paid = replace(VISITS, predicates=("paid",), epsilon_units=units)
    with ledger_on(tmp_path / "a.ledger", "2026-11-24", 43_200) as ledger:
        write_visits(ledger)
        noted(ledger, "buys", paid)
        noted(ledger, "buys", EpochBegun("2026-11-24", 0, units))
    with ledger_on(tmp_path / "a.ledger", "2026-11-25") as ledger:
        noted(ledger, "buys", VisitsReleased("2026-11-24", NOISY + NOISY[::-1]))
    with closing(SqliteReader(tmp_path / "a.ledger")) as reader:
        entries = list(reader.entries_after(0))
    report = read_report(entries, verify(entries))
    found = json.loads(to_json(report, {}))
    buys, visits = found["streams"]
    assert (buys["n_released"], visits["n_released"]) == (1, 0)
    (epoch,) = buys["released"]
    assert epoch["noisy_ones"] == NOISY[0]
    assert epoch["where"]["paid"]["noisy_ones"] == NOISY[-1]
    for one in (epoch, epoch["where"]["paid"]):
        assert one["users"]["low"] <= one["users"]["high"] <= VISITS.universe
    assert found["changes"][0]["detail"].startswith("visits up to 5 of 1000 users, ")
