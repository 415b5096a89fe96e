"""A configuration that loads, the file it names, and what loading another one says."""

from pathlib import Path

import pytest

from cube.refusals import ConfigurationInvalid
from proxy.config.settings import Settings, load

GOOD = """\
[ledger]
path = "people.ledger"
[tables.people]
source = "people.csv"
budget = "1.5"
n_records_max = 1000
half_width = 20
[tables.people.columns.age]
kind = "integer"
low = 0
high = 120
"""


def write_people(folder: Path) -> Path:
    """The folder, with the data that `GOOD` names."""
    (folder / "people.csv").write_text("age\n30\n")
    return folder


def loaded(folder: Path, text: str) -> Settings:
    path = folder / "tacit.toml"
    path.write_text(text, encoding="utf-8")
    return load(path)


def problems(folder: Path, text: str) -> list[str]:
    with pytest.raises(ConfigurationInvalid) as caught:
        loaded(folder, text)
    heading, *listed = caught.value.message.split("\n  ")
    expected = "a problem" if len(listed) == 1 else f"{len(listed)} problems"
    assert heading == f"{folder / 'tacit.toml'} has {expected}:"
    return listed
