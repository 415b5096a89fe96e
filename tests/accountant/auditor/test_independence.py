"""The auditor shares no code with what it checks, so that it does not repeat its mistakes."""

import ast
import inspect
from pathlib import Path

import pytest

import accountant.auditor
import cube.encoding
from accountant.auditor import bodies
from accountant.auditor.fields import parsed
from accountant.ledger import entry_json as entry_text
from accountant.ledger.entries import Entry
from cube.encoding import canonical_json

PACKAGE = Path(inspect.getfile(accountant.auditor)).parent
ALLOWED = {
    "accountant.ledger.entries": {"Entry", "GENESIS"},
    "accountant.ledger.stores.store": {"Store"},
    "cube.encoding": {"canonical_json"},
    "cube.refusals": {"CannotStart", "LedgerCorrupt"},
}


def imported_names(path: Path) -> dict[str, set[str]]:
    found: dict[str, set[str]] = {}
    for node in ast.walk(ast.parse(path.read_text())):
        if isinstance(node, ast.Import):
            for alias in node.names:
                found.setdefault(alias.name, set())
        elif isinstance(node, ast.ImportFrom):
            assert node.level == 0
            assert node.module is not None
            found.setdefault(node.module, set()).update(alias.name for alias in node.names)
    return found


@pytest.mark.parametrize("path", sorted(PACKAGE.rglob("*.py")), ids=lambda path: path.stem)
def test_the_auditor_takes_from_the_rest_only_entries_refusals_and_constants(path: Path) -> None:
    for module, names in imported_names(path).items():
        home = module.split(".")[0]
        if home not in {"accountant", "cube"} or module.startswith("accountant.auditor"):
            continue
        others = {name for name in names if not name.isupper()}
        assert names, f"{path.name} imports all of {module}"
        assert others <= ALLOWED.get(module, set()), f"{path.name} imports {others} of {module}"
        if module.startswith("accountant"):
            assert module in ALLOWED, f"{path.name} imports {module}"


def test_it_uses_nothing_of_an_entry_but_its_fields() -> None:
    methods = {name for name, _ in inspect.getmembers(Entry, inspect.isfunction)}
    for path in PACKAGE.rglob("*.py"):
        for node in ast.walk(ast.parse(path.read_text())):
            if isinstance(node, ast.Attribute):
                assert node.attr not in {name for name in methods if not name.startswith("_")}


def test_the_canonical_text_that_is_shared_is_one_line_anybody_can_check() -> None:
    source = inspect.getsource(canonical_json)
    assert source.count("return") == 1
    assert inspect.getmodule(canonical_json) is cube.encoding
    assert canonical_json({"b": [1, None], "a": "é"}) == '{"a":"\\u00e9","b":[1,null]}'
    assert parsed('{"a":"\\u00e9","b":[1,null]}') == {"b": [1, None], "a": "é"}


def test_the_auditor_knows_every_kind_of_entry_that_there_is() -> None:
    assert {"charge", *bodies._READERS} == set(entry_text._READERS)
