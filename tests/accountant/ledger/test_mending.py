"""Continuing with a ledger that lacks entries: from then on, every reader is warned of it."""

from fractions import Fraction
from pathlib import Path

import pytest

from accountant.auditor.signed_head import Head, SignedHead
from accountant.auditor.verify import verify
from accountant.ledger.entries import GENESIS, BudgetSet, Entry
from accountant.ledger.mending import Loss, accept_rollback
from accountant.ledger.opening import open_ledger, open_shared_ledger
from accountant.ledger.stores.key_file import KEY_BYTES, key_beside
from accountant.ledger.stores.mark import MarkFile, Position, mark_beside
from cube.refusals import InvalidRequest, LedgerSetBack
from tests.support.audited import rechained, rewritten, to
from tests.support.postgres import PostgresServer
from tests.support.short_ledger import BODIES, RAISES, appended, raised_twice, write_short_ledger

AT = "2026-11-21T20:07:49.123+00:00"


@pytest.fixture
def path(tmp_path: Path) -> Path:
    return write_short_ledger(tmp_path / "people.ledger")


@pytest.fixture
def mark(path: Path) -> MarkFile:
    return MarkFile(mark_beside(key_beside(path)))


@pytest.fixture
def lost(path: Path) -> list[Entry]:
    """The ledger is that of four entries again; what there was of it."""
    older = path.read_bytes()
    raised_twice(path)
    with open_ledger(path) as ledger:
        entries = list(ledger.entries())
    path.write_bytes(older)
    return entries


def accepted(path: Path, *heads: Position) -> Loss | None:
    return accept_rollback(str(path), None, heads, by="ann", confirm=lambda _: True)


def entries_of(path: Path) -> list[Entry]:
    with open_ledger(path) as ledger:
        return list(ledger.entries())


def signed(entry: Entry) -> SignedHead:
    return SignedHead(Head(entry.seq, entry.digest, AT), b"")


def test_a_loss_is_accepted_by_an_entry_and_the_ledger_goes_on(
    path: Path, lost: list[Entry], mark: MarkFile
) -> None:
    loss = accepted(path)
    assert loss == Loss(Position(8, lost[7].digest), Position(4, lost[3].digest))
    with open_ledger(path) as ledger:
        assert mark.read() == Position(*ledger.position)
        assert appended(ledger, BudgetSet(Fraction(2))) == 6
    verdict = verify(entries_of(path))
    assert verdict.problem is None
    (warning,) = verdict.warnings
    assert "entry 5: the ledger was set back, and ann accepted this" in warning
    assert "8 entries were vouched for, but 4 were found" in warning
    assert "does not prove that the budgets were kept" in warning


def test_a_head_over_entries_that_are_gone_is_still_not_kept(path: Path, lost: list[Entry]) -> None:
    accepted(path)
    with open_ledger(path) as ledger:
        for number in range(6):
            appended(ledger, BudgetSet(Fraction(number)))
    entries = entries_of(path)
    for head in (*lost[:4], entries[4], entries[-1]):
        assert verify(entries, heads=[signed(head)]).problem is None
    for head in lost[4:]:
        problem = verify(entries, heads=[signed(head)]).problem or ""
        assert problem.startswith("entry 5: this ledger lacks some of the ")
        assert f"the {head.seq} entries that were signed on {AT}" in problem
        assert "its owner accepted the loss in this entry" in problem
    further = SignedHead(Head(9, "ab" * 32, AT), b"")  # more was lost than was accepted
    assert "rewritten" in (verify(entries, heads=[further]).problem or "")


def test_nothing_is_written_unless_it_is_confirmed_and_nothing_else_opens_it(
    path: Path, lost: list[Entry], mark: MarkFile
) -> None:
    before, shown = mark.read(), []

    def decline(loss: Loss) -> bool:
        shown.append(loss)
        return False

    assert accept_rollback(str(path), None, (), by="ann", confirm=decline) is None
    assert [one.vouched for one in shown] == [before]
    assert before == Position(8, lost[7].digest)
    with pytest.raises(LedgerSetBack):
        open_ledger(path)


def test_a_ledger_that_lacks_nothing_has_nothing_to_accept(path: Path, mark: MarkFile) -> None:
    with pytest.raises(InvalidRequest, match="there is no loss to accept"):
        accepted(path)
    mark.path.unlink()
    key = key_beside(path)
    key.write_bytes(key.read_bytes()[:KEY_BYTES])
    with pytest.raises(InvalidRequest):  # a ledger of before marks needs none
        accepted(path)
    assert len(entries_of(path)) == 4


@pytest.mark.parametrize("content", [None, b"damaged"])
def test_without_its_mark_nobody_knows_how_much_is_gone(
    path: Path, mark: MarkFile, content: bytes | None
) -> None:
    mark.path.unlink()
    if content is not None:
        mark.path.write_bytes(content)
    loss = accepted(path)
    assert loss is not None
    assert loss.vouched is None
    entries = entries_of(path)
    (warning,) = verify(entries).warnings
    assert "4 entries were found; how many there were before is unknown" in warning
    beyond = SignedHead(Head(1000, "ab" * 32, AT), b"")
    assert "accepted the loss" in (verify(entries, heads=[beyond]).problem or "")


def test_a_signed_head_shows_a_loss_that_the_mark_no_longer_shows(
    path: Path, lost: list[Entry], mark: MarkFile
) -> None:
    mark.give_up(Position(4, lost[3].digest))
    head = Position(6, lost[5].digest)
    loss = accepted(path, head, Position(2, lost[1].digest))
    assert loss is not None
    assert loss.vouched == head
    with pytest.raises(InvalidRequest):
        accepted(path, Position(2, lost[1].digest))


def test_after_a_kill_before_the_mark_the_loss_is_accepted_again(
    path: Path, lost: list[Entry], mark: MarkFile, monkeypatch: pytest.MonkeyPatch
) -> None:
    with monkeypatch.context() as killed:
        killed.setattr(MarkFile, "give_up", lambda *_: (_ for _ in ()).throw(KeyboardInterrupt))
        with pytest.raises(KeyboardInterrupt):
            accepted(path)
    with pytest.raises(LedgerSetBack):
        open_ledger(path)
    assert mark.read().n_entries == len(lost)
    accepted(path)
    assert [one.kind for one in entries_of(path)][4:] == ["rollback_accepted"] * 2


@pytest.mark.parametrize(
    ("field", "value", "why"),
    [
        ("found_entries", 3, "belongs to another ledger"),
        ("found_digest", "ab" * 32, "belongs to another ledger"),
        ("found_digest", "soon", "64 hexadecimal"),
        ("vouched_digest", "soon", "64 hexadecimal"),
        ("vouched_entries", None, "must be given together"),
        ("vouched_entries", -1, "below 0"),
        ("by", None, "not a text"),
    ],
)
@pytest.mark.usefixtures("lost")
def test_its_statements_about_the_ledger_are_checked(
    path: Path, field: str, value: object, why: str
) -> None:
    accepted(path)
    entries = entries_of(path)
    assert why in (verify(rewritten(entries, 5, to(value, field))).problem or "")


def test_it_is_about_no_table(path: Path, lost: list[Entry]) -> None:
    accepted(path)
    *others, last = entries_of(path)
    moved = rechained([*others, Entry(5, last.at, last.kind, "people", last.body, "")])
    assert len(lost) == 8
    assert "about the ledger itself must not name a table" in (verify(moved).problem or "")


def test_a_ledger_in_postgresql_goes_on_likewise(
    postgres_server: PostgresServer, tmp_path: Path
) -> None:
    location, key = postgres_server.location(schema="mended"), tmp_path / "ledger.key"
    with open_shared_ledger(location, key) as ledger:
        for body in (*BODIES, *RAISES):
            appended(ledger, body)
    with postgres_server.connect() as connection:
        connection.execute("ALTER TABLE mended.entries DISABLE TRIGGER USER")
        connection.execute("DELETE FROM mended.entries WHERE seq > 3")
    with pytest.raises(LedgerSetBack):
        open_shared_ledger(location, key)
    loss = accept_rollback(location, key, (), by="ann", confirm=lambda _: True)
    assert loss is not None
    assert (loss.vouched or Position(0, GENESIS)).n_entries == 8
    with open_shared_ledger(location, key) as ledger:
        assert ledger.position[0] == 4
        assert [one.kind for one in ledger.entries()][-1] == "rollback_accepted"
        assert verify(ledger.entries()).warnings
