"""Apache Superset, really: its REST interface and its pages in Chromium, over both wires.

TACIT_SUPERSET=FOLDER names where Superset is installed, or is to be (800 MB, some minutes); without
it these tests are skipped: `TACIT_SUPERSET=build/superset make test-superset`.
"""

import json
import os
import subprocess
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

import tacit_client
from examples.superset.dashboard import CHARTS, COUNT
from examples.superset.demo import Running, running
from examples.superset.environment import Environment
from tests.support.chromium import find_chromium

FOLDER = os.environ.get("TACIT_SUPERSET")
pytestmark = [
    pytest.mark.superset,
    pytest.mark.skipif(FOLDER is None, reason="TACIT_SUPERSET names no folder"),
]
BROWSER = Path(__file__).parents[1] / "support" / "superset_browser.py"
SECONDS = 400
N_ADULTS = 48_842
NARROW = 500  # of a count within 100 with probability 0.95


@pytest.fixture(scope="module", params=["postgres", "flight"])
def run(request: pytest.FixtureRequest) -> Iterator[Running]:
    environment = Environment(Path(str(FOLDER)).resolve())
    environment.install()
    with running(environment, request.param) as found:
        yield found


def spent(run: Running) -> dict[str, float]:
    """What every table has spent, by the server."""
    with tacit_client.connect(run.served.grpc, token=run.served.token) as connection:
        rows = connection.sql("SELECT table_name, spent FROM data_privacy.budgets").fetchall()
    return dict(rows)


def asked(run: Running, dataset: int, **query: Any) -> list[dict[str, Any]]:
    """The rows that the chart data interface gives."""
    body = {
        "datasource": {"id": dataset, "type": "table"},
        "queries": [{"row_limit": 100, **query}],
        "result_format": "json",
        "result_type": "full",
        "force": True,
    }
    (result,) = run.superset.post("chart/data", body)["result"]
    rows: list[dict[str, Any]] = result["data"]
    return rows


def test_its_interface_reads_tables_and_answers(run: Running) -> None:
    found = {one["table_name"]: one["id"] for one in run.superset.get("dataset/")["result"]}
    assert found.keys() == {"adult", "visits", "education"}
    columns = run.superset.get(f"dataset/{found['visits']}")["result"]["columns"]
    assert {one["column_name"]: one["is_dttm"] for one in columns} == {"day": True, "region": False}
    by_sex = asked(run, found["adult"], columns=["sex"], metrics=[COUNT])
    assert {row["sex"] for row in by_sex} == {"Female", "Male"}
    assert abs(sum(row["people"] for row in by_sex) - N_ADULTS) < NARROW
    before = spent(run)
    assert asked(run, found["adult"], columns=["sex"], metrics=[COUNT]) == by_sex
    women = [{"col": "sex", "op": "IN", "val": ["Female"]}]
    filtered = asked(run, found["adult"], columns=["sex"], metrics=[COUNT], filters=women)
    assert [row["sex"] for row in filtered] == ["Female"]
    assert spent(run) == before


def test_a_dashboard_is_drawn_filtered_and_refreshed_for_nothing(
    run: Running, tmp_path: Path
) -> None:
    find_chromium()
    environment = Environment(Path(str(FOLDER)).resolve())
    look = [environment.program("python"), BROWSER, run.page, run.password, tmp_path]
    seen = [_looked(look), spent(run), _looked(look), spent(run)]
    for pictures in (seen[0], seen[2]):
        for state in ("drawn", "filtered", "refreshed"):
            assert pictures[state]["n_charts"] == len(CHARTS)
            assert pictures[state]["n_drawn"] >= len(CHARTS)
            assert pictures[state]["errors"] == []
        assert pictures["drawn"]["big_number"] != pictures["filtered"]["big_number"]
        assert pictures["filtered"]["big_number"] == pictures["refreshed"]["big_number"]
    assert seen[1] == seen[3], "looking again costs nothing"


def _looked(command: list[Any]) -> dict[str, Any]:
    done = subprocess.run(  # noqa: S603 - the environment's own program
        command, check=False, capture_output=True, text=True, timeout=SECONDS
    )
    assert done.returncode == 0, done.stderr[-3000:]
    found: dict[str, Any] = json.loads(done.stdout)
    return found
