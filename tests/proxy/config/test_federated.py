"""Federated tables as a coordinator's owner declares them, and what is no such declaration."""

from pathlib import Path

import pytest

from cube.refusals import ConfigurationInvalid
from proxy.config.settings import Settings, load
from proxy.sources import HeldTable

TEXT = """[ledger]
path = "c.ledger"
[tables.patients]
holders = [{holders}]
budget = "1"
n_records_max = 1000
half_width = 10
{more}
[tables.patients.columns.sex]
kind = "category"
levels = ["f", "m"]
"""
NORTH = '{name = "north", address = "north.example:5432", token_file = "n.token"}'
SOUTH = (
    '{name = "south", address = "[::1]:5432", table = "visits", ca_file = "ca.pem", '
    'cert_file = "c.pem", key_file = "c.key", timeout = 3}'
)


@pytest.fixture(autouse=True)
def files(tmp_path: Path) -> None:
    for name in ("n.token", "ca.pem", "c.pem", "c.key"):
        (tmp_path / name).write_text("x")


def loaded(folder: Path, holders: str, more: str = "") -> Settings:
    (folder / "tacit.toml").write_text(TEXT.format(holders=holders, more=more))
    return load(folder / "tacit.toml")


def test_a_federated_table_has_one_more_axis(tmp_path: Path) -> None:
    (table,) = loaded(tmp_path, f"{NORTH}, {SOUTH}", "people_overlap = true").tables
    schema = table.schema
    assert [axis.name for axis in schema.axes] == ["sex", "holder"]
    assert schema.by_name["holder"].levels == ("north", "south")
    assert schema.holders == "holder"
    assert schema.people_overlap
    assert not table.holders_public
    held = table.location
    assert isinstance(held, HeldTable)
    north, south = held.holders
    assert (north.table, north.timeout, north.by_tls) == ("patients", 60.0, True)
    assert north.token_file == tmp_path / "n.token"
    assert (south.table, south.timeout, south.by_tls) == ("visits", 3.0, True)
    assert south.secret_files == tuple(tmp_path / one for one in ("ca.pem", "c.pem", "c.key"))


def test_a_holder_on_this_machine_needs_no_certificate(tmp_path: Path) -> None:
    here = NORTH.replace("north.example", "localhost")
    (table,) = loaded(tmp_path, here, "holder_public = true").tables
    assert isinstance(table.location, HeldTable)
    assert not table.location.holders[0].by_tls
    assert table.holders_public
    assert not table.schema.people_overlap


WRONG_HOLDERS = {
    "": "should list holders",
    "3": "should be",
    '{name = "north", token_file = "n.token"}': "address",
    '{name = "north", address = "north.example", token_file = "n.token"}': "needs an address",
    '{name = "north", address = "a:1", token_file = "no.token"}': "names no file",
    '{name = "north", address = "a:1"}': "needs a token_file, or cert_file and key_file",
    '{name = "north", address = "a:1", cert_file = "c.pem"}': "cert_file and key_file together",
    '{name = "", address = "a:1", token_file = "n.token"}': "needs a name",
    '{name = "n", address = "a:1", token_file = "n.token", timeout = 0}': "timeout",
    '{name = "n", address = "a:1", token_file = "n.token", port = 1}': "port",
    f"{NORTH}, {NORTH.replace('north', 'North', 1)}": "two holders share a name",
    f"{NORTH}, {NORTH.replace('north', 'south', 1)}": "the same table at the same address",
    ", ".join(NORTH.replace("north", f"n{place}") for place in range(101)): "1 to 100 holders",
}


@pytest.mark.parametrize("holders", WRONG_HOLDERS)
def test_wrong_holders_are_problems(tmp_path: Path, holders: str) -> None:
    with pytest.raises(ConfigurationInvalid, match=WRONG_HOLDERS[holders]):
        loaded(tmp_path, holders)


WRONG_BESIDE = {
    'source = "p.csv"': "is given beside holders",
    'view = "SELECT 1"': "is given beside holders",
    'per_unit = ["sex"]': "is not for a federated table yet",
    'strategy = "paper"': "is not for a federated table",
    'extract = "file"': "those of holders stay with them",
    "timeout = 3": "goes with each of the holders",
    'token_file = "n.token"': "goes with each of the holders",
    '[tables.patients.columns.Holder]\nkind = "boolean"': "the column of a federated table's",
}


@pytest.mark.parametrize("more", WRONG_BESIDE)
def test_what_does_not_go_with_holders_is_a_problem(tmp_path: Path, more: str) -> None:
    with pytest.raises(ConfigurationInvalid, match=WRONG_BESIDE[more]):
        loaded(tmp_path, NORTH, more)


@pytest.mark.parametrize("key", ["holder_public", "people_overlap"])
def test_what_goes_with_holders_needs_some(tmp_path: Path, key: str) -> None:
    (tmp_path / "p.csv").write_text("sex\nf\n")
    text = TEXT.format(holders=NORTH, more=f"{key} = true").replace(
        f"holders = [{NORTH}]", 'source = "p.csv"'
    )
    (tmp_path / "tacit.toml").write_text(text)
    with pytest.raises(ConfigurationInvalid, match=f"{key}: goes with holders"):
        load(tmp_path / "tacit.toml")
