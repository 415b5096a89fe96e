"""The ledger in the configuration file: a file, or a database that servers share."""

from pathlib import Path

import pytest

from proxy.config.ledger import LedgerSettings
from tests.support.config_files import GOOD, loaded, problems, write_people

SHARED = GOOD.replace(
    'path = "people.ledger"', 'url = "postgresql://tacit@localhost/money"\nkey = "shared.key"'
)


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    return write_people(tmp_path)


@pytest.mark.parametrize("path", [".", "absent/x.ledger"])
def test_a_ledger_lies_in_a_directory_that_exists(folder: Path, path: str) -> None:
    (problem,) = problems(folder, GOOD.replace("people.ledger", path))
    assert problem.startswith("ledger.path: ")


def test_a_ledger_may_lie_in_a_database_that_servers_share(folder: Path) -> None:
    ledger = loaded(folder, SHARED).ledger
    url = "postgresql://tacit@localhost/money"
    assert ledger == LedgerSettings(url=url, key=folder / "shared.key")
    assert ledger.location == url
    assert loaded(folder, GOOD).ledger.location == str(folder / "people.ledger")


def test_a_server_may_sign_how_far_its_ledger_has_come(folder: Path) -> None:
    text = SHARED.replace("key =", 'signing_key = "owner.pem"\nsigned_head = "head.json"\nkey =')
    ledger = loaded(folder, text).ledger
    assert (ledger.signing_key, ledger.signed_head) == (folder / "owner.pem", folder / "head.json")


@pytest.mark.parametrize(
    ("old", "new", "expected"),
    [
        ('key = "shared.key"', "", "ledger.key: is missing"),
        ('key = "shared.key"', 'key = "absent/shared.key"', "ledger.key: should be a file"),
        ("key =", 'path = "x.ledger"\nkey =', "ledger.url: is given beside path"),
        ("key =", 'signing_key = "owner.pem"\nkey =', "ledger.signed_head: is missing"),
        ("key =", 'signed_head = "head.json"\nkey =', "ledger.signing_key: is missing"),
        ("tacit@localhost", "tacit:hush@localhost", "ledger.url: holds a password"),
        ("postgresql:", "mysql:", "ledger.url: should be postgresql://"),
        ("/money", "", "ledger.url: should name one database"),
        ("/money", "/money?sslmode=disable&password=hush", "ledger.url: has an unknown option"),
        (
            "localhost/money",
            "db.example/money?sslmode=prefer",
            "ledger.url: is on another machine",
        ),
    ],
)
def test_a_shared_ledger_that_cannot_be_is_a_problem(
    folder: Path, old: str, new: str, expected: str
) -> None:
    (problem,) = problems(folder, SHARED.replace(old, new))
    assert problem.startswith(expected)
    assert "hush" not in problem


def test_a_ledger_is_somewhere_and_a_file_has_its_key_beside_it(folder: Path) -> None:
    (problem,) = problems(folder, GOOD.replace('path = "people.ledger"', ""))
    assert problem.startswith("ledger.path: is missing")
    (problem,) = problems(folder, GOOD.replace("path =", 'key = "k"\npath ='))
    assert problem.startswith("ledger.key: goes with url")
