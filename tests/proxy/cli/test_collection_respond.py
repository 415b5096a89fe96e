"""`tacit collection respond`: what a respondent is told, and what the server never hears."""

import json
from collections.abc import Iterator
from contextlib import closing
from pathlib import Path

import pytest

from accountant.ledger.opening import open_ledger
from local_dp.campaign import campaign_text
from proxy.api.requests import LOCAL
from proxy.collections.service import CollectionService
from tests.support.campaigns import survey
from tests.support.commands import Run, command_runner
from tests.support.engine_fake import CannedEngine
from tests.support.hostile_campaigns import searching
from tests.support.serving import serving

ROW = '{"education": "school", "smokes": true, "region": 2}'


@pytest.fixture
def run(capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch) -> Run:
    return command_runner(capsys, monkeypatch)


@pytest.fixture
def collections(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[CollectionService]:
    with (
        open_ledger(tmp_path / "ledger") as ledger,
        closing(CollectionService(ledger, tmp_path / "counts")) as made,
        serving(CannedEngine(), collections=made) as address,
    ):
        monkeypatch.setenv("TACIT_SERVER", address)
        yield made


def own(folder: Path, row: str, store: str = "mine") -> tuple[object, ...]:
    (folder / "row.json").write_text(row)
    return ("--row", folder / "row.json", "--epsilon-max", "2", "--store", folder / store)


@pytest.mark.parametrize("said", ['"no"', '"yes"', "null", "NaN", "[1]", "1" * 5000, "-0.5"])
def test_whatever_a_row_says_is_answered_and_the_respondent_is_told(
    run: Run, collections: CollectionService, tmp_path: Path, said: str
) -> None:
    collections.create(LOCAL, searching("no", "-"), n_respondents_max=10)
    ended = run("collection", "respond", "search", *own(tmp_path, f'{{"hiv": {said}}}'))
    assert ended.code == 0
    assert ended.out.endswith("Your randomised answer to search is counted.\n")
    assert ("WARNING: The campaign does not list the row's level of hiv" in ended.err) == (
        said != '"no"'
    )
    assert collections.status(LOCAL, "search").n_respondents == 1


def test_a_row_without_a_name_is_refused_before_anything_is_drawn(
    run: Run, collections: CollectionService, tmp_path: Path
) -> None:
    collections.create(LOCAL, campaign_text(survey()), n_respondents_max=10)
    ended = run("collection", "respond", "survey", *own(tmp_path, '{"education": "?"}'))
    assert ended.code
    assert (
        "Nothing was answered: the row does not have region, which the campaign asks about"
        in ended.err
    )
    assert not (tmp_path / "mine").exists()


def test_two_invitations_and_one_store_are_one_answer(
    run: Run, collections: CollectionService, tmp_path: Path
) -> None:
    collections.create(LOCAL, campaign_text(survey()), n_respondents_max=10, is_by_invitation=True)
    tokens = collections.invitations(LOCAL, "survey", 2)
    ends = [
        run("collection", "respond", "survey", *own(tmp_path, ROW), "--token", token)
        for token in tokens
    ]
    assert [one.code for one in ends] == [0, 0]
    assert ends[0].err == ""
    assert "It was counted before." in ends[1].out
    assert "WARNING: This answer was already sent under another token" in ends[1].err
    assert collections.status(LOCAL, "survey").n_respondents == 1


def test_an_answer_whose_token_is_lost_is_not_counted_again(
    run: Run, collections: CollectionService, tmp_path: Path
) -> None:
    collections.create(LOCAL, campaign_text(survey()), n_respondents_max=10)
    assert run("collection", "respond", "survey", *own(tmp_path, ROW)).code == 0
    kept = json.loads((tmp_path / "mine").read_text())
    (tmp_path / "mine").write_text(json.dumps({name: one[:2] for name, one in kept.items()}))
    (tmp_path / "mine.secret").unlink()
    ended = run("collection", "respond", "survey", *own(tmp_path, ROW))
    assert ended.code
    assert "Nothing was answered" in ended.err
    assert "is lost" in ended.err
    assert collections.status(LOCAL, "survey").n_respondents == 1
