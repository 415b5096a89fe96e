"""Counts in whole numbers: what is rounded, and that nothing else changes.

The oracle is the same statement without the setting, over the same history: its counts, rounded.
"""

import math
from collections.abc import Iterator
from dataclasses import replace

import pyarrow as pa
import pytest

from accountant.noise.lattice_noise import SystemNoise
from cube.refusals import Refused
from planner.workload import RequestedTarget
from proxy.api.requests import QueryRequest
from proxy.engine.answers.released import LARGEST, with_whole_counts
from proxy.engine.engine import Engine
from tests.sql import world
from tests.support.fakes import KnownTable

WHOLE = RequestedTarget(integer_counts=True)

# Statements, and which of their columns are counts.
STATEMENTS = {
    "SELECT COUNT(*) FROM patients": (0,),
    "SELECT city, COUNT(*) AS n, SUM(cost) AS s FROM patients GROUP BY city ORDER BY n": (1,),
    "SELECT COUNT(visits) AS v, COUNT(*) FILTER (WHERE insured) AS i FROM patients": (0, 1),
    "SELECT SUM(CASE WHEN age > 30 THEN 1 ELSE 0 END) AS n, AVG(age) AS a FROM patients": (0,),
    "SELECT COUNT(*) / 10 AS tenths, 2 * COUNT(*) AS twice FROM patients": (1,),
    "SELECT COUNT(*) - COUNT(visits) AS unknown FROM patients": (0,),
    "SELECT SUM(n) AS n FROM (SELECT city, COUNT(*) AS n FROM patients GROUP BY city) AS t": (0,),
    "SELECT * FROM (SELECT city, COUNT(*) AS n FROM patients GROUP BY city) AS t LIMIT 1001": (1,),
    "SELECT t.n, n + 1 AS m FROM (SELECT city, COUNT(*) AS n FROM patients GROUP BY city) AS t": (
        0,
    ),
    "WITH c AS (SELECT sex, COUNT(*) AS n FROM patients GROUP BY sex) SELECT n FROM c UNION ALL "
    "SELECT COUNT(*) FROM patients ORDER BY n": (0,),
    "SELECT COUNT(*) AS n FROM patients UNION ALL SELECT AVG(cost) FROM patients": (),
    "SELECT sex, COUNT(*) AS n, SUM(COUNT(*)) OVER () AS t FROM patients GROUP BY sex": (1,),
    "SELECT c.country, p.n FROM (SELECT city, COUNT(*) AS n FROM patients GROUP BY city) AS p "
    "JOIN cities AS c ON c.city = p.city": (1,),
    "SELECT p.*, c.country FROM (SELECT city, COUNT(*) AS n FROM patients GROUP BY city) AS p "
    "JOIN cities AS c ON c.city = p.city": (),  # not known to be shown: it stays a DOUBLE
    "SELECT city, COUNT(*) AS n FROM patients GROUP BY city HAVING COUNT(*) > 300.5": (1,),
    "SELECT COUNT(*) AS n, DP_INTERVAL_LOW(n) AS low FROM patients": (0,),
    "SELECT population FROM cities": (),
}


# How an outer SELECT shows an inner one whose columns are g and n.
INNER = (
    "SELECT city AS g, COUNT(*) AS n FROM patients GROUP BY 1",
    "SELECT city AS g, COUNT(*) AS n FROM patients GROUP BY ROLLUP(1)",
    "SELECT city AS g, COUNT(*) AS n FROM patients GROUP BY 1 HAVING COUNT(*) > 1 LIMIT 3",
    "SELECT city AS g, SUM(cost) AS n FROM patients GROUP BY 1",
    "SELECT DISTINCT city AS g, 1 AS n FROM patients",
    "SELECT p.city AS g, COUNT(*) AS n FROM patients p JOIN cities c ON c.city = p.city GROUP BY 1",
    "SELECT 'all' AS g, COUNT(*) AS n FROM patients UNION ALL SELECT 'x', COUNT(*) FROM patients",
    "SELECT city AS g, population AS n FROM cities",
)
AROUND = (
    "SELECT COUNT(*) FROM ({}) AS x",
    "SELECT COUNT(*) AS n, g FROM ({}) AS x GROUP BY g",
    "SELECT COUNT(*), x.* FROM ({}) AS x GROUP BY g, n",
    "SELECT x.*, 1 AS one FROM ({}) AS x",
    "SELECT *, n AS m FROM ({}) AS x(g, n)",
    "SELECT *, COUNT(*) OVER () AS every, ROW_NUMBER() OVER (ORDER BY g) AS place FROM ({}) AS x",
    "WITH x AS ({}) SELECT COUNT(*) AS n, COUNT(n) AS m, COUNT(DISTINCT g) AS k FROM x",
    "WITH x AS ({0}) SELECT * FROM x UNION ALL SELECT g, n FROM x",
    "WITH x AS ({}) SELECT a.*, b.n AS m FROM x AS a JOIN x AS b ON a.g = b.g",
    "SELECT (SELECT COUNT(*) FROM ({}) AS y) AS n",
    "SELECT COUNT(*) FILTER (WHERE n > 0) AS n, STRING_AGG(g, ',') AS all_of_them FROM ({}) AS x",
    "SELECT COALESCE(n, 0) AS n, n, -n AS m, n::int AS i, n::text AS t FROM ({}) AS x",
)
# Each way around some inner SELECT, and around each other.
NESTED = [
    *(around.format(INNER[at % len(INNER)]) for at, around in enumerate(AROUND)),
    *(AROUND[0].format(inner) for inner in INNER),
    *(AROUND[0].format(around.format(INNER[0])) for around in AROUND),
    *(AROUND[4].format(around.format(INNER[at % 3])) for at, around in enumerate(AROUND[1:3])),
]


@pytest.fixture(scope="module")
def engine(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Engine]:
    source = KnownTable(world.SCHEMA, world.positions())
    folder = tmp_path_factory.mktemp("whole")
    with world.patients_engine(folder, source, SystemNoise()) as engine:
        yield engine


@pytest.mark.parametrize("sql", STATEMENTS)
def test_counts_are_rounded_and_nothing_else(engine: Engine, sql: str) -> None:
    request = QueryRequest(sql=sql)
    engine.answer(request)
    plain = engine.answer(request)
    whole = engine.answer(replace(request, target=WHOLE))
    promised = engine.result_schema(replace(request, target=WHOLE))
    assert whole.data.schema.types == promised.types
    assert whole.data.schema.names == promised.names
    for place, (before, after) in enumerate(
        zip(plain.data.columns, whole.data.columns, strict=True)
    ):
        if place in STATEMENTS[sql]:
            assert after.type == pa.int64()
            assert after.to_pylist() == [round(value) for value in before.to_pylist()]
        else:
            assert after == before
    assert whole.receipt == plain.receipt, "intervals are those of the counts before"


def test_options_of_the_statement_go_before_the_setting(engine: Engine) -> None:
    sql = "SELECT WITH DIFFERENTIAL_PRIVACY OPTIONS(integer_counts => {}) COUNT(*) FROM patients"
    for target, word, kind in (
        (WHOLE, "false", pa.float64()),
        (RequestedTarget(), "true", pa.int64()),
    ):
        request = QueryRequest(sql=sql.format(word), target=target)
        assert engine.result_schema(request).types == [kind]


def test_a_probe_has_the_types_of_the_answer(engine: Engine) -> None:
    sql = "SELECT * FROM (SELECT city, COUNT(*) AS n FROM patients GROUP BY city) AS t LIMIT 0"
    data = engine.answer(QueryRequest(sql=sql, target=WHOLE)).data
    assert data.schema.types == [pa.string(), pa.int64()]


def test_null_stays_null_and_no_count_is_too_large() -> None:
    values = pa.array([0.5, 1.5, None, math.nan, -0.2, 1e300], pa.float64())
    shown = with_whole_counts(pa.table({"n": values}), (0,))["n"].to_pylist()
    assert shown == [0, 2, None, None, 0, int(LARGEST)]


def test_no_way_to_show_a_count_is_an_internal_error(engine: Engine) -> None:
    n_answered = 0
    for sql in NESTED:
        request = QueryRequest(sql=sql, target=WHOLE)
        try:
            whole = engine.answer(request).data
        except Refused:
            continue
        assert whole.schema.types == engine.result_schema(request).types, sql
        n_answered += 1
    assert n_answered >= len(NESTED) - 3
