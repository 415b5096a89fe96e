"""A start says all that is wrong with its files at once, and no more lines than one can read."""

from pathlib import Path

import pytest

from cube.refusals import ConfigurationInvalid
from proxy.bootstrap import build
from proxy.config.settings import load
from proxy.sources.problems import Problems

CANARY = "8675309"


def test_problems_of_all_files_are_said_at_one_start(tmp_path: Path) -> None:
    """Public and private ones; of each what it is, and nothing that is in it."""
    for name, text in (
        ("ragged.csv", f"a\n1\n2,{CANARY}\n"),
        ("latin.csv", f"a\n1\n{CANARY}é\n"),
        ("typed.csv", f"a\nx{CANARY}\n"),
        ("other.csv", "a\n1\n"),
        ("public.csv", "a,a\n1,2\n"),
    ):
        (tmp_path / name).write_bytes(text.encode("latin-1"))
    lines = ['[ledger]\npath = "l"', '[public.p]\nsource = "public.csv"']
    lines += [
        f'[tables.{name}]\nsource = "{name}.csv"\nbudget = 1\nn_records_max = 9\n'
        f'half_width = 1\n[tables.{name}.columns.a]\nkind = "integer"\nlow = 0\nhigh = 9'
        for name in ("ragged", "latin", "typed", "other")
    ]
    (tmp_path / "tacit.toml").write_text("\n".join(lines))
    with pytest.raises(ConfigurationInvalid) as caught:
        build(load(tmp_path / "tacit.toml"))
    said = caught.value.explain()
    for what in (
        "ragged.csv has lines with more fields",
        "latin.csv is not text in utf-8",
        "tables.typed.columns.a: the source holds a value that is not of type BIGINT",
        "public.csv must have distinct column names",
    ):
        assert what in said
    assert "other.csv" not in said
    assert CANARY not in said


def test_hundreds_of_problems_are_summed_up() -> None:
    problems = Problems("tacit.toml")
    for place in range(1540):
        problems.add(("tables", "t", "columns", f"c{place}", "low"), "is missing")
    with pytest.raises(ConfigurationInvalid) as caught:
        problems.raise_if_any()
    said = caught.value.message
    assert said.startswith("tacit.toml has 1,540 problems:")
    assert said.endswith("and 1,500 more: is missing (1,500)")
    assert said.count("\n") == 41
