"""Laws of columns given values of others: the model's, or counted, and what is refused."""

from collections.abc import Iterator
from pathlib import Path

import pyarrow as pa
import pyarrow.compute as pc
import pytest

from cube.refusals import Refused
from proxy.api.requests import LOCAL
from proxy.engine.engine import Engine
from proxy.synthetic_tables import conditional_law as laws
from proxy.synthetic_tables.conditional_law import LawBasis, LawQuestion, ModelLaw
from synthesis.privbayes import answering
from tests.support.synthetic import ANN, EVE, asked, spent, synthetic_engine

COLUMNS = "columns => (city, member, visits)"


@pytest.fixture
def engine(tmp_path: Path) -> Iterator[Engine]:
    """An engine with the tables `net`, of a network, and `pairs`, pairwise."""
    with synthetic_engine(tmp_path) as engine:
        options = f"epsilon => 2, rows => 2000, seed => 4, {COLUMNS}"
        network = f"{options}, method => 'privbayes', degree => 2"
        asked(engine, f"CREATE SYNTHETIC TABLE net FROM people WITH ({network})", ANN)
        asked(engine, f"CREATE SYNTHETIC TABLE pairs FROM people WITH ({options})", ANN)
        yield engine


def law(engine: Engine, name: str, of: str, **given: str) -> ModelLaw:
    question = LawQuestion(tuple(of.split(",")), tuple(given.items()))
    return engine.synthetic.law(LOCAL, name, question)


def shares(found: ModelLaw) -> dict[tuple[object, ...], float]:
    return {tuple(row.values())[:-1]: row["share"] for row in found.data.to_pylist()}


def test_a_network_tells_the_law_without_rows(engine: Engine) -> None:
    before = spent(engine)
    joint = law(engine, "net", "city,member")
    assert (joint.way, joint.n_rows) == (LawBasis.EXACT, None)
    assert joint.data.schema.types == [pa.string(), pa.bool_(), pa.float64()]
    by_both = shares(joint)
    assert set(by_both) == {
        (city, member) for city in ("Oslo", "Paris", "Rome", None) for member in (False, True)
    }
    assert sum(by_both.values()) == pytest.approx(1)
    given = shares(law(engine, "NET", "City", member="TRUE"))
    total = sum(share for (_, member), share in by_both.items() if member)
    for (city,), share in given.items():
        assert share == pytest.approx(by_both[city, True] / total)
    assert spent(engine) == before


def test_rows_of_the_network_have_the_law_that_it_tells(engine: Engine) -> None:
    rows = "SELECT visits, COUNT(*) / 2000.0 AS share FROM net GROUP BY visits"
    told = shares(law(engine, "net", "visits"))
    for row in asked(engine, rows):
        assert told[(row["visits"],)] == pytest.approx(float(str(row["share"])), abs=0.05)


def test_where_it_is_not_exact_it_says_so_and_says_the_same_again(
    engine: Engine, monkeypatch: pytest.MonkeyPatch
) -> None:
    exact = law(engine, "net", "city", member="true")
    monkeypatch.setattr(answering, "exact_law", lambda *_: None)
    drawn = law(engine, "net", "city", member="true")
    assert drawn.way is LawBasis.WEIGHTED
    assert drawn.n_rows is not None
    assert 1000 < drawn.n_rows <= answering.N_ROWS_WEIGHTED
    for level, share in shares(exact).items():
        assert shares(drawn)[level] == pytest.approx(share, abs=0.03)
    assert law(engine, "net", "city", member="true").data.equals(drawn.data)


def test_of_a_pairwise_table_shares_are_counted_among_its_rows(engine: Engine) -> None:
    found = law(engine, "pairs", "visits", city="NULL", member="false")
    (n_rows,) = asked(engine, "SELECT COUNT(*) AS n FROM pairs WHERE city IS NULL AND NOT member")
    assert (found.way, found.n_rows) == (LawBasis.COUNTED, n_rows["n"])
    counted = asked(
        engine,
        "SELECT visits, COUNT(*) AS n FROM pairs WHERE city IS NULL AND NOT member GROUP BY visits",
    )
    expected = {(row["visits"],): int(str(row["n"])) / int(str(n_rows["n"])) for row in counted}
    assert {level: share for level, share in shares(found).items() if share} == expected
    assert pc.sum(found.data["share"]).as_py() == pytest.approx(1)


@pytest.mark.parametrize("name", ["net", "pairs"])
@pytest.mark.parametrize(
    ("question", "code", "said"),
    [
        (("cty", {}), "unknown_name", "has no column 'cty'. Did you mean 'city'?"),
        (("age", {}), "unknown_name", "It has city, member, visits."),
        (("city", {"age": "3"}), "unknown_name", "has no column 'age'"),
        (("city", {"visits": "21"}), "invalid_request", "Its levels: 0 .. 20."),
        (("visits", {"city": "Olso"}), "invalid_request", "Did you mean 'Oslo'?"),
        (("city,City", {}), "invalid_request", "city is named twice"),
        (("city", {"CITY": "Oslo"}), "invalid_request", "city is named twice"),
    ],
)
def test_what_is_not_there_is_refused_with_what_is(
    engine: Engine, name: str, question: tuple[str, dict[str, str]], code: str, said: str
) -> None:
    of, given = question
    with pytest.raises(Refused) as caught:
        law(engine, name, of, **given)
    assert caught.value.code == code
    assert said in caught.value.explain()
    assert caught.value.hint


def test_a_law_has_a_size_and_columns_and_a_reader(
    engine: Engine, monkeypatch: pytest.MonkeyPatch
) -> None:
    with pytest.raises(Refused, match="No column"):
        engine.synthetic.law(LOCAL, "net", LawQuestion(()))
    with pytest.raises(Refused, match="no synthetic table"):
        engine.synthetic.law(EVE, "net", LawQuestion(("city",)))
    monkeypatch.setattr(laws, "N_SHARES_MAX", 83)
    with pytest.raises(Refused, match="84 shares; 83 are allowed"):
        law(engine, "net", "city,visits")


def test_values_that_no_row_has_are_refused(engine: Engine) -> None:
    sql = "CREATE SYNTHETIC TABLE one FROM people WITH (rows => 1, columns => (city, visits))"
    asked(engine, sql)
    (row,) = asked(engine, "SELECT visits FROM one")
    other = "1" if row["visits"] == 0 else "0"
    with pytest.raises(Refused, match="no row with the given values") as caught:
        law(engine, "one", "city", visits=other)
    assert caught.value.code == "invalid_request"
