"""Collections as a service: who may do what, entries before counts, each answer once."""

import json
import secrets
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from contextlib import closing, suppress
from fractions import Fraction
from pathlib import Path
from typing import Any

import pytest

from accountant.auditor.verify import verify
from accountant.ledger.collections import CollectionBody, CollectionBook, CollectionOpened
from accountant.ledger.credentials import EVERY_TABLE, Role
from accountant.ledger.entries import TableOpened
from accountant.ledger.ledger import Ledger
from accountant.ledger.limits import Payer
from accountant.ledger.opening import open_ledger
from accountant.ledger.streams import StreamBook
from cube.measurement import UNITS_PER_EPSILON
from cube.refusals import (
    CannotStart,
    InvalidRequest,
    NameTaken,
    NotAllowed,
    StoreUnavailable,
    TooLarge,
    UnknownName,
)
from local_dp.campaign import Attribute, Level, campaign_digest, campaign_text, planned_campaign
from local_dp.respondent import Entropy, check_campaign, randomised
from proxy.api.requests import Caller
from proxy.collections.service import CollectionService
from proxy.collections.store import CountStore
from proxy.collections.tokens import new_token
from tests.support.a_stream import DAILY, noted
from tests.support.campaigns import survey, wide
from tests.support.hostile_campaigns import HOSTILE, NO_CAMPAIGNS, hostile

OWNER = Caller(Payer("owner"), Role.OWNER, (EVERY_TABLE,))
ANALYST = Caller(Payer("ann"), Role.ANALYST, ("survey",))
STRANGER = Caller(Payer("bob"), Role.OWNER, ("people",))
TEXT = campaign_text(survey())
ROW: dict[str, Level] = {"education": "school", "smokes": False, "region": 3}
N_THREADS = 6
SECONDS_MAX = 60.0


def created(service: CollectionService, n: int = 1000, text: str = TEXT) -> None:
    service.create(OWNER, text, n_respondents_max=n)


def answer(text: str = TEXT) -> str:
    return randomised(check_campaign(text), ROW, Entropy().below)


def test_a_collection_from_its_opening_to_estimates(
    service: CollectionService, ledger: Ledger
) -> None:
    opened = service.create(OWNER, TEXT, n_respondents_max=1000)
    assert (opened.name, opened.is_closed, opened.n_respondents) == ("survey", False, 0)
    for _ in range(300):
        token = new_token()
        asked = service.assignment("survey", token)
        assert asked.digest == campaign_digest(asked.campaign)
        assert service.submit("survey", token, answer(asked.campaign))
        assert not service.submit("survey", token, answer(asked.campaign))
    closed = service.close_collection(OWNER, "survey")
    assert (closed.is_closed, closed.n_respondents) == (True, 300)
    estimates = service.estimates(ANALYST, "survey")
    assert estimates.n_respondents == 300
    assert sum(one.n_answers for each in estimates.tallies.values() for one in each) == 300
    verdict = verify(ledger.entries())
    assert verdict.problem is None
    assert [(one.name, one.n_respondents) for one in verdict.collections] == [("survey", 300)]


def test_every_kind_of_channel_is_counted(service: CollectionService) -> None:
    text = campaign_text(wide())
    created(service, text=text)
    asked = check_campaign(text)
    row: dict[str, Level] = {"a": 17, "b": 1999}
    for _ in range(40):
        service.submit("wide", new_token(), randomised(asked, row, Entropy().below))
    assert service.estimates(OWNER, "wide").covered == (("a",), ("b",))


def test_a_campaign_that_is_no_table_is_refused_and_nothing_noted(
    service: CollectionService, ledger: Ledger, counts: Path
) -> None:
    alike = [Attribute(name, ("no", "yes")) for name in ("Smokes", "smokes")]
    views = [((one.name,),) for one in alike]
    campaign = planned_campaign("habits", alike, views, epsilon_units=UNITS_PER_EPSILON)
    before = ledger.position
    with pytest.raises(InvalidRequest, match="letter case does not count") as refused:
        created(service, text=campaign_text(campaign))
    assert "other names" in str(refused.value.hint)
    assert ledger.position == before
    assert not counts.exists()
    assert service.listed(OWNER) == ()


@pytest.mark.parametrize("change", HOSTILE.values(), ids=HOSTILE)
def test_a_hostile_campaign_is_refused_and_nothing_noted(
    service: CollectionService,
    ledger: Ledger,
    counts: Path,
    change: Callable[[dict[str, Any]], None],
) -> None:
    before = ledger.position
    with pytest.raises(InvalidRequest):
        created(service, text=hostile(change))
    assert ledger.position == before
    assert not counts.exists()


def test_what_is_no_campaign_is_refused(service: CollectionService, ledger: Ledger) -> None:
    before = ledger.position
    for text in NO_CAMPAIGNS:
        with pytest.raises(InvalidRequest):
            created(service, text=text)
    assert ledger.position == before


class Watched:
    """A ledger that looks, at each entry, whether there is anything to count in yet."""

    def __init__(self, ledger: Ledger, counts: Path) -> None:
        self.key = ledger.key
        self.refresh = ledger.refresh
        self._ledger, self._counts = ledger, counts

    @property
    def collections(self) -> CollectionBook:
        return self._ledger.collections

    @property
    def streams(self) -> StreamBook:
        return self._ledger.streams

    def append_collection(
        self, build: Callable[[CollectionBook], CollectionBody | None]
    ) -> int | None:
        with closing(CountStore(self._counts)) as store, pytest.raises(LookupError):
            store.counts(campaign_digest(TEXT))
        return self._ledger.append_collection(build)


def test_the_ledger_knows_a_collection_before_there_is_anything_to_count_in(
    ledger: Ledger, counts: Path
) -> None:
    with closing(CollectionService(Watched(ledger, counts), counts)) as service:
        created(service)
        assert service.submit("survey", new_token(), answer())


def test_a_crash_right_after_the_entry_leaves_a_collection_that_works(
    ledger: Ledger, counts: Path
) -> None:
    opened = CollectionOpened(TEXT, 10, is_by_invitation=False, by="owner")
    CountStore(counts).close()
    ledger.append_collection(lambda _book: opened)
    with closing(CollectionService(ledger, counts)) as service:
        assert service.submit("survey", new_token(), answer())
        assert service.status(OWNER, "survey").n_respondents == 1


def test_an_answer_that_is_none_is_refused_whole_and_quoted_nowhere(
    service: CollectionService,
) -> None:
    created(service)
    sent = json.loads(answer())
    hidden = secrets.token_hex(8)
    for wrong in (
        hidden,
        json.dumps({**sent, "campaign": "0" * 64}),
        json.dumps({**sent, "more": hidden}),
        json.dumps({**sent, "answers": [[sent["answers"][0][0], "ffff"]]}),
        json.dumps({**sent, "answers": sent["answers"] * 2}),
    ):
        token = new_token()
        with pytest.raises(InvalidRequest) as refused:
            service.submit("survey", token, wrong)
        told = refused.value.explain()
        assert hidden not in told
        assert token not in told
        assert service.submit("survey", token, answer())  # the token is not spent
    assert service.status(OWNER, "survey").n_respondents == 5


@pytest.mark.parametrize("token", ["", "ab" * 31, "AB" * 32, "zz" * 32, "ab" * 32 + "\n"])
def test_a_token_has_one_form(service: CollectionService, token: str) -> None:
    created(service)
    with pytest.raises(InvalidRequest, match="not a respondent's token"):
        service.submit("survey", token, answer())
    with pytest.raises(InvalidRequest, match="not a respondent's token"):
        service.assignment("survey", token)


def test_by_invitation_only_tokens_of_this_collection_count(service: CollectionService) -> None:
    for name in ("survey", "other"):
        text = campaign_text(survey(name))
        service.create(OWNER, text, n_respondents_max=10, is_by_invitation=True)
    (mine,) = service.invitations(OWNER, "survey", 1)
    (others,) = service.invitations(OWNER, "other", 1)
    for token in (new_token(), others, mine[:-1] + ("0" if mine[-1] != "0" else "1")):
        with pytest.raises(UnknownName):
            service.assignment("survey", token)
        with pytest.raises(UnknownName):
            service.submit("survey", token, answer())
    assert service.submit("survey", mine, answer())
    assert not service.submit("survey", mine, answer())


@pytest.mark.parametrize("is_over", [False, True])
def test_strangers_are_told_the_same_of_a_collection_by_invitation_and_of_none(
    service: CollectionService, *, is_over: bool
) -> None:
    text = campaign_text(survey("hidden"))
    service.create(OWNER, text, n_respondents_max=10, is_by_invitation=True)
    if is_over:
        service.close_collection(OWNER, "hidden")
    told = []
    for name in ("hidden", "absent"):
        token = new_token()
        for call in (
            lambda name=name, token=token: service.assignment(name, token),
            lambda name=name, token=token: service.assignment(name, token, is_for_kept=True),
            lambda name=name, token=token: service.submit(name, token, answer()),
            lambda name=name, token=token: service.submit(name, token, "no answer at all"),
        ):
            with pytest.raises(UnknownName) as refused:
                call()
            told.append((str(refused.value).replace(name, "N"), refused.value.hint))
    assert told[:4] == told[4:]


def test_who_may_do_what(service: CollectionService) -> None:
    with pytest.raises(NotAllowed):
        service.create(ANALYST, TEXT, n_respondents_max=5)
    with pytest.raises(NotAllowed):
        service.create(STRANGER, TEXT, n_respondents_max=5)
    created(service)
    created(service, text=campaign_text(survey("other")))
    assert [one.name for one in service.listed(OWNER)] == ["other", "survey"]
    assert [one.name for one in service.listed(ANALYST)] == ["survey"]
    assert service.listed(STRANGER) == ()
    with pytest.raises(NotAllowed):
        service.close_collection(ANALYST, "survey")
    with pytest.raises(UnknownName) as hidden:
        service.estimates(ANALYST, "other")
    with pytest.raises(UnknownName) as absent:
        service.estimates(ANALYST, "there")
    assert str(hidden.value).replace("other", "there") == str(absent.value)
    with pytest.raises(InvalidRequest, match="Anybody may answer"):
        service.invitations(OWNER, "survey", 1)


def test_names_are_no_table_s_and_no_other_collection_s(ledger: Ledger, counts: Path) -> None:
    table = TableOpened("schema", "data", Fraction(1), "rows")
    ledger.append("old", lambda _history: table)
    with closing(CollectionService(ledger, counts, ["people"])) as service:
        created(service)
        for name in ("survey", "Survey", "People", "old"):
            with pytest.raises(NameTaken):
                created(service, text=campaign_text(survey(name)))
    with pytest.raises(CannotStart, match="name of a collection"):
        CollectionService(ledger, counts, ["SURVEY"])


def test_a_name_that_sql_does_not_tell_from_a_streams_is_taken(
    service: CollectionService, ledger: Ledger
) -> None:
    noted(ledger, "Visits", DAILY)
    for name in ("Visits", "visits"):
        with pytest.raises(NameTaken):
            created(service, text=campaign_text(survey(name)))
    assert service.listed(OWNER) == ()


@pytest.mark.parametrize("n", [0, 10**9])
def test_a_collection_is_for_a_number_of_respondents(service: CollectionService, n: int) -> None:
    with pytest.raises(InvalidRequest):
        created(service, n)


def test_the_quota_is_kept_among_many_at_once(service: CollectionService) -> None:
    created(service, 20)

    def respond(_one: int) -> bool:
        with suppress(TooLarge):
            return service.submit("survey", new_token(), answer())
        return False

    with ThreadPoolExecutor(8) as pool:
        assert sum(pool.map(respond, range(60))) == 20
    assert service.estimates(OWNER, "survey").n_respondents == 20


def test_a_server_without_collections_makes_no_file(ledger: Ledger, counts: Path) -> None:
    with closing(CollectionService(ledger, counts)) as service:
        assert service.listed(OWNER) == ()
        with pytest.raises(UnknownName):
            service.submit("survey", new_token(), answer())
    assert not counts.exists()


def test_a_server_without_a_place_offers_none(ledger: Ledger) -> None:
    with (
        closing(CollectionService(ledger, None)) as service,
        pytest.raises(StoreUnavailable, match="no file for answers"),
    ):
        created(service)


def test_two_servers_of_a_ledger_serve_the_same_collection(tmp_path: Path, counts: Path) -> None:
    path = tmp_path / "ledger"
    with (
        open_ledger(path) as one,
        open_ledger(path) as other,
        closing(CollectionService(one, counts)) as here,
        closing(CollectionService(other, counts)) as there,
    ):
        created(here)
        token = new_token()
        assert there.submit("survey", token, answer())
        assert not here.submit("survey", token, answer())
        here.close_collection(OWNER, "survey")
        with pytest.raises(InvalidRequest, match="no more answers"):
            there.submit("survey", new_token(), answer())


def test_no_token_is_in_the_file_of_counts(service: CollectionService, counts: Path) -> None:
    created(service)
    token = new_token()
    service.submit("survey", token, answer())
    service.close_collection(OWNER, "survey")
    content = counts.read_bytes()
    assert bytes.fromhex(token) not in content
    assert token.encode() not in content
