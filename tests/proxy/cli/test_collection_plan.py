"""`tacit plan-collection`: two numbers determine the third; nothing is asked of a server."""

import re
from dataclasses import replace
from pathlib import Path

import pytest

from proxy.cli import planning as collection_plan
from proxy.cli.collection import attributes_in
from proxy.cli.shared.charts import collection_svg as plan_svg
from proxy.collections.plan import Plan, made_plan
from tests.support.commands import Run

ATTRIBUTES = (
    'education = ["none", "school", "degree"]\nsmokes = [false, true]\nregion = [1, 2, 3]\n'
)


@pytest.fixture
def attributes(tmp_path: Path) -> Path:
    (tmp_path / "survey.toml").write_text(ATTRIBUTES)
    return tmp_path / "survey.toml"


def planned(path: Path, **given: object) -> Plan:
    numbers = {"epsilon": None, "n_respondents": None, "width": None, "confidence": 0.95, "size": 2}
    return made_plan(attributes_in(path), **{**numbers, **given})  # type: ignore[arg-type]


def test_each_two_of_three_numbers_agree(attributes: Path) -> None:
    by_width = planned(attributes, epsilon="1.5", width=0.05)
    assert 0.049 < by_width.widest <= 0.05
    by_number = planned(attributes, epsilon="1.5", n_respondents=by_width.n_respondents)
    assert by_number == by_width
    by_epsilon = planned(attributes, n_respondents=by_width.n_respondents, width=0.05)
    assert float(by_epsilon.campaign.epsilon) == pytest.approx(1.5, rel=1e-2)
    assert by_epsilon.widest <= 0.05 * (1 + 1e-5)


def test_the_epsilon_is_enough_for_every_combination(tmp_path: Path) -> None:
    """Of 8, 40 and 80 cells, whose channels change their kind at epsilons of their own."""
    path = tmp_path / "survey.toml"
    sizes = {"a": 2, "b": 4, "c": 20}
    path.write_text("".join(f"{name} = {list(range(n))}\n" for name, n in sizes.items()))
    for n_respondents in (5000, 12_000, 60_000):
        found = planned(path, n_respondents=n_respondents, width=0.05)
        assert found.widest <= 0.05 * (1 + 1e-5)
        steps = [step for step in range(30, 600) if step < float(found.campaign.epsilon) * 100]
        less = [
            planned(path, epsilon=f"{step / 100}", n_respondents=n_respondents) for step in steps
        ]
        assert less
        assert all(one.widest > 0.05 for one in less)


def test_a_plan_for_a_share_needs_fewer(run: Run, attributes: Path) -> None:
    given = (
        "plan-collection",
        "--attributes",
        attributes,
        "--epsilon",
        "1",
        "--half-width",
        "0.05",
    )
    whatever, smaller = run(*given), run(*given, "--share", "0.1")
    assert "whatever they are" in whatever.out
    assert "of cells that have 0.1" in smaller.out
    least = planned(attributes, epsilon="1", width=0.05, share=0.1)
    assert f"{least.n_respondents} respondents" in smaller.out
    assert least.n_respondents < planned(attributes, epsilon="1", width=0.05).n_respondents
    assert plan_svg(least) != plan_svg(replace(least, share=None))
    assert "from 0 to 1" in run(*given, "--share", "2").err


def test_the_command_shows_it_and_draws_it(run: Run, attributes: Path, tmp_path: Path) -> None:
    out = tmp_path / "plan.svg"
    given = ("plan-collection", "--attributes", attributes, "--epsilon", "1")
    told = run(*given, "--half-width", "0.05", "--out", out)
    assert told.code == 0, told.err
    found = re.search(r"(\d+) respondents at epsilon 1 each: shares to within 0.0[45]", told.out)
    assert found
    assert "randomised response" in told.out
    again = planned(attributes, epsilon="1", n_respondents=int(found[1]))
    assert out.read_bytes() == plan_svg(again)
    assert b"<svg" in out.read_bytes()


def test_a_plan_that_tells_nothing_says_so(run: Run, attributes: Path) -> None:
    """At epsilon .01, four people; a hundred thousand times as many tell something."""
    given = ("plan-collection", "--attributes", attributes, "--epsilon", "0.01")
    told = run(*given, "--respondents", "4")
    assert told.code == 0
    assert "Such an interval says nothing: a share is from 0 to 1." in told.out
    assert planned(attributes, epsilon="0.01", n_respondents=4).widest >= 1
    enough = run(*given, "--respondents", "10000000")
    assert "tells nothing" not in enough.out


def test_a_file_that_cannot_be_written_is_refused_before_anything_is_planned(
    run: Run, attributes: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.delattr(collection_plan, "made_plan")
    given = ("plan-collection", "--attributes", attributes, "--epsilon", "1", "--respondents", "9")
    ended = run(*given, "--out", tmp_path / "none" / "plan.svg")
    assert ended.code
    assert "There is no directory" in ended.err


@pytest.mark.parametrize(
    ("more", "said"),
    [
        ((), "Give two of"),
        (("--epsilon", "1"), "Give two of"),
        (("--epsilon", "1", "--respondents", "9", "--half-width", "0.1"), "Give two of"),
        (("--epsilon", "17", "--respondents", "9"), "at most 16"),
        (("--epsilon", "1", "--half-width", "2"), "below 1"),
        (("--respondents", "2", "--half-width", "0.01"), "No epsilon gives"),
        (("--epsilon", "1e-9", "--respondents", "9"), "at least 0.0001"),
        (("--epsilon", "1", "--respondents", "9", "--out", "plan.png"), "does not end in .svg"),
    ],
)
def test_what_makes_no_plan_is_refused(
    run: Run, attributes: Path, more: tuple[str, ...], said: str
) -> None:
    ended = run("plan-collection", "--attributes", attributes, *more)
    assert ended.code
    assert said in ended.err


@pytest.mark.parametrize("text", ["", "a = 1", "a = [1]", "a = [1, 1]", "a = [1.5, 2]", "a ="])
def test_a_file_without_attributes_is_refused(run: Run, tmp_path: Path, text: str) -> None:
    (tmp_path / "survey.toml").write_text(text)
    given = ("--attributes", tmp_path / "survey.toml", "--epsilon", "1", "--respondents", "9")
    ended = run("plan-collection", *given)
    assert ended.code
    assert "survey.toml" in ended.err
