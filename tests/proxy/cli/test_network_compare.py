"""`tacit network compare`: links, distances and tables of networks in files; no server is asked."""

import json
from pathlib import Path

import pytest

from tests.support.commands import Run
from tests.support.survey_network import survey_bif


@pytest.fixture
def truth(tmp_path: Path) -> Path:
    path = tmp_path / "survey.bif"
    path.write_text(survey_bif())
    return path


def written(folder: Path, name: str, *lines: str) -> Path:
    path = folder / name
    path.write_text("\n".join(lines))
    return path


def test_two_networks_are_compared_by_links_and_distances(
    run: Run, truth: Path, tmp_path: Path
) -> None:
    """By hand: of 6 arcs 4 are found, one is turned, one is missing: 28 of 30 pairs or so agree."""
    found = written(tmp_path, "found.txt", "A -> E", "E -> S", "E -> O", "E -> R", "O -> T")
    made = run("network", "compare", truth, found, "--format", "json")
    assert made.code == 0
    told = json.loads(made.out)
    assert (told["arcs_in_both"], told["arcs_only_in_first"], told["arcs_only_in_second"]) == (
        4,
        2,
        1,
    )
    assert told["links_in_both"] == 5
    assert told["sensitivity"] == 4 / 6
    assert told["specificity"] == 23 / 24
    assert told["recall"] == (4 / 6 + 23 / 24) / 2
    assert told["accuracy"] == 27 / 30
    assert told["structural_distance"] == 2
    assert told["structural_distance_of_classes"] == 6  # no arc of a tree has a direction
    assert told["only_in_second"] == [{"from": "E", "to": "S"}]
    assert told["tables"] is None
    shown = run("network", "compare", truth, found).out
    assert "Only in first: R -> T, S -> E." in shown
    assert "Tables are not compared. A network has no laws" in shown


def test_networks_with_laws_are_compared_by_their_tables(
    run: Run, truth: Path, tmp_path: Path
) -> None:
    """By hand: sex alone is another, by a tenth, so that every pair with S is off by a tenth."""
    text = survey_bif().replace("table 0.6, 0.4;", "table 0.5, 0.5;")
    other = written(tmp_path, "other.bif", text)
    told = json.loads(run("network", "compare", truth, other, "--format", "json").out)
    assert told["structural_distance"] == 0
    by_pair = {tuple(one["columns"]): one["distance"] for one in told["tables"]}
    assert len(by_pair) == 15
    assert by_pair["A", "S"] == pytest.approx(0.1)
    assert told["largest_distance_of_a_pair"] == pytest.approx(0.1)
    assert "S" in told["farthest_pair"].split(", ")
    assert 0 < told["mean_distance_of_pairs"] < 0.1
    same = json.loads(run("network", "compare", truth, truth, "--format", "json").out)
    assert same["mean_distance_of_pairs"] == same["mean_js_distance_of_pairs"] == 0
    assert "mean distance of pairs" in run("network", "compare", truth, other).out


def test_of_several_networks_each_link_has_its_share(run: Run, truth: Path, tmp_path: Path) -> None:
    one = written(tmp_path, "one.txt", "A -> E", "S", "O", "R -> T")
    other = written(tmp_path, "other.txt", "[A|E][S][E][O][R][T]")
    told = json.loads(run("network", "compare", truth, one, other, "--format", "json").out)
    assert told["networks"] == 3
    assert told["links"][0] == {"columns": ["A", "E"], "share": 1.0, "forward": 2, "backward": 1}
    assert {tuple(one["columns"]): one["share"] for one in told["links"]}["R", "T"] == 2 / 3
    shown = run("network", "compare", truth, one, other).out
    assert "A -> E" in shown
    assert "Of 3 networks" in shown


@pytest.mark.parametrize(
    ("name", "text", "code", "message"),
    [
        ("other.txt", "A -> B", "invalid_request", "networks of different columns"),
        ("other.txt", "A -> B -> C", "invalid_request", "line 1 is neither"),
        ("other.xml", "<net/>", "configuration_invalid", "does not say what it holds"),
        ("other.bif", "\x00", "invalid_request", "holds no network"),
    ],
)
def test_what_cannot_be_compared_is_refused(  # noqa: PLR0913, PLR0917 - a case's own values
    run: Run, truth: Path, tmp_path: Path, name: str, text: str, code: str, message: str
) -> None:
    made = run("network", "compare", truth, written(tmp_path, name, text))
    assert made.code != 0
    assert code in made.err
    assert message in made.err


def test_one_network_or_a_missing_file_is_refused(run: Run, truth: Path, tmp_path: Path) -> None:
    assert "Two networks or more" in run("network", "compare", truth).err
    assert "cannot be read" in run("network", "compare", truth, tmp_path / "no.txt").err


def test_the_help_says_what_each_figure_is(run: Run) -> None:
    told = " ".join(run("network", "compare", "--help").out.split())
    for word in ("Sensitivity is", "specificity,", "recall,", "accuracy,", "structural distance"):
        assert word in told
