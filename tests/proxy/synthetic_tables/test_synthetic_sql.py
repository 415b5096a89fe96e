"""Synthetic tables in SQL: made, asked, listed, kept and explained."""

from fractions import Fraction
from pathlib import Path

import pyarrow as pa
import pytest

from cube.refusals import Refused
from proxy.api.receipts import RECEIPT_KEY
from proxy.api.requests import LOCAL, QueryRequest
from proxy.config.memory import SyntheticLimits
from proxy.engine.engine import Engine
from proxy.synthetic_tables.service import CREATED_SCHEMA, DROPPED_SCHEMA, PREVIEW_SCHEMA
from tests.support.synthetic import (
    ANN,
    BOB,
    EVE,
    MAKE,
    TWO_COLUMNS,
    asked,
    refused,
    spent,
    synthetic_engine,
)
from tests.support.worlds import SCHEMA

BY_CITY = "SELECT city, COUNT(*) AS n FROM people GROUP BY city"


# What is made.


def test_a_table_is_made_of_the_history_for_nothing(engine: Engine) -> None:
    known = {row["city"]: row["n"] for row in asked(engine, BY_CITY)}
    before = spent(engine)
    (row,) = asked(engine, MAKE)
    assert (row["name"], row["source"], row["epsilon_spent"]) == ("s", "people", 0)
    assert row["unknown"] == "age, member, visits"
    assert row["n_charges"] == 1
    assert spent(engine) == before
    counts = {one["city"]: one["n"] for one in asked(engine, BY_CITY.replace("people", "s"))}
    for city, n in counts.items():
        assert n == pytest.approx(known[city], abs=2)


def test_of_nothing_known_no_table_is_made(engine: Engine) -> None:
    assert refused(engine, MAKE).code == "invalid_request"
    assert not engine.synthetic.known(LOCAL)


def test_a_table_that_is_bought_costs_no_more_than_was_said(engine: Engine) -> None:
    steps = asked(engine, f"EXPLAIN PRIVACY {MAKE} WITH (epsilon => 0.5)")
    assert sum(float(str(step["epsilon"])) for step in steps) == pytest.approx(0.5)
    assert spent(engine) == 0
    request = QueryRequest(sql=f"{MAKE} WITH (epsilon => 0.5)", caller=ANN)
    release = engine.answer(request)
    assert release.receipt is not None
    assert 0 < release.receipt.epsilon_spent == spent(engine) <= Fraction(1, 2)
    assert release.receipt.table == "people"
    assert RECEIPT_KEY in release.data.schema.metadata


def test_what_was_bought_for_a_table_is_known_to_queries(made: Engine) -> None:
    before = spent(made)
    asked(made, "SELECT WITH DIFFERENTIAL_PRIVACY OPTIONS(half_width => 100) COUNT(*) FROM people")
    assert spent(made) == before


def test_columns_come_in_the_order_they_are_named_in(engine: Engine) -> None:
    asked(engine, f"{MAKE} WITH (epsilon => 1, columns => (MEMBER, city))")
    data = engine.answer(QueryRequest(sql="SELECT * FROM s")).data
    assert data.column_names == ["member", "city"]
    assert data.schema.types == [pa.bool_(), pa.string()]


def test_the_same_seed_draws_the_same_rows(made: Engine) -> None:
    first = asked(made, "SELECT * FROM s")
    made.synthetic.resample(ANN, "s", "again", None, 7)
    made.synthetic.resample(ANN, "s", "other", 100, 8)
    assert asked(made, "SELECT * FROM again") == first
    assert asked(made, "SELECT * FROM other") != first[:100]
    assert len(asked(made, "SELECT * FROM other")) == 100
    assert spent(made) == made.synthetic.find(LOCAL, "again").epsilon_spent


def test_rows_that_nobody_numbers_are_as_many_as_there_are_or_as_are_allowed(
    tmp_path: Path,
) -> None:
    with synthetic_engine(tmp_path, limits=SyntheticLimits(n_rows=300)) as engine:
        (row,) = asked(engine, f"{MAKE} WITH (epsilon => 1, {TWO_COLUMNS})")
    assert row["n_rows"] == 300


def test_noise_alone_makes_no_table_larger_than_there_may_be_rows(engine: Engine) -> None:
    for _ in range(5):  # the number of rows is off by hundreds of thousands, up or down
        order = "CREATE OR REPLACE SYNTHETIC TABLE s FROM staff WITH (epsilon => 0.001"
        (row,) = asked(engine, f"{order}, {TWO_COLUMNS})")
        assert 1 <= int(str(row["n_rows"])) <= SCHEMA.n_records_max


@pytest.mark.parametrize(
    ("sql", "schema"),
    [
        (MAKE, CREATED_SCHEMA),
        (f"EXPLAIN PRIVACY {MAKE}", PREVIEW_SCHEMA),
        ("DROP SYNTHETIC TABLE s", DROPPED_SCHEMA),
    ],
)
def test_the_columns_of_a_statement_are_known_before_it_is_carried_out(
    engine: Engine, sql: str, schema: pa.Schema
) -> None:
    assert engine.result_schema(QueryRequest(sql=sql)).equals(schema)
    assert not engine.synthetic.known(LOCAL)
    asked(engine, BY_CITY)
    if sql.startswith("DROP"):
        asked(engine, MAKE)
    assert engine.answer(QueryRequest(sql=sql)).data.schema.equals(schema)


def test_a_table_of_a_network_is_a_table_like_any_other(engine: Engine) -> None:
    options = f"epsilon => 2, method => 'privbayes', rows => 300, {TWO_COLUMNS}"
    (row,) = asked(engine, f"{MAKE} WITH ({options})")
    assert (row["method"], row["n_rows"], row["unknown"]) == ("privbayes", 300, "")
    assert 0 < spent(engine) <= 2
    engine.synthetic.resample(LOCAL, "s", "t", 40, 1)
    assert asked(engine, "SELECT COUNT(*) AS n FROM t") == [{"n": 40}]
    from_nothing = (
        f"CREATE SYNTHETIC TABLE u FROM people WITH (method => 'privbayes', {TWO_COLUMNS})"
    )
    assert "epsilon" in refused(engine, from_nothing).explain()


# What is asked of it.


@pytest.mark.parametrize(
    "sql",
    [
        "SELECT COUNT(*), AVG(CAST(member AS INTEGER)) FROM s",
        "SELECT * FROM S ORDER BY city LIMIT 3",
        "SELECT s.city, country FROM s JOIN cities USING (city) LIMIT 5",
        "SELECT a.city FROM s AS a JOIN s AS b ON a.city = b.city LIMIT 5",
        "WITH n AS (SELECT city, COUNT(*) AS n FROM public.s GROUP BY city) SELECT MAX(n) FROM n",
        "SELECT city FROM s EXCEPT SELECT city FROM cities",
        "SELECT MEDIAN(member::int) OVER (PARTITION BY city) FROM s LIMIT 1",
    ],
)
def test_any_sql_on_it_is_free(made: Engine, sql: str) -> None:
    before = spent(made)
    release = made.answer(QueryRequest(sql=sql, caller=BOB))
    assert release.receipt is None
    assert release.data.num_rows > 0
    assert spent(made) == before


def test_it_stands_beside_answers_of_the_private_table(made: Engine) -> None:
    synthetic = BY_CITY.replace("people", "s").replace("COUNT(*)", "4 * COUNT(*)")
    with_both = f"WITH p AS ({BY_CITY}), s AS ({synthetic})"
    rows = asked(made, f"{with_both} SELECT p.n, s.n AS made FROM p JOIN s USING (city)")  # noqa: S608 - made tables
    assert len(rows) == 3
    for row in rows:
        assert float(str(row["made"])) == pytest.approx(float(str(row["n"])), abs=100)


def test_it_is_not_joined_with_private_rows(made: Engine) -> None:
    sql = "SELECT COUNT(*) FROM people JOIN s ON people.city = s.city"
    assert refused(made, sql).code == "unsupported_sql"


def test_a_plan_of_old_forgets_a_table_that_was_replaced(made: Engine) -> None:
    count = "SELECT COUNT(*) AS n FROM s"
    assert asked(made, count) == [{"n": 500}]
    asked(
        made,
        f"CREATE OR REPLACE SYNTHETIC TABLE S FROM people WITH (rows => 9, {TWO_COLUMNS})",
        ANN,
    )
    assert asked(made, count) == [{"n": 9}]
    asked(made, "DROP SYNTHETIC TABLE s", ANN)
    assert refused(made, count).code == "unknown_name"


def test_the_view_says_where_a_table_comes_from(made: Engine) -> None:
    (row,) = asked(made, "SELECT * FROM data_privacy.synthetic_tables WHERE n_rows > 10")
    assert row["table_name"] == "s"
    assert (row["source"], row["made_by"], row["method"]) == ("people", "ann", "pairwise")
    assert row["options"] == "epsilon => 1, method => 'pairwise', rows => 500, seed => 7"
    assert "city" in str(row["model"])
    assert row["unknown"] == ""
    empty = asked(made, "SELECT COUNT(*) AS n FROM data_privacy.synthetic_tables", EVE)
    assert empty == [{"n": 0}]


def test_the_view_says_how_a_network_was_asked_for(engine: Engine) -> None:
    options = "method => 'privbayes', score => 'I', degree => 1, hierarchies => true, rows => 9"
    asked(engine, f"{MAKE} WITH (epsilon => 1, {options}, seed => 2, columns => (member, visits))")
    asked(
        engine, f"CREATE SYNTHETIC TABLE t FROM people WITH (rows => 9, seed => 2, {TWO_COLUMNS})"
    )
    engine.synthetic.resample(LOCAL, "s", "u", None, None)
    rows = asked(engine, "SELECT options FROM data_privacy.synthetic_tables ORDER BY table_name")
    network, pairwise, again = (str(row["options"]) for row in rows)
    assert network == f"epsilon => 1, {options}, seed => 2"
    assert "degree" not in pairwise
    assert again.startswith(f"epsilon => 1, {options}")


def test_two_engines_on_one_folder_see_each_others_tables(tmp_path: Path) -> None:
    place = tmp_path / "shared"
    for name in ("one", "two"):
        (tmp_path / name).mkdir()
    with (
        synthetic_engine(tmp_path / "one", store=place) as one,
        synthetic_engine(tmp_path / "two", store=place) as two,
    ):
        count = "SELECT COUNT(*) AS n FROM s"
        assert refused(two, count).code == "unknown_name"
        asked(one, f"{MAKE} WITH (epsilon => 1, rows => 40, {TWO_COLUMNS})", ANN)
        assert asked(two, count) == [{"n": 40}]
        assert refused(two, f"{MAKE} WITH (epsilon => 1)").code == "name_taken"
        asked(two, "DROP SYNTHETIC TABLE s", ANN)
        assert refused(one, count).code == "unknown_name"


def test_a_table_is_there_after_a_restart(tmp_path: Path) -> None:
    with synthetic_engine(tmp_path) as engine:
        asked(engine, f"{MAKE} WITH (epsilon => 1, rows => 40, {TWO_COLUMNS})")
        rows = asked(engine, "SELECT * FROM s")
    with synthetic_engine(tmp_path) as engine:
        assert asked(engine, "SELECT * FROM s") == rows
        assert engine.synthetic.resample(LOCAL, "s", "", None, None).name == "people_1"


def test_a_statement_is_explained_by_the_call_as_by_sql(engine: Engine) -> None:
    sql = f"{MAKE} WITH (epsilon => 0.5)"
    explanation = engine.explain(QueryRequest(sql=sql))
    assert explanation.data.to_pylist() == asked(engine, f"EXPLAIN PRIVACY {sql}")
    assert explanation.epsilon == pytest.approx(Fraction(1, 2))
    assert explanation.budget is not None
    assert explanation.budget.left == 10
    with pytest.raises(Refused):
        engine.explain(QueryRequest(sql="DROP SYNTHETIC TABLE s"))
    assert spent(engine) == 0


def test_no_file_holds_more_than_rows_a_model_and_where_they_come_from(
    made: Engine, tmp_path: Path
) -> None:
    suffixes = {path.suffix for path in (tmp_path / "synthetic").iterdir()}
    assert suffixes == {".json", ".parquet", ".model"}
    (record,) = made.synthetic.known(LOCAL)
    rows = made.synthetic.rows(record)
    assert rows.column_names == ["city", "member"]
    assert not rows.schema.metadata
