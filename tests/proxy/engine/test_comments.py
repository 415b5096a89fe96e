"""OPTIONS in a comment: the same plan and price as OPTIONS in the text."""

from collections.abc import Iterator

import pytest

from accountant.noise.lattice_noise import SystemNoise
from cube.refusals import CostAboveCap
from planner.workload import RequestedTarget
from proxy.api.requests import QueryRequest
from proxy.engine.engine import Engine
from tests.sql import world
from tests.support.fakes import KnownTable

OPTIONS = "half_width => 7, confidence => 0.9"
IN_TEXT = (
    "SELECT * FROM (SELECT WITH DIFFERENTIAL_PRIVACY OPTIONS({}) city, COUNT(*) AS n "
    "FROM patients GROUP BY city) AS t"
)
IN_COMMENT = (
    "SELECT * FROM (SELECT city, COUNT(*) AS n FROM patients GROUP BY city) AS t /*+ tacit({}) */"
)


@pytest.fixture
def engine(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Engine]:
    source = KnownTable(world.SCHEMA, world.positions())
    folder = tmp_path_factory.mktemp("comments")
    with world.patients_engine(folder, source, SystemNoise()) as engine:
        yield engine


def test_a_comment_costs_what_the_options_cost(engine: Engine) -> None:
    priced = [
        engine.explain(QueryRequest(sql=sql.format(OPTIONS))).epsilon
        for sql in (IN_TEXT, IN_COMMENT)
    ]
    assert priced[0] == priced[1] > 0


def test_a_comment_goes_before_the_session(engine: Engine) -> None:
    session = RequestedTarget(half_width=1000.0, confidence=0.5)
    sql = IN_COMMENT.format(OPTIONS)
    assert (
        engine.explain(QueryRequest(sql=sql, target=session)).epsilon
        == engine.explain(QueryRequest(sql=sql)).epsilon
    )


def test_a_cap_in_a_comment_holds(engine: Engine) -> None:
    with pytest.raises(CostAboveCap):
        engine.answer(QueryRequest(sql=IN_COMMENT.format("epsilon=0.000001, half_width=7")))
    assert [budget.spent for budget in engine.budgets(QueryRequest(sql="").caller)] == [0]
