"""A guarantee and its proof are kept together: each module names the file with its proof."""

import re
from pathlib import Path

import pytest

import accountant

PACKAGE = Path(accountant.__file__).parent
PROOFS = {path.name for path in (PACKAGE / "proofs").glob("*.md")}
# What a ledger notes of collections and streams is proved where their laws are.
PROOFS_ELSEWHERE = {
    path.relative_to(PACKAGE.parent).as_posix()
    for package in ("local_dp", "streams")
    for path in (PACKAGE.parent / package / "proofs").glob("*.md")
}
# What only holds or carries values, and promises nothing by itself.
WITHOUT_A_GUARANTEE = (
    {"source", "ledger/values", "ledger/entry_json", "ledger/opening"}
    | {f"auditor/{name}" for name in ("bodies", "fields", "transfer", "verdict")}
    | {
        f"ledger/stores/{name}"
        for name in (
            "store",
            "durable_file",
            "key_file",
            "postgres_database",
            "postgres_location",
            "postgres_reader",
        )
    }
)
MODULES = {
    path.relative_to(PACKAGE).with_suffix("").as_posix(): path.read_text()
    for path in sorted(PACKAGE.rglob("*.py"))
    if path.name != "__init__.py"  # which says what a room is for, and holds nothing
}


def proofs_named(text: str) -> set[str]:
    """Proofs of the accountant by their name, others by their path."""
    named = re.findall(r"(\w+/)?proofs/(\w+\.md)", text)
    return {
        file if folder in ("", "accountant/") else f"{folder}proofs/{file}"
        for folder, file in named
    }


@pytest.mark.parametrize("module", sorted(MODULES.keys() - WITHOUT_A_GUARANTEE))
def test_a_module_with_a_guarantee_names_its_proof(module: str) -> None:
    named = proofs_named(MODULES[module])
    assert named
    assert named <= PROOFS | PROOFS_ELSEWHERE


def test_every_proof_is_of_something() -> None:
    assert set.union(*map(proofs_named, MODULES.values())) - PROOFS_ELSEWHERE == PROOFS


@pytest.mark.parametrize("proof", sorted(PROOFS))
def test_a_proof_speaks_of_functions_that_exist(proof: str) -> None:
    text = (PACKAGE / "proofs" / proof).read_text()
    named = re.findall(r"`([\w/]+)\.py: (\w+)`", text)
    assert named, "a proof names the functions it is about"
    for module, function in named:
        assert re.search(rf"(def|class) {function}\b", MODULES[module]), (module, function)
