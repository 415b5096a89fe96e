"""Synthetic tables of collections: what they agree with, what they cost, what they stay."""

from collections.abc import Iterator
from dataclasses import replace
from fractions import Fraction
from itertools import combinations
from pathlib import Path

import grpc
import numpy as np
import pytest

import tacit_client
from accountant.ledger.credentials import Role
from accountant.ledger.limits import Payer
from cube.measurement import UNITS_PER_EPSILON
from cube.refusals import (
    InvalidRequest,
    InvalidTarget,
    NameTaken,
    NotAllowed,
    Refused,
    TooLarge,
    UnknownName,
)
from local_dp.campaign import Attribute, Campaign, designed_views, planned_campaign
from local_dp.channels.channel import Floats
from local_dp.channels.randomised_response import RandomisedResponse
from local_dp.estimates.collection import CollectionEstimates
from local_dp.estimates.shares import Tally
from proxy.api.requests import LOCAL, Caller, QueryRequest
from proxy.collections.table import CollectedTable
from proxy.engine.engine import Engine
from proxy.feature import Feature
from proxy.protocol import tacit_pb2, tacit_pb2_grpc
from proxy.synthetic_tables.conditional_law import LawQuestion
from proxy.synthetic_tables.from_answers import AnsweredTables, make_of_answers
from proxy.synthetic_tables.make import columns_of
from proxy.synthetic_tables.models import decoded_model
from proxy.synthetic_tables.record import SyntheticRecord
from proxy.synthetic_tables.request import MadeTable, Method, SynthesisRequest
from proxy.synthetic_tables.store import SyntheticStore
from synthesis.networks.score import mutual_information
from synthesis.privbayes.answering import law_given
from synthesis.privbayes.network import BayesianNetwork
from tests.support.collections_of_answers import NAMES, SURVEY, survey_joint, survey_marginal
from tests.support.respondents import CITY, campaign_of, collected, true_rows
from tests.support.serving import serving
from tests.support.survey_network import NAMES as SAMPLED
from tests.support.survey_network import sampled

ANN = Caller(Payer("ann"), Role.ANALYST, ("survey",))
EVE = Caller(Payer("eve"), Role.ANALYST, ("another",))
MAKE = "CREATE SYNTHETIC TABLE s FROM survey WITH (epsilon => 0)"
NETWORK = MAKE.replace("=> 0", "=> 0, method => 'privbayes', seed => 3")
CAMPAIGN = campaign_of(alone=[CITY])


def answers(n: int, seed: int = 1) -> CollectedTable:
    rng = np.random.default_rng(seed)
    return CollectedTable(collected(CAMPAIGN, true_rows(CAMPAIGN, n, rng), rng))


def asked(epsilon: int, size: int = 2) -> Campaign:
    """Every pair, or every triple."""
    views = designed_views(NAMES, 2) if size == 2 else [(one,) for one in combinations(NAMES, size)]
    return planned_campaign("survey", SURVEY, views, epsilon_units=epsilon * UNITS_PER_EPSILON)


def surveyed(n: int, epsilon: int, seed: int) -> CollectedTable:
    """What respondents of the Survey network answer, each by themselves."""
    codes = sampled(n, seed)
    rows = {name: codes[:, SAMPLED.index(name)] for name in NAMES}
    return CollectedTable(collected(asked(epsilon), rows, np.random.default_rng(seed)))


def of_population(campaign: Campaign, n: int, rng: np.random.Generator) -> CollectedTable:
    """Counts of so many answers that nobody would draw them one by one."""
    tallies, n_each = {}, n // len(campaign.combinations)
    for place, one in enumerate(campaign.combinations):
        assert isinstance(one.channel, RandomisedResponse)
        rates = one.channel.rates(survey_marginal(one.scope).ravel())
        tallies[place] = [Tally(one.channel, n_each, rng.multinomial(n_each, rates))]
    n_answers = n_each * len(campaign.combinations)
    return CollectedTable(CollectionEstimates(campaign, tallies, n_answers))


def made_of(
    table: CollectedTable, method: Method, n_rows: int = 1, degree: int = 3, seed: int = 0
) -> MadeTable:
    request = SynthesisRequest(
        table="survey", epsilon=Fraction(0), method=method, n_rows=n_rows, seed=seed, degree=degree
    )
    return make_of_answers(table, request, lambda _step: None)


def counted(made: MadeTable, table: CollectedTable) -> Floats:
    """How many rows there are of each combination of levels."""
    axes = table.info.schema.axes
    found = np.zeros([axis.size for axis in axes])
    places = [
        np.array([axis.levels.index(one) for one in made.rows.column(axis.name).to_pylist()])
        for axis in axes
    ]
    np.add.at(found, tuple(places), 1.0)
    return found


def law_of(made: MadeTable, names: tuple[str, ...] = NAMES) -> Floats:
    network = decoded_model(made.model)
    assert isinstance(network, BayesianNetwork)
    return law_given(network, names, {}, np.random.default_rng(0)).shares


def distance(shares: Floats) -> float:
    return float(np.abs(shares - survey_joint()).sum()) / 2


@pytest.fixture
def own() -> dict[str, CollectedTable]:
    return {"survey": answers(20_000)}


@pytest.fixture
def engine(tmp_path: Path, own: dict[str, CollectedTable]) -> Engine:
    return Engine({}, features=[Feature(own)], store=SyntheticStore(tmp_path))


def ask(engine: Engine, sql: str, caller: Caller = ANN) -> list[dict[str, object]]:
    found: list[dict[str, object]] = engine.answer(
        QueryRequest(sql=sql, caller=caller)
    ).data.to_pylist()
    return found


@pytest.mark.parametrize("sql", [MAKE, NETWORK])
def test_a_synthetic_table_of_a_collection_is_free_and_asked_like_any(
    engine: Engine, own: dict[str, CollectedTable], sql: str
) -> None:
    position = own["survey"].position
    result = engine.answer(QueryRequest(sql=sql, caller=ANN))
    (made,) = result.data.to_pylist()
    assert (made["name"], made["source"], made["epsilon_spent"]) == ("s", "survey", 0)
    assert (made["n_rows"], made["unknown"], made["incomplete"]) == (20_000, "", "")
    assert result.receipt is not None
    assert (result.receipt.epsilon_spent, result.receipt.budget) == (Fraction(0), None)
    assert own["survey"].position == position
    # Names and levels are those of the collection's columns, whatever the campaign's order.
    for column in ("education", "grade", "member", "years", "city"):
        by = f"SELECT {column} AS level, COUNT(*) AS n FROM {{}} GROUP BY {column}"  # noqa: S608
        known = {one["level"]: float(str(one["n"])) for one in ask(engine, by.format("survey"))}
        drawn = {one["level"]: float(str(one["n"])) for one in ask(engine, by.format("s"))}
        assert drawn.keys() == known.keys()
        # A network's rows are drawn one by one: 4.5 deviations of 20,000.
        within = 2.0 if sql is MAKE else 4.5 * np.sqrt(20_000 / 4)
        assert all(abs(drawn[level] - known[level]) <= within for level in known)


def test_its_record_says_what_it_was_made_of(engine: Engine) -> None:
    ask(engine, NETWORK)
    (row,) = ask(engine, "SELECT * FROM data_privacy.synthetic_tables")
    assert (row["source"], row["made_by"], row["n_charges"]) == ("survey", "ann", 0)
    assert str(row["model"]).endswith("; randomized answers of 20000 respondents")
    assert str(row["options"]).startswith(
        "epsilon => 0, method => 'privbayes', score => 'I', degree => 3, hierarchies => false"
    )
    (record,) = engine.synthetic.known(ANN)
    assert record.n_respondents == 20_000
    assert SyntheticRecord.from_json(record.to_json()) == record
    old = record.to_json().replace('"n_respondents": 20000', '"generation": 1')
    assert SyntheticRecord.from_json(old) == replace(record, n_respondents=None)
    # The options of the record make the same rows again.
    rows = "SELECT education, grade, years, COUNT(*) AS n FROM {} GROUP BY ALL ORDER BY ALL"
    again = f"CREATE SYNTHETIC TABLE again FROM survey WITH ({row['options']})"
    ask(engine, again)
    assert ask(engine, rows.format("again")) == ask(engine, rows.format("s"))


def test_it_stays_what_it_was_when_more_answer_and_over_a_restart(
    engine: Engine, own: dict[str, CollectedTable], tmp_path: Path
) -> None:
    ask(engine, MAKE)
    rows = "SELECT education, COUNT(*) AS n FROM s GROUP BY education ORDER BY n"
    before = ask(engine, rows)
    own["survey"] = answers(30_000, seed=2)
    assert ask(engine, rows) == before
    restarted = Engine({}, features=[Feature(own)], store=SyntheticStore(tmp_path))
    assert ask(restarted, rows) == before
    (record,) = restarted.synthetic.known(ANN)
    assert (record.n_respondents, record.n_rows) == (20_000, 20_000)
    ask(restarted, MAKE.replace("CREATE", "CREATE OR REPLACE"))
    (record,) = restarted.synthetic.known(ANN)
    assert (record.n_respondents, record.n_rows) == (30_000, 30_000)
    del own["survey"]  # its counts cannot be read just now
    assert not restarted.synthetic.known(ANN)


def test_rows_are_drawn_again_laws_told_and_tables_dropped(engine: Engine) -> None:
    ask(engine, NETWORK)
    other = engine.synthetic.resample(ANN, "s", "other", 500, 4)
    assert (other.n_rows, other.n_respondents) == (500, 20_000)
    law = engine.synthetic.law(ANN, "s", LawQuestion(("grade",), (("member", "true"),)))
    assert sum(law.data.column("share").to_pylist()) == pytest.approx(1)
    with pytest.raises(InvalidRequest, match="no history to report on"):
        engine.synthetic.report(ANN, "s")
    with pytest.raises(NotAllowed):
        engine.synthetic.drop(Caller(Payer("bob"), Role.ANALYST, ("survey",)), "s")
    ask(engine, "DROP SYNTHETIC TABLE s")
    assert [one.name for one in engine.synthetic.known(ANN)] == ["other"]
    (step,) = ask(engine, "EXPLAIN CREATE SYNTHETIC TABLE t FROM survey WITH (epsilon => 0)")
    assert step == {"step": "reading the answers", "epsilon": 0, "n_tables": 7}
    told = engine.explain(QueryRequest(sql=MAKE, caller=ANN))
    assert (told.epsilon, told.budget) == (Fraction(0), None)


def test_it_is_listed_and_asked_over_the_wire(engine: Engine) -> None:
    with serving(engine, synthetic=engine.synthetic) as address:
        with tacit_client.connect(address) as connection:
            connection.sql(MAKE)
            assert connection.sql("SELECT COUNT(*) AS n FROM s").fetchall() == [(20_000,)]
        with grpc.insecure_channel(address) as channel:
            stub = tacit_pb2_grpc.TacitStub(channel)
            tables = stub.ListTables(tacit_pb2.ListTablesRequest()).tables
            (record,) = stub.ListSynthetic(tacit_pb2.ListSyntheticRequest()).tables
    of = {one.name: one.synthetic_of for one in tables}
    assert of == {"survey": "", "s": "survey"}
    assert (record.source, record.epsilon_spent) == ("survey", 0)
    assert record.model.endswith("randomized answers of 20000 respondents")


@pytest.mark.parametrize(
    ("options", "refusal", "said"),
    [
        ("epsilon => 1", InvalidTarget, "survey is a collection, which has no budget: epsilon"),
        ("epsilon => 0, evaluate => 0.1", InvalidTarget, "no budget: evaluate"),
        ("epsilon => 0, delta => 1e-9", InvalidRequest, "delta says what to buy"),
        ("epsilon => 0, target => grade", InvalidRequest, "target says"),
        (
            "epsilon => 0, workload => 'SELECT COUNT(*) FROM survey GROUP BY city'",
            InvalidRequest,
            "workload says",
        ),
        ("method => 'privbayes', hierarchies => true", InvalidRequest, "hierarchies says"),
        ("method => 'privbayes', score => 'R'", InvalidRequest, "score says"),
        ("epsilon => 0, columns => (city, town)", UnknownName, "no column 'town'"),
        ("epsilon => 0, degree => 2", InvalidRequest, "no setting degree"),
    ],
)
def test_what_a_collection_cannot_be_asked_for_is_refused(
    engine: Engine, options: str, refusal: type[Refused], said: str
) -> None:
    for explain in ("", "EXPLAIN "):
        with pytest.raises(refusal, match=said):
            ask(engine, f"{explain}CREATE SYNTHETIC TABLE s FROM survey WITH ({options})")
    assert not engine.synthetic.known(LOCAL)


def test_names_and_grants_are_as_for_any_table(engine: Engine) -> None:
    with pytest.raises(UnknownName):
        ask(engine, MAKE, EVE)
    with pytest.raises(NameTaken):
        ask(engine, MAKE.replace("TABLE s", "TABLE survey"))
    ask(engine, MAKE)
    assert not engine.synthetic.known(EVE)
    with pytest.raises(UnknownName):
        ask(engine, "SELECT COUNT(*) FROM s", EVE)


def test_columns_that_nobody_answered_are_drawn_evenly_or_refused(tmp_path: Path) -> None:
    nobody = CollectedTable(CollectionEstimates(CAMPAIGN, {}, 0))
    engine = Engine({}, features=[Feature({"survey": nobody})], store=SyntheticStore(tmp_path))
    with pytest.raises(InvalidRequest, match="No one has answered survey"):
        ask(engine, MAKE)
    full = answers(4000).estimates
    tallies = {
        place: one
        for place, one in full.tallies.items()
        if "city" not in CAMPAIGN.combinations[place].scope
    }
    n = sum(one.n_answers for blocks in tallies.values() for one in blocks)
    some = {"survey": CollectedTable(CollectionEstimates(CAMPAIGN, tallies, n))}
    engine = Engine({}, features=[Feature(some)], store=SyntheticStore(tmp_path))
    (made,) = ask(engine, MAKE)
    assert made["unknown"] == "city"
    by_city = "SELECT city, COUNT(*) AS n FROM s GROUP BY city"
    assert [one["n"] for one in ask(engine, by_city)] == pytest.approx([n / 2] * 2, abs=1)
    with pytest.raises(InvalidRequest, match="about city yet"):
        ask(engine, NETWORK.replace("TABLE s", "TABLE t"))
    ask(engine, NETWORK.replace("TABLE s", "TABLE t").replace("seed", "columns => (grade), seed"))


@pytest.mark.parametrize("seed", range(3))
def test_marginals_of_rows_are_those_that_the_answers_say(seed: int) -> None:
    """Of every column exactly, up to rounding; of every pair within the error that it has.

    The estimates of a pair are an interval's width apart from the truth, and a pair that tells no
    more than noise is drawn as independent: 99.99 % intervals, which are 3.9 deviations, of 90
    cells each time.
    """
    table = surveyed(20_000, 2, seed)
    rows = counted(made_of(table, Method.PAIRWISE, 20_000, seed=seed), table)
    for one in table.agreeing(NAMES):
        places = [NAMES.index(name) for name in one.scope]
        drawn = rows.sum(axis=tuple(place for place in range(6) if place not in places))
        for axis in range(2):
            estimated = np.maximum(one.counts.sum(axis=axis), 0)
            assert np.abs(drawn.sum(axis=axis) - estimated).max() <= 2
        assert (np.abs(drawn - one.counts) <= 3.9 * np.sqrt(one.variances)).all()


@pytest.mark.parametrize("seed", range(3))
def test_laws_of_a_network_are_those_that_the_answers_say(seed: int) -> None:
    table = surveyed(20_000, 2, seed)
    made = made_of(table, Method.PRIVBAYES, seed=seed)
    for one in table.agreeing(NAMES):
        if one.scope in made.tables:
            shares = law_of(made, one.scope)
            assert (np.abs(20_000 * shares - one.counts) <= 3.9 * np.sqrt(one.variances)).all()


def test_rows_come_nearer_to_the_population_as_epsilon_and_answers_grow() -> None:
    """Triples, two parents: every column of the Survey network has at most two."""
    rng = np.random.default_rng(4)
    found = [
        distance(law_of(made_of(of_population(asked(epsilon, 3), n, rng), Method.PRIVBAYES)))
        for epsilon, n in ((2, 20_000), (4, 200_000), (8, 2_000_000), (12, 200_000_000))
    ]
    assert found == sorted(found, reverse=True)
    assert found[0] < 0.13
    assert found[-1] < 0.005, found


def test_pairs_come_as_near_as_pairs_can() -> None:
    """With all that pairs tell, columns drawn from them are nearer than columns by themselves."""
    rng = np.random.default_rng(5)
    table = of_population(asked(12), 20_000_000, rng)
    rows = counted(made_of(table, Method.PAIRWISE, 200_000), table)
    alone = np.ones(())
    for name in NAMES:
        alone = np.multiply.outer(alone, survey_marginal((name,)))
    assert distance(rows / rows.sum()) < 0.025 < distance(alone) / 3


def test_tables_that_are_noise_are_not_taken_for_dependence() -> None:
    """Columns by themselves are .097 off. Teeth: with all pairs, rows were .4 to .65 off."""
    alone, worst = 0.0967, []
    for seed in range(4):
        table = surveyed(5000, 1, seed)
        rows = counted(made_of(table, Method.PAIRWISE, 5000, seed=seed), table)
        worst.append(distance(rows / rows.sum()))
    assert max(worst) < 2.8 * alone, worst
    assert np.mean(worst) < 2.2 * alone, worst


def test_what_chance_shows_does_not_make_parents() -> None:
    """A column of 30 levels shows far more by chance than one of 2 that matters.

    Its worth is below 0 in 20 of 20 collections; what matters is preferred in all of them.
    """
    wide = [Attribute(name, tuple(range(size))) for name, size in (("a", 4), ("b", 2), ("c", 30))]
    views = designed_views(("a", "b", "c"), 2)
    campaign = planned_campaign("survey", wide, views, epsilon_units=2 * UNITS_PER_EPSILON)
    shown = []
    for seed in range(20):
        rng = np.random.default_rng(seed)
        a = rng.integers(4, size=20_000)
        b = np.where(rng.random(20_000) < 0.5, a % 2, rng.integers(2, size=20_000))
        rows = {"a": a, "b": b, "c": rng.integers(30, size=20_000)}
        table = CollectedTable(collected(campaign, rows, rng))
        tables = AnsweredTables(table, columns_of(table.info.schema.axes), rng)
        worth = {other: tables.worth("a", (other,)) for other in ("b", "c")}
        assert worth["b"] > 0 > worth["c"]
        counts = {other: np.maximum(tables.counts(["a", other]), 0) for other in ("b", "c")}
        plain = {
            other: mutual_information((one / one.sum())[np.newaxis], 0)[0]
            for other, one in counts.items()
        }
        shown.append(plain["c"] > plain["b"])
    assert np.mean(shown) > 0.9  # what the tables show by themselves would mislead


def test_simulating_more_answers_than_a_few_seconds_allow_is_refused() -> None:
    for size, epsilon, said in ((40, 5, "simulated answers"), (50, 1, "2500 cells")):
        wide = [Attribute(name, tuple(range(size))) for name in "ab"]
        campaign = planned_campaign(
            "survey", wide, [(("a", "b"),)], epsilon_units=epsilon * UNITS_PER_EPSILON
        )
        rng = np.random.default_rng(6)
        rows = {name: rng.integers(size, size=600) for name in "ab"}
        table = CollectedTable(collected(campaign, rows, rng))
        with pytest.raises(TooLarge, match=said) as refused:
            made_of(table, Method.PRIVBAYES)
        assert "pairwise" in str(refused.value.hint)


@pytest.fixture(autouse=True)
def _no_warnings() -> Iterator[None]:
    with np.errstate(all="raise", under="ignore"):
        yield
