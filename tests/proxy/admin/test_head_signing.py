"""The head that a server signs is evidence: it is checked, and never gives way to less."""

import threading
from collections.abc import Iterator
from fractions import Fraction
from pathlib import Path

import pytest

from accountant.auditor.signed_head import (
    Head,
    SignedHead,
    generate_keys,
    read_private_key,
    read_public_key,
    read_signed_head,
    sign_head,
)
from accountant.ledger.entries import BudgetSet
from accountant.ledger.ledger import Ledger
from accountant.ledger.mending import accept_rollback
from accountant.ledger.opening import open_ledger
from accountant.ledger.stores.mark import Position
from cube.refusals import LedgerCorrupt, LedgerLost, LedgerSetBack
from proxy.admin.head_signing import HeadSigner
from proxy.bootstrap import build
from proxy.config.settings import load
from tests.support.short_ledger import appended, raised_twice, write_short_ledger

AT = "2026-11-21T20:07:49.123+00:00"
CONFIGURATION = """\
[ledger]
path = "people.ledger"
signing_key = "owner.key"
signed_head = "head.json"
[tables.people]
source = "people.csv"
budget = "1.0"
n_records_max = 1000
half_width = 20
[tables.people.columns.age]
kind = "integer"
low = 0
high = 99
"""


@pytest.fixture
def key(tmp_path: Path) -> Path:
    generate_keys(tmp_path / "owner.key", tmp_path / "owner.pub")
    return tmp_path / "owner.key"


@pytest.fixture
def output(tmp_path: Path) -> Path:
    return tmp_path / "head.json"


@pytest.fixture
def path(tmp_path: Path) -> Path:
    return write_short_ledger(tmp_path / "people.ledger")


@pytest.fixture
def ledger(path: Path) -> Iterator[Ledger]:
    with open_ledger(path) as ledger:
        yield ledger


def head_in(output: Path) -> Head:
    public = read_public_key(output.with_name("owner.pub"))
    return read_signed_head(output.read_text(), public, "head.json").head


def set_back(path: Path, output: Path, key: Path) -> None:
    """A ledger of eight entries is signed for; then it and its mark are those of four again."""
    before = {one: one.read_bytes() for one in (path, path.with_name("people.ledger.mark"))}
    raised_twice(path)
    with open_ledger(path) as ledger:
        HeadSigner(key, output).sign(ledger)
    assert head_in(output).n_entries == 8
    for one, content in before.items():
        one.write_bytes(content)


def test_a_ledger_that_was_set_back_with_its_mark_is_refused_by_the_head(
    path: Path, output: Path, key: Path
) -> None:
    set_back(path, output, key)
    signed = output.read_bytes()
    with open_ledger(path) as ledger:  # nothing beside it shows anything
        with pytest.raises(LedgerSetBack, match=r"the 8 entries that .*head\.json vouches"):
            HeadSigner(key, output).check(ledger)
        with pytest.raises(LedgerLost, match="the 8 entries"):
            HeadSigner(key, output).sign(ledger)
        with pytest.raises(LedgerLost):
            appended(ledger, BudgetSet(Fraction(2)))
        with pytest.raises(LedgerLost):
            ledger.probe()
        assert not ledger.is_writable
    assert output.read_bytes() == signed, "the evidence is still there"


def test_a_head_of_another_ledger_or_key_is_not_overwritten(
    ledger: Ledger, output: Path, key: Path
) -> None:
    generate_keys(output.with_name("other.key"), output.with_name("other.pub"))
    private = read_private_key(output.with_name("other.key"))
    heads = [
        sign_head(private, Head(*ledger.position, AT)).to_json(),
        sign_head(read_private_key(key), Head(2, "ab" * 32, AT)).to_json(),
        "no head",
        "",
    ]
    for written in heads:
        output.write_text(written)
        with pytest.raises((LedgerCorrupt, LedgerSetBack)):
            HeadSigner(key, output).check(ledger)
        with pytest.raises(LedgerLost):
            HeadSigner(key, output).sign(ledger)
        assert output.read_text() == written


def test_a_head_only_grows_though_two_processes_sign(path: Path, output: Path, key: Path) -> None:
    with open_ledger(path) as slow, open_ledger(path) as quick:
        appended(quick, BudgetSet(Fraction(2)))
        HeadSigner(key, output).sign(quick)
        HeadSigner(key, output).check(slow)
        HeadSigner(key, output).sign(slow)  # which has not seen the fifth entry yet
        assert head_in(output).n_entries == 5

        def sign(ledger: Ledger) -> None:
            signer = HeadSigner(key, output)
            for _ in range(20):
                ledger.refresh()
                signer.sign(ledger)
                seen.append(head_in(output).n_entries)
                appended(ledger, BudgetSet(Fraction(3)))

        seen: list[int] = []
        threads = [threading.Thread(target=sign, args=(one,)) for one in (slow, quick)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
        HeadSigner(key, output).sign(slow)
        HeadSigner(key, output).sign(quick)
    assert len(seen) == 40
    assert head_in(output).n_entries == 45
    assert [one.name for one in output.parent.iterdir() if one.name.endswith(".new")] == []


def test_the_first_head_needs_none_before_it_and_anybody_may_read_it(
    ledger: Ledger, output: Path, key: Path
) -> None:
    signer = HeadSigner(key, output)
    signer.check(ledger)
    signer.sign(ledger)
    assert head_in(output).digest == ledger.position[1]
    assert output.stat().st_mode & 0o044
    content = output.read_bytes()
    signer.sign(ledger)
    assert output.read_bytes() == content, "nothing new, nothing signed"
    assert isinstance(sign_head(read_private_key(key), Head(0, "0" * 64, AT)), SignedHead)


def test_a_server_does_not_start_on_less_than_it_signed_for(
    tmp_path: Path, key: Path, output: Path
) -> None:
    (tmp_path / "people.csv").write_text("age\n40\n")
    (tmp_path / "tacit.toml").write_text(CONFIGURATION)
    ledger = tmp_path / "people.ledger"
    files = (ledger, tmp_path / "people.ledger.mark")
    loaded = load(tmp_path / "tacit.toml")
    build(loaded).close()
    older = {one: one.read_bytes() for one in files}
    with open_ledger(ledger) as opened:
        opened.append("people", lambda _history: BudgetSet(Fraction(2)))
    build(loaded).close()  # the budget of the file again
    signed = output.read_bytes()
    assert head_in(output).n_entries == 4
    for one, content in older.items():
        one.write_bytes(content)
    with pytest.raises(LedgerSetBack, match="the 4 entries"):
        build(loaded)
    assert output.read_bytes() == signed
    assert key.exists()
    head = Position(head_in(output).n_entries, head_in(output).digest)
    accept_rollback(str(ledger), None, [head], by="ann", confirm=lambda _: True)
    with pytest.raises(LedgerSetBack):
        build(loaded)
    output.rename(tmp_path / "head-before.json")
    build(loaded).close()
    assert head_in(output).n_entries == 3
