"""Respondents' answers in a file: kept once, with one token, and never taken for none."""

import json
import multiprocessing
import re
from pathlib import Path

import pytest

from cube.measurement import UNITS_PER_EPSILON
from local_dp.answer_store import AnswersUnreadable, FileAnswers
from local_dp.campaign import campaign_text
from local_dp.respondent import CampaignRefused, Given, Kept, Respondent
from tests.support.collections_of_answers import SURVEY_ROW, survey_campaign


def test_answers_in_a_file_outlive_the_process(tmp_path: Path) -> None:
    text = campaign_text(survey_campaign(UNITS_PER_EPSILON))
    path = tmp_path / "answers.json"
    answers = {
        Respondent(FileAnswers(path), epsilon_units_max=UNITS_PER_EPSILON).answer(text, SURVEY_ROW)
        for _ in range(5)
    }
    assert len(answers) == 1
    assert path.stat().st_mode & 0o077 == 0
    names = ["answers.json", "answers.json.lock", "answers.json.secret"]
    assert sorted(one.name for one in tmp_path.iterdir()) == names
    other = text.replace('"survey"', '"other"')
    with pytest.raises(CampaignRefused):
        Respondent(FileAnswers(path), epsilon_units_max=UNITS_PER_EPSILON).answer(other, SURVEY_ROW)


def test_a_file_that_is_damaged_is_not_an_empty_one(tmp_path: Path) -> None:
    path = tmp_path / "answers.json"
    for text in ("", "[]", '{"a": 3}', "{", '{"a": [1]}', '{"a": [1, "x", "y", "z"]}'):
        path.write_text(text)
        with pytest.raises(AnswersUnreadable):
            FileAnswers(path).once("a", lambda _: Kept(1, "x"))


def test_an_answer_that_cannot_be_kept_is_not_given(tmp_path: Path) -> None:
    path = tmp_path / "answers.json"
    (tmp_path / "answers.json.new").mkdir()  # where the new file would be written
    with pytest.raises(OSError, match="answers"):
        FileAnswers(path).once("a", lambda _: Kept(1, "x"))
    assert not path.exists()


def _answer(path: Path, text: str) -> Given:
    return Respondent(FileAnswers(path), epsilon_units_max=UNITS_PER_EPSILON).answer(
        text, SURVEY_ROW
    )


def test_processes_at_the_same_time_give_one_answer(tmp_path: Path) -> None:
    text = campaign_text(survey_campaign(UNITS_PER_EPSILON))
    with multiprocessing.get_context("spawn").Pool(2) as pool:
        given = pool.starmap(_answer, [(tmp_path / "answers.json", text)] * 8, chunksize=1)
    assert len(set(given)) == 1


def token_of(path: Path, campaign: str, token: str = "") -> str:
    return FileAnswers(path).once(campaign, lambda _: Kept(1, "x"), token).token


def test_a_token_stays_the_same_and_is_of_one_campaign_and_respondent(tmp_path: Path) -> None:
    one, other = tmp_path / "one", tmp_path / "other"
    token = token_of(one, "a")
    assert re.fullmatch("[0-9a-f]{64}", token)
    assert token_of(one, "a") == token
    assert len({token, token_of(one, "b"), token_of(other, "a"), token_of(other, "b")}) == 4
    assert (tmp_path / "one.secret").stat().st_mode & 0o777 == 0o600
    one.unlink()
    assert token_of(one, "a") == token, "whoever draws again is not counted again"
    (tmp_path / "one.secret").write_bytes(b"short")
    with pytest.raises(AnswersUnreadable):
        token_of(one, "c")


def test_an_answer_keeps_the_token_that_it_was_first_sent_under(tmp_path: Path) -> None:
    text = campaign_text(survey_campaign(UNITS_PER_EPSILON))
    respondent = Respondent(FileAnswers(tmp_path / "a"), epsilon_units_max=UNITS_PER_EPSILON)
    first = respondent.answer(text, SURVEY_ROW, "invited")
    assert (first.token, first.remarks) == ("invited", ())
    for again in (respondent.answer(text, SURVEY_ROW, "again"), respondent.kept(text, "again")):
        assert (again.answer, again.token) == (first.answer, "invited")
        assert ["already sent under another token" in one for one in again.remarks] == [True]
    assert respondent.answer(text, SURVEY_ROW) == respondent.kept(text, "invited") == first
    assert not (tmp_path / "a.secret").exists()


def test_an_answer_from_before_tokens_were_kept_is_sent_as_it_was(tmp_path: Path) -> None:
    """Under the token of the secret beside it. Without that, under none: it would count twice."""
    path = tmp_path / "a"
    token = token_of(path, "a")
    old = json.dumps({"a": [1, "x"], "b": [1, "y"]})
    path.write_text(old)
    assert FileAnswers(path).once("a", lambda _: Kept(2, "z")) == Kept(1, "x", token)
    assert json.loads(path.read_text()) == {"a": [1, "x", token], "b": [1, "y", ""]}
    (tmp_path / "a.secret").unlink()
    with pytest.raises(AnswersUnreadable, match="lost"):
        token_of(path, "b")
    assert not (tmp_path / "a.secret").exists()
    assert token_of(path, "a") == token, "it is kept with the answer"
    assert token_of(path, "b", "invited") == "invited"
    assert token_of(path, "c") != token, "a new one is no answer's yet"
