"""How many files and folders a request passes through, so that a reader can follow it.

Counted are the product's modules whose functions are called, with a profiler. The figures are the
house's bars: they may come down, and a request that needs another file has to do without one.
"""

import sys
import threading
from collections.abc import Callable, Iterator
from pathlib import Path
from types import FrameType
from typing import Any, NamedTuple

import pytest

from proxy.api.requests import QueryRequest
from proxy.engine.engine import Engine
from tests.support.worlds import SCHEMA, people_served, random_rows

ROOT = Path(__file__).resolve().parents[1]
PRODUCT = ("proxy", "planner", "accountant", "inference", "cube", "synthesis", "local_dp")
AVERAGES = "SELECT city, AVG(age) AS a FROM people WHERE age > 30 GROUP BY city ORDER BY a"
CATALOG = (
    "SELECT c.relname FROM pg_catalog.pg_class c JOIN pg_catalog.pg_namespace n"
    " ON n.oid = c.relnamespace WHERE c.relkind = 'r' ORDER BY 1"
)
N_FILES_AT_FIRST, N_FOLDERS_AT_FIRST = 153, 31  # a purchase
N_FILES_AGAIN = 20  # the same text a third time: it was free the second time, and is told again
N_FILES_OF_CATALOG = 32  # a question to the catalog, when a tool asks it again


class Walk(NamedTuple):
    """Where a request went."""

    files: frozenset[str]

    @property
    def folders(self) -> set[str]:
        return {file.rpartition("/")[0] for file in self.files}


def walked(work: Callable[[], object]) -> Walk:
    found: set[str] = set()

    def note(frame: FrameType, event: str, _: Any) -> None:
        if event == "call":
            found.add(frame.f_code.co_filename)

    threading.setprofile(note)
    sys.setprofile(note)
    try:
        work()
    finally:
        sys.setprofile(None)
        threading.setprofile(None)
    inside = (file.removeprefix(f"{ROOT}/") for file in found if file.startswith(f"{ROOT}/"))
    return Walk(frozenset(file for file in inside if file.split("/")[0] in PRODUCT))


@pytest.fixture
def engine(tmp_path: Path) -> Iterator[Engine]:
    with people_served(tmp_path, random_rows(300)) as table:
        yield Engine({SCHEMA.table: table})


def test_a_purchase_passes_few_files_and_a_repeat_hardly_any(engine: Engine) -> None:
    bought = walked(lambda: engine.answer(QueryRequest(sql=AVERAGES)))
    assert "accountant/gate/release.py" in bought.files  # it is a purchase, and the walk sees it
    assert len(bought.files) <= N_FILES_AT_FIRST, sorted(bought.files)
    assert len(bought.folders) <= N_FOLDERS_AT_FIRST, sorted(bought.folders)
    free = engine.answer(QueryRequest(sql=AVERAGES))
    told: list[object] = []
    again = walked(lambda: told.append(engine.answer(QueryRequest(sql=AVERAGES))))
    assert told == [free]
    assert len(again.files) <= N_FILES_AGAIN, sorted(again.files)
    assert not [file for file in again.files if file.startswith(("inference/", "planner/sql/"))]


def test_a_question_to_the_catalog_passes_few_files(engine: Engine) -> None:
    engine.answer(QueryRequest(sql=CATALOG))
    asked = walked(lambda: engine.answer(QueryRequest(sql=CATALOG)))
    assert len(asked.files) <= N_FILES_OF_CATALOG, sorted(asked.files)
