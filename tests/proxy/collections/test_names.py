"""What a new collection may be called, and that those of an old ledger are read as they are."""

from contextlib import closing
from pathlib import Path

import pytest

from accountant.ledger.collections import CollectionOpened
from accountant.ledger.ledger import Ledger
from cube.refusals import InvalidRequest, NameTaken
from local_dp.campaign import campaign_text
from local_dp.respondent import Entropy, check_campaign, randomised
from proxy.api.requests import LOCAL
from proxy.collections.service import CollectionService
from proxy.collections.store import CountStore
from proxy.collections.tokens import new_token
from tests.support.campaigns import survey

NO_NAMES = (
    *("data_privacy", "DATA_PRIVACY", "pg_catalog", "information_schema", "public"),
    *("x.y", "select", "Table", "a b", "1a", "a-b", "größe", 'a"b', "<script>alert(1)</script>"),
)  # fmt: skip


def created(service: CollectionService, name: str, *synthetic: str) -> None:
    text = campaign_text(survey(name))
    service.create(LOCAL, text, n_respondents_max=9, synthetic=synthetic)


@pytest.mark.parametrize("name", NO_NAMES)
def test_a_name_that_sql_reads_otherwise_is_refused_and_nothing_noted(
    service: CollectionService, ledger: Ledger, counts: Path, name: str
) -> None:
    before = ledger.position
    with pytest.raises(InvalidRequest, match="cannot be the name of a collection"):
        created(service, name)
    assert ledger.position == before
    assert not counts.exists()


@pytest.mark.parametrize("name", ["survey", "_a1", "Wave_2026", "data_privacy_2"])
def test_a_name_that_needs_no_quotes_is_a_collections(
    service: CollectionService, name: str
) -> None:
    created(service, name)
    assert [one.name for one in service.listed(LOCAL)] == [name]


@pytest.mark.parametrize("name", ["twin", "TWIN", "Twin"])
def test_the_name_of_a_synthetic_table_is_taken_in_any_letter_case(
    service: CollectionService, ledger: Ledger, name: str
) -> None:
    before = ledger.position
    with pytest.raises(NameTaken, match="name of a synthetic table"):
        created(service, name, "other", "Twin")
    assert ledger.position == before
    created(service, "twins", "other", "Twin")


@pytest.mark.parametrize("name", NO_NAMES)
def test_a_collection_of_an_old_ledger_keeps_working_under_its_name(
    ledger: Ledger, counts: Path, name: str
) -> None:
    text = campaign_text(survey(name))
    CountStore(counts).close()
    ledger.append_collection(lambda _book: CollectionOpened(text, 9, is_by_invitation=False, by=""))
    row: dict[str, str | int | bool | None] = {
        "education": "school",
        "smokes": True,
        "region": 1,
    }
    with closing(CollectionService(ledger, counts)) as service:
        asked = check_campaign(service.assignment(name, new_token()).campaign)
        assert service.submit(name, new_token(), randomised(asked, row, Entropy().below))
        assert service.estimates(LOCAL, name).n_respondents == 1
        assert service.close_collection(LOCAL, name).is_closed
