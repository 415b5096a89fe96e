"""`make quick` runs what is near a change, and as much of it as its budget allows."""

from pathlib import Path

from tests.quick import ALWAYS, chosen, distances, imported
from tests.slow import PARTS

FORMULAS = Path("planner/lowering/formulas.py")

TESTS = Path(__file__).resolve().parent


def test_imports_are_followed_through_the_face_of_a_package() -> None:
    assert "accountant.gate.gate" in imported("proxy.bootstrap")  # which imports accountant.gate


def test_the_tests_beside_a_change_come_first_and_then_the_nearest() -> None:
    found = chosen([FORMULAS], {}, 1e9)
    assert found[0] == ALWAYS[0]
    last = max(found.index(one) for one in found if one.startswith("tests/planner/lowering/"))
    assert all(one.startswith("tests/planner/lowering/") for one in found[1 : last + 1])
    away = distances(["planner.lowering.formulas"])
    after = [away[one.removesuffix(".py").replace("/", ".")] for one in found[last + 1 :]]
    assert after == sorted(after)
    assert "tests/streams/test_state.py" not in found  # which uses nothing of the planner


def test_the_budget_is_kept_and_the_cheap_come_before_the_dear() -> None:
    everything = chosen([FORMULAS], {}, 1e9)
    costs = dict.fromkeys(everything, 1.0)
    assert len(chosen([FORMULAS], costs, 10.5)) == 10
    dear = everything[1]
    assert dear not in chosen([FORMULAS], costs | {dear: 100.0}, 50.0)


def test_a_page_is_near_the_tests_of_pages_and_a_fixture_near_those_beside_it() -> None:
    assert "tests/docs/test_glossary.py" in chosen([Path("docs/glossary.md")], {}, 1e9)
    assert "tests/sql/test_refused.py" in chosen([Path("tests/sql/any.sql")], {}, 1e9)


def test_the_parts_of_the_slow_tests_have_every_folder() -> None:
    folders = {path.parent for path in TESTS.rglob("test_*.py")}
    own = {path.relative_to(TESTS).parts[0] for path in folders if path != TESTS}
    listed = [name for names in PARTS.values() for name in names]
    assert own <= set(listed)
    assert len(set(listed)) == len(listed)
