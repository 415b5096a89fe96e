"""The unit that a draft proposes: by names alone, with its reason, and what is left to decide."""

import re
import tomllib
from pathlib import Path

import pytest

from cube.refusals import ConfigurationInvalid
from proxy.bootstrap import build
from proxy.cli import app as cli
from proxy.config.settings import load

SEVERAL = "It names a person, who may have several rows."
OWN = "It is named as the key of"
NOBODY = "each row counts as a person of its own"
CANARY = "8675309"


def drafted(folder: Path, table: str, lines: list[str], *options: str) -> str:
    """The text of a draft for a CSV file of these lines."""
    (folder / "data.csv").write_text("\n".join(lines) + "\n")
    output = folder / "tacit.toml"
    output.unlink(missing_ok=True)
    with pytest.raises(SystemExit) as ended:
        cli.main(["init", str(folder / "data.csv"), "--table", table, "-o", str(output), *options])
    assert not ended.value.code
    return output.read_text()


@pytest.mark.parametrize(
    ("table", "header", "unit", "reason", "others"),
    [
        ("orders", "order_id,customer_id,city", "customer_id", SEVERAL, "order_id"),
        ("visits", "id,PatientNo,ward", "PatientNo", SEVERAL, "id"),
        ("customers", "email,customer_id,city", "customer_id", OWN, "email"),
        ("people", "person_id,city", "person_id", OWN, None),
        ("tickets", "ticket_id,lot_id", "ticket_id", OWN, None),
        ("clicks", "app_user_id,page", "app_user_id", SEVERAL, None),
        ("newsletters", "e-mail,sent", "e-mail", SEVERAL, None),
        ("adult", "age,workclass,education", None, NOBODY, None),
        ("films", "title,customer_age,contact", None, NOBODY, None),
    ],
)
def test_a_unit_is_proposed_by_its_name_and_explained(  # noqa: PLR0913, PLR0917 - a table's columns
    tmp_path: Path, table: str, header: str, unit: str | None, reason: str, others: str | None
) -> None:
    values = ",".join(["1"] * len(header.split(",")))
    text = drafted(tmp_path, table, [header, values])
    said = re.sub(r"\s*\n#\s*", " ", text)
    section = tomllib.loads(text)["tables"][table]
    assert section.get("unit") == unit
    assert unit not in section["columns"]
    assert reason in said
    assert ("rows_per_unit_max = ..." in said) == (unit is not None)
    assert ("It could also be" in said) == (others is not None)
    assert others is None or f"It could also be {others}" in said


def test_a_person_is_no_number_moment_or_flag(tmp_path: Path) -> None:
    """A column of such a type is no key, whatever it is called."""
    header, row = "member,customer,patient_nr,user", "true,1.5,2026-01-01,2026-01-01 10:00:00"
    assert (
        "unit" not in tomllib.loads(drafted(tmp_path, "things", [header, row]))["tables"]["things"]
    )


ORDERS = ["order_id,customer_id,city,channel"]
ORDERS += [
    f"{n},{n % 40},{('Oslo', 'Voss')[n % 2]},{('web', 'shop')[n % 3 // 2]}" for n in range(99)
]


def test_without_being_asked_it_looks_into_no_row(tmp_path: Path) -> None:
    """The same draft for one row as for many of everybody."""
    one = drafted(tmp_path, "orders", [ORDERS[0], f"1,{CANARY},x,y"])
    many = drafted(tmp_path, "orders", [ORDERS[0]] + [f"1,{CANARY},x,y"] * 9)
    assert one == many
    assert CANARY not in one
    assert "Read from the rows" not in one


def test_who_asks_for_levels_hears_of_several_rows_and_what_is_the_same_in_them(
    tmp_path: Path,
) -> None:
    text = drafted(tmp_path, "orders", ORDERS, "--read-levels-from-data")
    assert "Read from the rows: some people have several rows." in text
    assert '# per_unit = ["city"]' in text
    unique = [ORDERS[0], "1,a,Oslo,web", "2,b,Oslo,web", "3,,Oslo,web"]
    text = drafted(tmp_path, "orders", unique, "--read-levels-from-data")
    assert "everybody has one row" in text
    assert "some have NULL here" in text
    assert "rows_per_unit_max" not in text


def test_a_draft_is_served_once_its_comments_are_filled_in(tmp_path: Path) -> None:
    """Until then Tacit says what is missing, and that somebody has two rows."""
    text = drafted(tmp_path, "orders", ORDERS, "--read-levels-from-data", "--n-records-max", "1000")
    path = tmp_path / "tacit.toml"
    with pytest.raises(ConfigurationInvalid, match="declare rows_per_unit_max"):
        build(load(path))
    text = text.replace("# rows_per_unit_max = ...", "rows_per_unit_max = 2")
    path.write_text(text.replace("# per_unit", "per_unit"))
    service = build(load(path))
    try:
        assert [one.table for one in service.budgets()] == ["orders", "orders.units"]
    finally:
        service.close()


def test_a_strange_name_stays_in_its_line(tmp_path: Path) -> None:
    strange = "customer\\id"
    text = drafted(tmp_path, "orders", [f'"{strange}","customer id","a"', "1,2,3"])
    table = tomllib.loads(text)["tables"]["orders"]
    assert table["unit"] == strange
