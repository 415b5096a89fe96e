"""The audit commands as people use them: what they print, what they refuse, their exit codes."""

import io
import json
import re
import stat
from fractions import Fraction
from pathlib import Path

import pytest

from accountant.ledger.entries import BudgetSet, Entry
from accountant.ledger.opening import open_ledger, open_reader, open_store
from accountant.ledger.stores.key_file import key_beside
from accountant.ledger.stores.mark import mark_beside
from cube.refusals import LedgerSetBack
from tests.proxy.reporting.ledgers import write_gaussian
from tests.support.audited import rechained, write_ledger
from tests.support.commands import Run
from tests.support.postgres import PostgresServer


@pytest.fixture
def path(tmp_path: Path) -> Path:
    write_ledger(tmp_path / "people.ledger")
    return tmp_path / "people.ledger"


@pytest.fixture
def owner(run: Run, tmp_path: Path) -> Path:
    assert run("audit", "keygen", "-o", tmp_path / "owner").code == 0
    return tmp_path / "owner"


def read(path: Path) -> list[Entry]:
    reader = open_reader(str(path))
    try:
        return list(reader.entries_after(0))
    finally:
        reader.close()


def written(path: Path, entries: list[Entry]) -> Path:
    """A ledger of any entries, as somebody makes it who has the file and Python."""
    store = open_store(str(path))
    with store.writing() as appender:
        appender.insert(entries)
    store.close()
    return path


def test_a_good_ledger_is_said_to_be_good(run: Run, path: Path) -> None:
    before = path.read_bytes()
    ended = run("audit", "verify", path)
    assert (ended.code, ended.err) == (0, "")
    assert f"28 entries, head {read(path)[-1].digest}" in ended.out
    assert "Every entry follows from those before it." in ended.out
    line = next(line for line in ended.out.splitlines() if "people" in line)
    numbers = [cell for cell in line.split() if cell != "│"]
    assert numbers == ["people", "0.428571", "0.3125", "0.3125", "7", "1", "1"]
    assert path.read_bytes() == before


def test_a_delta_is_said_with_the_epsilon_that_it_goes_with(run: Run, tmp_path: Path) -> None:
    write_gaussian(tmp_path / "gaussian.ledger")
    ended = run("audit", "verify", tmp_path / "gaussian.ledger")
    assert ended.code == 0
    (line,) = (line for line in ended.out.splitlines() if "Gaussian noise" in line)
    assert re.fullmatch(
        r"people: epsilon 0\.\d+ of it for Gaussian noise, "
        r"private but for a probability of 1e-09\.",
        line,
    )


def test_the_first_bad_entry_is_named_and_the_exit_code_says_so(run: Run, path: Path) -> None:
    entries = read(path)
    forged = written(path.with_name("forged.ledger"), rechained([*entries[:16], *entries[17:]]))
    ended = run("audit", "verify", forged)
    assert ended.code == 1
    assert "16 entries" in ended.out
    assert "people" in ended.out
    assert "Every entry follows" not in ended.out
    assert (
        ended.err
        == "error [ledger_corrupt]: entry 17: the entry found in its place has number 18.\n"
    )


def test_a_ledger_is_verified_beside_the_server_that_writes_it(run: Run, path: Path) -> None:
    with open_ledger(path):
        assert run("audit", "verify", path).code == 0


@pytest.mark.parametrize("name", ["absent.ledger", "absent.jsonl"])
def test_where_there_is_no_ledger_it_is_said(run: Run, tmp_path: Path, name: str) -> None:
    ended = run("audit", "verify", tmp_path / name)
    assert ended.code == 1
    assert name in ended.err
    assert not (tmp_path / name).exists()


def test_what_was_signed_must_still_be_there(run: Run, path: Path, owner: Path) -> None:
    head = path.with_name("may.json")
    ended = run("audit", "sign", path, "--key", f"{owner}.key", "-o", head)
    assert ended.code == 0
    assert f"28 entries, head {read(path)[-1].digest}" in ended.out
    known = ("--public-key", f"{owner}.pub", "--signed-head", head)
    assert run("audit", "verify", path, *known).code == 0
    entries = read(path)
    shortened = written(path.with_name("shortened.ledger"), entries[:-2])
    assert run("audit", "verify", shortened).code == 0
    ended = run("audit", "verify", shortened, *known)
    assert ended.code == 1
    assert (
        "entry 27: the end of the ledger is missing: a head with 28 entries was signed on"
        in ended.err
    )


def test_a_signed_head_is_one_line_of_json_that_says_nothing_else(
    run: Run, path: Path, owner: Path
) -> None:
    printed = run("audit", "sign", path, "--key", f"{owner}.key").out
    assert printed.count("\n") == 1
    assert set(json.loads(printed)) == {"format", "n_entries", "head", "at", "signature"}


def test_a_bad_ledger_is_not_signed(run: Run, path: Path, owner: Path) -> None:
    forged = written(path.with_name("forged.ledger"), rechained(read(path)[1:]))
    head = path.with_name("may.json")
    ended = run("audit", "sign", forged, "--key", f"{owner}.key", "-o", head)
    assert ended.code == 1
    assert "entry 1: the entry found in its place has number 2" in ended.err
    assert not head.exists()


def test_a_head_that_was_changed_or_signed_by_another_is_refused(
    run: Run, path: Path, owner: Path, tmp_path: Path
) -> None:
    head = tmp_path / "may.json"
    run("audit", "sign", path, "--key", f"{owner}.key", "-o", head)
    run("audit", "keygen", "-o", tmp_path / "stranger")
    ended = run(
        "audit", "verify", path, "--public-key", tmp_path / "stranger.pub", "--signed-head", head
    )
    assert ended.code == 1
    assert "may.json was not signed with this key" in ended.err
    head.write_text(head.read_text().replace('"n_entries":28', '"n_entries":27'))
    ended = run("audit", "verify", path, "--public-key", f"{owner}.pub", "--signed-head", head)
    assert "may.json was not signed with this key, or was changed" in ended.err


@pytest.mark.parametrize("given", ["--public-key", "--signed-head"])
def test_a_key_and_a_head_come_together(run: Run, path: Path, given: str) -> None:
    ended = run("audit", "verify", path, given, path)
    assert ended.code == 1
    assert "Give both --public-key and --signed-head, or neither." in ended.err


def test_a_private_key_that_others_may_read_signs_nothing(
    run: Run, path: Path, owner: Path
) -> None:
    private = owner.with_name("owner.key")
    assert stat.S_IMODE(private.stat().st_mode) == 0o600
    private.chmod(0o644)
    ended = run("audit", "sign", path, "--key", private)
    assert ended.code == 1
    assert "Other users may read the private key" in ended.err


def test_nothing_that_is_there_is_written_over(run: Run, path: Path, owner: Path) -> None:
    before = path.read_bytes()
    ended = run("audit", "sign", path, "--key", f"{owner}.key", "-o", path)
    assert "cannot be written: File exists" in ended.err
    taken = path.with_name("taken.jsonl")
    taken.write_text("mine")
    assert "File exists" in run("audit", "export", path, "-o", taken).err
    assert "File exists" in run("audit", "keygen", "-o", owner).err
    assert taken.read_text() == "mine"
    assert path.read_bytes() == before


def test_an_export_is_all_an_auditor_needs(run: Run, path: Path, owner: Path) -> None:
    lines, head = path.with_name("people.jsonl"), path.with_name("may.json")
    ended = run("audit", "export", path, "-o", lines)
    assert (ended.code, ended.out) == (0, f"Wrote {lines}: 28 entries.\n")
    assert stat.S_IMODE(lines.stat().st_mode) == 0o600
    assert run("audit", "verify", lines).out == run("audit", "verify", path).out
    run("audit", "sign", lines, "--key", f"{owner}.key", "-o", head)
    known = ("--public-key", f"{owner}.pub", "--signed-head", head)
    assert run("audit", "verify", path, *known).code == 0
    lines.write_text("".join(lines.read_text().splitlines(keepends=True)[:-1]))
    ended = run("audit", "verify", lines)
    assert ended.code == 1
    assert "people.jsonl, line 29: the file was cut off" in ended.err


def test_an_imported_ledger_can_be_served_with_its_key(run: Run, path: Path) -> None:
    lines, copy = path.with_name("people.jsonl"), path.with_name("copy.ledger")
    run("audit", "export", path, "-o", lines)
    ended = run("audit", "import", lines, copy)
    assert ended.code == 0
    assert "copy them from the old ledger" in ended.out
    assert read(copy) == read(path)
    key_beside(copy).write_bytes(key_beside(path).read_bytes())
    with pytest.raises(LedgerSetBack, match=r"its mark .* is missing"):
        open_ledger(copy)
    mark_beside(key_beside(copy)).write_bytes(mark_beside(key_beside(path)).read_bytes())
    with open_ledger(copy) as ledger:
        assert ledger.history("people").units_spent > 0
    assert "already has entries. It was not changed" in run("audit", "import", lines, copy).err


def test_a_ledger_moves_to_postgresql_and_back(
    run: Run, path: Path, postgres_server: PostgresServer
) -> None:
    there = postgres_server.location(schema="moved_there_and_back")
    lines, back = path.with_name("people.jsonl"), path.with_name("back.jsonl")
    run("audit", "export", path, "-o", lines)
    assert run("audit", "import", lines, there).code == 0
    assert run("audit", "verify", there).out == run("audit", "verify", path).out
    assert run("audit", "export", there, "-o", back).code == 0
    assert back.read_bytes() == lines.read_bytes()


def test_a_bad_export_makes_no_ledger(run: Run, path: Path) -> None:
    lines, copy = path.with_name("people.jsonl"), path.with_name("copy.ledger")
    run("audit", "export", path, "-o", lines)
    lines.write_text(lines.read_text().replace('\\"weight_units\\":3', '\\"weight_units\\":8'))
    ended = run("audit", "import", lines, copy)
    assert ended.code == 1
    assert (
        "Nothing was imported. The first problem is entry 28: its digest does not match"
        in ended.err
    )
    assert not copy.exists()


def test_an_export_says_by_its_name_what_it_is(run: Run, path: Path) -> None:
    ended = run("audit", "export", path, "-o", path.with_name("people.json"))
    assert ended.code == 1
    assert "does not end in .jsonl" in ended.err


@pytest.mark.parametrize("command", ["verify", "sign", "keygen", "export", "import", "report"])
def test_every_command_explains_itself(run: Run, command: str) -> None:
    ended = run("audit", command, "--help")
    assert ended.code == 0
    assert "Example: tacit audit" in ended.out


def test_a_loss_is_accepted_on_the_command_line_and_shown_by_every_audit(
    run: Run, path: Path, owner: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    older, head = path.read_bytes(), path.with_name("may.json")
    with open_ledger(path) as ledger:
        ledger.append("people", lambda _history: BudgetSet(Fraction(1, 2)))
    run("audit", "sign", path, "--key", f"{owner}.key", "-o", head)
    known = ("--public-key", f"{owner}.pub", "--signed-head", head)
    assert (
        "there is no loss to accept" in run("audit", "accept-rollback", path, *known, "--yes").err
    )
    path.write_bytes(older)
    monkeypatch.setattr("sys.stdin", io.StringIO("n\n"))
    ended = run("audit", "accept-rollback", path)
    assert ended.code == 1
    assert "The ledger ends with entry 28" in ended.out
    assert "Entry 29, digest" in ended.out
    assert "At least 1 are missing" in ended.out
    assert "was not changed" in ended.out
    assert len(read(path)) == 28
    ended = run("audit", "accept-rollback", path, *known, "--by", "ann", "--yes")
    assert ended.code == 0
    assert "Recorded as entry 29" in ended.out
    assert f"Keep {head} under another name" in ended.out
    ended = run("audit", "verify", path)
    assert ended.code == 0
    assert ended.out.startswith("WARNING: entry 29: the ledger was set back, and ann accepted this")
    assert run("audit", "verify", path, *known).code == 1
    page = path.with_name("report.html")
    assert run("audit", "report", path, "-o", page).code == 0
    assert "This ledger lacks entries." in page.read_text()
    assert "ROLLBACK ACCEPTED" in page.read_text()
    with open_ledger(path):
        pass


def test_a_ledger_in_postgresql_is_named_with_its_key(run: Run, path: Path) -> None:
    assert "--key is needed" in run("audit", "accept-rollback", path, "--key", path).err
    assert "--key is needed" in run("audit", "accept-rollback", "postgresql://localhost/money").err
