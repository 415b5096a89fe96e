"""`tacit network learn` of a collection on a real server, and of a stream, which has no network."""

import io
import json
from collections.abc import Iterator
from pathlib import Path

import numpy as np
import pytest
import structlog

from cube.measurement import UNITS_PER_EPSILON
from local_dp.campaign import Attribute, designed_views, planned_campaign
from local_dp.estimates.collection import CollectionEstimates
from proxy.monitoring.logs import configure_logs
from tests.support import survey_network
from tests.support.answered_collections import AnsweredCollection, serving_answers
from tests.support.collections_of_answers import NAMES, survey_campaign
from tests.support.commands import Run
from tests.support.respondents import collected
from tests.support.serving import serving
from tests.support.streaming import CREATE, streaming

LEARN = ("network", "learn", "survey")


@pytest.fixture(autouse=True)
def _server_logs_elsewhere() -> Iterator[None]:
    configure_logs(io.StringIO())
    yield
    structlog.reset_defaults()


def survey_answers(n: int, epsilon: int = 4) -> CollectionEstimates:
    """What people of the Survey network answer about pairs."""
    codes = survey_network.sampled(n, 2)
    rows = {name: codes[:, survey_network.NAMES.index(name)] for name in NAMES}
    return collected(survey_campaign(epsilon * UNITS_PER_EPSILON), rows, np.random.default_rng(2))


@pytest.fixture
def survey(monkeypatch: pytest.MonkeyPatch) -> Iterator[AnsweredCollection]:
    collection = AnsweredCollection(survey_answers(300_000))
    with serving_answers(collection) as address:
        monkeypatch.setenv("TACIT_SERVER", address)
        yield collection


def test_a_network_is_learned_for_nothing_from_one_reading(
    run: Run, survey: AnsweredCollection, tmp_path: Path
) -> None:
    file = tmp_path / "network.json"
    made = run(*LEARN, "--method", "exact", "-o", file)
    assert made.code == 0
    assert "Learned from what 300000 respondents answered. Free." in made.out
    arcs = [{arc["from"], arc["to"]} for arc in json.loads(file.read_text())["arcs"]]
    assert all(arc in arcs for arc in ({"A", "E"}, {"R", "T"}))
    assert survey.n_read == 1
    again = run(*LEARN, "--method", "exact", "-o", tmp_path / "again.json")
    assert again.out.replace("again.json", "network.json") == made.out


@pytest.mark.parametrize(
    ("arguments", "told"),
    [
        (("--epsilon", "banana"), "[invalid_target]: survey is a collection, which has no budget"),
        (("--epsilon", "1"), "[invalid_target]: survey is a collection, which has no budget"),
        (("--degree", "2"), "[invalid_request]: No one was asked about A, E, O together"),
        (("--columns", "A,Z"), "[unknown_name]: survey has no column 'Z'"),
    ],
)
def test_what_is_wrong_is_said_before_answers_are_read(
    run: Run, survey: AnsweredCollection, arguments: tuple[str, ...], told: str
) -> None:
    ended = run(*LEARN, *arguments)
    assert ended.code != 0
    assert told in ended.err
    assert survey.n_read == 0


def test_tables_that_are_too_large_are_refused_before_answers_are_read(
    run: Run, monkeypatch: pytest.MonkeyPatch
) -> None:
    attributes = (Attribute("a", tuple(range(80))), Attribute("b", tuple(range(80))))
    campaign = planned_campaign(
        "survey", attributes, designed_views(["a", "b"], 2), epsilon_units=UNITS_PER_EPSILON
    )
    collection = AnsweredCollection(CollectionEstimates(campaign, {}, 0))
    with serving_answers(collection) as address:
        monkeypatch.setenv("TACIT_SERVER", address)
        ended = run(*LEARN)
    assert (
        "[too_large]: The table of a, b has 6400 cells; for a collection, at most 2048" in ended.err
    )
    assert "name the others in --columns" in ended.err
    assert collection.n_read == 0


def test_a_collection_that_nobody_answered_says_so(
    run: Run, monkeypatch: pytest.MonkeyPatch
) -> None:
    campaign = survey_campaign(UNITS_PER_EPSILON)
    with serving_answers(AnsweredCollection(CollectionEstimates(campaign, {}, 0))) as address:
        monkeypatch.setenv("TACIT_SERVER", address)
        assert "[invalid_request]: No one has answered survey yet." in run(*LEARN).err


def test_a_stream_has_no_network(run: Run, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    with (
        streaming(tmp_path / "a.ledger") as found,
        serving(found.engine, streams=found.streams) as address,
    ):
        monkeypatch.setenv("TACIT_SERVER", address)
        found.rows(CREATE)
        ended = run("network", "learn", "visits")
    assert "[invalid_request]: visits is a stream: it counts users" in ended.err
