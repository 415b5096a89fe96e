"""The auditor recomputes what a respondent loses, and convicts whoever declares less."""

import json
import math
from collections.abc import Callable, Sequence
from contextlib import closing
from dataclasses import replace
from fractions import Fraction
from pathlib import Path
from typing import Any

import pytest

from accountant.auditor.collections import _is_at_most_exp
from accountant.auditor.verify import verify
from accountant.ledger.collections import CollectionClosed, CollectionOpened
from accountant.ledger.entries import Entry
from accountant.ledger.opening import open_ledger, open_reader
from cube.encoding import canonical_json
from cube.exponential import exp_below
from cube.measurement import UNITS_PER_EPSILON
from local_dp.campaign import EPSILON_UNITS_MAX, campaign_text, read_campaign
from local_dp.channels.channel import eps_of_channel
from tests.support.audited import rechained
from tests.support.campaigns import TEXTS, survey

Change = Callable[[dict[str, Any]], None]


def ledger_of(path: Path, texts: Sequence[str], n_closed: int | None = None) -> list[Entry]:
    with open_ledger(path) as ledger:
        for text in texts:
            body = CollectionOpened(text, 1000, is_by_invitation=True, by="owner")
            ledger.append_collection(lambda _book, body=body: body)  # type: ignore[misc]
        if n_closed is not None:
            closed = CollectionClosed("survey", n_closed, "cd" * 32, "owner")
            ledger.append_collection(lambda _book: closed)
    with closing(open_reader(str(path))) as reader:
        return list(reader.entries_after(0))


def changed(entry: Entry, change: Change) -> Entry:
    """An entry with another campaign."""
    body = json.loads(entry.body)
    campaign = json.loads(body["campaign"])
    change(campaign)
    body["campaign"] = canonical_json(campaign)
    return replace(entry, body=canonical_json(body))


def test_the_epsilon_of_each_respondent_is_recomputed(tmp_path: Path) -> None:
    verdict = verify(ledger_of(tmp_path / "ledger", TEXTS, n_closed=7))
    assert verdict.problem is None
    assert verdict.tables == ()  # no table's budget
    found = {one.name: one for one in verdict.collections}
    assert found.keys() == {"survey", "both", "wide", "hashed"}
    for text in TEXTS:
        campaign = read_campaign(text)
        one = found[campaign.name]
        assert one.epsilon == campaign.epsilon
        assert one.recomputed <= one.epsilon < one.recomputed + Fraction(1, 1000)
    (combination,) = read_campaign(TEXTS[3]).combinations
    assert found["hashed"].recomputed == eps_of_channel(combination.channel.matrix())
    assert found["survey"].n_respondents == 7
    assert found["wide"].n_respondents is None


def less_epsilon(campaign: dict[str, Any]) -> None:
    campaign["epsilon"] -= UNITS_PER_EPSILON // 100


def hidden_proof(campaign: dict[str, Any]) -> None:
    campaign["combinations"][0]["channel"]["weights"][0] = 0


def more_truth(campaign: dict[str, Any]) -> None:
    campaign["combinations"][1]["channel"]["keep"] = "9/10"


def certain_truth(campaign: dict[str, Any]) -> None:
    campaign["combinations"][1]["channel"]["keep"] = "1/1"


def more_answers(campaign: dict[str, Any]) -> None:
    campaign["views"] = [[0, 1, 2]]
    campaign["answers"] = 2


def fewer_fakes(campaign: dict[str, Any]) -> None:
    del campaign["combinations"][0]["channel"]["weights"][0]


def repeated_place(campaign: dict[str, Any]) -> None:
    campaign["views"][0] *= 2


def unknown_channel(campaign: dict[str, Any]) -> None:
    campaign["combinations"][0]["channel"] = {"kind": "truth"}


def unknown_field(campaign: dict[str, Any]) -> None:
    campaign["note"] = ""


def unknown_attribute(campaign: dict[str, Any]) -> None:
    campaign["combinations"][0]["attributes"] = ["income"]


@pytest.mark.parametrize(
    ("change", "told"),
    [
        (less_epsilon, "may lose more"),
        (more_truth, "may lose more"),
        (more_answers, "may lose more"),
        (hidden_proof, "must be positive, one for each cell"),
        (fewer_fakes, "must be positive, one for each cell"),
        (certain_truth, "not between 0 and 1"),
        (repeated_place, "fewer combinations"),
        (unknown_channel, "the kind of channel"),
        (unknown_field, "is unknown"),
        (unknown_attribute, "must name distinct attributes"),
    ],
)
def test_a_campaign_that_loses_more_than_it_declares_is_convicted(
    tmp_path: Path, change: Change, told: str
) -> None:
    first, second = ledger_of(tmp_path / "ledger", TEXTS[:2])
    verdict = verify(rechained([first, changed(second, change)]))
    assert verdict.problem is not None
    assert verdict.problem.startswith("entry 2: ")
    assert told in verdict.problem
    assert [one.name for one in verdict.collections] == ["survey"]


@pytest.mark.parametrize("text", TEXTS)
def test_a_thousandth_of_epsilon_less_is_convicted(tmp_path: Path, text: str) -> None:
    def less(campaign: dict[str, Any]) -> None:
        campaign["epsilon"] -= campaign["epsilon"] // 1000

    (entry,) = ledger_of(tmp_path / "ledger", [text])
    verdict = verify(rechained([changed(entry, less)]))
    assert "may lose more" in (verdict.problem or "")


def test_a_second_closing_is_convicted(tmp_path: Path) -> None:
    entries = ledger_of(tmp_path / "ledger", TEXTS[:1], n_closed=5)
    twice = rechained([*entries, replace(entries[-1], seq=3)])
    assert verify(twice).problem == "entry 3: the collection was closed twice"
    alone = rechained([replace(entries[-1], seq=1)])
    assert verify(alone).problem == "entry 1: the closed collection was never opened"


def test_more_answers_than_were_allowed_are_convicted(tmp_path: Path) -> None:
    *before, last = ledger_of(tmp_path / "ledger", TEXTS[:1], n_closed=5)
    body = {**json.loads(last.body), "respondents": 1001}
    lied = rechained([*before, replace(last, body=canonical_json(body))])
    assert "more answers" in (verify(lied).problem or "")


def test_a_second_opening_is_convicted(tmp_path: Path) -> None:
    (entry,) = ledger_of(tmp_path / "ledger", TEXTS[:1])
    assert verify(rechained([entry, replace(entry, seq=2)])).problem == (
        "entry 2: the collection was opened twice"
    )


def test_a_table_of_its_name_is_convicted(tmp_path: Path) -> None:
    path = tmp_path / "ledger"
    ledger_of(path, [campaign_text(survey("people"))])
    with closing(open_reader(str(path))) as reader:
        (entry,) = reader.entries_after(0)
    opened = {"schema_digest": "s", "data_fingerprint": "d", "budget": "1", "rows_fingerprint": "r"}
    table = replace(entry, seq=2, kind="table_opened", table="people", body=canonical_json(opened))
    assert "name of a collection" in (verify(rechained([entry, table])).problem or "")
    swapped = rechained([replace(table, seq=1), replace(entry, seq=2)])
    assert "name of a table" in (verify(swapped).problem or "")


@pytest.mark.parametrize(
    "units", [1, 2**20, UNITS_PER_EPSILON, 3 * UNITS_PER_EPSILON + 12345, EPSILON_UNITS_MAX]
)
def test_its_exponential_is_between_the_server_s_and_the_true_one(units: int) -> None:
    below = exp_below(units)
    assert _is_at_most_exp(below, units)
    assert not _is_at_most_exp(below * (1 + Fraction(1, 2**78)), units)
    assert math.isclose(float(below), math.exp(units / UNITS_PER_EPSILON))
