"""The order of answers is forgotten also where the process ended between a closing and that."""

import sqlite3
import time
from contextlib import closing
from pathlib import Path

import pytest

from accountant.ledger.ledger import Ledger
from proxy.collections import service as served
from proxy.collections.service import RETRY_SECONDS, CollectionService, Forgetting
from proxy.collections.store import CLOSED, FORGOTTEN
from proxy.collections.tokens import new_token
from tests.proxy.collections.test_service import OWNER, answer, created
from tests.proxy.collections.test_traces import states

SECONDS_MAX = 30.0


class CrashError(BaseException):
    """The process ends here."""


def crash() -> None:
    raise CrashError


def state(service: CollectionService) -> list[int]:
    return states(service._kept.store)


@pytest.fixture
def closed(ledger: Ledger, counts: Path) -> None:
    """A closing that the ledger has, and after which the process ended."""
    with closing(CollectionService(ledger, counts)) as service:
        created(service)
        service.submit("survey", new_token(), answer())
    with closing(CollectionService(ledger, counts, tell_others=crash)) as service:
        with pytest.raises(CrashError):
            service.close_collection(OWNER, "survey")
        assert state(service) == [CLOSED]
    assert ledger.collections.by_name["survey"].closed is not None


@pytest.mark.usefixtures("closed")
def test_what_a_crash_left_is_forgotten_by_the_next_start(
    service: CollectionService, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(served, "LOOK_SECONDS", 0.01)
    end = time.monotonic() + SECONDS_MAX
    with Forgetting(service):
        while state(service) != [FORGOTTEN] and time.monotonic() < end:
            time.sleep(0.01)
    assert state(service) == [FORGOTTEN]


@pytest.mark.usefixtures("closed")
def test_a_closing_that_is_at_it_is_not_overtaken(service: CollectionService) -> None:
    looking = Forgetting(service)
    looking.look()
    assert state(service) == [CLOSED], "it may have been closed just now"
    looking.look()
    assert state(service) == [FORGOTTEN]


@pytest.mark.usefixtures("closed")
def test_what_fails_is_in_the_log_and_tried_again_later(
    service: CollectionService,
    counts: Path,
    capsys: pytest.CaptureFixture[str],
) -> None:
    looking = Forgetting(service)
    looking.look()
    service._kept.store._connection.execute("PRAGMA busy_timeout = 20")  # instead of ten seconds
    with closing(sqlite3.connect(counts, isolation_level=None)) as other:
        other.execute("BEGIN")
        other.execute("SELECT * FROM spent").fetchall()
        looking.look()
    assert "order_not_forgotten" in "".join(capsys.readouterr())
    looking.look()
    assert state(service) == [CLOSED], "each try lays out the whole file"
    looking._waits_until -= RETRY_SECONDS
    looking.look()
    assert state(service) == [FORGOTTEN]


def test_a_file_from_before_the_closing_is_forgotten_once_it_is_asked_for(
    ledger: Ledger, counts: Path
) -> None:
    with closing(CollectionService(ledger, counts)) as service:
        created(service)
        service.submit("survey", new_token(), answer())
    backup = counts.read_bytes()
    with closing(CollectionService(ledger, counts)) as service:
        service.close_collection(OWNER, "survey")
    counts.write_bytes(backup)
    with closing(CollectionService(ledger, counts)) as service:
        service.status(OWNER, "survey")
        assert state(service) == [FORGOTTEN]


def test_there_is_nothing_to_do_before_a_collection(service: CollectionService) -> None:
    Forgetting(service).look()
    assert Forgetting(service).has_work
    assert service.left_to_forget == frozenset()
