"""Collections of several processes of one ledger: what one opens or closes, the others know."""

from collections.abc import Iterator
from contextlib import ExitStack, closing
from pathlib import Path

import pytest

from accountant.ledger.opening import open_ledger
from cube.refusals import InvalidRequest, UnknownName
from local_dp.campaign import campaign_text
from proxy.collections import service as service_module
from proxy.collections.service import REFRESH_SECONDS, CollectionService
from proxy.collections.tokens import new_token
from tests.proxy.collections.test_service import OWNER, TEXT, created
from tests.support.campaigns import survey


class Clock:
    """Time that passes when it is told to."""

    def __init__(self) -> None:
        self.now = 100.0

    def monotonic(self) -> float:
        return self.now


@pytest.fixture
def clock(monkeypatch: pytest.MonkeyPatch) -> Clock:
    made = Clock()
    monkeypatch.setattr(service_module, "time", made)
    return made


@pytest.fixture
def both(tmp_path: Path, counts: Path) -> Iterator[tuple[CollectionService, CollectionService]]:
    """Two that tell each other, as `bootstrap` has it."""
    told: list[CollectionService] = []

    def tell_others() -> None:
        for one in told:
            one.read_again()

    with ExitStack() as stack:
        ledgers = [stack.enter_context(open_ledger(tmp_path / "ledger")) for _ in range(2)]
        for ledger in ledgers:
            made = CollectionService(ledger, counts, (), tell_others)
            told.append(stack.enter_context(closing(made)))
        yield told[0], told[1]


@pytest.mark.usefixtures("clock")
def test_what_one_opens_and_closes_the_other_knows_at_once(
    both: tuple[CollectionService, CollectionService],
) -> None:
    here, there = both
    for _ in range(2):
        with pytest.raises(UnknownName):  # whoever polls uses up the look
            there.assignment("survey", new_token())
    created(here)
    assert there.assignment("survey", new_token()).campaign == TEXT
    assert not there.status(OWNER, "survey").is_closed
    here.close_collection(OWNER, "survey")
    assert there.status(OWNER, "survey").is_closed
    with pytest.raises(InvalidRequest, match="no more answers"):
        there.assignment("survey", new_token())


def test_without_a_word_strangers_do_not_use_up_the_look_of_an_owner(
    tmp_path: Path, counts: Path, clock: Clock
) -> None:
    """As between machines: each finds out within a second, and nobody makes it look more often."""
    with (
        open_ledger(tmp_path / "ledger") as one,
        open_ledger(tmp_path / "ledger") as other,
        closing(CollectionService(one, counts)) as here,
        closing(CollectionService(other, counts)) as there,
    ):
        with pytest.raises(UnknownName):
            there.assignment("survey", new_token())
        created(here)
        with pytest.raises(UnknownName):
            there.assignment("survey", new_token())
        assert not there.status(OWNER, "survey").is_closed
        assert there.assignment("survey", new_token()).campaign == TEXT
        here.close_collection(OWNER, "survey")
        created(here, text=campaign_text(survey("later")))
        assert not there.status(OWNER, "survey").is_closed
        clock.now += REFRESH_SECONDS
        assert there.status(OWNER, "survey").is_closed
        assert [one.name for one in there.listed(OWNER)] == ["later", "survey"]
