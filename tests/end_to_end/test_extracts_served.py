"""A table with `extract = "file"`: where the extract lies, and what the log says of making it."""

import io
import json
import re
from collections.abc import Iterator
from contextlib import closing
from pathlib import Path

import pytest
import structlog

from cube.refusals import ConfigurationInvalid
from proxy.bootstrap import build
from proxy.config.settings import load
from proxy.monitoring.logs import configure_logs
from proxy.sources import extract_file

N_ROWS = 4711
CONFIG = """
[ledger]
path = "budget.ledger"

[tables.people]
source = "people.csv"
half_width = 50
n_records_max = 10000
budget = 1.0
extract = "file"
EXTRACT_DIR

[tables.people.columns.age]
kind = "integer"
low = 0
high = HIGH
"""


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setattr(extract_file, "SETTLED_NS", -(10**18))
    write(tmp_path, N_ROWS)
    configure(tmp_path)
    return tmp_path


@pytest.fixture
def log() -> Iterator[io.StringIO]:
    found = io.StringIO()
    configure_logs(found)
    yield found
    structlog.reset_defaults()


def write(folder: Path, n_rows: int) -> None:
    ages = [number % 90 for number in range(n_rows)]
    (folder / "people.csv").write_text("age\n" + "".join(f"{age}\n" for age in ages))


def configure(folder: Path, extract_dir: str = "", high: int = 99) -> None:
    line = f'extract_dir = "{extract_dir}"' if extract_dir else ""
    text = CONFIG.replace("EXTRACT_DIR", line).replace("HIGH", str(high))
    (folder / "tacit.toml").write_text(text)


def start(folder: Path) -> None:
    with closing(build(load(folder / "tacit.toml"))):
        pass


def reasons(log: io.StringIO) -> list[str]:
    """Why extracts were made since this was asked last; nothing else is said of them."""
    lines = [json.loads(line) for line in log.getvalue().splitlines()]
    log.seek(0)
    log.truncate()
    made = [line for line in lines if line["event"] == "extract_made"]
    for line in made:
        assert set(line) == {"event", "level", "timestamp", "table", "code"}
        assert line["table"] == "people"
        assert not re.search(rf"\b{N_ROWS}\b", json.dumps(line))
    return [line["code"] for line in made]


def test_the_log_says_that_an_extract_was_made_and_why(folder: Path, log: io.StringIO) -> None:
    start(folder)
    assert reasons(log) == ["absent"]
    start(folder)
    assert reasons(log) == []
    (extract,) = (folder / "budget.ledger.extracts").glob("*.extract")
    content = bytearray(extract.read_bytes())
    content[-1] ^= 1
    extract.write_bytes(content)
    start(folder)
    assert reasons(log) == ["damaged"]
    (folder / "people.csv").touch()
    start(folder)
    assert reasons(log) == ["files"]


def test_an_extract_lies_where_the_owner_says(folder: Path, log: io.StringIO) -> None:
    configure(folder, "elsewhere")
    with pytest.raises(ConfigurationInvalid, match="extract_dir: should be an existing directory"):
        load(folder / "tacit.toml")
    (folder / "elsewhere").mkdir()
    start(folder)
    assert reasons(log) == ["absent"]
    assert len(list((folder / "elsewhere").glob("*.extract"))) == 1
    assert not (folder / "budget.ledger.extracts").exists()
    start(folder)
    assert reasons(log) == []


def test_extract_dir_is_of_an_extract_in_a_file(folder: Path) -> None:
    (folder / "elsewhere").mkdir()
    configure(folder, "elsewhere")
    path = folder / "tacit.toml"
    path.write_text(path.read_text().replace('extract = "file"', ""))
    with pytest.raises(ConfigurationInvalid, match='goes with extract = "file"'):
        load(path)
