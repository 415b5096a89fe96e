"""A ledger altered from outside: refused, not repaired, and the first bad entry named."""

import re
import sqlite3
from contextlib import closing
from fractions import Fraction
from pathlib import Path

import pytest

from accountant.ledger.entries import GENESIS, BudgetSet, chained_digest
from accountant.ledger.opening import open_ledger
from cube.refusals import LedgerCorrupt, LedgerLost
from tests.support.auditing import audited
from tests.support.short_ledger import (
    NOISE,
    RAISE,
    WEIGHT,
    appended,
    raised_twice,
    write_short_ledger,
)

SET_BODY = "UPDATE entries SET body = replace(body, {}) WHERE seq = {}"
COPY = "INSERT INTO entries SELECT 5, at, kind, table_name, body, digest FROM entries WHERE seq = 4"
SET_TWICE = "UPDATE entries SET body = replace(replace(body, {}), {}) WHERE seq = {}"
LOWERED = SET_TWICE.format(
    f"'{RAISE.blocks[0].noise.noise_scale.hex()}', '{NOISE.noise_scale.hex()}'",
    f"'_units\":{2 * WEIGHT.units}}}', '_units\":{WEIGHT.units}}}'",
    5,
)


@pytest.fixture
def path(tmp_path: Path) -> Path:
    return write_short_ledger(tmp_path / "people.ledger")


@pytest.fixture
def raised(path: Path) -> Path:
    return raised_twice(path)


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


@pytest.mark.parametrize("statement", ["DELETE FROM entries", "UPDATE entries SET kind = ''"])
def test_the_database_itself_refuses_to_forget(path: Path, statement: str) -> None:
    with closing(sqlite3.connect(path)) as connection, pytest.raises(sqlite3.IntegrityError):
        connection.execute(statement)


def test_a_ledger_that_was_swapped_for_another_is_not_written(path: Path) -> None:
    with open_ledger(path) as ledger:
        appended(ledger, BudgetSet(Fraction(2)))
        tampered(path, "DELETE FROM entries WHERE seq = 5")
        for _ in range(2):
            with pytest.raises(LedgerLost, match="no longer holds the entries that it held before"):
                appended(ledger, BudgetSet(Fraction(3)))
        assert ledger.history("people").budget == 2, "what is known still answers"
    assert audited(path).n_entries == 4


@pytest.mark.parametrize(
    ("statement", "rechain", "problem"),
    [
        (SET_BODY.format("'12345', '12346'", 4), False, "entry 4: .*digest does not match"),
        ("UPDATE entries SET at = '' WHERE seq = 2", False, "entry 2: .*digest does not match"),
        ("DELETE FROM entries WHERE seq = 2", False, "entry 3: .*in the place of entry 2"),
        ("DELETE FROM entries WHERE seq = 2", True, "entry 3: .*in the place of entry 2"),
        (COPY, True, "entry 5: .*not a pending charge"),
        ("UPDATE entries SET seq = -seq WHERE seq = 1", True, "entry 2: .*in the place of entry 1"),
        ("UPDATE entries SET kind = 'refund' WHERE seq = 2", True, "entry 2: .*is unknown"),
        ("UPDATE entries SET body = '{' WHERE seq = 3", True, "entry 3: JSON"),
        ("UPDATE entries SET body = '[]' WHERE seq = 3", True, "entry 3: TypeError"),
        (SET_BODY.format("'lattice_bits', 'bits'", 3), True, "entry 3: KeyError"),
        (SET_BODY.format("'\"lattice_bits\":17', '\"lattice_bits\":true'", 3), True, "entry 3: Ty"),
        (
            SET_BODY.format("'\"lattice_bits\":17', '\"lattice_bits\":9999'", 3),
            True,
            "32 bits, not 9999",
        ),
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
            "table people: .*rows cost 274877906944 units, but only 5 were charged",
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


@pytest.mark.parametrize(
    ("statement", "problem"),
    [
        (SET_BODY.format("'\"raised_from\":0', '\"raised_from\":1'", 5), "entry 5: .*other rows"),
        (
            SET_BODY.format("'\"raised_from\":0', '\"raised_from\":9'", 5),
            "entry 5: .*does not exist",
        ),
        (SET_BODY.format("'\"raised_from\":0', '\"raised_from\":-1'", 5), "entry 5: .*place"),
        (SET_BODY.format("'\"raised_from\":0', '\"raised_from\":true'", 5), "entry 5: TypeError"),
        (SET_BODY.format("'\"raised_from\":0', '\"raised_from\":null'", 5), "entry 5: TypeError"),
        (
            SET_BODY.format("'\"raised_from\":2', '\"raised_from\":0'", 7),
            "entry 7: .*already been raised",
        ),
        (SET_BODY.format("'\"raised_from\":0,', ''", 5), "table people: .*rows cost"),
        (
            SET_BODY.format(f"'_units\":{2 * WEIGHT.units}}}', '_units\":{WEIGHT.units}}}'", 5),
            "entry 5: .*noise is smaller than the paid weight",
        ),
        (
            SET_BODY.format(f"'_units\":{2 * WEIGHT.units}}}', '_units\":{3 * WEIGHT.units}}}'", 5),
            "entry 7: .*weight that is not larger",
        ),
        (LOWERED, "entry 5: .*weight that is not larger"),
        (
            SET_BODY.format("'12399', '9111222333444555666'", 6),
            "entry 7: .*does not refine its noise",
        ),
        (
            SET_BODY.format("'\"lattice_bits\":17', '\"lattice_bits\":18'", 5),
            "entry 5: .*does not refine its noise",
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
