"""The queue of purchases: who leads, who is taken along, and who waits no longer."""

import threading

import pytest

from accountant.ledger.limits import Payer
from cube.refusals import SourceUnavailable
from proxy.tables import in_flight
from proxy.tables.in_flight import PendingRequest, PurchaseQueue

ANA = Payer("ana")


def pending() -> PendingRequest:
    return PendingRequest((), ANA, None)


def test_a_request_that_was_taken_along_may_give_up_after_its_leader_is_done(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """The queue is gone by then: that is a refusal, not an incident."""
    queue, first, second = PurchaseQueue(), pending(), pending()
    assert queue.leads(first)
    refused: list[Exception] = []

    def wait() -> None:
        try:
            queue.leads(second)
        except SourceUnavailable as refusal:
            refused.append(refusal)

    monkeypatch.setattr(in_flight, "WAIT_SECONDS_MAX", 0.5)
    thread = threading.Thread(target=wait)
    thread.start()
    while not queue.n_waiting:
        pass
    assert queue.companions(first) == [second]
    queue.pass_on(first)  # and, as on a busy machine, second is not called in time
    thread.join()
    assert [type(one) for one in refused] == [SourceUnavailable]
    assert not queue.is_led
