"""The rows that are read from a table's data: recorded once, and never others, also in old ledgers.

Other rows may be read from the same bytes by another release of DuckDB, or of Tacit.
"""

from dataclasses import replace
from fractions import Fraction
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from numpy.typing import NDArray

from accountant.auditor.verify import verify
from accountant.gate.opening import open_table
from accountant.ledger.entries import DataPinned, Entry, TableOpened, chained_digest
from accountant.ledger.entry_json import write
from accountant.ledger.history.table_history import TableHistory
from accountant.ledger.ledger import Ledger
from accountant.ledger.opening import open_ledger
from accountant.noise.lattice_noise import SystemNoise
from cube.refusals import DataChanged, LedgerMismatch
from cube.schema import Schema
from tests.support.auditing import audited
from tests.support.fakes import KnownTable
from tests.support.seven_people import BUDGET, FRESH, RAISE, RECORDS, SCHEMA, buy

FEWER = RECORDS[1:]


class Reread(KnownTable):
    """The data of a known table, of which another release reads other records."""

    def __init__(self, schema: Schema, records: NDArray[np.int64]) -> None:
        super().__init__(schema, records)
        self._data = KnownTable(SCHEMA, RECORDS)

    def fingerprint(self, key: bytes, like: str = "") -> str:
        return self._data.fingerprint(key, like)


def opened(ledger: Ledger, table: KnownTable) -> object:
    return open_table(ledger, table.schema, BUDGET, table, SystemNoise())


def begun_before(ledger: Ledger, table: KnownTable) -> None:
    """Open a table as releases did that said nothing of its rows."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr("accountant.gate.opening._check_same_rows", lambda *_: None)
        patch.setattr(
            "accountant.gate.opening.TableOpened",
            lambda schema, data, budget, *_others: TableOpened(schema, data, budget),
        )
        gate = open_table(ledger, SCHEMA, BUDGET, table, SystemNoise())
    buy(gate, FRESH)


def kinds(ledger: Ledger) -> list[str]:
    return [entry.kind for entry in ledger.entries()]


def test_a_new_table_is_entered_with_its_rows(ledger: Ledger, table: KnownTable) -> None:
    opened(ledger, table)
    (entry, *_) = ledger.entries()
    assert table.rows_fingerprint(ledger.key) in entry.body
    assert "data_pinned" not in kinds(ledger)


def test_other_rows_of_the_same_data_are_refused(ledger: Ledger, table: KnownTable) -> None:
    gate = open_table(ledger, SCHEMA, BUDGET, table, SystemNoise())
    buy(gate, FRESH)
    n_entries = len(kinds(ledger))
    for records in (FEWER, np.vstack([RECORDS, RECORDS[:1]]), RECORDS[[0, *range(1, 6), 5]]):
        with pytest.raises(DataChanged, match="different rows were read"):
            opened(ledger, Reread(SCHEMA, records))
    assert len(kinds(ledger)) == n_entries
    opened(ledger, Reread(SCHEMA, RECORDS[::-1]))


def test_a_raise_across_other_rows_is_impossible(tmp_path: Path, table: KnownTable) -> None:
    """The noise that would be refined is not the noise that was drawn: the attack."""
    path = tmp_path / "a.ledger"
    with open_ledger(path) as ledger:
        buy(open_table(ledger, SCHEMA, BUDGET, table, SystemNoise()), FRESH)
    changed = Reread(SCHEMA, FEWER)
    with open_ledger(path) as ledger, pytest.raises(DataChanged):
        buy(open_table(ledger, SCHEMA, BUDGET, changed, SystemNoise()), RAISE)
    assert changed.scopes_read == []
    with open_ledger(path) as ledger:
        buy(open_table(ledger, SCHEMA, BUDGET, table, SystemNoise()), RAISE)
    (report,) = audited(path).tables
    assert report.spent == Fraction(1, 2)


def test_an_older_ledger_opens_with_the_same_data_and_is_strict_from_then_on(
    tmp_path: Path, table: KnownTable
) -> None:
    path = tmp_path / "a.ledger"
    with open_ledger(path) as ledger:
        begun_before(ledger, table)
        assert "rows_fingerprint" not in next(ledger.entries()).body
    for _ in range(2):
        with open_ledger(path) as ledger:
            gate = open_table(ledger, SCHEMA, BUDGET, table, SystemNoise())
            assert kinds(ledger).count("data_pinned") == 1
    with open_ledger(path) as ledger:
        with pytest.raises(DataChanged, match="different rows were read"):
            opened(ledger, Reread(SCHEMA, FEWER))
        gate = open_table(ledger, SCHEMA, BUDGET, table, SystemNoise())
        buy(gate, RAISE)
    assert audited(path).tables[0].n_raised == 1


def test_an_older_ledger_does_not_open_with_other_data(ledger: Ledger, table: KnownTable) -> None:
    begun_before(ledger, table)
    with pytest.raises(DataChanged, match="not the data that is recorded in its ledger"):
        opened(ledger, KnownTable(SCHEMA, FEWER))
    assert "data_pinned" not in kinds(ledger)


def test_two_servers_on_an_older_ledger_must_read_the_same_rows(
    tmp_path: Path, table: KnownTable
) -> None:
    path = tmp_path / "a.ledger"
    with open_ledger(path) as one, open_ledger(path) as other:
        begun_before(one, table)
        other.refresh()
        opened(one, table)
        with pytest.raises(DataChanged, match="different rows were read"):
            opened(other, Reread(SCHEMA, FEWER))


@pytest.mark.parametrize("of_before", [False, True])
def test_the_same_data_read_differently_gets_no_second_budget(
    ledger: Ledger, table: KnownTable, of_before: bool
) -> None:
    if of_before:
        begun_before(ledger, table)
    else:
        opened(ledger, table)
    sex_alone = Schema(table="others", axes=SCHEMA.axes[1:], n_records_max=1000)
    with pytest.raises(LedgerMismatch, match="records the data of others under the name people"):
        opened(ledger, Reread(sex_alone, RECORDS[:, 1:]))


@given(said=st.sampled_from(["opening", "later"]), other=st.sampled_from(["", "rows", "others"]))
def test_rows_are_recorded_once(said: str, other: str) -> None:
    rows = "rows" if said == "opening" else None
    history = TableHistory().after(1, "", TableOpened("s", "d", Fraction(1), rows))
    if rows is None:
        history = history.after(2, "", DataPinned("rows"))
    assert history.rows_fingerprint == "rows"
    with pytest.raises(ValueError, match="recorded only once"):
        history.after(3, "", DataPinned(other))


def test_rows_are_not_recorded_for_a_table_that_was_not_opened() -> None:
    with pytest.raises(ValueError, match="opened once, before any other"):
        TableHistory().after(1, "", DataPinned("rows"))


@pytest.mark.parametrize("of_before", [False, True])
def test_an_auditor_finds_rows_recorded_twice(tmp_path: Path, of_before: bool) -> None:
    table, path = KnownTable(SCHEMA, RECORDS), tmp_path / "a.ledger"
    with open_ledger(path) as ledger:
        if of_before:
            begun_before(ledger, table)
        opened(ledger, table)
        entries = list(ledger.entries())
    assert audit(entries) is None
    last = entries[-1]
    kind, body = write(DataPinned("others"))
    again = replace(last, seq=last.seq + 1, kind=kind, body=body)
    digest = chained_digest(last.digest, (again.seq, again.at, again.kind, again.table, again.body))
    said = audit([*entries, replace(again, digest=digest)])
    assert said == f"entry {again.seq}: the fingerprint of the table's rows was recorded twice"


def audit(entries: list[Entry]) -> str | None:
    return verify(entries).problem
