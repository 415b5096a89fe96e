"""Respondents in Python: what they tell stays with them, and counts once."""

import json
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import closing
from pathlib import Path
from typing import Any

import pytest

import tacit_client
from accountant.ledger.opening import open_ledger
from local_dp.answer_store import AnswersUnreadable
from local_dp.campaign import campaign_text
from local_dp.respondent import Level
from proxy.api.requests import LOCAL
from proxy.collections.service import CollectionService
from proxy.collections.tokens import new_token
from tests.support.campaigns import survey
from tests.support.engine_fake import CannedEngine
from tests.support.hostile_campaigns import ANYTHING, NO_JSON, searching
from tests.support.serving import serving

ROW: dict[str, Level] = {"education": "school", "smokes": True, "region": 2}


@pytest.fixture
def collections(tmp_path: Path) -> Iterator[CollectionService]:
    with (
        open_ledger(tmp_path / "ledger") as ledger,
        closing(CollectionService(ledger, tmp_path / "counts")) as made,
    ):
        made.create(LOCAL, campaign_text(survey()), n_respondents_max=100)
        yield made


@pytest.fixture
def server(collections: CollectionService) -> Iterator[str]:
    with serving(CannedEngine(), collections=collections) as address:
        yield address


def respond(server: str, store: Path, token: str | None = None, epsilon: str = "2") -> bool:
    return tacit_client.respond(
        "survey", ROW, store=store, epsilon_max=epsilon, token=token, server=server
    )


def test_respondents_are_counted_once_each(
    server: str, collections: CollectionService, tmp_path: Path
) -> None:
    stores = [tmp_path / str(one) for one in range(12)]
    with ThreadPoolExecutor(6) as pool:
        assert list(pool.map(lambda one: respond(server, one), stores)) == [True] * 12
        assert list(pool.map(lambda one: respond(server, one), stores)) == [False] * 12
    assert collections.status(LOCAL, "survey").n_respondents == 12


def test_more_epsilon_than_the_respondent_allows_sends_nothing(
    server: str, collections: CollectionService, tmp_path: Path
) -> None:
    with pytest.raises(
        tacit_client.InterfaceError, match="more epsilon than the respondent's limit leaves"
    ):
        respond(server, tmp_path / "answers", epsilon="1.99")
    assert collections.status(LOCAL, "survey").n_respondents == 0


def test_a_row_without_an_answer_sends_nothing(server: str, tmp_path: Path) -> None:
    with pytest.raises(tacit_client.InterfaceError, match="does not have region"):
        tacit_client.respond("survey", {}, store=tmp_path / "a", epsilon_max=2, server=server)


@pytest.mark.parametrize("own", [*ANYTHING, *NO_JSON], ids=lambda own: repr(own)[:20])
def test_whether_something_is_sent_says_nothing_of_the_row(
    server: str, collections: CollectionService, tmp_path: Path, own: Any
) -> None:
    collections.create(LOCAL, searching("no", "-"), n_respondents_max=10)

    def answer() -> bool:
        return tacit_client.respond(
            "search", {"hiv": own}, store=tmp_path / "a", epsilon_max=2, server=server
        )

    if own == "no":
        assert answer()
    else:
        with pytest.warns(UserWarning, match="does not list the row's level of hiv"):
            assert answer()
    assert collections.status(LOCAL, "search").n_respondents == 1


def test_what_the_server_refuses_is_a_refusal(server: str, tmp_path: Path) -> None:
    with pytest.raises(tacit_client.Refused, match="no collection"):
        tacit_client.respond("other", ROW, store=tmp_path / "a", epsilon_max=2, server=server)


def test_an_invited_respondent_shows_the_token_that_they_were_given(
    server: str, collections: CollectionService, tmp_path: Path
) -> None:
    text = campaign_text(survey("panel"))
    collections.create(LOCAL, text, n_respondents_max=10, is_by_invitation=True)
    (token,) = collections.invitations(LOCAL, "panel", 1)

    def answer(shown: str | None) -> bool:
        return tacit_client.respond(
            "panel", ROW, store=tmp_path / "a", epsilon_max=2, token=shown, server=server
        )

    with pytest.raises(tacit_client.Refused, match="by invitation"):
        answer(None)
    assert [answer(token), answer(token)] == [True, False]
    (another,) = collections.invitations(LOCAL, "panel", 1)
    with pytest.warns(UserWarning, match="already sent under another token"):
        assert not answer(another)
    assert collections.status(LOCAL, "panel").n_respondents == 1


@pytest.mark.parametrize("end", ["closed", "full"])
def test_whoever_never_heard_of_it_learns_that_they_were_counted(
    server: str, collections: CollectionService, tmp_path: Path, end: str
) -> None:
    assert respond(server, tmp_path / "mine")
    reason = {"closed": "no more answers", "full": "as many answers as"}[end]
    if end == "closed":
        collections.close_collection(LOCAL, "survey")
    else:
        assert [respond(server, tmp_path / str(one)) for one in range(99)] == [True] * 99
    assert not respond(server, tmp_path / "mine")
    with pytest.raises(tacit_client.Refused, match=reason):
        respond(server, tmp_path / "late")
    assert not (tmp_path / "late").exists(), "nothing was drawn, so that no epsilon is lost"
    (tmp_path / "mine.secret").unlink()
    assert not respond(server, tmp_path / "mine"), "the token is kept with the answer"
    # An answer that was drawn in time, and never came: its token is another one.
    kept = json.loads((tmp_path / "mine").read_text())
    unheard = {name: [*one[:2], new_token()] for name, one in kept.items()}
    (tmp_path / "mine").write_text(json.dumps(unheard))
    with pytest.raises(tacit_client.Refused, match=reason):
        respond(server, tmp_path / "mine")


def test_an_answer_whose_token_is_lost_is_not_counted_again(
    server: str, collections: CollectionService, tmp_path: Path
) -> None:
    """It was kept by an earlier version, without its token, and the secret beside it is gone."""
    assert respond(server, tmp_path / "mine")
    kept = json.loads((tmp_path / "mine").read_text())
    (tmp_path / "mine").write_text(json.dumps({name: one[:2] for name, one in kept.items()}))
    assert not respond(server, tmp_path / "mine")
    (tmp_path / "mine").write_text(json.dumps({name: one[:2] for name, one in kept.items()}))
    (tmp_path / "mine.secret").unlink()
    with pytest.raises(AnswersUnreadable):
        respond(server, tmp_path / "mine")
    assert collections.status(LOCAL, "survey").n_respondents == 1
