"""Streams in SQL: created, observed, released once, answered for ever, dropped."""

import stat
import threading
from contextlib import suppress
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

from accountant.auditor.verify import verify
from accountant.ledger.collections import CollectionOpened
from accountant.ledger.credentials import Role
from accountant.ledger.limits import Payer
from cube.refusals import (
    InvalidRequest,
    InvalidTarget,
    NameTaken,
    NotAllowed,
    StoreUnavailable,
    UnknownName,
    UnsupportedSql,
)
from local_dp.campaign import campaign_text
from planner.sql.stream_statements import CreateStream
from proxy.api.requests import LOCAL, Caller
from streams.arrivals import Arrivals
from tests.support.campaigns import survey
from tests.support.serving import NO_STREAMS
from tests.support.streaming import (
    BY_EPOCH,
    COUNT,
    CREATE,
    DAILY,
    LATER,
    TODAY,
    TOMORROW,
    streaming,
)

PRESENT = np.arange(300, dtype=np.int64)
ANALYST = Caller(Payer("bob"), Role.ANALYST, ("visits",))
STRANGER = Caller(Payer("eve"), Role.ANALYST, ("people",))


@pytest.fixture
def path(tmp_path: Path) -> Path:
    return tmp_path / "a.ledger"


def test_a_query_ends_the_epoch_and_gets_the_same_number_ever_after(path: Path) -> None:
    with streaming(path) as server:
        (made,) = server.rows(CREATE)
        assert made == {"name": "visits", "epoch": "all", "bits": 1000, "epsilon": 8.0}
        server.observe(PRESENT)
        server.observe(PRESENT[::-1])  # who comes again counts once
        first = server.ask(COUNT, ANALYST)
        (row,) = first.data.to_pylist()
        # 999 bits of epsilon 8 miss by a deviation of about 1; 30 off happens in no lifetime.
        assert abs(row["n"] - 300) < 30
        assert first.receipt is not None
        (column,) = first.receipt.columns
        assert column.source == "stream"
        assert first.receipt.epsilon_spent == 0
        assert column.low[0] < row["n"] < column.high[0]
        assert server.rows(COUNT) == server.rows(COUNT, ANALYST) == [row]
        assert server.kinds() == ["stream_opened", "epoch_begun", "epoch_released"]
        assert server.files() == []
        with pytest.raises(InvalidRequest, match="it was released"):
            server.observe(PRESENT)
        entries = list(server.ledger.entries())
    assert verify(entries).problem is None
    with streaming(path) as again:
        assert again.rows(COUNT) == [row]


def test_nothing_of_who_came_is_in_the_ledger_before_the_release(path: Path) -> None:
    with streaming(path) as server:
        server.rows(CREATE)
        before = list(server.ledger.entries())
        server.observe(PRESENT)
        assert list(server.ledger.entries()) == before
        (name,) = server.files()
        assert (server.folder / name).stat().st_size == 64 + 125
        assert stat.S_IMODE(server.folder.stat().st_mode) == 0o700
        assert stat.S_IMODE((server.folder / name).stat().st_mode) == 0o600


def test_a_restart_goes_on_with_the_state(path: Path) -> None:
    with streaming(path) as server:
        server.rows(CREATE)
        server.observe(PRESENT)
    with streaming(path) as server:
        server.observe(PRESENT + 300)
        (row,) = server.rows(COUNT)
        assert abs(row["n"] - 600) < 30


def test_each_day_is_released_by_itself_when_it_is_over(path: Path) -> None:
    with streaming(path) as server:
        server.rows(DAILY)
        server.observe(PRESENT)
        with pytest.raises(InvalidRequest, match="No epoch of the stream visits is over"):
            server.rows(COUNT)
        server.turn(TOMORROW)
        server.observe(PRESENT[:100])
        (row,) = server.rows(COUNT)
        assert abs(row["n"] - 300) < 30
        server.turn(LATER)
        days = server.rows(BY_EPOCH)
        assert [one["epoch"] for one in days] == [TODAY, TOMORROW]
        assert days[0]["n"] == row["n"]
        assert abs(days[1]["n"] - 100) < 30
        assert server.rows(f"{COUNT} WHERE epoch = '{TOMORROW}'") == [{"n": days[1]["n"]}]
        assert server.files() == [f"visits.{LATER}.bits"]
        assert server.kinds().count("epoch_released") == 2
        with pytest.raises(UnsupportedSql, match="in several epochs together") as caught:
            server.rows(COUNT)
        assert "GROUP BY epoch" in str(caught.value.hint)


def test_epochs_are_not_tested_for_independence(path: Path) -> None:
    """Refused even where the epochs are grouped in two ways, every combination of which occurs."""
    with streaming(path) as server:
        server.rows(DAILY)
        for day in (TOMORROW, LATER, "2026-11-27", "2026-11-28"):
            server.turn(day)
        one, other = (f"epoch IN ('{TODAY}', '{day}')" for day in (TOMORROW, LATER))
        with pytest.raises(UnsupportedSql, match="streams have no tests of independence"):
            server.rows(f"SELECT DP_CHI2_TEST({one}, {other}) FROM visits")  # noqa: S608 - a test's own text


def test_a_day_on_which_nobody_came_is_begun_and_released_like_any_other(path: Path) -> None:
    with streaming(path) as server:
        server.rows(DAILY)
        server.turn(TOMORROW)
        server.turn(LATER)
        assert server.kinds() == [
            "stream_opened",
            *("epoch_begun", "epoch_released") * 2,
            "epoch_begun",
        ]
        assert [abs(one["n"]) < 30 for one in server.rows(BY_EPOCH)] == [True, True]


def test_a_budget_ends_a_stream(path: Path) -> None:
    with streaming(path) as server:
        server.rows(DAILY.replace("'day'", "'day', budget => 15"))
        server.turn(TOMORROW)
        with pytest.raises(InvalidRequest, match="does not pay for another epoch"):
            server.observe(PRESENT)
        assert len(server.rows(BY_EPOCH)) == 1
        assert server.ledger.streams.streams["visits"].units_spent == 8 * 2**40


def test_a_state_that_is_gone_is_told_and_not_made_again(path: Path) -> None:
    with streaming(path) as server:
        server.rows(DAILY)
        server.observe(PRESENT)
    (file,) = path.with_name("a.ledger.streams").iterdir()
    file.unlink()
    with streaming(path) as server:
        with pytest.raises(StoreUnavailable, match="is missing") as caught:
            server.observe(PRESENT)
        assert caught.value.hint
        assert server.files() == []
        server.turn(TOMORROW)
        server.observe(PRESENT)
        with pytest.raises(InvalidRequest, match="No epoch"):
            server.rows(COUNT)


def test_a_state_of_another_stream_is_refused(path: Path) -> None:
    with streaming(path) as server:
        server.rows(CREATE)
        server.rows(CREATE.replace("visits", "hits"))
    folder = path.with_name("a.ledger.streams")
    (folder / "hits.all.bits").replace(folder / "visits.all.bits")
    with streaming(path) as server, pytest.raises(StoreUnavailable, match="not the one"):
        server.rows(COUNT)


def test_a_state_that_another_process_has_is_refused(path: Path) -> None:
    with streaming(path) as server:
        server.rows(CREATE)
        server.observe(PRESENT)
        with streaming(path) as other, pytest.raises(StoreUnavailable, match="another process"):
            other.observe(PRESENT)


def test_a_disk_that_is_full_is_told_and_tried_again(path: Path) -> None:
    with streaming(path) as server:
        server.folder.mkdir()
        # Where a folder stands, no file is made: as with a disk that is full, there is an OSError.
        (server.folder / "visits.all.bits.new").mkdir()
        with pytest.raises(StoreUnavailable, match="cannot be kept"):
            server.rows(CREATE)
        with pytest.raises(StoreUnavailable, match="cannot be kept"):
            server.observe(PRESENT)
        (server.folder / "visits.all.bits.new").rmdir()
        server.observe(PRESENT)
        assert server.kinds() == ["stream_opened", "epoch_begun"]
        (row,) = server.rows(COUNT)
        assert abs(row["n"] - 300) < 30


def test_an_id_of_nobody_is_refused_and_not_quoted(path: Path) -> None:
    with streaming(path) as server:
        server.rows(CREATE)
        for wrong in (-1, 1000, 777_777):
            with pytest.raises(InvalidRequest, match="outside the universe") as caught:
                server.observe([1, 2, wrong])
            assert "777" not in str(caught.value)


def test_a_stream_that_is_asked_while_it_is_written_is_released_once(path: Path) -> None:
    refused: list[InvalidRequest] = []

    def write() -> None:
        try:
            while True:
                server.observe(PRESENT)
        except InvalidRequest as refusal:
            refused.append(refusal)

    with streaming(path) as server:
        server.rows(CREATE)
        server.observe(PRESENT)
        writers = [threading.Thread(target=write) for _ in range(3)]
        for one in writers:
            one.start()
        (row,) = server.rows(COUNT)
        for one in writers:
            one.join()
        assert abs(row["n"] - 300) < 30
        assert ["it was released" in one.message for one in refused] == [True] * 3
        assert server.rows(COUNT) == [row]
        assert server.kinds().count("epoch_released") == 1


def test_of_a_stream_that_is_asked_while_it_is_written_all_is_counted_that_was_taken(
    path: Path,
) -> None:
    n_writers, n_users = 4, 40_000
    parts = np.array_split(np.random.default_rng(8).permutation(n_users), 400)
    taken: list[int] = []
    half_way = threading.Event()

    def write(some: list[np.ndarray[tuple[int], np.dtype[np.int64]]]) -> None:
        for ids in some:
            with suppress(InvalidRequest):  # it was released meanwhile
                server.observe(ids)
                server.observe(ids[::-1])  # sent twice, and counted once
                taken.append(ids.size)
            if len(taken) > len(parts) // 2:
                half_way.set()

    with streaming(path) as server:
        server.rows(CREATE.replace("1000", str(n_users)))
        writers = [
            threading.Thread(target=write, args=(parts[place::n_writers],))
            for place in range(n_writers)
        ]
        for one in writers:
            one.start()
        half_way.wait()
        (row,) = server.rows(COUNT)
        for one in writers:
            one.join()
        # A part whose first call came before the release, and its second after it, was counted:
        # at most one of each writer. The noise has a deviation of 6: 60 happens in no lifetime.
        most = sum(taken) + n_writers * max(map(len, parts))
        assert sum(taken) - 60 < row["n"] < most + 60
        assert len(parts) // 2 <= len(taken)
        assert server.rows(COUNT) == [row]


def test_departures_count_only_where_they_were_declared(path: Path) -> None:
    with streaming(path) as server:
        server.rows(CREATE.replace("epsilon => 8", "epsilon => 8, departures => true"))
        server.observe(PRESENT)
        server.streams.observed(LOCAL, "visits").observe(Arrivals(PRESENT[:200], present=False))
        assert abs(server.rows(COUNT)[0]["n"] - 100) < 30
    with streaming(path) as server:
        server.rows(CREATE.replace("visits", "hits"))
        with pytest.raises(InvalidRequest, match="without departures"):
            server.streams.observed(LOCAL, "hits").observe(Arrivals(PRESENT, present=False))


@pytest.mark.parametrize("size", ["UNIVERSE 100000) WITH (bits => 20000,", "BUCKETS 20000) WITH ("])
def test_samples_and_buckets_go_on_after_a_restart(path: Path, size: str) -> None:
    with streaming(path) as server:
        server.rows(f"CREATE STREAM visits (user {size} epsilon => 8)")
        server.observe(np.arange(0, 5000))
    with streaming(path) as server:
        server.observe(np.arange(0, 10000))
        result = server.ask(COUNT)
        (row,) = result.data.to_pylist()
        assert abs(row["n"] - 10000) < 1500  # more than six deviations of the sample
        assert result.receipt is not None
        (column,) = result.receipt.columns
        assert column.low[0] < row["n"] < column.high[0]


def test_only_owners_create_and_drop(path: Path) -> None:
    owner = Caller(Payer("ann"), Role.OWNER, ("visits",))
    with streaming(path) as server:
        for who in (ANALYST, replace(owner, tables=("hits",))):
            with pytest.raises(NotAllowed):
                server.rows(CREATE, who)
        server.rows(CREATE, owner)
        with pytest.raises(NotAllowed):
            server.rows("DROP STREAM visits", ANALYST)
        assert server.rows("DROP STREAM IF EXISTS visits", STRANGER) == [
            {"name": "visits", "dropped": False}
        ]
        for sql in ("DROP STREAM visits", COUNT):
            with pytest.raises(UnknownName):
                server.rows(sql, STRANGER)


def test_a_collections_name_is_taken_in_any_case(path: Path) -> None:
    with streaming(path) as server:
        text = campaign_text(survey("Visits"))
        opened = CollectionOpened(text, 10, is_by_invitation=False, by="owner")
        server.ledger.append_collection(lambda _book: opened)
        for name in ("Visits", "visits"):
            with pytest.raises(NameTaken):
                server.rows(CREATE.replace("visits", name))
        assert server.kinds() == ["collection_opened"]


def test_what_is_dropped_is_erased_and_its_name_not_used_again(path: Path) -> None:
    with streaming(path) as server:
        server.rows(CREATE)
        server.observe(PRESENT)
        assert server.rows("DROP STREAM visits") == [{"name": "visits", "dropped": True}]
        assert server.files() == []
        with pytest.raises(UnknownName):
            server.rows(COUNT)
        for taken in ("visits", "Visits", "People"):
            with pytest.raises(NameTaken):
                server.rows(CREATE.replace("visits", taken))
        server.rows(CREATE.replace("visits", "hits"))


def test_other_questions_of_a_stream_are_refused(path: Path) -> None:
    with streaming(path) as server:
        server.rows(CREATE)
        with pytest.raises(UnsupportedSql, match="only its distinct users"):
            server.rows("SELECT COUNT(*) FROM visits")
        with pytest.raises(InvalidTarget, match="epsilon of a stream"):
            server.rows(CREATE.replace("epsilon => 8", "epsilon => 0.0001"))
        assert server.kinds() == ["stream_opened", "epoch_begun"]


def test_explaining_releases_nothing(path: Path) -> None:
    with streaming(path) as server:
        server.rows(CREATE)
        server.ask(f"EXPLAIN PRIVACY {COUNT}")
        assert "epoch_released" not in server.kinds()
        server.rows(COUNT)
        server.ask(f"EXPLAIN PRIVACY {COUNT}")
        assert server.kinds().count("epoch_released") == 1


def test_a_server_that_can_keep_no_state_says_so() -> None:
    order = CreateStream(name="v", column="user", universe=10, n_bits=10)
    with pytest.raises(InvalidRequest, match="has no folder for the states of streams"):
        NO_STREAMS.create(LOCAL, order)


def test_a_claim_about_a_stream_has_no_probability(path: Path) -> None:
    with streaming(path) as server:
        server.rows(CREATE)
        server.observe(PRESENT)
        claim = "SELECT COUNT(DISTINCT user) AS n, DP_PROBABILITY(n > 5) AS p FROM visits"
        (row,) = server.rows(claim)
        assert row["n"] is not None
        assert row["p"] is None
