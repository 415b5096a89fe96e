"""Collections that are closed, and files of counts that are not what they were then."""

from concurrent.futures import ThreadPoolExecutor
from contextlib import closing
from pathlib import Path
from threading import Barrier
from time import sleep

import pytest

from accountant.auditor.verify import verify
from accountant.ledger.ledger import Ledger
from accountant.ledger.opening import open_ledger
from cube.refusals import CannotStart, InvalidRequest, StoreUnavailable, TooLarge, UnknownName
from local_dp.campaign import campaign_digest
from proxy.collections.service import CollectionService
from proxy.collections.store import CountStore
from proxy.collections.tokens import TokenKey, new_token
from tests.proxy.collections.test_service import (
    N_THREADS,
    OWNER,
    SECONDS_MAX,
    TEXT,
    answer,
    created,
)


def test_nothing_comes_after_the_closing_but_what_was_counted_before(
    service: CollectionService, ledger: Ledger
) -> None:
    created(service)
    token = new_token()
    service.submit("survey", token, answer())
    service.close_collection(OWNER, "survey")
    before = ledger.position
    service.close_collection(OWNER, "survey")
    assert ledger.position == before
    with pytest.raises(InvalidRequest, match="no more answers"):
        service.submit("survey", new_token(), answer())
    assert not service.submit("survey", token, answer())  # whoever got no acknowledgement


@pytest.mark.parametrize("end", ["closed", "full"])
def test_nobody_is_asked_whose_answer_would_not_be_counted(
    tmp_path: Path, counts: Path, end: str
) -> None:
    """By no server of the ledger: an answer that is drawn for nothing costs epsilon as well."""
    path, token = tmp_path / "ledger", new_token()
    with (
        open_ledger(path) as one,
        open_ledger(path) as other,
        closing(CollectionService(one, counts)) as here,
        closing(CollectionService(other, counts)) as there,
    ):
        created(here, 1 if end == "full" else 9)
        assert there.assignment("survey", new_token()).campaign == TEXT
        here.submit("survey", token, answer())
        if end == "closed":
            here.close_collection(OWNER, "survey")
        for service in (here, there):
            with pytest.raises(InvalidRequest if end == "closed" else TooLarge):
                service.assignment("survey", new_token())
            # But who was counted may hear it again, and so may who has an answer from before.
            assert service.assignment("survey", token).campaign == TEXT
            assert service.assignment("survey", new_token(), is_for_kept=True).campaign == TEXT
            assert not service.submit("survey", token, answer())


def test_what_was_asked_is_told_to_nobody_who_was_not_invited(service: CollectionService) -> None:
    service.create(OWNER, TEXT, n_respondents_max=9, is_by_invitation=True)
    service.close_collection(OWNER, "survey")
    with pytest.raises(UnknownName):
        service.assignment("survey", new_token(), is_for_kept=True)


def test_a_closing_leaves_nothing_in_the_file_of_the_order_of_answers(
    service: CollectionService, ledger: Ledger, counts: Path
) -> None:
    """What `test_traces` says of the store; here, that a service asks for it."""
    created(service)
    tokens = [new_token() for _ in range(60)]
    for token in tokens:
        service.submit("survey", token, answer())
    service.close_collection(OWNER, "survey")
    content, key = counts.read_bytes(), TokenKey(ledger.key, campaign_digest(TEXT))
    digests = [key.spent_digest(token) for token in tokens]
    assert sorted(digests, key=content.index, reverse=True) == sorted(digests)


def test_what_is_acknowledged_while_a_collection_is_closed_is_in_its_last_counts(
    service: CollectionService, ledger: Ledger
) -> None:
    created(service, 100_000)
    sending = Barrier(N_THREADS + 1)

    def respond(_thread: int) -> tuple[int, int]:
        """How many answers were counted until one was refused, and how many are known then."""
        n_counted = 0
        tokens = []
        sending.wait(SECONDS_MAX)
        while True:
            tokens.append(new_token())
            try:
                n_counted += service.submit("survey", tokens[-1], answer())
            except InvalidRequest:
                break
        # Whoever was counted hears it again, and who was not, that it is too late.
        n_known = sum(1 for one in tokens[:-1] if not service.submit("survey", one, answer()))
        with pytest.raises(InvalidRequest, match="no more answers"):
            service.submit("survey", tokens[-1], answer())
        return n_counted, n_known

    with ThreadPoolExecutor(N_THREADS) as pool:
        responding = [pool.submit(respond, one) for one in range(N_THREADS)]
        sending.wait(SECONDS_MAX)
        while service.status(OWNER, "survey").n_respondents < 20 * N_THREADS:
            sleep(0.001)
        closed = service.close_collection(OWNER, "survey")
        found = [one.result(SECONDS_MAX) for one in responding]
    acknowledged = sum(n_counted for n_counted, _ in found)
    assert acknowledged >= 20 * N_THREADS
    assert closed.n_respondents == acknowledged == sum(n_known for _, n_known in found)
    assert service.estimates(OWNER, "survey").n_respondents == acknowledged
    verdict = verify(ledger.entries())
    assert verdict.problem is None
    assert [one.n_respondents for one in verdict.collections] == [acknowledged]


def test_counts_that_were_changed_after_the_closing_are_noticed(
    service: CollectionService, counts: Path
) -> None:
    created(service)
    service.submit("survey", new_token(), answer())
    service.close_collection(OWNER, "survey")
    with closing(CountStore(counts)) as store:
        store._connection.execute("UPDATE answered SET n = n + 1")
    with pytest.raises(StoreUnavailable, match="have changed since it was closed"):
        service.estimates(OWNER, "survey")


def test_a_file_from_before_the_closing_takes_no_answers(ledger: Ledger, counts: Path) -> None:
    token = new_token()
    with closing(CollectionService(ledger, counts)) as service:
        created(service)
        service.submit("survey", token, answer())
    backup = counts.read_bytes()
    with closing(CollectionService(ledger, counts)) as service:
        service.submit("survey", new_token(), answer())
        service.close_collection(OWNER, "survey")
    counts.write_bytes(backup)
    with closing(CollectionService(ledger, counts)) as service:
        with pytest.raises(InvalidRequest, match="no more answers"):
            service.submit("survey", new_token(), answer())
        assert not service.submit("survey", token, answer())
        with pytest.raises(StoreUnavailable, match="have changed since it was closed"):
            service.estimates(OWNER, "survey")


def test_a_file_that_is_gone_is_not_begun_anew(ledger: Ledger, counts: Path) -> None:
    with closing(CollectionService(ledger, counts)) as service:
        created(service)
    counts.unlink()
    with pytest.raises(CannotStart, match="is missing"):
        CollectionService(ledger, counts)
    assert not counts.exists()
