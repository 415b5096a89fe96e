"""SQL on collections of randomised answers: true values lie in intervals as often as promised."""

import math
from fractions import Fraction

import grpc
import numpy as np
import pytest

import tacit_client
from accountant.ledger.credentials import Role
from accountant.ledger.limits import Payer
from cube.measurement import UNITS_PER_EPSILON
from cube.refusals import InvalidTarget, NotCollected, TooLarge
from local_dp.campaign import Attribute, Campaign, planned_campaign
from proxy.api.requests import Caller, QueryRequest, QueryResult
from proxy.collections.feature import VIEW, view_of
from proxy.collections.table import CollectedTable
from proxy.engine.engine import Engine
from proxy.feature import Feature
from proxy.protocol import tacit_pb2, tacit_pb2_grpc
from tests.support.respondents import (
    ATTRIBUTES,
    CITY,
    Rows,
    campaign_of,
    collected,
    submitted,
    true_rows,
)
from tests.support.serving import serving

N_RESPONDENTS = 4000
N_COLLECTIONS = 150
CONFIDENCE = 0.9
WITH = f"WITH DIFFERENTIAL_PRIVACY OPTIONS(confidence => {CONFIDENCE})"
CAMPAIGN = campaign_of(alone=[CITY])


def ask(table: CollectedTable, sql: str) -> QueryResult:
    return Engine({}, features=[Feature({"survey": table})]).answer(QueryRequest(sql=sql))


def levels(rows: Rows, name: str) -> np.ndarray[tuple[int], np.dtype[np.object_]]:
    """What every respondent would have said of one attribute."""
    return np.array(CAMPAIGN.by_name[name].levels, dtype=object)[rows[name]]


def test_answers_of_real_respondents_are_counted_in_sql() -> None:
    rng = np.random.default_rng(3)
    rows = true_rows(CAMPAIGN, 2000, rng)
    table = CollectedTable(submitted(CAMPAIGN, rows, seed=4))
    result = ask(
        table,
        "SELECT WITH DIFFERENTIAL_PRIVACY OPTIONS(confidence => 0.9999) "
        "education, COUNT(*) AS n FROM survey GROUP BY education ORDER BY education NULLS LAST",
    )
    said = result.data.to_pylist()
    assert [one["education"] for one in said] == ["college", "school", None]
    assert result.receipt is not None
    (column,) = result.receipt.columns
    assert (column.source, column.epsilon_spent) == ("randomized", Fraction(0))
    for one, low, high in zip(said, column.low, column.high, strict=True):
        truth = (levels(rows, "education") == one["education"]).sum()
        assert low <= truth <= high
    assert result.receipt.notes[0].startswith(
        "survey: 2000 respondents answered, each at epsilon 2 of their own"
    )


def test_a_claim_about_a_collection_has_no_probability() -> None:
    """Its laws bound errors: what they leave is no probability."""
    rows = true_rows(CAMPAIGN, 200, np.random.default_rng(5))
    table = CollectedTable(submitted(CAMPAIGN, rows, seed=6))
    claims = (
        "SELECT COUNT(*) AS n, DP_PROBABILITY(n > 5) AS p, DP_PROBABILITY(AVG(grade) > 1) AS q "
        "FROM survey WHERE member"
    )
    (said,) = ask(table, claims).data.to_pylist()
    assert said["n"] is not None
    assert said["p"] is said["q"] is None


STATEMENTS = {
    "groups": "SELECT {} education, COUNT(*) AS n FROM survey GROUP BY education",
    "condition": "SELECT {} COUNT(*) AS n FROM survey WHERE grade >= 2 AND member",
    "sum": "SELECT {} SUM(years) AS n FROM survey WHERE education IS NULL",
    "share": "SELECT {} COUNT(*) FILTER (WHERE member) * 1.0 / COUNT(*) AS n FROM survey",
    "average": "SELECT {} member, AVG(grade) AS n FROM survey GROUP BY member",
}


def truths(name: str, rows: Rows, said: list[dict[str, object]]) -> list[float]:
    """The true value of each row of a statement's answer."""
    member = levels(rows, "member").astype(bool)
    education = levels(rows, "education")
    match name:
        case "groups":
            return [float((education == one["education"]).sum()) for one in said]
        case "condition":
            return [float((member & (levels(rows, "grade").astype(int) >= 2)).sum())]
        case "sum":
            return [float(levels(rows, "years")[education == None].sum())]  # noqa: E711 - of each
        case "share":
            return [float(member.mean())]
        case _:
            grades = levels(rows, "grade").astype(float)
            return [float(grades[member == one["member"]].mean()) for one in said]


@pytest.mark.parametrize("name", STATEMENTS)
def test_true_values_are_in_intervals_as_often_as_promised(name: str) -> None:
    rng = np.random.default_rng(7)
    own: dict[str, CollectedTable] = {}
    engine, sql = Engine({}, features=[Feature(own)]), STATEMENTS[name].format(WITH)
    n_inside = n_asked = 0
    for number in range(N_COLLECTIONS):
        rows = true_rows(CAMPAIGN, N_RESPONDENTS + number, rng)
        own["survey"] = CollectedTable(collected(CAMPAIGN, rows, rng))
        result = engine.answer(QueryRequest(sql=sql))
        said = result.data.to_pylist()
        assert result.receipt is not None
        (column,) = result.receipt.columns
        assert column.confidence == CONFIDENCE
        for truth, low, high in zip(truths(name, rows, said), column.low, column.high, strict=True):
            n_inside += low <= truth <= high
            n_asked += 1
    slack = 3.5 * math.sqrt(CONFIDENCE * (1 - CONFIDENCE) / N_COLLECTIONS)
    assert n_inside / n_asked >= CONFIDENCE - slack
    if name not in {"average", "share"}:  # formulas have boxes, which are wide on purpose
        assert n_inside / n_asked <= CONFIDENCE + slack


def test_shares_of_all_respondents_are_as_narrow_as_their_counts() -> None:
    rng = np.random.default_rng(5)
    rows = true_rows(CAMPAIGN, N_RESPONDENTS, rng)
    table = CollectedTable(collected(CAMPAIGN, rows, rng))
    counts = ask(table, "SELECT member, COUNT(*) AS n FROM survey GROUP BY member")
    shares = ask(table, "SELECT AVG(CASE WHEN member THEN 1 ELSE 0 END) AS share FROM survey")
    assert counts.receipt is not None
    assert shares.receipt is not None
    (column,), (share,) = counts.receipt.columns, shares.receipt.columns
    place = [one["member"] for one in counts.data.to_pylist()].index(True)
    width = (column.high[place] - column.low[place]) / N_RESPONDENTS
    # A box of two parts, of which one is known, is at half the tail.
    assert width <= share.high[0] - share.low[0] <= 1.25 * width


def test_columns_that_were_not_asked_together_are_refused_with_what_was() -> None:
    rng = np.random.default_rng(5)
    table = CollectedTable(collected(CAMPAIGN, true_rows(CAMPAIGN, 500, rng), rng))
    sql = "SELECT city, COUNT(*) AS n FROM survey WHERE member GROUP BY city"
    with pytest.raises(NotCollected, match="asked about city, member together"):
        ask(table, sql)
    modelled = ask(
        table,
        sql.replace("SELECT", "SELECT WITH DIFFERENTIAL_PRIVACY OPTIONS(fallback => 'model')"),
    )
    assert modelled.receipt is not None
    (column,) = modelled.receipt.columns
    assert column.source == "model"
    assert np.isnan(column.low).all()


def test_shares_of_a_total_are_computed_from_answers() -> None:
    rng = np.random.default_rng(5)
    rows = true_rows(CAMPAIGN, N_RESPONDENTS, rng)
    table = CollectedTable(collected(CAMPAIGN, rows, rng))
    result = ask(
        table,
        "SELECT member, COUNT(*) * 1.0 / (SELECT COUNT(*) FROM survey) AS share "
        "FROM survey GROUP BY member",
    )
    share = {one["member"]: one["share"] for one in result.data.to_pylist()}
    assert sum(share.values()) == pytest.approx(1)
    assert share[True] == pytest.approx(levels(rows, "member").astype(bool).mean(), abs=0.1)


def test_collections_are_listed_with_what_each_respondent_lost() -> None:
    rng = np.random.default_rng(5)
    own = {"survey": CollectedTable(collected(CAMPAIGN, true_rows(CAMPAIGN, 500, rng), rng))}
    engine = Engine({}, features=[Feature(own, {VIEW: view_of(own)})])
    sql = "SELECT * FROM data_privacy.collections"
    (row,) = engine.answer(QueryRequest(sql=sql)).data.to_pylist()
    assert row == {
        "table_name": "survey",
        "campaign": own["survey"].edition,
        "state": "closed",
        "epsilon": 2.0,
        "n_respondents": 500,
        "n_answered": 1,
        "covered": "(city), (education, grade), (education, member), (education, years), "
        "(grade, member), (grade, years), (member, years)",
    }
    nobody = Caller(Payer("ann"), Role.ANALYST, ("other",))
    assert not engine.answer(QueryRequest(sql=sql, caller=nobody)).data.num_rows
    listed = engine.answer(
        QueryRequest(
            sql="SELECT column_name, data_type FROM information_schema.columns "
            "WHERE table_name = 'survey' ORDER BY ordinal_position"
        )
    ).data.to_pylist()
    assert [one["column_name"] for one in listed] == [
        "education",
        "grade",
        "member",
        "years",
        "city",
    ]


def test_a_collection_goes_over_the_wire_with_its_receipt() -> None:
    rng = np.random.default_rng(5)
    own = {"survey": CollectedTable(collected(CAMPAIGN, true_rows(CAMPAIGN, 500, rng), rng))}
    count = "SELECT city, COUNT(*) AS n FROM survey GROUP BY city"
    with serving(Engine({}, features=[Feature(own)])) as address:
        with tacit_client.connect(address) as connection:
            answer = connection.sql(count)
            assert (answer.source, answer.epsilon_spent) == ("randomized", 0)
            assert answer.epsilon_left is None
            assert "epsilon spent 0" in str(answer)
            with pytest.raises(tacit_client.InvalidStatement) as refused:
                connection.sql(count.replace("GROUP", "WHERE member GROUP"))
            assert refused.value.code == "not_collected"
        with grpc.insecure_channel(address) as channel:
            stub = tacit_pb2_grpc.TacitStub(channel)
            (table,) = stub.ListTables(tacit_pb2.ListTablesRequest()).tables
    assert (table.name, table.default_half_width) == ("survey", 0)
    assert [column.name for column in table.columns][-1] == "city"


TOGETHER = planned_campaign(
    "survey",
    ATTRIBUTES,
    [(("education", "grade", "member"),)],
    epsilon_units=3 * UNITS_PER_EPSILON,
)


def tied(campaign: Campaign, n: int, *, to_member: bool) -> Rows:
    """Grades that follow whether somebody is a member, or nothing; and educations that do."""
    rng = np.random.default_rng(11)
    member = rng.integers(2, size=n)
    grade = rng.choice(3, n, p=[0.5, 0.3, 0.2])
    if to_member:
        grade = np.where(rng.random(n) < 0.4, member, grade)
    education = np.where(rng.random(n) < 0.7, member, rng.integers(3, size=n))
    drawn = {"education": education, "grade": grade, "member": member}
    return {one.name: drawn.get(one.name, np.zeros(n, dtype=int)) for one in campaign.attributes}


def outcome(table: CollectedTable, test: str, options: str = "") -> dict[str, object]:
    (row,) = ask(table, f"SELECT {options} {test} FROM survey").data.to_pylist()  # noqa: S608 - a test's own text
    found: dict[str, object] = row
    return found


def test_independence_is_tested_for_nothing_and_says_the_same_again() -> None:
    rng = np.random.default_rng(12)
    own = CollectedTable(collected(TOGETHER, tied(TOGETHER, 20_000, to_member=True), rng))
    result = ask(own, "SELECT DP_CHI2_TEST(grade, member) FROM survey")
    (row,) = result.data.to_pylist()
    assert (row["decision"], row["degrees_of_freedom"], row["replicates"]) == ("dependent", 2, 999)
    assert row["p_value"] == 1 / 1000
    assert result.receipt is not None
    assert (result.receipt.epsilon_spent, result.receipt.budget) == (Fraction(0), None)
    assert result.receipt.notes[-1].startswith("survey: tested on the 20000 answers about grade, ")
    again = CollectedTable(own.estimates)
    assert outcome(again, "DP_CHI2_TEST(grade, member)") == row


def test_what_is_tied_by_a_third_column_alone_is_independent_given_that() -> None:
    rng = np.random.default_rng(13)
    rows = tied(TOGETHER, 30_000, to_member=True)
    table = CollectedTable(collected(TOGETHER, rows, rng))
    whole = outcome(table, "DP_CHI2_TEST(education, grade)")
    assert whole["decision"] == "dependent"
    given = outcome(table, "DP_CHI2_TEST(education IS NULL, grade, GIVEN => member)")
    assert (given["decision"], given["degrees_of_freedom"]) == ("not rejected", 4)
    sometimes = "DP_CHI2_TEST(education, grade >= 2)"
    (row,) = ask(table, f"SELECT {sometimes} FROM survey WHERE member").data.to_pylist()  # noqa: S608 - a test's own text
    assert row["decision"] == "not rejected"
    assert row["degrees_of_freedom"] == 2


def test_three_columns_are_tested_together() -> None:
    """Of two values each: 8 - 1 - 3 degrees."""
    rng = np.random.default_rng(16)
    table = CollectedTable(collected(TOGETHER, tied(TOGETHER, 30_000, to_member=True), rng))
    for statistic in ("pearson", "g2"):
        options = f"WITH DIFFERENTIAL_PRIVACY OPTIONS(statistic => '{statistic}')"
        found = outcome(table, "DP_CHI2_TEST(education IS NULL, grade >= 2, member)", options)
        assert (found["decision"], found["degrees_of_freedom"]) == ("dependent", 4)


def test_independence_that_holds_is_not_rejected_through_sql() -> None:
    """The level is .01 and the seed fixed: of a hundred seeds one would reject."""
    rng = np.random.default_rng(14)
    table = CollectedTable(collected(TOGETHER, tied(TOGETHER, 20_000, to_member=False), rng))
    options = "WITH DIFFERENTIAL_PRIVACY OPTIONS(level => 0.01, replicates => 499)"
    found = outcome(table, "DP_CHI2_TEST(grade, member)", options)
    assert (found["decision"], found["level"], found["replicates"]) == ("not rejected", 0.01, 499)


def test_a_test_of_columns_that_were_not_asked_together_is_refused_whatever_it_falls_back_on() -> (
    None
):
    rng = np.random.default_rng(5)
    table = CollectedTable(collected(CAMPAIGN, true_rows(CAMPAIGN, 500, rng), rng))
    model = "WITH DIFFERENTIAL_PRIVACY OPTIONS(fallback => 'model')"
    for options in ("", model):
        for explain in ("", "EXPLAIN PRIVACY "):
            with pytest.raises(NotCollected, match="about city, member together") as refused:
                ask(table, f"{explain}SELECT {options} DP_CHI2_TEST(city, member) FROM survey")  # noqa: S608 - a test's own text
            assert str(refused.value.hint).endswith("(grade, years), (member, years).")
    with pytest.raises(InvalidTarget, match="cannot have a relative target"):
        outcome(table, "DP_CHI2_TEST(grade, member)", model.replace("fallback => 'model'",
                                                                    "relative => 0.1"))  # fmt: skip


def test_too_few_answers_are_no_evidence_for_independence() -> None:
    rng = np.random.default_rng(15)
    table = CollectedTable(collected(TOGETHER, tied(TOGETHER, 30, to_member=False), rng))
    found = outcome(table, "DP_CHI2_TEST(grade, member)")
    assert (found["decision"], found["statistic"], found["p_value"]) == ("cannot tell", None, 1.0)


def test_more_simulated_answers_than_a_few_seconds_allow_are_refused() -> None:
    wide = planned_campaign(
        "survey",
        [Attribute(name, tuple(range(200))) for name in ("a", "b")],
        [(("a", "b"),)],
        epsilon_units=UNITS_PER_EPSILON,
    )
    rng = np.random.default_rng(16)
    rows = {name: rng.integers(200, size=2000) for name in ("a", "b")}
    table = CollectedTable(collected(wide, rows, rng))
    n_places = wide.combinations[0].channel.n_tallies
    with pytest.raises(TooLarge, match=f"counted at {n_places} places") as refused:
        outcome(table, "DP_CHI2_TEST(a >= 100, b >= 100)")
    assert str(refused.value.hint).endswith(f"or ask for {2**25 // n_places} replicates at most.")


def test_the_call_for_a_test_and_a_mixed_statement_take_collections_too() -> None:
    rng = np.random.default_rng(12)
    own = CollectedTable(collected(TOGETHER, tied(TOGETHER, 5000, to_member=True), rng))
    engine = Engine({}, features=[Feature({"survey": own})])
    union = (
        "SELECT 'grade' AS tested, decision FROM (SELECT DP_CHI2_TEST(grade, member) FROM survey) "
        "AS a UNION ALL SELECT 'n', CAST(n > 0 AS VARCHAR) FROM (SELECT COUNT(*) AS n FROM survey) "
        "AS b ORDER BY tested"
    )
    said = engine.answer(QueryRequest(sql=union)).data.to_pylist()
    assert said == [
        {"tested": "grade", "decision": "dependent"},
        {"tested": "n", "decision": "true"},
    ]
    with serving(engine) as address, grpc.insecure_channel(address) as channel:
        stub = tacit_pb2_grpc.TacitStub(channel)
        reply = stub.TestIndependence(
            tacit_pb2.TestIndependenceRequest(
                table="survey", x="education", y="grade", given=["member"]
            )
        )
    assert (reply.decision, reply.degrees_of_freedom) == ("not rejected", 8)
    assert reply.receipt.epsilon_spent == 0
    assert not reply.receipt.HasField("budget")
