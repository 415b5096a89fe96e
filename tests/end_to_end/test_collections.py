"""A collection by the command line and a real server: 1,000 respondents, estimates, then SQL."""

import json
import random
import re
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import grpc
import pytest

from local_dp.respondent import Entropy, Level, check_campaign, randomised
from proxy.cli.serving.running import running
from proxy.collections.tokens import new_token
from proxy.config.settings import load
from proxy.protocol import tacit_pb2
from proxy.protocol.tacit_pb2_grpc import RespondentsStub
from tests.support.commands import Run, command_runner

N_RESPONDENTS = 1000
ATTRIBUTES = """\
education = ["none", "school", "degree"]
smokes = [false, true]
region = [1, 2, 3, 4]
"""
CONFIGURATION = """\
[server]
listen = "127.0.0.1:0"
allow_anonymous = false
synthetic_dir = "synthetic"

[ledger]
path = "people.ledger"

[tables.people]
source = "people.csv"
budget = 1.0
n_records_max = 1000
half_width = 10

[tables.people.columns.sex]
kind = "category"
levels = ["Female", "Male"]
"""


@pytest.fixture
def run(capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch) -> Run:
    return command_runner(capsys, monkeypatch)


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    (tmp_path / "people.csv").write_text("sex\nFemale\nMale\n")
    (tmp_path / "tacit.toml").write_text(CONFIGURATION)
    (tmp_path / "survey.toml").write_text(ATTRIBUTES)
    (tmp_path / "synthetic").mkdir()
    return tmp_path


@pytest.fixture
def address(folder: Path) -> Iterator[str]:
    with running(load(folder / "tacit.toml")) as here:
        yield here.wires.grpc.address


def truth(number: int) -> dict[str, Level]:
    """A made-up person: four in ten smoke, and half of these went to school alone."""
    rng = random.Random(number)  # noqa: S311 - who answers, not how
    smokes = rng.random() < 0.4
    school = rng.random() < (0.8 if smokes else 0.3)
    return {
        "education": "school" if school else "degree",
        "smokes": smokes,
        "region": rng.randrange(1, 5),
    }


def answered(channel: grpc.Channel, number: int) -> bool:
    stub, token = RespondentsStub(channel), new_token()
    asked = stub.GetAssignment(tacit_pb2.GetAssignmentRequest(name="survey", token=token))
    answer = randomised(check_campaign(asked.campaign), truth(number), Entropy().below)
    sent = tacit_pb2.SubmitAnswerRequest(name="survey", token=token, answer=answer)
    return not stub.SubmitAnswer(sent).counted_before


def _likeliest_shares(owner: Callable[..., str]) -> None:
    likely = owner("collection", "show", "survey", "--by", "smokes,education", "--likeliest")
    shares = re.findall(r"│ \w+ +│ \w+ +│ +([\d.]+) │", likely)
    assert sum(map(float, shares)) == pytest.approx(1, abs=3e-4)
    assert "answers to education, smokes. Small ones are biased" in likely


def test_a_thousand_respondents_and_what_they_say(
    run: Run, folder: Path, address: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    issued = run(
        *("token", "issue", "--config", folder / "tacit.toml"),
        *("--analyst", "ann", "--role", "owner", "--all-tables"),
    )
    found = re.search(r"tacit_[\w-]+", issued.out)
    assert found, issued
    monkeypatch.setenv("TACIT_SERVER", address)

    def owner(*arguments: object) -> str:
        monkeypatch.setenv("TACIT_TOKEN", found[0])
        ended = run(*arguments)
        monkeypatch.delenv("TACIT_TOKEN")
        assert ended.code == 0, ended
        return ended.out

    attributes = ("--attributes", folder / "survey.toml", "--epsilon", "3")
    opened = owner("collection", "create", "survey", *attributes, "--respondents", N_RESPONDENTS)
    assert "survey is open for 1000 respondents, each at epsilon 3 of their own" in opened
    with grpc.insecure_channel(address) as channel, ThreadPoolExecutor(4) as pool:
        assert sum(pool.map(lambda one: answered(channel, one), range(N_RESPONDENTS - 1))) == 999

    (folder / "row.json").write_text(json.dumps(truth(N_RESPONDENTS)))
    own = ("--row", folder / "row.json", "--epsilon-max", "3", "--store", folder / "mine")
    frugal = (*own[:3], "1", "--store", folder / "another")
    refused = run("collection", "respond", "survey", *frugal)
    assert refused.code
    assert "more epsilon than the respondent's limit leaves" in refused.err
    assert "is counted." in run("collection", "respond", "survey", *own).out
    assert "It was counted before." in run("collection", "respond", "survey", *own).out
    _refused_when_it_is_over(run, owner, folder, own)
    shown = owner("collection", "show", "survey", "--by", "smokes,education")
    cells = re.findall(r"│ (\w+) +│ (\w+) +│ +(-?[\d.]+) │ (-?[\d.]+) to (-?[\d.]+) ", shown)
    shares = {(one[0], one[1]): tuple(map(float, one[2:])) for one in cells}
    assert len(shares) == 6
    # Of each cell the better of two estimates is shown, so that they need not add up exactly.
    assert sum(share for share, _, _ in shares.values()) == pytest.approx(1, abs=0.1)
    assert re.search(r"All of them at once are within 0\.\d{4} of the truth \(0\.95\)\.", shown)
    _likeliest_shares(owner)
    people = [truth(one) for one in range(N_RESPONDENTS)]
    for (education, smokes), (share, low, high) in shares.items():
        count = sum(
            one["education"] == education and str(one["smokes"]).lower() == smokes for one in people
        )
        # Three times the 95 % half-width: passed by one cell in 10**8.
        assert abs(share - count / N_RESPONDENTS) < 3 * (high - low) / 2

    by_education = "SELECT education, COUNT(*) AS n FROM survey GROUP BY education"
    counted = owner("query", by_education)
    rows = re.findall(r"│ (\w+) +│ +(-?[\d.]+) │ +\[(-?[\d.]+), ([\d.]+)\] │ randomized", counted)
    assert [one[0] for one in rows] == ["degree", "none", "school"]
    for education, n, low, high in rows:
        count = sum(one["education"] == education for one in people)
        # Six times the half-width, but where an interval ends at the range of what may be.
        assert abs(float(n) - count) < 3 * (float(high) - float(low)) or float(low) == 0
    assert "each at epsilon 3 of their own; to ask is free" in counted
    _tested_and_drawn(owner, folder)
    monkeypatch.setenv("TACIT_TOKEN", found[0])
    for name in ("people_like_them", "A_Tree"):
        taken = run("collection", "create", name, *attributes)
        assert f"{name} is the name of a synthetic table" in taken.err
    assert "│ closed" in owner("query", "SELECT table_name, state FROM data_privacy.collections")
    told = run("audit", "verify", folder / "people.ledger").out
    assert "Collection survey: epsilon 3 for each respondent, of their own" in told
    assert "closed with 1000 answers" in told
    assert "Every entry follows from those before it." in told


def _refused_when_it_is_over(
    run: Run, owner: Callable[..., str], folder: Path, own: tuple[object, ...]
) -> None:
    """Nothing is drawn for whoever comes when it is full, or closed; who was counted hears it."""
    late = (*own[:4], "--store", folder / "late")
    for state, reason in (("open", "as many answers as its"), ("closed", "takes no more")):
        refused = run("collection", "respond", "survey", *late)
        assert refused.code
        assert reason in refused.err
        assert not (folder / "late").exists()
        assert "It was counted before." in run("collection", "respond", "survey", *own).out
        assert f"│ {state}" in owner("collection", "list")
        assert "closed with 1000 answers" in owner("collection", "close", "survey")


def _tested_and_drawn(owner: Callable[..., str], folder: Path) -> None:
    """What depends on what, and rows like the respondents'."""
    rarely = (  # a false alarm once in a thousand runs
        "SELECT WITH DIFFERENTIAL_PRIVACY OPTIONS(level => 0.001) DP_CHI2_TEST(smokes, region) "
        "FROM survey"
    )
    tied = owner("query", rarely)
    assert "│ not rejected" in tied
    tied = owner("query", "SELECT DP_CHI2_TEST(smokes, education = 'school') FROM survey")
    assert "│ dependent" in tied
    learned = owner("network", "learn", "survey", "--method", "chow-liu")
    assert re.search(r"│ (education +│ smokes|smokes +│ education) ", learned)
    assert "Learned from what 1000 respondents answered. Free." in learned
    order = ("synth", "create", "survey", "--name", "people_like_them", "--epsilon", "0")
    assert "would spend at most epsilon 0\n" in owner(*order, "--preview")
    made = owner(*order, "-o", folder / "rows.csv")
    assert "Made people_like_them: 1000 rows of 3 columns" in made
    assert "spent epsilon 0\n" in made
    assert (folder / "rows.csv").read_text().count("\n") == 1001
    told = owner("synth", "show", "people_like_them")
    assert "randomized answers of 1000 respondents" in told
    assert ", of the answers of 1000 respondents, free" in told
    assert "charge" not in told
    network = ("--method", "privbayes", "--degree", "1", "--name", "a_tree")
    assert "Made a_tree: 1000 rows" in owner(*order[:3], *network)
    by_smokes = "SELECT smokes, COUNT(*) AS n FROM people_like_them GROUP BY smokes"
    assert len(re.findall(r"│ +(?:true|false) │ +\d+ │", owner("query", by_smokes))) == 2
