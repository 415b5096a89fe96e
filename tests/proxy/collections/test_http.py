"""Respondents over HTTP: asked, answered and counted; by a script, from Node, from a browser."""

import http.client
import json
import queue
import socket
import threading
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import closing
from pathlib import Path
from typing import NamedTuple

import pytest

import local_dp
from accountant.ledger.credentials import EVERY_TABLE, Role
from accountant.ledger.limits import Payer
from accountant.ledger.opening import open_ledger
from cube.measurement import UNITS_PER_EPSILON
from cube.refusals import ConfigurationInvalid, StoreUnavailable
from local_dp.campaign import campaign_text
from local_dp.respondent import Entropy, Level, check_campaign, randomised
from local_dp.submission import N_CHARACTERS_MAX
from proxy.api.requests import Caller
from proxy.cli.collection import PAGE_MODULES
from proxy.collections import http as respondents_http
from proxy.collections.http import serving_respondents
from proxy.collections.service import CollectionService
from proxy.collections.status import Assignment
from proxy.collections.tokens import new_token
from proxy.monitoring.loopback_http import serving_http
from proxy.scheduling.fair_share import FairShare
from tests.support.campaigns import survey
from tests.support.chromium import visiting
from tests.support.postgres import wait_until

OWNER = Caller(Payer("owner"), Role.OWNER, (EVERY_TABLE,))
TEXT = campaign_text(survey())
ROW: dict[str, Level] = {"education": "school", "smokes": False, "region": 3}
LIMIT = 2 * UNITS_PER_EPSILON
SECONDS = 60.0
CANARY = "8675309"


class Served(NamedTuple):
    service: CollectionService
    address: str

    @property
    def url(self) -> str:
        return f"http://{self.address}/collections/survey"


class Reply(NamedTuple):
    status: int
    headers: dict[str, str]
    text: str

    @property
    def code(self) -> str:
        return str(json.loads(self.text)["code"])


@pytest.fixture
def served(tmp_path: Path) -> Iterator[Served]:
    with (
        open_ledger(tmp_path / "ledger") as ledger,
        closing(CollectionService(ledger, tmp_path / "ledger.collections")) as service,
        serving_respondents("127.0.0.1:0", service, FairShare()) as address,
    ):
        service.create(OWNER, TEXT, n_respondents_max=5)
        yield Served(service, address)


def call(  # noqa: PLR0913 - as many parts as a request has
    served: Served,
    method: str,
    what: str,
    *,
    token: str | None = None,
    body: str | None = None,
    name: str = "survey",
) -> Reply:
    headers = {} if token is None else {"Authorization": f"Bearer {token}"}
    with closing(http.client.HTTPConnection(served.address, timeout=SECONDS)) as connection:
        connection.request(method, f"/collections/{name}/{what}", body, headers)
        reply = connection.getresponse()
        return Reply(reply.status, dict(reply.getheaders()), reply.read().decode())


def answer(text: str = TEXT) -> str:
    return randomised(check_campaign(text), ROW, Entropy().below)


def n_counted(served: Served) -> int:
    return served.service.status(OWNER, "survey").n_respondents


def test_what_is_asked_comes_byte_by_byte_and_an_answer_counts_once(served: Served) -> None:
    token = new_token()
    asked = call(served, "GET", "assignment", token=token)
    assert (asked.status, asked.text) == (200, TEXT)
    sent = answer(asked.text)
    for is_known in (False, True):
        found = call(served, "POST", "answers", token=token, body=sent)
        assert (found.status, json.loads(found.text)) == (200, {"counted_before": is_known})
    assert n_counted(served) == 1


def test_pages_of_any_origin_may_call_and_nothing_is_kept_on_the_way(served: Served) -> None:
    asked = call(served, "OPTIONS", "answers")
    assert asked.status == 200
    assert asked.headers["Access-Control-Allow-Methods"] == "GET, POST"
    assert asked.headers["Access-Control-Allow-Headers"] == "authorization, content-type"
    for reply in (asked, call(served, "GET", "assignment"), call(served, "GET", "nothing")):
        assert reply.headers["Access-Control-Allow-Origin"] == "*"
        assert "Access-Control-Allow-Credentials" not in reply.headers
        assert reply.headers["Cache-Control"] == "no-store"
        assert reply.headers["X-Content-Type-Options"] == "nosniff"


def test_each_refusal_has_its_status_and_code(served: Served) -> None:
    token = new_token()
    refused: list[tuple[int, str, Callable[[], Reply]]] = [
        (401, "not_authenticated", lambda: call(served, "GET", "assignment")),
        (400, "invalid_request", lambda: call(served, "GET", "assignment", token=CANARY)),
        (404, "unknown_name", lambda: call(served, "GET", "assignment", token=token, name="x")),
        (404, "unknown_name", lambda: call(served, "GET", "counts", token=token)),
        (400, "invalid_request", lambda: call(served, "GET", "answers", token=token)),
        (400, "invalid_request", lambda: call(served, "DELETE", "answers", token=token)),
        (400, "invalid_request", lambda: call(served, "POST", "answers", token=token, body="{}")),
        (400, "invalid_request", lambda: call(served, "POST", "answers", token=token)),
    ]
    for status, code, made in refused:
        reply = made()
        assert (reply.status, reply.code) == (status, code)
    assert n_counted(served) == 0


def test_a_collection_that_is_full_or_closed_takes_no_answer(served: Served) -> None:
    for _ in range(5):
        assert call(served, "POST", "answers", token=new_token(), body=answer()).status == 200
    full = call(served, "POST", "answers", token=new_token(), body=answer())
    assert (full.status, full.code) == (409, "too_large")
    served.service.close_collection(OWNER, "survey")
    closed = call(served, "GET", "assignment", token=new_token())
    assert (closed.status, closed.code) == (400, "invalid_request")
    asked = call(served, "GET", "campaign", token=new_token())
    assert (asked.status, asked.text) == (200, TEXT)


def test_an_invitation_is_needed_where_the_owner_says_so(served: Served) -> None:
    text = campaign_text(survey("invited"))
    served.service.create(OWNER, text, n_respondents_max=5, is_by_invitation=True)
    asked = call(served, "GET", "assignment", token=new_token(), name="invited")
    absent = call(served, "GET", "assignment", token=new_token(), name="missing")
    assert (asked.status, asked.code) == (404, "unknown_name")
    assert asked.text.replace("invited'", "missing'") == absent.text
    (token,) = served.service.invitations(OWNER, "invited", 1)
    assert call(served, "GET", "assignment", token=token, name="invited").text == text


def raw(served: Served, request: bytes) -> bytes:
    host, _, port = served.address.rpartition(":")
    with socket.create_connection((host, int(port)), timeout=SECONDS) as peer:
        peer.sendall(request)
        peer.shutdown(socket.SHUT_WR)
        received = b""
        while chunk := peer.recv(65536):
            received += chunk
    return received


@pytest.mark.parametrize(
    "length",
    ["", "-1", "1.5", "+1", "\xb2", "9" * 5000, str(N_CHARACTERS_MAX + 1), "100"],
    ids=lambda length: length[:8],
)
def test_a_body_has_the_length_that_was_said_and_is_bounded(served: Served, length: str) -> None:
    head = f"POST /collections/survey/answers HTTP/1.1\r\nAuthorization: Bearer {new_token()}\r\n"
    request = f"{head}Content-Length: {length}\r\n\r\nshort".encode("latin-1")
    assert b"400 Bad Request" in raw(served, request).partition(b"\n")[0]
    assert n_counted(served) == 0


def test_a_body_that_dribbles_in_is_given_up(
    served: Served, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(respondents_http, "BODY_SECONDS_MAX", 0.0)
    reply = call(served, "POST", "answers", token=new_token(), body=answer())
    assert (reply.status, reply.code) == (400, "invalid_request")


def test_nothing_of_a_request_is_logged(
    served: Served, monkeypatch: pytest.MonkeyPatch, capfd: pytest.CaptureFixture[str]
) -> None:
    def fail(*_: object) -> bool:
        raise LookupError(CANARY)

    call(served, "GET", "assignment", token=CANARY, name=CANARY)
    call(served, "POST", "answers", token=new_token(), body=CANARY)
    monkeypatch.setattr(served.service, "submit", fail)
    failed = call(served, "POST", "answers", token=new_token(), body=CANARY)
    assert (failed.status, failed.code) == (500, "internal")
    written = [failed.text]

    def has_said_why() -> bool:  # lines may be written a moment later
        written.extend(capfd.readouterr())
        return "LookupError" in "".join(written)

    wait_until(has_said_why)
    assert CANARY not in "".join(written)


def test_counts_that_cannot_be_kept_are_said_to_be(
    served: Served, monkeypatch: pytest.MonkeyPatch
) -> None:
    def full(*_: object) -> bool:
        raise StoreUnavailable("The disk is full.")

    monkeypatch.setattr(served.service, "submit", full)
    reply = call(served, "POST", "answers", token=new_token(), body=answer())
    assert (reply.status, reply.code) == (503, "store_unavailable")


def test_respondents_work_in_turn(tmp_path: Path) -> None:
    """Of however many, the process gives its time to a few at once, so that analysts go on."""
    share, working, at_once = FairShare(n_at_once=2), threading.Semaphore(0), []
    release = threading.Event()

    class Slow:
        def assignment(self, name: str, token: str, *, is_for_kept: bool = False) -> Assignment:
            raise NotImplementedError

        def submit(self, name: str, token: str, answer: str) -> bool:
            assert (name, answer, len(token)) == ("survey", "{}", 64)
            at_once.append(share._accounts[respondents_http.ACCOUNT].n_working)
            working.release()
            assert release.wait(SECONDS)
            return True

    with (
        open_ledger(tmp_path / "ledger") as ledger,
        closing(CollectionService(ledger, tmp_path / "counts")) as service,
        serving_respondents("127.0.0.1:0", Slow(), share) as address,
        ThreadPoolExecutor(6) as pool,
    ):
        here = Served(service, address)
        replies = [
            pool.submit(call, here, "POST", "answers", token=new_token(), body="{}")
            for _ in range(6)
        ]
        for _ in range(2):
            assert working.acquire(timeout=SECONDS)
        assert not working.acquire(timeout=0.2), "a third one works"
        release.set()
        assert [one.result(SECONDS).status for one in replies] == [200] * 6
    assert max(at_once) == 2


def test_it_listens_on_loopback_only(served: Served) -> None:
    with (
        pytest.raises(ConfigurationInvalid, match="loopback") as refused,
        serving_respondents("0.0.0.0:0", served.service, FairShare()),
    ):
        pass
    assert "respondents_listen" in str(refused.value.hint)


PAGE = """<!doctype html><meta charset="utf-8"><title>Survey</title><script type="module">
import { LocalAnswers } from "./answer_store.mjs";
import { Respondent } from "./respondent.mjs";
import { LocalTokens, takePart } from "./taking_part.mjs";
let outcome;
try {
  const respondent = new Respondent(new LocalAnswers(), { epsilonUnitsMax: LIMIT });
  outcome = await takePart("URL", new LocalTokens(), respondent, ROW);
} catch (error) {
  outcome = `${error}`;
}
const kept = localStorage.getItem("tacit-answers");
await fetch("./done", { method: "POST", body: JSON.stringify({ outcome, kept }) });
</script>"""


def test_a_page_in_a_browser_takes_part_once(served: Served, tmp_path: Path) -> None:
    """From another origin than the collection's, with the browser's own storage and locks."""
    package = Path(local_dp.__file__).parent
    page = PAGE.replace("URL", served.url).replace("LIMIT", str(LIMIT))
    pages = {
        "/": ("text/html", page.replace("ROW", json.dumps(ROW)).encode()),
        **{f"/{name}": ("text/javascript", (package / name).read_bytes()) for name in PAGE_MODULES},
    }
    said: queue.Queue[dict[str, object]] = queue.Queue()

    def site(environ: dict[str, object], start_response: Callable[..., object]) -> list[bytes]:
        kind, body = pages.get(str(environ["PATH_INFO"]), ("text/plain", b""))
        if environ["PATH_INFO"] == "/done":
            length = int(str(environ["CONTENT_LENGTH"]))
            said.put(json.loads(environ["wsgi.input"].read(length)))  # type: ignore[attr-defined]
        start_response("200 OK", [("Content-Type", kind), ("Content-Length", str(len(body)))])
        return [body]

    found = []
    with serving_http("127.0.0.1:0", site, setting="site", n_requests_max=32) as address:
        for _ in range(2):
            with visiting(f"http://{address}/", tmp_path / "profile"):
                found.append(said.get(timeout=SECONDS))
    assert [one["outcome"] for one in found] == [True, False]
    assert found[0]["kept"] == found[1]["kept"] is not None
    assert n_counted(served) == 1
