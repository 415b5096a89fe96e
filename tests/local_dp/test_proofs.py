"""A guarantee and its proof are kept together: what a proof speaks of is there, and names it."""

import re
from pathlib import Path

import pytest

import local_dp

PACKAGE = Path(local_dp.__file__).parent
PROOFS = {path.name: path.read_text() for path in (PACKAGE / "proofs").glob("*.md")}
MODULES = {
    path.relative_to(PACKAGE).with_suffix("").as_posix(): path.read_text()
    for path in sorted(PACKAGE.rglob("*.py"))
}


@pytest.mark.parametrize("proof", sorted(PROOFS))
def test_a_proof_speaks_of_what_exists_and_is_named_there(proof: str) -> None:
    named = re.findall(r"`([\w/]+)\.py: (\w+)`", PROOFS[proof])
    assert named, "a proof names the functions it is about"
    for module, function in named:
        assert re.search(rf"(def|class) {function}\b", MODULES[module]), (module, function)
        assert f"proofs/{proof}" in MODULES[module], (module, proof)


@pytest.mark.parametrize("proof", sorted(PROOFS))
def test_the_tests_that_hold_a_proof_are_there(proof: str) -> None:
    folder = Path(__file__).parent
    held = PROOFS[proof].split("## Held by")[1]
    for name in re.findall(r"`(?:tests/local_dp/)?((?:\w+/)*test_\w+\.py)`", held):
        assert list(folder.rglob(Path(name).name)), name
