"""Entries about collections: read as written, replayed, and refused where they cannot follow."""

from collections.abc import Iterator
from contextlib import closing
from dataclasses import replace
from fractions import Fraction
from pathlib import Path

import pytest

from accountant.ledger.checkpoint import state_bytes, state_of
from accountant.ledger.collections import CollectionBook, CollectionClosed, CollectionOpened
from accountant.ledger.entries import TableOpened
from accountant.ledger.history.replay import Replay
from accountant.ledger.ledger import Ledger
from accountant.ledger.opening import open_ledger, open_reader
from local_dp.campaign import campaign_digest, campaign_text
from tests.support.campaigns import TEXTS, survey

OPENED = CollectionOpened(campaign_text(survey()), 100, is_by_invitation=False, by="owner")
CLOSED = CollectionClosed("survey", 7, "ab" * 32, by="owner")


@pytest.fixture
def ledger(tmp_path: Path) -> Iterator[Ledger]:
    with open_ledger(tmp_path / "ledger") as opened:
        yield opened


def opened(ledger: Ledger, body: CollectionOpened = OPENED) -> int | None:
    return ledger.append_collection(lambda _book: body)


def closed(ledger: Ledger, body: CollectionClosed = CLOSED) -> int | None:
    return ledger.append_collection(lambda _book: body)


def test_a_collection_is_known_by_what_respondents_read() -> None:
    assert OPENED.name == "survey"
    assert OPENED.digest == campaign_digest(OPENED.campaign)


def test_a_restart_knows_what_was_opened_and_closed(tmp_path: Path) -> None:
    path = tmp_path / "ledger"
    with open_ledger(path) as ledger:
        for text in TEXTS:
            opened(ledger, replace(OPENED, campaign=text))
        closed(ledger)
        before = ledger.collections
    with open_ledger(path) as ledger:
        assert ledger.collections == before
        assert ledger.collections.by_name["survey"].closed == CLOSED
        assert ledger.collections.by_name["wide"].closed is None


def test_a_kept_state_has_the_collections(ledger: Ledger) -> None:
    opened(ledger)
    closed(ledger)
    replay = Replay().read(ledger.entries())
    assert state_of(state_bytes(replay)).collections == replay.collections != CollectionBook()


@pytest.mark.parametrize(
    "body",
    [
        OPENED,
        replace(OPENED, campaign=OPENED.campaign.replace('"epsilon":2', '"epsilon":3')),
    ],
)
def test_a_name_is_opened_once(ledger: Ledger, body: CollectionOpened) -> None:
    opened(ledger)
    with pytest.raises(ValueError, match="opened twice"):
        opened(ledger, body)


def test_only_what_is_open_is_closed_and_once(ledger: Ledger) -> None:
    with pytest.raises(ValueError, match="not open"):
        closed(ledger)
    opened(ledger)
    with pytest.raises(ValueError, match="more answers than it allows"):
        closed(ledger, replace(CLOSED, n_respondents=101))
    closed(ledger)
    with pytest.raises(ValueError, match="not open"):
        closed(ledger)


def test_a_table_and_a_collection_have_different_names(ledger: Ledger) -> None:
    opened(ledger)
    table = TableOpened("schema", "data", Fraction(1), "rows")
    with pytest.raises(ValueError, match="name of a collection"):
        ledger.append("survey", lambda _history: table)
    ledger.append("both", lambda _history: table)
    with pytest.raises(ValueError, match="name of a table"):
        opened(ledger, replace(OPENED, campaign=campaign_text(survey("both"))))


def test_nothing_of_a_table_is_spent(ledger: Ledger) -> None:
    opened(ledger)
    assert ledger.tables() == ()


def test_two_servers_of_a_ledger_know_the_same(tmp_path: Path) -> None:
    path = tmp_path / "ledger"
    with open_ledger(path) as one, open_ledger(path) as other:
        opened(one)
        with pytest.raises(ValueError, match="opened twice"):
            opened(other)
        other.refresh()
        assert other.collections == one.collections


def test_values_check_themselves() -> None:
    with pytest.raises(ValueError, match="at least one respondent"):
        replace(OPENED, n_respondents_max=0)
    with pytest.raises(TypeError, match="a JSON object"):
        replace(OPENED, campaign="[]")
    for wrong in ({"n_respondents": -1}, {"counts_digest": "ab"}):
        with pytest.raises(ValueError, match="number of answers"):
            replace(CLOSED, **wrong)


def test_entries_are_about_no_table(tmp_path: Path) -> None:
    path = tmp_path / "ledger"
    with open_ledger(path) as ledger:
        opened(ledger)
        closed(ledger)
    with closing(open_reader(str(path))) as reader:
        assert {one.table for one in reader.entries_after(0)} == {""}
    replay = Replay()
    with pytest.raises(ValueError, match="must not name a table"):
        replay.appended("2026-01-01T00:00:00.000+00:00", "survey", OPENED)
