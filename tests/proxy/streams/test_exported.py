"""Releases of several servers: written by each, of one sample, and added up anywhere."""

import json
from collections.abc import Iterator
from contextlib import ExitStack
from pathlib import Path

import numpy as np
import pytest

from accountant.auditor.verify import verify
from accountant.ledger.credentials import Role
from accountant.ledger.limits import Payer
from cube.refusals import InvalidRequest, UnknownName
from proxy.api.requests import LOCAL, Caller
from proxy.streams import service
from streams.merging import merged, release_in
from streams.visit_estimates import ReleasedVisits, at_least
from tests.streams.test_merging import merged_counts
from tests.support.streaming import COUNT, CREATE, DAILY, TODAY, TOMORROW, Streaming, streaming

SAMPLED = (
    "CREATE STREAM visits (user UNIVERSE 4000, paid BOOLEAN) "
    "WITH (epsilon => 16, bits => 1000, sample => 'survey of 2026')"
)
ANALYST = Caller(Payer("bob"), Role.ANALYST, ("visits",))
STRANGER = Caller(Payer("eve"), Role.ANALYST, ("people",))


@pytest.fixture
def servers(tmp_path: Path) -> Iterator[list[Streaming]]:
    """Three, each with a ledger of its own, whose first entries have different times."""
    with ExitStack() as opened:
        found = [
            opened.enter_context(streaming(tmp_path / f"{name}.ledger"))
            for name in ("north", "south", "east")
        ]
        for place, server in enumerate(found):
            server.clock.seconds = 100 * place
        yield found


def agreement(server: Streaming) -> object:
    """What `data_privacy.streams` says, without SQL."""
    (row,) = server.feature.views["streams"].rows(LOCAL)
    return row["agreement"]


def test_servers_that_agree_on_a_sample_count_together(servers: list[Streaming]) -> None:
    servers = servers[:2]
    for place, server in enumerate(servers):
        server.rows(SAMPLED)
        server.observe(np.arange(1000 * place, 1000 * place + 500))
        server.observe(np.arange(1000 * place, 1000 * place + 100), where={"paid": True})
    assert len({agreement(server) for server in servers}) == 1
    files = {str(k): server.streams.exported(ANALYST, "visits") for k, server in enumerate(servers)}
    releases = {name: release_in(content, name) for name, content in files.items()}
    counts = merged_counts(releases)
    # A deviation of 47 users from the sample and hardly any from the noise; of those who paid, 24.
    assert abs(counts[None].n_users - 1000) < 300
    assert abs(counts["paid"].n_users - 200) < 180
    interval = counts[None].interval(0.999999 - 1e-7)
    assert interval.low < 1000 < interval.high
    for server, release in zip(servers, releases.values(), strict=True):
        entries = list(server.ledger.entries())
        assert verify(entries).problem is None
        entry = entries[release.entry - 1]
        assert (entry.kind, entry.digest) == ("epoch_released", release.released)
        body = json.loads(entry.body)
        assert (body["noisy_ones"], *body["where"]) == release.noisy_ones
    # The answer of one server is of the same number.
    release, law = releases["0"], releases["0"].mechanism.state
    n = release.n_places
    share = (release.noisy_ones[0] - n * float(law.p0)) / (n * float(law.separation))
    assert servers[0].rows(COUNT)[0]["n"] == pytest.approx(share * release.universe)


def test_without_a_text_the_sample_is_another_on_each_server(servers: list[Streaming]) -> None:
    for server in servers:
        server.rows(SAMPLED.replace(", sample => 'survey of 2026'", ""))
    assert len({agreement(server) for server in servers}) == 3
    releases = {
        str(k): release_in(server.streams.exported(LOCAL, "visits"), str(k))
        for k, server in enumerate(servers)
    }
    with pytest.raises(InvalidRequest, match="differ in the sample"):
        merged(releases)


def test_another_text_is_another_sample(servers: list[Streaming]) -> None:
    north, south, _ = servers
    north.rows(SAMPLED)
    south.rows(SAMPLED.replace("2026", "2027"))
    assert agreement(north) != agreement(south)


def test_a_file_ends_the_epoch_and_is_the_same_ever_after(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Also if the process dies when the ledger has the release, and no file has it yet."""

    def dies(_release: object) -> bytes:
        raise KeyboardInterrupt

    path = tmp_path / "a.ledger"
    with streaming(path) as server, monkeypatch.context() as patched:
        server.rows(CREATE)
        server.observe(range(300))
        patched.setattr(service, "release_file", dies)
        with pytest.raises(KeyboardInterrupt):
            server.streams.exported(LOCAL, "visits")
        assert server.kinds() == ["stream_opened", "epoch_begun", "epoch_released"]
    with streaming(path) as server:
        content = server.streams.exported(LOCAL, "visits")
        assert server.streams.exported(ANALYST, "visits", "all") == content
        assert abs(server.rows(COUNT)[0]["n"] - 300) < 30
        assert server.kinds() == ["stream_opened", "epoch_begun", "epoch_released"]
        assert server.files() == []
        with pytest.raises(InvalidRequest, match="it was released"):
            server.observe([1])
    with streaming(path) as server:
        assert server.streams.exported(LOCAL, "visits") == content


def test_nothing_of_an_open_epoch_is_written(servers: list[Streaming]) -> None:
    north = servers[0]
    north.rows(DAILY)
    north.observe(range(300))
    with pytest.raises(InvalidRequest, match="No epoch of the stream visits is over"):
        north.streams.exported(LOCAL, "visits")
    north.turn(TOMORROW)
    assert release_in(north.streams.exported(LOCAL, "visits"), "north").epoch == TODAY
    with pytest.raises(InvalidRequest, match=f"No epoch '{TOMORROW}'") as caught:
        north.streams.exported(LOCAL, "visits", TOMORROW)
    assert caught.value.hint == f"Those that are: {TODAY}."


def test_the_same_server_counts_once(servers: list[Streaming]) -> None:
    north = servers[0]
    north.rows(CREATE)
    content = north.streams.exported(LOCAL, "visits")
    with pytest.raises(InvalidRequest, match="a and b are of the same stream of the same server"):
        merged({"a": release_in(content, "a"), "b": release_in(content, "b")})


def test_servers_that_count_visits_count_them_together(servers: list[Streaming]) -> None:
    """With a release at each quarter of the day: the one at its end is added up."""
    create = (
        "CREATE STREAM visits (user UNIVERSE 3000, paid BOOLEAN) WITH (epsilon => 32, visits => 3, "
        "epochs => 'day', releases => 4)"
    )
    for place, server in enumerate(servers):
        server.rows(create)
        ids = np.arange(1000 * place, 1000 * place + 600)
        server.observe(np.repeat(ids, 2))
        server.clock.seconds = 7 * 3600
        for stream in server.streams.served:
            stream.turn()
        server.observe(ids[:200], where={"paid": True})
        server.turn(TOMORROW)
    assert len({agreement(server) for server in servers}) == 1
    assert agreement(servers[0]) is not None
    releases = {
        str(k): release_in(server.streams.exported(ANALYST, "visits"), str(k))
        for k, server in enumerate(servers)
    }
    for server, release in zip(servers, releases.values(), strict=True):
        entries = list(server.ledger.entries())
        assert verify(entries).problem is None
        entry = entries[release.entry - 1]
        assert (entry.kind, entry.digest) == ("visits_released", release.released)
        body = json.loads(entry.body)
        assert (body["epoch"], body.get("part", 0)) == (TODAY, 0)
        assert tuple(body["noisy"]) == release.noisy_ones
        assert release.epsilon == pytest.approx(32, rel=1e-6)
    found = merged(releases)
    for predicate, k, true in ((None, 1, 1800), (None, 2, 1800), (None, 3, 600), ("paid", 1, 600)):
        released = found[predicate]
        assert isinstance(released, ReleasedVisits)
        estimate = released.estimate(at_least(k, 3))
        # A number of users of three servers has a deviation of about 90.
        assert abs(estimate.n_users - true) < 500
        interval = estimate.interval(0.999999 - 1e-7)
        assert interval.low <= true <= interval.high


def test_buckets_have_no_sum_and_go_on(servers: list[Streaming]) -> None:
    north = servers[0]
    north.rows("CREATE STREAM visits (user BUCKETS 1000)")
    with pytest.raises(InvalidRequest, match="its users share buckets") as caught:
        north.streams.exported(LOCAL, "visits")
    assert "the sum of their intervals" in str(caught.value.hint)
    assert north.kinds() == ["stream_opened", "epoch_begun"]
    assert agreement(north) is None


def test_who_may_not_know_of_a_stream_gets_no_release(servers: list[Streaming]) -> None:
    north = servers[0]
    north.rows(CREATE)
    with pytest.raises(UnknownName):
        north.streams.exported(STRANGER, "visits")
    assert north.kinds() == ["stream_opened", "epoch_begun"]
