"""The module for web pages, run by Node against a served collection: one person is counted once."""

import re
from collections.abc import Iterator, Mapping
from contextlib import closing
from pathlib import Path
from typing import Any

import pytest

from accountant.ledger.open_ledger import open_ledger
from cube.measurement import UNITS_PER_EPSILON
from local_dp.campaign_text import campaign_digest, campaign_text
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
    assert not any(one in found["kept"][ANSWERS] for one in tokens)


def test_a_token_that_an_earlier_page_kept_by_url_still_counts_once(
    js: JavaScript, service: CollectionService, address: str
) -> None:
    before = visit(js, url_of(address))["kept"]
    place = f"{TOKENS} {campaign_digest(TEXT)}"
    old = {ANSWERS: before[ANSWERS], f"{TOKENS} {url_of(address)}": before[place]}
    found = visit(js, url_of(address), url_of(address, "%73urvey"), kept=old)
    assert found["outcomes"] == [False, False]
    assert found["kept"][place] == before[place]
    assert n_counted(service) == 1


@pytest.mark.parametrize("end", ["closed", "full"])
def test_whoever_never_heard_of_it_learns_that_they_were_counted(
    js: JavaScript, service: CollectionService, address: str, end: str
) -> None:
    kept = visit(js, url_of(address))["kept"]
    if end == "closed":
        service.close_collection(LOCAL, "survey")
        code, text = "invalid_request", "takes no answers any more"
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
    token = f"{TOKENS} {campaign_digest(TEXT)}"
    (lost,) = visit(js, url_of(address), kept={**kept, token: new_token()})["outcomes"]
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
