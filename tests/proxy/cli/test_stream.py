"""`tacit stream`: users told to a real server, and plans."""

import io
import json
import re
from collections.abc import Iterator
from pathlib import Path

import pytest
import structlog

from proxy.monitoring.logs import configure_logs
from tests.support.commands import Run
from tests.support.serving import serving
from tests.support.streaming import COUNT, CREATE, EACH, WATCHED, Streaming, streaming

PLAN = ("stream", "plan", "--universe", 20000, "--epsilon", "1", "--half-width", 1500)


@pytest.fixture(autouse=True)
def _server_logs_elsewhere() -> Iterator[None]:
    configure_logs(io.StringIO())
    yield
    structlog.reset_defaults()


@pytest.fixture
def server(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Streaming]:
    with (
        streaming(tmp_path / "a.ledger") as found,
        serving(found.engine, streams=found.streams) as address,
    ):
        monkeypatch.setenv("TACIT_SERVER", address)
        yield found


def test_a_stream_is_created_observed_and_asked(
    run: Run, server: Streaming, tmp_path: Path
) -> None:
    file = tmp_path / "ids.txt"
    file.write_text("\n".join(map(str, [*range(300), *range(100), ""])))
    assert run("query", CREATE).code == 0
    assert run("stream", "observe", "visits", file) == (0, "", "")
    answered = run("query", COUNT)
    assert answered.code == 0
    assert "covers its state and its release" in answered.out
    assert abs(server.rows(COUNT)[0]["n"] - 300) < 30


def test_releases_of_two_servers_are_added_up(
    run: Run, server: Streaming, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    north, south = tmp_path / "north.json", tmp_path / "south.json"
    server.rows(WATCHED)
    server.observe(range(300), where={"paid": True})
    written = run("stream", "export", "visits", "-o", north)
    assert written.code == 0
    assert "Wrote the release of all to" in written.out
    assert run("stream", "export", "hits", "-o", south).code != 0
    with (
        streaming(tmp_path / "b.ledger") as other,
        serving(other.engine, streams=other.streams) as address,
    ):
        other.clock.seconds = 100
        monkeypatch.setenv("TACIT_SERVER", address)
        other.rows(WATCHED)
        other.observe(range(300, 500))
        assert run("stream", "export", "visits", "--epoch", "all", "-o", south).code == 0
    monkeypatch.setenv("TACIT_SERVER", "127.0.0.1:1")  # none is asked
    shown = run("stream", "merge", north, south)
    assert shown.code == 0
    assert "loses epsilon 24 at each server" in " ".join(shown.out.split())
    found = json.loads(run("stream", "merge", north, south, "--format", "json").out)
    assert found["servers"] == 2
    for row, true in zip(found["counts"], (500, 300, 0), strict=True):
        assert abs(row["users"] - true) < 40
        assert row["low"] <= max(0, row["users"]) <= row["high"]
    overlapping = run("stream", "merge", north, south, "--people-overlap")
    assert overlapping.code != 0
    assert "cannot be counted once from releases" in overlapping.err
    assert "named twice" in run("stream", "merge", north, north).err
    assert "cannot be read" in run("stream", "merge", north, tmp_path / "none").err
    south.write_text(south.read_text().replace("visits", "hits"))
    assert "is not a release of a stream" in run("stream", "merge", north, south).err


def test_visits_of_two_servers_are_added_up(
    run: Run, server: Streaming, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    create = "CREATE STREAM visits (user UNIVERSE 1000) WITH (epsilon => 24, visits => 3)"
    north, south = tmp_path / "north.json", tmp_path / "south.json"
    server.rows(create)
    server.observe([*range(300), *range(200), *range(200)])
    assert run("stream", "export", "visits", "-o", north).code == 0
    with (
        streaming(tmp_path / "b.ledger") as other,
        serving(other.engine, streams=other.streams) as address,
    ):
        other.clock.seconds = 100
        monkeypatch.setenv("TACIT_SERVER", address)
        other.rows(create)
        other.observe([*range(500, 600), *range(500, 600)])
        assert run("stream", "export", "visits", "-o", south).code == 0
    shown = run("stream", "merge", north, south)
    assert shown.code == 0
    for label in ("all ", "all: 2 visits or more", "all: visits, at most 3 of each"):
        assert label in shown.out
    found = json.loads(run("stream", "merge", north, south, "--format", "json").out)["counts"]
    assert [row.get("at_least") for row in found] == [1, 2, 3, None]
    assert found[-1]["up_to"] == 3
    # 400 users, 300 of them twice or more, 200 thrice: deviations of about 55, and 95 for visits.
    for row, true in zip(found, (400, 300, 200, 900), strict=True):
        estimate = row["visits"] if "visits" in row else row["users"]
        assert abs(estimate - true) < (560 if "visits" in row else 330)
        assert row["low"] <= estimate <= row["high"] or estimate < 0


def test_users_leave(run: Run, server: Streaming, monkeypatch: pytest.MonkeyPatch) -> None:
    server.rows(CREATE.replace("epsilon => 8", "epsilon => 8, departures => true"))
    server.observe(range(300))
    monkeypatch.setattr("sys.stdin", io.StringIO("\n".join(map(str, range(200)))))
    assert run("stream", "observe", "visits", "--left").code == 0
    assert abs(server.rows(COUNT)[0]["n"] - 100) < 30


def test_predicates_hold(run: Run, server: Streaming, tmp_path: Path) -> None:
    server.rows(WATCHED)
    file = tmp_path / "ids.txt"
    file.write_text("\n".join(map(str, range(200))))
    told = run("stream", "observe", "visits", file, "--where", "paid", "--where", "mobile")
    assert told.code == 0
    refused = run("stream", "observe", "visits", file, "--where", "old")
    assert "Its predicates are paid, mobile" in refused.err
    server.observe(range(300))
    (found,) = server.rows(EACH)
    assert all(abs(n - true) < 30 for n, true in zip(found.values(), (300, 200, 200), strict=True))


def test_a_line_that_is_no_id_is_not_quoted(run: Run, server: Streaming, tmp_path: Path) -> None:
    server.rows(CREATE)
    file = tmp_path / "ids.txt"
    for wrong in ("ann@example.org", "9" * 30, "1_000", "+7", "٣", str(2**63)):
        file.write_text(f"1\n{wrong}\n", encoding="utf-8")
        ended = run("stream", "observe", "visits", file)
        assert ended.code != 0
        assert "Line 2 is not a whole number" in ended.err
        assert wrong not in ended.err
    assert run("stream", "observe", "visits", tmp_path / "nowhere").code != 0
    assert "no stream 'hits'" in run("stream", "observe", "hits", _ids(tmp_path)).err


def _ids(folder: Path) -> Path:
    (folder / "one.txt").write_text("1\n")
    return folder / "one.txt"


def test_predicates_take_equal_parts_of_an_epsilon(run: Run) -> None:
    alone = run(*PLAN)
    halved = ("stream", "plan", "--universe", 20000, "--epsilon", "2", "--half-width", 1500)
    assert run(*halved, "--predicates", 1) == alone
    assert run(*halved) != alone
    little = run(
        "stream",
        "plan",
        "--universe",
        9,
        "--epsilon",
        "0.002",
        "--half-width",
        1,
        "--predicates",
        3,
    )
    assert "too little for each predicate" in little.err


def test_a_plan_says_how_many_users_need_a_bit(run: Run, tmp_path: Path) -> None:
    picture = tmp_path / "plan.svg"
    ended = run(*PLAN, "--out", picture)
    assert ended.code == 0
    lines = [line for line in ended.out.splitlines() if "law" in line or "theorem" in line]
    exact, theorem = (re.findall(r"\d+", line)[0] for line in lines)
    assert 0 < int(exact) < int(theorem) < 20000
    assert "<svg" in picture.read_text()


@pytest.mark.parametrize(
    ("options", "said"),
    [
        (("--epsilon", "0.0001"), "The epsilon of a stream"),
        (("--half-width", "30000"), "below the universe"),
        (("--out", "plan.png"), "does not end in .svg"),
    ],
)
def test_a_plan_that_makes_no_sense_is_refused(
    run: Run, options: tuple[str, ...], said: str
) -> None:
    ended = run(*PLAN, *options)
    assert ended.code != 0
    assert said in ended.err
