"""Every statement that is refused: by which code, in which words, at no cost, and what works.

The source is one that remembers what was read: a refusal reads nothing.
"""

from collections.abc import Iterator

import pytest

from accountant.noise.lattice_noise import SystemNoise
from cube.refusals import Refused
from proxy.api.requests import LOCAL, QueryRequest
from proxy.engine.engine import Engine
from tests.sql import world
from tests.sql.cases import Case, cases, parameters, request
from tests.support.fakes import KnownTable

REFUSED = cases("refused")
ALL = "SELECT COUNT(*) FROM patients"
DIFFERENT = [
    f"{1 + k}.5 * COUNT(*) FILTER (WHERE age = {18 + k % 70} AND visits = {k % 13} AND insured)"
    for k in range(300)
]
NAMED = ", ".join(f"COUNT(*) AS n{k}" for k in range(501))
# Texts with too much of something, by what; and the code of their refusal.
LONG = {
    "bytes": ("too_large", f"{ALL} -- {'x' * 70_000}"),
    "words": ("too_large", f"{ALL} WHERE age IN (1{', 1' * 6_000})"),
    "columns": ("too_large", ALL.replace("COUNT(*)", ", ".join(["COUNT(*)"] * 1_001))),
    "keys": ("too_large", f"{ALL} GROUP BY {', '.join(f'age + {k}' for k in range(1_001))}"),
    "intervals": ("too_large", f"{ALL.replace('COUNT(*)', NAMED)} LIMIT 1"),
    "parts": ("too_large", " UNION ALL ".join([ALL] * 65)),
    "terms": ("too_large", ALL.replace("COUNT(*)", " + ".join(DIFFERENT))),
    "names written out": (
        "too_large",
        "WITH r0 AS (SELECT sex AS a FROM patients), "  # noqa: S608 - SQL is the test input
        + ", ".join(f"r{k} AS (SELECT a || a AS a FROM r{k - 1})" for k in range(1, 20))  # noqa: S608 - SQL is the test input
        + " SELECT COUNT(*) FROM r19 WHERE a = 'x'",
    ),
    "steps": (
        "too_large",
        f"{ALL} WHERE CONCAT(city, '{'a' * 9_000}') LIKE '{'%a_' * 9_000}'",
    ),
    "decimals": ("too_large", f"{ALL} GROUP BY 123456789012345678.5 + age"),
    "characters": ("too_large", f"{ALL} GROUP BY CONCAT(age, visits, city, '{'x' * 20_000}')"),
    "values of keys": (
        "too_large",
        f"{ALL} GROUP BY {', '.join(f'age + {k}' for k in range(130))}, admitted",
    ),
    "lists": ("too_large", f"{ALL} WHERE age = a{'[1]' * 9}"),
    "answers nested": (
        "too_large",
        f"SELECT {'NULLIF(' * 28}COUNT(*){', 1)' * 28} FROM patients",  # noqa: S608 - SQL is the test input
    ),
    "operators": ("too_large", f"{ALL} WHERE {'NOT ' * 3_000} insured"),
    "NUL": ("sql_syntax", f"{ALL}\0"),
    "half a character": ("sql_syntax", f"{ALL} WHERE city = '\ud800'"),
}
SHOWN_MAX = 400  # a refusal is read on one screen, whatever was asked


@pytest.fixture(scope="module")
def source() -> KnownTable:
    return KnownTable(world.SCHEMA, world.positions())


@pytest.fixture(scope="module")
def engine(tmp_path_factory: pytest.TempPathFactory, source: KnownTable) -> Iterator[Engine]:
    with world.patients_engine(tmp_path_factory.mktemp("refused"), source, SystemNoise()) as engine:
        yield engine


def test_there_are_cases() -> None:
    assert len(REFUSED) >= 50
    assert all(case.headers.keys() >= {"code", "says", "works"} for case in REFUSED)


@parameters(REFUSED)
def test_it_is_refused_in_the_words_that_are_promised_with_what_to_do_instead(
    case: Case, engine: Engine, source: KnownTable
) -> None:
    n_read, budgets = len(source.scopes_read), engine.budgets(LOCAL)
    with pytest.raises(Refused) as refusal:
        engine.answer(request(case))
    assert refusal.value.code == case.headers["code"], refusal.value.explain()
    assert case.headers["says"] in refusal.value.explain()
    assert refusal.value.hint is not None or refusal.value.code == "sql_syntax"
    assert len(refusal.value.explain()) <= SHOWN_MAX
    assert len(source.scopes_read) == n_read
    assert engine.budgets(LOCAL) == budgets


@pytest.mark.parametrize(("code", "sql"), LONG.values(), ids=LONG)
def test_what_is_too_long_is_refused_before_it_takes_long(
    code: str, sql: str, engine: Engine
) -> None:
    with pytest.raises(Refused) as refusal:
        engine.answer(QueryRequest(sql=sql))
    assert refusal.value.code == code
    assert len(refusal.value.explain()) <= SHOWN_MAX


@parameters(REFUSED)
def test_what_should_work_instead_works(case: Case, engine: Engine) -> None:
    assert engine.answer(QueryRequest(sql=case.headers["works"])).data.num_columns > 0
