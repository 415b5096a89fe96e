"""Where a configured server keeps synthetic tables, and that they are there when it comes back."""

from dataclasses import replace
from pathlib import Path

import pytest

from proxy.api.requests import QueryRequest
from proxy.bootstrap import _synthetic_store, build
from proxy.config.ledger import LedgerSettings
from proxy.config.settings import load
from tests.support.config_files import GOOD, write_people

MAKE = QueryRequest(sql="CREATE SYNTHETIC TABLE s FROM people WITH (epsilon => 1, rows => 5)")
COUNT = QueryRequest(sql="SELECT COUNT(*) AS n FROM s")


def configured(folder: Path, server: str = "") -> Path:
    path = write_people(folder) / "tacit.toml"
    path.write_text(f"{GOOD}\n[server]\n{server}\n", encoding="utf-8")
    return path


@pytest.mark.parametrize(
    ("server", "place"),
    [("", "people.ledger.synthetic"), ('synthetic_dir = "made"', "made")],
)
def test_tables_are_kept_beside_the_ledger_or_where_it_is_said(
    tmp_path: Path, server: str, place: str
) -> None:
    (tmp_path / "made").mkdir()
    path = configured(tmp_path, server)
    service = build(load(path))
    service.engine.answer(MAKE)
    service.close()
    assert len(list((tmp_path / place).glob("s.*.json"))) == 1
    again = build(load(path))
    assert again.engine.answer(COUNT).data.to_pylist() == [{"n": 5}]
    again.close()


def test_limits_are_those_of_the_configuration(tmp_path: Path) -> None:
    service = build(load(configured(tmp_path, "synthetic_rows_max = 4")))
    with pytest.raises(Exception, match="5 rows are more than the 4"):
        service.engine.answer(MAKE)
    service.close()


def test_a_ledger_in_a_database_has_no_folder_beside_it(tmp_path: Path) -> None:
    (tmp_path / "made").mkdir()
    shared = LedgerSettings(url="postgresql://tacit@localhost/ledger", key=tmp_path / "key")
    settings = replace(load(configured(tmp_path)), ledger=shared)
    assert _synthetic_store(settings) is None
    settings = replace(load(configured(tmp_path, 'synthetic_dir = "made"')), ledger=shared)
    assert _synthetic_store(settings) is not None
