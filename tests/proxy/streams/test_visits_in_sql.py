"""Streams that count visits, in SQL: how often users came, in an epoch and within it."""

from collections.abc import Callable
from pathlib import Path

import numpy as np
import pytest

from accountant.auditor.verify import verify
from cube.refusals import InvalidRequest, InvalidTarget, TooLarge, UnsupportedSql
from proxy.reporting.report import read_report
from tests.support.streaming import TODAY, TOMORROW, Streaming, streaming

N_USERS, LEVELS = 2000, 5
CREATE = f"CREATE STREAM visits (user UNIVERSE {N_USERS}) WITH (epsilon => 16, visits => {LEVELS}"
VISITS = np.arange(N_USERS) % 8  # 250 users of each number of visits, some beyond the levels
IDS = np.random.default_rng(0).permutation(np.repeat(np.arange(N_USERS), VISITS))
# At epsilon 16 a number of users has a deviation of about 50; six of them happen in no lifetime.
FAR = 300

ASKED: dict[str, Callable[[np.ndarray], float]] = {
    "COUNT(DISTINCT user)": lambda v: float((v > 0).sum()),
    "COUNT(*)": lambda v: float((v > 0).sum()),
    "COUNT(*) FILTER (WHERE visits >= 3)": lambda v: float((v >= 3).sum()),
    "COUNT(DISTINCT user) FILTER (WHERE visits BETWEEN 2 AND 3)": lambda v: float(
        ((v == 2) | (v == 3)).sum()
    ),
    "COUNT(*) FILTER (WHERE visits = 4)": lambda v: float((v == 4).sum()),
    "COUNT(*) FILTER (WHERE visits = 5)": lambda v: float((v >= 5).sum()),
    "SUM(LEAST(visits, 2))": lambda v: float(np.minimum(v, 2).sum()),
    "SUM(LEAST(visits, 5))": lambda v: float(np.minimum(v, 5).sum()),
}


def observed(server: Streaming, rest: str = ")") -> Streaming:
    server.rows(CREATE + rest)
    for some in np.array_split(IDS, 7):
        server.observe(some)
    return server


def test_what_is_asked_of_visits_is_near_the_truth_and_free(server: Streaming) -> None:
    observed(server)
    (name,) = server.files()
    assert (server.folder / name).stat().st_size == 64 + N_USERS
    columns = ", ".join(f"{sql} AS c{k}" for k, sql in enumerate(ASKED))
    sql = f"SELECT {columns} FROM visits"  # noqa: S608 - of constants
    found = server.ask(sql)
    (row,) = found.data.to_pylist()
    assert found.receipt is not None
    assert found.receipt.epsilon_spent == 0
    for k, (one, truth) in enumerate(ASKED.items()):
        assert abs(row[f"c{k}"] - truth(VISITS)) < FAR * (4 if "SUM" in one else 1), one
        column = found.receipt.columns[k]
        assert column.low[0] < row[f"c{k}"] < column.high[0]
    assert server.rows(sql) == [row]
    assert server.kinds() == ["stream_opened", "epoch_begun", "visits_released"]
    assert server.files() == []
    assert verify(list(server.ledger.entries())).problem is None
    with pytest.raises(InvalidRequest, match="it was released"):
        server.observe([1])


def test_shares_means_and_histograms_of_visits(server: Streaming) -> None:
    observed(server)
    (row,) = server.rows(
        "SELECT SUM(LEAST(visits, 5)) / 2000 AS cropped, AVG(visits) AS mean, "
        "COUNT(*) FILTER (WHERE visits >= 3) / COUNT(*) AS share FROM visits"
    )
    cropped = np.minimum(VISITS, LEVELS)
    assert abs(row["cropped"] - cropped.mean()) < 0.6
    assert abs(row["mean"] - cropped.sum() / (VISITS > 0).sum()) < 0.8
    assert abs(row["share"] - (VISITS >= 3).sum() / (VISITS > 0).sum()) < 0.25
    by_visits = server.rows("SELECT visits, COUNT(*) AS n FROM visits GROUP BY visits ORDER BY 1")
    assert [one["visits"] for one in by_visits] == [1, 2, 3, 4, 5]
    (total,) = server.rows("SELECT COUNT(*) AS n FROM visits")
    assert abs(sum(one["n"] for one in by_visits) - total["n"]) < 1e-6


def test_visits_while_a_predicate_held_are_counted_by_themselves(server: Streaming) -> None:
    server.rows(CREATE.replace(")", ", paid BOOLEAN)", 1).replace("16", "32") + ")")
    server.observe(IDS, where={"paid": IDS % 2 == 0})
    (row,) = server.rows(
        "SELECT COUNT(*) AS n, COUNT(*) FILTER (WHERE paid AND visits >= 2) AS paid FROM visits"
    )
    assert abs(row["n"] - (VISITS > 0).sum()) < FAR
    assert abs(row["paid"] - ((VISITS >= 2) & (np.arange(N_USERS) % 2 == 0)).sum()) < FAR
    with pytest.raises(UnsupportedSql, match="Other predicates"):
        server.rows("SELECT COUNT(*) AS n FROM visits WHERE NOT paid")


def test_a_restart_goes_on_with_the_counters(path: Path) -> None:
    with streaming(path) as server:
        server.rows(CREATE + ")")
        server.observe(IDS[: IDS.size // 2])
    with streaming(path) as server:
        server.observe(IDS[IDS.size // 2 :])
        (row,) = server.rows("SELECT COUNT(*) FILTER (WHERE visits >= 3) AS n FROM visits")
        assert abs(row["n"] - (VISITS >= 3).sum()) < FAR


def test_a_day_is_released_at_the_ends_of_its_parts(path: Path) -> None:
    with streaming(path) as server:
        server.rows(CREATE + ", epochs => 'day', releases => 4)")
        server.observe(IDS[: IDS.size // 2])
        by_epoch = "SELECT epoch, COUNT(*) AS n FROM visits GROUP BY epoch ORDER BY epoch"
        with pytest.raises(InvalidRequest, match="No epoch of the stream visits is over"):
            server.rows(by_epoch)
        server.clock.seconds = 12 * 3600  # the first quarter passed while nobody looked
        for _ in range(2):
            for stream in server.streams.served:
                stream.turn()
        (noon,) = server.rows(by_epoch)
        assert noon["epoch"] == f"{TODAY} 2/4"
        came = np.unique(IDS[: IDS.size // 2]).size
        assert abs(noon["n"] - came) < 2 * FAR  # a fourth of the noise's epsilon
        server.observe(IDS[IDS.size // 2 :])
        server.turn(TOMORROW)
        rows = server.rows(by_epoch)
        assert [one["epoch"] for one in rows] == [TODAY, f"{TODAY} 2/4"]
        assert rows[1]["n"] == noon["n"], "what was released never changes"
        assert abs(rows[0]["n"] - (VISITS > 0).sum()) < 2 * FAR
        assert server.kinds().count("visits_released") == 2
        at_noon = "SELECT COUNT(*) AS n FROM visits WHERE epoch = '2026-11-24 2/4'"
        assert server.rows(at_noon) == [{"n": noon["n"]}]
        entries = list(server.ledger.entries())
    assert verify(entries).problem is None
    with streaming(path, TOMORROW) as again:
        assert again.rows(by_epoch) == rows


def test_the_report_tells_how_many_came(server: Streaming) -> None:
    observed(server)
    (row,) = server.rows("SELECT COUNT(*) AS n FROM visits")
    entries = list(server.ledger.entries())
    report = read_report(entries, verify(entries))
    ((_, (users,)),) = report.streams[0].latest
    assert abs(users.estimate - row["n"]) < 1e-9


def test_a_sum_with_no_common_measure_is_refused(server: Streaming) -> None:
    observed(server)
    with pytest.raises(UnsupportedSql, match="is not known exactly") as caught:
        server.rows("SELECT SUM(visits * 0.123 + visits * visits) AS n FROM visits")
    assert caught.value.hint


def test_counters_take_the_room_of_eight_bits(server: Streaming) -> None:
    with pytest.raises(InvalidTarget, match="too many for a state"):
        server.rows("CREATE STREAM visits (user UNIVERSE 20000000) WITH (visits => 5)")


def test_epsilons_and_sums_whose_laws_are_too_long_are_refused(server: Streaming) -> None:
    with pytest.raises(InvalidTarget, match="too small for its releases"):
        server.rows(CREATE.replace("16", "0.01") + ", epochs => 'day', releases => 24)")
    server.rows("CREATE STREAM visits (user UNIVERSE 5000) WITH (epsilon => 0.1, visits => 100)")
    with pytest.raises(TooLarge, match="too many values"):
        server.rows("SELECT SUM(visits * visits) AS n FROM visits")
    assert server.rows("SELECT SUM(visits) AS n FROM visits")


def test_a_stream_of_users_has_no_visits(server: Streaming) -> None:
    server.rows(f"CREATE STREAM visits (user UNIVERSE {N_USERS})")
    server.observe(IDS)
    with pytest.raises(UnsupportedSql, match="only its distinct users can be counted"):
        server.rows("SELECT COUNT(*) AS n FROM visits")
