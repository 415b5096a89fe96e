"""`tacit token` and `tacit limit`, and the token that client commands show, on the command line."""

import io
import json
import re
from collections.abc import Iterator
from pathlib import Path

import pytest
import structlog

from accountant.ledger.collections import CollectionOpened
from accountant.ledger.opening import open_ledger
from local_dp.campaign import campaign_text
from proxy.identity.authenticate import LedgerAuthenticator
from proxy.monitoring.logs import configure_logs
from proxy.shared.tokens import is_token, new_token
from tests.support.a_stream import write_a_stream
from tests.support.campaigns import survey
from tests.support.commands import Run
from tests.support.engine_fake import COUNT_ALL, CannedEngine
from tests.support.identities import token_for
from tests.support.serving import serving

CONFIGURATION = """\
[ledger]
path = "people.ledger"
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
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    (tmp_path / "people.csv").write_text("age\n40\n")
    (tmp_path / "tacit.toml").write_text(CONFIGURATION)
    monkeypatch.chdir(tmp_path)
    return tmp_path


@pytest.fixture(autouse=True)
def _server_logs_elsewhere() -> Iterator[None]:
    """The server runs in this process, and its log is not what the command prints."""
    configure_logs(io.StringIO())
    yield
    structlog.reset_defaults()


def entries(folder: Path, kind: str) -> list[dict[str, object]]:
    with open_ledger(folder / "people.ledger") as ledger:
        return [json.loads(entry.body) for entry in ledger.entries() if entry.kind == kind]


# Tokens.


def test_a_token_opens_a_stream(run: Run, folder: Path) -> None:
    assert "no table 'visits'" in run("token", "issue", "--analyst", "a", "--table", "visits").err
    with open_ledger(folder / "people.ledger") as ledger:
        write_a_stream(ledger)
    assert run("token", "issue", "--analyst", "ann", "--table", "visits").code == 0
    assert run("token", "issue", "--analyst", "ann", "--table", "hits").code != 0  # dropped


def test_a_token_opens_a_collection(run: Run, folder: Path) -> None:
    assert run("token", "issue", "--analyst", "ann", "--table", "survey").code != 0
    text = campaign_text(survey("survey"))
    with open_ledger(folder / "people.ledger") as ledger:
        opened = CollectionOpened(text, 10, is_by_invitation=False, by="owner")
        ledger.append_collection(lambda _: opened)
    assert run("token", "issue", "--analyst", "ann", "--table", "survey").code == 0


def test_a_token_is_printed_alone_once_and_kept_nowhere(run: Run, folder: Path) -> None:
    issued = run("token", "issue", "--analyst", "ann", "--table", "people")
    token = issued.out.removesuffix("\n")
    assert issued.code == 0
    assert is_token(token)
    assert token not in issued.err
    listed = run("token", "list").out
    assert re.search(r"ann .* analyst .* people .* token .* in force", listed)
    assert token not in listed
    for file in folder.iterdir():
        assert token[6:].encode() not in file.read_bytes()


def test_everything_that_is_said_of_a_credential_is_in_the_ledger(run: Run, folder: Path) -> None:
    command = ("token", "issue", "--analyst", "eve", "--role", "auditor", "--all-tables")
    ended = run(*command, "--group", "b", "--group", "a", "--expires", "2100-01-01")
    assert "opens every table, until 2100-01-01T00:00:00.000+00:00" in ended.err
    (entry,) = entries(folder, "access_granted")
    del entry["id"], entry["shown_as"]
    assert entry == {
        "analyst": "eve",
        "groups": ["a", "b"],
        "role": "auditor",
        "tables": ["*"],
        "proof": "token",
        "expires": "2100-01-01T00:00:00.000+00:00",
        "by": "command line",
    }


def test_the_list_shows_who_may_use_the_postgresql_wire(run: Run, folder: Path) -> None:
    issued = ("token", "issue", "--table", "people")
    run(*issued, "--analyst", "ann")
    run(*issued, "--analyst", "bob", "--no-postgres")
    run(*issued, "--analyst", "eve", "--role", "auditor")
    run(*issued, "--analyst", "dan", "--certificate", "dan.example")
    listed = run("token", "list").out
    assert re.search(r"ann .* token .* yes .* in force", listed)
    assert re.search(r"bob .* token .* no .* in force", listed)
    assert re.search(r"eve .* token .* no .* in force", listed)
    assert re.search(r"dan .* certificate .* yes .* in force", listed)
    with_keys = ["scram" in entry for entry in entries(folder, "access_granted")]
    assert with_keys == [True, False, False, False]


def test_a_certificate_takes_the_place_of_a_token(run: Run, folder: Path) -> None:
    command = ("token", "issue", "--analyst", "ann", "--table", "people")
    ended = run(*command, "--certificate", "ann@example.org")
    assert (ended.code, ended.out) == (0, "")
    assert "certificate ann@example.org" in run("token", "list").out
    again = run(*command, "--certificate", "ann@example.org")
    assert again.err.startswith(
        "error [invalid_request]: There is already a credential for certificates with the name"
    )
    assert len(entries(folder, "access_granted")) == 1


def test_a_credential_is_revoked_by_its_id(run: Run, folder: Path) -> None:
    issued = run("token", "issue", "--analyst", "ann", "--table", "people")
    found = re.search(r"Credential ([0-9a-f]{8}) opens people", issued.err)
    assert found is not None
    assert run("token", "revoke", found[1]).code == 0
    assert "revoked" in run("token", "list").out
    again = run("token", "revoke", found[1])
    assert again.code == 1
    assert "No credential" in again.err
    assert len(entries(folder, "access_revoked")) == 1


@pytest.mark.parametrize(
    ("options", "told"),
    [
        ((), "would open no table"),
        (("--table", "nobody"), "[unknown_name]: There is no table 'nobody'. Tables here: people."),
        (("--table", "*"), "Use --all-tables"),
        (("--table", "people", "--expires", "soon"), "is not an expiry"),
        (("--table", "people", "--expires", "2001-01-01"), "is in the past"),
        (
            ("--table", "people", "--group", "a\nb"),
            "a name must have 1 to 200 printable characters",
        ),
        (("--table", "people", "--certificate", "a\x1b[31m"), "cannot be a name in a certificate"),
    ],
    ids=str,
)
def test_what_cannot_be_issued_is_not(
    run: Run, folder: Path, options: tuple[str, ...], told: str
) -> None:
    ended = run("token", "issue", "--analyst", "ann", *options)
    assert ended.code == 1
    assert ended.out == ""
    assert told in ended.err
    assert "\x1b" not in ended.err
    assert not entries(folder, "access_granted")


def test_names_that_look_like_code_are_shown_as_they_are(run: Run, folder: Path) -> None:
    name = "[red]'; DROP TABLE entries; --[/]"
    assert run("token", "issue", "--analyst", name, "--table", "people").code == 0
    assert name in run("token", "list").out
    assert len(entries(folder, "access_granted")) == 1


# Limits.


def test_a_limit_for_somebody_unknown_is_warned_of(run: Run, folder: Path) -> None:
    run("token", "issue", "--analyst", "ann", "--table", "people", "--group", "sales")
    served_once(folder)
    for subject, sentence in {
        "group:saels": "No credential names group:saels. Did you mean 'sales'?",
        "analyst:bob": "No credential names analyst:bob.",
        "analyst:anonymous": "No credential names analyst:anonymous.",
    }.items():
        ended = run("limit", "set", "people", subject, "--epsilon", "0.5")
        assert (ended.code, f"WARNING: people: {sentence}" in ended.err) == (0, True)
        assert ended.err == run("limit", "list").err
        run("limit", "set", "people", subject, "--clear")
    for subject in ("group:sales", "analyst:ann", "each_analyst"):
        assert run("limit", "set", "people", subject, "--epsilon", "0.5").err == ""
    (folder / "tacit.toml").write_text(CONFIGURATION + "[server]\nallow_anonymous = true\n")
    assert run("limit", "set", "people", "analyst:anonymous", "--epsilon", "0.5").err == ""


def test_limits_are_set_listed_and_cleared(run: Run, folder: Path) -> None:
    with open_ledger(folder / "people.ledger"):
        pass
    early = run("limit", "set", "people", "analyst:ann", "--epsilon", "0.5")
    assert early.err.startswith("error [invalid_request]: The ledger does not know the table")
    served_once(folder)
    ended = run("limit", "set", "people", "analyst:ann", "--epsilon", "0.5", "--window", "week")
    assert ended.code == 0
    assert re.search(r"people .* analyst:ann .* week .* 0\.5 ", ended.out)
    assert re.search(
        r" 0\.5 .* 0\.1 ", run("limit", "set", "people", "analyst:ann", "--per-query", "0.1").out
    )
    assert "analyst:ann" in run("limit", "list").out
    run("limit", "set", "people", "analyst:ann", "--clear")
    assert "analyst:ann" not in run("limit", "list").out
    assert len(entries(folder, "limit_set")) == 3
    assert run("limit", "set", "nobody", "analyst:ann", "--epsilon", "1").code == 1


def served_once(folder: Path) -> None:
    from proxy.bootstrap import build  # noqa: PLC0415 - only this test needs the engine
    from proxy.config.settings import load  # noqa: PLC0415

    build(load(folder / "tacit.toml")).close()


# What a client shows.


@pytest.fixture
def address(folder: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[str]:
    with (
        open_ledger(folder / "people.ledger") as ledger,
        serving(CannedEngine(), authenticator=LedgerAuthenticator(ledger)) as served,
    ):
        (folder / "ann.token").write_text(token_for(ledger, "ann", "people") + "\n")
        monkeypatch.setenv("TACIT_SERVER", served)
        yield served


COMMANDS = (
    ("query", COUNT_ALL),
    ("explain", COUNT_ALL),
    ("budget",),
    ("tables",),
    ("plan", "statements.sql"),
)


@pytest.mark.usefixtures("address")
@pytest.mark.parametrize("command", COMMANDS, ids=lambda command: command[0])
def test_a_client_command_shows_the_token_in_a_file_or_in_the_environment(
    run: Run, folder: Path, monkeypatch: pytest.MonkeyPatch, command: tuple[str, ...]
) -> None:
    (folder / "statements.sql").write_text(COUNT_ALL)
    assert run(*command).err.startswith("error [not_authenticated]: ")
    assert run(*command, "--token-file", "ann.token").code == 0
    monkeypatch.setenv("TACIT_TOKEN", (folder / "ann.token").read_text())
    assert run(*command).code == 0


@pytest.mark.usefixtures("folder")
@pytest.mark.parametrize("server", ["example.org:1", "0.0.0.0:1", "localhost.example:1", "x"])
def test_a_token_does_not_cross_a_network_in_plain_text(
    run: Run, monkeypatch: pytest.MonkeyPatch, server: str
) -> None:
    monkeypatch.setenv("TACIT_TOKEN", new_token())
    ended = run("tables", "--server", server)
    assert ended.code == 1
    assert f"The token would be sent to {server} in plain text" in ended.err


@pytest.mark.parametrize("content", ["", "x", "tacit_", "tacit_é" + "A" * 42])
def test_a_file_without_a_token_is_no_token(run: Run, folder: Path, content: str) -> None:
    (folder / "bad.token").write_text(content)
    assert "There is no token in bad.token" in run("tables", "--token-file", "bad.token").err
    assert "absent.token cannot be read" in run("tables", "--token-file", "absent.token").err


def test_a_certificate_goes_with_its_key_and_with_tls(run: Run) -> None:
    assert "go together" in run("tables", "--tls-ca", "a", "--tls-cert", "b").err
    assert "needs TLS" in run("tables", "--tls-cert", "b", "--tls-key", "c").err
    absent = run("tables", "--tls-ca", "a", "--tls-cert", "b", "--tls-key", "c")
    assert absent.err.startswith("error [tls]: a cannot be read")


@pytest.mark.parametrize(
    "command", ["token issue", "token list", "token revoke", "limit set", "limit list"]
)
def test_the_help_of_every_command_has_an_example(run: Run, command: str) -> None:
    ended = run(*command.split(), "--help")
    assert ended.code == 0
    assert f"Example: tacit {command}" in ended.out


@pytest.mark.parametrize("command", ["query", "explain", "plan", "budget", "tables"])
def test_no_option_takes_a_token_itself(run: Run, command: str) -> None:
    told = run(command, "--help").out
    assert "--token-file" in told
    assert not re.search(r"--token\b(?!-file)", told)
