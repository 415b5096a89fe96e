"""Collections among the tables of an engine: read by whoever asks them, and by nobody else."""

from collections.abc import Iterator
from contextlib import closing
from pathlib import Path
from typing import Any

import pytest

from accountant.ledger.collections import CollectionOpened
from accountant.ledger.credentials import EVERY_TABLE, Role
from accountant.ledger.ledger import Ledger
from accountant.ledger.limits import Payer
from accountant.ledger.opening import open_ledger
from cube.measurement import UNITS_PER_EPSILON
from cube.refusals import StoreUnavailable, UnknownName
from local_dp.campaign import Attribute, Level, campaign_text, planned_campaign
from local_dp.estimates.collection import CollectionEstimates
from local_dp.respondent import Entropy, check_campaign, randomised
from proxy.api.requests import Caller, QueryRequest
from proxy.collections.feature import CollectedTables, Collections
from proxy.collections.service import CollectionService
from proxy.collections.store import CountStore
from proxy.collections.tokens import new_token
from proxy.engine.engine import Engine
from tests.support.campaigns import survey

OWNER = Caller(Payer("owner"), Role.OWNER, (EVERY_TABLE,))
ANALYST = Caller(Payer("ann"), Role.ANALYST, ("survey",))
STRANGER = Caller(Payer("bob"), Role.ANALYST, ("other",))
TEXT = campaign_text(survey())
ROW: dict[str, Level] = {"education": "school", "smokes": False, "region": 3}
COUNT = "SELECT region, COUNT(*) AS n FROM survey GROUP BY region"
NOT_ABOUT_IT = "SELECT 1 AS one"


class Watched(CollectionService):
    """Collections of which it is noted what is read."""

    reads: list[str]

    def n_respondents(self, caller: Caller, name: str) -> int:
        self.reads.append("how many")
        return super().n_respondents(caller, name)

    def answered(self, caller: Caller, name: str) -> tuple[int, dict[int, int]]:
        self.reads.append("about what")
        return super().answered(caller, name)

    def estimates(self, caller: Caller, name: str) -> CollectionEstimates:
        self.reads.append("counts")
        return super().estimates(caller, name)


@pytest.fixture
def ledger(tmp_path: Path) -> Iterator[Ledger]:
    with open_ledger(tmp_path / "ledger") as opened:
        yield opened


@pytest.fixture
def service(ledger: Ledger, tmp_path: Path) -> Iterator[Watched]:
    with closing(Watched(ledger, tmp_path / "counts")) as made:
        made.reads = []
        made.create(OWNER, TEXT, n_respondents_max=1000)
        yield made


@pytest.fixture
def engine(service: Watched) -> Engine:
    return Engine({}, features=[Collections(service)])


def respond(service: CollectionService) -> None:
    answer = randomised(check_campaign(TEXT), ROW, Entropy().below)
    service.submit("survey", new_token(), answer)


def ask(engine: Engine, sql: str, caller: Caller = ANALYST) -> list[dict[str, Any]]:
    return list(engine.answer(QueryRequest(sql=sql, caller=caller)).data.to_pylist())


def test_an_answer_costs_nobody_anything_who_does_not_ask_for_it(
    service: Watched, engine: Engine
) -> None:
    for caller in (STRANGER, ANALYST):
        respond(service)
        ask(engine, NOT_ABOUT_IT, caller)
        names = [info.schema.table for info in engine.tables(caller)]
        assert names == (["survey"] if caller is ANALYST else [])
    assert service.reads == []
    with pytest.raises(UnknownName):
        ask(engine, COUNT, STRANGER)
    assert service.reads == []


def test_counts_are_read_once_for_each_number_of_answers(service: Watched, engine: Engine) -> None:
    for n in (40, 41):
        for _ in range(n - (40 if n > 40 else 0)):
            respond(service)
        service.reads.clear()
        rows = ask(engine, COUNT)
        assert sum(row["n"] for row in rows) == pytest.approx(n)
        assert service.reads.count("counts") == 1
        assert ask(engine, COUNT) == rows
        other = ask(engine, "SELECT smokes, COUNT(*) AS n FROM survey GROUP BY smokes")
        assert sum(row["n"] for row in other) == pytest.approx(n)
        assert service.reads.count("counts") == 1


def test_the_view_of_collections_reads_no_counts(service: Watched, engine: Engine) -> None:
    view = "SELECT state, n_respondents, covered FROM data_privacy.collections"
    assert ask(engine, view) == [{"state": "open", "n_respondents": 0, "covered": ""}]
    for _ in range(60):
        respond(service)
    (row,) = ask(engine, view)
    covered = "(education, region), (education, smokes), (region, smokes)"
    assert row == {"state": "open", "n_respondents": 60, "covered": covered}
    service.close_collection(OWNER, "survey")
    assert ask(engine, view) == [row | {"state": "closed"}]
    assert "counts" not in service.reads


def test_an_answer_that_came_meanwhile_is_noticed(service: Watched) -> None:
    """What was kept is given again while its position is the same: that of its own counts."""
    tables = CollectedTables(service)
    respond(service)
    early = tables["survey"]
    assert early.position[0] == 1
    respond(service)
    assert early.position[0] == 2
    assert early.estimates.n_respondents == 2
    respond(service)
    assert early.position[0] == early.estimates.n_respondents == 2
    assert tables["survey"].position[0] == tables["survey"].estimates.n_respondents == 3


def test_where_counts_cannot_be_read_whoever_asks_is_told_and_others_go_on(
    service: Watched, engine: Engine, tmp_path: Path
) -> None:
    respond(service)
    service.close_collection(OWNER, "survey")
    with closing(CountStore(tmp_path / "counts")) as store:
        store._connection.execute("UPDATE answered SET n = n + 1")
    assert ask(engine, NOT_ABOUT_IT) == [{"one": 1}]
    with pytest.raises(StoreUnavailable, match="have changed since it was closed"):
        ask(engine, COUNT)


def test_an_old_collection_that_is_no_table_keeps_no_other_from_being_asked(
    service: Watched, engine: Engine, ledger: Ledger
) -> None:
    alike = [Attribute(name, ("no", "yes")) for name in ("Smokes", "smokes")]
    views = [((one.name,),) for one in alike]
    campaign = planned_campaign("habits", alike, views, epsilon_units=UNITS_PER_EPSILON)
    opened = CollectionOpened(campaign_text(campaign), 9, False, "owner")
    ledger.append_collection(lambda _: opened)
    for _ in range(40):
        respond(service)
    assert [info.schema.table for info in engine.tables(OWNER)] == ["survey"]
    assert sum(row["n"] for row in ask(engine, COUNT, OWNER)) == pytest.approx(40)
    with pytest.raises(UnknownName):
        ask(engine, "SELECT COUNT(*) AS n FROM habits", OWNER)
