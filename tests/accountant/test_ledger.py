"""The ledger: durable, append-only, and refused when anything in it does not check out."""

import json
import re
import sqlite3
import stat
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from contextlib import closing
from dataclasses import replace
from fractions import Fraction
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from accountant.entries import (
    GENESIS,
    BudgetSet,
    Charge,
    ChargedBlock,
    Measured,
    TableBody,
    TableOpened,
    chained_digest,
)
from accountant.entry_text import read, write
from accountant.ledger import Ledger
from accountant.ledger_file import open_ledger
from accountant.limits import Payer
from accountant.noise import LatticeNoise
from accountant.replay import TableHistory
from accountant.stores.store import SCHEMA_VERSION
from cube.block import Partition, QueryBlock
from cube.measurement import UNITS_PER_EPSILON, Weight
from cube.query import Factor, counting
from cube.refusals import CannotStart, LedgerCorrupt, LedgerLost, LedgerUnavailable
from tests.support.auditing import audited

OPENED = TableOpened("schema", "data", Fraction(1))
WEIGHT = Weight.at_least(Fraction(1, 8))
COUNT = QueryBlock(counting([Factor(("a",), np.array([0, 1, 1], dtype=np.int64))]))
BY_GROUP = QueryBlock(counting(), Partition(("b",), np.array([0, 1, -1, 1], dtype=np.int64)))
CHARGE = Charge(
    Payer("ann"),
    tuple(ChargedBlock(block, LatticeNoise.for_weight(WEIGHT)) for block in (COUNT, BY_GROUP)),
    0,
    2 * WEIGHT.units,
)
VALUES = ((12345,), (-7, 2**61))
BODIES: list[TableBody] = [OPENED, BudgetSet(Fraction(13, 7)), CHARGE, Measured(3, VALUES)]
NOISE = CHARGE.blocks[0].noise


def raising(times: int, place: int, before: int) -> Charge:
    """A charge that raises the count from what is at `place` to a multiple of its first weight."""
    noise = NOISE.refined_to(Weight(times * WEIGHT.units))
    return Charge(Payer("bob"), (ChargedBlock(COUNT, noise, place),), before, before + WEIGHT.units)


RAISE = raising(2, 0, 2 * WEIGHT.units)
RAISES: list[TableBody] = [
    RAISE,
    Measured(5, ((12399,),)),
    raising(3, 2, 3 * WEIGHT.units),
    Measured(7, ((12388,),)),
]


def appended(ledger: Ledger, body: TableBody) -> int | None:
    return ledger.append("people", lambda _: body)


@pytest.fixture
def path(tmp_path: Path) -> Path:
    """A closed ledger that holds one entry of each kind."""
    path = tmp_path / "people.ledger"
    with open_ledger(path) as ledger:
        assert [appended(ledger, body) for body in BODIES] == [1, 2, 3, 4]
    return path


@pytest.fixture
def raised(path: Path) -> Path:
    """The same ledger, in which the count is then raised twice in a row."""
    with open_ledger(path) as ledger:
        assert [appended(ledger, body) for body in RAISES] == [5, 6, 7, 8]
    return path


@pytest.mark.parametrize("body", [*BODIES, *RAISES])
def test_an_entry_reads_back_as_it_was_written(body: TableBody) -> None:
    kind, text = write(body)
    assert write(read(kind, json.loads(text))) == (kind, text)


def test_a_ledger_replays_to_what_it_was(path: Path) -> None:
    with open_ledger(path) as ledger:
        history = ledger.history("people")
    assert history.opened == OPENED
    assert history.budget == Fraction(13, 7)
    assert history.units_spent == 2 * WEIGHT.units
    assert not history.pending
    count, by_group = history.measurements
    assert (count.lattice_values, by_group.lattice_values) == VALUES
    assert count.weight == by_group.weight == WEIGHT
    assert count.block.query.terms[0].factors[0].values.tolist() == [0, 1, 1]


def test_a_table_nobody_opened_has_no_history(path: Path) -> None:
    with open_ledger(path) as ledger:
        assert ledger.history("others").opened is None


def test_an_audit_adds_up_the_rows_again(path: Path) -> None:
    report = audited(path)
    assert report.problem is None
    assert report.n_entries == 4
    (table,) = report.tables
    assert table.spent == table.recomputed == Fraction(2 * WEIGHT.units, UNITS_PER_EPSILON)
    assert (table.exact, table.n_measurements, table.n_pending) == (True, 2, 0)


def test_an_audit_may_run_beside_a_server(path: Path) -> None:
    before = audited(path)
    with open_ledger(path) as ledger:
        ledger.append("people", lambda _: BudgetSet(Fraction(2)))
        report = audited(path)
        assert report.problem is None
        assert report.n_entries == before.n_entries + 1
        assert report.head != before.head
        ledger.append("people", lambda _: BudgetSet(Fraction(1)))


def test_two_who_have_a_ledger_open_follow_each_other(path: Path) -> None:
    link = path.with_name("alias.ledger")
    link.symlink_to(path)
    with open_ledger(path) as one, open_ledger(link) as other:
        assert appended(one, BudgetSet(Fraction(2))) == 5
        assert other.history("people").budget == Fraction(13, 7), "not seen until it is looked for"
        assert appended(other, BudgetSet(Fraction(3))) == 6
        one.refresh()
        assert one.history("people").budget == other.history("people").budget == 3
        assert one.position == other.position


def test_what_others_have_done_decides_what_may_follow(path: Path) -> None:
    with open_ledger(path) as one, open_ledger(path) as other:
        appended(one, replace(CHARGE, units_before=2 * WEIGHT.units, units_after=4 * WEIGHT.units))
        seen: list[int] = []

        def charge(history: TableHistory) -> Charge:
            seen.append(history.units_spent)
            return replace(CHARGE, units_before=seen[-1], units_after=seen[-1] + 1)

        assert other.append("people", charge) == 6
        assert seen == [4 * WEIGHT.units]


def test_many_threads_write_together_and_nothing_is_lost(path: Path) -> None:
    with open_ledger(path) as ledger, ThreadPoolExecutor(16) as pool:
        numbers = pool.map(lambda n: appended(ledger, BudgetSet(Fraction(n))), range(200))
        assert sorted(filter(None, numbers)) == list(range(5, 205))
    assert audited(path).n_entries == 204


def test_one_who_is_refused_does_not_hold_up_the_others(path: Path) -> None:
    with open_ledger(path) as ledger, ThreadPoolExecutor(16) as pool:
        bodies = [BudgetSet(Fraction(n if n % 3 else -1)) for n in range(60)]
        tries = [pool.submit(appended, ledger, body) for body in bodies]
        refused = [one for one in tries if isinstance(one.exception(), ValueError)]
    assert len(refused) == 20
    assert audited(path).n_entries == 44


def test_a_ledger_that_was_swapped_for_another_is_not_written(path: Path) -> None:
    with open_ledger(path) as ledger:
        appended(ledger, BudgetSet(Fraction(2)))
        tampered(path, "DELETE FROM entries WHERE seq = 5")
        for _ in range(2):
            with pytest.raises(LedgerLost, match="does not hold what it held"):
                appended(ledger, BudgetSet(Fraction(3)))
        assert ledger.history("people").budget == 2, "what is known still answers"
    assert audited(path).n_entries == 4


def test_time_never_goes_back(path: Path) -> None:
    with open_ledger(path) as ledger:
        ledger._clock = lambda: "2001-01-01T00:00:00.000+00:00"
        appended(ledger, BudgetSet(Fraction(2)))
        *_, before, last = ledger.entries()
        assert last.at == before.at


def test_closing_twice_does_no_harm_and_writing_after_it_is_an_error(path: Path) -> None:
    ledger = open_ledger(path)
    ledger.close()
    ledger.close()
    with pytest.raises(LedgerUnavailable):
        ledger.append("people", lambda _: BudgetSet(Fraction(2)))


def test_the_files_are_for_their_owner_only(path: Path) -> None:
    for name in ("people.ledger", "people.ledger.key"):
        assert stat.S_IMODE(path.with_name(name).stat().st_mode) == 0o600


@pytest.mark.parametrize("statement", ["DELETE FROM entries", "UPDATE entries SET kind = ''"])
def test_the_database_itself_refuses_to_forget(path: Path, statement: str) -> None:
    with closing(sqlite3.connect(path)) as connection, pytest.raises(sqlite3.IntegrityError):
        connection.execute(statement)


@pytest.mark.parametrize(
    ("body", "why"),
    [
        (OPENED, "opened once"),
        (BudgetSet(Fraction(-1)), "below zero"),
        (Measured(3, VALUES), "no charge waiting"),
        (Measured(99, VALUES), "no charge waiting"),
        (CHARGE, "on top of 0 units"),
        (replace(CHARGE, units_before=2 * WEIGHT.units, units_after=0), "lowers what is spent"),
        (Charge(Payer("ann"), (), 2 * WEIGHT.units, 2 * WEIGHT.units), "without rows"),
    ],
)
def test_an_entry_that_cannot_follow_is_not_written(path: Path, body: TableBody, why: str) -> None:
    with open_ledger(path) as ledger:
        with pytest.raises(ValueError, match=why):
            ledger.append("people", lambda _: body)
        assert ledger.append("people", lambda _: BudgetSet(Fraction(2))) == 5
    assert audited(path).problem is None


def test_nothing_is_said_of_a_table_before_it_is_opened(path: Path) -> None:
    with open_ledger(path) as ledger, pytest.raises(ValueError, match="opened once, before"):
        ledger.append("others", lambda _: CHARGE)


@pytest.mark.parametrize("values", [((1,),), ((1,), (2, 3), (4,)), ((1,), (2,))])
def test_a_measurement_has_a_value_for_every_row_that_was_charged(
    path: Path, values: tuple[tuple[int, ...], ...]
) -> None:
    with open_ledger(path) as ledger:
        spent = ledger.history("people").units_spent
        charge = replace(CHARGE, units_before=spent, units_after=2 * spent)
        seq = appended(ledger, charge) or 0
        with pytest.raises(ValueError, match=r"values for|other rows"):
            ledger.append("people", lambda _: Measured(seq, values))


def tampered(path: Path, statement: str, *, rechain: bool = False) -> None:
    """Alter a ledger behind its back; `rechain` makes the digests fit again."""
    with closing(sqlite3.connect(path, isolation_level=None)) as connection:
        connection.execute("DROP TRIGGER IF EXISTS entries_are_never_changed")
        connection.execute("DROP TRIGGER IF EXISTS entries_are_never_deleted")
        connection.execute(statement)
        previous = GENESIS
        rows = connection.execute("SELECT * FROM entries ORDER BY seq").fetchall()
        for row in rows if rechain else []:
            previous = chained_digest(previous, row[:5])
            connection.execute("UPDATE entries SET digest = ? WHERE seq = ?", (previous, row[0]))


SET_BODY = "UPDATE entries SET body = replace(body, {}) WHERE seq = {}"
COPY = "INSERT INTO entries SELECT 5, at, kind, table_name, body, digest FROM entries WHERE seq = 4"


@pytest.mark.parametrize(
    ("statement", "rechain", "problem"),
    [
        (SET_BODY.format("'12345', '12346'", 4), False, "entry 4: .*digest does not match"),
        ("UPDATE entries SET at = '' WHERE seq = 2", False, "entry 2: .*digest does not match"),
        ("DELETE FROM entries WHERE seq = 2", False, "entry 3: .*in the place of entry 2"),
        ("DELETE FROM entries WHERE seq = 2", True, "entry 3: .*in the place of entry 2"),
        (COPY, True, "entry 5: .*no charge waiting"),
        ("UPDATE entries SET seq = -seq WHERE seq = 1", True, "entry 2: .*in the place of entry 1"),
        ("UPDATE entries SET kind = 'refund' WHERE seq = 2", True, "entry 2: .*unknown kind"),
        ("UPDATE entries SET body = '{' WHERE seq = 3", True, "entry 3: JSON"),
        ("UPDATE entries SET body = '[]' WHERE seq = 3", True, "entry 3: TypeError"),
        (SET_BODY.format("'lattice_bits', 'bits'", 3), True, "entry 3: KeyError"),
        (SET_BODY.format("'\"lattice_bits\":17', '\"lattice_bits\":true'", 3), True, "entry 3: Ty"),
        (SET_BODY.format("'\"lattice_bits\":17', '\"lattice_bits\":9999'", 3), True, "9999 bits"),
        (SET_BODY.format('\'"noise_scale":"0x1\', \'"noise_scale":"0x0\'', 3), True, "smaller"),
        (SET_BODY.format("'13/7', '13/0'", 2), True, "entry 2: ZeroDivisionError"),
        (
            SET_BODY.format('\'"noise_scale":"0x1\', \'"noise_scale":"inf", "x":"\'', 3),
            True,
            "Overfl",
        ),
        (
            SET_BODY.format(f"'\"units_after\":{2 * WEIGHT.units}', '\"units_after\":5'", 3),
            True,
            "table people: .*rows cost 274877906944 units and 5 were charged",
        ),
    ],
)
def test_an_altered_ledger_is_refused_and_the_audit_names_the_first_bad_entry(
    path: Path, statement: str, *, rechain: bool, problem: str
) -> None:
    before = path.read_bytes()
    tampered(path, statement, rechain=rechain)
    altered = path.read_bytes()
    assert altered != before
    with pytest.raises(LedgerCorrupt, match="damaged or was altered") as refused:
        open_ledger(path)
    assert "tacit audit verify" in refused.value.explain()
    assert re.search(problem, refused.value.message)
    assert re.match(r"entry \d+: ", audited(path).problem or "")
    assert path.read_bytes() == altered, "nothing is repaired silently"


SET_TWICE = "UPDATE entries SET body = replace(replace(body, {}), {}) WHERE seq = {}"
LOWERED = SET_TWICE.format(
    f"'{RAISE.blocks[0].noise.noise_scale.hex()}', '{NOISE.noise_scale.hex()}'",
    f"'_units\":{2 * WEIGHT.units}}}', '_units\":{WEIGHT.units}}}'",
    5,
)


def test_raises_replay_and_cost_their_differences(raised: Path) -> None:
    with open_ledger(raised) as ledger:
        history = ledger.history("people")
    assert [found.supersedes for found in history.measurements] == [None, None, 0, 2]
    assert [place for place in range(4) if place in history.superseded] == [0, 2]
    assert history.measurements[3].weight == Weight(3 * WEIGHT.units)
    assert history.measurements[3].lattice_bits == NOISE.lattice_bits
    assert history.measurements[3].block is history.measurements[0].block
    (table,) = audited(raised).tables
    assert table.spent == table.recomputed == Fraction(4 * WEIGHT.units, UNITS_PER_EPSILON)


def test_an_entry_without_raises_is_written_as_it_was_before_there_were_any() -> None:
    kind, text = write(CHARGE)
    assert "raised_from" not in text
    charge = read(kind, json.loads(text))
    assert isinstance(charge, Charge)
    assert [charged.raised_from for charged in charge.blocks] == [None, None]


@pytest.mark.parametrize(
    ("statement", "problem"),
    [
        (SET_BODY.format("'\"raised_from\":0', '\"raised_from\":1'", 5), "entry 5: .*other rows"),
        (SET_BODY.format("'\"raised_from\":0', '\"raised_from\":9'", 5), "entry 5: .*not there"),
        (SET_BODY.format("'\"raised_from\":0', '\"raised_from\":-1'", 5), "entry 5: .*place"),
        (SET_BODY.format("'\"raised_from\":0', '\"raised_from\":true'", 5), "entry 5: TypeError"),
        (SET_BODY.format("'\"raised_from\":0', '\"raised_from\":null'", 5), "entry 5: TypeError"),
        (SET_BODY.format("'\"raised_from\":2', '\"raised_from\":0'", 7), "entry 7: .*raised since"),
        (SET_BODY.format("'\"raised_from\":0,', ''", 5), "table people: .*rows cost"),
        (
            SET_BODY.format(f"'_units\":{2 * WEIGHT.units}}}', '_units\":{WEIGHT.units}}}'", 5),
            "entry 5: .*noise is smaller than the weight",
        ),
        (
            SET_BODY.format(f"'_units\":{2 * WEIGHT.units}}}', '_units\":{3 * WEIGHT.units}}}'", 5),
            "entry 7: .*weight that is no larger",
        ),
        (LOWERED, "entry 5: .*weight that is no larger"),
        (
            SET_BODY.format("'12399', '9111222333444555666'", 6),
            "entry 7: .*no refinement of its own",
        ),
        (
            SET_BODY.format("'\"lattice_bits\":17', '\"lattice_bits\":18'", 5),
            "entry 5: .*no refinement of its own",
        ),
    ],
)
def test_an_altered_raise_is_found_by_the_audit(raised: Path, statement: str, problem: str) -> None:
    before = raised.read_bytes()
    tampered(raised, statement, rechain=True)
    assert raised.read_bytes() != before
    with pytest.raises(LedgerCorrupt) as refused:
        open_ledger(raised)
    assert re.search(problem, refused.value.message)
    assert re.match(r"entry [57]: ", audited(raised).problem or "")


def test_a_raise_is_not_entered_while_another_of_the_same_measurement_waits(path: Path) -> None:
    with open_ledger(path) as ledger:
        ledger.append("people", lambda _: raising(2, 0, 2 * WEIGHT.units))
        with pytest.raises(ValueError, match="while a raise of it waits"):
            ledger.append("people", lambda _: raising(3, 0, 3 * WEIGHT.units))
    assert audited(path).problem is None


def overwrite(offset: int) -> Callable[[Path], None]:
    def damage(path: Path) -> None:
        content = bytearray(path.read_bytes())
        content[offset : offset + 512] = b"\xff" * 512
        path.write_bytes(content)

    return damage


@pytest.mark.parametrize(
    "damage",
    [
        overwrite(0),
        overwrite(4096),
        lambda path: path.write_text("age,sex\n39,Male\n" * 500),
        lambda path: path.write_bytes(path.read_bytes()[:5000]),
    ],
    ids=["header", "page", "text", "cut"],
)
def test_a_damaged_file_is_refused_in_words(path: Path, damage: Callable[[Path], None]) -> None:
    damage(path)
    with pytest.raises(LedgerCorrupt):
        open_ledger(path)
    with pytest.raises(LedgerCorrupt):
        audited(path)


def test_somebody_elses_database_is_left_alone(tmp_path: Path) -> None:
    path = tmp_path / "other.db"
    with closing(sqlite3.connect(path)) as connection:
        connection.execute("CREATE TABLE people (name TEXT)")
    before = path.read_bytes()
    for attempt in (open_ledger, audited):
        with pytest.raises(LedgerCorrupt, match="not a Tacit ledger"):
            attempt(path)
    assert path.read_bytes() == before


def test_places_where_no_ledger_can_be(tmp_path: Path) -> None:
    with pytest.raises(LedgerCorrupt, match="is a directory"):
        open_ledger(tmp_path)
    (tmp_path / "file").write_text("")
    for place in (tmp_path / "missing" / "ledger", tmp_path / "file" / "ledger"):
        with pytest.raises(CannotStart, match="cannot be opened for writing"):
            open_ledger(place)
        with pytest.raises(LedgerCorrupt, match="no ledger at"):
            audited(place)


def test_a_ledger_that_is_locked_in_sqlite_is_not_called_damaged(path: Path) -> None:
    with closing(sqlite3.connect(path, isolation_level=None)) as connection:
        connection.execute("PRAGMA locking_mode = EXCLUSIVE")
        connection.execute("BEGIN EXCLUSIVE")
        with pytest.raises(CannotStart, match="cannot be used just now") as refused:
            open_ledger(path)
    assert refused.value.code == "cannot_start"


def test_a_lost_ledger_is_not_begun_again_while_its_key_is_there(path: Path) -> None:
    """An emptied or deleted ledger would start a fresh budget on the same data."""
    path.write_bytes(b"")
    with pytest.raises(LedgerCorrupt, match="gone or empty"):
        open_ledger(path)
    path.unlink()
    with pytest.raises(LedgerCorrupt, match="gone or empty"):
        open_ledger(path)
    path.with_name("people.ledger.key").unlink()
    with open_ledger(path) as ledger:
        assert ledger.history("people").opened is None


def test_a_ledger_without_its_key_is_refused(path: Path) -> None:
    key = path.with_name("people.ledger.key")
    key.write_bytes(key.read_bytes()[:31])
    with pytest.raises(LedgerCorrupt, match="32 bytes"):
        open_ledger(path)
    key.unlink()
    with pytest.raises(LedgerCorrupt, match=r"key file .* is missing"):
        open_ledger(path)


def test_a_full_disk_refuses_and_the_ledger_goes_on_once_there_is_room(path: Path) -> None:
    """A full disk, by SQLite's own means: it says that nothing was written."""
    with open_ledger(path) as ledger:
        writer = ledger._store._writer  # type: ignore[attr-defined]  # SQLite's own
        (n_pages,) = writer.execute("PRAGMA page_count").fetchone()
        writer.execute(f"PRAGMA max_page_count = {n_pages}")
        huge = replace(OPENED, schema_digest="x" * 1_000_000, data_fingerprint="other")
        with pytest.raises(LedgerUnavailable, match="full"):
            ledger.append("others", lambda _: huge)
        assert not ledger.is_writable
        assert ledger.history("others").opened is None
        writer.execute("PRAGMA max_page_count = 1000000")
        assert appended(ledger, BudgetSet(Fraction(2))) == 5
        assert ledger.is_writable
    assert audited(path).n_entries == 5


def test_after_a_disk_that_failed_under_a_commit_nothing_more_is_written(path: Path) -> None:
    class FailingDisk:
        """A connection whose commits meet an error of the disk."""

        def __init__(self, connection: sqlite3.Connection) -> None:
            self._connection = connection

        def execute(self, statement: str, *values: Any) -> sqlite3.Cursor:
            if statement == "COMMIT":
                error = sqlite3.OperationalError("disk I/O error")
                error.sqlite_errorname = "SQLITE_IOERR_FSYNC"
                raise error
            return self._connection.execute(statement, *values)

        def __getattr__(self, name: str) -> object:
            return getattr(self._connection, name)

    with open_ledger(path) as ledger:
        ledger._store._writer = FailingDisk(ledger._store._writer)  # type: ignore[attr-defined]
        for _ in range(2):
            with pytest.raises(LedgerLost, match="is not known"):
                appended(ledger, BudgetSet(Fraction(2)))
        assert ledger.history("people").budget == Fraction(13, 7)
    with open_ledger(path) as ledger:
        assert appended(ledger, BudgetSet(Fraction(2))) == 5


def test_a_ledger_of_the_first_version_is_read_audited_and_brought_up_to_date(path: Path) -> None:
    """The first version had no number, no table of its own state, and the same entries."""
    with closing(sqlite3.connect(path, isolation_level=None)) as connection:
        connection.execute("DROP TABLE meta")
        connection.execute("PRAGMA user_version = 0")
    before = audited(path)
    assert (before.problem, before.n_entries) == (None, 4)
    with open_ledger(path) as ledger:
        assert ledger.position == (4, before.head)
        ledger.probe()
        assert appended(ledger, BudgetSet(Fraction(2))) == 5
    with closing(sqlite3.connect(path)) as connection:
        assert connection.execute("PRAGMA user_version").fetchone() == (SCHEMA_VERSION,)


def test_a_ledger_of_a_later_version_is_left_alone(path: Path) -> None:
    with closing(sqlite3.connect(path)) as connection:
        connection.execute(f"PRAGMA user_version = {SCHEMA_VERSION + 1}")
    for attempt in (open_ledger, audited):
        with pytest.raises(LedgerCorrupt, match="newer Tacit"):
            attempt(path)
