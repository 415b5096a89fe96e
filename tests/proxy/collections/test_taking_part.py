"""The module for web pages, run by Node against a served collection: one person is counted once."""

import json
import re
from collections.abc import Iterator, Mapping
from contextlib import closing
from pathlib import Path
from typing import Any

import pytest

from accountant.ledger.opening import open_ledger
from cube.measurement import UNITS_PER_EPSILON
from local_dp.campaign import campaign_digest, campaign_text
from local_dp.respondent import Level
from proxy.api.requests import LOCAL
from proxy.collections.http import serving_respondents
from proxy.collections.service import CollectionService
from proxy.collections.tokens import new_token
from proxy.scheduling.fair_share import FairShare
from tests.support.campaigns import survey
from tests.support.node import JavaScript, javascript

TEXT = campaign_text(survey())
ROW: dict[str, Level] = {"education": "school", "smokes": False, "region": 3}
LIMIT = 2 * UNITS_PER_EPSILON
ANSWERS, TOKENS = "tacit-answers", "tacit-tokens"
NO_TOKEN = "8675309"  # noqa: S105 - it is none


@pytest.fixture
def service(tmp_path: Path) -> Iterator[CollectionService]:
    with (
        open_ledger(tmp_path / "ledger") as ledger,
        closing(CollectionService(ledger, tmp_path / "ledger.collections")) as made,
    ):
        made.create(LOCAL, TEXT, n_respondents_max=2)
        yield made


@pytest.fixture
def address(service: CollectionService) -> Iterator[str]:
    with serving_respondents("127.0.0.1:0", service, FairShare()) as here:
        yield here


@pytest.fixture(scope="module")
def js() -> Iterator[JavaScript]:
    with javascript() as process:
        yield process


def url_of(address: str, name: str = "survey") -> str:
    return f"http://{address}/collections/{name}"


def visit(js: JavaScript, *urls: str, **more: object) -> Mapping[str, Any]:
    """What one person hears, one visit after another; and what their browser keeps."""
    return js.of("takePart", **{"urls": urls, "row": ROW, "limit": LIMIT, **more})


def n_counted(service: CollectionService) -> int:
    return service.status(LOCAL, "survey").n_respondents


def test_whoever_comes_again_is_counted_once(
    js: JavaScript, service: CollectionService, address: str
) -> None:
    found = visit(js, *[url_of(address)] * 3)
    assert found["outcomes"] == [True, False, False]
    assert n_counted(service) == 1
    (stranger,) = visit(js, url_of(address), token=NO_TOKEN)["outcomes"]
    assert stranger["notTaken"] == "invalid_request"
    (careful,) = visit(js, url_of(address), limit=LIMIT // 4)["outcomes"]
    assert set(careful) == {"refused"}
    (elsewhere,) = visit(js, url_of(address, "surveys"))["outcomes"]
    assert elsewhere["notTaken"] == "unknown_name"
    assert n_counted(service) == 1


def test_one_answer_counts_once_by_whatever_url_it_comes(
    js: JavaScript, service: CollectionService, address: str
) -> None:
    port = address.rpartition(":")[2]
    urls = [url_of(address), url_of(f"localhost:{port}"), url_of(address, "%73urvey")]
    found = visit(js, *urls, url_of(address, "%73%75rvey"))
    assert found["outcomes"] == [True, False, False, False]
    assert n_counted(service) == 1
    assert set(found["kept"]) == {ANSWERS, f"{TOKENS} {campaign_digest(TEXT)}"}


def test_a_token_says_nothing_of_the_answer_and_is_of_no_two_campaigns(
    js: JavaScript, service: CollectionService, address: str
) -> None:
    service.create(LOCAL, campaign_text(survey("other")), n_respondents_max=2)
    found = visit(js, url_of(address), url_of(address, "other"), limit=2 * LIMIT)
    assert found["outcomes"] == [True, True]
    tokens = [token for place, token in found["kept"].items() if place.startswith(TOKENS)]
    assert len(set(tokens)) == 2
    assert all(re.fullmatch("[0-9a-f]{64}", one) for one in tokens)
    sent = json.loads(found["kept"][ANSWERS]).values()
    assert sorted(token for _, _, token in sent) == sorted(tokens)
    assert not any(one in answer for _, answer, _ in sent for one in tokens)


def test_a_token_is_given_to_no_later_campaign_at_the_same_url(
    js: JavaScript, address: str
) -> None:
    """Whatever a page may have kept by URL: two campaigns with one token are known to be one's."""
    by_url, digest = new_token(), campaign_digest(TEXT)
    found = visit(js, url_of(address), kept={f"{TOKENS} {url_of(address)}": by_url})
    assert found["outcomes"] == [True]
    token = found["kept"][f"{TOKENS} {digest}"]
    assert token == json.loads(found["kept"][ANSWERS])[digest][2] != by_url


def test_an_answer_is_sent_under_the_token_that_is_kept_with_it(
    js: JavaScript, service: CollectionService, address: str
) -> None:
    """Two invitations and one store are one answer."""
    text = campaign_text(survey("panel"))
    service.create(LOCAL, text, n_respondents_max=3, is_by_invitation=True)
    mine, another = service.invitations(LOCAL, "panel", 2)
    first = visit(js, url_of(address, "panel"), token=mine)
    again = visit(js, url_of(address, "panel"), token=another, kept=first["kept"])
    assert (first["outcomes"], again["outcomes"]) == ([True], [False])
    assert first["warned"] == []
    assert ["already sent under another token" in one for one in again["warned"]] == [True]
    assert again["kept"] == first["kept"]
    assert service.status(LOCAL, "panel").n_respondents == 1


def test_an_answer_from_before_tokens_were_kept_with_it_counts_once_or_not_at_all(
    js: JavaScript, service: CollectionService, address: str
) -> None:
    kept = visit(js, url_of(address))["kept"]
    answers = json.loads(kept[ANSWERS])
    old = {**kept, ANSWERS: json.dumps({name: one[:2] for name, one in answers.items()})}
    again = visit(js, url_of(address), kept=old)
    assert again["outcomes"] == [False]
    assert again["kept"] == kept
    (lost,) = visit(js, url_of(address), kept={ANSWERS: old[ANSWERS]})["outcomes"]
    assert lost == {"unreadable": "the token of a kept answer is lost"}
    assert n_counted(service) == 1


def test_whoever_has_a_level_that_is_not_listed_is_counted_and_told_afterwards(
    js: JavaScript, service: CollectionService, address: str
) -> None:
    found = visit(js, url_of(address), row={**ROW, "education": "unheard of", "region": "3"})
    assert found["outcomes"] == [True]
    (warned,) = found["warned"]
    assert "does not list the row's level of region, education." in warned
    assert n_counted(service) == 1


@pytest.mark.parametrize("end", ["closed", "full"])
def test_whoever_never_heard_of_it_learns_that_they_were_counted(
    js: JavaScript, service: CollectionService, address: str, end: str
) -> None:
    kept = visit(js, url_of(address))["kept"]
    if end == "closed":
        service.close_collection(LOCAL, "survey")
        code, text = "invalid_request", "takes no more answers"
    else:
        assert visit(js, url_of(address))["outcomes"] == [True]
        code, text = "too_large", "as many answers as its owner asked for"
    n_before = n_counted(service)
    assert visit(js, url_of(address), kept=kept)["outcomes"] == [False]
    late = visit(js, url_of(address))
    assert late["outcomes"][0]["notTaken"] == code
    assert text in late["outcomes"][0]["message"]
    assert late["kept"] == {}, "nothing was drawn, so that no epsilon is lost"
    # An answer that was drawn in time, and never came.
    digest = campaign_digest(TEXT)
    units, answer, _ = json.loads(kept[ANSWERS])[digest]
    unheard = {ANSWERS: json.dumps({digest: [units, answer, new_token()]})}
    (lost,) = visit(js, url_of(address), kept=unheard)["outcomes"]
    assert lost["notTaken"] == code
    assert n_counted(service) == n_before


def test_an_invited_person_who_comes_again_after_the_end_learns_that_they_were_counted(
    js: JavaScript, service: CollectionService, address: str
) -> None:
    text = campaign_text(survey("panel"))
    service.create(LOCAL, text, n_respondents_max=1, is_by_invitation=True)
    mine, another = service.invitations(LOCAL, "panel", 2)
    first = visit(js, url_of(address, "panel"), token=mine)
    service.close_collection(LOCAL, "panel")
    again = visit(js, url_of(address, "panel"), token=mine, kept=first["kept"])
    assert (first["outcomes"], again["outcomes"]) == ([True], [False])
    (late,) = visit(js, url_of(address, "panel"), token=another)["outcomes"]
    assert late["notTaken"] == "invalid_request"
