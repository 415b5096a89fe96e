"""The page of docs/howto/collections.md, as it stands there, in a browser: it answers once."""

import json
import queue
import re
import tomllib
from collections.abc import Iterator
from contextlib import contextmanager
from functools import partial
from http.server import SimpleHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from threading import Thread

import pytest

from proxy.cli.collection import PAGE_MODULES
from proxy.cli.serving.running import Running, running
from proxy.config.settings import load
from tests.support.chromium import visiting
from tests.support.commands import Run, command_runner
from tests.support.console_page import ROOT, SavedFile, steps

SECONDS = 60
URL = "https://collect.example.org"
CONFIGURATION = """\
[server]
listen = "127.0.0.1:0"
allow_anonymous = false
respondents_listen = "127.0.0.1:0"

[ledger]
path = "people.ledger"

[tables.people]
source = "people.csv"
budget = 1.0
n_records_max = 1000
half_width = 10

[tables.people.columns.sex]
kind = "category"
levels = ["Female", "Male"]
"""
# What a respondent does, and a look at what the page then says.
VISITOR = """<script type="module">
const form = document.getElementById("survey"), said = document.getElementById("said");
form.elements.education.value = "school";
form.elements.region.value = "3";
new MutationObserver(() => fetch("./done", { method: "POST", body: JSON.stringify({
  said: said.textContent, kept: localStorage.getItem("tacit-answers") }) }),
).observe(said, { childList: true });
form.requestSubmit();
</script>"""


@pytest.fixture
def run(capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch) -> Run:
    return command_runner(capsys, monkeypatch)


@pytest.fixture
def documented() -> dict[str, str]:
    page = (ROOT / "docs/howto/collections.md").read_text()
    return {one.name: one.text for one in steps(page) if isinstance(one, SavedFile)}


@pytest.fixture
def server(tmp_path: Path) -> Iterator[Running]:
    (tmp_path / "people.csv").write_text("sex\nFemale\nMale\n")
    (tmp_path / "tacit.toml").write_text(CONFIGURATION)
    with running(load(tmp_path / "tacit.toml")) as here:
        yield here


class Site(SimpleHTTPRequestHandler):
    """The files of a folder, and an ear for what its page says."""

    said: queue.Queue[dict[str, str | None]]

    def do_POST(self) -> None:
        length = int(self.headers["Content-Length"])
        self.said.put(json.loads(self.rfile.read(length)))
        self.send_response(204)
        self.end_headers()

    def log_message(self, format: str, *args: object) -> None:  # noqa: A002 - as it is inherited
        """Nothing: a test's output is its own."""


@contextmanager
def site_of(folder: Path) -> Iterator[tuple[str, queue.Queue[dict[str, str | None]]]]:
    said: queue.Queue[dict[str, str | None]] = queue.Queue()
    kind = type("SiteHere", (Site,), {"said": said})
    with ThreadingHTTPServer(("127.0.0.1", 0), partial(kind, directory=str(folder))) as site:
        Thread(target=site.serve_forever, daemon=True).start()
        yield f"http://127.0.0.1:{site.server_address[1]}/", said
        site.shutdown()


def test_the_page_of_the_documentation_answers_once(
    run: Run,
    documented: dict[str, str],
    server: Running,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    config = ("--config", tmp_path / "tacit.toml")
    issued = run("token", "issue", *config, "--analyst", "ann", "--role", "owner", "--all-tables")
    token = re.search(r"tacit_[\w-]+", issued.out)
    assert token, issued
    monkeypatch.setenv("TACIT_SERVER", server.wires.grpc.address)
    monkeypatch.setenv("TACIT_TOKEN", token[0])
    (tmp_path / "survey.toml").write_text(documented["survey.toml"])
    asked = ("--attributes", tmp_path / "survey.toml", "--epsilon", "1")
    assert run("collection", "create", "survey", *asked).code == 0
    site = tmp_path / "site"
    written = run("collection", "page", site)
    assert written.code == 0
    assert written.out.splitlines() == [f"Wrote {site / name}" for name in PAGE_MODULES]
    page = documented["site/index.html"]
    assert page.count(URL) == 1
    here = page.replace(URL, f"http://{server.respondents_address}") + VISITOR
    (site / "index.html").write_text(here)
    found = []
    with site_of(site) as (address, said):
        for _ in range(2):
            with visiting(address, tmp_path / "profile"):
                found.append(said.get(timeout=SECONDS))
    assert found[0]["said"] == "Your randomised answer is counted."
    assert found[1]["said"] == "It was counted before."
    assert found[0]["kept"] == found[1]["kept"] is not None
    listed = run("collection", "list").out
    assert re.search(r"survey +│ open +│ anybody +│ +1 │", listed), listed


def test_the_configuration_of_the_documentation_is_one(documented: dict[str, str]) -> None:
    more = tomllib.loads(documented["tacit.toml"])
    assert set(more["server"]) == {"respondents_listen"}
    ours = tomllib.loads(CONFIGURATION)["server"]
    assert set(more["server"]) < set(ours)


def test_the_modules_of_a_page_are_in_the_distribution() -> None:
    project = tomllib.loads((ROOT / "pyproject.toml").read_text())
    assert "*.mjs" in project["tool"]["setuptools"]["package-data"]["*"]
    assert all((ROOT / "local_dp" / name).is_file() for name in PAGE_MODULES)


def test_a_folder_that_cannot_be_made_is_said_so(run: Run, tmp_path: Path) -> None:
    ended = run("collection", "page", tmp_path / "not" / "there")
    assert ended.code == 1
    assert ended.err.startswith("error [")
